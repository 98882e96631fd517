/* Large gathers, scatters, searches and running sums: what plain loops give, by any number of
 * threads. */
// SPDX-License-Identifier: Apache-2.0
#include "exec/exec_case.h"

#include <math.h>

enum { ROWS = 700, WIDTH = 300, PICKS = 2000 };

static struct cm_datum *waves(struct cm_arena *arena, int64_t rows, int64_t columns)
{
    struct cm_datum *datum = exec_ramp(arena, &CM_SHAPE(rows, columns), 0);
    float *x = datum->tensor.data;
    for (int64_t i = 0; i < rows * columns; i++)
        x[i] = (float)sin(0.7 * (double)(i % 10007));
    return datum;
}

/* Whole numbers from -limit to limit - 1, as floats. */
static struct cm_datum *picks(struct cm_arena *arena, const struct cm_shape *shape, int64_t limit)
{
    struct cm_datum *datum = exec_ramp(arena, shape, 0);
    for (int64_t i = 0; i < cm_tensor_count(&datum->tensor); i++)
        ((float *)datum->tensor.data)[i] = (float)(i * 7919 % (2 * limit) - limit);
    return datum;
}

static int64_t pick(const struct cm_datum *picks, int64_t i, int64_t limit)
{
    const int64_t index = (int64_t)((const float *)picks->tensor.data)[i];
    return index < 0 ? index + limit : index;
}

static enum cm_status run(struct cm_arena *arena, const char *text, int threads,
                          const struct cm_datum *const *in, size_t n_in, struct cm_datum *y)
{
    struct cm_session *session =
        exec_of(arena, text, &(struct cm_session_options){.threads = threads});
    struct cm_error err = {0};
    return cm_session_run(session, in, n_in, y, 1, NULL, &err);
}

/* By one thread and by four, which must agree bit by bit; the result is dropped with the arena. */
static const float *result(struct cm_arena *arena, const char *text,
                           const struct cm_datum *const *in, size_t n_in)
{
    struct cm_datum *one = CM_NEW(arena, struct cm_datum), four = {0};
    CHECK(!run(arena, text, 1, in, n_in, one));
    CHECK(!run(arena, text, 4, in, n_in, &four));
    CHECK(exec_same(one, &four));
    cm_datum_drop(&four);
    float *kept = CM_NEW_ARRAY(arena, float, (size_t)cm_tensor_count(&one->tensor));
    for (int64_t i = 0; i < cm_tensor_count(&one->tensor); i++)
        kept[i] = (float)cm_tensor_real(&one->tensor, i);
    cm_datum_drop(one);
    return kept;
}

static void gathers(struct cm_arena *arena)
{
    const struct cm_datum *x = waves(arena, ROWS, WIDTH);
    const struct cm_datum *rows = picks(arena, &CM_SHAPE(PICKS), ROWS);
    const struct cm_datum *each = picks(arena, &CM_SHAPE(ROWS, WIDTH), WIDTH);
    const float *from = x->tensor.data;
    const float *y = result(arena,
                            GRAPH_HEAD "main (float[700,300] x, float[N] f) => (float[N,300] y) "
                                       "{i = Cast<to = 7>(f) y = Gather(x, i)}",
                            (const struct cm_datum *const[]){x, rows}, 2);
    for (int64_t i = 0; i < PICKS * WIDTH; i++)
        CHECK(y[i] == from[pick(rows, i / WIDTH, ROWS) * WIDTH + i % WIDTH]);
    y = result(arena,
               GRAPH_HEAD "main (float[700,300] x, float[700,300] f) => (float[700,300] y) "
                          "{i = Cast<to = 7>(f) y = GatherElements<axis = 1>(x, i)}",
               (const struct cm_datum *const[]){x, each}, 2);
    for (int64_t i = 0; i < ROWS * WIDTH; i++)
        CHECK(y[i] == from[i / WIDTH * WIDTH + pick(each, i, WIDTH)]);
}

void test_index__large_gathers(void)
{
    check_in_arena(gathers);
}

static void scatters(struct cm_arena *arena)
{
    const struct cm_datum *x = waves(arena, ROWS, WIDTH), *more = waves(arena, PICKS, WIDTH);
    const struct cm_datum *rows = picks(arena, &CM_SHAPE(PICKS, 1), ROWS);
    const struct cm_datum *const in[] = {x, rows, more};
    const float *updates = more->tensor.data;
    float *expected = CM_NEW_ARRAY(arena, float, (size_t)ROWS *WIDTH);
    memcpy(expected, x->tensor.data, sizeof(float) * ROWS * WIDTH);
    for (int64_t i = 0; i < PICKS * WIDTH; i++)
        expected[pick(rows, i / WIDTH, ROWS) * WIDTH + i % WIDTH] += updates[i];
    const float *y =
        result(arena,
               GRAPH_HEAD "main (float[700,300] x, float[N,1] f, float[N,300] u) => "
                          "(float[700,300] y) "
                          "{i = Cast<to = 7>(f) y = ScatterND<reduction = \"add\">(x, i, u)}",
               in, 3);
    CHECK(memcmp(y, expected, sizeof(float) * ROWS * WIDTH) == 0); /* updates in their order */
}

void test_index__scattered_rows_are_added_in_order(void)
{
    check_in_arena(scatters);
}

static void wrong_indices(struct cm_arena *arena)
{
    const struct cm_datum *x = waves(arena, ROWS, WIDTH), *more = waves(arena, PICKS, WIDTH);
    struct cm_datum *rows = picks(arena, &CM_SHAPE(PICKS, 1), ROWS), y = {0};
    const struct cm_datum *const in[] = {x, rows, more};
    ((float *)rows->tensor.data)[PICKS - 3] = ROWS;
    CHECK(run(arena,
              GRAPH_HEAD "main (float[700,300] x, float[N,1] f) => (float[N,1,300] y) "
                         "{i = Cast<to = 7>(f) y = Gather(x, i)}",
              4, in, 2, &y));
    CHECK(run(arena,
              GRAPH_HEAD "main (float[700,300] x, float[N,1] f, float[N,300] u) => "
                         "(float[700,300] y) {i = Cast<to = 7>(f) y = ScatterND(x, i, u)}",
              4, in, 3, &y));
}

void test_index__an_index_out_of_range_fails_on_every_thread(void)
{
    check_in_arena(wrong_indices);
}

static void searches(struct cm_arena *arena)
{
    struct cm_datum *x = waves(arena, ROWS, WIDTH);
    const struct cm_datum *in[] = {x};
    float *from = x->tensor.data;
    from[5 * WIDTH + 290] = NAN;
    from[5 * WIDTH + 291] = NAN;
    for (int64_t i = 0; i < WIDTH; i++)
        from[6 * WIDTH + i] = -INFINITY;
    const float *y = result(arena,
                            GRAPH_HEAD "main (float[700,300] x) => (float[700] y) {i = "
                                       "ArgMax<axis = 1, keepdims = 0>(x) y = Cast<to = 1>(i)}",
                            in, 1);
    for (int64_t r = 0; r < ROWS; r++) {
        int64_t best = 0;
        for (int64_t i = 1; i < WIDTH && r != 5; i++)
            best = from[r * WIDTH + i] > from[r * WIDTH + best] ? i : best;
        CHECK(y[r] == (float)(r == 5 ? 290 : best));
    }
    y = result(arena,
               GRAPH_HEAD "main (float[700,300] x) => (float[700] y) {i = ArgMin<axis = 1, "
                          "keepdims = 0>(x) y = Cast<to = 1>(i)}",
               in, 1);
    CHECK(y[5] == 290 && y[6] == 0);
    y = result(arena,
               GRAPH_HEAD "main (float[700,300] x) => (float[700,300] y) {a = "
                          "Constant<value_int = 0>() y = CumSum<reverse = 1>(x, a)}",
               in, 1);
    double total = 0;
    for (int64_t r = ROWS - 1; r >= 0; r--) {
        total += (double)from[r * WIDTH + 7];
        CHECK(fabs((double)y[r * WIDTH + 7] - total) < 1e-5 || isinf(total));
    }
}

void test_index__long_searches_and_running_sums(void)
{
    check_in_arena(searches);
}
