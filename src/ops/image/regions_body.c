/* The operators that the gradients of RoiAlign and MaxRoiPool use, as graphs of standard ones.
 *
 * Everything is computed for all regions at once, so these forms need much memory where regions are
 * many; they exist for other runtimes. Places are computed in double, as the kernels do: a place
 * that rounds another way is another pixel. Shapes in comments: R regions, P cells to an axis, S
 * samples to a cell, L pixels to an axis. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/image/regions.h"

#include <math.h>

static cm_value cast(struct cm_body *b, cm_value x, enum cm_dtype to)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    const struct cm_type *type = cm_builder_type(&b->build, x);
    if (!type || type->dtype == to)
        return x;
    return cm_emit_with(b, "Cast", CM_ATTRIBUTES(cm_attr_int(arena, "to", to)), x);
}

static cm_value real(struct cm_body *b, double v)
{
    return cm_build_scalar(&b->build, CM_DOUBLE, v);
}

static cm_value gather(struct cm_body *b, int64_t axis, cm_value x, cm_value at)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    return cm_emit_with(b, "Gather", CM_ATTRIBUTES(cm_attr_int(arena, "axis", axis)), x, at);
}

/* The element of x that best, an ArgMax along axis with keepdims, found; without the axis. */
static cm_value pick(struct cm_body *b, int64_t axis, cm_value x, cm_value best)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    const cm_value found =
        cm_emit_with(b, "GatherElements", CM_ATTRIBUTES(cm_attr_int(arena, "axis", axis)), x, best);
    return cm_emit(b, "Squeeze", found, cm_emit_int64s(b, axis));
}

static cm_value largest(struct cm_body *b, int64_t axis, cm_value x)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    return cm_emit_with(b, "ArgMax", CM_ATTRIBUTES(cm_attr_int(arena, "axis", axis)), x);
}

/* 0, 1, .. as (count). */
static cm_value count_up(struct cm_body *b, cm_value count)
{
    return cm_emit(b, "Range", cm_build_int64(&b->build, 0), count, cm_build_int64(&b->build, 1));
}

static cm_value above(struct cm_body *b, cm_value x, double floor)
{
    const cm_value low = real(b, floor);
    return cm_emit(b, "Where", cm_emit(b, "Greater", x, low), x, low);
}

static cm_value sum_over(struct cm_body *b, cm_value x, int64_t axis, bool keep)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    return cm_emit_with(b, "ReduceSum", CM_ATTRIBUTES(cm_attr_int(arena, "keepdims", keep)), x,
                        cm_emit_int64s(b, axis));
}

/* ---- RoiAlign's samples ---- */

struct samples {
    cm_value at;      /* (R, P, S): the place, moved into the image; 0 where that is not inside */
    cm_value inside;  /* (R, P, S) */
    cm_value missing; /* (R, P): not all are inside */
    cm_value divisor; /* of a mean over the axis, (R, 1, 1) or a scalar */
    cm_value size;    /* S */
    cm_value length, last; /* L and L - 1, as doubles */
};

/* The regions as (R, 1, n). */
static cm_value region_rows(struct cm_body *b, cm_value rois)
{
    return cm_emit(b, "Unsqueeze", cast(b, rois, CM_DOUBLE), cm_emit_int64s(b, 1));
}

static cm_value region_number(struct cm_body *b, cm_value rows, int64_t i)
{
    return gather(b, 2, rows, cm_emit_int64s(b, i));
}

/* How many samples a cell has, (R, 1, 1), when that follows from its size; and the most. */
static cm_value natural_samples(struct cm_body *b, cm_value bin, cm_value *most)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    const cm_value samples = above(b, cm_emit(b, "Ceil", bin), 0);
    const cm_value row = cm_emit(b, "Reshape", samples, cm_emit_int64s(b, -1));
    const cm_value one = cm_emit(b, "Reshape", real(b, 1), cm_emit_int64s(b, 1));
    /* one more, so that there is a largest without regions too */
    const cm_value some =
        cm_emit_with(b, "Concat", CM_ATTRIBUTES(cm_attr_int(arena, "axis", 0)), row, one);
    *most = cast(
        b, cm_emit_with(b, "ReduceMax", CM_ATTRIBUTES(cm_attr_int(arena, "keepdims", 0)), some),
        CM_INT64);
    return samples;
}

static void axis_samples(struct cm_body *b, cm_value rows, int axis, cm_value length,
                         struct samples *out)
{
    const char *const name = axis ? "output_width" : "output_height";
    const bool half_pixel =
        cm_str_is(cm_node_str(b->node, "coordinate_transformation_mode"), "half_pixel");
    const int64_t cells = cm_node_int(b->node, name),
                  ratio = cm_node_int(b->node, "sampling_ratio");
    const cm_value scale = real(b, (double)cm_node_float(b->node, "spatial_scale"));
    const cm_value off = real(b, half_pixel ? 0.5 : 0), half = real(b, 0.5);
    const cm_value corner[2] = {cm_emit(b, "Mul", region_number(b, rows, 1 - axis), scale),
                                cm_emit(b, "Mul", region_number(b, rows, 3 - axis), scale)};
    const cm_value start = cm_emit(b, "Sub", corner[0], off);
    cm_value size = cm_emit(b, "Sub", cm_emit(b, "Sub", corner[1], off), start);
    if (!half_pixel)
        size = above(b, size, 1);
    const cm_value bin = cm_emit(b, "Div", size, real(b, (double)cells));
    cm_value samples = real(b, (double)ratio);
    out->size = cm_build_int64(&b->build, ratio);
    if (ratio == 0)
        samples = natural_samples(b, bin, &out->size);
    out->divisor = ratio ? samples : above(b, samples, 1);
    const cm_value step = cast(b, count_up(b, out->size), CM_DOUBLE);
    const cm_value cell =
        cm_emit(b, "Unsqueeze", cast(b, count_up(b, cm_build_int64(&b->build, cells)), CM_DOUBLE),
                cm_emit_int64s(b, 1));
    const cm_value within =
        cm_emit(b, "Div", cm_emit(b, "Mul", cm_emit(b, "Add", step, half), bin), out->divisor);
    const cm_value at =
        cm_emit(b, "Add", cm_emit(b, "Add", start, cm_emit(b, "Mul", cell, bin)), within);
    out->length = cast(b, length, CM_DOUBLE);
    out->last = cm_emit(b, "Sub", out->length, real(b, 1));
    const cm_value readable = cm_emit(b, "And", cm_emit(b, "GreaterOrEqual", at, real(b, -1)),
                                      cm_emit(b, "LessOrEqual", at, out->length));
    out->inside = cm_emit(b, "And", readable, cm_emit(b, "Less", step, samples));
    const cm_value found = sum_over(b, cast(b, out->inside, CM_DOUBLE), 2, true);
    out->missing = cm_emit(b, "Squeeze", cm_emit(b, "Less", found, samples), cm_emit_int64s(b, 2));
    const cm_value clipped = cm_emit(b, "Min", cm_emit(b, "Max", at, real(b, 0)), out->last);
    out->at = cm_emit(b, "Where", out->inside, clipped, real(b, 0));
}

static cm_value dim(struct cm_body *b, cm_value shape, int64_t i)
{
    return gather(b, 0, shape, cm_build_int64(&b->build, i));
}

/* ---- RoiAlignGrad ---- */

/* (R, P, L): how much each pixel counts in each cell. A sample counts for a pixel as much as it is
 * nearer to it than 1. */
static cm_value pixel_weights(struct cm_body *b, const struct samples *s, cm_value length)
{
    const cm_value last_axis = cm_emit_int64s(b, 3), zero = real(b, 0);
    const cm_value pixel = cast(b, count_up(b, length), CM_DOUBLE);
    const cm_value far =
        cm_emit(b, "Abs", cm_emit(b, "Sub", cm_emit(b, "Unsqueeze", s->at, last_axis), pixel));
    const cm_value near = cm_emit(b, "Max", cm_emit(b, "Sub", real(b, 1), far), zero);
    const cm_value counted =
        cm_emit(b, "Where", cm_emit(b, "Unsqueeze", s->inside, last_axis), near, zero);
    return cm_emit(b, "Div", sum_over(b, counted, 2, false), s->divisor);
}

/* An image's gradient is the sum over its regions of rows' weights x dY x columns' weights. */
enum cm_status cm_align_grad_body(struct cm_body *b)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    const cm_value dy = cm_body_input(b, 0), of = cm_body_input(b, 2), shape = cm_body_input(b, 3);
    const cm_value rows = region_rows(b, cm_body_input(b, 1)), channel = cm_emit_int64s(b, 1);
    const enum cm_dtype dtype = cm_builder_type(&b->build, dy)->dtype;
    cm_value weights[2];
    for (int axis = 0; axis < 2; axis++) {
        const cm_value length = dim(b, shape, 2 + axis);
        struct samples s;
        axis_samples(b, rows, axis, length, &s);
        weights[axis] = cm_emit(b, "Unsqueeze", pixel_weights(b, &s, length), channel);
    }
    static const int64_t turn[] = {0, 1, 3, 2};
    const cm_value upright = cm_emit_with(
        b, "Transpose", CM_ATTRIBUTES(cm_attr_ints(arena, "perm", 4, turn)), weights[0]);
    const cm_value each =
        cm_emit(b, "MatMul", cm_emit(b, "MatMul", upright, cast(b, dy, CM_DOUBLE)), weights[1]);
    const cm_value lying =
        cm_emit_with(b, "Flatten", CM_ATTRIBUTES(cm_attr_int(arena, "axis", 1)), each);
    const cm_value image = cm_emit(b, "Unsqueeze", count_up(b, dim(b, shape, 0)), channel);
    const cm_value mine = cast(b, cm_emit(b, "Equal", image, of), CM_DOUBLE); /* (N, R) */
    const cm_value sums =
        cm_emit_with(b, "Reshape", CM_ATTRIBUTES(cm_attr_int(arena, "allowzero", 1)),
                     cm_emit(b, "MatMul", mine, lying), shape);
    return cm_body_return(b, 0, cast(b, sums, dtype));
}

/* ---- RoiAlignMaxima ---- */

/* (R, P, S, 2): of the pixel before a sample, then of the one after it. */
static cm_value pair(struct cm_body *b, cm_value first, cm_value second)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    const cm_value axis = cm_emit_int64s(b, 3);
    return cm_emit_with(b, "Concat", CM_ATTRIBUTES(cm_attr_int(arena, "axis", 3)),
                        cm_emit(b, "Unsqueeze", first, axis),
                        cm_emit(b, "Unsqueeze", second, axis));
}

/* One axis' pixels and weights, in the place they have in (R, C, Ph, Pw, Sh, Sw, 2, 2). */
struct candidates {
    cm_value pixel, weight, inside;
};

static struct candidates axis_candidates(struct cm_body *b, const struct samples *s, int axis)
{
    const cm_value one = real(b, 1);
    const cm_value low = cm_emit(b, "Floor", s->at), t = cm_emit(b, "Sub", s->at, low);
    const cm_value high = cm_emit(b, "Min", cm_emit(b, "Add", low, one), s->last);
    const cm_value pixel = cast(b, pair(b, low, high), CM_INT64);
    const cm_value weight = pair(b, cm_emit(b, "Sub", one, t), t);
    const cm_value inside = cm_emit(b, "Unsqueeze", s->inside, cm_emit_int64s(b, 3));
    const cm_value axes = axis ? cm_emit_int64s(b, 1, 2, 4, 6) : cm_emit_int64s(b, 1, 3, 5, 7);
    return (struct candidates){cm_emit(b, "Unsqueeze", pixel, axes),
                               cm_emit(b, "Unsqueeze", weight, axes),
                               cm_emit(b, "Unsqueeze", inside, axes)};
}

/* (R, C): where in X, laid in one row, the channels of each region's image begin, in pixels' rows.
 */
static cm_value row_starts(struct cm_body *b, cm_value of, cm_value shape)
{
    const cm_value channels = dim(b, shape, 1);
    const cm_value image = cm_emit(b, "Unsqueeze", of, cm_emit_int64s(b, 1));
    const cm_value plane =
        cm_emit(b, "Add", cm_emit(b, "Mul", image, channels), count_up(b, channels));
    return cm_emit(b, "Mul", plane, dim(b, shape, 2));
}

static enum cm_status return_maxima(struct cm_body *b, cm_value open, cm_value index,
                                    cm_value weight)
{
    const enum cm_dtype dtype = cm_builder_type(&b->build, cm_body_input(b, 0))->dtype;
    CM_TRY(cm_body_return(b, 0, cm_emit(b, "Where", open, index, cm_build_int64(&b->build, 0))));
    if (!cm_body_wants(b, 1))
        return CM_OK;
    const cm_value counted = cm_emit(b, "Where", open, weight, real(b, 0));
    return cm_body_return(b, 1, cast(b, counted, dtype));
}

enum cm_status cm_align_maxima_body(struct cm_body *b)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    const cm_value x = cm_body_input(b, 0), shape = cm_emit(b, "Shape", x);
    const cm_value rows = region_rows(b, cm_body_input(b, 1));
    const cm_value lowest = real(b, (double)-INFINITY);
    struct samples s[2];
    struct candidates c[2];
    for (int axis = 0; axis < 2; axis++) {
        axis_samples(b, rows, axis, dim(b, shape, 2 + axis), &s[axis]);
        c[axis] = axis_candidates(b, &s[axis], axis);
    }
    const cm_value starts = cm_emit(b, "Unsqueeze", row_starts(b, cm_body_input(b, 2), shape),
                                    cm_emit_int64s(b, 2, 3, 4, 5, 6, 7));
    const cm_value row = cm_emit(b, "Add", starts, c[0].pixel);
    const cm_value index = cm_emit(b, "Add", cm_emit(b, "Mul", row, dim(b, shape, 3)), c[1].pixel);
    const cm_value flat = cm_emit(b, "Reshape", cast(b, x, CM_DOUBLE), cm_emit_int64s(b, -1));
    const cm_value weight = cm_emit(b, "Mul", c[0].weight, c[1].weight);
    const cm_value value = cm_emit(b, "Where", cm_emit(b, "And", c[0].inside, c[1].inside),
                                   cm_emit(b, "Mul", weight, gather(b, 0, flat, index)), lowest);
    /* all candidates of a cell along one axis, in the order in which the kernel looks at them */
    const cm_value count =
        cm_emit(b, "Mul", cm_emit(b, "Mul", s[0].size, s[1].size), cm_emit_int64s(b, 4));
    const cm_value all = cm_emit(b, "Shape", value);
    const cm_value outer =
        cm_emit_with(b, "Shape", CM_ATTRIBUTES(cm_attr_int(arena, "end", 4)), value);
    const cm_value lined =
        cm_emit_with(b, "Concat", CM_ATTRIBUTES(cm_attr_int(arena, "axis", 0)), outer, count);
    const cm_value line = cm_emit(b, "Reshape", value, lined);
    const cm_value best = largest(b, 4, line);
    const cm_value places = cm_emit(b, "Reshape", cm_emit(b, "Expand", index, all), lined);
    const cm_value weights = cm_emit(b, "Reshape", cm_emit(b, "Expand", weight, all), lined);
    /* a sample outside is zero, and one that is not larger is no maximum */
    const cm_value missing =
        cm_emit(b, "Or", cm_emit(b, "Unsqueeze", s[0].missing, cm_emit_int64s(b, 1, 3)),
                cm_emit(b, "Unsqueeze", s[1].missing, cm_emit_int64s(b, 1, 2)));
    const cm_value least = cm_emit(b, "Where", missing, real(b, 0), lowest);
    const cm_value open = cm_emit(b, "Greater", pick(b, 4, line, best), least);
    return return_maxima(b, open, pick(b, 4, places, best), pick(b, 4, weights, best));
}

/* ---- MaxRoiPoolMaxima ---- */

/* Halves go away from zero; ONNX's Round takes them to even. */
static cm_value nearest(struct cm_body *b, cm_value x)
{
    const cm_value size =
        cm_emit(b, "Floor", cm_emit(b, "Add", cm_emit(b, "Abs", x), real(b, 0.5)));
    return cm_emit(b, "Mul", cm_emit(b, "Sign", x), size);
}

/* (R, P, L): does the cell cover the pixel? */
static cm_value covered(struct cm_body *b, cm_value rows, int axis, int64_t cells, cm_value length)
{
    const cm_value scale = real(b, (double)cm_node_float(b->node, "spatial_scale"));
    const cm_value one = real(b, 1);
    const cm_value start = nearest(b, cm_emit(b, "Mul", region_number(b, rows, 2 - axis), scale));
    const cm_value end = nearest(b, cm_emit(b, "Mul", region_number(b, rows, 4 - axis), scale));
    const cm_value size = above(b, cm_emit(b, "Add", cm_emit(b, "Sub", end, start), one), 1);
    const cm_value bin = cm_emit(b, "Div", size, real(b, (double)cells)); /* (R, 1, 1) */
    const cm_value cell =
        cm_emit(b, "Unsqueeze", cast(b, count_up(b, cm_build_int64(&b->build, cells)), CM_DOUBLE),
                cm_emit_int64s(b, 1));
    const cm_value next = cm_emit(b, "Add", cell, one);
    const cm_value low =
        cm_emit(b, "Add", cm_emit(b, "Floor", cm_emit(b, "Mul", cell, bin)), start);
    const cm_value high =
        cm_emit(b, "Add", cm_emit(b, "Ceil", cm_emit(b, "Mul", next, bin)), start);
    const cm_value pixel = cast(b, count_up(b, length), CM_DOUBLE);
    return cm_emit(b, "And", cm_emit(b, "LessOrEqual", low, pixel),
                   cm_emit(b, "Less", pixel, high));
}

/* (R, P): does it cover any? */
static cm_value covers_some(struct cm_body *b, cm_value mask)
{
    return cm_emit(b, "Greater", sum_over(b, cast(b, mask, CM_DOUBLE), 2, false), real(b, 0));
}

/* The best column of each row first, then the best row: the first of equal maxima, as rows go. */
enum cm_status cm_pool_maxima_body(struct cm_body *b)
{
    const cm_value x = cm_body_input(b, 0), shape = cm_emit(b, "Shape", x);
    const cm_value rows = region_rows(b, cm_body_input(b, 1));
    const struct cm_int64s cells = cm_node_ints(b->node, "pooled_shape");
    const cm_value lowest = real(b, (double)-INFINITY);
    const cm_value tall = covered(b, rows, 0, cells.items[0], dim(b, shape, 2));
    const cm_value wide = covered(b, rows, 1, cells.items[1], dim(b, shape, 3));
    const cm_value of = cast(
        b, cm_emit(b, "Squeeze", region_number(b, rows, 0), cm_emit_int64s(b, 1, 2)), CM_INT64);
    const cm_value image = gather(b, 0, cast(b, x, CM_DOUBLE), of); /* (R, C, H, W) */
    const cm_value in_row =
        cm_emit(b, "Where", cm_emit(b, "Unsqueeze", wide, cm_emit_int64s(b, 1, 2)),
                cm_emit(b, "Unsqueeze", image, cm_emit_int64s(b, 3)), lowest);
    const cm_value column = largest(b, 4, in_row); /* (R, C, H, Pw, 1) */
    const cm_value row_values =
        cm_emit(b, "Unsqueeze", pick(b, 4, in_row, column), cm_emit_int64s(b, 2));
    const cm_value in_cell = cm_emit(
        b, "Where", cm_emit(b, "Unsqueeze", tall, cm_emit_int64s(b, 1, 4)), row_values, lowest);
    const cm_value row = largest(b, 3, in_cell); /* (R, C, Ph, 1, Pw) */
    const cm_value columns =
        cm_emit(b, "Expand",
                cm_emit(b, "Unsqueeze", cm_emit(b, "Squeeze", column, cm_emit_int64s(b, 4)),
                        cm_emit_int64s(b, 2)),
                cm_emit(b, "Shape", in_cell));
    const cm_value starts =
        cm_emit(b, "Unsqueeze", row_starts(b, of, shape), cm_emit_int64s(b, 2, 3));
    const cm_value line =
        cm_emit(b, "Add", starts, cm_emit(b, "Squeeze", row, cm_emit_int64s(b, 3)));
    const cm_value index =
        cm_emit(b, "Add", cm_emit(b, "Mul", line, dim(b, shape, 3)), pick(b, 3, columns, row));
    const cm_value open =
        cm_emit(b, "And", cm_emit(b, "Unsqueeze", covers_some(b, tall), cm_emit_int64s(b, 1, 3)),
                cm_emit(b, "Unsqueeze", covers_some(b, wide), cm_emit_int64s(b, 1, 2)));
    const cm_value ones = cm_emit(b, "Expand", real(b, 1), cm_emit(b, "Shape", index));
    return return_maxima(b, open, index, ones);
}
