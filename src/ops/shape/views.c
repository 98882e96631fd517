/* Identity, Reshape, Flatten, Squeeze, Unsqueeze: the same elements, perhaps under another shape.
 */
// SPDX-License-Identifier: Apache-2.0
#include "ops/common/move.h"
#include "ops/elementwise/element_loops.h"
#include "ops/shape/shape_rules.h"

/* ---- Identity ---- */

static enum cm_status identity_infer(struct cm_infer *in)
{
    CM_TRY(cm_infer_like_input(in));
    cm_infer_pass_known(in);
    return CM_OK;
}

static enum cm_status identity_run(struct cm_call *call)
{
    if (call->in[0] && call->out[0] && call->out[0]->data)
        return cm_run_copy(call);
    return cm_datum_share(call->in_datum[0], call->out_datum[0], call->err);
}

static enum cm_status identity_grad(struct cm_grad *g)
{
    return cm_grad_set(g, 0, cm_grad_incoming(g, 0));
}

CM_OP(Identity, .infer = identity_infer, .run = identity_run, .grad = identity_grad,
      .values.is_copy = true, .memory.share = cm_share_view, .memory.layouts = CM_LAYOUT_SAME,
      .elementwise = cm_copy_elementwise, .values.kept = true);

/* ---- ai.cameo::Require (X, condition): X, or the reason why the run ends ---- */

static enum cm_status require_infer(struct cm_infer *in)
{
    const struct cm_type *condition = cm_infer_type(in, 1);
    const struct cm_tensor *known = cm_infer_constant(in, 1);
    struct cm_shape shape;
    if (cm_type_shape(condition, &shape) && cm_shape_elements(&shape) != 1)
        return cm_infer_fail(in, "the condition has %lld elements, needs 1",
                             (long long)cm_shape_elements(&shape));
    if (known && known->data && !cm_tensor_int(known, 0))
        return cm_infer_fail(in, "%.*s", CM_STR_FMT(cm_node_str(in->node, "reason")));
    return identity_infer(in);
}

static enum cm_status require_run(struct cm_call *call)
{
    if (cm_tensor_count(call->in[1]) != 1 || !cm_tensor_int(call->in[1], 0))
        return cm_call_fail(call, CM_BAD_ARGUMENT, "%.*s",
                            CM_STR_FMT(cm_node_str(call->node, "reason")));
    return cm_run_copy(call);
}

static enum cm_status require_body(struct cm_body *b)
{
    return cm_body_return(b, 0, cm_emit(b, "Identity", cm_body_input(b, 0)));
}

CM_OP_IN(cameo, "ai.cameo", Require, .infer = require_infer, .run = require_run,
         .body = require_body, .grad = identity_grad, .cost.work = cm_work_linear);

/* ---- Reshape ---- */

/* One dimension of the requested shape; -1 is left for later. */
static enum cm_status requested_dim(struct cm_infer *in, const struct cm_type *x, size_t k,
                                    struct cm_quantity item, struct cm_dim *out)
{
    *out = cm_quantity_dim(item);
    if (!item.is_number)
        return CM_OK;
    if (item.number < -1)
        return cm_infer_fail(in, "dimension %zu of the new shape is %lld, expected -1 or more", k,
                             (long long)item.number);
    if (item.number != 0 || cm_node_int(in->node, "allowzero"))
        return CM_OK;
    if (x->rank == CM_RANK_UNKNOWN) {
        *out = CM_DIM_ANY;
        return CM_OK;
    }
    if (k >= (size_t)x->rank)
        return cm_infer_fail(in, "dimension %zu of the new shape is 0, but the input has rank %d",
                             k, x->rank);
    *out = x->dims[k];
    return CM_OK;
}

/* Finds the dimension -1 stands for, or checks that no element is lost. What -1 stands for does not
 * depend on the dimensions that are copied, so an empty batch may be reshaped like any other. */
static enum cm_status fill_in(struct cm_infer *in, const struct cm_type *x, struct cm_dim *dims,
                              size_t count, const bool *copied, int open)
{
    struct cm_quantity all = {1, 0, true}, rest = all;
    if (x->rank == CM_RANK_UNKNOWN)
        return CM_OK;
    for (int i = 0; i < x->rank; i++)
        if (open < 0 || !copied[i])
            all = cm_quantity_product(in->symbols, all, cm_dim_quantity(x->dims[i]));
    for (size_t k = 0; k < count; k++)
        if ((int)k != open && (open < 0 || !copied[k]))
            rest = cm_quantity_product(in->symbols, rest, cm_dim_quantity(dims[k]));
    if (open >= 0)
        dims[open] = cm_quantity_dim(cm_quantity_floor(in->symbols, all, rest));
    if (!all.is_number || !rest.is_number ||
        (open < 0 ? all.number == rest.number : rest.number && all.number % rest.number == 0))
        return CM_OK;
    return cm_infer_fail(in, "%lld elements do not fit the new shape, which has %lld%s",
                         (long long)all.number, (long long)rest.number,
                         open >= 0 ? " without its -1" : "");
}

static enum cm_status reshape_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    struct cm_dim dims[CM_MAX_RANK];
    struct cm_known shape;
    const bool allowzero = cm_node_int(in->node, "allowzero") != 0;
    bool copied[CM_MAX_RANK] = {false}, zero = false;
    int open = -1;

    CM_TRY(cm_infer_list(in, 1));
    if (!cm_infer_known(in, 1, &shape))
        return cm_infer_set_tensor(in, 0, x->dtype, CM_RANK_UNKNOWN, NULL);
    if (shape.count > CM_MAX_RANK)
        return cm_infer_fail(in, "the new shape has rank %zu, the limit is %d", shape.count,
                             CM_MAX_RANK);
    for (size_t k = 0; k < shape.count; k++) {
        CM_TRY(requested_dim(in, x, k, shape.items[k], &dims[k]));
        copied[k] = shape.items[k].is_number && shape.items[k].number == 0 && !allowzero;
        zero = zero || (shape.items[k].is_number && shape.items[k].number == 0);
        if (!shape.items[k].is_number || shape.items[k].number != -1)
            continue;
        if (open >= 0)
            return cm_infer_fail(in, "dimensions %d and %zu of the new shape are both -1", open, k);
        open = (int)k;
    }
    if (open >= 0 && zero && allowzero)
        return cm_infer_fail(in, "the new shape has both 0 and -1, so -1 could be any number");
    CM_TRY(fill_in(in, x, dims, shape.count, copied, open));
    CM_TRY(cm_infer_set_tensor(in, 0, x->dtype, (int)shape.count, dims));
    cm_infer_pass_known(in);
    return CM_OK;
}

CM_OP(Reshape, .infer = reshape_infer, .run = cm_run_copy, .grad = cm_grad_reshape,
      .memory.share = cm_share_view, .values.kept = true);

/* ---- Flatten ---- */

/* (d0, .., dn) becomes (d0 * .. * d[axis-1], d[axis] * .. * dn); axis may equal the rank. */
static enum cm_status flatten_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    struct cm_dim dims[2] = {CM_DIM_ANY, CM_DIM_ANY};
    int axis;

    if (x->rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, x->dtype, 2, dims);
    CM_TRY(cm_infer_axis(in, cm_node_int(in->node, "axis"), x->rank, true, &axis));
    dims[0] = cm_quantity_dim(cm_type_product(in->symbols, x, 0, axis));
    dims[1] = cm_quantity_dim(cm_type_product(in->symbols, x, axis, x->rank));
    return cm_infer_set_tensor(in, 0, x->dtype, 2, dims);
}

CM_OP(Flatten, .infer = flatten_infer, .run = cm_run_copy, .grad = cm_grad_reshape,
      .memory.share = cm_share_view, .values.kept = true);

/* ---- Squeeze and Unsqueeze ---- */

/* Marks the axes that input 1 names among rank of them; known is false when they are not all
 * numbers. */
static enum cm_status marked_axes(struct cm_infer *in, int rank, bool *marked, bool *known)
{
    int64_t axes[CM_MAX_RANK];
    size_t count;

    *known = cm_infer_numbers(in, 1, CM_MAX_RANK, axes, &count);
    for (size_t i = 0; *known && i < count; i++) {
        int axis;
        CM_TRY(cm_infer_axis(in, axes[i], rank, false, &axis));
        if (marked[axis])
            return cm_infer_fail(in, "axis %d is listed twice", axis);
        marked[axis] = true;
    }
    return CM_OK;
}

static enum cm_status set_unknown_dims(struct cm_infer *in, enum cm_dtype dtype, int rank)
{
    struct cm_dim dims[CM_MAX_RANK];
    if (rank < 0 || rank > CM_MAX_RANK)
        return cm_infer_fail(in, "its result would have rank %d, which is out of range", rank);
    for (int i = 0; i < rank; i++)
        dims[i] = CM_DIM_ANY;
    return cm_infer_set_tensor(in, 0, dtype, rank, dims);
}

/* Without axes every dimension of 1 goes, so all must be known. */
static bool mark_ones(const struct cm_type *x, bool *marked)
{
    for (int i = 0; i < x->rank; i++) {
        if (!cm_dim_known(x->dims[i]))
            return false;
        marked[i] = x->dims[i].value == 1;
    }
    return true;
}

static enum cm_status squeeze_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    const bool has_axes = cm_infer_type(in, 1) != NULL;
    bool gone[CM_MAX_RANK] = {false}, known;
    struct cm_dim dims[CM_MAX_RANK];
    struct cm_known axes;
    int rank = 0;

    CM_TRY(cm_infer_list(in, 1));
    if (x->rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, x->dtype, CM_RANK_UNKNOWN, NULL);
    if (has_axes)
        CM_TRY(marked_axes(in, x->rank, gone, &known));
    else
        known = mark_ones(x, gone);
    if (!known) {
        if (has_axes && cm_infer_known(in, 1, &axes) && axes.count <= (size_t)x->rank)
            return set_unknown_dims(in, x->dtype, x->rank - (int)axes.count);
        return cm_infer_set_tensor(in, 0, x->dtype, CM_RANK_UNKNOWN, NULL);
    }
    for (int i = 0; i < x->rank; i++) {
        if (!gone[i])
            dims[rank++] = x->dims[i];
        else if (cm_dim_known(x->dims[i]) && x->dims[i].value != 1)
            return cm_infer_fail(in, "axis %d is %lld long and cannot be squeezed out", i,
                                 (long long)x->dims[i].value);
    }
    CM_TRY(cm_infer_set_tensor(in, 0, x->dtype, rank, dims));
    cm_infer_pass_known(in);
    return CM_OK;
}

CM_OP(Squeeze, .infer = squeeze_infer, .run = cm_run_copy, .grad = cm_grad_reshape,
      .memory.share = cm_share_view, .values.kept = true);

static enum cm_status unsqueeze_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    bool made[CM_MAX_RANK] = {false}, known;
    struct cm_dim dims[CM_MAX_RANK];
    struct cm_known axes;

    CM_TRY(cm_infer_list(in, 1));
    if (x->rank == CM_RANK_UNKNOWN || !cm_infer_known(in, 1, &axes))
        return cm_infer_set_tensor(in, 0, x->dtype, CM_RANK_UNKNOWN, NULL);
    if (axes.count > (size_t)(CM_MAX_RANK - x->rank))
        return cm_infer_fail(in, "its result would have rank %zu, the limit is %d",
                             axes.count + (size_t)x->rank, CM_MAX_RANK);
    const int rank = x->rank + (int)axes.count;
    CM_TRY(marked_axes(in, rank, made, &known));
    if (!known)
        return set_unknown_dims(in, x->dtype, rank);
    for (int i = 0, from = 0; i < rank; i++)
        dims[i] = made[i] ? CM_DIM(1) : x->dims[from++];
    CM_TRY(cm_infer_set_tensor(in, 0, x->dtype, rank, dims));
    cm_infer_pass_known(in);
    return CM_OK;
}

CM_OP(Unsqueeze, .infer = unsqueeze_infer, .run = cm_run_copy, .grad = cm_grad_reshape,
      .memory.share = cm_share_view, .values.kept = true);
