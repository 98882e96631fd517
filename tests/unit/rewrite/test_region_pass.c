/* Regions: which nodes are grouped and which are not; test_region_results.c has what they compute.
 */
// SPDX-License-Identifier: Apache-2.0
#include "autodiff/gradient_nodes.h"
#include "exec/exec_case.h"
#include "exec/random_graph.h"
#include "graph/graph_case.h"
#include "lower/lower.h"
#include "region_case.h"

static void check_nodes(const struct cm_graph *graph, const char *wanted)
{
    char line[4096] = "";
    region_put_nodes(line, sizeof line, graph);
    CHECK_STRING(line, wanted);
}

/* A second run of the pass must find nothing. */
static struct cm_graph *becomes(struct cm_arena *arena, const char *text, const char *wanted)
{
    struct cm_graph *graph = graph_of(arena, text, NULL);
    region_fuse(graph);
    check_nodes(graph, wanted);
    region_fuse(graph);
    check_nodes(graph, wanted);
    return graph;
}

/* ---- products ---- */

static void chains(struct cm_arena *arena)
{
    becomes(arena,
            MAIN("(float[N,3,8,8] x, float[4,3,1,1] w, float[4,1,1] b, float[N,4,8,8] r)"
                 " => (float[N,4,8,8] y)",
                 "c = Conv(x, w) d = Add(b, c) e = Add(d, r) y = Relu(e)"),
            "Product(Conv Add Add Relu)");
    becomes(arena,
            MAIN("(float[N,7,5] x, float[5,4] w, float[4] b) => (float[N,7,4] y)"
                 "<float half = {0.5}>",
                 "c = MatMul(x, w) d = Add(c, b) e = Gelu(d) y = Mul(half, e)"),
            "Product(MatMul Add Gelu Mul)");
    becomes(
        arena,
        MAIN("(float[N,5] x, float[5,4] w) => (float[N,4] y) <float[1] a = {-1}, float b = {2}>",
             "c = Gemm(x, w) d = Tanh(c) y = Clip(d, a, b)"),
        "Product(Gemm Tanh Clip)");
    becomes(arena,
            MAIN("(float[1,3,8,8] x, float[3,4,2,2] w) => (float[1,4,9,9] y)",
                 "c = ConvTranspose(x, w) y = LeakyRelu(c)"),
            "Product(ConvTranspose LeakyRelu)");
}

void test_regions__products_take_bias_residual_and_activation(void)
{
    check_in_arena(chains);
}

static void turned(struct cm_arena *arena)
{
    becomes(arena,
            MAIN("(float[N,2,5] x, float[4,5] w, float[4] b) => (float[N,2,4] y)",
                 "t = Transpose <perm = [1, 0]> (w) c = MatMul(x, t) y = Add(c, b)"),
            "Product(Transpose MatMul Add)");
    becomes(arena,
            MAIN("(float[N,2,5] x, float[4,5] w) => (float[N,2,4] y)",
                 "t = Transpose <perm = [1, 0]> (w) y = MatMul(x, t)"),
            "Product(Transpose MatMul)");
    becomes(arena,
            MAIN("(float[N,2,5] x, float[4,5] w) => (float[N,2,4] y, float[5,4] t)",
                 "t = Transpose <perm = [1, 0]> (w) y = MatMul(x, t)"),
            "Transpose MatMul");
    becomes(arena,
            MAIN("(float[N,2,5] x, float[N,4,5] w) => (float[N,2,4] y)",
                 "t = Transpose <perm = [0, 2, 1]> (w) y = MatMul(x, t)"),
            "Transpose MatMul");
}

void test_regions__a_matrix_that_lies_transposed_is_read_as_it_lies(void)
{
    check_in_arena(turned);
}

static void gates(struct cm_arena *arena)
{
    becomes(arena,
            MAIN("(float[N,5] x, float[5,4] w) => (float[N,4] y)",
                 "c = MatMul(x, w) s = Sigmoid(c) d = Mul(c, s) y = Relu(d)"),
            "Product(MatMul Sigmoid Mul Relu)");
    becomes(arena,
            MAIN("(float[N,5] x, float[5,4] w) => (float[N,4] y)",
                 "c = MatMul(x, w) s = Sigmoid(c) y = Mul(s, c)"),
            "Product(MatMul Sigmoid Mul)");
    becomes(arena,
            MAIN("(float[N,5] x, float[5,4] w) => (float[N,4] y, float[N,4] s)",
                 "c = MatMul(x, w) s = Sigmoid(c) y = Mul(s, c)"),
            "MatMul Elementwise(Sigmoid Mul)");
}

void test_regions__a_value_times_its_sigmoid_follows_a_product(void)
{
    check_in_arena(gates);
}

static void added(struct cm_arena *arena)
{
    becomes(arena,
            MAIN("(float[N,5] x, float[5,4] w, float[5,4] v) => (float[N,4] y)",
                 "a = MatMul(x, w) c = Relu(a) b = MatMul(x, v) d = Add(c, b) y = Relu(d)"),
            "Product(MatMul Relu) Product(MatMul Add Relu)");
    /* The product would have to wait for r. */
    becomes(arena,
            MAIN("(float[N,5] x, float[5,4] w, float[4,N] q) => (float[N,4] y)",
                 "a = MatMul(x, w) r = Transpose(q) b = Add(a, r) y = Relu(b)"),
            "MatMul Transpose Elementwise(Add Relu)");
    becomes(arena,
            MAIN("(float[N,5] x, float[5,4] w, float[4,1] q) => (float[N,4] y)",
                 "a = MatMul(x, w) r = Transpose(q) b = Add(a, r) y = Relu(b)"),
            "Transpose Product(MatMul Add Relu)");
}

void test_regions__of_two_added_products_the_later_one_adds(void)
{
    check_in_arena(added);
}

static void not_followed(struct cm_arena *arena)
{
    /* Two readers, an output, another shape, another type, limits that are computed, an operand
     * that the product reads itself, one that is neither bias nor residual. */
    becomes(arena,
            MAIN("(float[N,5] x, float[5,4] w) => (float[N,4] y, float[4,N] z)",
                 "c = MatMul(x, w) y = Relu(c) z = Transpose(c)"),
            "MatMul Relu Transpose");
    becomes(arena,
            MAIN("(float[N,5] x, float[5,4] w) => (float[N,4] c, float[N,4] y)",
                 "c = MatMul(x, w) y = Relu(c)"),
            "MatMul Relu");
    becomes(arena,
            MAIN("(float[1,5] x, float[5,4] w, float[3,4] r) => (float[3,4] y)",
                 "c = MatMul(x, w) y = Add(c, r)"),
            "MatMul Add");
    becomes(
        arena,
        MAIN("(double[N,5] x, double[5,4] w) => (double[N,4] y)", "c = MatMul(x, w) y = Relu(c)"),
        "MatMul Relu");
    becomes(arena,
            MAIN("(float[N,5] x, float[5,4] w) => (float16[N,4] y)",
                 "c = MatMul(x, w) y = Cast<to = 10>(c)"),
            "MatMul Cast");
    becomes(arena,
            MAIN("(float[N,5] x, float[5,4] w, float m) => (float[N,4] y)",
                 "c = MatMul(x, w) y = Clip(c, m)"),
            "MatMul Clip");
    becomes(arena,
            MAIN("(float[N,4] x, float[4,4] w) => (float[N,4] y)",
                 "c = MatMul(x, w) d = Add(c, x) y = Relu(d)"),
            "MatMul Elementwise(Add Relu)");
    becomes(arena,
            MAIN("(float[N,3,8,8] x, float[4,3,1,1] w, float[1,8] b) => (float[N,4,8,8] y)",
                 "c = Conv(x, w) y = Add(b, c)"),
            "Conv Add");
}

void test_regions__a_product_with_other_readers_or_shapes_stays(void)
{
    check_in_arena(not_followed);
}

static void long_chain(struct cm_arena *arena)
{
    becomes(arena,
            MAIN("(float[N,5] x, float[5,4] w) => (float[N,4] y)",
                 "c = MatMul(x, w) d = Relu(c) e = Tanh(d) f = Relu(e) g = Tanh(f) h = Relu(g)"
                 " i = Tanh(h) j = Relu(i) y = Tanh(j)"),
            "Product(MatMul Relu Tanh Relu Tanh Relu Tanh) Elementwise(Relu Tanh)");
}

void test_regions__few_nodes_follow_a_product(void)
{
    check_in_arena(long_chain);
}

static void weights(struct cm_arena *arena)
{
    const struct cm_graph *graph =
        becomes(arena,
                MAIN("(float[N,1] x) => (float[N,1] y) <float[1,1] w = {3}, float[1] b = {1}>",
                     "c = MatMul(x, w) d = Add(c, b) y = Relu(d)"),
                "Product(MatMul Add Relu)");
    CHECK_INT(graph->first->n_inputs, 2); /* x and w; b is in the body */
    CHECK_GIVES(arena, (struct cm_graph *)(uintptr_t)graph,
                INPUTS(exec_ramp(arena, &CM_SHAPE(2, 1), -1)), 0, 1 - 0.75F * 3 < 0 ? 0 : 1);
}

void test_regions__the_operands_of_a_product_stay_operands(void)
{
    check_in_arena(weights);
}

/* ---- elementwise groups ---- */

static void grouped(struct cm_arena *arena)
{
    becomes(arena,
            MAIN("(float[N,4] x, float[4] w) => (float[N,4] z)",
                 "a = Mul(x, w) b = Exp(a) c = Cast<to = 11>(b) d = Sqrt(c)"
                 " e = Cast<to = 1>(d) f = Greater(e, x) z = Where(f, e, a)"),
            "Elementwise(Mul Exp Cast Sqrt Cast Greater Where)");
    /* Two ways that meet. */
    becomes(arena,
            MAIN("(float[N] x, float[N] y) => (float[N] z)",
                 "a = Exp(x) b = Neg(y) c = Sqrt(b) z = Add(a, c)"),
            "Elementwise(Exp Neg Sqrt Add)");
    /* One node is no group, and reading the same value does not make one. */
    becomes(arena, MAIN("(float[N] x) => (float[N] y, float[N] z)", "y = Exp(x) z = Neg(x)"),
            "Exp Neg");
}

void test_regions__connected_nodes_of_one_shape_become_one(void)
{
    check_in_arena(grouped);
}

static void shapes(struct cm_arena *arena)
{
    becomes(arena,
            MAIN("(float[4] x, float[N,4] y) => (float[N,4] z)",
                 "a = Exp(x) b = Neg(a) c = Mul(b, y) z = Neg(c)"),
            "Elementwise(Exp Neg) Elementwise(Mul Neg)");
    /* Sizes that nobody relates may differ. */
    becomes(arena, MAIN("(float[N] x, float[M] y) => (float[K] z)", "a = Exp(x) z = Mul(a, y)"),
            "Exp Mul");
    becomes(arena,
            MAIN("(float[N,1] x, float[N,M] y) => (float[N,M] z)",
                 "a = Exp(x) b = Add(y, a) z = Exp(b)"),
            "Exp Elementwise(Add Exp)");
    becomes(arena, MAIN("(float[] x) => (float[] z)", "a = Exp(x) z = Neg(a)"), "Exp Neg");
}

void test_regions__a_group_has_one_shape(void)
{
    check_in_arena(shapes);
}

static void ordered(struct cm_arena *arena)
{
    /* The sum depends on the group and the division on the sum. */
    becomes(arena,
            MAIN("(float[N,4] x) => (float[N,4] z)",
                 "a = Neg(x) b = Exp(a) s = ReduceSum(b) c = Div(b, s) z = Sqrt(c)"),
            "Elementwise(Neg Exp) ReduceSum Elementwise(Div Sqrt)");
    /* No path leaves a group and comes back, yet Exp, Neg, Add of one shape and those of the other
     * would read each other. */
    becomes(arena,
            MAIN("(float[N] x, float[N,1] y) => (float[N] p, float[N,1] q) <int64[1] one = {1}>",
                 "a = Exp(x) u = Unsqueeze(a, one) b = Neg(u) c = Exp(y) s = Squeeze(c, one)"
                 " d = Neg(s) p = Add(a, d) q = Add(b, c)"),
            "Exp Unsqueeze Exp Squeeze Elementwise(Neg Add) Elementwise(Neg Add)");
    /* What is read in a body must be there before the node of that body. */
    becomes(arena,
            MAIN("(float[N] x, bool c) => (float[N] y, float[N] z)",
                 "a = Exp(x) b = Neg(a)"
                 " y = If(c)<then_branch = t () => (float[N] r) {r = Relu(b)},"
                 " else_branch = e () => (float[N] q) {q = Identity(x)}>"
                 " d = Sqrt(b) z = Neg(d)"),
            "Elementwise(Exp Neg) If[Relu][Identity] Elementwise(Sqrt Neg)");
}

void test_regions__groups_leave_an_order(void)
{
    check_in_arena(ordered);
}

static void again(struct cm_arena *arena)
{
    /* The Mul that reads a stands before d, but the region of that Mul does not. */
    becomes(arena,
            MAIN("(float[4] x, float[N,4] y) => (float[N,4] z, float[4] e)",
                 "a = Exp(x) b = Mul(a, y) d = Neg(a) e = Sqrt(d) z = Exp(b)"),
            "Exp Elementwise(Neg Sqrt) Elementwise(Mul Exp)");
    becomes(arena,
            MAIN("(float[4] x, float[N,4] y) => (float[N,4] z, float[4] d)",
                 "a = Exp(x) b = Mul(a, y) d = Neg(a) z = Exp(b)"),
            "Elementwise(Exp Neg) Elementwise(Mul Exp)");
}

void test_regions__a_region_out_of_the_way_lets_others_join(void)
{
    check_in_arena(again);
}

/* ---- single numbers ---- */

static void numbers(struct cm_arena *arena)
{
    /* The rate is one region, and every parameter another, a single number too. */
    const struct cm_graph *graph = becomes(
        arena,
        MAIN("(double t, float[4,2] w, float[4,2] g, float[4,2] v, float[4,2] h, float s, float k)"
             " => (float[4,2] w2, float[4,2] v2, float s2) <double beta = {0.9}, double one = {1}>",
             "p = Pow(beta, t) q = Sub(one, p) r = Div(one, q) rate = Cast<to = 1>(r)"
             " a = Mul(rate, k) s2 = Sub(s, a)"
             " b = Mul(rate, g) w2 = Sub(w, b)"
             " c = Mul(rate, h) v2 = Sub(v, c)"),
        "Elementwise(Pow Sub Div Cast) Elementwise(Mul Sub) Elementwise(Mul Sub)"
        " Elementwise(Mul Sub)");
    CHECK_INT(graph->first->n_inputs, 1);
    CHECK_INT(graph->first->n_outputs, 1);
    /* Numbers that only numbers read stay together. */
    becomes(arena,
            MAIN("(double t, float[4] w) => (float[4] w2) <double beta = {0.9}, double one = {1}>",
                 "p = Pow(beta, t) q = Sub(one, p) r = Div(one, p) u = Add(q, r)"
                 " rate = Cast<to = 1>(u) w2 = Mul(rate, w)"),
            "Elementwise(Pow Sub Div Add Cast) Mul");
}

void test_regions__a_number_for_several_groups_is_computed_apart(void)
{
    check_in_arena(numbers);
}

static void updates(struct cm_arena *arena)
{
    const struct cm_graph *graph =
        becomes(arena, region_adam,
                "Elementwise(Mul Mul Add Mul Mul Mul Add Sqrt Div Add Div Mul Sub)"
                " Elementwise(Mul Mul Add Mul Mul Mul Add Sqrt Div Add Div Mul Sub)");
    CHECK_INT(graph->first->n_inputs, 6);
    CHECK_INT(graph->first->n_outputs, 3);
    CHECK_STR(cm_value_get(graph->module, graph->outputs[4].value)->name, "ym2");
    CHECK(cm_value_get(graph->module, graph->outputs[4].value)->node == graph->last);
}

void test_regions__an_optimizers_update_of_a_parameter_is_one_node(void)
{
    check_in_arena(updates);
}

/* ---- what a region is ---- */

static void bodies(struct cm_arena *arena)
{
    const struct cm_graph *graph =
        becomes(arena,
                MAIN("(float[2] x) => (float[2] y) <float[1] two = {2}, float[2] w = {1, 3}>",
                     "a = Mul(x, two) b = Add(a, w) y = Sub(b, two)"),
                "Elementwise(Mul Add Sub)");
    const struct cm_node *region = graph->first;
    const struct cm_graph *body = region->bodies[0].graph;
    CHECK(!body->parent && body->owner == region);
    CHECK_INT(region->n_inputs, 2); /* x and w; the body holds 2, once */
    CHECK_INT(body->n_inputs, 2);
    CHECK_INT(body->first->inputs[1].value, body->last->inputs[1].value);
    CHECK_INT(cm_value_get(graph->module, body->last->inputs[1].value)->role, CM_ROLE_INITIALIZER);
    CHECK_GIVES(arena, (struct cm_graph *)(uintptr_t)graph, INPUTS(FLOATS(arena, 1, 5)), 1, 11);
}

void test_regions__bodies_are_closed_and_hold_single_constants(void)
{
    check_in_arena(bodies);
}

static void named(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_of(
        arena,
        MAIN("(float[2] x) => (float[2] y, float[2] z)", "a = Exp(x) y = Neg(a) z = Sqrt(y)"),
        NULL);
    graph->last->name = CM_STR("last");
    region_fuse(graph);
    check_nodes(graph, "Elementwise(Exp Neg Sqrt)");
    CHECK_STR(graph->first->name, "last");
    CHECK_INT(graph->first->n_outputs, 2);
    CHECK_INT(cm_graph_find(graph, CM_STR("a")), 0);
    CHECK_INT(cm_graph_find(graph, CM_STR("y")), graph->first->outputs[0]);
    CHECK_INT(cm_graph_find(graph, CM_STR("z")), graph->outputs[1].value);
}

void test_regions__results_keep_their_names(void)
{
    check_in_arena(named);
}

static void state(struct cm_arena *arena)
{
    struct cm_graph *graph =
        graph_of(arena,
                 MAIN("(float[2] x) => (float[2] y) <float s = {2}, float[2] v = {3, 4}>",
                      "a = Mul(x, s) y = Add(a, v)"),
                 NULL);
    struct cm_error err = {0};
    const char *const names[] = {"s", "v"};
    for (size_t i = 0; i < CM_COUNT(names); i++) {
        const cm_value value = cm_graph_find(graph, cm_str(names[i]));
        const struct cm_tensor *loaded;
        CHECK_OK(cm_value_constant(graph->module, value, &loaded, &err), &err);
        cm_value_get(graph->module, value)->is_state = true;
    }
    region_fuse(graph);
    check_nodes(graph, "Elementwise(Mul Add)");
    CHECK_INT(graph->first->n_inputs, 3);
    const struct cm_graph *body = graph->first->bodies[0].graph;
    for (size_t i = 0; i < body->n_inputs; i++)
        CHECK(!cm_value_get(graph->module, body->inputs[i])->fact.constant);
}

void test_regions__state_variables_are_no_constants(void)
{
    check_in_arena(state);
}

static void declared(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_of(
        arena, MAIN("(float[N] x, float[M] y) => (float[K] z)", "a = Mul(x, y) z = Exp(a)"), NULL);
    const struct cm_type *before = cm_value_get(graph->module, graph->outputs[0].value)->fact.type;
    region_fuse(graph);
    check_nodes(graph, "Elementwise(Mul Exp)");
    CHECK(cm_type_equal(cm_value_get(graph->module, graph->outputs[0].value)->fact.type, before));
}

void test_regions__outputs_keep_their_types(void)
{
    check_in_arena(declared);
}

/* ---- what stays outside ---- */

static void outside(struct cm_arena *arena)
{
    /* Sizes must stay known. */
    becomes(arena,
            MAIN("(float[N,4] x, float[N,2] y) => (float[K,2] z) <int64[1] two = {2}>",
                 "s = Shape<start = 1>(x) t = Div(s, two) u = Mul(t, two) v = Sub(u, two)"
                 " m = Constant<value_ints = [-1]>() w = Concat<axis = 0>(m, v)"
                 " z = Reshape(y, w)"),
            "Shape Div Mul Sub Constant Concat Reshape");
    becomes(arena,
            MAIN("(float[N] x) => (bool[N] z)",
                 "a = Cast<to = 8>(x) b = Cast<to = 8>(x) z = Equal(a, b)"),
            "Cast Cast Equal");
    becomes(arena,
            MAIN("(float8e4m3fn[N] x) => (float8e4m3fn[N] z)",
                 "a = Cast<to = 1>(x) b = Exp(a) c = Neg(b) z = Cast<to = 17>(c)"),
            "Cast Elementwise(Exp Neg) Cast");
    becomes(arena,
            MAIN("(float[N] x) => (float[N] z)",
                 "a = Exp(x) r = RandomNormalLike(a) b = Add(a, r) z = Neg(b)"),
            "Exp RandomNormalLike Elementwise(Add Neg)");
}

void test_regions__sizes_strings_narrow_types_and_random_numbers_stay_outside(void)
{
    check_in_arena(outside);
}

/* The update of a state waits until gradients are known to be finite. */
static void phases(struct cm_arena *arena)
{
    struct cm_graph *graph =
        graph_of(arena,
                 MAIN("(float[4,5] x, float[5,3] v, float[4,3] w) => (float[4,3] z)",
                      "p = MatMul(x, v) a = Relu(p) g = Neg(a) h = Exp(g) m = Neg(h)"
                      " z = Sub(w, m)"),
                 NULL);
    struct cm_node *node = graph->first;
    for (int i = 0; node; node = node->next, i++)
        node->phase = i < 2 ? CM_PHASE_FORWARD : i < 4 ? CM_PHASE_BACKWARD : CM_PHASE_NONE;
    region_fuse(graph);
    check_nodes(graph, "Product(MatMul Relu) Elementwise(Neg Exp) Elementwise(Neg Sub)");
    CHECK_INT(graph->first->phase, CM_PHASE_FORWARD);
    CHECK_INT(graph->first->next->phase, CM_PHASE_BACKWARD);
}

void test_regions__a_region_is_of_one_phase_of_a_training_step(void)
{
    check_in_arena(phases);
}

/* ---- limits ---- */

static void limits(struct cm_arena *arena)
{
    struct cm_graph *graph = region_negated(arena, 130, 0);
    region_fuse(graph);
    CHECK_INT(graph->n_nodes, 3);
    CHECK_INT(graph->first->bodies[0].graph->n_nodes, 64);
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, 2, 3)), 1, 2, 3);

    graph = region_negated(arena, 40, 39);
    region_fuse(graph);
    CHECK(graph->n_nodes > 2);
    for (const struct cm_node *node = graph->first; node; node = node->next)
        CHECK(node->n_outputs <= 16);
}

void test_regions__members_and_results_have_limits(void)
{
    check_in_arena(limits);
}

/* A sum of many operands, and one whose terms are all there before the first is added. */
static void wide(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_new(arena);
    const struct cm_type *type = graph_float_type(arena, 3);
    cm_value inputs[60], terms[60];
    for (size_t i = 0; i < CM_COUNT(inputs); i++)
        inputs[i] = cm_graph_add_input(graph, CM_STR_NONE, type);
    cm_value sum = inputs[0];
    for (size_t i = 1; i < CM_COUNT(inputs); i++)
        sum = GRAPH_ADD(graph, "Add", sum, inputs[i]);
    cm_graph_set_outputs(graph, &sum, 1);
    region_fuse(graph);
    CHECK(graph->n_nodes > 1 && graph->n_nodes < 5);
    for (const struct cm_node *node = graph->first; node; node = node->next)
        CHECK(node->n_inputs <= 32);

    graph = graph_new(arena);
    inputs[0] = cm_graph_add_input(graph, CM_STR_NONE, type);
    for (size_t i = 0; i < 31; i++)
        terms[i] = GRAPH_ADD(graph, "Neg", inputs[0]);
    sum = terms[30];
    for (size_t i = 30; i-- > 0;)
        sum = GRAPH_ADD(graph, "Add", sum, terms[i]);
    cm_graph_set_outputs(graph, &sum, 1);
    region_fuse(graph);
    CHECK(graph->n_nodes > 1);
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, 2, 3)), -31, -62, -93);
}

void test_regions__operands_and_intermediates_have_limits(void)
{
    check_in_arena(wide);
}

static void budget(struct cm_arena *arena)
{
    const struct cm_module_options options = {.node_budget = 10};
    struct cm_graph *graph =
        graph_of(arena,
                 MAIN("(float[2] x) => (float[2] e, float[2] z)",
                      "a = Exp(x) b = Neg(a) s = ReduceSum(b) c = Div(b, s) d = Neg(c)"
                      " e = Exp(d) f = Neg(e) t = ReduceSum(f) g = Div(f, t) z = Neg(g)"),
                 &options);
    region_fuse(graph);
    check_nodes(graph, "Exp Neg ReduceSum Div Neg Exp Neg ReduceSum Div Neg");
    CHECK_INT(cm_graph_find(graph, CM_STR("z")), graph->outputs[1].value);
}

void test_regions__a_spent_node_budget_leaves_the_graph(void)
{
    check_in_arena(budget);
}

/* ---- bodies of control flow ---- */

static void loops(struct cm_arena *arena)
{
    struct cm_graph *graph = becomes(
        arena,
        MAIN("(float[2] x, float[2] k) => (float[2] z)"
             "<int64 n = {3}, bool yes = {1}, float half = {0.5}>",
             "a = Neg(k) b = Neg(a) z = Loop(n, yes, x)<body = b (int64 i, bool c, float[2] s)"
             " => (bool d, float[2] t) {d = Identity(c) u = Mul(s, half) t = Add(u, b)}>"),
        "Elementwise(Neg Neg) Loop[Identity Elementwise(Mul Add)]");
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 8, 0), FLOATS(arena, 4, 4)), 8, 7);
    const struct cm_node *region = graph->last->bodies[0].graph->last;
    CHECK_INT(region->n_inputs, 2);
    CHECK(!region->bodies[0].graph->parent);
}

void test_regions__bodies_of_loops_have_regions_that_read_outer_values(void)
{
    check_in_arena(loops);
}
