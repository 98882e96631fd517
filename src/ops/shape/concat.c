/* Concat and Split: tensors side by side along one axis, and apart again. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/common/move.h"
#include "ops/shape/shape_rules.h"

/* Copies between a tensor and the part of a longer one that begins `at` along the axis. Everything
 * from the axis on is one run. */
static void move_part(struct cm_call *call, const struct cm_tensor *from, struct cm_tensor *to,
                      const struct cm_tensor *part, int64_t at)
{
    const int axis = *(const int *)call->state;
    const struct cm_tensor *whole = part == to ? from : to;
    const int64_t part_run = cm_shape_span(&part->shape, axis, part->shape.rank);
    const int64_t whole_run = cm_shape_span(&whole->shape, axis, whole->shape.rank);
    const int64_t dims[] = {cm_shape_span(&part->shape, 0, axis), part_run};
    const int64_t part_strides[] = {part_run, 1}, whole_strides[] = {whole_run, 1};
    const int64_t first = at * cm_shape_span(&part->shape, axis + 1, part->shape.rank);
    struct cm_move move;

    cm_move_plan(&move, 2, dims, part == to ? whole_strides : part_strides,
                 part == to ? part_strides : whole_strides);
    move.from_at = part == to ? first : 0;
    move.to_at = part == to ? 0 : first;
    cm_move_run(&move, from->type, from->data, to->data);
}

static enum cm_status axis_prepare(struct cm_call *call)
{
    int *axis = cm_call_state(call, sizeof *axis);
    const int rank = call->in[0]->shape.rank;
    if (!cm_axis_fix(cm_node_int(call->node, "axis"), rank, axis))
        return cm_call_fail(call, CM_BAD_MODEL, "axis %lld is out of range for rank %d",
                            (long long)cm_node_int(call->node, "axis"), rank);
    return CM_OK;
}

/* ---- Concat ---- */

/* Joins what is known of integer lists. */
static void join_known(struct cm_infer *in)
{
    size_t count = 0;
    bool any = false;
    for (int i = 0; i < in->n_in; i++) {
        struct cm_known part;
        if (cm_infer_type(in, i)->rank != 1 || !cm_infer_known(in, i, &part))
            return;
        any = cm_infer_some_known(in, i, &part) || any;
        count += part.count;
        if (count > 4096) /* data, not a shape */
            return;
    }
    if (!any)
        return;
    struct cm_quantity *items = CM_NEW_ARRAY(in->arena, struct cm_quantity, count);
    size_t at = 0;
    for (int i = 0; i < in->n_in; i++) {
        struct cm_known part;
        if (!cm_infer_known(in, i, &part))
            return;
        for (size_t k = 0; k < part.count; k++)
            items[at++] = part.items[k];
    }
    cm_infer_set_known(in, 0, 1, count, items);
}

static enum cm_status add_part(struct cm_infer *in, int i, int axis, const struct cm_type *part,
                               struct cm_dim *dims, int rank)
{
    if (part->rank != rank)
        return cm_infer_fail(in, "input %d has rank %d, an input before it has rank %d", i,
                             part->rank, rank);
    for (int d = 0; d < rank; d++) {
        if (d == axis)
            dims[d] = cm_dim_sum(in->symbols, dims[d], part->dims[d]);
        else if (!cm_dim_unify(dims[d], part->dims[d], &dims[d]))
            return cm_infer_fail(in, "input %d has %lld along axis %d, one before it has %lld", i,
                                 (long long)part->dims[d].value, d, (long long)dims[d].value);
    }
    return CM_OK;
}

static enum cm_status concat_infer(struct cm_infer *in)
{
    struct cm_dim dims[CM_MAX_RANK] = {{0}};
    enum cm_dtype dtype = CM_UNDEFINED;
    int rank = CM_RANK_UNKNOWN, axis = 0;
    bool all = true;

    for (int i = 0; i < in->n_in; i++) {
        const struct cm_type *part = cm_infer_type(in, i);
        if (!part)
            return cm_infer_fail(in, "input %d is missing", i);
        dtype = part->dtype;
        if (part->rank == CM_RANK_UNKNOWN) {
            all = false;
            continue;
        }
        if (rank == CM_RANK_UNKNOWN) {
            rank = part->rank;
            CM_TRY(cm_infer_axis(in, cm_node_int(in->node, "axis"), rank, false, &axis));
            cm_type_copy_dims(dims, part);
        } else {
            CM_TRY(add_part(in, i, axis, part, dims, rank));
        }
    }
    if (rank != CM_RANK_UNKNOWN && !all)
        dims[axis] = CM_DIM_ANY;
    CM_TRY(cm_infer_set_tensor(in, 0, dtype, rank, dims));
    if (rank == 1 && all && (dtype == CM_INT64 || dtype == CM_INT32))
        join_known(in);
    return CM_OK;
}

static enum cm_status concat_run(struct cm_call *call)
{
    const int axis = *(const int *)call->state;
    int64_t at = 0;
    for (int i = 0; i < call->n_in; i++) {
        const struct cm_tensor *part = call->in[i];
        move_part(call, part, call->out[0], part, at);
        at += part->shape.dims[axis];
        CM_TRY(cm_move_hold(call->out[0], part, call->err));
    }
    return CM_OK;
}

/* The length of x along axis as a rank 1 tensor. */
static cm_value length_along(struct cm_grad *g, cm_value x, int64_t axis)
{
    const cm_value shape = cm_emit(g, "Shape", x);
    return cm_emit(g, "Gather", shape, cm_emit_int64s(g, axis));
}

/* The lengths of the inputs along the axis: constants when all are known. */
static cm_value lengths(struct cm_grad *g, int64_t axis)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    const size_t count = (size_t)g->node->n_inputs;
    int64_t *numbers = CM_NEW_ARRAY(arena, int64_t, count);
    cm_value *values = CM_NEW_ARRAY(arena, cm_value, count);
    bool known = true;
    for (size_t i = 0; i < count; i++) {
        const struct cm_type *type = cm_builder_type(&g->build, cm_grad_input(g, (int)i));
        int fixed;
        known = known && type->rank != CM_RANK_UNKNOWN && cm_axis_fix(axis, type->rank, &fixed) &&
                cm_dim_known(type->dims[fixed]);
        numbers[i] = known ? type->dims[fixed].value : 0;
    }
    if (known)
        return cm_build_int64s(&g->build, count, numbers);
    for (size_t i = 0; i < count; i++)
        values[i] = length_along(g, cm_grad_input(g, (int)i), axis);
    return cm_build(&g->build, &(struct cm_emission){.op = "Concat",
                                                     CM_ATTRIBUTES(cm_attr_int(arena, "axis", 0)),
                                                     .inputs = values,
                                                     .n_inputs = count});
}

static enum cm_status concat_grad(struct cm_grad *g)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    const size_t count = (size_t)g->node->n_inputs;
    const cm_value dy = cm_grad_incoming(g, 0);
    const int64_t axis = cm_node_int(g->node, "axis");

    if (count == 1)
        return cm_grad_set(g, 0, dy);
    cm_value *parts = CM_NEW_ARRAY(arena, cm_value, count);
    cm_build(&g->build, &(struct cm_emission){.op = "Split",
                                              CM_ATTRIBUTES(cm_attr_int(arena, "axis", axis)),
                                              CM_INPUTS(dy, lengths(g, axis)),
                                              .n_outputs = count,
                                              .outputs = parts});
    for (size_t i = 0; i < count; i++)
        CM_TRY(cm_grad_set(g, (int)i, parts[i]));
    return CM_OK;
}

CM_OP(Concat, .layer.weights = ~0u, .layer.entry = CM_ENTERS_AS_PART, .infer = concat_infer,
      .prepare = axis_prepare, .run = concat_run, .grad = concat_grad, .cost.work = cm_work_linear,
      .values.picked_from = UINT32_MAX);

/* ---- Split ---- */

/* The length of part o: as input `split` says, else equal parts, rounded up, the last ones taking
 * what is left. */
static enum cm_status part_length(struct cm_infer *in, struct cm_dim whole, int o,
                                  const struct cm_known *split, struct cm_dim *out)
{
    if (split) {
        const struct cm_quantity item = split->items[o];
        if (item.is_number && item.number < 0)
            return cm_infer_fail(in, "part %d would be %lld long", o, (long long)item.number);
        *out = cm_quantity_dim(item);
        return CM_OK;
    }
    if (!cm_dim_known(whole)) {
        const struct cm_quantity zero = {0, 0, true}, size = cm_dim_quantity(whole),
                                 each = cm_dim_quantity(
                                     cm_dim_floor(in->symbols, whole, in->n_out - 1, in->n_out));
        struct cm_quantity left = size;
        for (int i = 0; i < o; i++)
            left = cm_quantity_difference(in->symbols, left, each);
        left = cm_quantity_smaller(in->symbols, each, left);
        *out = cm_quantity_dim(cm_quantity_larger(in->symbols, left, zero));
        return CM_OK;
    }
    const int64_t n = in->n_out, length = whole.value / n + (whole.value % n != 0);
    const int64_t before = o > 0 && length > INT64_MAX / o ? whole.value : length * o;
    const int64_t left = whole.value - before < 0 ? 0 : whole.value - before;
    *out = CM_DIM(left < length ? left : length);
    return CM_OK;
}

static enum cm_status check_split(struct cm_infer *in, struct cm_dim whole,
                                  const struct cm_known *split)
{
    if (split && split->count != (size_t)in->n_out)
        return cm_infer_fail(in, "split has %zu lengths for %d outputs", split->count, in->n_out);
    if (!split && cm_node_has_attr(in->node, "num_outputs") &&
        cm_node_int(in->node, "num_outputs") != in->n_out)
        return cm_infer_fail(in, "num_outputs is %lld, but it has %d outputs",
                             (long long)cm_node_int(in->node, "num_outputs"), in->n_out);
    struct cm_dim sum = CM_DIM(0), same;
    for (size_t i = 0; split && i < split->count; i++)
        sum = cm_dim_sum(in->symbols, sum, cm_quantity_dim(split->items[i]));
    if (split && !cm_dim_unify(sum, whole, &same))
        return cm_infer_fail(in, "the lengths in split add up to %lld, the axis is %lld long",
                             (long long)sum.value, (long long)whole.value);
    return CM_OK;
}

/* The parts of an integer list of which something is known. */
static void split_known(struct cm_infer *in, const struct cm_known *x)
{
    size_t at = 0;
    for (int o = 0; o < in->n_out; o++) {
        const struct cm_dim length = in->out[o].type->dims[0];
        if (!cm_dim_known(length) || (uint64_t)length.value > x->count - at)
            return;
        cm_infer_set_known(in, o, 1, (size_t)length.value, x->items + at);
        at += (size_t)length.value;
    }
}

static enum cm_status split_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    struct cm_dim dims[CM_MAX_RANK] = {{0}}, whole = CM_DIM_ANY;
    struct cm_known split, known;
    int axis = 0;
    const bool given = cm_infer_type(in, 1) != NULL;
    const bool listed = given && cm_infer_known(in, 1, &split);

    CM_TRY(cm_infer_list(in, 1));
    if (x->rank != CM_RANK_UNKNOWN) {
        CM_TRY(cm_infer_axis(in, cm_node_int(in->node, "axis"), x->rank, false, &axis));
        cm_type_copy_dims(dims, x);
        whole = dims[axis];
    }
    CM_TRY(check_split(in, whole, listed ? &split : NULL));
    for (int o = 0; o < in->n_out; o++) {
        struct cm_dim length = CM_DIM_ANY;
        if (listed || !given)
            CM_TRY(part_length(in, whole, o, listed ? &split : NULL, &length));
        if (x->rank != CM_RANK_UNKNOWN)
            dims[axis] = length;
        CM_TRY(cm_infer_set_tensor(in, o, x->dtype, x->rank, dims));
    }
    if (x->rank == 1 && cm_infer_some_known(in, 0, &known))
        split_known(in, &known);
    return CM_OK;
}

/* The length of part o, which begins at `at`. Parts nobody wants have no tensor, so it is that of
 * the rule: the others' shapes do not tell. */
static int64_t length_at(const struct cm_call *call, int o, int64_t at)
{
    const struct cm_tensor *split = call->n_in > 1 ? call->in[1] : NULL;
    const int64_t n = call->n_out, whole = call->in[0]->shape.dims[*(const int *)call->state];
    const int64_t equal = whole / n + (whole % n != 0), rest = whole - at;
    return split ? cm_tensor_int(split, o) : rest < equal ? rest : equal;
}

/* Parts lie together where there is nothing before the axis. */
static int64_t split_stretch(const struct cm_call *call, int output)
{
    enum { MOST_PARTS = 256 }; /* each adds up the lengths of those before it */
    const struct cm_shape *x = &call->in[0]->shape;
    const int axis = *(const int *)call->state;
    int64_t at = 0;
    if ((call->n_in > 1 && call->in[1] && !call->in[1]->data) || call->n_out > MOST_PARTS ||
        cm_shape_span(x, 0, axis) != 1)
        return -1;
    for (int o = 0; o < output; o++)
        at += length_at(call, o, at);
    return at * cm_shape_span(x, axis + 1, x->rank);
}

static enum cm_status split_run(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0];
    const int axis = *(const int *)call->state;
    const size_t of_step =
        (size_t)cm_shape_span(&x->shape, axis + 1, x->shape.rank) * cm_dtype_size(x->type);
    int64_t at = 0;
    for (int o = 0; o < call->n_out; at += length_at(call, o, at), o++) {
        struct cm_tensor *y = call->out[o];
        if (!y || y->data == (const char *)x->data + (size_t)at * of_step)
            continue; /* a view is there already */
        move_part(call, x, y, y, at);
        CM_TRY(cm_move_hold(y, x, call->err));
    }
    return CM_OK;
}

static enum cm_status split_grad(struct cm_grad *g)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    const size_t count = (size_t)g->node->n_outputs;
    cm_value *parts = CM_NEW_ARRAY(arena, cm_value, count);
    for (size_t o = 0; o < count; o++) {
        if (!cm_grad_output(g, (int)o))
            cm_grad_extra_output(g, (int)o);
        parts[o] = cm_grad_incoming(g, (int)o);
    }
    const struct cm_attribute_proto axis = cm_attr_int(arena, "axis", cm_node_int(g->node, "axis"));
    return cm_grad_set(g, 0,
                       cm_build(&g->build, &(struct cm_emission){.op = "Concat",
                                                                 CM_ATTRIBUTES(axis),
                                                                 .inputs = parts,
                                                                 .n_inputs = count}));
}

/* A slice for each part, between the sums of the lengths before it and with its own. */
static enum cm_status split_body(struct cm_body *b)
{
    const cm_value x = cm_body_input(b, 0), split = cm_body_input(b, 1);
    const cm_value axis = cm_emit_int64s(b, cm_node_int(b->node, "axis"));
    const cm_value zero = cm_emit_int64s(b, 0), one = cm_emit_int64s(b, 1);
    const int count = b->node->n_outputs;
    cm_value ends = 0, length = 0;
    if (split) {
        ends = cm_emit(b, "CumSum", split, cm_build_int64(&b->build, 0));
    } else { /* equal parts, rounded up: a slice ends with the tensor */
        const cm_value whole = cm_emit(b, "Gather", cm_emit(b, "Shape", x), axis);
        const cm_value more = cm_emit(b, "Add", whole, cm_emit_int64s(b, count - 1));
        length = cm_emit(b, "Div", more, cm_emit_int64s(b, count));
    }
    for (int o = 0; o < count; o++) {
        const cm_value at = cm_emit_int64s(b, o), next = cm_emit_int64s(b, o + 1);
        cm_value from = zero, to;
        if (split) {
            to = cm_emit(b, "Slice", ends, at, next, zero, one);
            from = cm_emit(b, "Sub", to, cm_emit(b, "Slice", split, at, next, zero, one));
        } else {
            from = cm_emit(b, "Mul", length, at);
            to = cm_emit(b, "Mul", length, next);
        }
        if (cm_body_wants(b, o))
            CM_TRY(cm_body_return(b, o, cm_emit(b, "Slice", x, from, to, axis, one)));
    }
    return b->build.status;
}

CM_OP(Split, .infer = split_infer, .prepare = axis_prepare, .run = split_run, .grad = split_grad,
      .body = split_body, .memory.stretch = split_stretch, .cost.work = cm_work_linear,
      .values.picked_from = 1);
