/* The pass merge: nodes that compute the same, and equal constants. */
// SPDX-License-Identifier: Apache-2.0
#include "exec/exec_case.h"
#include "exec/random_graph.h"
#include "simplify_case.h"

#define LEAVES(text, operators) check_pass(arena, cm_pass_merge, text, operators)
#define F                       "main (float[N,M] x, float[N,M] z) => (y) "

static void nodes(struct cm_arena *arena)
{
    LEAVES(F "{ a = Relu(x) b = Relu(x) y = Add(a, b) }", "Relu Add");
    /* through operands that were merged before */
    LEAVES(F "{ a = Relu(x) b = Relu(x) c = Neg(a) d = Neg(b) y = Add(c, d) }", "Relu Neg Add");
    LEAVES(F "{ a = Relu(x) b = Relu(z) c = Neg(x) d = Add(a, b) y = Add(d, c) }",
           "Relu Relu Neg Add Add");
    LEAVES(F "{ a = Sub(x, z) b = Sub(z, x) y = Mul(a, b) }", "Sub Sub Mul");
}

void test_merge__same_operator_and_operands_are_one_node(void)
{
    check_in_arena(nodes);
}

static void attributes(struct cm_arena *arena)
{
    LEAVES(F "{ a = LeakyRelu<alpha = 0.5>(x) b = LeakyRelu<alpha = 0.5>(x) y = Add(a, b) }",
           "LeakyRelu Add");
    LEAVES(F "{ a = LeakyRelu<alpha = 0.5>(x) b = LeakyRelu<alpha = 0.25>(x) y = Add(a, b) }",
           "LeakyRelu LeakyRelu Add");
    /* a default that is spelled out; another order */
    LEAVES(F "{ a = Softmax(x) b = Softmax<axis = -1>(x) y = Add(a, b) }", "Softmax Add");
    LEAVES(F "{ a = Selu<alpha = 0.5, gamma = 2.0>(x) b = Selu<gamma = 2.0, alpha = 0.5>(x)"
             " y = Add(a, b) }",
           "Selu Add");
    LEAVES(F "{ a = Transpose<perm = [0, 1]>(x) b = Transpose<perm = [1, 0]>(x) c = Shape(a)"
             " d = Shape(b) y = Add(c, d) }",
           "Transpose Transpose Shape Shape Add");
    LEAVES("main (float[2,3] x) => (y) { s = Shape(x) a = ConstantOfShape<value = float[1] {2}>(s)"
           " b = ConstantOfShape<value = float[1] {2}>(s)"
           " c = ConstantOfShape<value = float[1] {3}>(s) d = Add(a, b) y = Add(d, c) }",
           "Shape ConstantOfShape ConstantOfShape Add Add");
}

void test_merge__attributes_count_by_what_they_say(void)
{
    check_in_arena(attributes);
}

static void outputs(struct cm_arena *arena)
{
    LEAVES("main (float[N,4] x) => (a, b) { a = Relu(x) b = Relu(x) }", "Relu Relu");
    LEAVES("main (float[N,4] x) => (y, b) { a = Relu(x) b = Relu(x) y = Neg(a) }", "Relu Neg");
    LEAVES("main (float[2,4] x) => (y) { a, b = Split<axis = 1, num_outputs = 2>(x)"
           " c, d = Split<axis = 1, num_outputs = 2>(x) e = Add(a, d) f = Sub(c, b)"
           " y = Mul(e, f) }",
           "Split Add Sub Mul");
    LEAVES("main (float[1,1,4] x) => (y) { a, i = MaxPool<kernel_shape = [2]>(x)"
           " b = MaxPool<kernel_shape = [2]>(x) c = Cast<to = 1>(i) d = Add(a, b) y = Add(c, d) }",
           "MaxPool MaxPool Cast Add Add");
}

void test_merge__outputs_keep_their_names(void)
{
    check_in_arena(outputs);
}

static void constants(struct cm_arena *arena)
{
    LEAVES(
        "main (float[2] x) => (y) <float[2] u = {1, 2}, float[2] v = {1, 2}, float[2] w = {1, 3}>"
        "{ a = Mul(x, u) b = Mul(x, v) c = Mul(x, w) d = Add(a, b) y = Add(c, d) }",
        "Mul Mul Add Add");
    /* equal numbers, other types or shapes; zeros of two signs */
    LEAVES("main (float[2] x) => (y) <float u = {1}, float[1] v = {1}, float p = {0}, float q = "
           "{-0.0}>"
           "{ a = Mul(x, u) b = Mul(x, v) c = Mul(x, p) d = Mul(x, q) e = Sub(a, b) f = Sub(c, d)"
           "  y = Add(e, f) }",
           "Mul Mul Mul Mul Sub Sub Add");
    LEAVES("main (float[2] x) => (y) { u = Constant<value = float[2] {1, 2}>()"
           " v = Constant<value = float[2] {1, 2}>() a = Mul(x, u) b = Mul(x, v) y = Add(a, b) }",
           "Constant Mul Add");
}

void test_merge__equal_constants_are_one(void)
{
    check_in_arena(constants);
}

static void large(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_new(arena);
    const struct cm_pass_options options = {0};
    struct cm_error err = {0};
    enum { SMALL = 1000, LARGE = 100000 };
    const int64_t sizes[] = {SMALL, SMALL, LARGE, LARGE};
    cm_value sum = cm_graph_add_input(graph, CM_STR("x"), graph_float_type(arena, 1)), added[4];
    for (size_t i = 0; i < CM_COUNT(sizes); i++) {
        const struct cm_datum *ramp = exec_ramp(arena, &CM_SHAPE(sizes[i]), 0);
        const cm_value constant = cm_graph_add_constant(graph, CM_STR_NONE, &ramp->tensor);
        added[i] = GRAPH_ADD(graph, "Mul", sum, constant);
    }
    cm_graph_set_outputs(graph, added, CM_COUNT(added));
    CHECK_OK(cm_pass_merge(graph, &options, &err), &err);
    struct cm_use *operands[4];
    size_t n = 0;
    for (const struct cm_node *node = graph->first; node; node = node->next)
        operands[n++] = &node->inputs[1];
    CHECK_INT(n, 4); /* outputs stay apart */
    CHECK_INT(operands[0]->value, operands[1]->value);
    CHECK(operands[2]->value != operands[3]->value);
}

void test_merge__large_constants_are_not_read(void)
{
    check_in_arena(large);
}

static void apart(struct cm_arena *arena)
{
    LEAVES("main (float[2] x, float[2] u = {1, 2}, float[2] v = {1, 2}) => (y)"
           "{ a = Mul(x, u) b = Mul(x, v) y = Add(a, b) }",
           "Mul Mul Add");
    struct cm_graph *graph =
        graph_of(arena,
                 GRAPH_HEAD "m (float[2] x) => (y) <float[2] u = {1, 2}, float[2] v = {1, 2}>"
                            "{ a = Mul(x, u) b = Mul(x, v) r = RandomNormalLike(a)"
                            "  s = RandomNormalLike(a) c = Add(a, r) d = Add(b, s) y = Add(c, d) }",
                 NULL);
    const struct cm_pass_options options = {.training = true};
    struct cm_error err = {0};
    cm_value_get(graph->module, cm_graph_find(graph, CM_STR("v")))->is_state = true;
    CHECK_OK(cm_pass_merge(graph, &options, &err), &err);
    CHECK_STRING(graph_operators(arena, graph),
                 "Mul Mul RandomNormalLike RandomNormalLike Add Add Add");
}

void test_merge__inputs_states_and_random_nodes_stay_apart(void)
{
    check_in_arena(apart);
}

static void named(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_of(
        arena,
        "<ir_version: 10, opset_import: [\"\" : 28, \"ai.onnx.preview.training\" : 1]>\n"
        "g (float[2] x) => (d) <float[2] u = {1, 2}, float[2] v = {1, 2}> {"
        " a = Relu(x) b = Relu(x) c = Mul(a, u) e = Mul(b, v) f = Mul(c, e) l = ReduceSum(f)"
        " d, d2 = ai.onnx.preview.training.Gradient<xs = [\"a\", \"u\"], y = \"l\">(a, u) }",
        NULL);
    const struct cm_pass_options options = {.training = true};
    struct cm_error err = {0};
    CHECK_OK(cm_pass_merge(graph, &options, &err), &err);
    CHECK_STRING(graph_operators(arena, graph), "Relu Relu Mul Mul Mul ReduceSum Gradient");
}

void test_merge__what_a_gradient_names_stays_apart(void)
{
    check_in_arena(named);
}

static void bodies(struct cm_arena *arena)
{
    /* a body may read what the graph around computed; what it computes stays its own */
    LEAVES(
        "main (float[2] x, bool t) => (y)"
        "{ a = Relu(x) b = If(t)<then_branch = g () => (p) { q = Relu(x) u = Abs(x) v = Mul(q, u)"
        "  p = Neg(v) }, else_branch = h () => (r) { s = Abs(x) w = Relu(x) r = Sub(w, s) }>"
        "  c = Abs(x) d = Add(a, c) y = Add(b, d) }",
        "Relu If{Abs Mul Neg}{Abs Sub} Abs Add Add");
    /* a result of a body must be made there */
    LEAVES("main (float[2] x, bool t) => (y)"
           "{ a = Relu(x) b = If(t)<then_branch = g () => (p) { p = Relu(x) },"
           "  else_branch = h () => (r) { r = Abs(x) }> y = Add(a, b) }",
           "Relu If{Relu}{Abs} Add");
    LEAVES("main (float[2] x, bool t) => (y)"
           "{ b = If(t)<then_branch = g () => (p) <float[2] u = {1, 2}> { p = Mul(x, u) },"
           "  else_branch = h () => (r) <float[2] v = {1, 2}> { w = Add(x, v) r = Abs(w) }>"
           "  y = Neg(b) }",
           "If{Mul}{Add Abs} Neg");
}

void test_merge__bodies_see_the_graphs_around_them(void)
{
    check_in_arena(bodies);
}

/* ---- random models ---- */

enum { MOST = 8, MODELS = 1500 };

static struct random_graph sample;
static uint64_t next_seed;
static size_t nodes_before, nodes_after;

static void try_sample(struct cm_arena *arena)
{
    random_graph_make(&sample, next_seed++);
    struct cm_graph *before = random_graph_import(arena, &sample),
                    *after = random_graph_import(arena, &sample);
    const struct cm_pass_options options = {0};
    struct cm_error err = {0};
    CHECK_OK(cm_pass_merge(after, &options, &err), &err);
    CHECK_OK(cm_pass_simplify(after, &options, &err), &err);
    CHECK_OK(cm_pass_merge(after, &options, &err), &err);
    nodes_before += before->n_nodes;
    nodes_after += after->n_nodes;
    const int64_t rows = 1 + (int64_t)(next_seed % 3), columns = 1 + (int64_t)(next_seed / 3 % 4);
    const struct cm_datum *in[] = {exec_ramp(arena, &CM_SHAPE(rows, columns), -1),
                                   exec_ramp(arena, &CM_SHAPE(rows, columns), 0),
                                   exec_ramp(arena, &CM_SHAPE(columns), -0.5), graph_int(arena, 2)};
    struct cm_datum *expected = cm_data_new(arena, MOST), *results = cm_data_new(arena, MOST);
    if (cm_graph_eval(before, in, CM_COUNT(in), expected, NULL, NULL))
        return; /* refused as it runs; what refuses may be dead code */
    CHECK_OK(cm_graph_eval(after, in, CM_COUNT(in), results, NULL, &err), &err);
    for (size_t o = 0; o < sample.n_outputs; o++)
        if (!exec_same(&expected[o], &results[o]))
            fail_msg("seed %llu: output '%s' differs\n%s", (unsigned long long)next_seed - 1,
                     sample.outputs[o], sample.text);
}

void test_merge__random_models_give_the_same_bits_with_simplify_between(void)
{
    next_seed = 1;
    nodes_before = nodes_after = 0;
    for (int i = 0; i < MODELS; i++)
        check_in_arena(try_sample);
    CHECK(nodes_after < nodes_before);
}
