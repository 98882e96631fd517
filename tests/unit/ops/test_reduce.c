/* Large reductions: the same bits by any number of threads, and what a plain loop gives, on every
 * machine. */
// SPDX-License-Identifier: Apache-2.0
#include "exec/exec_case.h"

#include "base/machine.h"

#include <math.h>

/* A tensor outer x middle x inner of which one part or two are reduced. */
struct form {
    int64_t outer, middle, inner;
    bool outer_goes, middle_goes, inner_goes;
    const char *axes;
};

static double joined(const char *op, double total, double x)
{
    if (strcmp(op, "ReduceMax") == 0)
        return x > total || isnan(x) ? x : total;
    return total + (strcmp(op, "ReduceLogSumExp") == 0 ? exp(x) : x);
}

static void naive(const char *op, const struct form *f, const float *x, double *y)
{
    const int64_t count = f->outer * f->middle * f->inner;
    for (int64_t i = 0; i < count; i++)
        y[i] = strcmp(op, "ReduceMax") == 0 ? -INFINITY : 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t c = i % f->inner, b = i / f->inner % f->middle, a = i / f->inner / f->middle;
        int64_t to = f->outer_goes ? 0 : a;
        to = f->middle_goes ? to : to * f->middle + b;
        to = f->inner_goes ? to : to * f->inner + c;
        y[to] = joined(op, y[to], (double)x[i]);
    }
}

static void run(struct cm_arena *arena, const char *text, int threads, const struct cm_datum *x,
                struct cm_datum *y)
{
    struct cm_session *session =
        exec_of(arena, text, &(struct cm_session_options){.threads = threads});
    struct cm_error err = {0};
    CHECK_OK(cm_session_run(session, &x, 1, y, 1, NULL, &err), &err);
}

static void check_form(struct cm_arena *arena, const char *op, const struct form *f)
{
    struct cm_datum *x = exec_ramp(arena, &CM_SHAPE(f->outer, f->middle, f->inner), 0);
    const int64_t count = cm_tensor_count(&x->tensor);
    float *numbers = x->tensor.data;
    double *expected = CM_NEW_ARRAY(arena, double, (size_t)count);
    struct cm_datum one = {0}, four = {0};
    const struct cm_str text = cm_arena_printf(
        arena,
        GRAPH_HEAD "main (float[%lld,%lld,%lld] x) => (float[R,S,T] y) "
                   "{a = Constant<value_ints = [%s]>() y = %s(x, a)}",
        (long long)f->outer, (long long)f->middle, (long long)f->inner, f->axes, op);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = (float)sin(0.7 * (double)(i % 10007));
    naive(op, f, numbers, expected);
    run(arena, text.data, 1, x, &one);
    run(arena, text.data, 4, x, &four);
    CHECK(exec_same(&one, &four));
    for (int64_t i = 0; i < cm_tensor_count(&one.tensor); i++) {
        const bool logarithm = strcmp(op, "ReduceLogSumExp") == 0;
        const double want = logarithm ? log(expected[i]) : expected[i];
        const double got = cm_tensor_real(&one.tensor, i);
        if (!(fabs(got - want) <= 4e-7 * (1 + fabs(want))))
            fail_msg("%s over [%s]: result %lld is %.9g, expected %.9g", op, f->axes, (long long)i,
                     got, want);
    }
    cm_datum_drop(&one);
    cm_datum_drop(&four);
}

static void check_forms(struct cm_arena *arena)
{
    static const struct form forms[] = {
        {1, 401, 997, false, false, true, "2"},    {3, 1, 100003, false, false, true, "2"},
        {1, 40001, 3, false, false, true, "2"},    {1, 401, 997, false, true, false, "1"},
        {5, 33, 700, false, true, false, "1"},     {7, 5, 9001, true, false, true, "0,2"},
        {301, 3, 250, true, false, false, "0"},    {1, 513, 1025, true, true, true, "0,1,2"},
        {1, 1, 300007, true, true, true, "0,1,2"}, {40001, 2, 5, true, false, true, "0,2"}};
    static const char *const ops[] = {"ReduceSum", "ReduceMax", "ReduceLogSumExp"};
    for (size_t o = 0; o < CM_COUNT(ops); o++)
        for (size_t i = 0; i < CM_COUNT(forms); i++)
            check_form(arena, ops[o], &forms[i]);
}

void test_reduce__large_forms_on_every_machine(void)
{
    for (enum cm_machine machine = CM_PLAIN; machine < CM_MACHINES; machine++) {
        cm_machine_limit(machine);
        check_in_arena(check_forms);
    }
    cm_machine_limit(CM_MACHINES - 1);
}

static void check_edges(struct cm_arena *arena)
{
    struct cm_datum *x = exec_ramp(arena, &CM_SHAPE(4, 40), 0);
    float *numbers = x->tensor.data;
    for (int64_t i = 0; i < 160; i++)
        numbers[i] = i < 40 ? -INFINITY : numbers[i];
    numbers[43] = INFINITY;
    numbers[90] = NAN;
    struct cm_datum y = {0};
    run(arena,
        GRAPH_HEAD "main (float[4,40] x) => (float[4] y) {a = Constant<value_ints = [1]>() "
                   "y = ReduceLogSumExp<keepdims = 0>(x, a)}",
        2, x, &y);
    const float *results = y.tensor.data;
    CHECK(results[0] == -INFINITY);
    CHECK(results[1] == INFINITY);
    CHECK(isnan(results[2]));
    CHECK(isfinite(results[3]));
    cm_datum_drop(&y);
}

void test_reduce__infinities_and_nan_in_sums_of_exponentials(void)
{
    check_in_arena(check_edges);
}
