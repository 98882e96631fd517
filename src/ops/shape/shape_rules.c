/* Known contents passed on, and gradients that undo a move. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/shape/shape_rules.h"

bool cm_infer_some_known(struct cm_infer *in, int i, struct cm_known *out)
{
    const struct cm_type *type = cm_infer_type(in, i);
    if (!type || type->kind != CM_KIND_TENSOR ||
        (type->dtype != CM_INT64 && type->dtype != CM_INT32) || !cm_infer_known(in, i, out))
        return false;
    for (size_t k = 0; k < out->count; k++)
        if (out->items[k].is_number || out->items[k].symbol)
            return true;
    return out->count == 0;
}

void cm_infer_pass_known(struct cm_infer *in)
{
    struct cm_known known;
    const struct cm_type *y = in->n_out > 0 ? in->out[0].type : NULL;
    if (y && y->kind == CM_KIND_TENSOR && (y->rank == 0 || y->rank == 1) &&
        cm_infer_some_known(in, 0, &known) && (y->rank == 1 || known.count == 1))
        cm_infer_set_known(in, 0, y->rank, known.count, known.items);
}

bool cm_infer_numbers(struct cm_infer *in, int i, size_t max, int64_t *out, size_t *count)
{
    struct cm_known known;
    if (!cm_infer_known(in, i, &known) || known.count > max)
        return false;
    for (size_t k = 0; k < known.count; k++) {
        if (!known.items[k].is_number)
            return false;
        out[k] = known.items[k].number;
    }
    *count = known.count;
    return true;
}

enum cm_status cm_infer_set_shape_from(struct cm_infer *in, enum cm_dtype dtype, int i)
{
    struct cm_dim dims[CM_MAX_RANK];
    struct cm_known shape;
    if (!cm_infer_known(in, i, &shape))
        return cm_infer_set_tensor(in, 0, dtype, CM_RANK_UNKNOWN, NULL);
    if (shape.count > CM_MAX_RANK)
        return cm_infer_fail(in, "its result would have rank %zu, the limit is %d", shape.count,
                             CM_MAX_RANK);
    for (size_t k = 0; k < shape.count; k++) {
        if (shape.items[k].is_number && shape.items[k].number < 0)
            return cm_infer_fail(in, "dimension %zu of the shape is %lld, must not be negative", k,
                                 (long long)shape.items[k].number);
        dims[k] = cm_quantity_dim(shape.items[k]);
    }
    return cm_infer_set_tensor(in, 0, dtype, (int)shape.count, dims);
}

cm_value cm_build_shape_of(struct cm_builder *builder, cm_value x)
{
    struct cm_shape shape;
    const struct cm_type *type = cm_builder_type(builder, x);
    if (type && cm_type_shape(type, &shape))
        return cm_build_int64s(builder, (size_t)shape.rank, shape.dims);
    return cm_build(builder, &(struct cm_emission){.op = "Shape", CM_INPUTS(x)});
}

/* With allowzero, for a 0 in the shape is the number here, not "as in the input". */
static cm_value reshape(struct cm_builder *builder, cm_value y, cm_value shape)
{
    struct cm_arena *arena = cm_builder_arena(builder);
    return cm_build(builder,
                    &(struct cm_emission){.op = "Reshape",
                                          CM_ATTRIBUTES(cm_attr_int(arena, "allowzero", 1)),
                                          CM_INPUTS(y, shape)});
}

/* y under the shape of x. */
static cm_value build_reshape_like(struct cm_builder *builder, cm_value y, cm_value x)
{
    return reshape(builder, y, cm_build_shape_of(builder, x));
}

enum cm_status cm_grad_reshape(struct cm_grad *g)
{
    const cm_value dy = cm_grad_incoming(g, 0);
    return cm_grad_set(g, 0, build_reshape_like(&g->build, dy, cm_grad_input(g, 0)));
}

cm_value cm_build_positions(struct cm_builder *builder, cm_value x)
{
    struct {
        struct cm_builder build;
    } b = {*builder};
    const cm_value size = cm_emit(&b, "Size", x);
    const cm_value line =
        cm_emit(&b, "Range", cm_build_int64(&b.build, 0), size, cm_build_int64(&b.build, 1));
    const cm_value positions = build_reshape_like(&b.build, line, x);
    builder->status = b.build.status;
    return positions;
}

cm_value cm_build_scatter(struct cm_builder *builder, cm_value x, cm_value positions, cm_value dy,
                          bool repeats)
{
    struct {
        struct cm_builder build;
    } b = {*builder};
    struct cm_arena *arena = cm_builder_arena(builder);
    const int64_t flat = -1;
    const cm_value line = cm_build_int64s(&b.build, 1, &flat);
    const cm_value size = cm_emit(&b, "Reshape", cm_emit(&b, "Size", x), line);
    const cm_value zeros = cm_emit(&b, "Expand", cm_emit_scalar_like(&b, x, 0.0), size);
    const cm_value where = cm_emit(&b, "Reshape", positions, line);
    const cm_value what = cm_emit(&b, "Reshape", dy, line);
    const cm_value put = cm_emit_with(
        &b, "ScatterElements",
        CM_ATTRIBUTES(cm_attr_str(arena, "reduction", repeats ? CM_STR("add") : CM_STR("none"))),
        zeros, where, what);
    const cm_value result = build_reshape_like(&b.build, put, x);
    builder->status = b.build.status;
    return result;
}
