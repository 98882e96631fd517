/* DynamicQuantizeLinear: codes whose scale is that of the data. */
// SPDX-License-Identifier: Apache-2.0
#include "base/machine.h"
#include "base/parallel.h"
#include "graph/node_formula.h"
#include "graph/op.h"
#include "ops/quant/linear_loops.h"

#include <math.h>

enum { X };
enum { GRAIN = 1 << 14, LANES = 16 };

static enum cm_status dynamic_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, X);
    CM_TRY(cm_infer_set_tensor(in, 0, CM_UINT8, x->rank, x->dims));
    CM_TRY(cm_infer_set_tensor(in, 1, CM_FLOAT, 0, NULL));
    return cm_infer_set_tensor(in, 2, CM_UINT8, 0, NULL);
}

/* ---- The range of the data ---- */

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

static enum cm_status dynamic_prepare(struct cm_call *call)
{
    const int64_t parts = cm_tensor_count(call->in[X]) / GRAIN + 1;
    cm_call_scratch(call, (size_t)parts * sizeof(struct range));
    return CM_OK;
}

static enum cm_status dynamic_run(struct cm_call *call)
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
        cm_quantize_all(CM_UINT8, count, call->in[X]->data, scale, zero, call->out[0]->data);
    return CM_OK;
}

static enum cm_status dynamic_body(struct cm_body *b)
{
    return cm_body_formula(
        b, "none = float(0); top = float(255); low = Min(ReduceMin<keepdims=0>(x), none);"
           "high = Max(ReduceMax<keepdims=0>(x), none); width = high - low;"
           "some = Where(Equal(width, none), 1, width); y_scale = some / top;"
           "start = -low / y_scale; y_zero_point = uint8(Round(Clip(start, none, top)));"
           "y = QuantizeLinear(x, y_scale, y_zero_point)");
}

/* No gradient, on purpose: the codes are whole numbers, and a scale that follows the data is, as in
 * other frameworks, watched and not trained. */
CM_OP(DynamicQuantizeLinear, .values.is_quantized = true, .infer = dynamic_infer,
      .prepare = dynamic_prepare, .run = dynamic_run, .body = dynamic_body, .grad = cm_grad_none,
      .cost.work = cm_work_linear);
