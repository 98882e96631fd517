/* Slice: every so-manieth element between two ends, along some axes. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "ops/common/move.h"
#include "ops/shape/shape_rules.h"

/* What is asked along one axis. */
struct range {
    struct cm_quantity start, end, step;
};

#define NUMBER(n) ((struct cm_quantity){(n), 0, true})

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* The first element and the number of elements taken from an axis of length dim; step is not 0. */
static int64_t take(int64_t dim, int64_t start, int64_t end, int64_t step, int64_t *first)
{
    const int64_t most = step > 0 ? dim : dim - 1, least = step > 0 ? 0 : -1;
    start = clamp(start < 0 ? start + dim : start, 0, most);
    end = clamp(end < 0 ? end + dim : end, least, most);
    *first = start;
    if (step > 0)
        return end > start ? (end - start - 1) / step + 1 : 0;
    if (dim == 0 || end >= start)
        return 0;
    /* -INT64_MIN does not exist; one element is all such a step can take. */
    return step == INT64_MIN ? 1 : (start - end - 1) / -step + 1;
}

/* ---- inference ---- */

/* Where a slice with a positive step begins or ends, from 0 to dim; unknown where the sign of `at`
 * is. */
static struct cm_quantity place(struct cm_symbols *symbols, struct cm_quantity dim,
                                struct cm_quantity at)
{
    const struct cm_quantity zero = NUMBER(0), back = cm_quantity_difference(symbols, dim, at);
    int64_t least;
    if (at.is_number && at.number >= INT32_MAX)
        return dim;
    if (at.is_number && at.number < 0)
        return cm_quantity_larger(symbols, cm_quantity_sum(symbols, dim, at), zero);
    if (cm_quantity_least(symbols, at, &least) && least >= 0)
        return cm_quantity_smaller(symbols, dim, at);
    /* dim - 1 and dim - 2 are below 0 only where counting from the end gives 0 as well. */
    if (back.is_number && (back.number == 1 || back.number == 2))
        return cm_quantity_larger(symbols, at, zero);
    return (struct cm_quantity){0};
}

/* The length of an axis after slicing, where it can be known. */
static struct cm_dim sliced_dim(struct cm_symbols *symbols, struct cm_dim dim,
                                const struct range *range)
{
    const struct cm_quantity start = range->start, end = range->end, step = range->step;
    int64_t first;

    if (cm_dim_known(dim) && start.is_number && end.is_number && step.is_number)
        return CM_DIM(take(dim.value, start.number, end.number, step.number, &first));
    if (cm_dim_known(dim) && dim.value == 0)
        return CM_DIM(0);
    if (!step.is_number)
        return CM_DIM_ANY;
    if (step.number == -1 && end.is_number && end.number <= INT32_MIN && start.is_number &&
        (start.number == -1 || start.number >= INT32_MAX))
        return dim;
    if (step.number < 1)
        return CM_DIM_ANY;
    const struct cm_quantity whole = cm_dim_quantity(dim), zero = NUMBER(0);
    const struct cm_quantity from = place(symbols, whole, start), to = place(symbols, whole, end);
    const struct cm_quantity length =
        cm_quantity_larger(symbols, cm_quantity_difference(symbols, to, from), zero);
    return step.number == 1
               ? cm_quantity_dim(length)
               : cm_dim_floor(symbols, cm_quantity_dim(length), step.number - 1, step.number);
}

/* Which axis entry k speaks of; -1 when that is not known. */
static enum cm_status axis_of(struct cm_infer *in, const struct cm_known *axes, size_t k, int rank,
                              int *axis)
{
    *axis = -1;
    if (!axes)
        return cm_infer_axis(in, (int64_t)k, rank, false, axis);
    if (!axes->items[k].is_number)
        return CM_OK;
    return cm_infer_axis(in, axes->items[k].number, rank, false, axis);
}

struct lists {
    struct cm_known starts, ends, axes, steps;
    bool has_axes, has_steps;
};

/* The four lists, of which at least the length is known; false when not even that. */
static enum cm_status read_lists(struct cm_infer *in, struct lists *lists, bool *known)
{
    lists->has_axes = cm_infer_type(in, 3) != NULL;
    lists->has_steps = cm_infer_type(in, 4) != NULL;
    *known = cm_infer_known(in, 1, &lists->starts) && cm_infer_known(in, 2, &lists->ends) &&
             (!lists->has_axes || cm_infer_known(in, 3, &lists->axes)) &&
             (!lists->has_steps || cm_infer_known(in, 4, &lists->steps));
    if (!*known)
        return CM_OK;
    const size_t count = lists->starts.count;
    if (lists->ends.count != count || (lists->has_axes && lists->axes.count != count) ||
        (lists->has_steps && lists->steps.count != count))
        return cm_infer_fail(in, "starts, ends, axes and steps have different lengths");
    return CM_OK;
}

static struct range range_at(const struct lists *lists, size_t k)
{
    return (struct range){lists->starts.items[k], lists->ends.items[k],
                          lists->has_steps ? lists->steps.items[k] : NUMBER(1)};
}

static enum cm_status set_unknown(struct cm_infer *in, const struct cm_type *x)
{
    struct cm_dim dims[CM_MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        dims[i] = CM_DIM_ANY;
    return cm_infer_set_tensor(in, 0, x->dtype, x->rank, dims);
}

/* A slice of an integer list of which something is known. */
static void slice_known(struct cm_infer *in, const struct lists *lists)
{
    struct cm_known x;
    if (lists->starts.count != 1 || !cm_infer_some_known(in, 0, &x) || x.rank != 1)
        return;
    const struct range range = range_at(lists, 0);
    if (!range.start.is_number || !range.end.is_number || !range.step.is_number)
        return;
    int64_t first;
    const int64_t count =
        take((int64_t)x.count, range.start.number, range.end.number, range.step.number, &first);
    struct cm_quantity *items = CM_NEW_ARRAY(in->arena, struct cm_quantity, (size_t)count);
    for (int64_t i = 0; i < count; i++)
        items[i] = x.items[first + (i ? i * range.step.number : 0)];
    cm_infer_set_known(in, 0, 1, (size_t)count, items);
}

static enum cm_status slice_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    struct cm_dim dims[CM_MAX_RANK];
    bool seen[CM_MAX_RANK] = {false}, known;
    struct lists lists;

    for (int i = 1; i < in->n_in; i++)
        CM_TRY(cm_infer_list(in, i));
    if (x->rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, x->dtype, CM_RANK_UNKNOWN, NULL);
    CM_TRY(read_lists(in, &lists, &known));
    if (!known)
        return set_unknown(in, x);
    cm_type_copy_dims(dims, x);
    for (size_t k = 0; k < lists.starts.count; k++) {
        const struct range range = range_at(&lists, k);
        int axis;
        CM_TRY(axis_of(in, lists.has_axes ? &lists.axes : NULL, k, x->rank, &axis));
        if (axis < 0)
            return set_unknown(in, x);
        if (range.step.is_number && range.step.number == 0)
            return cm_infer_fail(in, "the step along axis %d is 0", axis);
        if (seen[axis])
            return cm_infer_fail(in, "axis %d is listed twice", axis);
        seen[axis] = true;
        dims[axis] = sliced_dim(in->symbols, x->dims[axis], &range);
    }
    CM_TRY(cm_infer_set_tensor(in, 0, x->dtype, x->rank, dims));
    if (x->rank == 1)
        slice_known(in, &lists);
    return CM_OK;
}

/* ---- running ---- */

/* An optional list of numbers, or what stands for it when it is absent. */
static int64_t listed(const struct cm_call *call, int input, int64_t k, int64_t otherwise)
{
    const struct cm_tensor *list = input < call->n_in ? call->in[input] : NULL;
    return list ? cm_tensor_int(list, k) : otherwise;
}

static enum cm_status slice_run(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0];
    const struct cm_shape *y = &call->out[0]->shape;
    int64_t from[CM_MAX_RANK], to[CM_MAX_RANK], first_element = 0;
    bool seen[CM_MAX_RANK] = {false};
    struct cm_move move;

    cm_shape_strides(&x->shape, from);
    cm_shape_strides(y, to);
    const int64_t count = cm_tensor_count(call->in[1]);
    for (int64_t k = 0; k < count; k++) {
        int axis;
        int64_t first;
        const int64_t step = listed(call, 4, k, 1);
        if (!cm_axis_fix(listed(call, 3, k, k), x->shape.rank, &axis) || step == 0)
            return cm_call_fail(call, CM_BAD_ARGUMENT,
                                "entry %lld has an axis that is out of range, or step 0",
                                (long long)k);
        const int64_t dim = x->shape.dims[axis];
        const int64_t taken = take(dim, listed(call, 1, k, 0), listed(call, 2, k, 0), step, &first);
        if (seen[axis])
            return cm_call_fail(call, CM_BAD_ARGUMENT, "axis %d is listed twice", axis);
        seen[axis] = true;
        first_element += taken > 0 ? first * from[axis] : 0;
        from[axis] = taken > 1 ? from[axis] * step : 0; /* a longer step might not fit */
    }
    cm_move_plan(&move, y->rank, y->dims, from, to);
    move.from_at = first_element;
    cm_move_run(&move, x->type, x->data, call->out[0]->data);
    return cm_move_hold(call->out[0], x, call->err);
}

/* The last axis that loses elements is the first one with several: what is left lies together. */
static int64_t slice_stretch(const struct cm_call *call, int output)
{
    const struct cm_shape *x = &call->in[0]->shape, *y = &call->out[output]->shape;
    int64_t strides[CM_MAX_RANK], at = 0;
    int last = x->rank - 1;

    for (int i = 1; i < call->n_in; i++)
        if (call->in[i] && !call->in[i]->data)
            return -1;
    while (last > 0 && x->dims[last] == y->dims[last])
        last--;
    if (cm_shape_span(y, 0, last) != 1)
        return -1;
    cm_shape_strides(x, strides);
    for (int64_t k = 0; k < cm_tensor_count(call->in[1]); k++) {
        int axis;
        int64_t first;
        const int64_t step = listed(call, 4, k, 1);
        if (!cm_axis_fix(listed(call, 3, k, k), x->rank, &axis) || step == 0)
            return -1;
        const int64_t taken =
            take(x->dims[axis], listed(call, 1, k, 0), listed(call, 2, k, 0), step, &first);
        if (taken < 1 || (taken > 1 && step != 1))
            return -1;
        at += first * strides[axis];
    }
    return at;
}

/* ---- gradient ---- */

/* The constant contents of input i of the forward node; NULL when absent or not constant. */
static const struct cm_tensor *constant_input(struct cm_grad *g, int i)
{
    const struct cm_tensor *constant = NULL;
    const cm_value value = cm_grad_input(g, i);
    if (value && !g->build.status)
        g->build.status = cm_value_constant(g->build.graph->module, value, &constant, g->build.err);
    return constant;
}

/* Where all of it is known and steps are 1, how much was cut off at either end of each axis. */
static bool cuts(struct cm_grad *g, const struct cm_type *x, int64_t *pads)
{
    const struct cm_tensor *lists[5];
    if (x->rank == CM_RANK_UNKNOWN)
        return false;
    for (int i = 1; i < 5; i++) {
        lists[i] = constant_input(g, i);
        if (!lists[i] && (i < 3 || cm_grad_input(g, i)))
            return false;
    }
    for (int i = 0; i < 2 * x->rank; i++)
        pads[i] = 0;
    for (int64_t k = 0; k < cm_tensor_count(lists[1]); k++) {
        int axis;
        int64_t first;
        if (!cm_axis_fix(lists[3] ? cm_tensor_int(lists[3], k) : k, x->rank, &axis) ||
            !cm_dim_known(x->dims[axis]) || (lists[4] && cm_tensor_int(lists[4], k) != 1))
            return false;
        const int64_t dim = x->dims[axis].value;
        const int64_t taken =
            take(dim, cm_tensor_int(lists[1], k), cm_tensor_int(lists[2], k), 1, &first);
        pads[axis] = first;
        pads[axis + x->rank] = dim - first - taken;
    }
    return true;
}

/* Zeros around dy where that is all there is to it; else each element goes back to its position. */
static enum cm_status slice_grad(struct cm_grad *g)
{
    const cm_value x = cm_grad_input(g, 0), dy = cm_grad_incoming(g, 0);
    const struct cm_type *type = cm_builder_type(&g->build, x);
    int64_t pads[2 * CM_MAX_RANK];

    if (cuts(g, type, pads)) {
        const cm_value around = cm_build_int64s(&g->build, 2 * (size_t)type->rank, pads);
        return cm_grad_set(g, 0, cm_emit(g, "Pad", dy, around));
    }
    cm_value inputs[5] = {cm_build_positions(&g->build, x)};
    for (int i = 1; i < 5; i++)
        inputs[i] = cm_grad_input(g, i);
    const size_t count = (size_t)g->node->n_inputs;
    const cm_value positions = cm_build(
        &g->build, &(struct cm_emission){.op = "Slice", .inputs = inputs, .n_inputs = count});
    return cm_grad_set(g, 0, cm_build_scatter(&g->build, x, positions, dy, false));
}

CM_OP(Slice, .infer = slice_infer, .run = slice_run, .grad = slice_grad,
      .cost.work = cm_work_linear, .memory.stretch = slice_stretch, .values.picked_from = 1);
