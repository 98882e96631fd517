/* CropAndResize: boxes cut out of images and resized to one size, by gathering the neighbours of
 * each sampled point. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/compose.h"

enum { IN_IMAGES, IN_BOXES, IN_BATCH, IN_SIZE };

/* Where the samples of one axis are, for every box. */
struct samples {
    cm_value place;         /* (boxes, samples) */
    cm_value last;          /* scalar: the index of the axis's last pixel, as a float */
    cm_value inside;        /* (boxes, samples): is the place in the image? */
    cm_value lower, higher; /* (boxes, samples): the neighbours, as indices */
    cm_value fraction;      /* (boxes, samples): how far the place is from the lower one */
};

static cm_value column_of_boxes(struct cm_body *b, cm_value boxes, int64_t column)
{
    return cm_compose_slice(b, boxes, 1, column, column + 1);
}

static cm_value as_index(struct cm_body *b, const struct samples *s, cm_value place)
{
    const cm_value zero = cm_emit_scalar_like(b, place, 0);
    return cm_emit_cast(b, cm_emit(b, "Clip", place, zero, s->last), CM_INT64);
}

/* Both ends of a box are sampled; a single sample is taken from its middle. */
static cm_value places(struct cm_body *b, cm_value low, cm_value high, cm_value last,
                       cm_value count)
{
    const cm_value one = cm_build_int64(&b->build, 1);
    const cm_value steps = cm_emit(b, "CastLike", cm_compose_range(b, count), low);
    const cm_value gaps =
        cm_emit(b, "CastLike", cm_emit(b, "Max", cm_emit(b, "Sub", count, one), one), low);
    const cm_value extent = cm_emit(b, "Mul", cm_emit(b, "Sub", high, low), last);
    const cm_value along = cm_emit(b, "Mul", steps, cm_emit(b, "Div", extent, gaps));
    const cm_value spread = cm_emit(b, "Add", cm_emit(b, "Mul", low, last), along);
    const cm_value half = cm_emit_scalar_like(b, low, 0.5);
    const cm_value middle =
        cm_emit(b, "Mul", cm_emit(b, "Mul", half, cm_emit(b, "Add", low, high)), last);
    return cm_emit(b, "Where", cm_emit(b, "Greater", count, one), spread, middle);
}

/* axis: 0 for rows, 1 for columns. A box is (top, left, bottom, right) in fractions of the image.
 */
static struct samples sample_axis(struct cm_body *b, cm_value boxes, cm_value sizes, int64_t axis,
                                  bool nearest)
{
    struct samples s;
    const cm_value length = cm_compose_dim(b, cm_body_input(b, IN_IMAGES), 2 + axis);
    const cm_value count = cm_emit(b, "Gather", sizes, cm_build_int64(&b->build, axis));
    s.last = cm_emit(b, "CastLike", cm_emit(b, "Sub", length, cm_build_int64(&b->build, 1)), boxes);
    s.place = places(b, column_of_boxes(b, boxes, axis), column_of_boxes(b, boxes, axis + 2),
                     s.last, count);
    const cm_value zero = cm_emit_scalar_like(b, boxes, 0);
    s.inside = cm_emit(b, "And", cm_emit(b, "GreaterOrEqual", s.place, zero),
                       cm_emit(b, "LessOrEqual", s.place, s.last));
    if (nearest) {
        const cm_value half = cm_emit_scalar_like(b, boxes, 0.5);
        s.lower = as_index(b, &s, cm_emit(b, "Floor", cm_emit(b, "Add", s.place, half)));
        s.higher = s.fraction = 0;
        return s;
    }
    const cm_value floor = cm_emit(b, "Floor", s.place);
    s.lower = as_index(b, &s, floor);
    s.higher = as_index(b, &s, cm_emit(b, "Ceil", s.place));
    s.fraction = cm_emit(b, "Sub", s.place, floor);
    return s;
}

/* Images as rows of pixels, (batch * height * width, channels), and how to find one. */
struct pixels {
    cm_value rows, starts, width;
};

static struct pixels flat_pixels(struct cm_body *b, enum cm_dtype dtype)
{
    const cm_value images = cm_body_input(b, IN_IMAGES);
    const cm_value channels = cm_compose_dims(b, images, 1, 2);
    struct pixels p;
    p.rows =
        cm_emit(b, "Reshape", cm_emit_cast(b, CM_COMPOSE_TRANSPOSE(b, images, 0, 2, 3, 1), dtype),
                CM_COMPOSE_CONCAT(b, 0, cm_emit_int64s(b, -1), channels));
    p.width = cm_compose_dim(b, images, 3);
    const cm_value batch =
        CM_COMPOSE_UNSQUEEZE(b, cm_emit_cast(b, cm_body_input(b, IN_BATCH), CM_INT64), 1, 2);
    p.starts = cm_emit(b, "Mul", batch, cm_compose_dim(b, images, 2));
    return p;
}

/* (boxes, height, width, channels) from (boxes, height) and (boxes, width). */
static cm_value fetch(struct cm_body *b, const struct pixels *p, cm_value rows, cm_value columns)
{
    const cm_value lines = cm_emit(b, "Add", p->starts, CM_COMPOSE_UNSQUEEZE(b, rows, 2));
    const cm_value at =
        cm_emit(b, "Add", cm_emit(b, "Mul", lines, p->width), CM_COMPOSE_UNSQUEEZE(b, columns, 1));
    return cm_emit(b, "Gather", p->rows, at);
}

static cm_value between(struct cm_body *b, cm_value from, cm_value to, cm_value fraction)
{
    return cm_emit(b, "Add", from, cm_emit(b, "Mul", cm_emit(b, "Sub", to, from), fraction));
}

static cm_value bilinear(struct cm_body *b, const struct pixels *p, const struct samples *y,
                         const struct samples *x)
{
    const cm_value across = CM_COMPOSE_UNSQUEEZE(b, x->fraction, 1, 3);
    const cm_value down = CM_COMPOSE_UNSQUEEZE(b, y->fraction, 2, 3);
    const cm_value top =
        between(b, fetch(b, p, y->lower, x->lower), fetch(b, p, y->lower, x->higher), across);
    const cm_value bottom =
        between(b, fetch(b, p, y->higher, x->lower), fetch(b, p, y->higher, x->higher), across);
    return between(b, top, bottom, down);
}

static enum cm_status crop_and_resize_body(struct cm_body *b)
{
    const struct cm_str mode = cm_node_str(b->node, "mode");
    const bool nearest = cm_str_is(mode, "nearest");
    const enum cm_dtype dtype = cm_compose_type(b, cm_body_input(b, IN_IMAGES))->dtype;
    const enum cm_dtype wide = dtype == CM_DOUBLE ? CM_DOUBLE : CM_FLOAT;
    if (!nearest && !cm_str_is(mode, "bilinear"))
        return cm_body_decline(b, "attribute 'mode' is '%.*s', expected 'bilinear' or 'nearest'",
                               CM_STR_FMT(mode));
    const cm_value boxes = cm_emit_cast(b, cm_body_input(b, IN_BOXES), wide);
    const cm_value sizes = cm_emit_cast(b, cm_body_input(b, IN_SIZE), CM_INT64);
    const struct samples y = sample_axis(b, boxes, sizes, 0, nearest);
    const struct samples x = sample_axis(b, boxes, sizes, 1, nearest);
    const struct pixels pixels = flat_pixels(b, wide);
    const cm_value value =
        nearest ? fetch(b, &pixels, y.lower, x.lower) : bilinear(b, &pixels, &y, &x);
    const cm_value inside = cm_emit(b, "And", CM_COMPOSE_UNSQUEEZE(b, y.inside, 2, 3),
                                    CM_COMPOSE_UNSQUEEZE(b, x.inside, 1, 3));
    const cm_value outside =
        cm_emit_scalar(b, wide, (double)cm_node_float(b->node, "extrapolation_value"));
    const cm_value result = cm_emit(b, "Where", inside, value, outside);
    return cm_body_return(b, 0,
                          cm_emit_cast(b, CM_COMPOSE_TRANSPOSE(b, result, 0, 3, 1, 2), dtype));
}

CM_OP_IN(microsoft, "com.microsoft", CropAndResize, .body = crop_and_resize_body);
