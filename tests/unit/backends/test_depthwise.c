/* The gradient of depthwise kernels against plain sums, on every instruction set that the machine
 * has. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/depthwise.h"
#include "check.h"

#include "base/machine.h"
#include "base/parallel.h"

#include <math.h>
#include <stdlib.h>

static float *waves(int64_t count, double phase)
{
    float *made = malloc((size_t)count * sizeof *made);
    assert_non_null(made);
    for (int64_t i = 0; i < count; i++)
        made[i] = (float)sin(0.7 * (double)(i % 1013) + phase);
    return made;
}

/* The sum that one weight's gradient is. */
static double plain_sum(const struct cm_depthwise_sizes *s, const float *x, const float *dy,
                        int64_t channel, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t n = 0; n < s->images; n++)
        for (int64_t a = 0; a < s->result[0]; a++)
            for (int64_t b = 0; b < s->result[1]; b++) {
                const int64_t y = a * s->stride[0] - s->pad[0] + i * s->dilation[0];
                const int64_t z = b * s->stride[1] - s->pad[1] + j * s->dilation[1];
                const int64_t of_dy = (n * s->result[0] + a) * s->result[1] + b;
                if (y >= 0 && y < s->image[0] && z >= 0 && z < s->image[1])
                    sum += (double)dy[of_dy * s->channels + channel] *
                           (double)
                               x[((n * s->image[0] + y) * s->image[1] + z) * s->channels + channel];
            }
    return sum;
}

static void check_sums(const struct cm_depthwise_sizes *s, const float *x, const float *dy,
                       const float *dw)
{
    const int64_t taps = s->kernel[0] * s->kernel[1];
    const double room = 1e-6 * (double)(s->images * s->result[0] * s->result[1]);
    for (int64_t c = 0; c < s->channels; c++)
        for (int64_t t = 0; t < taps; t++) {
            const double want = plain_sum(s, x, dy, c, t / s->kernel[1], t % s->kernel[1]);
            const double got = (double)dw[c * taps + t];
            if (!(fabs(got - want) <= room))
                fail_msg("channel %lld, tap %lld: %.9g, expected %.9g", (long long)c, (long long)t,
                         got, want);
        }
}

static void check_sizes(const struct cm_depthwise_sizes *s)
{
    const int64_t size = s->channels * s->kernel[0] * s->kernel[1];
    float *x = waves(s->images * s->image[0] * s->image[1] * s->channels, 0.1);
    float *dy = waves(s->images * s->result[0] * s->result[1] * s->channels, 0.2);
    float *scratch = waves(size * cm_depthwise_parts(s), 0);
    float *dw = waves(size, 0), *again = waves(size, 1);
    for (int machine = CM_PLAIN; machine < CM_MACHINES; machine++) {
        cm_machine_limit((enum cm_machine)machine);
        cm_depthwise_weight_gradient(s, x, dy, scratch, dw);
        check_sums(s, x, dy, dw);
        struct cm_team *team = cm_team_new(2), *before = cm_team_enter(team);
        cm_depthwise_weight_gradient(s, x, dy, scratch, again);
        cm_team_enter(before);
        cm_team_free(team);
        assert_memory_equal(dw, again, (size_t)size * sizeof *dw); /* whatever the threads */
    }
    cm_machine_limit(CM_AVX512);
    free(x);
    free(dy);
    free(scratch);
    free(dw);
    free(again);
}

void test_weight_gradient__sums_over_all_places(void)
{
    static const struct cm_depthwise_sizes cases[] = {
        {2, 16, {9, 8}, {9, 8}, {5, 5}, {1, 1}, {1, 1}, {2, 2}},
        {1, 37, {7, 11}, {7, 11}, {7, 7}, {1, 1}, {1, 1}, {3, 3}},
        {3, 53, {10, 9}, {5, 5}, {5, 5}, {2, 2}, {1, 1}, {2, 2}},
        {1, 20, {12, 12}, {8, 6}, {3, 4}, {1, 1}, {2, 2}, {0, 0}},
        {2, 64, {40, 33}, {40, 33}, {1, 6}, {1, 1}, {1, 1}, {0, 2}},
        {1, 19, {2, 2}, {4, 4}, {9, 9}, {1, 1}, {1, 1}, {5, 5}}, /* no result sees all taps */
        {1, 16, {1, 1}, {1, 1}, {2, 2}, {3, 3}, {1, 1}, {1, 1}},
    };
    for (size_t i = 0; i < CM_COUNT(cases); i++)
        check_sizes(&cases[i]);
}

void test_bias_gradient__sums_by_channel(void)
{
    const struct cm_depthwise_sizes s = {2, 70, {3, 3}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 0}};
    float *dy = waves((int64_t)2 * 70 * 9, 0.3), db[70];
    cm_depthwise_bias_gradient(&s, dy, db);
    for (int c = 0; c < 70; c++) {
        double sum = 0;
        for (int i = 0; i < 18; i++)
            sum += (double)dy[i * 70 + c];
        assert_true(fabs(sum - (double)db[c]) < 1e-5);
    }
    free(dy);
}
