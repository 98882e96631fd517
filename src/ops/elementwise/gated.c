/* SwiGLU: one operand, through Swish, times the other. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "ops/elementwise/binary.h"

#include <tgmath.h> /* floats use the float functions */

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

CM_BINARY_LOOPS(swiglu, CM_FLOAT_TYPES, a / (1 + exp((T)-p[0] * a)) * b)
static const struct cm_binary swiglu = {.loops = swiglu_loops, .parameters = {"alpha"}};

static enum cm_status swiglu_body(struct cm_body *b)
{
    return cm_body_formula(b, "open = Sigmoid(A * alpha); Y = A * open * B");
}

CM_OP(SwiGLU, .infer = swiglu_infer, .body = swiglu_body, .memory.share = cm_share_elementwise,
      .memory.layouts = CM_LAYOUT_SAME, CM_BINARY_ROW(swiglu));
