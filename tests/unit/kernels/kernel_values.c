/* Operands and judgement for tests of the kernels of compiled models. */
// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernel_values.h"

#include "check.h"

#include <math.h>
#include <stdlib.h>

int64_t kernel_pick(struct kernel_random *random, int64_t least, int64_t most)
{
    random->state = random->state * 6364136223846793005u + 1442695040888963407u;
    return least + (int64_t)((random->state >> 33) % (uint64_t)(most - least + 1));
}

static void *memory(int64_t count, size_t size)
{
    void *bytes = malloc(count > 0 ? (size_t)count * size : 1);
    assert_non_null(bytes);
    return bytes;
}

double *kernel_doubles(struct kernel_random *random, int64_t count)
{
    double *x = memory(count, sizeof *x);
    for (int64_t i = 0; i < count; i++)
        x[i] = (double)kernel_pick(random, -1000, 1000) / 512;
    return x;
}

float *kernel_floats(struct kernel_random *random, int64_t count)
{
    float *x = memory(count, sizeof *x);
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)kernel_pick(random, -1000, 1000) / 512;
    return x;
}

uint8_t *kernel_bytes(struct kernel_random *random, int64_t count)
{
    uint8_t *x = memory(count, sizeof *x);
    for (int64_t i = 0; i < count; i++)
        x[i] = (uint8_t)kernel_pick(random, 0, 255);
    return x;
}

void *kernel_scratch(int64_t bytes)
{
    float *x = aligned_alloc(64, (size_t)bytes);
    assert_non_null(x);
    for (int64_t i = 0; i < bytes / (int64_t)sizeof *x; i++)
        x[i] = NAN;
    return x;
}

double kernel_activate(double x, intptr_t activation, float low, float high)
{
    if (activation == CAMEO_RELU)
        return x < 0 ? 0 : x;
    if (activation == CAMEO_CLIP)
        x = x < (double)low ? (double)low : x > (double)high ? (double)high : x;
    return x;
}

bool kernel_is_near(double got, double wanted, double size, double error)
{
    if (isnan(wanted) || isnan(got))
        return isnan(wanted) && isnan(got);
    if (isinf(wanted) || isinf(got))
        return got == wanted;
    return fabs(got - wanted) <= error * (1 + size);
}

int64_t kernel_volume(const intptr_t *sizes)
{
    return (int64_t)sizes[0] * sizes[1] * sizes[2];
}

/* The element that a tap reads for a place in three axes, or -1. */
static int64_t source(const struct kernel_conv *v, int64_t place, int64_t tap)
{
    int64_t at = 0, unit = 1;
    for (int i = 2; i >= 0; i--) {
        const int64_t p = place % v->out[i], t = tap % v->kernel[i];
        const int64_t x = p * v->stride[i] - v->pad[i] + t * v->dilation[i];
        if (x < 0 || x >= v->in[i])
            return -1;
        at += x * unit;
        unit *= v->in[i];
        place /= v->out[i];
        tap /= v->kernel[i];
    }
    return at;
}

void kernel_conv_walk(const struct kernel_conv *v, kernel_visit_fn *visit, void *arg)
{
    const int64_t taps = kernel_volume(v->kernel), places = kernel_volume(v->out);
    const int64_t plane = kernel_volume(v->in);
    if (v->groups == 0)
        return;
    const int64_t from_channels = v->in_channels / v->groups;
    const int64_t to_channels = v->out_channels / v->groups;
    for (int64_t i = 0; i < taps * places; i++) {
        const int64_t t = i / places, p = i % places, from = source(v, p, t);
        for (int64_t j = 0; j < v->batch * v->out_channels && from >= 0; j++) {
            const int64_t n = j / v->out_channels, o = j % v->out_channels;
            const int64_t first = n * v->in_channels + o / to_channels * from_channels;
            for (int64_t c = 0; c < from_channels; c++)
                visit(arg, (first + c) * plane + from, (o * from_channels + c) * taps + t,
                      j * places + p);
        }
    }
}

struct kernel_conv kernel_conv_pick(struct kernel_random *random)
{
    struct kernel_conv v = {.batch = kernel_pick(random, 1, 2),
                            .groups = kernel_pick(random, 0, 3) ? 1 : kernel_pick(random, 2, 4)};
    const bool is_depthwise = kernel_pick(random, 0, 4) == 0;
    const int first = (int)kernel_pick(random, 0, 2);
    if (is_depthwise)
        v.groups = kernel_pick(random, 1, 20);
    v.in_channels = v.groups * (is_depthwise ? 1 : kernel_pick(random, 1, 20));
    v.out_channels = v.groups * kernel_pick(random, 1, is_depthwise ? 2 : 30);
    for (int i = 0; i < 3; i++) {
        const bool has = i >= first && kernel_pick(random, 0, 5);
        v.kernel[i] = has ? kernel_pick(random, 1, i == 2 ? 7 : 3) : 1;
        v.stride[i] = has ? kernel_pick(random, 1, 3) : 1;
        v.dilation[i] = has ? kernel_pick(random, 1, 2) : 1;
        v.pad[i] = has ? kernel_pick(random, -1, kernel_pick(random, 0, 2) ? 3 : 9) : 0;
        v.in[i] = i < first ? 1 : kernel_pick(random, 1, i == 2 ? 40 : 8);
        const int64_t reach = (v.kernel[i] - 1) * v.dilation[i] + 1;
        const int64_t all = v.in[i] + v.pad[i] + (has ? kernel_pick(random, 0, 4) : 0);
        v.out[i] = all < reach ? 0 : (all - reach) / v.stride[i] + 1;
    }
    return v;
}
