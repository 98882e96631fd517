/* CropAndResize: boxes cut out of images and resized to one size, by gathering the neighbours of
 * each sampled point. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"

/* A box is (top, left, bottom, right) in fractions of the image. Samples have a place on each axis
 * (0: rows, 1: columns), (boxes, samples): both ends of a box are sampled, a single sample is taken
 * from its middle. */
#define PLACES                                                                                     \
    "size(i) = Squeeze(Shape<start=i, end=i + 1>(X), [0]);"                                        \
    "last(i) = CastLike(size(i + 2) - 1, boxes);"                                                  \
    "column(i) = Slice(boxes, [i], [i + 1], [1]);"                                                 \
    "place(i, count, last) = { low = column(i); high = column(i + 2); one = int64(1);"             \
    "  steps = CastLike(Range(0, count, 1), low);"                                                 \
    "  gaps = CastLike(Max(count - one, one), low);"                                               \
    "  along = steps * ((high - low) * last / gaps); spread = low * last + along;"                 \
    "  middle = 0.5 * (low + high) * last;"                                                        \
    "  Where(Greater(count, one), spread, middle) };"                                              \
    "inside(t, last) = And(GreaterOrEqual(t, 0), LessOrEqual(t, last));"                           \
    "boxes = %s(rois); sizes = int64(crop_size);"                                                  \
    "high = Gather(sizes, int64(0)); bottom = last(0); y = place(0, high, bottom);"                \
    "wide = Gather(sizes, int64(1)); right = last(1); x = place(1, wide, right);"

/* Images are rows of pixels, (batch * height * width, channels). pixel(y, x): (boxes, height,
 * width, channels) from the indices of rows, (boxes, height), and of columns, (boxes, width). */
#define PIXELS                                                                                     \
    "index(t, last) = int64(Clip(t, 0, last));"                                                    \
    "pixels = Reshape(%s(Transpose<perm=[0, 2, 3, 1]>(X)),"                                        \
    "                 Concat<axis=0>([-1], Shape<start=1, end=2>(X)));"                            \
    "width = size(3); starts = Unsqueeze(int64(batch_indices), [1, 2]) * size(2);"                 \
    "pixel(y, x) = Gather(pixels, (starts + Unsqueeze(y, [2])) * width + Unsqueeze(x, [1]));"

#define NEAREST "value = pixel(index(Floor(y + 0.5), bottom), index(Floor(x + 0.5), right));"
#define BILINEAR                                                                                   \
    "between(a, b, part) = a + (b - a) * part;"                                                    \
    "above = Floor(y); top = index(above, bottom); under = index(Ceil(y), bottom);"                \
    "before = Floor(x); left = index(before, right); after = index(Ceil(x), right);"               \
    "across = Unsqueeze(x - before, [1, 3]); down = Unsqueeze(y - above, [2, 3]);"                 \
    "upper = between(pixel(top, left), pixel(top, after), across);"                                \
    "lower = between(pixel(under, left), pixel(under, after), across);"                            \
    "value = between(upper, lower, down);"

static enum cm_status crop_and_resize_body(struct cm_body *b)
{
    const struct cm_str mode = cm_node_str(b->node, "mode");
    const bool nearest = cm_str_is(mode, "nearest");
    const struct cm_type *images = cm_builder_type(&b->build, cm_body_input(b, 0));
    const char *const wide = images->dtype == CM_DOUBLE ? "double" : "float";
    if (!nearest && !cm_str_is(mode, "bilinear"))
        return cm_body_decline(b, "attribute 'mode' is '%.*s', expected 'bilinear' or 'nearest'",
                               CM_STR_FMT(mode));
    return cm_body_formula(
        b,
        PLACES PIXELS
        "%s"
        "seen = And(Unsqueeze(inside(y, bottom), [2, 3]), Unsqueeze(inside(x, right), [1, 3]));"
        "result = Where(seen, value, like(value, extrapolation_value));"
        "Y = cast(Transpose<perm=[0, 3, 1, 2]>(result), X)",
        wide, wide, nearest ? NEAREST : BILINEAR);
}

CM_OP_IN(microsoft, "com.microsoft", CropAndResize, .body = crop_and_resize_body);
