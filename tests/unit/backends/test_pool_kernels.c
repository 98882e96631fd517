/* MaxPool and the gradients of poolings, against the reference kernels, in each layout that
 * convolutions give. */
// SPDX-License-Identifier: Apache-2.0
#include "kernel_case.h"

#include "backends/onednn/dnnl.h"

#include <math.h>

struct pooling {
    const char *x, *y, *attributes;
};

static const struct pooling poolings[] = {
    {"1,1,1", "1,1,1", "kernel_shape = [1]"},
    {"2,3,7", "2,3,6", "kernel_shape = [2]"},
    {"2,3,9", "2,3,4", "kernel_shape = [3], strides = [2]"},
    {"1,2,1200", "1,2,1200", "kernel_shape = [5], pads = [2, 2]"},
    {"1,2,1501", "1,2,499", "kernel_shape = [3], dilations = [3], strides = [3]"},
    {"2,5,8,8", "2,5,4,4", "kernel_shape = [2, 2], strides = [2, 2]"},
    {"2,5,9,7", "2,5,5,4", "kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]"},
    {"1,4,9,9", "1,4,5,5", "kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1"},
    {"1,4,9,8", "1,4,3,2", "kernel_shape = [3, 4], strides = [3, 4]"},
    {"1,2,7,6", "1,2,7,6", "kernel_shape = [3, 2], auto_pad = \"SAME_UPPER\""},
    {"1,2,7,6", "1,2,4,3", "kernel_shape = [3, 2], strides = [2, 2], auto_pad = \"SAME_LOWER\""},
    {"1,2,7,9", "1,2,3,5", "kernel_shape = [3, 3], dilations = [2, 2]"},
    {"1,3,4,5,6", "1,3,3,3,3",
     "kernel_shape = [2, 3, 2], strides = [1, 2, 2], pads = [0, 1, 0, 0, 1, 0]"},
    {"40,17,12,12", "40,17,6,6", "kernel_shape = [2, 2], strides = [2, 2]"},
};

static void agree(struct cm_arena *arena, const char *graph, double tolerance, float odd)
{
    check_kernels(arena, &(struct kernel_case){graph, "cpu", tolerance, 0, odd, false, false});
}

static void max_pools(struct cm_arena *arena)
{
    const float odd[] = {0, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < CM_COUNT(poolings); i++)
        for (size_t k = 0; k < CM_COUNT(odd); k++) {
            const struct pooling *p = &poolings[i];
            agree(arena,
                  cm_arena_printf(arena, "g (float[%s] x) => (y, i) { y, i = MaxPool<%s>(x) }",
                                  p->x, p->attributes)
                      .data,
                  0, odd[k]);
            agree(arena,
                  cm_arena_printf(arena,
                                  "g (float[%s] x, float[%s] dy) => (dx) "
                                  "{ dx = ai.cameo.MaxPoolGradFromX<%s>(dy, x) }",
                                  p->x, p->y, p->attributes)
                      .data,
                  1e-6, odd[k]);
        }
    agree(arena,
          "g (float[1,2,5,4] x) => (y, i) "
          "{ y, i = MaxPool<kernel_shape = [2, 2], storage_order = 1>(x) }",
          0, 0);
}

void test_pool_kernels__maxima_and_where_they_are(void)
{
    check_in_arena(max_pools);
}

/* Of equal numbers the first, by row, then by column. */
static void ties(struct cm_arena *arena)
{
    static const char graph[] = "g (float[2,2,6,9] x) => (y, i) "
                                "{ r = Round(x) y, i = MaxPool<kernel_shape = [3, 3]>(r) }";
    check_kernels(arena, &(struct kernel_case){graph, "cpu", 0, 0, 0, false, false});
}

void test_pool_kernels__the_first_of_equal_maxima(void)
{
    check_in_arena(ties);
}

static void average_pools(struct cm_arena *arena)
{
    for (size_t i = 0; i < CM_COUNT(poolings); i++)
        for (int pads = 0; pads < 2; pads++) {
            const struct pooling *p = &poolings[i];
            agree(arena,
                  cm_arena_printf(arena,
                                  "g (float[%s] x, float[%s] dy) => (dx) "
                                  "{ dx = ai.cameo.AveragePoolGrad<%s, count_include_pad = "
                                  "%d>(dy, x) }",
                                  p->x, p->y, p->attributes, pads)
                      .data,
                  1e-6, 0);
        }
    agree(arena,
          "g (float[2,3,5,7] x, float[2,3,1,1] dy) => (dx) "
          "{ dx = ai.cameo.GlobalAveragePoolGrad(dy, x) }",
          1e-6, 0);
    agree(arena,
          "g (float[30,40,31] x, float[30,40,1] dy) => (dx) "
          "{ dx = ai.cameo.GlobalAveragePoolGrad(dy, x) }",
          1e-6, 0);
}

void test_pool_kernels__gradients_of_means(void)
{
    check_in_arena(average_pools);
}

/* Behind a convolution: blocks of channels, the last one filled up; dy row-major or in blocks. */
static void layouts(struct cm_arena *arena)
{
    static const int channels[] = {16, 24, 64, 20, 80};
    static const char *const gradients[] = {
        "MaxPoolGradFromX<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>",
        "AveragePoolGrad<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>"};
    if (!cm_dnnl_found().version[0])
        return;
    for (size_t i = 0; i < CM_COUNT(channels); i++) {
        const int c = channels[i];
        for (size_t k = 0; k < CM_COUNT(gradients); k++) {
            const struct cm_str mixed = cm_arena_printf(
                arena,
                "g (float[2,16,9,7] x, float[%d,16,1,1] w, float[2,%d,5,4] dy) => (dx) "
                "{ t = Conv(x, w) dx = ai.cameo.%s(dy, t) }",
                c, c, gradients[k]);
            const struct cm_str both = cm_arena_printf(
                arena,
                "g (float[2,16,9,7] x, float[%d,16,1,1] w, float[2,16,5,4] s) => (dx) "
                "{ t = Conv(x, w) dy = Conv(s, w) dx = ai.cameo.%s(dy, t) }",
                c, gradients[k]);
            check_kernels(
                arena, &(struct kernel_case){mixed.data, "onednn, cpu", 1e-5, 0, 0, true, false});
            check_kernels(arena, &(struct kernel_case){both.data, "onednn, onednn, cpu", 1e-5, 0, 0,
                                                       true, false});
        }
        const struct cm_str global =
            cm_arena_printf(arena,
                            "g (float[2,16,9,7] x, float[%d,16,1,1] w, float[2,%d,1,1] dy) => "
                            "(dx) { t = Conv(x, w) dx = ai.cameo.GlobalAveragePoolGrad(dy, t) }",
                            c, c);
        check_kernels(arena,
                      &(struct kernel_case){global.data, "onednn, cpu", 1e-5, 0, 0, true, false});
    }
}

void test_pool_kernels__layouts_of_convolutions_stay(void)
{
    check_in_arena(layouts);
}
