/* Our own convolutions, channels last, against the reference kernels. */
// SPDX-License-Identifier: Apache-2.0
#include "kernel_case.h"

#include "backends/onednn/dnnl.h"

#include <math.h>

/* Without oneDNN nothing lies with channels last. */
static bool has_layouts(void)
{
    return cm_dnnl_found().version[0] != 0;
}

static void agree(struct cm_arena *arena, const char *graph, const char *kernels, float odd)
{
    if (has_layouts())
        check_kernels(
            arena,
            &(struct kernel_case){
                .graph = graph, .kernels = kernels, .tolerance = 2e-6, .odd = odd, .passes = true});
}

struct depthwise {
    int channels;
    const char *image, *kernel, *attributes;
};

static const struct depthwise all_sizes[] = {
    {16, "9,20", "3,3", "pads = [1,1,1,1]"},
    {17, "5,5", "5,5", "pads = [2,2,2,2]"},
    {40, "20,33", "3,3", "pads = [1,1,1,1], strides = [2,2]"},
    {70, "7,7", "5,5", "pads = [2,2,2,2], strides = [2,2]"},
    {33, "1,1", "3,3", "pads = [1,1,1,1]"},
    {24, "3,40", "1,7", "pads = [0,0,0,0]"},
    {24, "12,12", "3,2", "dilations = [2,3], pads = [2,3,0,1]"},
    {20, "2,3", "7,7", "pads = [5,4,5,4], strides = [3,1]"},
    {31, "4,4", "1,1", "pads = [2,2,2,2]"}, /* results without any tap */
    {64, "6,5", "4,4", "auto_pad = \"SAME_UPPER\", strides = [1,2]"},
    {64, "6,5", "4,4", "auto_pad = \"SAME_LOWER\""},
    {48, "130,17", "3,3", "pads = [1,1,1,1]"},
};

static void depthwise_kernels(struct cm_arena *arena)
{
    for (size_t i = 0; i < CM_COUNT(all_sizes); i++) {
        const struct depthwise *d = &all_sizes[i];
        agree(arena,
              cm_arena_printf(arena,
                              "g (float[2,%d,%s] x, float[%d,1,%s] w, float[%d] b) => (y)"
                              " { y = Conv<group = %d, %s>(x, w, b) }",
                              d->channels, d->image, d->channels, d->kernel, d->channels,
                              d->channels, d->attributes)
                  .data,
              "cpu", 0);
    }
}

void test_conv_channels_last__depthwise_kernels_of_many_sizes(void)
{
    check_in_arena(depthwise_kernels);
}

/* What follows: functions, numbers by channel, residuals. The weights are constants, as they are
 * when they were packed before. */
static const char *const followers[] = {
    "y = Swish(c)",
    "s = Sigmoid(c) y = Mul(c, s)",
    "k = Swish(c) y = Add(k, r)",
    "k = Add(c, r) y = Swish(k)",
    "k = Add(c, p) y = Sigmoid(k)",
    "k = Swish(c) y = Add(k, p)",
};

static const char constant_weights[] = "n = Constant<value_int = %d>() zero = Constant<value_int = "
                                       "0>() one = Constant<value_int = 1>()"
                                       " i = Range(zero, n, one) f = Cast<to = 1>(i) v = Sin(f)"
                                       " d = Constant<value_ints = [%s]>() w = Reshape(v, d)";

static void followed(struct cm_arena *arena, const char *x, const char *y, const char *weights,
                     int n_weights, const char *attributes)
{
    const float odd[] = {0, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < CM_COUNT(followers); i++)
        for (size_t k = 0; k < CM_COUNT(odd); k++) {
            const struct cm_str w = cm_arena_printf(arena, constant_weights, n_weights, weights);
            agree(arena,
                  cm_arena_printf(arena,
                                  "g (float[%s] x, float[%s] r, float[40,1,1] p, float[40] b) =>"
                                  " (y) { %s c = Conv<%s>(x, w, b) %s }",
                                  x, y, w.data, attributes, followers[i])
                      .data,
                  "cpu", odd[k]);
        }
}

static void followed_convolutions(struct cm_arena *arena)
{
    followed(arena, "2,40,9,11", "2,40,9,11", "40,1,3,3", 360, "group = 40, pads = [1,1,1,1]");
    followed(arena, "1,24,7,7", "1,40,7,7", "40,24,1,1", 960, "group = 1");
    followed(arena, "1,3,30,50", "1,40,30,50", "40,3,1,1", 120, "group = 1");
}

void test_conv_channels_last__followers_see_finished_results(void)
{
    check_in_arena(followed_convolutions);
}

static void single_places(struct cm_arena *arena)
{
    const struct cm_str w = cm_arena_printf(arena, constant_weights, 960, "40,24,1,1");
    agree(arena,
          cm_arena_printf(arena,
                          "g (float[1,24,1,1] x, float[40] b) => (y)"
                          " { %s c = Conv(x, w, b) y = Sigmoid(c) }",
                          w.data)
              .data,
          "cpu", 0);
}

void test_conv_channels_last__an_image_of_one_place_is_a_row(void)
{
    check_in_arena(single_places);
}
