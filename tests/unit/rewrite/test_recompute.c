/* Activations that are cheap to compute again are not kept for the backward pass: the peak of what
 * is alive falls, and results keep their bits. */
// SPDX-License-Identifier: Apache-2.0
#include "before_after.h"

#include "autodiff/gradient_nodes.h"

#define HEAD     "<ir_version: 10, opset_import: [\"\" : 28, \"ai.onnx.preview.training\" : 1]>\n"
#define GRADIENT "ai.onnx.preview.training.Gradient"

static struct cm_graph *training_graph(struct cm_arena *arena, const char *text)
{
    struct cm_graph *graph = before_after_graph(arena, text);
    struct cm_error err = {0};
    CHECK_OK(cm_gradient_expand(graph, &err), &err);
    cm_graph_remove_dead(graph);
    return graph;
}

/* Bytes of computed values that are alive at once, at most: each from the node that makes it to the
 * last that reads it. Outputs of the graph have memory of their own. */
static int64_t peak(struct cm_arena *arena, struct cm_graph *graph)
{
    int64_t *change = CM_NEW_ARRAY(arena, int64_t, graph->n_nodes + 3), most = 0, now = 0;
    const struct cm_marks places = cm_marks_begin(graph->module);
    uint32_t place = 1;
    for (struct cm_node *node = graph->first; node; node = node->next)
        cm_mark_set(&places, node, place++);
    for (struct cm_node *node = graph->first; node; node = node->next)
        for (int o = 0; o < node->n_outputs; o++) {
            if (!node->outputs[o] || cm_is_output(graph, node->outputs[o]))
                continue;
            const struct cm_value_def *def = cm_value_get(graph->module, node->outputs[o]);
            const uint32_t made = cm_mark_get(&places, node);
            size_t last = made, bytes = 0;
            struct cm_shape shape;
            CHECK(cm_type_shape(def->fact.type, &shape));
            CHECK(cm_dtype_bytes(def->fact.type->dtype, cm_shape_elements(&shape), &bytes));
            for (const struct cm_use *use = def->uses; use; use = use->next) {
                const uint32_t read = cm_mark_get(&places, use->node);
                last = read > last ? read : last;
            }
            change[made] += (int64_t)bytes;
            change[last + 1] -= (int64_t)bytes;
        }
    for (size_t i = 0; i < graph->n_nodes + 2; i++) {
        now += change[i];
        most = now > most ? now : most;
    }
    return most;
}

static size_t count_of(const struct cm_graph *graph, const char *op)
{
    size_t count = 0;
    for (const struct cm_node *node = graph->first; node; node = node->next)
        count += cm_str_is(node->op_type, op);
    return count;
}

static const struct cm_pass_options training = {.training = true};

/* The graph after the pass; its peak must have fallen to at most `part` of what it was. */
static struct cm_graph *check_falls(struct cm_arena *arena, const char *text, double part)
{
    struct cm_graph *before = training_graph(arena, text), *after = training_graph(arena, text);
    struct cm_error err = {0};
    const int64_t first = peak(arena, before);
    CHECK_OK(cm_pass_recompute(after, &training, &err), &err);
    before_after_same(arena, before, after, 0);
    const int64_t last = peak(arena, after);
    if ((double)last > part * (double)first)
        fail_msg("the peak is %lld bytes, was %lld", (long long)last, (long long)first);
    return after;
}

static struct cm_graph *check_stays(struct cm_arena *arena, const char *text,
                                    const struct cm_pass_options *options)
{
    struct cm_graph *graph = training_graph(arena, text);
    struct cm_error err = {0};
    const size_t nodes = graph->n_nodes;
    CHECK_OK(cm_pass_recompute(graph, options, &err), &err);
    CHECK_INT(graph->n_nodes, nodes);
    return graph;
}

/* ---- networks ---- */

#define LAYER(in, out, n) "  h" n " = MatMul(" in ", w" n ")\n  " out " = Gelu(h" n ")\n"
#define MLP                                                                                        \
    HEAD "main (float[64,32] x, float[32,32] w1, float[32,32] w2, float[32,32] w3, float[32,32] "  \
         "w4) => (float l, float[32,32] d1, float[32,32] d2, float[32,32] d3, float[32,32] d4) "   \
         "{\n" LAYER("x", "a", "1") LAYER("a", "b", "2") LAYER("b", "c", "3")                      \
             LAYER("c", "d", "4") "  s = Mul(d, d)\n  l = ReduceSum<keepdims = 0>(s)\n"            \
                                  "  d1, d2, d3, d4 = " GRADIENT                                   \
                                  "<xs = [\"w1\", \"w2\", \"w3\", \"w4\"], zs = [\"x\"], y = "     \
                                  "\"l\">(w1, w2, w3, w4, x)\n}"

static void gelu(struct cm_arena *arena)
{
    const struct cm_graph *graph = check_falls(arena, MLP, 0.95);
    CHECK(count_of(graph, "Gelu") > 4);
    CHECK_INT(count_of(graph, "MatMul"), count_of(training_graph(arena, MLP), "MatMul"));
}

void test_recompute__activations_between_products_are_computed_again(void)
{
    check_in_arena(gelu);
}

#define BLOCK(in, out, n)                                                                          \
    "  n" n " = LayerNormalization(" in ", g, b)\n  h" n " = MatMul(n" n ", w" n ")\n"             \
    "  a" n " = Gelu(h" n ")\n  p" n " = MatMul(a" n ", v" n ")\n  " out " = Add(" in ", p" n      \
    ")\n"

static void residual(struct cm_arena *arena)
{
    check_falls(
        arena,
        HEAD "main (float[64,32] x, float[32] g, float[32] b, float[32,128] w1, float[128,32] v1, "
             "float[32,128] w2, float[128,32] v2, float[32,128] w3, float[128,32] v3) => "
             "(float l, float[32,128] d1, float[32,128] d2, float[32,128] d3, float[128,32] e1, "
             "float[128,32] e2, float[128,32] e3, float[32] dg) {\n" BLOCK("x", "y", "1")
                 BLOCK("y", "z", "2")
                     BLOCK("z", "o", "3") "  s = Mul(o, o)\n"
                                          "  l = ReduceSum<keepdims = 0>(s)\n"
                                          "  d1, d2, d3, e1, e2, e3, dg = " GRADIENT
                                          "<xs = [\"w1\", \"w2\", \"w3\", \"v1\", \"v2\", \"v3\", "
                                          "\"g\"], zs = [\"x\"], y = \"l\">"
                                          "(w1, w2, w3, v1, v2, v3, g, x)\n}",
        0.85);
}

void test_recompute__residual_blocks_keep_less(void)
{
    check_in_arena(residual);
}

/* The result of the chain Sigmoid, Reshape is read late through the view. */
static void views(struct cm_arena *arena)
{
    check_falls(
        arena,
        HEAD "main (float[64,4,8] x, float[32,32] w, float[32,32] u) => (float l, float[32,32] d, "
             "float[64,4,8] dx)\n<int64[2] r = {64, 32}, int64[3] t = {64, 4, 8}> {\n"
             "  a = Sin(x)\n  f = Reshape(a, r)\n  h = MatMul(f, w)\n  i = Sin(h)\n"
             "  j = MatMul(i, u)\n  k = Sin(j)\n  m = MatMul(k, u)\n  s = Mul(m, m)\n"
             "  l = ReduceSum<keepdims = 0>(s)\n"
             "  d, dx = " GRADIENT "<xs = [\"w\", \"x\"], y = \"l\">(w, x)\n}",
        0.95);
}

void test_recompute__views_are_taken_of_the_copy(void)
{
    check_in_arena(views);
}

/* ---- what stays ---- */

static void not_training(struct cm_arena *arena)
{
    const struct cm_pass_options none = {0};
    check_stays(arena, MLP, &none);
}

void test_recompute__works_on_training_steps_only(void)
{
    check_in_arena(not_training);
}

/* Nothing but products and random nodes between early and late. */
static void expensive(struct cm_arena *arena)
{
    check_stays(arena,
                HEAD
                "main (float[64,32] x, float[32,32] w, float[32,32] u) => (float l, float[32,32] "
                "d)\n<float half = {0.5}, bool on = {1}> {\n"
                "  h = MatMul(x, w)\n  i = Dropout<seed = 3>(h, half, on)\n  j = MatMul(i, u)\n"
                "  l = ReduceSum<keepdims = 0>(j)\n"
                "  d = " GRADIENT "<xs = [\"w\"], zs = [\"x\", \"u\"], y = \"l\">(w, x, u)\n}",
                &training);
}

void test_recompute__products_and_random_nodes_run_once(void)
{
    check_in_arena(expensive);
}

static void keeps_outputs(struct cm_arena *arena)
{
    /* a is an output: it is kept whatever is done */
    struct cm_graph *graph = check_stays(
        arena,
        HEAD
        "main (float[64,32] x, float[32,32] w) => (float l, float[32,32] d, float[64,32] a) {\n"
        "  a = Sin(x)\n  h = MatMul(a, w)\n  l = ReduceSum<keepdims = 0>(h)\n"
        "  d = " GRADIENT "<xs = [\"w\"], zs = [\"x\"], y = \"l\">(w, x)\n}",
        &training);
    CHECK_INT(count_of(graph, "Sin"), 1);
}

void test_recompute__outputs_are_not_computed_twice(void)
{
    check_in_arena(keeps_outputs);
}

/* A chain so long that every value can be cut costs time in proportion. */
static void long_chain(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_new(arena);
    const struct cm_dim dims[2] = {CM_DIM(8), CM_DIM(8)};
    const struct cm_type *type = cm_type_tensor(arena, CM_FLOAT, 2, dims);
    enum { LAYERS = 1000 };
    cm_value x = cm_graph_add_input(graph, CM_STR("x"), type), kept[LAYERS];
    struct cm_error err = {0};
    for (int i = 0; i < LAYERS; i++) {
        kept[i] = GRAPH_ADD(graph, "Sin", x);
        x = GRAPH_ADD(graph, "MatMul", kept[i], kept[i]);
    }
    for (int i = LAYERS; i-- > 0;)
        x = GRAPH_ADD(graph, "MatMul", x, kept[i]);
    cm_graph_set_outputs(graph, &x, 1);
    CHECK_OK(cm_pass_recompute(graph, &training, &err), &err);
    CHECK(graph->n_nodes >= 3 * LAYERS);
}

void test_recompute__long_chains_end(void)
{
    check_in_arena(long_chain);
}
