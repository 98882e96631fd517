/* The ten Reduce operators: axes, shapes, and the walk over the elements. The terms of one result
 * are gathered, and a reduction makes one number of them. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce/reduction.h"

#include "base/number.h"
#include "ops/common/reals.h"

#include <math.h>

/* The axes are not known yet: keepdims keeps the rank, and else their number may be known. */
static enum cm_status infer_unknown_axes(struct cm_infer *in, bool keepdims)
{
    const struct cm_type *x = cm_infer_type(in, 0), *axes = cm_infer_type(in, 1);
    struct cm_dim dims[CM_MAX_RANK];
    int rank = CM_RANK_UNKNOWN;
    if (keepdims)
        rank = x->rank;
    else if (x->rank != CM_RANK_UNKNOWN && axes->rank == 1 && axes->dims[0].value > 0 &&
             axes->dims[0].value <= x->rank)
        rank = x->rank - (int)axes->dims[0].value;
    for (int i = 0; i < rank; i++)
        dims[i] = CM_DIM_ANY;
    return cm_infer_set_tensor(in, 0, x->dtype, rank, dims);
}

/* A list of known integers that becomes one: the number of elements of a shape, for one. */
static void infer_known(struct cm_infer *in, int rank)
{
    const struct cm_reduction *reduction = in->node->op->arg;
    const enum cm_dtype dtype = cm_infer_type(in, 0)->dtype;
    struct cm_known x;
    if (!reduction->of_numbers || (dtype != CM_INT64 && dtype != CM_INT32) ||
        !cm_infer_known(in, 0, &x) || x.rank != 1 || x.count == 0)
        return;
    struct cm_quantity total = x.items[0];
    for (size_t i = 1; i < x.count; i++)
        total = reduction->of_numbers(cm_quantity_symbols(in, dtype), total, x.items[i]);
    if (!cm_quantity_is_some(total))
        return;
    if (dtype == CM_INT32 && total.is_number && total.number != (int32_t)total.number)
        return; /* it will wrap */
    cm_infer_set_known(in, 0, rank, 1, &total);
}

enum cm_status cm_reduce_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0), *axes_type = cm_infer_type(in, 1);
    const bool keepdims = cm_node_int(in->node, "keepdims");
    const bool noop = cm_node_int(in->node, "noop_with_empty_axes");
    const struct cm_tensor *axes = cm_infer_constant(in, 1);

    if (axes_type && axes_type->rank > 1)
        return cm_infer_fail(in, "axes has rank %d, needs 1", axes_type->rank);
    const bool given = axes_type && !(axes_type->rank == 1 && axes_type->dims[0].value == 0);
    if (given && !axes)
        return infer_unknown_axes(in, keepdims);
    if (x->rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, x->dtype, given || keepdims || noop ? CM_RANK_UNKNOWN : 0,
                                   NULL);
    bool reduced[CM_MAX_RANK];
    int64_t wrong = 0;
    if (!cm_tensor_reduced_axes(given ? axes : NULL, noop, x->rank, reduced, &wrong))
        return cm_infer_fail(in, "axis %lld is out of range for rank %d, or listed twice",
                             (long long)wrong, x->rank);
    struct cm_dim dims[CM_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < x->rank; i++) {
        if (!reduced[i])
            dims[rank++] = x->dims[i];
        else if (keepdims)
            dims[rank++] = CM_DIM(1);
    }
    CM_TRY(cm_infer_set_tensor(in, 0, x->dtype, rank, dims));
    if (x->rank == 1 && reduced[0])
        infer_known(in, rank);
    return CM_OK;
}

/* ---- running ---- */

/* Axes that are kept, or that are reduced: innermost first. */
struct axes {
    int rank;
    int64_t count, dims[CM_MAX_RANK], strides[CM_MAX_RANK];
};

static void split_axes(const struct cm_shape *x, const bool *reduced, struct axes *kept,
                       struct axes *terms)
{
    int64_t stride = 1;
    kept->rank = terms->rank = 0;
    kept->count = terms->count = 1;
    for (int i = x->rank - 1; i >= 0; i--) {
        struct axes *axes = reduced[i] ? terms : kept;
        axes->dims[axes->rank] = x->dims[i];
        axes->strides[axes->rank++] = stride;
        axes->count *= x->dims[i];
        stride *= x->dims[i];
    }
}

/* Where element number i along axes lies. */
static int64_t place_of(const struct axes *axes, int64_t i)
{
    int64_t at = 0;
    for (int axis = 0; axis < axes->rank; axis++) {
        at += i % axes->dims[axis] * axes->strides[axis];
        i /= axes->dims[axis];
    }
    return at;
}

/* What an integer type holds that is nearest to value; the bits of one without sign are its own. */
static int64_t within(enum cm_dtype type, int64_t value)
{
    const struct cm_dtype_info *info = cm_dtype_info(type);
    if (info->kind == CM_CLASS_SIGNED) {
        const int64_t most = INT64_MAX >> (64 - info->bits);
        return value > most ? most : value < -most - 1 ? -most - 1 : value;
    }
    const uint64_t most = type == CM_BOOL ? 1 : UINT64_MAX >> (64 - info->bits);
    return (uint64_t)value > most ? (int64_t)most : value;
}

/* Result number o of y from n terms. */
static void reduce_terms(const struct cm_reduction *reduction, int64_t n, const void *terms,
                         const struct cm_tensor *y, int64_t o)
{
    const enum cm_dtype_class kind = cm_dtype_info(y->type)->kind;
    const size_t size = cm_dtype_size(y->type);
    if (kind == CM_CLASS_FLOAT) {
        cm_tensor_set_real(y, o, reduction->of_reals(n, terms));
        return;
    }
    int64_t total = kind == CM_CLASS_SIGNED ? reduction->of_signed(n, terms)
                                            : (int64_t)reduction->of_unsigned(n, terms);
    if (!reduction->wraps)
        total = within(y->type, total);
    memcpy((char *)y->data + (size_t)o * size, &total, size); /* little-endian: the low bytes */
}

enum cm_status cm_reduce_prepare(struct cm_call *call)
{
    size_t bytes;
    if (!cm_size_mul((size_t)cm_tensor_count(call->in[0]), sizeof(double), &bytes))
        return cm_call_fail(call, CM_LIMIT, "its operand is too large");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

enum cm_status cm_reduce_run(struct cm_call *call)
{
    const struct cm_reduction *reduction = call->op->arg;
    const struct cm_tensor *x = call->in[0], *y = call->out[0];
    const bool real = cm_dtype_info(x->type)->kind == CM_CLASS_FLOAT;
    double *reals = call->scratch;
    int64_t *wholes = call->scratch, wrong = 0;
    struct axes kept, terms;
    bool reduced[CM_MAX_RANK];
    if (!cm_tensor_reduced_axes(call->n_in > 1 ? call->in[1] : NULL,
                                cm_node_int(call->node, "noop_with_empty_axes") != 0, x->shape.rank,
                                reduced, &wrong))
        return cm_call_fail(call, CM_BAD_ARGUMENT,
                            "axis %lld is out of range for rank %d, or listed twice",
                            (long long)wrong, x->shape.rank);
    if (!cm_reals_have(x->type) || (!real && !reduction->of_signed))
        return cm_call_fail(call, CM_UNSUPPORTED, "no kernel for %s", cm_dtype_name(x->type));
    if (cm_tensor_count(y) == 0)
        return CM_OK;
    split_axes(&x->shape, reduced, &kept, &terms);
    for (int64_t o = 0; o < kept.count; o++) {
        const int64_t first = place_of(&kept, o);
        for (int64_t i = 0; i < terms.count; i++) {
            const int64_t at = first + place_of(&terms, i);
            if (real)
                reals[i] = cm_tensor_real(x, at);
            else
                wholes[i] = cm_tensor_int(x, at);
        }
        reduce_terms(reduction, terms.count, call->scratch, y, o);
    }
    return CM_OK;
}
