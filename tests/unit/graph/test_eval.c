/* Running graphs without an executor: inputs, defaults, loops, limits, what is missing. */
// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "graph_case.h"

static void inputs(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_of(arena,
                                      GRAPH_HEAD "main (float[2] x, float[2] w) => (float[2] y)\n"
                                                 "<float[2] w = {10, 20}> { y = Add(x, w) }",
                                      NULL);
    const struct cm_datum *x = FLOATS(arena, 1, 2);
    struct cm_datum out = {0};
    struct cm_error err = {0};

    CHECK_GIVES(arena, graph, INPUTS(x, NULL), 11, 22);
    CHECK_GIVES(arena, graph, INPUTS(x, FLOATS(arena, 5, 5)), 6, 7);
    CHECK_FAILS(cm_graph_eval(graph, INPUTS(NULL, NULL), 2, &out, NULL, &err), CM_BAD_ARGUMENT,
                &err, "input 'x' is missing");
    CHECK_INT(out.kind, CM_KIND_NONE);
}

void test_eval__an_input_may_have_a_default_and_must_have_a_value(void)
{
    check_in_arena(inputs);
}

static void handed_through(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_of(
        arena, GRAPH_HEAD "main (float[2] x) => (float[2] x, float[2] w) <float[2] w = {3, 4}> {}",
        NULL);

    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, 2)), 1, 2);
    const cm_value w = graph->outputs[1].value;
    cm_graph_set_outputs(graph, &w, 1);
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, 2)), 3, 4);
}

void test_eval__inputs_and_initializers_may_be_outputs(void)
{
    check_in_arena(handed_through);
}

/* Sums x as often as count says, by a loop whose body reads x from outside. */
static const char looping[] =
    GRAPH_HEAD "main (float[2] x, int64 count) => (float[2] y) {\n"
               "  zero = Sub(x, x)\n"
               "  y = Loop (count, , zero) <body = step (int64 i, bool c, float[2] sum)\n"
               "      => (bool go, float[2] more) { go = Identity(c) more = Add(sum, x) }>\n"
               "}";

static void loops(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_of(arena, looping, NULL);

    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, -2), graph_int(arena, 5)), 5, -10);
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, -2), graph_int(arena, 0)), 0, 0);
}

void test_eval__loops_run_as_often_as_they_are_told(void)
{
    check_in_arena(loops);
}

static void limits(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_of(arena, looping, NULL);
    const struct cm_eval_options options = {.step_limit = 1000};
    struct cm_datum out = {0};
    struct cm_error err = {0};

    CHECK_FAILS(cm_graph_eval(graph, INPUTS(FLOATS(arena, 1, -2), graph_int(arena, INT64_MAX)), 2,
                              &out, &options, &err),
                CM_LIMIT, &err, "more than 1000 nodes were run");
    graph_check(arena, graph, INPUTS(FLOATS(arena, 1, -2), graph_int(arena, 100)), &options,
                (const float[]){100, -200}, 2);
}

void test_eval__an_endless_loop_ends_at_the_step_limit(void)
{
    check_in_arena(limits);
}

static void unknown_shapes(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_of(
        arena, GRAPH_HEAD "main (float[N] x, float[] w) => (float[] y) { y = Mul(x, w) }", NULL);

    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, 2), FLOATS(arena, 3)), 3, 6);
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, 2, 3), FLOATS(arena, 3, 2, 1)), 3, 4, 3);
    struct cm_datum out = {0};
    struct cm_error err = {0};
    CHECK_FAILS(cm_graph_eval(graph, INPUTS(FLOATS(arena, 1, 2, 3), FLOATS(arena, 1, 2)), 2, &out,
                              NULL, &err),
                CM_BAD_MODEL, &err, "Mul");
}

void test_eval__shapes_unknown_before_are_found_while_running(void)
{
    check_in_arena(unknown_shapes);
}

static void one_node(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_new(arena);
    const cm_value x = cm_graph_add_input(graph, CM_STR("x"), graph_float_type(arena, 2));
    const cm_value y = GRAPH_ADD(graph, "Relu", x);
    struct cm_datum out = {0};
    struct cm_error err = {0};

    CHECK_OK(
        cm_op_eval(cm_value_get(graph->module, y)->node, INPUTS(FLOATS(arena, -1, 2)), &out, &err),
        &err);
    CHECK(cm_tensor_real(&out.tensor, 0) == 0 && cm_tensor_real(&out.tensor, 1) == 2);
    cm_datum_drop(&out);
}

void test_eval__one_node_runs_alone(void)
{
    check_in_arena(one_node);
}

static void seeds(struct cm_arena *arena)
{
    struct cm_graph *graph =
        graph_of(arena,
                 GRAPH_HEAD "main (float[64] x, float r, bool t) => (float[64] y)\n"
                            "{ y = Dropout(x, r, t) }",
                 NULL);
    float ones[64], half = 0.5F;
    for (size_t i = 0; i < 64; i++)
        ones[i] = 1;
    struct cm_datum *ratio = graph_floats(arena, 1, &half);
    ratio->tensor.shape = CM_SCALAR;
    const struct cm_datum *const in[] = {graph_floats(arena, 64, ones), ratio,
                                         graph_bool(arena, true)};
    struct cm_datum a = {0}, b = {0}, c = {0};
    struct cm_error err = {0};

    CHECK_OK(cm_graph_eval(graph, in, 3, &a, &(struct cm_eval_options){.seed = 1}, &err), &err);
    CHECK_OK(cm_graph_eval(graph, in, 3, &b, &(struct cm_eval_options){.seed = 1}, &err), &err);
    CHECK_OK(cm_graph_eval(graph, in, 3, &c, &(struct cm_eval_options){.seed = 2}, &err), &err);
    CHECK(memcmp(a.tensor.data, b.tensor.data, sizeof ones) == 0);
    CHECK(memcmp(a.tensor.data, c.tensor.data, sizeof ones) != 0);
    cm_datum_drop(&a);
    cm_datum_drop(&b);
    cm_datum_drop(&c);
}

void test_eval__the_same_seed_gives_the_same_bits(void)
{
    check_in_arena(seeds);
}

/* ---- memory ---- */

/* Every kernel that runs a body, with every allocation failing in turn: what kernels hold while a
 * body runs must not be lost. */
static const char bodies[] = GRAPH_HEAD
    "main (float[N] x, int64 n) => (float[M] z) <float zero = {0}> {\n"
    "  y, all = Loop (n, , x) <body = step (int64 i, bool c, float[] s)\n"
    "      => (bool go, float[] t, float[] u) {\n"
    "    go = Identity(c) u = Add(x, x) sum = ReduceSum <keepdims = 0> (s)\n"
    "    more = Greater(sum, zero)\n"
    "    t = If (more) <then_branch = yes () => (float[] p) { p = Concat <axis = 0> (s, x) },\n"
    "        else_branch = no () => (float[] q) { q = Neg(s) }> }>\n"
    "  e, parts = Scan (x, all) <num_scan_inputs = 1, body = one (float[] v, float[] w)\n"
    "      => (float[] f, float[] g) { f = Add(v, w) g = Mul(v, w) }>\n"
    "  l = SequenceConstruct(y, e)\n"
    "  m = SequenceMap (l) <body = each (float[] h) => (float[] k) { k = Neg(h) }>\n"
    "  z = ConcatFromSequence <axis = 0> (m) }";

struct trial {
    uint64_t fail_at;
    size_t memory_limit;
    struct cm_datum out;
    struct cm_error err;
};

static enum cm_status eval_failing(struct cm_guard *guard, void *arg)
{
    struct trial *trial = arg;
    struct cm_arena arena;
    cm_arena_init(&arena, guard);
    struct cm_graph *graph = graph_of(&arena, bodies, NULL);
    const struct cm_datum *in[] = {FLOATS(&arena, 1, 2), graph_int(&arena, 2)};
    cm_memory_fail_after(trial->fail_at);
    const enum cm_status status = cm_graph_eval(
        graph, in, 2, &trial->out, &(struct cm_eval_options){.memory_limit = 100000}, &trial->err);
    cm_memory_fail_after(0);
    cm_arena_release(&arena);
    return status;
}

static uint64_t fail_in_turn(size_t memory_limit)
{
    struct trial trial = {.memory_limit = memory_limit};
    enum cm_status status = CM_NO_MEMORY;
    for (trial.fail_at = 1; status; trial.fail_at++) {
        status = cm_guarded(0, &trial.err, eval_failing, &trial);
        cm_memory_fail_after(0);
        if (status)
            CHECK_INT(status, CM_NO_MEMORY);
        CHECK(status ? !trial.out.tensor.data : cm_tensor_count(&trial.out.tensor) == 8);
        cm_datum_drop(&trial.out);
        CHECK(trial.fail_at < 5000);
    }
    return trial.fail_at;
}

void test_oom__the_interpreter_loses_nothing_of_bodies(void)
{
    struct cm_tensor tensor;
    struct cm_error err = {0};
    CHECK(fail_in_turn(0) > 20);
    CHECK(fail_in_turn(100000) > 20);
    /* The thread makes buffers as before. */
    CHECK_OK(cm_tensor_new(CM_FLOAT, &CM_SHAPE(1 << 20), &tensor, &err), &err);
    cm_tensor_drop(&tensor);
}

static void make_much(void *arg, const struct cm_eval_report *report)
{
    struct cm_tensor *made = arg;
    struct cm_error err = {0};
    (void)report;
    cm_tensor_drop(made);
    CHECK_OK(cm_tensor_new(CM_FLOAT, &CM_SHAPE(100000), made, &err), &err);
}

static void callbacks_own(struct cm_arena *arena)
{
    struct cm_graph *graph =
        graph_of(arena, GRAPH_HEAD "main (float[2] x) => (float[2] y) { y = Neg(x) }", NULL);
    struct cm_tensor made = {0};
    const struct cm_eval_options options = {
        .memory_limit = 20000, .step = make_much, .step_arg = &made};
    graph_check(arena, graph, INPUTS(FLOATS(arena, 1, 2)), &options, (const float[]){-1, -2}, 2);
    CHECK(made.data != NULL);
    cm_tensor_drop(&made);
}

void test_eval__what_a_callback_makes_is_not_the_evaluations(void)
{
    check_in_arena(callbacks_own);
}
