/* Gradients of Conv and ConvTranspose as nodes: the bodies of ConvGrad and ConvTransposeGrad, which
 * the rules emit. Each is the other's gradient by its input, and both get the gradient of W from a
 * convolution whose kernels are the other tensor: dilation and stride change places, and batch and
 * channels do.
 *
 * "Image" is the larger tensor (X of Conv, Y of ConvTranspose), "windows" the smaller one. Pads
 * that follow from sizes (auto_pad, output_shape) are numbers when the sizes are known; otherwise
 * the image is padded, or the result cropped, by a Pad node whose amounts are computed from Shape.
 */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "ops/conv/patch.h"

struct geometry {
    struct cm_grad *g;
    const struct cm_node *node; /* its attributes */
    struct cm_arena *arena;
    bool transpose;
    int rank; /* spatial axes */
    int64_t group;
    cm_value w;
    bool known;              /* pads and all sizes are numbers */
    bool pads_known;         /* at least the pads are */
    struct cm_window window; /* kernel sizes count only when known */
    cm_value image;          /* with the forward node's shape: for Shape nodes */
    cm_value windows;
    int64_t image_sizes[CM_MAX_RANK], window_sizes[CM_MAX_RANK];
};

static bool spatial_sizes(const struct cm_type *type, int64_t *out)
{
    if (type->rank == CM_RANK_UNKNOWN)
        return false;
    for (int i = 2; i < type->rank; i++) {
        out[i - 2] = type->dims[i].value;
        if (!cm_dim_known(type->dims[i]))
            return false;
    }
    return true;
}

/* x and y, which dy may stand for, are operand 0 and the result of the forward node. */
static enum cm_status read_geometry(struct cm_grad *g, const struct cm_node *node, bool transpose,
                                    cm_value x, cm_value w, cm_value y, struct geometry *out)
{
    memset(out, 0, sizeof *out);
    out->g = g;
    out->node = node;
    out->arena = cm_builder_arena(&g->build);
    out->transpose = transpose;
    out->w = w;
    out->image = transpose ? y : x;
    out->windows = transpose ? x : y;
    out->group = cm_node_int(node, "group");
    const struct cm_type *image = cm_builder_type(&g->build, out->image);
    const struct cm_type *windows = cm_builder_type(&g->build, out->windows);
    const struct cm_type *weights = cm_builder_type(&g->build, w);
    if (weights->rank == CM_RANK_UNKNOWN)
        return cm_builder_fail(&g->build, CM_UNSUPPORTED,
                               "the gradient needs to know the rank of W");
    out->rank = weights->rank - 2;
    int64_t kernel[CM_MAX_RANK];
    const bool has_kernel = spatial_sizes(weights, kernel) ||
                            cm_node_ints(node, "kernel_shape").count == (size_t)out->rank;
    if (!has_kernel)
        for (int i = 0; i < out->rank; i++)
            kernel[i] = 1; /* never looked at */
    CM_TRY(cm_window_read(node, out->rank, kernel, &out->window, g->build.err));
    out->known = spatial_sizes(image, out->image_sizes) &&
                 spatial_sizes(windows, out->window_sizes) && has_kernel;
    const bool by_sizes = out->window.same_upper || out->window.same_lower ||
                          cm_node_ints(node, "output_shape").count > 0;
    out->pads_known = out->known || !by_sizes;
    if (out->known && transpose)
        return cm_conv_transpose_sizes(node, &out->window, out->window_sizes, NULL, g->build.err);
    for (int i = 0; i < out->rank; i++) {
        if (out->known)
            cm_window_count(&out->window, i, out->image_sizes[i]);
        else if (out->window.valid)
            out->window.pad_begin[i] = out->window.pad_end[i] = 0;
    }
    return CM_OK;
}

/* Lengths of the spatial axes of x, computed. */
static cm_value spatial_shape(const struct geometry *o, cm_value x)
{
    return cm_emit_with(o->g, "Shape", CM_ATTRIBUTES(cm_attr_int(o->arena, "start", 2)), x);
}

static cm_value numbers(const struct geometry *o, const int64_t *items)
{
    return cm_build_int64s(&o->g->build, (size_t)o->rank, items);
}

static cm_value concat(const struct geometry *o, const cm_value *parts, size_t count)
{
    const struct cm_attribute_proto axis = cm_attr_int(o->arena, "axis", 0);
    return cm_build(&o->g->build, &(struct cm_emission){.op = "Concat",
                                                        .inputs = parts,
                                                        .n_inputs = count,
                                                        .attributes = &axis,
                                                        .n_attributes = 1});
}

/* Pads before and after the image, computed: what the windows reach beyond it is shared between its
 * two sides. */
static void computed_pads(const struct geometry *o, cm_value *begin, cm_value *end)
{
    struct cm_grad *g = o->g;
    const cm_value one = cm_emit_int64s(g, 1), zero = cm_emit_int64s(g, 0);
    const cm_value stride = numbers(o, o->window.stride), dilation = numbers(o, o->window.dilation);
    const cm_value last = cm_emit(g, "Sub", spatial_shape(o, o->windows), one);
    const cm_value reach = cm_emit(g, "Sub", spatial_shape(o, o->w), one);
    cm_value extent = cm_emit(g, "Add", cm_emit(g, "Mul", last, stride),
                              cm_emit(g, "Add", cm_emit(g, "Mul", reach, dilation), one));
    const struct cm_int64s padding = cm_node_ints(o->node, "output_padding");
    if (padding.count)
        extent = cm_emit(g, "Add", extent, numbers(o, padding.items));
    const cm_value total =
        cm_emit(g, "Max", zero, cm_emit(g, "Sub", extent, spatial_shape(o, o->image)));
    const cm_value half = cm_emit(g, "Div", total, cm_emit_int64s(g, 2));
    const cm_value rest = cm_emit(g, "Sub", total, half);
    *begin = o->window.same_upper ? half : rest;
    *end = o->window.same_upper ? rest : half;
}

/* Pad by amounts along the spatial axes; negative ones crop. */
static cm_value pad_spatial(const struct geometry *o, cm_value x, cm_value begin, cm_value end)
{
    const cm_value none = cm_emit_int64s(o->g, 0, 0);
    const cm_value pads = concat(o, (const cm_value[]){none, begin, none, end}, 4);
    return cm_emit(o->g, "Pad", x, pads);
}

/* Cuts x down to the first sizes[i] elements of each spatial axis, when it may have more. */
static cm_value crop(const struct geometry *o, cm_value x, cm_value like, const int64_t *sizes)
{
    const struct cm_type *type = cm_builder_type(&o->g->build, x);
    int64_t have[CM_MAX_RANK], axes[CM_MAX_RANK], starts[CM_MAX_RANK] = {0};
    if (!type || (sizes && spatial_sizes(type, have) &&
                  memcmp(have, sizes, (size_t)o->rank * sizeof have[0]) == 0))
        return x;
    for (int i = 0; i < o->rank; i++)
        axes[i] = i + 2;
    return cm_emit(o->g, "Slice", x, numbers(o, starts),
                   sizes ? numbers(o, sizes) : spatial_shape(o, like), numbers(o, axes));
}

/* Attributes of a convolution; its own dilation is the other's stride when it computes the gradient
 * of W. */
static cm_value convolution(const struct geometry *o, const char *op, cm_value x, cm_value w,
                            bool swapped, const int64_t *pads, const int64_t *output_padding)
{
    const size_t n = (size_t)o->rank;
    const int64_t *strides = swapped ? o->window.dilation : o->window.stride;
    const int64_t *dilations = swapped ? o->window.stride : o->window.dilation;
    struct cm_attribute_proto attributes[5];
    size_t count = 0;
    attributes[count++] = cm_attr_ints(o->arena, "strides", n, strides);
    attributes[count++] = cm_attr_ints(o->arena, "dilations", n, dilations);
    attributes[count++] = cm_attr_ints(o->arena, "pads", 2 * n, pads);
    attributes[count++] = cm_attr_int(o->arena, "group", o->group);
    if (output_padding)
        attributes[count++] = cm_attr_ints(o->arena, "output_padding", n, output_padding);
    return cm_build(&o->g->build, &(struct cm_emission){.op = op,
                                                        CM_INPUTS(x, w),
                                                        .attributes = attributes,
                                                        .n_attributes = count});
}

static void both_pads(const struct geometry *o, int64_t *pads)
{
    memcpy(pads, o->window.pad_begin, (size_t)o->rank * sizeof pads[0]);
    memcpy(pads + o->rank, o->window.pad_end, (size_t)o->rank * sizeof pads[0]);
}

/* From windows to image: ConvTranspose, brought to the image's sizes. */
static cm_value image_gradient(const struct geometry *o, cm_value windows)
{
    int64_t pads[2 * CM_MAX_RANK] = {0}, missing[CM_MAX_RANK];
    if (o->known) {
        /* What no window reaches at the end is what output_padding adds: fewer elements than a
         * stride. */
        bool fits = true;
        both_pads(o, pads);
        for (int i = 0; i < o->rank; i++) {
            const int64_t span = (o->window.kernel[i] - 1) * o->window.dilation[i] + 1;
            missing[i] = o->image_sizes[i] + pads[i] + pads[o->rank + i] - span -
                         (o->window_sizes[i] - 1) * o->window.stride[i];
            fits = fits && missing[i] >= 0 &&
                   (missing[i] < o->window.stride[i] || missing[i] < o->window.dilation[i]);
        }
        if (fits)
            return convolution(o, "ConvTranspose", windows, o->w, false, pads, missing);
        memset(pads, 0, sizeof pads);
    }
    const cm_value whole = convolution(o, "ConvTranspose", windows, o->w, false, pads, NULL);
    cm_value begin = 0, end;
    if (o->pads_known)
        begin = numbers(o, o->window.pad_begin);
    else
        computed_pads(o, &begin, &end);
    const cm_value short_of =
        cm_emit(o->g, "Sub", spatial_shape(o, o->image), spatial_shape(o, whole));
    return pad_spatial(o, whole, cm_emit(o->g, "Neg", begin),
                       cm_emit(o->g, "Add", short_of, begin));
}

/* The image with pads that only a run can know, so that what follows needs none. */
static cm_value padded_image(const struct geometry *o, cm_value image)
{
    cm_value begin, end;
    if (o->pads_known)
        return image;
    computed_pads(o, &begin, &end);
    return pad_spatial(o, image, begin, end);
}

static cm_value windows_gradient(const struct geometry *o, cm_value image)
{
    int64_t pads[2 * CM_MAX_RANK] = {0};
    if (o->pads_known)
        both_pads(o, pads);
    const cm_value all = convolution(o, "Conv", padded_image(o, image), o->w, false, pads, NULL);
    return crop(o, all, o->windows, o->known ? o->window_sizes : NULL);
}

static cm_value transpose(const struct geometry *o, cm_value x, const int64_t *first, int n_first)
{
    int64_t perm[CM_MAX_RANK];
    for (int i = 0; i < n_first + o->rank; i++)
        perm[i] = i < n_first ? first[i] : i;
    return cm_emit_with(
        o->g, "Transpose",
        CM_ATTRIBUTES(cm_attr_ints(o->arena, "perm", (size_t)(n_first + o->rank), perm)), x);
}

/* (N, group * C, ..) with the groups apart: (N, group, C, ..). */
static cm_value split_groups(const struct geometry *o, cm_value x)
{
    const cm_value parts[] = {cm_emit_dims(o->g, x, 0, 1), cm_emit_int64s(o->g, o->group, -1),
                              spatial_shape(o, x)};
    return cm_emit(o->g, "Reshape", x, concat(o, parts, 3));
}

/* (N, group * C, ..) to (C, group * N, ..): each group's images become its channels. */
static cm_value image_as_input(const struct geometry *o, cm_value x)
{
    if (o->group == 1)
        return transpose(o, x, (const int64_t[]){1, 0}, 2);
    const cm_value turned = transpose(o, split_groups(o, x), (const int64_t[]){2, 1, 0}, 3);
    const cm_value parts[] = {cm_emit_dims(o->g, turned, 0, 1), cm_emit_int64s(o->g, -1),
                              spatial_shape(o, x)};
    return cm_emit(o->g, "Reshape", turned, concat(o, parts, 3));
}

/* dW of axes (windows' channels, image's channels / group, kernel): a convolution of the image by
 * the windows. */
static cm_value weight_gradient(const struct geometry *o, cm_value image, cm_value windows)
{
    int64_t pads[2 * CM_MAX_RANK] = {0};
    if (o->pads_known)
        both_pads(o, pads);
    const cm_value input = image_as_input(o, padded_image(o, image));
    const cm_value kernels = transpose(o, windows, (const int64_t[]){1, 0}, 2);
    const cm_value all = convolution(o, "Conv", input, kernels, true, pads, NULL);
    /* The stride may leave room for taps that the kernel does not have. */
    const cm_value taps = crop(o, all, o->w, o->known ? o->window.kernel : NULL);
    return transpose(o, taps, (const int64_t[]){1, 0}, 2);
}

static cm_value bias_gradient(const struct geometry *o, cm_value dy)
{
    int64_t axes[CM_MAX_RANK] = {0};
    for (int i = 0; i < o->rank; i++)
        axes[i + 1] = i + 2;
    const cm_value list = cm_build_int64s(&o->g->build, (size_t)o->rank + 1, axes);
    return cm_emit_with(o->g, "ReduceSum", CM_ATTRIBUTES(cm_attr_int(o->arena, "keepdims", 0)), dy,
                        list);
}

/* The gradient of operand i, as nodes. */
static cm_value gradient(const struct geometry *o, int i, cm_value dy, cm_value x)
{
    if (i == 0)
        return o->transpose ? windows_gradient(o, dy) : image_gradient(o, dy);
    if (i == 1)
        return o->transpose ? weight_gradient(o, dy, x) : weight_gradient(o, x, dy);
    return bias_gradient(o, dy);
}

/* ---- The body of the gradient operators ---- */

enum cm_status cm_conv_grad_body(struct cm_body *b)
{
    struct cm_grad g = {.build = b->build}; /* the rule's own nodes, in the body */
    const cm_value dy = cm_body_input(b, CM_CONV_GRAD_DY), x = cm_body_input(b, CM_CONV_GRAD_X),
                   w = cm_body_input(b, CM_CONV_GRAD_W);
    const bool transpose = ((const struct cm_conv_grad_kind *)b->node->op->arg)->transpose;
    cm_value results[3] = {0};
    struct geometry o;
    if (cm_builder_type(&b->build, w)->rank == CM_RANK_UNKNOWN)
        return cm_body_decline(b, "the rank of W is not known");
    CM_TRY(read_geometry(&g, b->node, transpose, x, w, dy, &o));
    for (int i = 0; i < 3; i++)
        if (cm_body_wants(b, i))
            results[i] = gradient(&o, i, dy, x);
    b->build = g.build;
    CM_TRY(b->build.status);
    for (int i = 0; i < 3; i++)
        if (results[i])
            CM_TRY(cm_body_return(b, i, results[i]));
    return CM_OK;
}

/* ---- The rules of Conv and ConvTranspose ---- */

static enum cm_status emit_operator(struct cm_grad *g, const char *op)
{
    const int n_results = cm_grad_input(g, 2) ? 3 : 2;
    cm_value results[3] = {0};
    cm_build(&g->build, &(struct cm_emission){.op = op,
                                              CM_INPUTS(cm_grad_incoming(g, 0), cm_grad_input(g, 0),
                                                        cm_grad_input(g, 1)),
                                              .attributes = g->node->attributes,
                                              .n_attributes = g->node->n_attributes,
                                              .n_outputs = (size_t)n_results,
                                              .outputs = results});
    CM_TRY(g->build.status);
    for (int i = 0; i < n_results; i++)
        CM_TRY(cm_grad_set(g, i, results[i]));
    return CM_OK;
}

static enum cm_status conv_grad(struct cm_grad *g, bool transpose, const char *op)
{
    const cm_value x = cm_grad_input(g, 0), w = cm_grad_input(g, 1);
    const enum cm_dtype dtype = cm_builder_type(&g->build, x)->dtype;
    struct geometry o;
    if (dtype == CM_FLOAT || dtype == CM_DOUBLE)
        return emit_operator(g, op);
    const cm_value dy = cm_grad_incoming(g, 0);
    CM_TRY(read_geometry(g, g->node, transpose, x, w, cm_grad_output(g, 0), &o));
    for (int i = 0; i < (cm_grad_input(g, 2) ? 3 : 2); i++)
        CM_TRY(cm_grad_set(g, i, gradient(&o, i, dy, x)));
    return CM_OK;
}

enum cm_status cm_conv_grad(struct cm_grad *g)
{
    return conv_grad(g, false, "ai.cameo::ConvGrad");
}

enum cm_status cm_conv_transpose_grad(struct cm_grad *g)
{
    return conv_grad(g, true, "ai.cameo::ConvTransposeGrad");
}
