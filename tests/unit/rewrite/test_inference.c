/* Scaling and shifting by constants goes into the product before it, unless somebody would notice.
 */
// SPDX-License-Identifier: Apache-2.0
#include "before_after.h"

#define NORM_PARAMETERS(n) "float[" n "] S, float[" n "] B, float[" n "] M, float[" n "] V"

/* The graph's inputs, outputs and nodes; operators afterwards. */
#define CHECK_CASE(inputs, outputs, nodes, expected_)                                              \
    check((const char *)GRAPH_HEAD "main (" inputs ") => (" outputs ") {\n" nodes "\n}",           \
          expected_, (struct cm_pass_options){0}, 1e-5)

struct one {
    const char *text, *expected;
    struct cm_pass_options options;
    double tolerance;
};
static struct one current;

static void run_current(struct cm_arena *arena)
{
    before_after_check(arena, &(struct before_after){.pass = cm_pass_inference,
                                                     .text = current.text,
                                                     .expected = current.expected,
                                                     .tolerance = current.tolerance,
                                                     .options = current.options});
}

static void check(const char *text, const char *expected, struct cm_pass_options options,
                  double tolerance)
{
    current = (struct one){text, expected, options, tolerance};
    check_in_arena(run_current);
}

/* ---- BatchNormalization ---- */

void test_inference__batch_normalization_goes_into_convolutions(void)
{
    CHECK_CASE("float[2,3,5,5] x, float[4,3,3,3] W, float[4] C, " NORM_PARAMETERS("4"),
               "float[2,4,3,3] y", "  c = Conv(x, W, C)\n  y = BatchNormalization(c, S, B, M, V)",
               "Conv");
    CHECK_CASE("float[2,4,5,5] x, float[4,2,3,3] W, " NORM_PARAMETERS("4"), "float[2,4,2,2] y",
               "  c = Conv<group = 2, strides = [2, 2]>(x, W)\n"
               "  y = BatchNormalization<epsilon = 0.1>(c, S, B, M, V)",
               "Conv");
    CHECK_CASE("float[2,4,5] x, float[4,3,2] W, float[6] C, " NORM_PARAMETERS("6"),
               "float[2,6,6] y",
               "  c = ConvTranspose<group = 2>(x, W, C)\n"
               "  y = BatchNormalization(c, S, B, M, V)",
               "ConvTranspose");
}

void test_inference__batch_normalization_goes_into_matrix_products(void)
{
    CHECK_CASE("float[N,5] x, float[5,4] W, float[1,4] C, " NORM_PARAMETERS("4"), "float[N,4] y",
               "  c = Gemm<alpha = 0.5, beta = 2.0>(x, W, C)\n"
               "  y = BatchNormalization(c, S, B, M, V)",
               "Gemm");
    CHECK_CASE("float[N,5] x, float[4,5] W, float[1] C, " NORM_PARAMETERS("4"), "float[N,4] y",
               "  c = Gemm<transB = 1, beta = 3.0>(x, W, C)\n"
               "  y = BatchNormalization(c, S, B, M, V)",
               "Gemm");
    CHECK_CASE("float[N,5] x, float[5,4] W, " NORM_PARAMETERS("4"), "float[N,4] y",
               "  c = MatMul(x, W)\n  y = BatchNormalization(c, S, B, M, V)", "Gemm");
    /* axis 1 of a stack of matrices is no channel of the product */
    CHECK_CASE("float[2,4,5] x, float[5,4] W, " NORM_PARAMETERS("4"), "float[2,4,4] y",
               "  c = MatMul(x, W)\n  y = BatchNormalization(c, S, B, M, V)",
               "MatMul BatchNormalization");
}

void test_inference__keeps_half_precision(void)
{
    const char *text =
        GRAPH_HEAD "main (float16[2,3,5] x, float16[4,3,3] W, float16[4] S, float16[4] B, "
                   "float16[4] M, float16[4] V) => (float16[2,4,3] y) {\n"
                   "  c = Conv(x, W)\n  y = BatchNormalization(c, S, B, M, V)\n}";
    check(text, "Conv", (struct cm_pass_options){0}, 4e-3);
    /* the bits of 2^-24: weights that small have no digits left in float16 */
    check(GRAPH_HEAD "main (float16[2,3,5] x, float16[4,3,3] W) => (float16[2,4,3] y)\n"
                     "<float16 tiny = {1}> {\n  c = Conv(x, W)\n  y = Mul(c, tiny)\n}",
          "Conv Mul", (struct cm_pass_options){0}, 0);
}

void test_inference__a_product_that_others_read_stays(void)
{
    CHECK_CASE("float[2,3,5,5] x, float[4,3,3,3] W, " NORM_PARAMETERS("4"),
               "float[2,4,3,3] y, float[2,4,3,3] c",
               "  c = Conv(x, W)\n  y = BatchNormalization(c, S, B, M, V)",
               "Conv BatchNormalization");
    CHECK_CASE("float[2,3,5,5] x, float[4,3,3,3] W, float[1,4,1,1] S",
               "float[2,4,3,3] y, float[2,4,3,3] z",
               "  c = Conv(x, W)\n  y = Mul(c, S)\n  z = Neg(c)", "Conv Mul Neg");
}

void test_inference__what_is_not_constant_stays(void)
{
    CHECK_CASE("float[2,3,5,5] x, float[4,3,3,3] w, " NORM_PARAMETERS("4"), "float[2,4,3,3] y",
               "  c = Conv(x, w)\n  y = BatchNormalization(c, S, B, M, V)",
               "Conv BatchNormalization");
    CHECK_CASE("float[2,3,5,5] x, float[4,3,3,3] W, float[4] C, float[4] s, float[4] B, float[4] "
               "M, float[4] V",
               "float[2,4,3,3] y", "  c = Conv(x, W, C)\n  y = BatchNormalization(c, s, B, M, V)",
               "Conv BatchNormalization");
    CHECK_CASE("float[N,5] x, float[5,4] W, float[N,4] c, float[4] S", "float[N,4] y",
               "  g = Gemm(x, W, c)\n  y = Mul(g, S)", "Gemm Mul");
}

void test_inference__batch_normalization_in_training_mode_stays(void)
{
    CHECK_CASE("float[2,3,5,5] x, float[4,3,3,3] W, " NORM_PARAMETERS("4"),
               "float[2,4,3,3] y, float[4] m, float[4] v",
               "  c = Conv(x, W)\n"
               "  y, m, v = BatchNormalization<training_mode = 1>(c, S, B, M, V)",
               "Conv BatchNormalization");
}

void test_inference__batch_normalization_beside_elementwise_nodes_is_spelled_out(void)
{
    CHECK_CASE("float[2,3,5,5] x, " NORM_PARAMETERS("3"), "float[2,3,5,5] y",
               "  n = BatchNormalization(x, S, B, M, V)\n  y = Relu(n)", "Mul Add Relu");
    CHECK_CASE("double[N,3] x, double[3] S, double[3] B, double[3] M, double[3] V", "double[N,3] y",
               "  r = Relu(x)\n  y = BatchNormalization(r, S, B, M, V)", "Relu Mul Add");
    /* nothing to fuse it with */
    CHECK_CASE("float[2,3,5,5] x, float[4,3,3,3] W, " NORM_PARAMETERS("3"), "float[2,4,3,3] y",
               "  n = BatchNormalization(x, S, B, M, V)\n  y = Conv(n, W)",
               "BatchNormalization Conv");
}

/* ---- arithmetic ---- */

void test_inference__arithmetic_per_channel_goes_into_the_product(void)
{
    CHECK_CASE("float[2,3,5,5] x, float[4,3,3,3] W, float[4,1,1] A, float[1,4,1,1] B, float[1] C, "
               "float[4,1,1] V, float D",
               "float[2,4,3,3] y",
               "  c = Conv(x, W)\n  a = Mul(A, c)\n  b = Add(a, B)\n  d = Sub(C, b)\n"
               "  e = Div(d, V)\n  y = Sub(e, D)",
               "Conv");
    CHECK_CASE("float[2,7,5] x, float[5,4] W, float[4] A", "float[2,7,4] y",
               "  c = MatMul(x, W)\n  y = Mul(c, A)", "MatMul");
}

void test_inference__arithmetic_along_another_axis_stays(void)
{
    CHECK_CASE("float[2,3,6,6] x, float[4,3,3,3] W, float[4] A", "float[2,4,4,4] y",
               "  c = Conv(x, W)\n  y = Mul(c, A)", "Conv Mul");
    CHECK_CASE("float[2,3,6,6] x, float[1,3,3,3] W, float[4,1,1] A", "float[2,4,4,4] y",
               "  c = Conv(x, W)\n  y = Add(c, A)", "Conv Add");
    CHECK_CASE("float[2,3,6,6] x, float[4,3,3,3] W, float[1,1,4,1,1] A", "float[1,2,4,4,4] y",
               "  c = Conv(x, W)\n  y = Add(c, A)", "Conv Add");
    CHECK_CASE("float[N,5] x, float[5,4] W, float[4] V", "float[N,4] y",
               "  c = MatMul(x, W)\n  y = Div(V, c)", "MatMul Div");
}

void test_inference__infinities_stay_where_they_are(void)
{
    check(GRAPH_HEAD "main (float[3,5] x, float[5,4] W) => (float[3,4] y)\n"
                     "<float zero = {0}> {\n  c = MatMul(x, W)\n  y = Div(c, zero)\n}",
          "MatMul Div", (struct cm_pass_options){0}, 0);
}

/* ---- MatMul and Add ---- */

void test_inference__matmul_and_add_become_gemm(void)
{
    CHECK_CASE("float[N,5] x, float[5,4] W, float[4] B", "float[N,4] y",
               "  c = MatMul(x, W)\n  y = Add(c, B)", "Gemm");
    CHECK_CASE("double[N,5] x, double[5,4] W, double[1,4] B", "double[N,4] y",
               "  c = MatMul(x, W)\n  y = Sub(B, c)", "Gemm");
}

void test_inference__batched_matmul_and_add_stay(void)
{
    CHECK_CASE("float[2,7,5] x, float[5,4] W, float[4] B", "float[2,7,4] y",
               "  c = MatMul(x, W)\n  y = Add(c, B)", "MatMul Add");
    CHECK_CASE("float[5] x, float[5,4] W, float[4] B", "float[4] y",
               "  c = MatMul(x, W)\n  y = Add(c, B)", "MatMul Add");
    CHECK_CASE("int64[3,5] x, int64[5,4] W, int64[4] B", "int64[3,4] y",
               "  c = MatMul(x, W)\n  y = Add(c, B)", "MatMul Add");
}

/* ---- Dropout ---- */

void test_inference__dropout_goes(void)
{
    CHECK_CASE("float[N,5] x", "float[N,5] y", "  d = Dropout(x)\n  y = Neg(d)", "Neg");
    CHECK_CASE("float[N,5] x", "float[N,5] y", "  n = Neg(x)\n  y = Dropout(n)", "Neg");
    check(GRAPH_HEAD "main (float[5] x) => (float[5] y)\n<float ratio = {0.5}, bool on = {0}> {\n"
                     "  d = Dropout(x, ratio, on)\n  y = Neg(d)\n}",
          "Neg", (struct cm_pass_options){0}, 0);
}

void test_inference__dropout_that_drops_stays(void)
{
    check(GRAPH_HEAD "main (float[5] x) => (float[5] y)\n<float ratio = {0.5}, bool on = {1}> {\n"
                     "  d = Dropout(x, ratio, on)\n  y = Neg(d)\n}",
          "Dropout Neg", (struct cm_pass_options){0}, 0);
    CHECK_CASE("float[N,5] x", "float[N,5] y, bool[N,5] m", "  y, m = Dropout(x)", "Dropout");
    /* the graph's output cannot be called as its input */
    CHECK_CASE("float[N,5] x", "float[N,5] y", "  y = Dropout(x)", "Dropout");
}

/* ---- limits, bodies, training ---- */

void test_inference__does_nothing_in_training(void)
{
    check(GRAPH_HEAD "main (float[3,5] x, float[5,4] W, float[4] B) => (float[3,4] y) {\n"
                     "  c = MatMul(x, W)\n  y = Add(c, B)\n}",
          "MatMul Add", (struct cm_pass_options){.training = true}, 0);
}

void test_inference__new_weights_keep_to_the_memory_limit(void)
{
    const char *text = GRAPH_HEAD "main (float[3,5] x, float[5,4] W, float[4] B, float[4,6] X, "
                                  "float[6] C) => (float[3,6] y) {\n"
                                  "  c = MatMul(x, W)\n  a = Mul(c, B)\n  d = MatMul(a, X)\n"
                                  "  y = Mul(d, C)\n}";
    check(text, "MatMul MatMul", (struct cm_pass_options){.memory_limit = 80 + 96}, 1e-5);
    check(text, "MatMul MatMul Mul", (struct cm_pass_options){.memory_limit = 80 + 95}, 1e-5);
    /* a constant that is replaced in turn makes room */
    check(GRAPH_HEAD "main (float[3,5] x, float[5,4] W, float[4] A, float[4] B, float[4] C) => "
                     "(float[3,4] y) {\n  c = MatMul(x, W)\n  a = Mul(c, A)\n  b = Mul(a, B)\n"
                     "  y = Mul(b, C)\n}",
          "MatMul", (struct cm_pass_options){.memory_limit = 160}, 1e-5);
}

void test_inference__works_in_bodies(void)
{
    CHECK_CASE("bool c, float[3,5] x, float[5,4] W, float[4] B", "float[3,4] y",
               "  y = If(c)<then_branch = t () => (float[3,4] p) {\n"
               "    m = MatMul(x, W)\n    p = Add(m, B) },\n"
               "  else_branch = e () => (float[3,4] q) {\n"
               "    k = MatMul(x, W)\n    l = Dropout(k)\n    q = Mul(l, B) }>",
               "If(Gemm)(MatMul)");
}

/* ---- channel shuffles ---- */

/* Nodes that nobody reads any more are removed after all passes. */
static void check_shuffle(struct cm_arena *arena, const char *results, const char *perm,
                          const char *last, const char *expected)
{
    const struct cm_str text =
        cm_arena_printf(arena,
                        "%smain (float[2,12,5] x) => (%s) <int64[4] s = {2,3,4,5},"
                        " int64[3] d = {2,12,5}, int64[2] f = {2,60}, int64[1] b = {1},"
                        " int64[1] e = {5}, int64[1] m = {-6}, int64[1] l = {-1}> {\n"
                        "  a = Reshape(x, s)\n  t = Transpose<perm = [%s]>(a)\n%s\n}",
                        GRAPH_HEAD, results, perm, last);
    before_after_check(
        arena,
        &(struct before_after){.pass = cm_pass_inference, .text = text.data, .expected = expected});
}

static void check_shuffles(struct cm_arena *arena)
{
    check_shuffle(arena, "float[2,12,5] y", "0,2,1,3", "  y = Reshape(t, d)",
                  "Reshape Transpose Gather Reshape");
    check_shuffle(arena, "float[2,4,5] y, float[2,5,5] z", "0,2,1,3",
                  "  j = Reshape(t, d)\n  y = Slice(j, b, e, b)\n  z = Slice(j, m, l, b)",
                  "Reshape Transpose Reshape Gather Slice Gather Slice");
    check_shuffle(arena, "float[2,12,5] y, float[2,4,5] z", "0,2,1,3",
                  "  y = Reshape(t, d)\n  z = Slice(y, b, e, b)",
                  "Reshape Transpose Gather Reshape Slice");
}

void test_inference__a_channel_shuffle_is_a_choice_of_channels(void)
{
    check_in_arena(check_shuffles);
}

static void check_other_exchanges(struct cm_arena *arena)
{
    check_shuffle(arena, "float[2,12,5] y", "0,1,3,2", "  y = Reshape(t, d)",
                  "Reshape Transpose Reshape");
    check_shuffle(arena, "float[2,60] y", "0,2,1,3", "  y = Reshape(t, f)",
                  "Reshape Transpose Reshape");
}

void test_inference__other_exchanges_stay(void)
{
    check_in_arena(check_other_exchanges);
}
