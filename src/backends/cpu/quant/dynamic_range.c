/* DynamicQuantizeLinear: the range of the data in parts, on all threads. */
// SPDX-License-Identifier: Apache-2.0
#include "base/machine.h"
#include "base/parallel.h"
#include "graph/backend.h"
#include "tensor/linear_codes.h"

#include <math.h>

enum { X };
enum { GRAIN = 1 << 14, LANES = 16 };

/* The least and the greatest of x and 0, which must have a code of its own; NaN counts as 0. */
struct range {
    float low, high;
};

static CM_ALWAYS_INLINE void find_range_on(enum cm_machine machine, int64_t count, const float *x,
                                           struct range *out)
{
    float lows[LANES] = {0}, highs[LANES] = {0};
    int64_t i = 0;
    (void)machine;
    for (; i + LANES <= count; i += LANES)
        for (int l = 0; l < LANES; l++) {
            lows[l] = x[i + l] < lows[l] ? x[i + l] : lows[l];
            highs[l] = x[i + l] > highs[l] ? x[i + l] : highs[l];
        }
    for (; i < count; i++) {
        lows[0] = x[i] < lows[0] ? x[i] : lows[0];
        highs[0] = x[i] > highs[0] ? x[i] : highs[0];
    }
    *out = (struct range){0};
    for (int l = 0; l < LANES; l++) {
        out->low = lows[l] < out->low ? lows[l] : out->low;
        out->high = highs[l] > out->high ? highs[l] : out->high;
    }
}
CM_BUILDS(find_range, (int64_t count, const float *x, struct range *out), (machine, count, x, out))

static void find_ranges(void *arg, int64_t begin, int64_t end)
{
    const struct cm_call *call = arg;
    find_range_builds[cm_this_machine()](end - begin, (const float *)call->in[X]->data + begin,
                                         (struct range *)call->scratch + begin / GRAIN);
}

static bool accepts(struct cm_call *call)
{
    return cm_tensor_count(call->in[X]) > 0 || cm_call_decline_empty(call, call->in[X]);
}

static enum cm_status prepare(struct cm_call *call)
{
    const int64_t parts = cm_tensor_count(call->in[X]) / GRAIN + 1;
    cm_call_scratch(call, (size_t)parts * sizeof(struct range));
    return CM_OK;
}

struct quantizing {
    const struct cm_call *call;
    float scale, zero;
};

static void quantize_some(void *arg, int64_t begin, int64_t end)
{
    const struct quantizing *job = arg;
    cm_quantize_loop(CM_UINT8)(end - begin, (const float *)job->call->in[X]->data + begin,
                               job->scale, job->zero, (uint8_t *)job->call->out[0]->data + begin);
}

static enum cm_status run(struct cm_call *call)
{
    const int64_t count = cm_tensor_count(call->in[X]);
    const struct range *ranges = call->scratch;
    struct range all = {0};
    cm_parallel(count, GRAIN, find_ranges, call);
    for (int64_t i = 0; i * GRAIN < count; i++) {
        all.low = ranges[i].low < all.low ? ranges[i].low : all.low;
        all.high = ranges[i].high > all.high ? ranges[i].high : all.high;
    }
    const float scale = (all.high == all.low ? 1.0f : all.high - all.low) / 255.0f;
    const float start = -all.low / scale;
    const float rounded = nearbyintf(start > 255 ? 255 : start);
    const float zero = rounded == rounded ? rounded : 0;
    if (call->n_out > 1 && call->out[1])
        *(float *)call->out[1]->data = scale;
    if (call->n_out > 2 && call->out[2])
        *(uint8_t *)call->out[2]->data = (uint8_t)zero;
    if (call->out[0])
        cm_parallel(count, GRAIN, quantize_some, &(struct quantizing){call, scale, zero});
    return CM_OK;
}

CM_KERNEL(cpu, DynamicQuantizeLinear, .label = "range in parts", .accepts = accepts,
          .prepare = prepare, .run = run);
