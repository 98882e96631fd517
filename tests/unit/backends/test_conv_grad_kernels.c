/* oneDNN's gradients of convolutions, and our own sums for depthwise kernels, beside the reference
 * kernels: all three gradients together, and each alone. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/onednn/dnnl.h"
#include "kernel_case.h"

struct gradient_case {
    const char *x, *w, *attributes;
};

static const char *op; /* "Conv", "ConvTranspose": what the cases at hand are gradients of */
static const struct gradient_case *cases;
static size_t n_cases;

/* The gradients where what comes in is the result itself. */
static void agree_in(struct cm_arena *arena)
{
    static const char *const wanted[][2] = {
        {"dx, dw, db", "dx, dw, db"}, {"dx", "dx, , "}, {"dw", ", dw, "}, {"db, dw", ", dw, db"}};
    const char *kernels = cm_dnnl_found().version[0] ? "onednn" : "reference";
    for (size_t i = 0; i < n_cases; i++)
        for (size_t k = 0; k < CM_COUNT(wanted); k++) {
            const struct cm_str text =
                cm_arena_printf(arena,
                                "g (float[%s] x, float[%s] w) => (%s)"
                                " { y = %s<%s>(x, w) %s = ai.cameo.%sGrad<%s>(y, x, w) }",
                                cases[i].x, cases[i].w, wanted[k][0], op, cases[i].attributes,
                                wanted[k][1], op, cases[i].attributes);
            check_kernels(arena, &(struct kernel_case){.graph = text.data,
                                                       .kernels = kernels,
                                                       .tolerance = 2e-5,
                                                       .any_bits = true});
        }
}

#define CHECK_GRADIENTS(name, list)                                                                \
    op = (name);                                                                                   \
    cases = (list);                                                                                \
    n_cases = CM_COUNT(list);                                                                      \
    check_in_arena(agree_in)

void test_conv_grad__agrees_with_the_reference(void)
{
    static const struct gradient_case list[] = {
        {"1,16,9,9", "16,16,3,3", "group = 1"},
        {"2,3,17,15", "17,3,3,3", "pads = [1, 1, 1, 1]"},
        {"1,17,8,8", "5,17,1,1", "group = 1"},
        {"2,32,14,14", "64,32,3,3", "strides = [2, 2], pads = [1, 1, 1, 1]"},
        {"1,3,23,23", "64,3,7,7", "strides = [2, 2], pads = [3, 3, 3, 3]"},
        {"1,16,15,15", "16,16,3,3", "dilations = [2, 3], pads = [2, 3, 2, 3]"},
        {"1,16,9,8", "16,16,3,4", "auto_pad = \"SAME_UPPER\", strides = [2, 2]"},
        {"1,32,9,9", "32,16,3,3", "group = 2, pads = [1, 1, 1, 1]"},
        {"2,16,20", "24,16,3", "pads = [1, 1]"},
        {"1,16,5,6,7", "16,16,3,3,3", "pads = [1, 1, 1, 1, 1, 1]"},
    };
    CHECK_GRADIENTS("Conv", list);
}

void test_conv_grad__agrees_with_the_reference_on_single_channels(void)
{
    static const struct gradient_case list[] = {
        {"2,32,9,9", "32,1,3,3", "group = 32, pads = [1, 1, 1, 1]"},
        {"1,17,9,9", "17,1,3,3", "group = 17, strides = [2, 2], pads = [1, 1, 1, 1]"},
        {"2,24,9,9", "24,1,5,5", "group = 24, pads = [2, 2, 2, 2]"},
        {"1,40,12,11", "40,1,7,7", "group = 40, strides = [2, 2], pads = [3, 3, 3, 3]"},
        {"1,19,14,9", "19,1,5,2", "group = 19, dilations = [2, 1], auto_pad = \"SAME_LOWER\""},
    };
    CHECK_GRADIENTS("Conv", list);
}

void test_conv_transpose_grad__agrees_with_the_reference(void)
{
    static const struct gradient_case list[] = {
        {"1,16,9,9", "16,16,3,3", "group = 1"},
        {"2,3,7,5", "3,17,3,3", "pads = [1, 1, 1, 1]"},
        {"2,32,7,7", "32,64,3,3", "strides = [2, 2], pads = [1, 1, 1, 1]"},
        {"1,16,9,9", "16,8,3,3", "group = 2, strides = [2, 2]"},
        {"1,16,6,6", "16,16,3,3", "strides = [2, 2], output_padding = [1, 1], pads = [1, 1, 1, 1]"},
    };
    CHECK_GRADIENTS("ConvTranspose", list);
}
