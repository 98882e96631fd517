/* The operators that the gradients of RoiAlign and MaxRoiPool use, as graphs of standard ones.
 *
 * Everything is computed for all regions at once, so these forms need much memory where regions are
 * many; they exist for other runtimes. Places are computed in double, as the kernels do: a place
 * that rounds another way is another pixel. Shapes in comments: R regions, P cells to an axis, S
 * samples to a cell, L pixels to an axis. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "ops/image/regions.h"

#include <math.h>

/* What all texts begin with. region(i) is number i of each region, (R, 1, 1); pick3 and pick4 are
 * the elements of t that ArgMax found, without their axis. */
#define FUNCTIONS                                                                                  \
    "region(i) = Gather<axis=2>(rows, [i]); count(n) = double(Range(0, n, 1));"                    \
    "above(t, floor) = { low = like(t, floor); Where(Greater(t, low), t, low) };"                  \
    "at_end(t) = Unsqueeze(t, last_axis); size_of(i) = Gather<axis=0>(shape, int64(i));"           \
    "pick4(t, best) = Squeeze(GatherElements<axis=4>(t, best), [4]);"                              \
    "pick3(t, best) = Squeeze(GatherElements<axis=3>(t, best), [3]);"

/* ---- RoiAlign's samples ---- */

struct samples {
    cm_value at;      /* (R, P, S): the place, moved into the image; 0 where that is not inside */
    cm_value inside;  /* (R, P, S) */
    cm_value missing; /* (R, P): not all are inside */
    cm_value divisor; /* of a mean over the axis, (R, 1, 1) or a scalar */
    cm_value size;    /* S */
    cm_value last;    /* L - 1, as a double */
};

/* Of the regions, as (R, 1, n), along an axis of this length. */
static struct samples axis_samples(struct cm_body *b, cm_value rows, int axis, cm_value length)
{
    const bool half_pixel =
        cm_str_is(cm_node_str(b->node, "coordinate_transformation_mode"), "half_pixel");
    /* Without a ratio as many samples as a cell has pixels. The largest number of them is asked for
     * with one more, so that there is one without regions too. */
    const char *const natural =
        "samples = above(Ceil(bin), 0); row = Reshape(samples, [-1]);"
        "some = Concat<axis=0>(row, Reshape(double(1), [1]));"
        "size = int64(ReduceMax<keepdims=0>(some)); divisor = above(samples, 1);";
    const char *const given = "samples = double(sampling_ratio); size = int64(sampling_ratio);"
                              "divisor = samples;";
    const struct cm_str text = cm_arena_printf(
        cm_builder_arena(&b->build),
        "rows, length:" FUNCTIONS "scale = double(spatial_scale); off = double(%g);"
        "half = double(0.5); near = region(%d) * scale; far = region(%d) * scale;"
        "start = near - off; whole = far - off - start; extent = %s;"
        "bin = extent / double(output_%s); %s step = count(size);"
        "cell = Unsqueeze(count(int64(output_%s)), [1]); within = (step + half) * bin / divisor;"
        "at = start + cell * bin + within; long = double(length); last = long - 1;"
        "readable = And(GreaterOrEqual(at, -1), LessOrEqual(at, long));"
        "inside = And(readable, Less(step, samples));"
        "found = ReduceSum<keepdims=1>(double(inside), [2]);"
        "missing = Squeeze(Less(found, samples), [2]); clipped = Min(Max(at, 0), last);"
        "place = Where(inside, clipped, 0) -> place, inside, missing, divisor, size, last",
        half_pixel ? 0.5 : 0, 1 - axis, 3 - axis, half_pixel ? "whole" : "above(whole, 1)",
        axis ? "width" : "height", cm_node_int(b->node, "sampling_ratio") ? given : natural,
        axis ? "width" : "height");
    cm_value v[6];
    cm_emit_formulas(b, v, cm_str_text(text), rows, length);
    return (struct samples){v[0], v[1], v[2], v[3], v[4], v[5]};
}

static cm_value dim(struct cm_body *b, cm_value shape, int64_t i)
{
    return cm_emit_formula(b,
                           i == 2 ? "shape: Gather<axis=0>(shape, int64(2))"
                                  : "shape: Gather<axis=0>(shape, int64(3))",
                           shape);
}

static cm_value region_rows(struct cm_body *b)
{
    return cm_emit_formula(b, "rois: Unsqueeze(double(rois), [1])", cm_body_input(b, 1));
}

/* ---- RoiAlignGrad ---- */

/* (R, 1, P, L): how much each pixel counts in each cell. A sample counts for a pixel as much as it
 * is nearer to it than 1. */
static cm_value pixel_weights(struct cm_body *b, const struct samples *s, cm_value length,
                              cm_value channel)
{
    return cm_emit_formula(b,
                           "at, inside, divisor, length, channel: " FUNCTIONS
                           "last_axis = [3]; zero = double(0); pixel = count(length);"
                           "far = Abs(at_end(at) - pixel); near = Max(1 - far, zero);"
                           "counted = Where(at_end(inside), near, zero);"
                           "Unsqueeze(ReduceSum<keepdims=0>(counted, [2]) / divisor, channel)",
                           s->at, s->inside, s->divisor, length, channel);
}

/* An image's gradient is the sum over its regions of rows' weights x dY x columns' weights. */
enum cm_status cm_align_grad_body(struct cm_body *b)
{
    const cm_value dy = cm_body_input(b, 0), shape = cm_body_input(b, 3);
    const cm_value rows = region_rows(b), channel = cm_emit_int64s(b, 1);
    cm_value weights[2];
    for (int axis = 0; axis < 2; axis++) {
        const cm_value length = dim(b, shape, 2 + axis);
        const struct samples s = axis_samples(b, rows, axis, length);
        weights[axis] = pixel_weights(b, &s, length, channel);
    }
    return cm_body_return(
        b, 0,
        cm_emit_formula(
            b,
            "tall, wide, dy, of, shape, channel:" FUNCTIONS
            "upright = Transpose<perm=[0, 1, 3, 2]>(tall);"
            "each = MatMul(MatMul(upright, double(dy)), wide); lying = Flatten<axis=1>(each);"
            "image = Unsqueeze(Range(0, size_of(0), 1), channel);"
            "mine = double(Equal(image, of));" /* (N, R) */
            "cast(Reshape<allowzero=1>(MatMul(mine, lying), shape), dy)",
            weights[0], weights[1], dy, cm_body_input(b, 2), shape, channel));
}

/* ---- RoiAlignMaxima ---- */

/* One axis' pixels and weights, (R, P, S, 2), of the pixel before a sample and of the one after it,
 * in the place they have in (R, C, Ph, Pw, Sh, Sw, 2, 2). */
struct candidates {
    cm_value pixel, weight, inside;
};

static struct candidates axis_candidates(struct cm_body *b, const struct samples *s, int axis)
{
    const struct cm_str text = cm_arena_printf(
        cm_builder_arena(&b->build),
        "at, inside, last: pair(t, u) = { a = [3]; Concat<axis=3>(Unsqueeze(t, a), Unsqueeze(u, "
        "a)) };"
        "one = double(1); low = Floor(at); t = at - low; high = Min(low + one, last);"
        "pixel = int64(pair(low, high)); weight = pair(one - t, t); in = Unsqueeze(inside, [3]);"
        "axes = [%s]; p = Unsqueeze(pixel, axes); w = Unsqueeze(weight, axes);"
        "i = Unsqueeze(in, axes) -> p, w, i",
        axis ? "1, 2, 4, 6" : "1, 3, 5, 7");
    cm_value v[3];
    cm_emit_formulas(b, v, cm_str_text(text), s->at, s->inside, s->last);
    return (struct candidates){v[0], v[1], v[2]};
}

/* Where in X, laid in one row, the channels of each region's image begin, in pixels' rows: (R, C).
 */
#define ROW_STARTS                                                                                 \
    "channels = size_of(1); plane = Unsqueeze(of, [1]) * channels + Range(0, channels, 1);"        \
    "starts = plane * size_of(2);"

static enum cm_status return_maxima(struct cm_body *b, const cm_value *v)
{
    CM_TRY(cm_body_return(b, 0, cm_emit_formula(b, "open, at: Where(open, at, 0)", v[0], v[1])));
    if (!cm_body_wants(b, 1))
        return CM_OK;
    return cm_body_return(b, 1,
                          cm_emit_formula(b, "open, weight, x: cast(Where(open, weight, 0), x)",
                                          v[0], v[2], cm_body_input(b, 0)));
}

enum cm_status cm_align_maxima_body(struct cm_body *b)
{
    const cm_value x = cm_body_input(b, 0), shape = cm_emit(b, "Shape", x);
    const cm_value rows = region_rows(b);
    const cm_value lowest = cm_emit_scalar(b, CM_DOUBLE, (double)-INFINITY);
    struct samples s[2];
    struct candidates c[2];
    cm_value open[3];
    for (int axis = 0; axis < 2; axis++) {
        s[axis] = axis_samples(b, rows, axis, dim(b, shape, 2 + axis));
        c[axis] = axis_candidates(b, &s[axis], axis);
    }
    cm_emit_formulas(
        b, open,
        "x, of, shape, lowest, p0, p1, w0, w1, in0, in1, size0, size1, missing0, "
        "missing1:" FUNCTIONS ROW_STARTS
        "row = Unsqueeze(starts, [2 to 7]) + p0; index = row * size_of(3) + p1;"
        "flat = Reshape(double(x), [-1]); weight = w0 * w1; inside = And(in0, in1);"
        "value = Where(inside, weight * Gather<axis=0>(flat, index), lowest);"
        /* all candidates of a cell along one axis, in the order in which the kernel looks at them
         */
        "number = size0 * size1 * [4]; all = Shape(value); outer = Shape<end=4>(value);"
        "lined = Concat<axis=0>(outer, number); line = Reshape(value, lined);"
        "best = ArgMax<axis=4>(line); places = Reshape(Expand(index, all), lined);"
        "weights = Reshape(Expand(weight, all), lined);"
        /* a sample outside is zero, and one that is not larger is no maximum */
        "missing = Or(Unsqueeze(missing0, [1, 3]), Unsqueeze(missing1, [1, 2]));"
        "least = Where(missing, 0, lowest); open = Greater(pick4(line, best), least);"
        "much = pick4(weights, best); place = pick4(places, best) -> open, place, much",
        x, cm_body_input(b, 2), shape, lowest, c[0].pixel, c[1].pixel, c[0].weight, c[1].weight,
        c[0].inside, c[1].inside, s[0].size, s[1].size, s[0].missing, s[1].missing);
    return return_maxima(b, open);
}

/* ---- MaxRoiPoolMaxima ---- */

/* (R, P, L): does the cell cover the pixel? Halves go away from zero; ONNX's Round takes them to
 * even. */
static cm_value covered(struct cm_body *b, cm_value rows, int axis, cm_value length)
{
    const int64_t cells = cm_node_ints(b->node, "pooled_shape").items[axis];
    const struct cm_str text = cm_arena_printf(
        cm_builder_arena(&b->build),
        "rows, length:" FUNCTIONS "nearest(t) = { size = Floor(Abs(t) + 0.5); Sign(t) * size };"
        "scale = double(spatial_scale); one = double(1); start = nearest(region(%d) * scale);"
        "end = nearest(region(%d) * scale); bin = above(end - start + one, 1) / double(%lld);"
        "cell = Unsqueeze(count(int64(%lld)), [1]); after = cell + one;"
        "low = Floor(cell * bin) + start; high = Ceil(after * bin) + start;"
        "pixel = count(length); And(LessOrEqual(low, pixel), Less(pixel, high))",
        2 - axis, 4 - axis, (long long)cells, (long long)cells);
    return cm_emit_formula(b, cm_str_text(text), rows, length);
}

/* The best column of each row first, then the best row: the first of equal maxima, as rows go. */
enum cm_status cm_pool_maxima_body(struct cm_body *b)
{
    const cm_value x = cm_body_input(b, 0), shape = cm_emit(b, "Shape", x);
    const cm_value rows = region_rows(b);
    const cm_value lowest = cm_emit_scalar(b, CM_DOUBLE, (double)-INFINITY);
    const cm_value tall = covered(b, rows, 0, dim(b, shape, 2));
    const cm_value wide = covered(b, rows, 1, dim(b, shape, 3));
    cm_value open[3];
    cm_emit_formulas(
        b, open,
        "x, shape, rows, lowest, tall, wide:" FUNCTIONS
        "some(mask) = Greater(ReduceSum<keepdims=0>(double(mask), [2]), 0);"
        "of = int64(Squeeze(region(0), [1, 2]));"
        "image = Gather<axis=0>(double(x), of);" /* (R, C, H, W) */
        "in_row = Where(Unsqueeze(wide, [1, 2]), Unsqueeze(image, [3]), lowest);"
        "column = ArgMax<axis=4>(in_row);" /* (R, C, H, Pw, 1) */
        "row_values = Unsqueeze(pick4(in_row, column), [2]);"
        "in_cell = Where(Unsqueeze(tall, [1, 4]), row_values, lowest);"
        "row = ArgMax<axis=3>(in_cell);" /* (R, C, Ph, 1, Pw) */
        "columns = Expand(Unsqueeze(Squeeze(column, [4]), [2]), Shape(in_cell));" ROW_STARTS
        "line = Unsqueeze(starts, [2, 3]) + Squeeze(row, [3]);"
        "index = line * size_of(3) + pick3(columns, row);"
        "open = And(Unsqueeze(some(tall), [1, 3]), Unsqueeze(some(wide), [1, 2]));"
        "ones = Expand(double(1), Shape(index)) -> open, index, ones",
        x, shape, rows, lowest, tall, wide);
    return return_maxima(b, open);
}
