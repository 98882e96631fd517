/* SequenceConstruct, SequenceEmpty, SequenceAt, SequenceInsert, SequenceErase, SequenceLength.
 * Items are shared, never copied. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/sequence/sequence.h"

#include "ops/sequence/sequence_grad.h"

enum cm_status cm_sequence_element(struct cm_infer *in, int i, const struct cm_type **out)
{
    const struct cm_type *type = cm_infer_type(in, i);
    if (type->kind != CM_KIND_SEQUENCE)
        return cm_infer_fail(in, "input %d is not a sequence", i);
    if (!type->elem)
        return cm_infer_fail(in, "the element type of input %d is not known", i);
    *out = type->elem;
    return CM_OK;
}

enum cm_status cm_sequence_set(struct cm_infer *in, int o, const struct cm_type *element)
{
    return cm_infer_set(in, o, cm_type_wrap(in->arena, CM_KIND_SEQUENCE, element));
}

/* Operand i as a position among count ones, negative ones counted from the end. */
static enum cm_status sequence_position(struct cm_call *call, int i, size_t count, size_t *out)
{
    const int64_t n = (int64_t)count;
    int64_t position = n;
    CM_TRY(cm_call_int(call, i, &position));
    if (position < -n || position >= n)
        return cm_call_fail(call, CM_BAD_ARGUMENT,
                            "position %lld is out of range for a sequence of %lld",
                            (long long)position, (long long)n);
    *out = (size_t)(position < 0 ? position + n : position);
    return CM_OK;
}

static bool given(const struct cm_call *call, int i)
{
    return i < call->n_in && call->in[i];
}

static enum cm_status construct_infer(struct cm_infer *in)
{
    const struct cm_type *element = cm_infer_type(in, 0);
    for (int i = 1; i < in->n_in && element; i++)
        element = cm_type_join(in->arena, element, cm_infer_type(in, i));
    if (!element)
        return cm_infer_fail(in, "its inputs have different element types");
    return cm_sequence_set(in, 0, element);
}

static enum cm_status construct_run(struct cm_call *call)
{
    struct cm_datum *y = call->out_datum[0];
    CM_TRY(cm_sequence_new((size_t)call->n_in, y, call->err));
    for (int i = 0; i < call->n_in; i++)
        CM_TRY(cm_sequence_add(y, call->in_datum[i], call->err));
    return CM_OK;
}

CM_OP(SequenceConstruct, .infer = construct_infer, .run = construct_run, .grad = cm_construct_grad,
      .effects = CM_OUTPUT_SIZE_AT_RUN);

static enum cm_status empty_infer(struct cm_infer *in)
{
    const int64_t dtype =
        cm_node_has_attr(in->node, "dtype") ? cm_node_int(in->node, "dtype") : CM_FLOAT;
    if (!cm_dtype_is_valid(dtype))
        return cm_infer_fail(in, "attribute 'dtype' is %lld, which is not an element type",
                             (long long)dtype);
    return cm_sequence_set(in, 0,
                           cm_type_tensor(in->arena, (enum cm_dtype)dtype, CM_RANK_UNKNOWN, NULL));
}

static enum cm_status empty_run(struct cm_call *call)
{
    return cm_sequence_new(0, call->out_datum[0], call->err);
}

CM_OP(SequenceEmpty, .infer = empty_infer, .run = empty_run, .grad = cm_grad_none,
      .effects = CM_OUTPUT_SIZE_AT_RUN);

static enum cm_status at_infer(struct cm_infer *in)
{
    const struct cm_type *element = NULL;
    CM_TRY(cm_sequence_element(in, 0, &element));
    return cm_infer_set(in, 0, element);
}

static enum cm_status at_run(struct cm_call *call)
{
    const struct cm_datum *x = call->in_datum[0];
    size_t position;
    CM_TRY(sequence_position(call, 1, x->n_items, &position));
    return cm_datum_share(&x->items[position], call->out_datum[0], call->err);
}

CM_OP(SequenceAt, .infer = at_infer, .run = at_run, .grad = cm_at_grad,
      .effects = CM_OUTPUT_SIZE_AT_RUN);

static enum cm_status insert_infer(struct cm_infer *in)
{
    const struct cm_type *element, *tensor = cm_infer_type(in, 1);
    CM_TRY(cm_sequence_element(in, 0, &element));
    const struct cm_type *both = cm_type_join(in->arena, element, tensor);
    if (!both)
        return cm_infer_fail(in, "a %s tensor cannot go into a sequence of %s",
                             cm_dtype_name(tensor->dtype), cm_dtype_name(element->dtype));
    return cm_sequence_set(in, 0, both);
}

static enum cm_status insert_run(struct cm_call *call)
{
    const struct cm_datum *x = call->in_datum[0];
    size_t position = x->n_items;
    int64_t wanted = (int64_t)x->n_items;
    /* The end itself is a position, but not one to count backwards from. */
    CM_TRY(cm_call_int(call, 2, &wanted));
    if (wanted != (int64_t)x->n_items)
        CM_TRY(sequence_position(call, 2, x->n_items, &position));
    return cm_sequence_insert(x, position, call->in_datum[1], call->out_datum[0], call->err);
}

CM_OP(SequenceInsert, .infer = insert_infer, .run = insert_run, .grad = cm_insert_grad,
      .effects = CM_OUTPUT_SIZE_AT_RUN);

static enum cm_status erase_run(struct cm_call *call)
{
    const struct cm_datum *x = call->in_datum[0];
    size_t position = x->n_items - 1;
    if (given(call, 1))
        CM_TRY(sequence_position(call, 1, x->n_items, &position));
    else if (x->n_items == 0)
        return cm_call_fail(call, CM_BAD_ARGUMENT, "the sequence is empty");
    return cm_sequence_erase(x, position, call->out_datum[0], call->err);
}

CM_OP(SequenceErase, .infer = cm_infer_like_input, .run = erase_run, .grad = cm_erase_grad,
      .effects = CM_OUTPUT_SIZE_AT_RUN);

static enum cm_status length_infer(struct cm_infer *in)
{
    return cm_infer_set_tensor(in, 0, CM_INT64, 0, NULL);
}

static enum cm_status length_run(struct cm_call *call)
{
    *(int64_t *)call->out[0]->data = (int64_t)call->in_datum[0]->n_items;
    return CM_OK;
}

CM_OP(SequenceLength, .infer = length_infer, .run = length_run, .grad = cm_grad_none);
