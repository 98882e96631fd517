/* The gradient of Resize: along each axis resizing is a product with a matrix, which is the
 * identity resized along one axis; the gradient is the product with its transpose.
 *
 * Where the aspect ratio is kept the scale of an axis depends on the other axes, so no resizing of
 * a matrix gives that matrix. When all sizes are known it becomes a constant; otherwise the
 * identity is repeated along the other axes, and resized with them. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/resize_grad.h"

#include "ops/common/reals.h"

enum { X, ROI, SCALES, SIZES };

struct backward {
    struct cm_grad *g;
    struct cm_arena *arena;
    struct cm_resize resize;
    const struct cm_type *x;
    cm_value roi, scales, sizes; /* 0: absent */
};

/* An operand that is there and not empty. */
static cm_value present(const struct cm_grad *g, int i)
{
    const cm_value value = cm_grad_input(g, i);
    const struct cm_type *type = value ? cm_builder_type(&g->build, value) : NULL;
    return type && !(type->rank == 1 && type->dims[0].value == 0) ? value : 0;
}

static enum cm_status constant(const struct backward *b, cm_value value,
                               const struct cm_tensor **out)
{
    *out = NULL;
    return value ? cm_value_constant(b->g->node->module, value, out, b->g->build.err) : CM_OK;
}

static cm_value part(const struct backward *b, cm_value list, int64_t at)
{
    return cm_emit(b->g, "Slice", list, cm_emit_int64s(b->g, at), cm_emit_int64s(b->g, at + 1));
}

static cm_value length_of(const struct backward *b, cm_value x, int axis)
{
    return cm_emit_with(
        b->g, "Shape",
        CM_ATTRIBUTES(cm_attr_int(b->arena, "start", axis), cm_attr_int(b->arena, "end", axis + 1)),
        x);
}

static cm_value concat(const struct backward *b, size_t count, const cm_value *parts)
{
    const struct cm_attribute_proto axis = cm_attr_int(b->arena, "axis", 0);
    return cm_build(&b->g->build, &(struct cm_emission){.op = "Concat",
                                                        .inputs = parts,
                                                        .n_inputs = count,
                                                        .attributes = &axis,
                                                        .n_attributes = 1});
}

static cm_value list_of(const struct backward *b, cm_value like, double value)
{
    return cm_emit(b->g, "Reshape", cm_emit_scalar_like(b->g, like, value),
                   cm_emit_int64s(b->g, 1));
}

/* The attributes that say how coordinates and weights come about; what is extrapolated does not
 * depend on x. */
static size_t copy_attributes(const struct backward *b, struct cm_attribute_proto *out)
{
    static const char *const kept[] = {"mode",
                                       "coordinate_transformation_mode",
                                       "nearest_mode",
                                       "cubic_coeff_a",
                                       "exclude_outside",
                                       "antialias"};
    const struct cm_node *node = b->g->node;
    size_t count = 0;
    for (size_t i = 0; i < node->n_attributes; i++)
        for (size_t k = 0; k < CM_COUNT(kept); k++)
            if (cm_str_is(node->attributes[i].name, kept[k]) && count < CM_COUNT(kept))
                out[count++] = node->attributes[i];
    return count;
}

/* The identity of size (in, in) resized to (in, out): row i tells what element i gives to each
 * element of the output. */
static cm_value resized_identity(const struct backward *b, int i)
{
    struct cm_grad *g = b->g;
    const int axis = b->resize.axes[i];
    const cm_value x = cm_grad_input(g, X), y = cm_grad_output(g, 0);
    const cm_value in = length_of(b, x, axis);
    const cm_value square =
        cm_emit(g, "Expand", cm_emit_scalar_like(g, x, 0.0), concat(b, 2, (cm_value[]){in, in}));
    cm_value inputs[4] = {cm_emit(g, "EyeLike", square)};
    if (b->resize.coordinates == CM_COORDINATES_CROP)
        inputs[ROI] =
            concat(b, 4,
                   (cm_value[]){list_of(b, b->roi, 0.0), part(b, b->roi, i),
                                list_of(b, b->roi, 1.0), part(b, b->roi, b->resize.n_axes + i)});
    if (b->scales)
        inputs[SCALES] =
            concat(b, 2, (cm_value[]){list_of(b, b->scales, 1.0), part(b, b->scales, i)});
    else
        inputs[SIZES] = concat(b, 2, (cm_value[]){in, length_of(b, y, axis)});
    struct cm_attribute_proto attributes[8];
    const size_t n_attributes = copy_attributes(b, attributes);
    return cm_build(&g->build, &(struct cm_emission){.op = "Resize",
                                                     .inputs = inputs,
                                                     .n_inputs = b->scales ? 3 : 4,
                                                     .attributes = attributes,
                                                     .n_attributes = n_attributes});
}

/* The same where the aspect ratio is kept: the axes that are resized come after the identity's
 * rows, axis number i among them as its columns. */
static cm_value resized_block(const struct backward *b, int i)
{
    struct cm_grad *g = b->g;
    const int n = b->resize.n_axes;
    const cm_value x = cm_grad_input(g, X), in = length_of(b, x, b->resize.axes[i]);
    cm_value lengths[CM_MAX_RANK] = {in};
    int64_t axes[CM_MAX_RANK], others[CM_MAX_RANK];
    int n_others = 0;
    for (int k = 0; k < n; k++) {
        lengths[k + 1] = length_of(b, x, b->resize.axes[k]);
        axes[k] = k + 1;
        if (k != i)
            others[n_others++] = k + 1;
    }
    const cm_value square =
        cm_emit(g, "Expand", cm_emit_scalar_like(g, x, 0.0), concat(b, 2, (cm_value[]){in, in}));
    cm_value block = cm_emit(g, "EyeLike", square);
    if (n_others)
        block =
            cm_emit(g, "Unsqueeze", block, cm_build_int64s(&g->build, (size_t)n_others, others));
    block = cm_emit(g, "Expand", block, concat(b, (size_t)n + 1, lengths));
    struct cm_attribute_proto attributes[10];
    size_t count = copy_attributes(b, attributes);
    attributes[count++] = cm_attr_ints(b->arena, "axes", (size_t)n, axes);
    attributes[count++] = cm_attr_str(b->arena, "keep_aspect_ratio_policy",
                                      cm_node_str(g->node, "keep_aspect_ratio_policy"));
    block = cm_build(&g->build, &(struct cm_emission){.op = "Resize",
                                                      CM_INPUTS(block, 0, 0, b->sizes),
                                                      .attributes = attributes,
                                                      .n_attributes = count});
    for (int k = n_others - 1; k >= 0; k--) /* repeated, so that any place of theirs will do */
        block = cm_emit_with(g, "Gather", CM_ATTRIBUTES(cm_attr_int(b->arena, "axis", others[k])),
                             block, cm_build_int64(&g->build, 0));
    return block;
}

/* The same matrix when everything is known. */
static cm_value known_matrix(const struct backward *b, const struct cm_resize_axis *axis)
{
    struct cm_grad *g = b->g;
    const struct cm_shape shape = CM_SHAPE(axis->in, axis->out);
    int64_t count;
    size_t bytes;
    if (!cm_shape_count(&shape, &count) || !cm_dtype_bytes(b->x->dtype, count, &bytes))
        return cm_builder_fail(&g->build, CM_LIMIT, "the matrix of an axis is too large"), 0;
    double *matrix = CM_NEW_ARRAY(b->arena, double, (size_t)count);
    const int64_t n = cm_resize_tap_count(&b->resize, axis->scale);
    int64_t *index = CM_NEW_ARRAY(b->arena, int64_t, (size_t)n);
    double *weight = CM_NEW_ARRAY(b->arena, double, (size_t)n);
    for (int64_t o = 0; o < axis->out; o++) {
        if (b->resize.mode == CM_RESIZE_NEAREST) {
            const int64_t from = cm_resize_nearest(&b->resize, axis, o);
            if (from >= 0)
                matrix[from * axis->out + o] = 1;
        } else if (cm_resize_taps(&b->resize, axis, o, index, weight)) {
            for (int64_t t = 0; t < n; t++)
                matrix[index[t] * axis->out + o] += weight[t];
        }
    }
    void *data = cm_arena_alloc(b->arena, bytes);
    cm_reals_store(b->x->dtype, data, 0, count, matrix);
    const struct cm_tensor tensor = cm_tensor_borrow(b->x->dtype, &shape, data);
    return cm_build_tensor(&g->build, &tensor);
}

/* The product of the matrix with axis `axis` of dy, the others being left alone. */
static cm_value apply(const struct backward *b, cm_value dy, cm_value matrix, int axis)
{
    struct cm_grad *g = b->g;
    const int rank = b->x->rank;
    int64_t perm[CM_MAX_RANK];
    if (rank > 1 && axis == rank - 2)
        return cm_emit(g, "MatMul", matrix, dy);
    const cm_value turned = cm_emit_with(
        g, "Transpose", CM_ATTRIBUTES(cm_attr_ints(b->arena, "perm", 2, (const int64_t[]){1, 0})),
        matrix);
    if (axis == rank - 1)
        return cm_emit(g, "MatMul", dy, turned);
    for (int i = 0; i < rank; i++) /* changes places with the last one, and back */
        perm[i] = i == axis ? rank - 1 : i == rank - 1 ? axis : i;
    const struct cm_attribute_proto swap = cm_attr_ints(b->arena, "perm", (size_t)rank, perm);
    const cm_value last = cm_emit_with(g, "Transpose", CM_ATTRIBUTES(swap), dy);
    return cm_emit_with(g, "Transpose", CM_ATTRIBUTES(swap), cm_emit(g, "MatMul", last, turned));
}

/* Places in a region may lie outside, where what is repeated is not: there all must be known. */
static enum cm_status matrices_known(const struct backward *b, struct cm_resize_axis *axes,
                                     bool *known)
{
    const struct cm_tensor *roi, *sizes;
    struct cm_shape shape;
    CM_TRY(constant(b, b->roi, &roi));
    CM_TRY(constant(b, b->sizes, &sizes));
    *known = sizes && (!b->roi || roi) && cm_type_shape(b->x, &shape);
    if (*known)
        return cm_resize_axes(&b->resize, &shape, roi, NULL, sizes, axes, b->g->build.err);
    if (b->resize.coordinates == CM_COORDINATES_CROP)
        return cm_builder_fail(&b->g->build, CM_UNSUPPORTED,
                               "the gradient under keep_aspect_ratio_policy and "
                               "tf_crop_and_resize needs constant sizes and a known shape");
    return CM_OK;
}

/* Is it sure that axis number i of those resized stays as it is? */
static bool unchanged(const struct backward *b, int i, const struct cm_tensor *scales)
{
    const int axis = b->resize.axes[i];
    const struct cm_type *y = cm_builder_type(&b->g->build, cm_grad_output(b->g, 0));
    if (b->resize.coordinates == CM_COORDINATES_CROP)
        return false;
    if (b->scales)
        return scales && i < cm_tensor_count(scales) && cm_tensor_real(scales, i) == 1;
    return y->rank == b->x->rank && cm_dim_same(b->x->dims[axis], y->dims[axis]);
}

enum cm_status cm_resize_grad(struct cm_grad *g)
{
    struct backward b = {.g = g,
                         .arena = cm_builder_arena(&g->build),
                         .x = cm_builder_type(&g->build, cm_grad_input(g, X)),
                         .roi = present(g, ROI),
                         .sizes = present(g, SIZES)};
    struct cm_resize_axis axes[CM_MAX_RANK];
    const struct cm_tensor *scales;
    b.scales = b.sizes ? 0 : present(g, SCALES); /* beside sizes they have no elements */
    if (b.x->rank == CM_RANK_UNKNOWN)
        return cm_builder_fail(&g->build, CM_UNSUPPORTED,
                               "the gradient needs to know the rank of input 0");
    CM_TRY(cm_resize_read(g->node, b.x->rank, &b.resize, g->build.err));
    CM_TRY(constant(&b, b.scales, &scales));
    const bool keeps_aspect = b.sizes && b.resize.policy != CM_RESIZE_STRETCH;
    bool known = false;
    if (keeps_aspect)
        CM_TRY(matrices_known(&b, axes, &known));
    cm_value dx = cm_grad_incoming(g, 0);
    for (int i = 0; i < b.resize.n_axes; i++) {
        const int axis = b.resize.axes[i];
        if (known ? axes[axis].identity : !keeps_aspect && unchanged(&b, i, scales))
            continue;
        const cm_value matrix = known          ? known_matrix(&b, &axes[axis])
                                : keeps_aspect ? resized_block(&b, i)
                                               : resized_identity(&b, i);
        dx = apply(&b, dx, matrix, axis);
    }
    return cm_grad_set(g, X, dx);
}
