/* ArgMax, ArgMin and TopK: places by rank of their numbers. NaN counts as the largest number, and
 * for ArgMin as the smallest, as in numpy. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "graph/node_formula.h"
#include "ops/index/index.h"

static bool is_ordered(enum cm_dtype type)
{
    const enum cm_dtype_class kind = cm_dtype_info(type)->kind;
    return kind == CM_CLASS_FLOAT || kind == CM_CLASS_SIGNED || kind == CM_CLASS_UNSIGNED;
}

/* Below 0 if element a of x is less than element b. NaN is above all numbers, or below them. */
static int compare(const struct cm_tensor *x, int64_t a, int64_t b, bool nan_is_least)
{
    const enum cm_dtype_class kind = cm_dtype_info(x->type)->kind;
    if (kind == CM_CLASS_FLOAT) {
        const double u = cm_tensor_real(x, a), v = cm_tensor_real(x, b);
        const int nan = (u != u) - (v != v);
        return nan ? (nan_is_least ? -nan : nan) : (u > v) - (u < v);
    }
    const int64_t u = cm_tensor_int(x, a), v = cm_tensor_int(x, b);
    if (kind == CM_CLASS_UNSIGNED)
        return ((uint64_t)u > (uint64_t)v) - ((uint64_t)u < (uint64_t)v);
    return (u > v) - (u < v);
}

/* ---- ArgMax, ArgMin ---- */

static const bool smallest = true, largest = false;

static enum cm_status arg_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    const bool keepdims = cm_node_int(in->node, "keepdims");
    struct cm_dim dims[CM_MAX_RANK];
    int axis, rank = 0;
    if (x->rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, CM_INT64, CM_RANK_UNKNOWN, NULL);
    CM_TRY(cm_infer_axis(in, cm_node_int(in->node, "axis"), x->rank, false, &axis));
    if (x->dims[axis].value == 0)
        return cm_infer_fail(in, "axis %d has no elements to choose from", axis);
    for (int i = 0; i < x->rank; i++) {
        if (i != axis)
            dims[rank++] = x->dims[i];
        else if (keepdims)
            dims[rank++] = CM_DIM(1);
    }
    return cm_infer_set_tensor(in, 0, CM_INT64, rank, dims);
}

struct arg {
    struct cm_lanes lanes;
    bool last; /* of equal ones */
};

static enum cm_status arg_prepare(struct cm_call *call)
{
    struct arg *arg = cm_call_state(call, sizeof *arg);
    CM_TRY(cm_lanes_read(call, &call->in[0]->shape, &arg->lanes));
    arg->last = cm_node_int(call->node, "select_last_index");
    return CM_OK;
}

static enum cm_status arg_run(struct cm_call *call)
{
    const bool wants_smallest = *(const bool *)call->op->arg;
    const struct arg *arg = call->state;
    const struct cm_lanes *lanes = &arg->lanes;
    const struct cm_tensor *x = call->in[0];
    int64_t *y = call->out[0]->data;
    if (!is_ordered(x->type))
        return cm_call_fail(call, CM_UNSUPPORTED, "no kernel for %s", cm_dtype_name(x->type));
    for (int64_t lane = 0; lanes->length > 0 && lane < lanes->outer * lanes->inner; lane++) {
        const int64_t first = cm_lanes_first(lanes, lane);
        y[lane] = 0;
        for (int64_t k = 1; k < lanes->length; k++) {
            const int sign = compare(x, first + k * lanes->inner, first + y[lane] * lanes->inner,
                                     wants_smallest);
            if ((wants_smallest ? sign < 0 : sign > 0) || (sign == 0 && arg->last))
                y[lane] = k;
        }
    }
    return CM_OK;
}

/* The largest of what is in the opposite order: -x, of whole numbers the opposite bits, which
 * cannot overflow. */
static enum cm_status arg_min_body(struct cm_body *b)
{
    const enum cm_dtype type = cm_builder_type(&b->build, cm_body_input(b, 0))->dtype;
    const bool real = cm_dtype_info(type)->kind == CM_CLASS_FLOAT;
    return cm_body_formula(b, "reduced = ArgMax<axis?, keepdims?, select_last_index?>(%s(data))",
                           real ? "Neg" : "BitwiseNot");
}

CM_OP(ArgMax, .infer = arg_infer, .prepare = arg_prepare, .run = arg_run, .grad = cm_grad_none,
      .arg = &largest);
CM_OP(ArgMin, .infer = arg_infer, .prepare = arg_prepare, .run = arg_run, .grad = cm_grad_none,
      .body = arg_min_body, .arg = &smallest);

/* ---- TopK ---- */

static enum cm_status topk_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    struct cm_dim dims[CM_MAX_RANK];
    struct cm_known k;
    int axis;
    CM_TRY(cm_infer_list(in, 1));
    if (x->rank == CM_RANK_UNKNOWN) {
        CM_TRY(cm_infer_set_tensor(in, 0, x->dtype, CM_RANK_UNKNOWN, NULL));
        return cm_infer_set_tensor(in, 1, CM_INT64, CM_RANK_UNKNOWN, NULL);
    }
    CM_TRY(cm_infer_axis(in, cm_node_int(in->node, "axis"), x->rank, false, &axis));
    for (int i = 0; i < x->rank; i++)
        dims[i] = x->dims[i];
    dims[axis] = CM_DIM_ANY;
    if (cm_infer_known(in, 1, &k)) {
        if (k.count != 1)
            return cm_infer_fail(in, "K has %zu elements, needs 1", k.count);
        if (k.items[0].is_number && k.items[0].number < 0)
            return cm_infer_fail(in, "K is %lld, must not be negative",
                                 (long long)k.items[0].number);
        dims[axis] = cm_quantity_dim(k.items[0]);
        if (cm_dim_known(dims[axis]) && cm_dim_known(x->dims[axis]) &&
            dims[axis].value > x->dims[axis].value)
            return cm_infer_fail(in, "K is %lld, axis %d has only %lld elements",
                                 (long long)dims[axis].value, axis, (long long)x->dims[axis].value);
    }
    CM_TRY(cm_infer_set_tensor(in, 0, x->dtype, x->rank, dims));
    return cm_infer_set_tensor(in, 1, CM_INT64, x->rank, dims);
}

struct topk {
    struct cm_lanes lanes;
    bool largest;
};

static enum cm_status topk_prepare(struct cm_call *call)
{
    struct topk *topk = cm_call_state(call, sizeof *topk);
    const struct cm_shape *x = &call->in[0]->shape;
    size_t bytes;
    CM_TRY(cm_lanes_read(call, x, &topk->lanes));
    topk->largest = cm_node_int(call->node, "largest");
    if (!cm_size_mul((size_t)topk->lanes.length, sizeof(int64_t), &bytes))
        return cm_call_fail(call, CM_LIMIT, "its axis is too long to sort");
    if (cm_shape_elements(x) > 0)
        cm_call_scratch(call, bytes);
    return CM_OK;
}

/* The first k of the lane that begins with element `first`, in order; of equal ones the first. */
static void choose(const struct cm_tensor *x, const struct topk *topk, int64_t first, int64_t k,
                   int64_t *chosen)
{
    const int64_t inner = topk->lanes.inner;
    for (int64_t i = 0; i < topk->lanes.length; i++) {
        int64_t at = i < k ? i : k;
        for (; at > 0; at--) {
            const int sign = compare(x, first + i * inner, first + chosen[at - 1] * inner, false);
            if (topk->largest ? sign <= 0 : sign >= 0)
                break;
            if (at < k)
                chosen[at] = chosen[at - 1];
        }
        if (at < k)
            chosen[at] = i;
    }
}

static enum cm_status topk_run(struct cm_call *call)
{
    const struct topk *topk = call->state;
    const struct cm_lanes *lanes = &topk->lanes;
    const struct cm_tensor *x = call->in[0];
    const size_t width = cm_dtype_size(x->type);
    const int64_t k = cm_tensor_int(call->in[1], 0);
    int64_t *chosen = call->scratch;
    if (!is_ordered(x->type) || width == 0)
        return cm_call_fail(call, CM_UNSUPPORTED, "no kernel for %s", cm_dtype_name(x->type));
    if (k < 0 || k > lanes->length)
        return cm_call_fail(call, CM_BAD_ARGUMENT, "K is %lld, the axis has %lld elements",
                            (long long)k, (long long)lanes->length);
    for (int64_t lane = 0; k > 0 && lane < lanes->outer * lanes->inner; lane++) {
        const int64_t first = cm_lanes_first(lanes, lane);
        const int64_t to = lane / lanes->inner * lanes->inner * k + lane % lanes->inner;
        choose(x, topk, first, k, chosen);
        for (int64_t i = 0; i < k; i++) {
            if (call->out[0])
                memcpy((char *)call->out[0]->data + (size_t)(to + i * lanes->inner) * width,
                       (const char *)x->data + (size_t)(first + chosen[i] * lanes->inner) * width,
                       width);
            if (call->n_out > 1 && call->out[1])
                ((int64_t *)call->out[1]->data)[to + i * lanes->inner] = chosen[i];
        }
    }
    return CM_OK;
}

/* The gradient goes back to the places that were chosen. */
static enum cm_status topk_grad(struct cm_grad *g)
{
    cm_grad_extra_output(g, 1);
    return cm_grad_formula(g, "zeros = Expand(like(X, 0), Shape(X));"
                              "dX = ScatterElements<axis>(zeros, Indices, dValues)");
}

CM_OP(TopK, .infer = topk_infer, .prepare = topk_prepare, .run = topk_run, .grad = topk_grad);
