/* Sessions: what a run gives, what it allocates, what it refuses, and that it lives on. */
// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "exec_case.h"

#include <math.h>

/* ---- allocations ---- */

static const char chain[] =
    GRAPH_HEAD "main (float[N,4] x, float[4] w) => (float[N,4] y, float[M] z, float[N,4] u) {\n"
               "  a = Add(x, w) b = Relu(a) t = Transpose <perm = [1, 0]> (b)\n"
               "  s = Shape(x) flat = Reshape(t, minus) z = Mul(flat, flat)\n"
               "  c = Concat <axis = 0> (b, x) p, q = Split <axis = 0, num_outputs = 2> (c)\n"
               "  back = Reshape(flat, s) r = Softmax(back) y = Sub(r, p) u = Sigmoid(q)\n"
               "}";
static const char chain_constants[] = "<int64[1] minus = {-1}>";

static struct cm_session *open_chain(struct cm_arena *arena,
                                     const struct cm_session_options *options)
{
    const char *brace = strstr(chain, "{\n");
    const struct cm_str text =
        cm_arena_printf(arena, "%.*s%s %s", (int)(brace - chain), chain, chain_constants, brace);
    return exec_of(arena, text.data, options);
}

static void count_pooled(struct cm_arena *arena)
{
    struct cm_session *session = open_chain(arena, NULL);
    const struct cm_datum *in[] = {exec_ramp(arena, &CM_SHAPE(3, 4), -1),
                                   exec_ramp(arena, &CM_SHAPE(4), 0)};
    struct cm_error err = {0};
    uint64_t before = 0;
    for (int run = 0; run < 10; run++) {
        struct cm_datum out[3] = {0};
        if (run == 2)
            before = cm_memory_count();
        CHECK_OK(cm_session_run(session, in, 2, out, 3, NULL, &err), &err);
        for (int o = 0; o < 3; o++)
            cm_datum_drop(&out[o]);
    }
    CHECK_INT(cm_memory_count() - before, 0);
}

void test_session__a_run_allocates_nothing_when_shapes_are_as_before(void)
{
    check_in_arena(count_pooled);
}

static void count_given(struct cm_arena *arena)
{
    struct cm_session *session = open_chain(arena, NULL);
    const struct cm_datum *in[] = {exec_ramp(arena, &CM_SHAPE(2, 4), 1),
                                   exec_ramp(arena, &CM_SHAPE(4), 0)};
    struct cm_datum expected[3] = {0};
    struct cm_error err = {0};
    CHECK_OK(cm_session_run(session, in, 2, expected, 3, NULL, &err), &err);
    float room[3][8];
    struct cm_datum out[3];
    for (int o = 0; o < 3; o++)
        out[o] = (struct cm_datum){
            .kind = CM_KIND_TENSOR,
            .tensor = cm_tensor_borrow(CM_FLOAT, &expected[o].tensor.shape, room[o])};
    CHECK_OK(cm_session_run(session, in, 2, out, 3, NULL, &err), &err);
    const uint64_t before = cm_memory_count();
    memset(room, 0, sizeof room);
    CHECK_OK(cm_session_run(session, in, 2, out, 3, NULL, &err), &err);
    CHECK_INT(cm_memory_count() - before, 0);
    for (int o = 0; o < 3; o++) {
        CHECK(out[o].tensor.data == room[o] && exec_same(&out[o], &expected[o]));
        cm_datum_drop(&expected[o]);
    }
}

void test_session__results_are_written_where_the_caller_says(void)
{
    check_in_arena(count_given);
}

static const char body[] = GRAPH_HEAD
    "main (float[N] x, int64 n) => (float[N] y) {\n"
    "  y = Loop (n, , x) <body = step (int64 i, bool c, float[] s) => (bool go, float[] t) {\n"
    "    go = Identity(c) a = Add(s, x) b = Relu(a) t = Mul(b, b) }>\n"
    "}";

static uint64_t loop_allocations(struct cm_arena *arena, struct cm_session *session, int64_t trips)
{
    const struct cm_datum *in[] = {exec_ramp(arena, &CM_SHAPE(5), 0), graph_int(arena, trips)};
    struct cm_error err = {0};
    uint64_t before = 0;
    for (int run = 0; run < 3; run++) {
        struct cm_datum out = {0};
        before = cm_memory_count();
        CHECK_OK(cm_session_run(session, in, 2, &out, 1, NULL, &err), &err);
        cm_datum_drop(&out);
    }
    return cm_memory_count() - before;
}

static void count_body(struct cm_arena *arena)
{
    struct cm_session *session = exec_of(arena, body, NULL);
    const uint64_t few = loop_allocations(arena, session, 10);
    const uint64_t many = loop_allocations(arena, session, 20);
    /* The loop makes its iteration number anew each time; what the body computes costs nothing. */
    CHECK(many - few <= 10);
}

void test_session__a_body_allocates_nothing_of_its_own(void)
{
    check_in_arena(count_body);
}

static void count_map(struct cm_arena *arena)
{
    struct cm_session *session =
        exec_of(arena,
                GRAPH_HEAD "main (float[N] x) => (float[N] y) <int64 zero = {0}> {\n"
                           "  s = SequenceConstruct(x, x)\n"
                           "  m = SequenceMap (s) <body = each (float[N] p) => (float[N] q)\n"
                           "      { q = Neg(p) }>\n"
                           "  y = SequenceAt(m, zero) }",
                NULL);
    const struct cm_datum *x = exec_ramp(arena, &CM_SHAPE(5), 0);
    struct cm_error err = {0};
    uint64_t before = 0;
    for (int run = 0; run < 3; run++) {
        struct cm_datum out = {0};
        before = cm_memory_count();
        CHECK_OK(cm_session_run(session, INPUTS(x), 1, &out, 1, NULL, &err), &err);
        cm_datum_drop(&out);
    }
    CHECK_INT(cm_memory_count() - before, 0);
}

void test_session__a_map_allocates_nothing_when_shapes_are_as_before(void)
{
    check_in_arena(count_map);
}

/* ---- odd outputs ---- */

static void odd_outputs(struct cm_arena *arena)
{
    struct cm_graph *graph =
        graph_of(arena,
                 GRAPH_HEAD "main (float[2] x) => (float[2] x) <float[2] w = {3, 4}> {\n"
                            "  y = Neg(x) s = Shape(x) }",
                 NULL);
    const char *const names[] = {"y", "x", "w", "y", "s"};
    cm_value outputs[5];
    for (size_t i = 0; i < CM_COUNT(names); i++)
        outputs[i] = cm_graph_find(graph, cm_str(names[i]));
    cm_graph_set_outputs(graph, outputs, CM_COUNT(outputs));
    struct cm_session *session = exec_open(arena, graph, NULL);
    const struct cm_datum *x = FLOATS(arena, 1, 2);
    static const double expected[5][2] = {{-1, -2}, {1, 2}, {3, 4}, {-1, -2}, {2}};
    for (int run = 0; run < 3; run++) {
        float given[2];
        struct cm_datum out[5] = {0};
        struct cm_error err = {0};
        /* Memory for a repeated output, an input, a constant, and what was known when binding. */
        if (run != 3)
            out[run] = (struct cm_datum){.kind = CM_KIND_TENSOR,
                                         .tensor = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(2), given)};
        CHECK_OK(cm_session_run(session, &x, 1, out, 5, NULL, &err), &err);
        for (int o = 0; o < 5; o++) {
            for (int64_t i = 0; i < cm_tensor_count(&out[o].tensor); i++)
                CHECK(cm_tensor_real(&out[o].tensor, i) == expected[o][i]);
            cm_datum_drop(&out[o]);
        }
    }
}

void test_session__outputs_may_be_inputs_constants_or_one_value_twice(void)
{
    check_in_arena(odd_outputs);
}

static void outer_outputs(struct cm_arena *arena)
{
    struct cm_session *session =
        exec_of(arena,
                GRAPH_HEAD "main (float[2] x, bool c) => (float[2] y, float[2] z) {\n"
                           "  y = Neg(x)\n"
                           "  z = If (c) <then_branch = yes () => (float[2] y) {},\n"
                           "              else_branch = no () => (float[2] n) { n = Add(x, y) }>\n"
                           "}",
                NULL);
    const struct cm_datum *yes[] = {FLOATS(arena, 1, 2), graph_bool(arena, true)};
    const struct cm_datum *no[] = {FLOATS(arena, 3, 4), graph_bool(arena, false)};
    CHECK_RUNS(session, yes, 2, -1, -2);
    CHECK_RUNS(session, no, 2, -3, -4);
    CHECK_RUNS(session, yes, 2, -1, -2);
}

void test_session__a_body_may_give_back_a_result_of_the_graph_around_it(void)
{
    check_in_arena(outer_outputs);
}

/* ---- refusals ---- */

static void bad_inputs(struct cm_arena *arena)
{
    struct cm_session *session = open_chain(arena, NULL);
    const struct cm_datum *x = exec_ramp(arena, &CM_SHAPE(3, 4), 1);
    const struct cm_datum *w = exec_ramp(arena, &CM_SHAPE(4), 1);
    struct cm_datum out[3] = {0};
    struct cm_error err = {0};
#define RUN(...)                                                                                   \
    cm_session_run(session, INPUTS(__VA_ARGS__), sizeof(INPUTS(__VA_ARGS__)) / sizeof(void *),     \
                   out, 3, NULL, &err)
    CHECK_FAILS(RUN(x), CM_BAD_ARGUMENT, &err, "takes 2 inputs and gives 3 outputs, not 1 and 3");
    CHECK_FAILS(RUN(x, NULL), CM_BAD_ARGUMENT, &err, "input 'w' is missing");
    CHECK_FAILS(RUN(w, w), CM_BAD_ARGUMENT, &err, "input 'x' has rank 1, needs 2 (");
    CHECK_FAILS(RUN(exec_ramp(arena, &CM_SHAPE(3, 5), 1), w), CM_BAD_ARGUMENT, &err,
                "input 'x' has shape 3x5, needs float[N,4]");
    CHECK_FAILS(RUN(graph_int(arena, 1), w), CM_BAD_ARGUMENT, &err,
                "input 'x' is of type int64, needs float");
    float room[12];
    out[0].tensor = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(4, 3), room);
    CHECK_FAILS(RUN(x, w), CM_BAD_ARGUMENT, &err,
                "is float of shape 3x4, the memory given for it is for float of shape 4x3");
    for (int o = 1; o < 3; o++)
        CHECK(!out[o].tensor.data && !out[o].tensor.buffer);
    out[0].tensor = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(3, 4), room);
    CHECK_OK(RUN(x, w), &err);
#undef RUN
    for (int o = 0; o < 3; o++)
        cm_datum_drop(&out[o]);
}

void test_session__bad_inputs_are_named_and_do_no_harm(void)
{
    check_in_arena(bad_inputs);
}

static void late_given(struct cm_arena *arena)
{
    struct cm_session *session = exec_of(
        arena,
        GRAPH_HEAD "main (float[N] x) => (int64[1,K] p, float[N] y) { y = Neg(x) p = NonZero(x) }",
        NULL);
    const struct cm_datum *x = FLOATS(arena, 1, 0, 2);
    int64_t room[2];
    struct cm_error err = {0};
    struct cm_datum out[2] = {{.tensor = cm_tensor_borrow(CM_INT64, &CM_SHAPE(1, 1), room)}};
    CHECK_FAILS(cm_session_run(session, &x, 1, out, 2, NULL, &err), CM_BAD_ARGUMENT, &err,
                "output 'p' is int64 of shape 1x2, the memory given for it is for int64 of shape "
                "1x1");
    CHECK(!out[1].tensor.data && out[0].tensor.data == room);
    out[0].tensor = cm_tensor_borrow(CM_INT64, &CM_SHAPE(1, 2), room);
    CHECK_OK(cm_session_run(session, &x, 1, out, 2, NULL, &err), &err);
    CHECK(room[0] == 0 && room[1] == 2);
    cm_datum_drop(&out[1]);
}

void test_session__memory_given_for_a_result_of_unknown_size_is_checked_too(void)
{
    check_in_arena(late_given);
}

static void failing_kernel(struct cm_arena *arena)
{
    struct cm_session *session =
        exec_of(arena,
                GRAPH_HEAD "main (float[N] x, int64[K] at) => (float[K] y) {\n"
                           "  p = NonZero(x) a = Relu(x) y = Gather(a, at) }",
                NULL);
    struct cm_datum *at = graph_int(arena, 7);
    at->tensor.shape = CM_SHAPE(1);
    const struct cm_datum *in[] = {FLOATS(arena, 1, 2, 3), at};
    struct cm_datum out = {0};
    struct cm_error err = {0};
    for (int run = 0; run < 3; run++) {
        CHECK_FAILS(cm_session_run(session, in, 2, &out, 1, NULL, &err), CM_BAD_MODEL, &err,
                    "(Gather): ");
        CHECK(!out.tensor.data);
    }
    *(int64_t *)at->tensor.data = 1;
    CHECK_RUNS(session, in, 1, 2);
}

void test_session__a_kernel_that_fails_leaves_the_session_alive(void)
{
    check_in_arena(failing_kernel);
}

/* Doubles what x has at `at`, twice; the second time at another size. */
static const char gathering[] = GRAPH_HEAD
    "main (float[N] x, int64[K] at, int64 n) => (float[M] y, float[N] v) {\n"
    "  v = Neg(x)\n"
    "  y = Loop (n, , x) <body = step (int64 i, bool c, float[] s) => (bool go, float[] t) {\n"
    "    go = Identity(c) p = NonZero(s) g = Gather(s, at)\n"
    "    t = Concat <axis = 0> (g, g) }>\n"
    "}";

static void failing_body(struct cm_arena *arena)
{
    struct cm_session *session = exec_of(arena, gathering, NULL);
    struct cm_datum *at = graph_int(arena, 2);
    at->tensor.shape = CM_SHAPE(1);
    const struct cm_datum *in[] = {FLOATS(arena, 1, 2, 3), at, graph_int(arena, 2)};
    struct cm_datum out[2] = {0};
    struct cm_error err = {0};
    for (int run = 0; run < 3; run++) {
        CHECK_FAILS(cm_session_run(session, in, 3, out, 2, NULL, &err), CM_BAD_MODEL, &err,
                    "(Loop): node making 'g' (Gather): ");
        CHECK(!out[0].tensor.data && !out[1].tensor.data);
    }
    *(int64_t *)at->tensor.data = 1;
    CHECK_RUNS(session, in, 2, 2, 2);
}

void test_session__a_body_that_fails_leaves_the_session_alive(void)
{
    check_in_arena(failing_body);
}

/* ---- limits ---- */

static void limit(struct cm_arena *arena)
{
    const struct cm_session_options options = {.memory_limit = 20000};
    struct cm_session *session = open_chain(arena, &options);
    const struct cm_datum *w = exec_ramp(arena, &CM_SHAPE(4), 0);
    const struct cm_datum *small = exec_ramp(arena, &CM_SHAPE(20, 4), 0);
    const struct cm_datum *large = exec_ramp(arena, &CM_SHAPE(2000, 4), 0);
    struct cm_error err = {0};
    for (int run = 0; run < 3; run++) {
        struct cm_datum out[3] = {0};
        CHECK_FAILS(cm_session_run(session, INPUTS(large, w), 2, out, 3, NULL, &err), CM_LIMIT,
                    &err, "the memory limit of 20000");
        CHECK_OK(cm_session_run(session, INPUTS(small, w), 2, out, 3, NULL, &err), &err);
        for (int o = 0; o < 3; o++)
            cm_datum_drop(&out[o]);
    }
}

void test_session__the_memory_limit_refuses_a_run_not_the_session(void)
{
    check_in_arena(limit);
}

static void kept_results(struct cm_arena *arena)
{
    const struct cm_session_options options = {.memory_limit = 20000};
    struct cm_session *session = open_chain(arena, &options);
    const struct cm_datum *in[] = {exec_ramp(arena, &CM_SHAPE(20, 4), 0),
                                   exec_ramp(arena, &CM_SHAPE(4), 0)};
    struct cm_datum out[40][3] = {0};
    struct cm_error err = {0};
    for (size_t run = 0; run < CM_COUNT(out); run++)
        CHECK_OK(cm_session_run(session, in, 2, out[run], 3, NULL, &err), &err);
    for (size_t run = 0; run < CM_COUNT(out); run++)
        for (int o = 0; o < 3; o++)
            cm_datum_drop(&out[run][o]);
}

void test_session__results_the_caller_keeps_do_not_count_against_later_runs(void)
{
    check_in_arena(kept_results);
}

static void limited_branches(struct cm_arena *arena)
{
    /* Each branch needs 12000 bytes at a time: either fits, both do not. */
    const struct cm_session_options options = {.memory_limit = 24000};
    struct cm_session *session = exec_of(
        arena,
        GRAPH_HEAD
        "main (float[N] x, bool c) => (float[1] y) {\n"
        "  y = If (c) <then_branch = yes () => (float[1] p) {\n"
        "        a = Neg(x) b = Sigmoid(a) d = Mul(a, b) e = Sub(d, a) p = ReduceSum(e) },\n"
        "      else_branch = no () => (float[1] q) {\n"
        "        f = Abs(x) g = Sigmoid(f) h = Mul(f, g) k = Sub(h, f) q = ReduceSum(k) }>\n"
        "}",
        &options);
    const struct cm_datum *x = exec_ramp(arena, &CM_SHAPE(1000), 0);
    struct cm_error err = {0};
    for (int run = 0; run < 6; run++) {
        struct cm_datum out = {0};
        CHECK_OK(
            cm_session_run(session, INPUTS(x, graph_bool(arena, run % 2)), 2, &out, 1, NULL, &err),
            &err);
        cm_datum_drop(&out);
    }
}

void test_session__a_branch_that_does_not_run_holds_nothing_against_the_limit(void)
{
    check_in_arena(limited_branches);
}

static void huge_shapes(struct cm_arena *arena)
{
    struct cm_session *session =
        exec_of(arena,
                GRAPH_HEAD "main (float[N] x, int64[2] s) => (float[1,1] y) {\n"
                           "  a = Expand(x, s) b = Neg(a) y = ReduceSum(b) }",
                NULL);
    int64_t dims[2] = {INT64_C(1) << 31, INT64_C(1) << 28};
    const struct cm_datum s = {.kind = CM_KIND_TENSOR,
                               .tensor = cm_tensor_borrow(CM_INT64, &CM_SHAPE(2), dims)};
    const struct cm_datum *in[] = {FLOATS(arena, 1), &s};
    struct cm_datum out = {0};
    struct cm_error err = {0};
    dims[1] = INT64_C(1) << 31;
    CHECK_FAILS(cm_session_run(session, in, 2, &out, 1, NULL, &err), CM_LIMIT, &err, "overflows");
    dims[0] = dims[1] = 2;
    CHECK_RUNS(session, in, 1, -4);
}

void test_session__sizes_past_any_memory_are_refused(void)
{
    check_in_arena(huge_shapes);
}

/* Each result fits in 63 bits, all together do not. */
static void huge_sums(struct cm_arena *arena)
{
    struct cm_session *session = exec_of(
        arena,
        GRAPH_HEAD
        "main (float[N] x) => (float[1,1] y) <int64[2] s = {1000000000000, 2000000}> {\n"
        "  a = Expand(x, s) b = Neg(a) c = Abs(a) d = Sigmoid(a) e = Exp(a) f = Sub(a, b)\n"
        "  g = Sub(c, d) h = Sub(e, f) k = Sub(g, h) l = Add(a, b) m = Add(c, d) n = Add(e, k)\n"
        "  o = Add(l, m) p = Add(n, o) y = ReduceSum(p) }",
        NULL);
    const struct cm_datum *x = FLOATS(arena, 1);
    struct cm_datum out = {0};
    struct cm_error err = {0};
    CHECK_FAILS(cm_session_run(session, &x, 1, &out, 1, NULL, &err), CM_LIMIT, &err, "too large");
}

void test_session__sums_of_sizes_past_any_memory_are_refused(void)
{
    check_in_arena(huge_sums);
}

/* ---- random numbers ---- */

static const char dropping[] =
    GRAPH_HEAD "main (float[N] x, bool t) => (float[N] y) <float half = {0.5}> {\n"
               "  y = Dropout(x, half, t) }";

static void draw(struct cm_arena *arena, struct cm_session *session, float *to)
{
    const struct cm_datum *in[] = {exec_ramp(arena, &CM_SHAPE(64), 1), graph_bool(arena, true)};
    struct cm_datum out = {.kind = CM_KIND_TENSOR,
                           .tensor = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(64), to)};
    struct cm_error err = {0};
    CHECK_OK(cm_session_run(session, in, 2, &out, 1, NULL, &err), &err);
}

static void streams(struct cm_arena *arena)
{
    const struct cm_session_options seven = {.seed = 7}, eight = {.seed = 8};
    struct cm_session *a = exec_of(arena, dropping, &seven);
    struct cm_session *b = exec_of(arena, dropping, &seven);
    struct cm_session *c = exec_of(arena, dropping, &eight);
    float drawn[3][3][64];
    for (int run = 0; run < 3; run++) {
        draw(arena, a, drawn[0][run]);
        /* A run that fails draws nothing. */
        struct cm_datum out = {0};
        CHECK(cm_session_run(b, INPUTS(NULL, NULL), 2, &out, 1, NULL, NULL) == CM_BAD_ARGUMENT);
        draw(arena, b, drawn[1][run]);
        draw(arena, c, drawn[2][run]);
    }
    CHECK(memcmp(drawn[0], drawn[1], sizeof drawn[0]) == 0);
    CHECK(memcmp(drawn[0][0], drawn[0][1], sizeof drawn[0][0]) != 0);
    CHECK(memcmp(drawn[0][0], drawn[2][0], sizeof drawn[0][0]) != 0);
}

void test_session__random_numbers_go_on_from_run_to_run_and_follow_the_seed(void)
{
    check_in_arena(streams);
}

struct second {
    struct cm_arena *arena;
    struct cm_session *session;
    float *to;
};

static void run_inside(void *arg, const struct cm_step_report *report)
{
    const struct second *second = arg;
    (void)report;
    draw(second->arena, second->session, second->to);
}

static void draw_at_once(struct cm_arena *arena)
{
    struct cm_session *session = exec_of(arena, dropping, NULL);
    const struct cm_datum *in[] = {exec_ramp(arena, &CM_SHAPE(64), 1), graph_bool(arena, true)};
    float drawn[2][64];
    struct second second = {arena, session, drawn[1]};
    const struct cm_run_options options = {.step = run_inside, .step_arg = &second};
    struct cm_datum out = {.kind = CM_KIND_TENSOR,
                           .tensor = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(64), drawn[0])};
    struct cm_error err = {0};
    CHECK_OK(cm_session_run(session, in, 2, &out, 1, &options, &err), &err);
    CHECK(memcmp(drawn[0], drawn[1], sizeof drawn[0]) != 0);
}

void test_session__a_run_inside_a_run_draws_numbers_of_its_own(void)
{
    check_in_arena(draw_at_once);
}

/* ---- reports ---- */

static void steps(void *arg, const struct cm_step_report *report)
{
    struct {
        size_t count, deepest;
    } *seen = arg;
    seen->count++;
    seen->deepest = report->depth > (int)seen->deepest ? (size_t)report->depth : seen->deepest;
    CHECK(report->end_ns >= report->begin_ns && report->kernel && report->declined);
}

static void reports(struct cm_arena *arena)
{
    struct cm_session *session = exec_of(arena, body, NULL);
    const struct cm_datum *in[] = {exec_ramp(arena, &CM_SHAPE(5), 0), graph_int(arena, 3)};
    struct {
        size_t count, deepest;
    } seen = {0};
    const struct cm_run_options options = {.step = steps, .step_arg = &seen};
    struct cm_datum out = {0};
    struct cm_error err = {0};
    CHECK_OK(cm_session_run(session, in, 2, &out, 1, &options, &err), &err);
    cm_datum_drop(&out);
    CHECK_INT(seen.deepest, 1);
    CHECK_INT(seen.count, 1 + 3 * 4); /* go, a, b, t in each iteration, then the loop */
}

void test_session__steps_are_reported_bodies_before_their_owner(void)
{
    check_in_arena(reports);
}

/* ---- what is held ---- */

enum { MOST_STEPS = 8 };

struct curve {
    size_t live[MOST_STEPS], count;
};

static void note_live(void *arg, const struct cm_step_report *report)
{
    struct curve *curve = arg;
    if (curve->count < MOST_STEPS)
        curve->live[curve->count++] = report->live_bytes;
}

static void live(struct cm_arena *arena)
{
    const struct cm_session_options options = {.backend = "reference", .threads = 1};
    struct cm_session *session = exec_of(
        arena,
        GRAPH_HEAD "main (float[16,16] x) => (float[16] y) <int64[1] last = {1}> {\n"
                   "  a = Concat <axis = 0> (x, x) b = Concat <axis = 0> (a, a)\n"
                   "  c = ReduceSum <keepdims = 0> (b, last) d, e = Split <num_outputs = 2> (c)\n"
                   "  f = Concat <axis = 0> (e, d) p, q, r, s = Split <num_outputs = 4> (f)\n"
                   "  y = Sum(p, q, r, s) }",
        &options);
    struct curve curve = {0};
    const struct cm_run_options run = {.step = note_live, .step_arg = &curve};
    const struct cm_datum *x = exec_ramp(arena, &CM_SHAPE(16, 16), 0);
    float room[16];
    struct cm_datum out = {.kind = CM_KIND_TENSOR,
                           .tensor = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(16), room)};
    struct cm_error err = {0};
    CHECK_OK(cm_session_run(session, &x, 1, &out, 1, &run, &err), &err);
    CHECK_INT(curve.count, 5);                /* parts are views */
    CHECK_INT(curve.live[0], 2 * 1024);       /* a */
    CHECK_INT(curve.live[1], (2 + 4) * 1024); /* a and b */
    CHECK(curve.live[2] >= 4 * 1024 + 256);   /* b and c, and what the kernel works with */
    CHECK(curve.live[3] < 1024);              /* c and f: a and b are gone */
}

void test_session__each_step_tells_the_bytes_that_are_in_use(void)
{
    check_in_arena(live);
}

/* Of an input, of a constant and of what a step made; some are written over, some are cut again. */
static void stretches(struct cm_arena *arena)
{
    const char *text = GRAPH_HEAD
        "main (float[1,6,2] x) => (float[1,3,2] y, float[1,2,2] z, float[1,1,2] u)\n"
        "<float[1,6,2] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, int64[1] one = {1},\n"
        " int64[1] three = {3}, int64[1] four = {4}, int64[1] five = {5}> {\n"
        "  a, b = Split <axis = 1, num_outputs = 2> (x) v = Slice(w, three, five, one)\n"
        "  n = Neg(x) c, d = Split <axis = 1, num_outputs = 2> (n)\n"
        "  e = Floor(d) y = Sum(a, b, c, e) m = Slice(n, one, five, one)\n"
        "  k = Slice(m, one, three, one) l = Abs(k) z = Mul(l, v) u = Slice(l, one, four, one) }";
    const struct cm_session_options options = {.backend = "reference", .threads = 1};
    struct cm_session *session = exec_of(arena, text, &options);
    const struct cm_datum *x = exec_ramp(arena, &CM_SHAPE(1, 6, 2), -2);
    struct curve curve = {0};
    const struct cm_run_options run = {.step = note_live, .step_arg = &curve};
    struct cm_error err = {0};
    struct cm_datum out[3] = {0};
    CHECK_OK(cm_session_run(session, &x, 1, out, 3, &run, &err), &err);
    CHECK_INT(curve.count, 6); /* Neg, Floor, Sum, Abs, Mul and the Slice that is a result */
    const float *from = x->tensor.data;
    for (int i = 0; i < 6; i++)
        CHECK(fabsf(((float *)out[0].tensor.data)[i] - from[i + 6] - floorf(-from[i + 6])) < 1e-5F);
    for (int i = 0; i < 4; i++)
        CHECK(((float *)out[1].tensor.data)[i] == fabsf(from[i + 4]) * (float)(i + 7));
    for (int i = 0; i < 2; i++)
        CHECK(((float *)out[2].tensor.data)[i] == fabsf(from[i + 6]));
    for (int i = 0; i < 3; i++)
        cm_datum_drop(&out[i]);
}

void test_session__stretches_of_a_tensor_are_views(void)
{
    check_in_arena(stretches);
}

static void characters(struct cm_arena *arena)
{
    const struct cm_session_options options = {.memory_limit = 100000};
    struct cm_session *session = exec_of(
        arena,
        GRAPH_HEAD "main (string[1] s, int64 n) => (string[N] y) {\n"
                   "  y = Loop (n, , s) <body = step (int64 i, bool c, string[K] v)\n"
                   "      => (bool go, string[K] w) { go = Identity(c) w = StringConcat(v, v) }> }",
        &options);
    struct cm_str text = CM_STR("0123456789");
    const struct cm_datum s = {.kind = CM_KIND_TENSOR,
                               .tensor = cm_tensor_borrow(CM_STRING, &CM_SHAPE(1), &text)};
    struct cm_datum out = {0};
    struct cm_error err = {0};
    CHECK_FAILS(cm_session_run(session, INPUTS(&s, graph_int(arena, 30)), 2, &out, 1, NULL, &err),
                CM_LIMIT, &err, "(StringConcat): ");
    CHECK(strstr(err.text, "memory limit of 100000"));
    CHECK_OK(cm_session_run(session, INPUTS(&s, graph_int(arena, 3)), 2, &out, 1, NULL, &err),
             &err);
    CHECK_INT(((const struct cm_str *)out.tensor.data)->size, 80);
    cm_datum_drop(&out);
}

void test_session__characters_of_strings_count_as_memory(void)
{
    check_in_arena(characters);
}

/* Ends with the limit, and runs when it has less to do. */
static void check_limited(struct cm_arena *arena, const char *text, size_t memory_limit,
                          int64_t most, int64_t few)
{
    const struct cm_session_options options = {.memory_limit = memory_limit};
    struct cm_session *session = exec_of(arena, text, &options);
    const struct cm_datum *x = exec_ramp(arena, &CM_SHAPE(2), 1);
    struct cm_datum out = {0};
    struct cm_error err = {0};
    CHECK_FAILS(cm_session_run(session, INPUTS(x, graph_int(arena, most)), 2, &out, 1, NULL, &err),
                CM_LIMIT, &err, "memory limit of");
    CHECK_OK(cm_session_run(session, INPUTS(x, graph_int(arena, few)), 2, &out, 1, NULL, &err),
             &err);
    cm_datum_drop(&out);
}

static void grown_sequence(struct cm_arena *arena)
{
    check_limited(arena,
                  GRAPH_HEAD
                  "main (float[2] x, int64 n) => (seq(int64[a,b]) y) {\n"
                  "  h = NonZero(x) e = SequenceConstruct(h)\n"
                  "  y = Loop (n, , e) <body = step (int64 i, bool c, seq(int64[a,b]) s)\n"
                  "      => (bool go, seq(int64[a,b]) t) {\n"
                  "        go = Identity(c) t = SequenceInsert(s, h) }> }",
                  1000000, 3000, 30);
}

void test_session__the_items_of_sequences_count_as_memory(void)
{
    check_in_arena(grown_sequence);
}

/* The slices are all the same bytes, so that what they are kept in is what counts. */
static void kept_slices(struct cm_arena *arena)
{
    check_limited(arena,
                  GRAPH_HEAD
                  "main (float[2] x, int64 n) => (float[N,2] y) <bool g = {1}> {\n"
                  "  y = Loop (n, g) <body = step (int64 i, bool c)\n"
                  "      => (bool go, float[2] t) { go = Identity(c) t = Identity(x) }> }",
                  200000, 1000, 10);
}

void test_session__what_slices_are_kept_in_counts_as_memory(void)
{
    check_in_arena(kept_slices);
}

/* 17000 numbers have 68000 bytes; the pool gives them 131072. */
static void rounded(struct cm_arena *arena)
{
    check_limited(arena,
                  GRAPH_HEAD
                  "main (float[2] x, int64 n) => (int64[N] y) <int64 a = {0}, int64 d = {1}>"
                  " { y = Range(a, n, d) }",
                  100000, 17000 / 2, 8000);
}

void test_session__what_a_buffer_really_takes_counts_as_memory(void)
{
    check_in_arena(rounded);
}

static void make_much(void *arg, const struct cm_step_report *report)
{
    struct cm_tensor *made = arg;
    struct cm_error err = {0};
    (void)report;
    cm_tensor_drop(made);
    CHECK_OK(cm_tensor_new(CM_FLOAT, &CM_SHAPE(100000), made, &err), &err);
}

static void callbacks_own(struct cm_arena *arena)
{
    const struct cm_session_options options = {.memory_limit = 20000};
    struct cm_session *session = open_chain(arena, &options);
    const struct cm_datum *in[] = {exec_ramp(arena, &CM_SHAPE(20, 4), 0),
                                   exec_ramp(arena, &CM_SHAPE(4), 0)};
    struct cm_tensor made = {0};
    const struct cm_run_options run = {.step = make_much, .step_arg = &made};
    struct cm_datum out[3] = {0};
    struct cm_error err = {0};
    CHECK_OK(cm_session_run(session, in, 2, out, 3, &run, &err), &err);
    CHECK(made.data != NULL);
    cm_tensor_drop(&made);
    for (int o = 0; o < 3; o++)
        cm_datum_drop(&out[o]);
}

void test_session__what_a_callback_makes_is_not_the_runs(void)
{
    check_in_arena(callbacks_own);
}

/* Memory that held something before: a packed result must not show it behind its last element. */
static void packed_result(struct cm_arena *arena)
{
    struct cm_session *session = exec_of(
        arena, GRAPH_HEAD "main (float[3] x) => (int4[3] y) { y = Cast <to = 22> (x) }", NULL);
    const struct cm_datum *x = FLOATS(arena, 1, 2, 3);
    uint8_t room[2] = {0xff, 0xff};
    struct cm_error err = {0};
    struct cm_datum out = {.kind = CM_KIND_TENSOR,
                           .tensor = cm_tensor_borrow(CM_INT4, &CM_SHAPE(3), room)};
    CHECK_OK(cm_session_run(session, &x, 1, &out, 1, NULL, &err), &err);
    CHECK_INT(room[0], 0x21);
    CHECK_INT(room[1], 0x03);
    cm_datum_drop(&out);
}

void test_session__bits_behind_the_last_packed_element_are_zero(void)
{
    check_in_arena(packed_result);
}
