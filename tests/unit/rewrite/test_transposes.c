/* Transposes cancel through whatever can be computed on transposed operands, and stay where moving
 * them gains nothing. Results keep their bits. */
// SPDX-License-Identifier: Apache-2.0
#include "before_after.h"

#include "rewrite/min_cut.h"
#include "rewrite/permutation.h"

static struct before_after current;

static void run_current(struct cm_arena *arena)
{
    before_after_check(arena, &current);
}

static void check(const char *text, const char *expected, double tolerance)
{
    current = (struct before_after){cm_pass_transposes, text, expected, tolerance, {0}};
    check_in_arena(run_current);
}

/* The graph's inputs, outputs and nodes; operators afterwards. */
#define CHECK_CASE(inputs, outputs, nodes, expected)                                               \
    check(GRAPH_HEAD "main (" inputs ") => (" outputs ") {\n" nodes "\n}", (expected), 0)
/* The same, sums in another order. */
#define CHECK_SUMS(inputs, outputs, nodes, expected)                                               \
    check(GRAPH_HEAD "main (" inputs ") => (" outputs ") {\n" nodes "\n}", (expected), 1e-6)

#define TO_LAST  "Transpose<perm = [0, 2, 3, 1]>"
#define TO_FIRST "Transpose<perm = [0, 3, 1, 2]>"
#define IMAGE    "float[N,3,4,5] x"
#define RESULT   "float[N,3,4,5] y"

/* ---- merging ---- */

void test_transposes__two_become_one_or_none(void)
{
    CHECK_CASE("float[2,3,4] x", "float[3,4,2] y",
               "  a = Transpose<perm = [2, 0, 1]>(x)\n  b = Transpose<perm = [1, 0, 2]>(a)\n"
               "  y = Transpose<perm = [2, 1, 0]>(b)",
               "Transpose");
    CHECK_CASE(IMAGE, RESULT,
               "  r = Relu(x)\n  a = " TO_LAST "(r)\n  b = " TO_FIRST "(a)\n  y = Neg(b)",
               "Relu Neg");
    CHECK_CASE("float[2,3] x", "float[2,3] y", "  a = Transpose<perm = [0, 1]>(x)\n  y = Neg(a)",
               "Neg");
}

void test_transposes__the_first_stays_for_its_other_readers(void)
{
    CHECK_CASE("float[2,3] x", "float[3,2] y, float[2,3] z",
               "  y = Transpose(x)\n  b = Transpose(y)\n  z = Neg(b)", "Transpose Neg");
}

void test_transposes__outputs_keep_their_names(void)
{
    /* y cannot be called x */
    CHECK_CASE("float[2,3] x", "float[2,3] y", "  a = Transpose(x)\n  y = Transpose(a)",
               "Identity");
    CHECK_CASE("float[2,3] x", "float[2,3] y, float[2,3] z",
               "  n = Neg(x)\n  a = Transpose(n)\n  y = Transpose(a)\n  z = Transpose(a)",
               "Neg Identity");
}

void test_transposes__constants_are_transposed_once(void)
{
    CHECK_CASE("float[3,4] x, float[4,3] C", "float[3,4] y", "  c = Transpose(C)\n  y = Add(x, c)",
               "Add");
}

/* ---- through nodes ---- */

void test_transposes__cancel_through_elementwise_nodes(void)
{
    CHECK_CASE(IMAGE, RESULT,
               "  a = " TO_LAST "(x)\n  b = Relu(a)\n  c = Sigmoid(b)\n  y = " TO_FIRST "(c)",
               "Relu Sigmoid");
}

void test_transposes__constants_go_along(void)
{
    CHECK_CASE(IMAGE ", float[3] A, float[4,5,3] B, float[1] C, float D", RESULT,
               "  t = " TO_LAST "(x)\n  a = Mul(t, A)\n  b = Add(B, a)\n  c = Sub(C, b)\n"
               "  d = Div(c, D)\n  y = " TO_FIRST "(d)",
               "Mul Add Sub Div");
}

void test_transposes__cancel_through_residual_networks(void)
{
    CHECK_CASE("float[N,4,5,3] x, float[3,3,1,1] W, float[3,3,1,1] X", "float[N,4,5,3] y",
               "  a = " TO_FIRST "(x)\n  b = Conv(a, W)\n  c = " TO_LAST "(b)\n  d = Relu(c)\n"
               "  e = " TO_FIRST "(d)\n  f = Conv(e, X)\n  g = " TO_LAST "(f)\n"
               "  h = Add(g, d)\n  i = Relu(h)\n  j = " TO_FIRST "(i)\n"
               "  k = MaxPool<kernel_shape = [1, 1]>(j)\n  l = " TO_LAST "(k)\n  y = Add(l, i)",
               "Transpose Conv Relu Conv Add Relu MaxPool Add Transpose");
}

void test_transposes__cancel_through_concat_split_pad_and_slice(void)
{
    CHECK_CASE(IMAGE, "float[N,6,4,5] y",
               "  a = " TO_LAST "(x)\n  b = Relu(a)\n  c = Concat<axis = -1>(a, b)\n"
               "  y = " TO_FIRST "(c)",
               "Relu Concat");
    CHECK_CASE(IMAGE, "float[N,1,4,5] y, float[N,2,4,5] z",
               "  a = " TO_LAST "(x)\n  s = Constant<value_ints = [1, 2]>()\n"
               "  b, c = Split<axis = 3>(a, s)\n  y = " TO_FIRST "(b)\n  z = " TO_FIRST "(c)",
               "Constant Split");
    check(GRAPH_HEAD "main (" IMAGE ") => (float[N,3,6,10] y)\n"
                     "<int64[8] p = {0, 1, 2, 0, 0, 1, 3, 0}, float v = {7}> {\n"
                     "  a = " TO_LAST "(x)\n  b = Pad(a, p, v)\n  y = " TO_FIRST "(b)\n}",
          "Pad", 0);
    check(GRAPH_HEAD "main (" IMAGE ") => (float[N,3,5,6] y)\n"
                     "<int64[4] p = {0, 1, 1, 0}, int64[2] q = {-3, 2}, float v = {7}> {\n"
                     "  a = " TO_LAST "(x)\n  b = Pad(a, p, v, q)\n  y = " TO_FIRST "(b)\n}",
          "Pad", 0);
    check(GRAPH_HEAD "main (" IMAGE ") => (float[N,2,2,5] y)\n"
                     "<int32[2] s = {1, 1}, int32[2] e = {3, 9}, int32[2] q = {1, -1}> {\n"
                     "  a = " TO_LAST "(x)\n  b = Slice(a, s, e, q)\n  y = " TO_FIRST "(b)\n}",
          "Slice", 0);
    check(GRAPH_HEAD "main (" IMAGE ") => (float[2,3,2,5] y)\n"
                     "<int64[2] s = {1, 1}, int64[2] e = {3, 3}> {\n"
                     "  a = " TO_LAST "(x)\n  b = Slice(a, s, e)\n  y = " TO_FIRST "(b)\n}",
          "Slice", 0);
}

void test_transposes__cancel_through_softmax_and_sizes(void)
{
    CHECK_CASE(IMAGE, RESULT, "  a = " TO_LAST "(x)\n  b = Softmax(a)\n  y = " TO_FIRST "(b)",
               "Softmax");
    check(GRAPH_HEAD "main (" IMAGE ") => (float[N,3,8,5] y)\n<int64[4] r = {1, 2, 1, 1}> {\n"
                     "  a = " TO_LAST "(x)\n  b = Tile(a, r)\n  y = " TO_FIRST "(b)\n}",
          "Tile", 0);
    check(GRAPH_HEAD "main (float[2,1,4,5] x) => (float[2,6,4,5] y)\n<int64[2] r = {1, 6}> {\n"
                     "  a = " TO_LAST "(x)\n  b = Expand(a, r)\n  y = " TO_FIRST "(b)\n}",
          "Expand", 0);
    check(GRAPH_HEAD "main (" IMAGE ") => (" RESULT ")\n<int64 r = {1}> {\n"
                     "  a = " TO_LAST "(x)\n  b = CumSum(a, r)\n  y = " TO_FIRST "(b)\n}",
          "CumSum", 0);
}

void test_transposes__reductions_take_them_in(void)
{
    check(GRAPH_HEAD "main (" IMAGE ") => (float[N,3] y)\n<int64[2] r = {1, 2}> {\n"
                     "  a = " TO_LAST "(x)\n  y = ReduceMax<keepdims = 0>(a, r)\n}",
          "ReduceMax", 0);
    check(GRAPH_HEAD "main (" IMAGE ") => (float[N,3,1,1] y)\n<int64[2] r = {1, -2}> {\n"
                     "  a = " TO_LAST "(x)\n  b = ReduceMean(a, r)\n  y = " TO_FIRST "(b)\n}",
          "ReduceMean", 1e-6);
    check(GRAPH_HEAD "main (" IMAGE ") => (float[N,3,5] y)\n<int64[1] r = {1}> {\n"
                     "  a = " TO_LAST "(x)\n  b = ReduceSum<keepdims = 0>(a, r)\n"
                     "  y = Transpose<perm = [0, 2, 1]>(b)\n}",
          "ReduceSum", 1e-6);
    CHECK_SUMS(IMAGE, "float y", "  a = " TO_LAST "(x)\n  y = ReduceSum<keepdims = 0>(a)",
               "ReduceSum");
    CHECK_CASE(IMAGE, "int64[N,4,5] y",
               "  a = " TO_LAST "(x)\n  y = ArgMax<axis = -1, keepdims = 0>(a)", "ArgMax");
}

void test_transposes__cancel_through_added_and_removed_axes(void)
{
    check(GRAPH_HEAD "main (float[2,3,4] x) => (float[2,1,3,4] y)\n<int64[1] r = {2}> {\n"
                     "  a = Transpose<perm = [0, 2, 1]>(x)\n  b = Unsqueeze(a, r)\n"
                     "  c = Relu(b)\n  y = Transpose<perm = [0, 2, 3, 1]>(c)\n}",
          "Unsqueeze Relu Reshape", 0);
    check(GRAPH_HEAD "main (float[2,3,1,4] x) => (float[2,3,4] y)\n<int64[1] r = {1}> {\n"
                     "  a = Transpose<perm = [0, 2, 3, 1]>(x)\n  b = Squeeze(a, r)\n"
                     "  c = Relu(b)\n  y = Transpose<perm = [0, 2, 1]>(c)\n}",
          "Squeeze Relu", 0);
}

void test_transposes__layer_norm_over_axes_that_stay(void)
{
    CHECK_CASE("float[2,3,4,5] x, float[5] S, float[5] B", "float[2,3,4,5] y",
               "  a = Transpose<perm = [0, 2, 1, 3]>(x)\n"
               "  b = LayerNormalization(a, S, B)\n"
               "  y = Transpose<perm = [0, 2, 1, 3]>(b)",
               "LayerNormalization");
    CHECK_CASE("float[2,3,4,5] x, float[3] S, float[3] B", "float[2,3,4,5] y",
               "  a = " TO_LAST "(x)\n  b = LayerNormalization(a, S, B)\n  y = " TO_FIRST "(b)",
               "Transpose LayerNormalization Transpose");
}

/* ---- where they stay ---- */

void test_transposes__stay_where_nothing_is_gained(void)
{
    CHECK_CASE(IMAGE, "float[N,4,5,3] y", "  a = " TO_LAST "(x)\n  y = Relu(a)", "Transpose Relu");
    CHECK_CASE(IMAGE, "float[N,4,5,3] y", "  a = Relu(x)\n  y = " TO_LAST "(a)", "Relu Transpose");
    /* one would go, one would come */
    CHECK_CASE(IMAGE ", float[N,4,5,3] z", RESULT,
               "  a = " TO_LAST "(x)\n  b = Add(a, z)\n  y = " TO_FIRST "(b)", "Transpose Add");
    CHECK_CASE(IMAGE ", float[N,4,5,3] z", "float[N,4,5,3] y",
               "  a = " TO_LAST "(x)\n  y = Add(a, z)", "Transpose Add");
}

void test_transposes__move_to_where_they_are_small(void)
{
    check(GRAPH_HEAD "main (float[2,30,40,50] x) => (float[2,1,40,50] y)\n"
                     "<int64[1] s = {0}, int64[1] e = {1}, int64[1] q = {1}> {\n"
                     "  a = Transpose<perm = [0, 1, 3, 2]>(x)\n  b = Slice(a, s, e, q)\n"
                     "  c = Relu(b)\n  y = Sigmoid(c)\n}",
          "Slice Transpose Relu Sigmoid", 0);
}

void test_transposes__random_nodes_stay_as_they_are(void)
{
    check(GRAPH_HEAD "main (" IMAGE ") => (" RESULT ")\n<float r = {0.5}, bool on = {1}> {\n"
                     "  a = " TO_LAST "(x)\n  b = Dropout<seed = 3>(a, r, on)\n"
                     "  y = " TO_FIRST "(b)\n}",
          "Transpose Dropout Transpose", 0);
}

void test_transposes__operands_of_lower_rank_that_are_not_constant_hinder(void)
{
    CHECK_CASE(IMAGE ", float[3] s", RESULT,
               "  a = " TO_LAST "(x)\n  b = Mul(a, s)\n  y = " TO_FIRST "(b)",
               "Transpose Mul Transpose");
    CHECK_CASE(IMAGE ", float s", RESULT,
               "  a = " TO_LAST "(x)\n  b = Mul(a, s)\n  y = " TO_FIRST "(b)", "Mul");
}

/* ---- products, shapes, bodies ---- */

void test_transposes__matrix_products_read_them_for_nothing(void)
{
    CHECK_SUMS("float[4,3] a, float[5,4] b", "float[3,5] y",
               "  s = Transpose(a)\n  t = Transpose(b)\n  y = MatMul(s, t)", "Gemm");
    CHECK_SUMS("float[3,4] a, float[5,4] b, float[5] c", "float[3,5] y",
               "  s = Transpose(a)\n  t = Transpose(b)\n"
               "  y = Gemm<transA = 1, alpha = 2.0>(s, t, c)",
               "Gemm");
    /* a stack of matrices */
    CHECK_CASE("float[2,4,3] a, float[2,4,5] b", "float[2,3,5] y",
               "  s = Transpose<perm = [0, 2, 1]>(a)\n  y = MatMul(s, b)", "Transpose MatMul");
}

void test_transposes__a_product_is_computed_the_other_way_round(void)
{
    CHECK_SUMS("float[3,4] a, float[4,5] b", "float[5,3] y",
               "  p = MatMul(a, b)\n  y = Transpose(p)", "Gemm");
    CHECK_SUMS("float[4,3] a, float[4,5] b", "float[5,3] y",
               "  p = Gemm<transA = 1, alpha = 2.0>(a, b)\n  y = Transpose(p)", "Gemm");
    CHECK_SUMS("float[3,4] a, float[5,4] b", "float[5,3] y",
               "  p = Gemm<transB = 1>(a, b)\n  y = Transpose(p)", "Gemm");
    /* what is added would have to be transposed; another reader wants it as it is */
    CHECK_CASE("float[3,4] a, float[4,5] b, float[5] c", "float[5,3] y",
               "  p = Gemm(a, b, c)\n  y = Transpose(p)", "Gemm Transpose");
    CHECK_CASE("float[3,4] a, float[4,3] b", "float[3,3] y",
               "  p = MatMul(a, b)\n  t = Transpose(p)\n  y = Sub(p, t)", "MatMul Transpose Sub");
}

void test_transposes__moving_axes_of_size_1_is_a_reshape(void)
{
    CHECK_CASE("float[2,1,4,5] x", "float[2,4,5,1] y", "  y = " TO_LAST "(x)", "Reshape");
    CHECK_CASE("float[N,1,4,5] x", "float[N,4,5,1] y", "  y = " TO_LAST "(x)", "Reshape");
    CHECK_CASE("float[N,1,M,5] x", "float[N,M,5,1] y", "  y = " TO_LAST "(x)", "Transpose");
    CHECK_CASE("float[0,1,4,5] x", "float[0,4,5,1] y", "  y = " TO_LAST "(x)", "Transpose");
}

void test_transposes__shapes_are_read_before_them(void)
{
    CHECK_CASE(IMAGE, RESULT ", int64[4] s, int64[2] t",
               "  a = " TO_LAST "(x)\n  b = Relu(a)\n  s = Shape(b)\n"
               "  t = Shape<start = 1, end = -1>(b)\n  y = " TO_FIRST "(b)",
               "Relu Shape Gather Shape Gather");
}

void test_transposes__bodies_are_worked_on_by_themselves(void)
{
    CHECK_CASE("bool c, " IMAGE, "float[N,3,4,5] y",
               "  a = " TO_LAST "(x)\n"
               "  y = If(c)<then_branch = t () => (float[N,3,4,5] p) {\n"
               "    b = Relu(a)\n    p = " TO_FIRST "(b) },\n"
               "  else_branch = e () => (float[N,3,4,5] q) {\n"
               "    d = " TO_LAST "(x)\n    f = Neg(d)\n    q = " TO_FIRST "(f) }>",
               "Transpose If(Relu Transpose)(Neg)");
}

void test_transposes__constants_keep_to_the_memory_limit(void)
{
    current = (struct before_after){
        cm_pass_transposes,
        GRAPH_HEAD "main (" IMAGE ", float[4,5,3] B) => (" RESULT ") {\n"
                   "  t = " TO_LAST "(x)\n  b = Add(B, t)\n  y = " TO_FIRST "(b)\n}",
        "Transpose Add Transpose",
        0,
        {.memory_limit = 100}};
    check_in_arena(run_current);
}

static void long_chain(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_new(arena);
    const struct cm_dim dims[2] = {CM_DIM(3), CM_DIM(4)};
    cm_value x = cm_graph_add_input(graph, CM_STR("x"), cm_type_tensor(arena, CM_FLOAT, 2, dims));
    struct cm_error err = {0};
    for (int i = 0; i < 5000; i++) {
        x = GRAPH_ADD(graph, "Relu", GRAPH_ADD(graph, "Transpose", x));
        x = GRAPH_ADD(graph, "Transpose", GRAPH_ADD(graph, "Neg", x));
        x = GRAPH_ADD(graph, "Add", x, x);
    }
    cm_graph_set_outputs(graph, &x, 1);
    CHECK_OK(cm_pass_transposes(graph, &(struct cm_pass_options){0}, &err), &err);
    CHECK_INT(graph->n_nodes, 15000);
}

void test_transposes__long_chains_take_one_search(void)
{
    check_in_arena(long_chain);
}

/* ---- parts ---- */

static void cheapest_cut(struct cm_arena *arena)
{
    /* near - a - b - far, the middle being cheapest; c hangs on a */
    struct cm_min_cut *cut = cm_min_cut_new(arena, 3);
    const size_t a = CM_CUT_FIRST, b = a + 1, c = a + 2;
    uint64_t budget = 1000;
    int64_t weight;
    cm_min_cut_net(cut, 5);
    cm_min_cut_join(cut, CM_CUT_NEAR);
    cm_min_cut_join(cut, a);
    cm_min_cut_net(cut, 3);
    cm_min_cut_join(cut, a);
    cm_min_cut_join(cut, b);
    cm_min_cut_join(cut, c);
    cm_min_cut_net(cut, 4);
    cm_min_cut_join(cut, b);
    cm_min_cut_join(cut, CM_CUT_FAR);
    CHECK(cm_min_cut_solve(cut, &budget, &weight));
    CHECK_INT(weight, 3);
    CHECK(cm_min_cut_is_near(cut, a));
    CHECK(!cm_min_cut_is_near(cut, b));
    CHECK(!cm_min_cut_is_near(cut, c));
    budget = 2;
    CHECK(!cm_min_cut_solve(cut, &budget, &weight));
}

void test_transposes__the_cut_is_the_cheapest(void)
{
    check_in_arena(cheapest_cut);
}

void test_transposes__permutations_compose_and_invert(void)
{
    const struct cm_perm p = {3, {2, 0, 1}}, q = {3, {1, 0, 2}};
    const struct cm_perm both = cm_perm_compose(&p, &q), inverse = cm_perm_inverse(&p);
    CHECK(cm_perm_equal(&both, &(struct cm_perm){3, {0, 2, 1}}));
    const struct cm_perm none = cm_perm_compose(&p, &inverse);
    CHECK(cm_perm_is_identity(&none));
    CHECK(!cm_perm_is_identity(&p));
}
