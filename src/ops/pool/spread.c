/* Spreading by a transposed convolution with a kernel of ones, channel by channel: samples and
 * channels are laid in one axis, so that their number need not be known. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/pool/spread.h"

enum cm_status cm_spread_init(struct cm_grad *g, const struct cm_node *node, cm_value x,
                              struct cm_spread *out)
{
    const size_t rank = cm_node_ints(node, "kernel_shape").count;
    if (rank > CM_MAX_RANK - 2)
        return cm_builder_fail(&g->build, CM_BAD_MODEL, "kernel_shape has %zu numbers", rank);
    *out = (struct cm_spread){.g = g, .node = node, .x = x, .arena = cm_builder_arena(&g->build)};
    CM_TRY(cm_window_read(node, (int)rank, NULL, &out->window, g->build.err));
    for (int i = 0; i < out->window.rank && out->window.valid; i++)
        out->window.pad_begin[i] = out->window.pad_end[i] = 0;
    return CM_OK;
}

static bool is_same(const struct cm_spread *s)
{
    return s->window.same_upper || s->window.same_lower;
}

static cm_value numbers(const struct cm_spread *s, const int64_t *items)
{
    return cm_build_int64s(&s->g->build, (size_t)s->window.rank, items);
}

static cm_value spatial_shape(const struct cm_spread *s, cm_value x)
{
    return cm_emit_with(s->g, "Shape", CM_ATTRIBUTES(cm_attr_int(s->arena, "start", 2)), x);
}

static cm_value concat(const struct cm_spread *s, cm_value a, cm_value b)
{
    return cm_emit_with(s->g, "Concat", CM_ATTRIBUTES(cm_attr_int(s->arena, "axis", 0)), a, b);
}

static cm_value reshape(const struct cm_spread *s, cm_value x, cm_value shape)
{
    return cm_emit_with(s->g, "Reshape", CM_ATTRIBUTES(cm_attr_int(s->arena, "allowzero", 1)), x,
                        shape);
}

/* A (1, 1, kernel..) tensor of ones. */
static cm_value ones_kernel(const struct cm_spread *s, cm_value like)
{
    return cm_emit(s->g, "Expand", cm_emit_scalar_like(s->g, like, 1.0),
                   concat(s, cm_emit_int64s(s->g, 1, 1), numbers(s, s->window.kernel)));
}

static cm_value convolve(const struct cm_spread *s, const char *op, cm_value x, const int64_t *pads,
                         bool same)
{
    const size_t n = (size_t)s->window.rank;
    const struct cm_attribute_proto attributes[] = {
        cm_attr_ints(s->arena, "strides", n, s->window.stride),
        cm_attr_ints(s->arena, "dilations", n, s->window.dilation),
        same ? cm_attr_str(s->arena, "auto_pad", cm_node_str(s->node, "auto_pad"))
             : cm_attr_ints(s->arena, "pads", 2 * n, pads)};
    return cm_build(&s->g->build, &(struct cm_emission){.op = op,
                                                        CM_INPUTS(x, ones_kernel(s, x)),
                                                        .attributes = attributes,
                                                        .n_attributes = 3});
}

/* Padding of the spatial axes of a tensor of ones, by ones. */
static cm_value pad_with_ones(const struct cm_spread *s, cm_value x)
{
    int64_t pads[2 * CM_MAX_RANK] = {0};
    const int rank = s->window.rank;
    memcpy(pads + 2, s->window.pad_begin, (size_t)rank * sizeof pads[0]);
    memcpy(pads + rank + 4, s->window.pad_end, (size_t)rank * sizeof pads[0]);
    return cm_emit(s->g, "Pad", x, cm_build_int64s(&s->g->build, 2 * (size_t)rank + 4, pads),
                   cm_emit_scalar_like(s->g, x, 1.0));
}

/* Counts the taps of each window by convolving ones with ones. */
cm_value cm_spread_divisor(const struct cm_spread *s, cm_value dy)
{
    const struct cm_window *window = &s->window;
    const cm_value x = s->x;
    const bool count_pads = cm_node_int(s->node, "count_include_pad") != 0;
    const bool rounds_up = window->ceil_mode && !is_same(s);
    int64_t pads[2 * CM_MAX_RANK] = {0}, starts[CM_MAX_RANK] = {0}, axes[CM_MAX_RANK];
    bool padded = is_same(s);
    double whole = 1;

    for (int i = 0; i < window->rank; i++) {
        whole *= (double)window->kernel[i];
        padded = padded || window->pad_begin[i] || window->pad_end[i];
        pads[i] = count_pads ? 0 : window->pad_begin[i];
        pads[window->rank + i] =
            (count_pads ? 0 : window->pad_end[i]) + (rounds_up ? window->stride[i] - 1 : 0);
        axes[i] = i + 2;
    }
    if (!rounds_up && (count_pads || !padded))
        return cm_emit_scalar_like(s->g, x, whole);
    cm_value ones = cm_emit(s->g, "Expand", cm_emit_scalar_like(s->g, x, 1.0),
                            concat(s, cm_emit_int64s(s->g, 1, 1), spatial_shape(s, x)));
    if (count_pads && padded)
        ones = pad_with_ones(s, ones);
    const cm_value counts = convolve(s, "Conv", ones, pads, is_same(s));
    if (!rounds_up)
        return counts;
    /* There may be one window more than the forward node has: one that begins behind the input. */
    return cm_emit(s->g, "Slice", counts, numbers(s, starts), spatial_shape(s, dy),
                   numbers(s, axes));
}

/* How far the first window begins before the input. */
static cm_value first_pad(const struct cm_spread *s, cm_value x, cm_value whole)
{
    struct cm_grad *g = s->g;
    if (!is_same(s))
        return numbers(s, s->window.pad_begin);
    const cm_value total =
        cm_emit(g, "Max", cm_emit_int64s(g, 0), cm_emit(g, "Sub", whole, spatial_shape(s, x)));
    const cm_value half = cm_emit(g, "Div", total, cm_emit_int64s(g, 2));
    return s->window.same_upper ? half : cm_emit(g, "Sub", total, half);
}

cm_value cm_spread_emit(const struct cm_spread *s, cm_value dy)
{
    struct cm_grad *g = s->g;
    const cm_value x = s->x, none = cm_emit_int64s(g, 0, 0);
    const int64_t no_pads[2 * CM_MAX_RANK] = {0};
    const cm_value shape = concat(s, cm_emit_int64s(g, -1, 1), spatial_shape(s, dy));
    const cm_value images =
        convolve(s, "ConvTranspose", cm_emit(g, "Reshape", dy, shape), no_pads, false);
    const cm_value whole = spatial_shape(s, images);
    const cm_value begin = first_pad(s, x, whole);
    const cm_value behind = cm_emit(g, "Sub", cm_emit(g, "Add", spatial_shape(s, x), begin), whole);
    const cm_value pads =
        concat(s, concat(s, none, cm_emit(g, "Neg", begin)), concat(s, none, behind));
    return reshape(s, cm_emit(g, "Pad", images, pads), cm_emit(g, "Shape", x));
}
