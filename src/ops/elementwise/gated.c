/* SwiGLU: one operand, through Swish, times the other. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/op.h"
#include "ops/common/line.h"

#include <math.h>

static enum cm_status swiglu_infer(struct cm_infer *in)
{
    const struct cm_type *a = cm_infer_type(in, 0), *b = cm_infer_type(in, 1);
    struct cm_dim dims[CM_MAX_RANK];
    if (a->rank == CM_RANK_UNKNOWN || b->rank == CM_RANK_UNKNOWN)
        return cm_infer_set(in, 0, a->rank == CM_RANK_UNKNOWN ? b : a);
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = cm_dim_unify(a->dims[i], b->dims[i], &dims[i]);
    if (!same)
        return cm_infer_fail(in, "its operands have different shapes");
    return cm_infer_set_tensor(in, 0, a->dtype, a->rank, dims);
}

enum { BLOCK = 256 };

#define SWIGLU_LOOP(TAG, ctype, exp_)                                                              \
    static void swiglu_##TAG(int64_t count, double alpha, ctype *a, const ctype *b)                \
    {                                                                                              \
        const ctype factor = (ctype)-alpha;                                                        \
        for (int64_t i = 0; i < count; i++)                                                        \
            a[i] = a[i] / (1 + exp_(factor * a[i])) * b[i];                                        \
    }
SWIGLU_LOOP(FLOAT, float, expf)
SWIGLU_LOOP(DOUBLE, double, exp)

static enum cm_status swiglu_run(struct cm_call *call)
{
    const struct cm_tensor *a = call->in[0], *b = call->in[1];
    const double alpha = (double)cm_node_float(call->node, "alpha");
    const int64_t count = cm_tensor_count(a);
    if (!cm_shape_equal(&a->shape, &b->shape))
        return cm_call_fail(call, CM_BAD_ARGUMENT, "its operands have different shapes");
    for (int64_t at = 0; at < count; at += BLOCK) {
        const int64_t n = count - at < BLOCK ? count - at : BLOCK;
        if (a->type == CM_DOUBLE) {
            double x[BLOCK], y[BLOCK];
            cm_line_load(cm_line_at(a, at), 1, n, CM_DOUBLE, x);
            cm_line_load(cm_line_at(b, at), 1, n, CM_DOUBLE, y);
            swiglu_DOUBLE(n, alpha, x, y);
            cm_line_save(cm_line_at(call->out[0], at), 1, n, CM_DOUBLE, x);
        } else {
            float x[BLOCK], y[BLOCK];
            cm_line_load(cm_line_at(a, at), 1, n, CM_FLOAT, x);
            cm_line_load(cm_line_at(b, at), 1, n, CM_FLOAT, y);
            swiglu_FLOAT(n, alpha, x, y);
            cm_line_save(cm_line_at(call->out[0], at), 1, n, CM_FLOAT, x);
        }
    }
    return CM_OK;
}

static enum cm_status swiglu_body(struct cm_body *b)
{
    const cm_value a = cm_body_input(b, 0);
    const cm_value alpha = cm_emit_scalar_like(b, a, (double)cm_node_float(b->node, "alpha"));
    const cm_value open = cm_emit(b, "Sigmoid", cm_emit(b, "Mul", a, alpha));
    const cm_value gate = cm_emit(b, "Mul", a, open);
    return cm_body_return(b, 0, cm_emit(b, "Mul", gate, cm_body_input(b, 1)));
}

static enum cm_sharing swiglu_share(const struct cm_node *node, int output, int input)
{
    (void)node, (void)output, (void)input;
    return CM_SHARE_OVERWRITE;
}

CM_OP(SwiGLU, .infer = swiglu_infer, .run = swiglu_run, .body = swiglu_body, .share = swiglu_share,
      .layouts = CM_LAYOUT_SAME);
