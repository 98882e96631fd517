/* Shape and Size: what is asked of a tensor's shape, not of its elements. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/op.h"

/* The part [first, last) of the axes that attributes start and end ask for; out of range is
 * clamped. */
static void part(const struct cm_node *node, int rank, int *first, int *last)
{
    const int64_t limits[2] = {cm_node_int(node, "start"),
                               cm_node_has_attr(node, "end") ? cm_node_int(node, "end") : rank};
    int *const out[2] = {first, last};
    for (int i = 0; i < 2; i++) {
        const int64_t at = limits[i] < 0 ? limits[i] + rank : limits[i];
        *out[i] = (int)(at < 0 ? 0 : at > rank ? rank : at);
    }
    if (*last < *first)
        *last = *first;
}

static enum cm_status shape_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    struct cm_quantity items[CM_MAX_RANK];
    int first, last;

    if (x->rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, CM_INT64, 1, &CM_DIM_ANY);
    part(in->node, x->rank, &first, &last);
    for (int i = first; i < last; i++)
        items[i - first] = cm_dim_quantity(x->dims[i]);
    CM_TRY(cm_infer_set_tensor(in, 0, CM_INT64, 1, &CM_DIM(last - first)));
    cm_infer_set_known(in, 0, 1, (size_t)(last - first), items);
    return CM_OK;
}

static enum cm_status shape_prepare(struct cm_call *call)
{
    int *limits = cm_call_state(call, 2 * sizeof *limits);
    part(call->node, call->in[0]->shape.rank, &limits[0], &limits[1]);
    return CM_OK;
}

static enum cm_status shape_run(struct cm_call *call)
{
    const int *limits = call->state;
    const size_t count = (size_t)(limits[1] - limits[0]);
    if (count)
        memcpy(call->out[0]->data, call->in[0]->shape.dims + limits[0], count * sizeof(int64_t));
    return CM_OK;
}

CM_OP(Shape, .infer = shape_infer, .prepare = shape_prepare, .run = shape_run, .grad = cm_grad_none,
      .cost.work = cm_work_linear);

static enum cm_status size_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    CM_TRY(cm_infer_set_tensor(in, 0, CM_INT64, 0, NULL));
    if (x->rank == CM_RANK_UNKNOWN)
        return CM_OK;
    const struct cm_quantity known = cm_type_product(in->symbols, x, 0, x->rank);
    if (cm_quantity_is_some(known))
        cm_infer_set_known(in, 0, 0, 1, &known);
    return CM_OK;
}

static enum cm_status size_run(struct cm_call *call)
{
    const int64_t count = cm_tensor_count(call->in[0]);
    memcpy(call->out[0]->data, &count, sizeof count);
    return CM_OK;
}

CM_OP(Size, .infer = size_infer, .run = size_run, .grad = cm_grad_none,
      .cost.work = cm_work_linear);
