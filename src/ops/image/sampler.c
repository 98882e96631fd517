/* Neighbours and weights. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/image/sampler.h"

#include <math.h>

/* x thrown back at both ends until it is between them: a triangle wave. */
static double reflect(double x, double low, double high)
{
    const double range = high - low;
    if (!(range > 0))
        return low < 0 ? 0 : low;
    const double r = fmod(fabs(x - low), 2 * range);
    return low + (r > range ? 2 * range - r : r);
}

static void cubic_weights(double t, double *w)
{
    const double a = -0.75; /* Keys's parameter, as everywhere in this field */
    const double far = t + 1, near = 1 - t, farther = 2 - t;
    w[0] = ((a * far - 5 * a) * far + 8 * a) * far - 4 * a;
    w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    w[2] = ((a + 2) * near - (a + 3)) * near * near + 1;
    w[3] = ((a * farther - 5 * a) * farther + 8 * a) * farther - 4 * a;
}

/* The pixel that stands for place i, which may be outside. */
static int64_t settle(const struct cm_sampler *sampler, double i, double low, double high,
                      int64_t length)
{
    const double last = (double)(length - 1);
    if (sampler->outside == CM_OUTSIDE_ZEROS)
        return i >= 0 && i <= last ? (int64_t)i : -1;
    if (sampler->outside == CM_OUTSIDE_REFLECTION)
        i = nearbyint(reflect(i, low, high));
    return i <= 0 ? 0 : i >= last ? length - 1 : (int64_t)i;
}

/* The neighbours of place x (in pixels, 0 is the centre of the first) on an axis of this length. */
static void sampler_taps(const struct cm_sampler *sampler, double x, int64_t length,
                         struct cm_taps *out)
{
    const double low = sampler->align_corners ? 0 : -0.5;
    const double high = (double)length - (sampler->align_corners ? 1 : 0.5);
    const double last = (double)(length - 1);
    if (!isfinite(x)) /* nowhere */
        x = sampler->outside == CM_OUTSIDE_ZEROS ? -8 : 0;
    if (sampler->mode == CM_SAMPLE_NEAREST)
        x = nearbyint(x);
    if (x < low || x > high) {
        if (sampler->outside == CM_OUTSIDE_BORDER)
            x = x < 0 ? 0 : last;
        else if (sampler->outside == CM_OUTSIDE_REFLECTION)
            x = reflect(x, low, high);
    }
    const double start = sampler->mode == CM_SAMPLE_NEAREST ? x : floor(x);
    const double t = x - start;
    int first = 0;
    out->count = 1;
    out->weight[0] = 1;
    if (sampler->mode == CM_SAMPLE_LINEAR) {
        out->count = 2;
        out->weight[0] = 1 - t;
        out->weight[1] = t;
    } else if (sampler->mode == CM_SAMPLE_CUBIC) {
        out->count = 4;
        first = -1;
        cubic_weights(t, out->weight);
    }
    for (int i = 0; i < out->count; i++)
        out->index[i] = settle(sampler, start + first + i, low, high, length);
}

int64_t cm_sampler_locate(const struct cm_sampler *sampler, int axes, const double *place,
                          const int64_t *sizes, int64_t *offsets, double *weights)
{
    int64_t count = 1;
    offsets[0] = 0;
    weights[0] = 1;
    for (int a = 0; a < axes; a++) {
        struct cm_taps taps;
        sampler_taps(sampler, place[a], sizes[a], &taps);
        for (int64_t i = count - 1; i >= 0; i--) { /* backwards: the lists grow in place */
            const int64_t row = offsets[i];
            const double weight = weights[i];
            for (int t = 0; t < taps.count; t++) {
                const bool outside = row < 0 || taps.index[t] < 0;
                offsets[i * taps.count + t] = outside ? -1 : row * sizes[a] + taps.index[t];
                weights[i * taps.count + t] = weight * taps.weight[t];
            }
        }
        count *= taps.count;
    }
    return count;
}
