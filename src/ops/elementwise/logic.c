/* And, Or, Xor, Not on bools. Any byte but 0 is true, whatever a file holds; results are 0 or 1. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"

CM_COMPARE_LOOPS(and, CM_BOOL_TYPES, (a != 0) & (b != 0))
CM_COMPARE_LOOPS(or, CM_BOOL_TYPES, (a | b) != 0)
CM_COMPARE_LOOPS(xor, CM_BOOL_TYPES, !a != !b)
CM_UNARY_LOOPS(not, CM_BOOL_TYPES, !x)

static enum cm_status logic_run(struct cm_call *call)
{
    return cm_run_binary(call, call->op->arg);
}

static enum cm_status not_run(struct cm_call *call)
{
    return cm_run_unary(call, not_loops, NULL);
}

#define LOGIC(loops)                                                                               \
    .infer = cm_infer_broadcast, .prepare = cm_prepare_binary, .run = logic_run,                   \
    .grad = cm_grad_none, .share = cm_share_elementwise, .arg = (loops)

CM_OP(And, LOGIC(and_loops));
CM_OP(Or, LOGIC(or_loops));
CM_OP(Xor, LOGIC(xor_loops));
CM_OP(Not, .infer = cm_infer_like_input, .run = not_run, .grad = cm_grad_none,
      .share = cm_share_elementwise, .layouts = CM_LAYOUT_SAME);
