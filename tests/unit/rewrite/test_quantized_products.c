/* Products of dequantized codes become products of codes, unless somebody would notice. */
// SPDX-License-Identifier: Apache-2.0
#include "before_after.h"

struct one {
    const char *text, *expected;
    struct cm_pass_options options;
    double tolerance;
};
static struct one current;

static void run_current(struct cm_arena *arena)
{
    before_after_check(arena, &(struct before_after){.pass = cm_pass_quantized,
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

#define NUMBERS                                                                                    \
    "<float s = {0.05}, float t = {0.02}, float v = {0.4}, uint8 z = {3}, uint8 low = {0}, "       \
    "int8 w = {1}, int8 least = {-128}, float[1] s1 = {0.05}, float[4] each = {0.1, 0.2, 0.3, "    \
    "0.4}, int8[4] zeros = {0, 1, 0, 2}, int32[4] bias = {100, -7, 0, 31}, "                       \
    "float[4] units = {0.005, 0.01, 0.015, 0.02}, float unit = {0.001}>"
#define TEXT(inputs, outputs, nodes)                                                               \
    GRAPH_HEAD "main (" inputs ") => (" outputs ") " NUMBERS " {\n" nodes "\n}"
#define CHECK_CASE(inputs, outputs, nodes, expected, tolerance)                                    \
    check((const char *)TEXT(inputs, outputs, nodes), expected, (struct cm_pass_options){0},       \
          tolerance)
#define STAYS(inputs, outputs, nodes, operators) CHECK_CASE(inputs, outputs, nodes, operators, 0)

/* ---- dynamic products ---- */

#define DYNAMIC                                                                                    \
    "q, as, az = DynamicQuantizeLinear(x)\n f = Mul(as, t)\n i = MatMulInteger(q, W, az)\n"        \
    " c = Cast<to = 1>(i)\n "

void test_quantized_products__dynamic_products_take_their_scales_and_bias(void)
{
    CHECK_CASE("float[N,5] x, uint8[5,4] W, float[4] B", "float[N,4] y",
               DYNAMIC "m = Mul(c, f)\n y = Add(m, B)",
               "DynamicQuantizeLinear MatMulIntegerToFloat", 0);
    CHECK_CASE("float[2,N,5] x, int8[5,4] W", "float[2,N,4] y", DYNAMIC "y = Mul(f, c)",
               "DynamicQuantizeLinear MatMulIntegerToFloat", 0);
    /* a scale for each column, on either side */
    CHECK_CASE("float[N,5] x, int8[5,4] W", "float[N,4] y",
               "q, as, az = DynamicQuantizeLinear(x)\n f = Mul(each, as)\n"
               "i = MatMulInteger(q, W, az)\n c = Cast<to = 1>(i)\n y = Mul(c, f)",
               "DynamicQuantizeLinear MatMulIntegerToFloat", 0);
    /* one scale that is no product */
    CHECK_CASE("uint8[N,5] x, uint8[5,4] W", "float[N,4] y",
               "i = MatMulInteger(x, W, z)\n c = Cast<to = 1>(i)\n y = Mul(c, each)",
               "MatMulIntegerToFloat", 0);
}

void test_quantized_products__other_dynamic_products_stay(void)
{
    /* others read what is between */
    STAYS("float[N,5] x, uint8[5,4] W", "float[N,4] y, int32[N,4] i", DYNAMIC "y = Mul(c, f)",
          "DynamicQuantizeLinear Mul MatMulInteger Cast Mul");
    /* a bias that is no row */
    CHECK_CASE("float[3,5] x, uint8[5,4] W, float[3,4] b", "float[3,4] y",
               DYNAMIC "m = Mul(c, f)\n y = Add(m, b)",
               "DynamicQuantizeLinear MatMulIntegerToFloat Add", 0);
    STAYS("float[N,5] x, uint8[5,4] W, float[3,1,1] u", "float[3,N,4] y", DYNAMIC "y = Mul(c, u)",
          "DynamicQuantizeLinear Mul MatMulInteger Cast Mul");
    /* a vector */
    STAYS("float[5] x, uint8[5,4] W", "float[4] y", DYNAMIC "y = Mul(c, f)",
          "DynamicQuantizeLinear Mul MatMulInteger Cast Mul");
    check(TEXT("float[N,5] x, uint8[5,4] W", "float[N,4] y", DYNAMIC "y = Mul(c, f)"),
          "DynamicQuantizeLinear Mul MatMulInteger Cast Mul",
          (struct cm_pass_options){.training = true}, 0);
    check(TEXT("float[N,5] x, uint8[5,4] W", "float[N,4] y", DYNAMIC "y = Mul(c, f)"),
          "DynamicQuantizeLinear Mul MatMulInteger Cast Mul",
          (struct cm_pass_options){.for_file = true}, 0);
}

/* ---- products of dequantized operands ---- */

void test_quantized_products__products_of_dequantized_matrices(void)
{
    CHECK_CASE("uint8[N,5] x, int8[5,4] W, float[4] B", "float[N,4] y",
               "a = DequantizeLinear(x, s, z)\n b = DequantizeLinear<axis = 1>(W, each, zeros)\n"
               "m = MatMul(a, b)\n y = Add(B, m)",
               "MatMulIntegerToFloat", 1e-6);
    CHECK_CASE("uint8[2,N,5] x, uint8[5,4] W", "float[2,N,4] y",
               "a = DequantizeLinear(x, s1, z)\n b = DequantizeLinear(W, t)\n y = MatMul(a, b)",
               "MatMulIntegerToFloat", 1e-6);
    CHECK_CASE("uint8[2,3,5] x, uint8[2,5,4] v2", "float[2,3,4] y",
               "a = DequantizeLinear(x, s, z)\n b = DequantizeLinear(v2, t)\n y = MatMul(a, b)",
               "MatMulIntegerToFloat", 1e-6);
    CHECK_CASE("uint8[N,5] x, int8[4,5] W", "float[N,4] y",
               "a = DequantizeLinear(x, s, z)\n b = DequantizeLinear<axis = 0>(W, each)\n"
               "c = DequantizeLinear<axis = 0>(bias, units)\n y = Gemm<transB = 1>(a, b, c)",
               "DequantizeLinear Transpose MatMulIntegerToFloat", 1e-6);
}

void test_quantized_products__other_products_of_dequantized_matrices_stay(void)
{
    /* scales along rows */
    STAYS("uint8[4,4] x, int8[4,4] W", "float[4,4] y",
          "a = DequantizeLinear<axis = 0>(x, each)\n b = DequantizeLinear(W, t)\n y = MatMul(a, b)",
          "DequantizeLinear DequantizeLinear MatMul");
    STAYS("uint8[N,4] x, int8[4,4] W", "float[N,4] y",
          "a = DequantizeLinear(x, s)\n b = DequantizeLinear<axis = 0>(W, each)\n y = MatMul(a, b)",
          "DequantizeLinear DequantizeLinear MatMul");
    /* codes of 16 bits */
    STAYS("uint8[N,4] x, int8[4,4] W", "float[N,4] y",
          "c = Cast<to = 4>(x)\n a = DequantizeLinear(c, s)\n b = DequantizeLinear(W, t)\n"
          "y = MatMul(a, b)",
          "Cast DequantizeLinear DequantizeLinear MatMul");
    /* batches that are broadcast */
    STAYS("uint8[1,3,5] x, uint8[2,5,4] v2", "float[2,3,4] y",
          "a = DequantizeLinear(x, s, z)\n b = DequantizeLinear(v2, t)\n y = MatMul(a, b)",
          "DequantizeLinear DequantizeLinear MatMul");
    STAYS("uint8[N,5] x, int8[5,4] W, float[4] B", "float[N,4] y",
          "a = DequantizeLinear(x, s, z)\n b = DequantizeLinear(W, t)\n"
          "y = Gemm<alpha = 0.5>(a, b, B)",
          "DequantizeLinear DequantizeLinear Gemm");
}

/* ---- convolutions ---- */

#define CONV_IN  "uint8[1,2,5,5] x, int8[4,2,3,3] W"
#define CONV_OUT "uint8[1,4,3,3] y"

void test_quantized_products__convolutions_between_codes(void)
{
    /* differences of one code in 255 */
    CHECK_CASE(CONV_IN, CONV_OUT,
               "a = DequantizeLinear(x, s, z)\n b = DequantizeLinear<axis = 0>(W, each)\n"
               "d = DequantizeLinear<axis = 0>(bias, units)\n c = Conv(a, b, d)\n"
               "y = QuantizeLinear(c, v, z)",
               "QLinearConv", 0.005);
    CHECK_CASE(CONV_IN ", float[4] B", CONV_OUT,
               "a = DequantizeLinear(x, s)\n b = DequantizeLinear(W, t, w)\n c = Conv(a, b, B)\n"
               "r = Relu(c)\n y = QuantizeLinear(r, v, low)",
               "QLinearConv", 0.005);
    CHECK_CASE(CONV_IN, "int8[1,4,5,5] y",
               "a = DequantizeLinear(x, s, z)\n b = DequantizeLinear(W, t)\n"
               "c = Conv<pads = [1, 1, 1, 1]>(a, b)\n r = Relu(c)\n"
               "y = QuantizeLinear(r, v, least)",
               "QLinearConv", 0.01);
    /* the codes are read by others too */
    CHECK_CASE(CONV_IN, CONV_OUT ", float[1,2,5,5] a",
               "a = DequantizeLinear(x, s, z)\n b = DequantizeLinear(W, t)\n c = Conv(a, b)\n"
               "y = QuantizeLinear(c, v, z)",
               "DequantizeLinear QLinearConv", 0.005);
}

void test_quantized_products__other_convolutions_stay(void)
{
    /* Relu counts where its zero is not the lowest code */
    STAYS(CONV_IN, CONV_OUT,
          "a = DequantizeLinear(x, s, z)\n b = DequantizeLinear(W, t)\n c = Conv(a, b)\n"
          "r = Relu(c)\n y = QuantizeLinear(r, v, z)",
          "DequantizeLinear DequantizeLinear Conv Relu QuantizeLinear");
    /* the numbers are read by others too */
    STAYS(CONV_IN, CONV_OUT ", float[1,4,3,3] c",
          "a = DequantizeLinear(x, s, z)\n b = DequantizeLinear(W, t)\n c = Conv(a, b)\n"
          "y = QuantizeLinear(c, v, z)",
          "DequantizeLinear DequantizeLinear Conv QuantizeLinear");
    /* a bias that changes */
    STAYS(CONV_IN ", float[4] d", CONV_OUT,
          "a = DequantizeLinear(x, s, z)\n b = DequantizeLinear(W, t)\n c = Conv(a, b, d)\n"
          "y = QuantizeLinear(c, v, z)",
          "DequantizeLinear DequantizeLinear Conv QuantizeLinear");
    check(TEXT(CONV_IN, CONV_OUT,
               "a = DequantizeLinear(x, s, z)\n b = DequantizeLinear(W, t)\n c = Conv(a, b)\n"
               "y = QuantizeLinear(c, v, z)"),
          "DequantizeLinear DequantizeLinear Conv QuantizeLinear",
          (struct cm_pass_options){.training = true}, 0);
}

/* ---- what moves or chooses elements ---- */

void test_quantized_products__codes_are_moved_as_they_are(void)
{
    CHECK_CASE("uint8[1,2,4,4] x", "uint8[1,2,3,3] y",
               "a = DequantizeLinear(x, s, z)\n m = MaxPool<kernel_shape = [2, 2]>(a)\n"
               "y = QuantizeLinear(m, s, z)",
               "MaxPool", 0);
    CHECK_CASE("uint8[2,3] x", "uint8[3,2] y",
               "a = DequantizeLinear(x, s, z)\n m = Transpose(a)\n y = QuantizeLinear(m, s1, z)",
               "Transpose", 0);
    CHECK_CASE("uint8[2,3] x", "uint8[6] y",
               "n = Constant<value = int64[1] {6}>()\n a = DequantizeLinear(x, s, z)\n"
               "m = Reshape(a, n)\n y = QuantizeLinear(m, s, z)",
               "Constant Reshape", 0);
    CHECK_CASE("uint8[2,3] x, uint8[5,4] u", "uint8[2,3] y",
               "m = Identity(x)\n a = DequantizeLinear(m, s, z)\n y = QuantizeLinear(a, s, z)",
               "Identity", 0);
    /* another scale, another zero point, indices */
    STAYS("uint8[2,3] x", "uint8[3,2] y",
          "a = DequantizeLinear(x, s, z)\n m = Transpose(a)\n y = QuantizeLinear(m, t, z)",
          "DequantizeLinear Transpose QuantizeLinear");
    STAYS("uint8[2,3] x", "uint8[3,2] y",
          "a = DequantizeLinear(x, s, z)\n m = Transpose(a)\n y = QuantizeLinear(m, s, low)",
          "DequantizeLinear Transpose QuantizeLinear");
    STAYS("uint8[1,2,4,4] x", "uint8[1,2,3,3] y, int64[1,2,3,3] i",
          "a = DequantizeLinear(x, s, z)\n m, i = MaxPool<kernel_shape = [2, 2]>(a)\n"
          "y = QuantizeLinear(m, s, z)",
          "DequantizeLinear MaxPool QuantizeLinear");
}
