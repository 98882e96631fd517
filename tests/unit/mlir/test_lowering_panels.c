/* Constant weights: which kernels read them packed, and when they are left as they lie. The text is
 * judged; tests/mlir/weights_packed.onnxtxt has the numbers. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "cameo.h"
#include "check.h"

#include <stdio.h>
#include <stdlib.h>

static int write_text(void *to, const void *bytes, size_t size)
{
    return fwrite(bytes, 1, size, to) == size ? 0 : 1;
}

/* A model of one line that reads x and constants w and v of the same shape; free it. */
static char *linalg_of(const char *ports, const char *shape, const char *line,
                       enum cameo_weight_place weights)
{
    struct cameo_compile_options options = CAMEO_COMPILE_OPTIONS_INIT;
    struct cameo_load_options load = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model = NULL;
    struct cameo_error err;
    char *source = NULL, *text = NULL;
    size_t size = 0;

    if (asprintf(&source,
                 "<ir_version: 10, opset_import: [\"\" : 21]>\ng %s {\n"
                 "shape = Constant<value_ints = %s>()\n"
                 "w = ConstantOfShape<value = float[1] {0.5}>(shape)\n%s\n}\n",
                 ports, shape, line) < 0)
        fail_msg("no memory");
    load.format = CAMEO_FORMAT_TEXT;
    if (cameo_model_load_memory(source, strlen(source), &load, &model, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    free(source);
    FILE *to = open_memstream(&text, &size);
    options.emit = CAMEO_EMIT_LINALG;
    options.weights = weights;
    options.write = write_text;
    options.write_to = to;
    if (cameo_model_compile(model, &options, NULL, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    fclose(to);
    cameo_model_free(model);
    return text;
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    for (const char *at = text; (at = strstr(at, part)); at++)
        count++;
    return count;
}

static void check_calls(const char *ports, const char *shape, const char *line, const char *kernel)
{
    char *text = linalg_of(ports, shape, line, CAMEO_WEIGHTS_INSIDE), *call = NULL;

    if (asprintf(&call, "func.call @%s(", kernel) < 0)
        fail_msg("no memory");
    if (count_of(text, call) != 1)
        fail_msg("%s is not called:\n%s", kernel, text);
    free(call);
    free(text);
}

void test_panels__sizes_choose_the_kernel_of_a_convolution(void)
{
    check_calls("(float[1,32,14,14] x) => (float[1,32,14,14] y)", "[32, 32, 3, 3]",
                "y = Conv<pads = [1, 1, 1, 1]>(x, w)", "cameo_conv_direct_f32");
    check_calls("(float[B,192,14,14] x) => (float[B,64,14,14] y)", "[64, 192, 1, 1]",
                "y = Conv(x, w)", "cameo_conv_direct_f32");
    /* Few terms, rows that fill no runs, large images, unknown sizes. */
    check_calls("(float[1,64,14,14] x) => (float[1,64,14,14] y)", "[64, 64, 1, 1]",
                "y = Conv(x, w)", "cameo_conv_packed_f32");
    check_calls("(float[1,32,8,8] x) => (float[1,32,8,8] y)", "[32, 32, 3, 3]",
                "y = Conv<pads = [1, 1, 1, 1]>(x, w)", "cameo_conv_packed_f32");
    check_calls("(float[1,512,112,112] x) => (float[1,32,112,112] y)", "[32, 512, 3, 3]",
                "y = Conv<pads = [1, 1, 1, 1]>(x, w)", "cameo_conv_packed_f32");
    check_calls("(float[1,32,H,14] x) => (float[1,32,H,14] y)", "[32, 32, 3, 3]",
                "y = Conv<pads = [1, 1, 1, 1]>(x, w)", "cameo_conv_packed_f32");
}

/* A residual and what follows make a region of the convolution, which is a body with inputs. */
void test_panels__weights_are_known_in_a_region(void)
{
    check_calls("(float[1,32,14,14] x) => (float[1,32,14,14] y)", "[32, 32, 3, 3]",
                "c = Conv<pads = [1, 1, 1, 1]>(x, w) s = Add(c, x) y = Relu(s)",
                "cameo_conv_direct_f32");
}

void test_panels__products_read_them_and_other_types_do_not(void)
{
    check_calls("(float[8,30] x) => (float[8,20] y)", "[30, 20]", "y = MatMul(x, w)",
                "cameo_product_packed_f32");
    check_calls("(float[2,8,30] x) => (float[2,8,20] y)", "[30, 20]", "y = MatMul(x, w)",
                "cameo_product_packed_f32");
    check_calls("(double[8,30] x) => (double[8,20] y)", "[30, 20]",
                "v = Cast<to = 11>(w) y = MatMul(x, v)", "cameo_product_f64");
    check_calls("(float[3,8,30] x) => (float[3,8,20] y)", "[3, 30, 20]", "y = MatMul(x, w)",
                "cameo_product_f32");
}

void test_panels__two_readers_share_one_copy(void)
{
    char *text = linalg_of("(float[8,30] x) => (float[8,20] y)", "[30, 20]",
                           "a = MatMul(x, w) n = Neg(x) b = MatMul(n, w) y = Add(a, b)",
                           CAMEO_WEIGHTS_INSIDE);

    assert_int_equal(count_of(text, "func.call @cameo_product_packed_f32("), 2);
    assert_int_equal(count_of(text, "memref.view %weights"), 1);
    free(text);
}

/* Whoever brings the weights knows how the model's file has them. */
void test_panels__weights_that_are_not_inside_stay_as_they_are(void)
{
    char *text = linalg_of("(float[8,30] x) => (float[8,20] y)", "[30, 20]", "y = MatMul(x, w)",
                           CAMEO_WEIGHTS_CALLER);

    assert_int_equal(count_of(text, "func.call @cameo_product_f32("), 1);
    free(text);
}
