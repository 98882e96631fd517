/* Optional, OptionalGetElement, OptionalHasElement: a value, or none. At run time an optional with
 * content is that content. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/sequence/sequence_grad.h"

static enum cm_status optional_infer(struct cm_infer *in)
{
    const struct cm_type *element = cm_infer_type(in, 0);
    const struct cm_attribute_proto *type = cm_node_attr(in->node, "type");
    if (!element && (!type || !type->tp))
        return cm_infer_fail(in, "has neither an input nor a type");
    if (!element)
        CM_TRY(cm_type_from_proto(in->arena, in->symbols, type->tp, &element, in->err));
    return cm_infer_set(in, 0, cm_type_wrap(in->arena, CM_KIND_OPTIONAL, element));
}

static enum cm_status optional_run(struct cm_call *call)
{
    if (call->n_in == 0 || !call->in_datum[0])
        return CM_OK; /* an empty datum is no content */
    return cm_datum_share(call->in_datum[0], call->out_datum[0], call->err);
}

CM_OP(Optional, .infer = optional_infer, .run = optional_run, .grad = cm_pass_grad,
      .effects = CM_OUTPUT_SIZE_AT_RUN);

static enum cm_status get_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    if (x->kind == CM_KIND_OPTIONAL && !x->elem)
        return cm_infer_fail(in, "the element type of input 0 is not known");
    return cm_infer_set(in, 0, x->kind == CM_KIND_OPTIONAL ? x->elem : x);
}

static enum cm_status get_run(struct cm_call *call)
{
    if (call->in_datum[0]->kind == CM_KIND_NONE)
        return cm_call_fail(call, CM_BAD_ARGUMENT, "the optional has no element");
    return cm_datum_share(call->in_datum[0], call->out_datum[0], call->err);
}

CM_OP(OptionalGetElement, .infer = get_infer, .run = get_run, .grad = cm_pass_grad,
      .effects = CM_OUTPUT_SIZE_AT_RUN);

static enum cm_status has_infer(struct cm_infer *in)
{
    return cm_infer_set_tensor(in, 0, CM_BOOL, 0, NULL);
}

static enum cm_status has_run(struct cm_call *call)
{
    const struct cm_datum *x = call->n_in > 0 ? call->in_datum[0] : NULL;
    *(uint8_t *)call->out[0]->data = x && x->kind != CM_KIND_NONE;
    return CM_OK;
}

CM_OP(OptionalHasElement, .infer = has_infer, .run = has_run, .grad = cm_grad_none);
