/* Pad: more at the ends of axes, or less. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "ops/common/move.h"
#include "ops/shape/shape_rules.h"

/* Which element of an axis of length dim stands at position q, which is outside [0, dim); -1: the
 * constant. */
typedef int64_t outside_fn(int64_t q, int64_t dim);

static int64_t outside_constant(int64_t q, int64_t dim)
{
    (void)q, (void)dim;
    return -1;
}

static int64_t outside_edge(int64_t q, int64_t dim)
{
    return q < 0 ? 0 : dim - 1;
}

static int64_t outside_wrap(int64_t q, int64_t dim)
{
    const int64_t rest = q % dim;
    return rest < 0 ? rest + dim : rest;
}

/* Mirrored at the first and the last element, again and again if it must. */
static int64_t outside_reflect(int64_t q, int64_t dim)
{
    if (dim == 1)
        return 0;
    const int64_t at = outside_wrap(q, 2 * (dim - 1));
    return at < dim ? at : 2 * (dim - 1) - at;
}

static outside_fn *mode_of(const struct cm_node *node)
{
    static const struct {
        const char *name;
        outside_fn *outside;
    } modes[] = {
        {"constant", outside_constant},
        {"edge", outside_edge},
        {"wrap", outside_wrap},
        {"reflect", outside_reflect},
    };
    const struct cm_str mode = cm_node_str(node, "mode");
    for (size_t i = 0; i < CM_COUNT(modes); i++)
        if (cm_str_is(mode, modes[i].name))
            return modes[i].outside;
    return NULL;
}

/* ---- inference ---- */

static enum cm_status padded_dim(struct cm_infer *in, int axis, struct cm_dim dim,
                                 struct cm_quantity before, struct cm_quantity after,
                                 struct cm_dim *out)
{
    int64_t sum;

    const struct cm_quantity pads = cm_quantity_sum(in->symbols, before, after);
    *out = cm_quantity_dim(cm_quantity_sum(in->symbols, cm_dim_quantity(dim), pads));
    if (!before.is_number || !after.is_number)
        return CM_OK;
    if (!cm_int64_add(before.number, after.number, &sum))
        return cm_infer_fail(in, "pads %lld and %lld of axis %d do not fit 64 bits together",
                             (long long)before.number, (long long)after.number, axis);
    if (!cm_dim_known(dim))
        return CM_OK;
    /* What is cut off at both ends together: no overflow, since their sum fits. */
    const int64_t cut =
        (before.number < 0 ? before.number : 0) + (after.number < 0 ? after.number : 0);
    if (sum > INT64_MAX - dim.value)
        return cm_infer_fail(in, "pads %lld and %lld make axis %d longer than 64 bits count",
                             (long long)before.number, (long long)after.number, axis);
    if (!cm_int64_add(dim.value, sum, &sum) || sum < 0 || dim.value + cut < 0)
        return cm_infer_fail(in, "pads %lld and %lld leave nothing of axis %d, which is %lld long",
                             (long long)before.number, (long long)after.number, axis,
                             (long long)dim.value);
    if (dim.value + cut == 0 && sum > 0 && mode_of(in->node) != outside_constant)
        return cm_infer_fail(in, "nothing is left of axis %d that could be repeated", axis);
    *out = CM_DIM(sum);
    return CM_OK;
}

/* Axis k of the list in input 3, or k itself without one; -1 when it is not known. */
static enum cm_status listed_axis(struct cm_infer *in, const struct cm_known *axes, size_t k,
                                  int rank, int *axis)
{
    *axis = -1;
    if (axes && !axes->items[k].is_number)
        return CM_OK;
    return cm_infer_axis(in, axes ? axes->items[k].number : (int64_t)k, rank, false, axis);
}

static enum cm_status set_unknown(struct cm_infer *in, const struct cm_type *x)
{
    struct cm_dim dims[CM_MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        dims[i] = CM_DIM_ANY;
    return cm_infer_set_tensor(in, 0, x->dtype, x->rank, dims);
}

static enum cm_status pad_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    const bool has_axes = cm_infer_type(in, 3) != NULL;
    struct cm_dim dims[CM_MAX_RANK];
    bool seen[CM_MAX_RANK] = {false};
    struct cm_known pads, axes;

    CM_TRY(cm_infer_list(in, 1));
    CM_TRY(cm_infer_list(in, 3));
    if (!mode_of(in->node))
        return cm_infer_fail(
            in, "attribute 'mode' is '%.*s', expected 'constant', 'reflect', 'edge' or 'wrap'",
            CM_STR_FMT(cm_node_str(in->node, "mode")));
    if (x->rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, x->dtype, CM_RANK_UNKNOWN, NULL);
    if (!cm_infer_known(in, 1, &pads) || (has_axes && !cm_infer_known(in, 3, &axes)))
        return set_unknown(in, x);
    const size_t count = has_axes ? axes.count : (size_t)x->rank;
    if (pads.count != 2 * count)
        return cm_infer_fail(in, "pads has %zu numbers, needs %zu", pads.count, 2 * count);
    cm_type_copy_dims(dims, x);
    for (size_t k = 0; k < count; k++) {
        int axis;
        CM_TRY(listed_axis(in, has_axes ? &axes : NULL, k, x->rank, &axis));
        if (axis < 0)
            return set_unknown(in, x);
        if (seen[axis])
            return cm_infer_fail(in, "axis %d is listed twice", axis);
        seen[axis] = true;
        CM_TRY(
            padded_dim(in, axis, x->dims[axis], pads.items[k], pads.items[count + k], &dims[axis]));
    }
    return cm_infer_set_tensor(in, 0, x->dtype, x->rank, dims);
}

/* ---- running ---- */

/* One axis: `skip` elements are cut off in front, `length` remain, and the first of those stands at
 * `before`. */
struct axis {
    int64_t skip, length, before, total;
};

struct padding {
    const struct cm_tensor *x;
    struct cm_tensor *y;
    const void *constant;
    outside_fn *outside;
    struct axis axes[CM_MAX_RANK];
};

static void set_axis(struct axis *axis, int64_t dim, int64_t before, int64_t after)
{
    axis->skip = before < 0 ? -before : 0;
    axis->before = before < 0 ? 0 : before;
    axis->length = dim - axis->skip - (after < 0 ? -after : 0);
    axis->total = dim + before + after;
}

static void put_constant(const struct padding *pad)
{
    const int64_t count = cm_tensor_count(pad->y), repeated = 0, next = 1;
    struct cm_move move;
    cm_move_plan(&move, 1, &count, &repeated, &next);
    cm_move_run(&move, pad->y->type, pad->constant, pad->y->data);
}

/* What remains of x, to where it stands. */
static void put_inside(const struct padding *pad, const int64_t *strides)
{
    const int rank = pad->x->shape.rank;
    int64_t dims[CM_MAX_RANK], from[CM_MAX_RANK], from_at = 0, to_at = 0;
    struct cm_move move;

    cm_shape_strides(&pad->x->shape, from);
    for (int i = 0; i < rank; i++) {
        dims[i] = pad->axes[i].length;
        from_at += pad->axes[i].skip * from[i];
        to_at += pad->axes[i].before * strides[i];
    }
    cm_move_plan(&move, rank, dims, from, strides);
    move.from_at = from_at;
    move.to_at = to_at;
    cm_move_run(&move, pad->x->type, pad->x->data, pad->y->data);
}

/* What stands outside along one axis, from what stands inside. Axes after it are whole by now, of
 * those before it only the inside is. */
static void put_outside(const struct padding *pad, const int64_t *strides, int axis)
{
    const struct axis *a = &pad->axes[axis];
    int64_t dims[CM_MAX_RANK], first = 0;
    struct cm_move move;

    for (int i = 0; i < pad->x->shape.rank; i++) {
        dims[i] = i < axis ? pad->axes[i].length : i == axis ? 1 : pad->axes[i].total;
        first += i < axis ? pad->axes[i].before * strides[i] : 0;
    }
    cm_move_plan(&move, pad->x->shape.rank, dims, strides, strides);
    for (int64_t k = 0; k < a->total - a->length; k++) {
        const int64_t p = k < a->before ? k : k + a->length;
        move.from_at = first + (a->before + pad->outside(p - a->before, a->length)) * strides[axis];
        move.to_at = first + p * strides[axis];
        cm_move_run(&move, pad->y->type, pad->y->data, pad->y->data);
    }
}

static void run_all(const struct padding *pad)
{
    int64_t strides[CM_MAX_RANK];
    bool more = false;

    cm_shape_strides(&pad->y->shape, strides);
    for (int i = 0; i < pad->x->shape.rank; i++)
        more = more || pad->axes[i].total > pad->axes[i].length;
    if (more && pad->outside == outside_constant)
        put_constant(pad);
    put_inside(pad, strides);
    for (int i = pad->x->shape.rank - 1; i >= 0 && pad->outside != outside_constant; i--)
        put_outside(pad, strides, i);
}

static enum cm_status pad_prepare(struct cm_call *call)
{
    outside_fn **outside = cm_call_state(call, sizeof *outside);
    *outside = mode_of(call->node);
    return CM_OK;
}

static enum cm_status read_pads(struct cm_call *call, struct padding *pad)
{
    const struct cm_shape *x = &call->in[0]->shape;
    const struct cm_tensor *pads = call->in[1], *axes = call->n_in > 3 ? call->in[3] : NULL;
    const int64_t count = cm_tensor_count(pads) / 2;

    for (int i = 0; i < x->rank; i++)
        set_axis(&pad->axes[i], x->dims[i], 0, 0);
    for (int64_t k = 0; k < count; k++) {
        int axis;
        const int64_t asked = axes ? cm_tensor_int(axes, k) : k;
        if (!cm_axis_fix(asked, x->rank, &axis))
            return cm_call_fail(call, CM_BAD_ARGUMENT, "axis %lld is out of range for rank %d",
                                (long long)asked, x->rank);
        const int64_t before = cm_tensor_int(pads, k), after = cm_tensor_int(pads, count + k);
        set_axis(&pad->axes[axis], x->dims[axis], before, after);
    }
    return CM_OK;
}

static enum cm_status pad_run(struct cm_call *call)
{
    static const char zero[16];
    const struct cm_tensor *value = call->n_in > 2 ? call->in[2] : NULL;
    struct padding pad = {.x = call->in[0],
                          .y = call->out[0],
                          .constant = zero,
                          .outside = *(outside_fn *const *)call->state};

    if (value && cm_tensor_count(value) > 0)
        pad.constant = value->data;
    if (pad.x->shape.rank == 0)
        return cm_run_copy(call);
    CM_TRY(read_pads(call, &pad));
    if (cm_tensor_count(pad.y) > 0)
        run_all(&pad);
    CM_TRY(cm_move_hold(pad.y, pad.x, call->err));
    return value ? cm_move_hold(pad.y, value, call->err) : CM_OK;
}

/* Padding by as much less undoes padding with a constant; otherwise what stands outside adds to
 * where it came from. */
static enum cm_status pad_grad(struct cm_grad *g)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    const cm_value x = cm_grad_input(g, 0), dy = cm_grad_incoming(g, 0);
    const cm_value pads = cm_grad_input(g, 1), axes = cm_grad_input(g, 3);
    const struct cm_str mode = cm_node_str(g->node, "mode");
    const size_t count = axes ? 4 : 2;

    if (cm_str_is(mode, "constant")) {
        const cm_value inputs[] = {dy, cm_emit(g, "Neg", pads), 0, axes};
        return cm_grad_set(
            g, 0,
            cm_build(&g->build,
                     &(struct cm_emission){.op = "Pad", .inputs = inputs, .n_inputs = count}));
    }
    const cm_value inputs[] = {cm_build_positions(&g->build, x), pads, 0, axes};
    const cm_value positions =
        cm_build(&g->build, &(struct cm_emission){.op = "Pad",
                                                  CM_ATTRIBUTES(cm_attr_str(arena, "mode", mode)),
                                                  .inputs = inputs,
                                                  .n_inputs = count});
    return cm_grad_set(g, 0, cm_build_scatter(&g->build, x, positions, dy, true));
}

CM_OP(Pad, .infer = pad_infer, .prepare = pad_prepare, .run = pad_run, .grad = pad_grad,
      .cost.work = cm_work_linear);
