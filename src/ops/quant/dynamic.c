/* DynamicQuantizeLinear: codes whose scale is that of the data. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "graph/op.h"

#include <math.h>

enum { X };

static enum cm_status dynamic_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, X);
    CM_TRY(cm_infer_set_tensor(in, 0, CM_UINT8, x->rank, x->dims));
    CM_TRY(cm_infer_set_tensor(in, 1, CM_FLOAT, 0, NULL));
    return cm_infer_set_tensor(in, 2, CM_UINT8, 0, NULL);
}

/* The range of x and 0, which must have a code of its own, in 255 steps; NaN counts as 0. */
static enum cm_status dynamic_run(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[X];
    const float *xs = x->data;
    float low = 0, high = 0;
    for (int64_t i = 0; i < cm_tensor_count(x); i++) {
        low = xs[i] < low ? xs[i] : low;
        high = xs[i] > high ? xs[i] : high;
    }
    const float scale = (high == low ? 1.0f : high - low) / 255.0f, start = -low / scale;
    const float rounded = nearbyintf(start > 255 ? 255 : start);
    const float zero = rounded == rounded ? rounded : 0;
    if (call->n_out > 1 && call->out[1])
        *(float *)call->out[1]->data = scale;
    if (call->n_out > 2 && call->out[2])
        *(uint8_t *)call->out[2]->data = (uint8_t)zero;
    for (int64_t i = 0; call->out[0] && i < cm_tensor_count(x); i++) {
        const float code = nearbyintf(xs[i] / scale) + zero;
        ((uint8_t *)call->out[0]->data)[i] = !(code > 0) ? 0 : code > 255 ? 255 : (uint8_t)code;
    }
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
      .run = dynamic_run, .body = dynamic_body, .grad = cm_grad_none, .cost.work = cm_work_linear);
