/* What is computed while a session is opened, and what is left for its runs. */
// SPDX-License-Identifier: Apache-2.0
#include "exec/program.h"
#include "exec_case.h"

/* Steps of this operator that are left to run. */
static size_t left(const struct cm_session *session, const char *op)
{
    size_t count = 0;
    for (size_t s = 0; s < session->main->n_steps; s++)
        count += cm_str_is(session->main->steps[s].node->op_type, op);
    return count;
}

enum { LONG = 60, BYTES = 64 << 10 };

/* BYTES of zeros, negated LONG times, one after the other. */
static struct cm_session *open_chain(struct cm_arena *arena, size_t memory_limit)
{
    const struct cm_session_options options = {.memory_limit = memory_limit,
                                               .backend = "reference"};
    char *text = cm_arena_alloc(arena, 4000);
    size_t at = (size_t)snprintf(text, 1000,
                                 GRAPH_HEAD "main (float x) => (float[N] y)\n"
                                            "<int64[1] n = {%d}> { v0 = ConstantOfShape(n)\n",
                                 BYTES / 4);
    for (int i = 0; i < LONG; i++)
        at += (size_t)snprintf(text + at, 40, "v%d = Neg(v%d)\n", i + 1, i);
    snprintf(text + at, 40, "y = Add(v%d, x) }", LONG);
    return exec_of(arena, text, &options);
}

static void within_limit(struct cm_arena *arena)
{
    CHECK_INT(left(open_chain(arena, 0), "Neg"), 0);
    /* Room for one of them, but not for the next beside it. */
    CHECK_INT(left(open_chain(arena, BYTES + BYTES / 2), "Neg"), LONG);
}

void test_fold__results_stay_within_the_memory_limit(void)
{
    check_in_arena(within_limit);
}

static void given_back(struct cm_arena *arena)
{
    struct cm_session *session = open_chain(arena, 3 * BYTES);
    const struct cm_datum *x = exec_ramp(arena, &CM_SCALAR, 2);
    struct cm_datum out = {0};
    struct cm_error err = {0};
    CHECK_INT(left(session, "Neg"), 0);
    CHECK_OK(cm_session_run(session, &x, 1, &out, 1, NULL, &err), &err);
    CHECK(((const float *)out.tensor.data)[BYTES / 4 - 1] == 2);
    cm_datum_drop(&out);
}

void test_fold__what_nobody_reads_any_more_makes_room(void)
{
    check_in_arena(given_back);
}

static void long_work(struct cm_arena *arena)
{
    struct cm_session *session =
        exec_of(arena,
                GRAPH_HEAD "main (float x) => (float[1024,1024] y, float[32,32] z, float s)\n"
                           "<int64[2] big = {1024, 1024}, int64[2] small = {32, 32},\n"
                           " int64[1] row = {2000}> {\n"
                           "  a = ConstantOfShape(big) b = MatMul(a, a) y = Add(b, x)\n"
                           "  c = ConstantOfShape(small) d = MatMul(c, c) e = Gemm(d, c)\n"
                           "  z = Add(e, x) r = ConstantOfShape(row)\n"
                           "  q = Einsum <equation = \"i,j,k->\"> (r, r, r) s = Add(q, x) }",
                NULL);
    CHECK_INT(left(session, "ConstantOfShape"), 0);
    CHECK_INT(left(session, "MatMul"), 1); /* of the large ones, which a run can be stopped in */
    CHECK_INT(left(session, "Gemm"), 0);
    CHECK_INT(left(session, "Einsum"), 1);
}

void test_fold__what_takes_long_is_left_for_the_run(void)
{
    check_in_arena(long_work);
}

static void strings(struct cm_arena *arena)
{
    char *text = cm_arena_alloc(arena, 4000);
    size_t at = (size_t)snprintf(text, 1000,
                                 GRAPH_HEAD "main (float x) => (string[1] v30)\n"
                                            "<string[1] v0 = {\"0123456789abcdef\"}> {\n");
    for (int i = 0; i < 30; i++)
        at += (size_t)snprintf(text + at, 60, "v%d = StringConcat(v%d, v%d)\n", i + 1, i, i);
    text[at] = '}';
    const struct cm_session_options options = {.memory_limit = 1 << 20};
    struct cm_session *session = exec_of(arena, text, &options);
    const struct cm_datum *x = exec_ramp(arena, &CM_SCALAR, 0);
    struct cm_datum out = {0};
    struct cm_error err = {0};
    CHECK(left(session, "StringConcat") > 10 && left(session, "StringConcat") < 30);
    CHECK_FAILS(cm_session_run(session, &x, 1, &out, 1, NULL, &err), CM_LIMIT, &err,
                "memory limit");
}

void test_fold__characters_count(void)
{
    check_in_arena(strings);
}
