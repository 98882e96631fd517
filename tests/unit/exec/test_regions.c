/* Regions in the executor: as one step where a kernel takes them, else as the steps of their body,
 * with the memory these would have had alone. */
// SPDX-License-Identifier: Apache-2.0
#include "exec/program.h"
#include "exec_case.h"
#include "graph/clone.h"
#include "graph/op.h"

enum { MOST = 16 };

/* Puts all nodes of the graph but the first `before` into one region; what these gave and the
 * graph's inputs are its operands. */
static void wrap(struct cm_graph *graph, size_t before, const char *op)
{
    struct cm_module *module = graph->module;
    struct cm_error err = {0};
    struct cm_graph *body = cm_graph_new(module, NULL, CM_STR("group"));
    struct cm_builder inside = {.graph = body, .err = &err};
    struct cm_builder build = {.graph = graph, .err = &err};
    struct cm_clone clone;
    cm_value operands[MOST], results[MOST], outputs[MOST];
    size_t n_operands = 0;
    struct cm_node *node = graph->first;

    for (size_t i = 0; i < graph->n_inputs; i++)
        operands[n_operands++] = graph->inputs[i];
    for (size_t i = 0; i < before; i++, node = node->next)
        operands[n_operands++] = node->outputs[0];
    cm_clone_init(&clone, module);
    for (size_t i = 0; i < n_operands; i++) {
        const struct cm_type *type = cm_value_get(module, operands[i])->fact.type;
        cm_clone_map(&clone, operands[i], cm_graph_add_input(body, CM_STR_NONE, type));
    }
    for (; node; node = node->next)
        CHECK_OK(cm_clone_node(&clone, &inside, node), &err);
    for (size_t o = 0; o < graph->n_outputs; o++)
        outputs[o] = cm_clone_of(&clone, graph->outputs[o].value);
    cm_graph_set_outputs(body, outputs, graph->n_outputs);
    cm_build(&build, &(struct cm_emission){.op = op,
                                           .inputs = operands,
                                           .n_inputs = n_operands,
                                           .body_graphs = &body,
                                           .body_names = (const char *const[]){"body"},
                                           .n_bodies = 1,
                                           .n_outputs = graph->n_outputs,
                                           .outputs = results});
    CHECK_OK(build.status, &err);
    cm_graph_set_outputs(graph, results, graph->n_outputs);
    while (graph->n_nodes > before + 1)
        cm_graph_remove_node(graph->last->prev);
}

static struct cm_session *open_wrapped(struct cm_arena *arena, const char *text, const char *op,
                                       const struct cm_session_options *options)
{
    struct cm_graph *graph = graph_of(arena, text, NULL);
    wrap(graph, 0, op);
    return exec_open(arena, graph, options);
}

static const char several[] =
    GRAPH_HEAD "main (float[N,M] x, float[M] row) => (float[N,M] y, float[N,M] z)\n"
               "<float half = {0.5}> {\n"
               "  a = Mul(x, half) b = Add(a, row) y = Relu(b) c = Neg(a) z = Sub(c, y) }";

static const struct cm_session_options reference = {.backend = "reference", .threads = 1};

static void same_results(struct cm_arena *arena)
{
    const struct cm_session_options any = {.threads = 1};
    const struct cm_datum *x = exec_ramp(arena, &CM_SHAPE(3, 5), -2);
    const struct cm_datum *row = exec_ramp(arena, &CM_SHAPE(5), -0.5);
    struct cm_session *sessions[] = {
        exec_of(arena, several, &reference),
        open_wrapped(arena, several, "ai.cameo::ElementwiseRegion", &reference),
        open_wrapped(arena, several, "ai.cameo::ElementwiseRegion", &any),
    };
    struct cm_datum out[3][2] = {0};
    struct cm_error err = {0};
    for (int s = 0; s < 3; s++)
        CHECK_OK(cm_session_run(sessions[s], INPUTS(x, row), 2, out[s], 2, NULL, &err), &err);
    for (int s = 1; s < 3; s++)
        for (int o = 0; o < 2; o++)
            CHECK(exec_same(&out[0][o], &out[s][o]));
    for (int s = 0; s < 3; s++)
        for (int o = 0; o < 2; o++)
            cm_datum_drop(&out[s][o]);
}

void test_regions__give_what_their_bodies_give(void)
{
    check_in_arena(same_results);
}

struct seen {
    size_t regions, others;
};

static void count_steps(void *arg, const struct cm_step_report *report)
{
    struct seen *seen = arg;
    *(report->node->op->effects & CM_REGION ? &seen->regions : &seen->others) += 1;
}

/* A run that asks for it sees every node, with the same results. */
static void apart(struct cm_arena *arena)
{
    const struct cm_session_options any = {.threads = 1};
    const struct cm_datum *x = exec_ramp(arena, &CM_SHAPE(2, 2), -1);
    const struct cm_datum *row = exec_ramp(arena, &CM_SHAPE(2), 0);
    struct cm_session *session = open_wrapped(arena, several, "ai.cameo::ElementwiseRegion", &any);
    struct cm_datum out[3][2] = {0};
    struct cm_error err = {0};
    for (int i = 0; i < 3; i++) {
        struct seen seen = {0};
        const struct cm_run_options options = {
            .step = count_steps, .step_arg = &seen, .apart = i == 1};
        CHECK_OK(cm_session_run(session, INPUTS(x, row), 2, out[i], 2, &options, &err), &err);
        if (i == 1)
            CHECK_INT(seen.regions, 0);
        CHECK_INT(seen.others, seen.regions ? 0 : 5);
        CHECK(exec_same(&out[0][0], &out[i][0]) && exec_same(&out[0][1], &out[i][1]));
    }
    for (int i = 0; i < 3; i++)
        for (int o = 0; o < 2; o++)
            cm_datum_drop(&out[i][o]);
}

void test_regions__can_be_run_node_by_node(void)
{
    check_in_arena(apart);
}

/* Views, overwriting and the reuse of memory work as if there were no region. */
static void same_memory(struct cm_arena *arena)
{
    static const char text[] =
        GRAPH_HEAD "main (float[N] x) => (float[N] y) {\n"
                   "  a = Neg(x) b = Exp(a) c = Mul(b, b) d = Sqrt(c) e = Sub(d, x) y = Abs(e) }";
    const struct cm_datum *x = exec_ramp(arena, &CM_SHAPE(4096), 1);
    struct cm_session_memory alone, wrapped;
    struct cm_error err = {0};
    struct cm_session *session = exec_of(arena, text, &reference);
    CHECK_OK(cm_session_measure(session, INPUTS(x), 1, NULL, &alone, &err), &err);
    session = open_wrapped(arena, text, "ai.cameo::ElementwiseRegion", &reference);
    CHECK_INT(session->main->n_steps, 1);
    CHECK_OK(cm_session_measure(session, INPUTS(x), 1, NULL, &wrapped, &err), &err);
    CHECK_INT(wrapped.block, alone.block);
    CHECK_INT(wrapped.late, alone.late);
}

void test_regions__declined_they_take_the_memory_of_their_body(void)
{
    check_in_arena(same_memory);
}

/* The shape of what NonZero gives is known when it has run: every part waits for itself. */
static void late(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_of(arena,
                                      GRAPH_HEAD "main (float[N] x) => (int64[A,B] y) {\n"
                                                 "  n = NonZero(x) a = Add(n, n) y = Mul(a, n) }",
                                      NULL);
    wrap(graph, 1, "ai.cameo::ElementwiseRegion");
    const struct cm_datum *x = FLOATS(arena, 0, 3, 0, 5);
    CHECK_RUNS(exec_open(arena, graph, NULL), INPUTS(x), 1, 2, 18);
}

void test_regions__operands_of_unknown_shape_are_waited_for(void)
{
    check_in_arena(late);
}

static void products(struct cm_arena *arena)
{
    static const char text[] =
        GRAPH_HEAD "main (float[2,3] a, float[3,2] b, float[2] c) => (float[2,2] y) {\n"
                   "  p = MatMul(a, b) s = Add(p, c) y = Relu(s) }";
    const struct cm_datum *a = exec_ramp(arena, &CM_SHAPE(2, 3), -1);
    const struct cm_datum *b = exec_ramp(arena, &CM_SHAPE(3, 2), 0);
    const struct cm_datum *c = FLOATS(arena, -0.25, 0.5);
    const struct cm_session_options any = {.threads = 1};
    const struct cm_session_options *const options[] = {&reference, &any};
    for (int i = 0; i < 2; i++)
        CHECK_RUNS(open_wrapped(arena, text, "ai.cameo::ProductRegion", options[i]),
                   INPUTS(a, b, c), 1, 0, 0, 0, 0.75);
}

void test_regions__products_run_too(void)
{
    check_in_arena(products);
}

/* A region of a product whose right operand lies transposed: rows for our kernel and for oneDNN's.
 */
static void turned(struct cm_arena *arena)
{
    static const char text[] =
        GRAPH_HEAD "main (float[2,1,3] a, float[2,3] w, float[2] c) => (float[2,1,2] y) {\n"
                   "  t = Transpose <perm = [1, 0]> (w) p = MatMul(a, t) s = Add(p, c) "
                   "y = Relu(s) }";
    const struct cm_datum *a = exec_ramp(arena, &CM_SHAPE(2, 1, 3), -1);
    const struct cm_datum *w = exec_ramp(arena, &CM_SHAPE(2, 3), 0);
    const struct cm_datum *c = FLOATS(arena, 0.25, 3);
    const struct cm_session_options any = {.threads = 1};
    const struct cm_session_options *const options[] = {&reference, &any};
    for (int i = 0; i < 2; i++)
        CHECK_RUNS(open_wrapped(arena, text, "ai.cameo::ProductRegion", options[i]),
                   INPUTS(a, w, c), 1, 0, 0.875, 0.375, 3.125);
}

void test_regions__products_read_a_matrix_that_lies_transposed(void)
{
    check_in_arena(turned);
}
