/* Regions: a grouped graph computes the same, bit by bit, and inlined again too. */
// SPDX-License-Identifier: Apache-2.0
#include "autodiff/gradient_nodes.h"
#include "exec/exec_case.h"
#include "exec/random_graph.h"
#include "graph/graph_case.h"
#include "lower/lower.h"
#include "region_case.h"

/* ---- the same results ---- */

enum { MOST = 8 };

static bool pick_region(const struct cm_node *node, void *arg)
{
    (void)arg;
    return region_is(node);
}

static size_t count_regions(const struct cm_graph *graph)
{
    size_t count = 0;
    for (const struct cm_node *node = graph->first; node; node = node->next) {
        count += region_is(node);
        for (size_t i = 0; i < node->n_bodies; i++)
            count += count_regions(node->bodies[i].graph);
    }
    return count;
}

struct judged {
    const char *text;
    const struct cm_datum *in[12];
    struct cm_datum expected[MOST];
    enum cm_status status;
};

static void check_same(struct cm_graph *graph, const struct judged *j, const char *what)
{
    struct cm_datum out[MOST] = {0};
    struct cm_error err = {0};
    const enum cm_status status = cm_graph_eval(graph, j->in, graph->n_inputs, out, NULL, &err);
    if (!status != !j->status)
        fail_msg("%s: %s, expected %s: %s\n%s", what, cm_status_name(status),
                 cm_status_name(j->status), err.text, j->text);
    for (size_t o = 0; o < graph->n_outputs && !status; o++) {
        if (!exec_same(&out[o], &j->expected[o]))
            fail_msg("%s: output %zu differs\n%s", what, o, j->text);
        cm_datum_drop(&out[o]);
    }
}

/* The graph with regions, with them made again, and with them inlined, on j->in. */
static size_t judge(struct cm_graph *graph, struct judged *j)
{
    static char once[1 << 16], twice[1 << 16];
    struct cm_error err = {0};

    j->status = cm_graph_eval(graph, j->in, graph->n_inputs, j->expected, NULL, &err);
    region_fuse(graph);
    const size_t regions = count_regions(graph);
    check_same(graph, j, "with regions");
    once[0] = twice[0] = '\0';
    region_put_nodes(once, sizeof once, graph);
    region_fuse(graph);
    region_put_nodes(twice, sizeof twice, graph);
    CHECK_STRING(twice, once);
    CHECK_OK(cm_graph_inline_all(graph, pick_region, NULL, &err), &err);
    CHECK_INT(count_regions(graph), 0);
    check_same(graph, j, "inlined again");
    return regions;
}

static void forget(struct judged *j, size_t n_outputs)
{
    for (size_t o = 0; o < n_outputs && !j->status; o++)
        cm_datum_drop(&j->expected[o]);
}

static uint64_t seed;
static size_t regions_seen;

static void free_session(void *session)
{
    cm_session_free(session);
}

/* The executor, which compiles bodies its own way. Other passes might round differently. */
static void execute(struct cm_arena *arena, struct cm_graph *graph, const struct judged *j)
{
    const struct cm_session_options options = {.threads = 1};
    struct cm_datum out[MOST] = {0};
    const struct cm_lower_options lower = {.passes.only = "regions"};
    struct cm_session *session;
    struct cm_error err = {0};
    CHECK_OK(cm_lower_graph(graph, &lower, &err), &err);
    CHECK_OK(cm_session_new(graph, &options, &session, &err), &err);
    cm_arena_defer(arena, free_session, session);
    CHECK_OK(cm_session_run(session, j->in, graph->n_inputs, out, graph->n_outputs, NULL, &err),
             &err);
    for (size_t o = 0; o < graph->n_outputs; o++) {
        if (!exec_same(&out[o], &j->expected[o]))
            fail_msg("executed: output %zu differs\n%s", o, j->text);
        cm_datum_drop(&out[o]);
    }
}

static void random_model(struct cm_arena *arena)
{
    static struct random_graph made;
    struct judged j = {.text = made.text};
    random_graph_make(&made, seed);
    struct cm_graph *graph = random_graph_import(arena, &made);
    const int64_t a = 1 + (int64_t)(seed % 3), b = 1 + (int64_t)(seed % 4);
    j.in[0] = exec_ramp(arena, &CM_SHAPE(a, b), -1);
    j.in[1] = exec_ramp(arena, &CM_SHAPE(a, b), -0.5);
    j.in[2] = exec_ramp(arena, &CM_SHAPE(b), 0.25);
    j.in[3] = graph_int(arena, (int64_t)(seed % 4));
    regions_seen += judge(graph, &j);
    if (!j.status)
        execute(arena, random_graph_import(arena, &made), &j);
    forget(&j, graph->n_outputs);
}

void test_regions__random_models_give_the_same_bits(void)
{
    regions_seen = 0;
    for (seed = 1; seed <= 600; seed++)
        check_in_arena(random_model);
    CHECK(regions_seen > 300); /* else nothing was tried */
}

/* ---- tangles: many elementwise nodes of a few shapes, and some that are not ---- */

enum { POOL = 160 };

struct tangle {
    struct cm_graph *graph;
    cm_value pool[POOL];
    size_t count;
    uint64_t state;
};

static const struct cm_type *tangle_type(const struct tangle *t, cm_value value)
{
    return cm_value_get(t->graph->module, value)->fact.type;
}

static cm_value pick_value(struct tangle *t)
{
    const size_t near = t->count < 12 ? t->count : 12;
    return random_below(&t->state, 3) ? t->pool[t->count - 1 - random_below(&t->state, near)]
                                      : t->pool[random_below(&t->state, t->count)];
}

static cm_value cast(struct tangle *t, cm_value value, enum cm_dtype to)
{
    struct cm_error err = {0};
    struct cm_builder build = {.graph = t->graph, .err = &err};
    struct cm_arena *arena = cm_builder_arena(&build);
    if (tangle_type(t, value)->dtype == to)
        return value;
    const cm_value made = cm_build(
        &build, &(struct cm_emission){
                    .op = "Cast", CM_ATTRIBUTES(cm_attr_int(arena, "to", to)), CM_INPUTS(value)});
    CHECK_OK(build.status, &err);
    return made;
}

static cm_value add_to_tangle(struct tangle *t)
{
    static const char *const unary[] = {"Neg", "Abs", "Relu", "Tanh", "Sigmoid", "Exp"};
    static const char *const binary[] = {"Add", "Sub", "Mul", "Max", "Min", "Add"};
    static const cm_value none = 0;
    const uint64_t kind = random_below(&t->state, 24);
    const cm_value a = cast(t, pick_value(t), CM_FLOAT);
    const cm_value b = cast(t, pick_value(t), CM_FLOAT);
    if (kind < 8)
        return GRAPH_ADD(t->graph, unary[random_below(&t->state, 6)], a);
    if (kind < 18)
        return GRAPH_ADD(t->graph, binary[random_below(&t->state, 6)], a, b);
    if (kind < 20)
        return GRAPH_ADD(t->graph, "Where", GRAPH_ADD(t->graph, "Greater", a, b), b,
                         cast(t, pick_value(t), CM_FLOAT));
    if (kind < 21)
        return cast(t, a, CM_DOUBLE);
    if (kind < 22)
        return cast(t, a, CM_FLOAT16);
    if (kind < 23)
        return GRAPH_ADD(t->graph, "ReduceSum", a, none); /* one element, same rank */
    return GRAPH_ADD(t->graph, "Hardmax", GRAPH_ADD(t->graph, "Add", a, t->pool[0]));
}

static void tangled(struct cm_arena *arena)
{
    struct tangle t = {.graph = graph_new(arena), .state = seed * 2 + 1};
    struct judged j = {.text = "a tangle"};
    const uint32_t symbol = cm_symbol_named(cm_module_symbols(t.graph->module), CM_STR("N"));
    const struct cm_dim n = {CM_DIM_UNKNOWN, symbol};
    const struct cm_type *const types[] = {
        cm_type_tensor(arena, CM_FLOAT, 2, (const struct cm_dim[]){n, CM_DIM(4)}),
        cm_type_tensor(arena, CM_FLOAT, 2, (const struct cm_dim[]){n, CM_DIM(4)}),
        cm_type_tensor(arena, CM_FLOAT, 1, &CM_DIM(4)),
        cm_type_tensor(arena, CM_FLOAT, 2, (const struct cm_dim[]){n, CM_DIM(1)}),
        cm_type_tensor(arena, CM_FLOAT, 0, NULL),
    };
    for (size_t i = 0; i < CM_COUNT(types); i++)
        t.pool[t.count++] = cm_graph_add_input(t.graph, CM_STR_NONE, types[i]);
    const size_t size = 20 + random_below(&t.state, 120);
    while (t.count < size) {
        const cm_value made = add_to_tangle(&t);
        t.pool[t.count++] = made;
    }
    cm_value outputs[MOST];
    for (size_t o = 0; o < MOST; o++)
        outputs[o] = t.pool[o < 2 ? size - 1 - o : 5 + random_below(&t.state, size - 5)];
    cm_graph_set_outputs(t.graph, outputs, MOST);
    j.in[0] = exec_ramp(arena, &CM_SHAPE(3, 4), -1);
    j.in[1] = exec_ramp(arena, &CM_SHAPE(3, 4), -0.5);
    j.in[2] = exec_ramp(arena, &CM_SHAPE(4), 0.25);
    j.in[3] = exec_ramp(arena, &CM_SHAPE(3, 1), -0.25);
    j.in[4] = exec_ramp(arena, &CM_SCALAR, 0.75);
    cm_graph_remove_dead(t.graph);
    regions_seen += judge(t.graph, &j);
    CHECK_INT(j.status, CM_OK);
    execute(arena, t.graph, &j);
    forget(&j, MOST);
}

void test_regions__tangles_of_elementwise_nodes_give_the_same_bits(void)
{
    regions_seen = 0;
    for (seed = 1; seed <= 400; seed++)
        check_in_arena(tangled);
    CHECK(regions_seen > 1000);
}

static void many(struct cm_arena *arena)
{
    struct cm_graph *graph = region_negated(arena, 40000, 0);
    struct cm_error err = {0};
    region_fuse(graph);
    CHECK_INT(graph->n_nodes, 625);
    CHECK_OK(cm_graph_inline_all(graph, pick_region, NULL, &err), &err);
    CHECK_INT(graph->n_nodes, 40000);
}

void test_regions__memory_grows_with_the_nodes(void)
{
    struct cm_error err = {0};
    CHECK_OK(check_in_arena_limited(100 << 20, &err, many), &err);
}

static void trained(struct cm_arena *arena)
{
    static const char text[] =
        MAIN("(float[2,1,4,4] x, float[2,1,3,3] w, float[2] b, float[8,3] v, float[2,3] t)"
             " => (float[2,1,3,3] w2, float[2] b2, float[8,3] v2) <int64[2] flat = {2, 8}>",
             "c = Conv(x, w, b) r = Relu(c) f = Reshape(r, flat) p = MatMul(f, v) q = Tanh(p)"
             " d = Sub(q, t) e = Mul(d, d) l = ReduceSum<keepdims = 0>(e)"
             " gw, gb, gv = ai.onnx.preview.training.Gradient<xs = [\"w\", \"b\", \"v\"],"
             " y = \"l\">(w, b, v)"
             " rate = Constant<value_float = 0.5>()"
             " mw = Mul(rate, gw) w2 = Sub(w, mw) mb = Mul(rate, gb) b2 = Sub(b, mb)"
             " mv = Mul(rate, gv) v2 = Sub(v, mv)");
    struct judged j = {.text = text};
    struct cm_graph *graph = graph_of(arena, text, NULL);
    struct cm_error err = {0};
    CHECK_OK(cm_gradient_expand(graph, &err), &err);
    j.in[0] = exec_ramp(arena, &CM_SHAPE(2, 1, 4, 4), -2);
    j.in[1] = exec_ramp(arena, &CM_SHAPE(2, 1, 3, 3), -1);
    j.in[2] = exec_ramp(arena, &CM_SHAPE(2), 0);
    j.in[3] = exec_ramp(arena, &CM_SHAPE(8, 3), -3);
    j.in[4] = exec_ramp(arena, &CM_SHAPE(2, 3), 0);
    CHECK(judge(graph, &j) >= 5); /* two products, the slope of Tanh, updates */
    CHECK_INT(j.status, CM_OK);
    forget(&j, graph->n_outputs);
}

void test_regions__a_training_step_gives_the_same_bits(void)
{
    check_in_arena(trained);
}

static void adam_step(struct cm_arena *arena)
{
    struct judged j = {.text = region_adam};
    struct cm_graph *graph = graph_of(arena, region_adam, NULL);
    const float rate = 0.1F, root = 0.5F;
    j.in[0] = graph_floats(arena, 1, &rate);
    j.in[1] = graph_floats(arena, 1, &root);
    ((struct cm_datum *)(uintptr_t)j.in[0])->tensor.shape = CM_SCALAR;
    ((struct cm_datum *)(uintptr_t)j.in[1])->tensor.shape = CM_SCALAR;
    for (size_t i = 2; i < 10; i++)
        j.in[i] = exec_ramp(arena, &CM_SHAPE(3), (double)i / 4);
    CHECK_INT(judge(graph, &j), 2);
    CHECK_INT(j.status, CM_OK);
    forget(&j, graph->n_outputs);
}

void test_regions__an_optimizers_update_gives_the_same_bits(void)
{
    check_in_arena(adam_step);
}
