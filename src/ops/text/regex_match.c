/* RegexFullMatch: does the whole of each string match? */
// SPDX-License-Identifier: Apache-2.0
#include "graph/op.h"
#include "ops/text/regex.h"

static enum cm_status match_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    struct cm_regex *regex = CM_NEW(in->arena, struct cm_regex);
    CM_TRY(cm_regex_compile(cm_node_str(in->node, "pattern"), regex, in->err));
    return cm_infer_set_tensor(in, 0, CM_BOOL, x->rank, x->dims);
}

static enum cm_status match_prepare(struct cm_call *call)
{
    struct cm_regex *regex = cm_call_state(call, sizeof *regex);
    CM_TRY(cm_regex_compile(cm_node_str(call->node, "pattern"), regex, call->err));
    cm_call_scratch(call, cm_regex_scratch(regex));
    return CM_OK;
}

static enum cm_status match_run(struct cm_call *call)
{
    const struct cm_str *x = call->in[0]->data;
    uint8_t *y = call->out[0]->data;
    for (int64_t i = 0; i < cm_tensor_count(call->in[0]); i++)
        y[i] = cm_regex_matches(call->state, x[i], call->scratch);
    return CM_OK;
}

CM_OP(RegexFullMatch, .infer = match_infer, .prepare = match_prepare, .run = match_run,
      .grad = cm_grad_none);
