/* If: one of two bodies. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/control/branch.h"
#include "ops/control/control_grad.h"

static enum cm_status if_infer(struct cm_infer *in)
{
    const size_t n = (size_t)in->n_out;
    struct cm_fact *then_facts = CM_NEW_ARRAY(in->arena, struct cm_fact, n);
    struct cm_fact *else_facts = CM_NEW_ARRAY(in->arena, struct cm_fact, n);
    const struct cm_type *cond = cm_infer_type(in, 0);

    for (int i = 0; i < cond->rank; i++)
        if (cm_dim_known(cond->dims[i]) && cond->dims[i].value != 1)
            return cm_infer_fail(in, "the condition must be one value, dimension %d is %lld", i,
                                 (long long)cond->dims[i].value);
    CM_TRY(cm_infer_body(in, "then_branch", NULL, 0, then_facts, n));
    CM_TRY(cm_infer_body(in, "else_branch", NULL, 0, else_facts, n));
    for (size_t o = 0; o < n; o++) {
        const struct cm_type *both =
            cm_type_join(in->arena, then_facts[o].type, else_facts[o].type);
        if (!both)
            return cm_infer_fail(in, "output %zu is %s in one branch and %s in the other", o,
                                 cm_type_print(in->arena, in->symbols, then_facts[o].type).data,
                                 cm_type_print(in->arena, in->symbols, else_facts[o].type).data);
        CM_TRY(cm_infer_set(in, (int)o, both));
    }
    return CM_OK;
}

static enum cm_status if_prepare(struct cm_call *call)
{
    cm_call_scratch(call, (size_t)call->n_out * sizeof(struct cm_datum));
    return CM_OK;
}

static enum cm_status if_run(struct cm_call *call)
{
    bool cond = false;
    CM_TRY(cm_call_bool(call, 0, &cond));
    const int body = cm_node_body_index(call->node, cond ? "then_branch" : "else_branch");
    return cm_call_run_into_outputs(call, (size_t)body, NULL, 0);
}

CM_OP(If, .infer = if_infer, .prepare = if_prepare, .run = if_run, .grad = cm_if_grad,
      .effects = CM_OUTPUT_SIZE_AT_RUN);
