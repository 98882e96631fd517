/* What a run will hold, said before it runs. */
// SPDX-License-Identifier: Apache-2.0
#include "exec_case.h"

static const char chain[] =
    GRAPH_HEAD "main (float[N,8] x) => (float[N,8] y)\n"
               "<float[8,8] w = {1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0,\n"
               "  0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0,\n"
               "  0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1}> {\n"
               "  a = MatMul(x, w) b = MatMul(a, w) c = Softmax(b) d = Mul(a, c)\n"
               "  e = MatMul(d, w) y = Add(e, b) }";

static void note_live(void *arg, const struct cm_step_report *report)
{
    size_t *live = arg;
    *live = report->live_bytes > *live ? report->live_bytes : *live;
}

/* Bytes of blocks and pool while it runs, the result being in memory of our own. */
static size_t run_and_look(struct cm_arena *arena, struct cm_session *session,
                           const struct cm_datum *x, struct cm_error *err)
{
    struct cm_datum out = {.kind = CM_KIND_TENSOR, .tensor = x->tensor};
    size_t live = 0;
    const struct cm_run_options options = {.step = note_live, .step_arg = &live};
    out.tensor.data = cm_arena_alloc(arena, cm_tensor_bytes(&x->tensor));
    return cm_session_run(session, INPUTS(x), 1, &out, 1, &options, err) ? 0 : live;
}

static void same_bytes(struct cm_arena *arena)
{
    static const char *const backends[] = {"reference", NULL};
    static const int64_t rows[] = {64, 1, 1000, 3};
    for (size_t b = 0; b < 2; b++)
        for (size_t i = 0; i < 4; i++) { /* a session each: a block never shrinks */
            const struct cm_session_options options = {.backend = backends[b], .threads = 1};
            struct cm_session *session = exec_of(arena, chain, &options);
            const struct cm_datum *x = exec_ramp(arena, &CM_SHAPE(rows[i], 8), 1);
            struct cm_datum shape = *x, given = *x;
            struct cm_session_memory memory;
            struct cm_error err = {0};
            shape.tensor.data = NULL;
            CHECK_OK(cm_session_measure(session, INPUTS(&shape), 1, NULL, &memory, &err), &err);
            CHECK(memory.block >= (size_t)rows[i] * 8 * sizeof(float));
            CHECK_INT(memory.results, rows[i] * 8 * (int64_t)sizeof(float));
            CHECK_INT(memory.constants, 64 * sizeof(float));
            CHECK_INT(memory.late, 0);
            CHECK_INT(run_and_look(arena, session, x, &err), memory.block);
            CHECK_OK(cm_session_measure(session, INPUTS(&shape), 1, &given, &memory, &err), &err);
            CHECK_INT(memory.results, 0);
        }
}

void test_measure__a_run_holds_the_bytes_that_were_announced(void)
{
    check_in_arena(same_bytes);
}

static void beyond(struct cm_arena *arena)
{
    const struct cm_session_options options = {.backend = "reference", .memory_limit = 10000};
    struct cm_session *session = exec_of(arena, chain, &options);
    const struct cm_datum *large = exec_ramp(arena, &CM_SHAPE(1000, 8), 1);
    const struct cm_datum *small = exec_ramp(arena, &CM_SHAPE(2, 8), 1);
    struct cm_session_memory memory;
    struct cm_error err = {0};
    CHECK_OK(cm_session_measure(session, INPUTS(large), 1, NULL, &memory, &err), &err);
    CHECK(memory.block > options.memory_limit);
    CHECK_INT(run_and_look(arena, session, large, &err), 0);
    CHECK_INT(err.status, CM_LIMIT);
    CHECK(run_and_look(arena, session, small, &err) > 0);
}

void test_measure__what_passes_the_limit_is_announced_all_the_same(void)
{
    check_in_arena(beyond);
}

static void between(struct cm_arena *arena)
{
    struct cm_session *session = exec_of(arena, chain, NULL);
    const struct cm_datum *a = exec_ramp(arena, &CM_SHAPE(4, 8), 1);
    const struct cm_datum *b = exec_ramp(arena, &CM_SHAPE(300, 8), 1);
    struct cm_session_memory memory;
    struct cm_datum before = {0}, after = {0};
    struct cm_error err = {0};
    CHECK_OK(cm_session_run(session, INPUTS(a), 1, &before, 1, NULL, &err), &err);
    /* Another shape, then the one whose decisions are in the slots. */
    CHECK_OK(cm_session_measure(session, INPUTS(b), 1, NULL, &memory, &err), &err);
    CHECK_OK(cm_session_measure(session, INPUTS(a), 1, NULL, &memory, &err), &err);
    CHECK_OK(cm_session_run(session, INPUTS(a), 1, &after, 1, NULL, &err), &err);
    CHECK(exec_same(&before, &after));
    cm_datum_drop(&before);
    cm_datum_drop(&after);
}

void test_measure__runs_before_and_after_give_the_same(void)
{
    check_in_arena(between);
}

static void late(struct cm_arena *arena)
{
    struct cm_session *session =
        exec_of(arena,
                GRAPH_HEAD "main (float[N] x, bool c) => (float[P] y, int64[1,Q] z) {\n"
                           "  n = Neg(x) z = NonZero(n)\n"
                           "  y = If (c) <then_branch = yes () => (float[P] p) { p = Abs(n) },\n"
                           "      else_branch = no () => (float[R] q) { q = Neg(n) }> }",
                NULL);
    const struct cm_datum *x = exec_ramp(arena, &CM_SHAPE(5), 1);
    struct cm_session_memory memory;
    struct cm_error err = {0};
    CHECK_OK(
        cm_session_measure(session, INPUTS(x, graph_bool(arena, true)), 2, NULL, &memory, &err),
        &err);
    CHECK_INT(memory.late, 2);
    CHECK_FAILS(cm_session_measure(session, INPUTS(x, x), 2, NULL, &memory, &err), CM_BAD_ARGUMENT,
                &err, "input 'c' is of type float, needs bool");
    CHECK_FAILS(cm_session_measure(session, INPUTS(x), 1, NULL, &memory, &err), CM_BAD_ARGUMENT,
                &err, "takes 2 inputs");
}

void test_measure__steps_whose_memory_the_data_decides_are_counted(void)
{
    check_in_arena(late);
}
