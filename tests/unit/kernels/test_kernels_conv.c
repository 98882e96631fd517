/* Convolutions that compiled models call, against sums in double precision. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "kernels/kernel_values.h"

#include <math.h>
#include <stdlib.h>

enum { KERNEL_CASES = 400 };

static const float low = -1.5f, high = 2.5f;

/* What a case adds up, in double, and the sum of absolute terms for each result. */
struct judge {
    const float *x, *w;
    double *sums, *sizes;
    enum { BY_OUTPUT, BY_INPUT, BY_WEIGHTS } result;
};

static void add(void *arg, int64_t x, int64_t w, int64_t y)
{
    const struct judge *j = arg;
    const int64_t places[] = {[BY_OUTPUT] = y, [BY_INPUT] = x, [BY_WEIGHTS] = w};
    const double one = (double)j->x[j->result == BY_INPUT ? y : x];
    const double two = (double)j->w[j->result == BY_WEIGHTS ? y : w];
    j->sums[places[j->result]] += one * two;
    j->sizes[places[j->result]] += fabs(one * two);
}

static int64_t count_x(const struct kernel_conv *v)
{
    return v->batch * v->in_channels * kernel_volume(v->in);
}

static int64_t count_y(const struct kernel_conv *v)
{
    return v->batch * v->out_channels * kernel_volume(v->out);
}

static int64_t count_w(const struct kernel_conv *v)
{
    return v->groups ? v->out_channels * (v->in_channels / v->groups) * kernel_volume(v->kernel)
                     : 0;
}

/* Judges a result of `count` elements; bias has one for each of `channels` channels. */
static bool is_near(const struct kernel_conv *v, struct judge *j, const float *got, int64_t count,
                    int64_t channels, const float *bias, const float *residual, intptr_t activation)
{
    const int64_t plane = count && channels && v->batch ? count / v->batch / channels : 1;
    bool same = true;
    j->sums = calloc((size_t)count + 1, sizeof *j->sums);
    j->sizes = calloc((size_t)count + 1, sizeof *j->sizes);
    kernel_conv_walk(v, add, j);
    for (int64_t i = 0; i < count && same; i++) {
        double sum = j->sums[i] + (bias ? (double)bias[i / plane % channels] : 0);
        sum += residual ? (double)residual[i] : 0;
        const double wanted = kernel_activate(sum, activation, low, high);
        same = kernel_is_near((double)got[i], wanted, j->sizes[i], 1e-6);
        if (!same)
            print_error("element %lld is %g, expected %g: batch %d groups %d channels %d, %d in "
                        "%dx%dx%d out %dx%dx%d kernel %dx%dx%d stride %dx%dx%d dilation %dx%dx%d "
                        "pad %d %d %d\n",
                        (long long)i, (double)got[i], wanted, (int)v->batch, (int)v->groups,
                        (int)v->in_channels, (int)v->out_channels, (int)v->in[0], (int)v->in[1],
                        (int)v->in[2], (int)v->out[0], (int)v->out[1], (int)v->out[2],
                        (int)v->kernel[0], (int)v->kernel[1], (int)v->kernel[2], (int)v->stride[0],
                        (int)v->stride[1], (int)v->stride[2], (int)v->dilation[0],
                        (int)v->dilation[1], (int)v->dilation[2], (int)v->pad[0], (int)v->pad[1],
                        (int)v->pad[2]);
    }
    free(j->sums);
    free(j->sizes);
    return same;
}

enum weights { AS_THEY_LIE, IN_ROWS, IN_COLUMNS };

static void run_conv(const struct kernel_conv *v, enum weights weights, const float *x,
                     const float *w, float *y, const float *bias, const float *residual,
                     intptr_t activation, int64_t scratch_bytes)
{
    void *scratch = kernel_scratch(scratch_bytes);
    if (weights != AS_THEY_LIE) {
        const int64_t wide = weights == IN_ROWS ? CAMEO_PANEL_ROWS : CAMEO_PANEL_COLUMNS;
        const int64_t channels = v->out_channels / v->groups;
        const int64_t k = v->in_channels / v->groups * kernel_volume(v->kernel);
        struct kernel_random none = {0};
        float *packed = kernel_floats(&none, v->groups * ((channels + wide - 1) / wide) * wide * k);
        cameo_pack_f32((intptr_t)w, (intptr_t)packed, v->groups, channels, k, k, 1, wide);
        (weights == IN_ROWS ? cameo_conv_packed_f32 : cameo_conv_direct_f32)(
            (intptr_t)x, (intptr_t)packed, (intptr_t)y, KERNEL_CONV_ARGUMENTS(v), (intptr_t)bias,
            (intptr_t)residual, activation, low, high, (intptr_t)scratch, scratch_bytes);
        free(packed);
    } else {
        cameo_conv_f32((intptr_t)x, (intptr_t)w, (intptr_t)y, KERNEL_CONV_ARGUMENTS(v),
                       (intptr_t)bias, (intptr_t)residual, activation, low, high, (intptr_t)scratch,
                       scratch_bytes);
    }
    free(scratch);
}

static void check_conv(struct kernel_random *random, const struct kernel_conv *v,
                       enum weights weights, float poison)
{
    float *x = kernel_floats(random, count_x(v)), *w = kernel_floats(random, count_w(v));
    float *y = kernel_floats(random, count_y(v));
    float *bias = kernel_pick(random, 0, 1) ? kernel_floats(random, v->out_channels) : NULL;
    float *residual = kernel_pick(random, 0, 1) ? kernel_floats(random, count_y(v)) : NULL;
    const intptr_t activation = kernel_pick(random, 0, 2);
    struct judge judge = {.x = x, .w = w, .result = BY_OUTPUT};
    if (poison != 0 && count_x(v) > 0)
        x[kernel_pick(random, 0, count_x(v) - 1)] = poison;
    run_conv(v, v->groups > 0 ? weights : AS_THEY_LIE, x, w, y, bias, residual, activation,
             kernel_pick(random, 0, 1) ? CAMEO_SCRATCH_BYTES : CAMEO_SCRATCH_LEAST);
    CHECK(is_near(v, &judge, y, count_y(v), v->out_channels, bias, residual, activation));
    free(x);
    free(w);
    free(y);
    free(bias);
    free(residual);
}

void test_kernels_conv__convolutions_of_any_sizes_agree_with_sums_in_double(void)
{
    struct kernel_random random = {1};
    for (int i = 0; i < KERNEL_CASES; i++) {
        const struct kernel_conv v = kernel_conv_pick(&random);
        check_conv(&random, &v, (enum weights)(i % 3), 0);
    }
}

void test_kernels_conv__nan_and_infinity_reach_the_results_that_read_them_and_no_others(void)
{
    struct kernel_random random = {2};
    for (int i = 0; i < KERNEL_CASES / 4; i++) {
        const struct kernel_conv v = kernel_conv_pick(&random);
        check_conv(&random, &v, (enum weights)(i % 3), i % 2 ? NAN : INFINITY);
    }
}

/* More channels than one tile has, places that read nothing but their own, rows of one run and
 * of several, and images of which scratch memory holds some rows at a time. */
void test_kernels_conv__many_channels_at_few_places_agree_with_sums_in_double(void)
{
    struct kernel_random random = {6};
    for (int i = 0; i < KERNEL_CASES / 5; i++) {
        const bool single = i % 4 == 0;
        const int64_t kernel = single ? 1 : kernel_pick(&random, 1, 3);
        const int64_t stride = single ? 1 : kernel_pick(&random, 1, 2);
        const int64_t pad = single ? 0 : kernel / 2, size = kernel_pick(&random, 3, 16);
        const int64_t out = (size + 2 * pad - kernel) / stride + 1;
        const struct kernel_conv v = {.batch = 1,
                                      .groups = 1,
                                      .in_channels = kernel_pick(&random, 1, 9),
                                      .out_channels = kernel_pick(&random, 17, 70),
                                      .in = {1, size, size},
                                      .out = {1, out, out},
                                      .kernel = {1, kernel, kernel},
                                      .stride = {1, stride, stride},
                                      .dilation = {1, 1, 1},
                                      .pad = {0, pad, pad}};
        check_conv(&random, &v, IN_COLUMNS, 0);
    }
}

static void check_input(struct kernel_random *random, const struct kernel_conv *v)
{
    float *dy = kernel_floats(random, count_y(v)), *w = kernel_floats(random, count_w(v));
    float *dx = kernel_floats(random, count_x(v));
    float *bias = kernel_pick(random, 0, 1) ? kernel_floats(random, v->in_channels) : NULL;
    float *residual = kernel_pick(random, 0, 1) ? kernel_floats(random, count_x(v)) : NULL;
    const intptr_t activation = kernel_pick(random, 0, 2);
    const int64_t bytes = kernel_pick(random, 0, 1) ? CAMEO_SCRATCH_BYTES : CAMEO_SCRATCH_LEAST;
    void *scratch = kernel_scratch(bytes);
    struct judge judge = {.x = dy, .w = w, .result = BY_INPUT};
    cameo_conv_input_f32((intptr_t)dy, (intptr_t)w, (intptr_t)dx, KERNEL_CONV_ARGUMENTS(v),
                         (intptr_t)bias, (intptr_t)residual, activation, low, high,
                         (intptr_t)scratch, bytes);
    CHECK(is_near(v, &judge, dx, count_x(v), v->in_channels, bias, residual, activation));
    free(dy);
    free(w);
    free(dx);
    free(bias);
    free(residual);
    free(scratch);
}

static void check_weights(struct kernel_random *random, const struct kernel_conv *v)
{
    float *x = kernel_floats(random, count_x(v)), *dy = kernel_floats(random, count_y(v));
    float *dw = kernel_floats(random, count_w(v));
    const int64_t bytes = kernel_pick(random, 0, 1) ? CAMEO_SCRATCH_BYTES : CAMEO_SCRATCH_LEAST;
    void *scratch = kernel_scratch(bytes);
    struct judge judge = {.x = x, .w = dy, .result = BY_WEIGHTS};
    cameo_conv_weights_f32((intptr_t)x, (intptr_t)dy, (intptr_t)dw, KERNEL_CONV_ARGUMENTS(v),
                           (intptr_t)scratch, bytes);
    CHECK(is_near(v, &judge, dw, count_w(v), 1, NULL, NULL, CAMEO_NO_ACTIVATION));
    free(x);
    free(dy);
    free(dw);
    free(scratch);
}

void test_kernels_conv__gradients_by_the_input_agree_with_sums_in_double(void)
{
    struct kernel_random random = {4};
    for (int i = 0; i < KERNEL_CASES; i++) {
        const struct kernel_conv v = kernel_conv_pick(&random);
        check_input(&random, &v);
    }
}

void test_kernels_conv__gradients_by_the_weights_agree_with_sums_in_double(void)
{
    struct kernel_random random = {5};
    for (int i = 0; i < KERNEL_CASES; i++) {
        const struct kernel_conv v = kernel_conv_pick(&random);
        check_weights(&random, &v);
    }
}

void test_kernels_conv__a_size_of_zero_gives_no_result_or_bias_and_residual(void)
{
    struct kernel_random random = {3};
    for (int i = 0; i < 40; i++) {
        struct kernel_conv v = kernel_conv_pick(&random);
        intptr_t *const sizes[] = {&v.batch, &v.in_channels, &v.out_channels, &v.in[2], &v.out[1]};
        *sizes[i % 5] = 0;
        check_conv(&random, &v, (enum weights)(i % 3), 0);
        check_input(&random, &v);
        check_weights(&random, &v);
    }
}

/* ---- depthwise, and functions that finish a result ---- */

static struct kernel_conv pick_depthwise(struct kernel_random *random)
{
    const intptr_t side = kernel_pick(random, 0, 1) ? 3 : 5, stride = kernel_pick(random, 1, 2);
    struct kernel_conv v = {.batch = kernel_pick(random, 1, 2),
                            .groups = kernel_pick(random, 1, 4),
                            .in = {1, 1, 1},
                            .out = {1, 1, 1},
                            .kernel = {1, side, side},
                            .stride = {1, stride, stride},
                            .dilation = {1, 1, 1}};
    v.in_channels = v.groups;
    v.out_channels = v.groups * kernel_pick(random, 1, 2);
    for (int i = 1; i < 3; i++) {
        v.in[i] = kernel_pick(random, 1, kernel_pick(random, 0, 3) ? 24 : 80);
        v.pad[i] = kernel_pick(random, 0, side - 1);
        v.out[i] = (v.in[i] + side - 1) / stride + kernel_pick(random, -1, 1);
        v.out[i] = v.out[i] < 1 ? 1 : v.out[i];
    }
    return v;
}

void test_kernels_conv__channels_apart_agree_with_sums_in_double(void)
{
    struct kernel_random random = {6};
    for (int i = 0; i < KERNEL_CASES; i++) {
        const struct kernel_conv v = pick_depthwise(&random);
        check_conv(&random, &v, AS_THEY_LIE, i % 4 ? 0 : NAN);
    }
}

/* Not the same when it is done twice. */
static void double_and_add(int64_t y, int64_t other, int64_t rows, int64_t step, int64_t columns)
{
    float *to = (float *)(intptr_t)y;
    const float *from = (const float *)(intptr_t)other;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            to[r * step + c] = 2 * to[r * step + c] + (from ? from[r * step + c] : 1);
}

static void check_finish(struct kernel_random *random, const struct kernel_conv *v)
{
    const int64_t count = count_y(v);
    float *x = kernel_floats(random, count_x(v)), *w = kernel_floats(random, count_w(v));
    float *plain = kernel_floats(random, count), *y = kernel_floats(random, count);
    float *bias = kernel_floats(random, v->out_channels);
    float *other = kernel_pick(random, 0, 1) ? kernel_floats(random, count) : NULL;
    const enum weights weights = (enum weights)kernel_pick(random, AS_THEY_LIE, IN_COLUMNS);
    const int64_t bytes = kernel_pick(random, 0, 1) ? CAMEO_SCRATCH_BYTES : CAMEO_SCRATCH_LEAST;
    run_conv(v, weights, x, w, plain, bias, NULL, CAMEO_NO_ACTIVATION, bytes);
    run_conv(v, weights, x, w, y, bias, other, (intptr_t)double_and_add + CAMEO_CLIP, bytes);
    double_and_add((intptr_t)plain, (intptr_t)other, 1, count, count);
    bool same = true;
    for (int64_t i = 0; i < count; i++)
        same = same && y[i] == plain[i];
    CHECK(same);
    free(x);
    free(w);
    free(plain);
    free(y);
    free(bias);
    free(other);
}

void test_kernels_conv__a_function_finishes_every_element_once(void)
{
    struct kernel_random random = {7};
    for (int i = 0; i < KERNEL_CASES; i++) {
        const struct kernel_conv v = i % 2 ? pick_depthwise(&random) : kernel_conv_pick(&random);
        check_finish(&random, &v);
    }
}
