/* GridSample: an image read at the places a grid gives. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "graph/node_formula.h"
#include "graph/require.h"
#include "ops/common/move.h"
#include "ops/common/reals.h"
#include "ops/image/sampler.h"

#include <math.h>

static enum cm_status read_sampler(const struct cm_node *node, struct cm_sampler *out,
                                   struct cm_error *err)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    const struct cm_str mode = cm_node_str(node, "mode");
    const struct cm_str padding = cm_node_str(node, "padding_mode");
    int m = 0, o = 0;
    while (m < 3 && !cm_str_is(mode, modes[m]))
        m++;
    while (o < 3 && !cm_str_is(padding, paddings[o]))
        o++;
    if (m == 3)
        return cm_fail(err, CM_BAD_MODEL,
                       "attribute 'mode' is '%.*s', expected 'linear', 'nearest' or 'cubic'",
                       CM_STR_FMT(mode));
    if (o == 3)
        return cm_fail(
            err, CM_BAD_MODEL,
            "attribute 'padding_mode' is '%.*s', expected 'zeros', 'border' or 'reflection'",
            CM_STR_FMT(padding));
    *out = (struct cm_sampler){(enum cm_sampling)m, (enum cm_outside)o,
                               cm_node_int(node, "align_corners") != 0};
    return CM_OK;
}

static enum cm_status grid_sample_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0), *grid = cm_infer_type(in, 1);
    const int rank = x->rank != CM_RANK_UNKNOWN ? x->rank : grid->rank;
    struct cm_sampler sampler;
    struct cm_dim dims[CM_MAX_RANK], both;
    CM_TRY(read_sampler(in->node, &sampler, in->err));
    if (rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, x->dtype, CM_RANK_UNKNOWN, NULL);
    if (rank < 3)
        return cm_infer_fail(in, "its input has rank %d, needs 3 or more", rank);
    if (x->rank != CM_RANK_UNKNOWN && grid->rank != CM_RANK_UNKNOWN && x->rank != grid->rank)
        return cm_infer_fail(in, "input 0 has rank %d, the grid %d", x->rank, grid->rank);
    for (int i = 0; i < rank; i++)
        dims[i] = CM_DIM_ANY;
    if (x->rank != CM_RANK_UNKNOWN)
        memcpy(dims, x->dims, 2 * sizeof dims[0]);
    if (grid->rank != CM_RANK_UNKNOWN) {
        if (!cm_dim_unify(grid->dims[rank - 1], CM_DIM(rank - 2), &both))
            return cm_infer_fail(in, "the grid has %lld coordinates for each position, needs %d",
                                 (long long)grid->dims[rank - 1].value, rank - 2);
        if (!cm_dim_unify(dims[0], grid->dims[0], &dims[0]))
            return cm_infer_fail(in, "input 0 has batch %lld, the grid %lld",
                                 (long long)dims[0].value, (long long)grid->dims[0].value);
        memcpy(dims + 2, grid->dims + 1, (size_t)(rank - 2) * sizeof dims[0]);
    }
    return cm_infer_set_tensor(in, 0, x->dtype, rank, dims);
}

struct grid_sample {
    struct cm_sampler sampler;
    int axes, lanes; /* lanes: reals to an element */
    enum cm_dtype part;
    int64_t images, channels, area, places, combinations;
    size_t weights, offsets, image, result; /* places in scratch, in bytes */
};

enum { MOST_COMBINATIONS = 1 << 12 };

static enum cm_status grid_sample_prepare(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[0]->shape;
    struct grid_sample *s = cm_call_state(call, sizeof *s);
    const enum cm_dtype type = call->in[0]->type;
    int64_t pixels, results;
    CM_TRY(read_sampler(call->node, &s->sampler, call->err));
    s->axes = x->rank - 2;
    s->images = x->dims[0];
    s->channels = x->dims[1];
    s->area = cm_shape_span(x, 2, x->rank);
    s->places = cm_shape_span(&call->out[0]->shape, 2, x->rank);
    s->lanes = type == CM_COMPLEX64 || type == CM_COMPLEX128 ? 2 : 1;
    s->part = type == CM_COMPLEX64 ? CM_FLOAT : type == CM_COMPLEX128 ? CM_DOUBLE : type;
    s->combinations = 1;
    for (int i = 0; i < s->axes; i++) {
        s->combinations *= s->sampler.mode == CM_SAMPLE_NEAREST  ? 1
                           : s->sampler.mode == CM_SAMPLE_LINEAR ? 2
                                                                 : 4;
        if (s->combinations > MOST_COMBINATIONS)
            return cm_call_fail(call, CM_LIMIT, "it has too many axes to interpolate over");
    }
    if (s->sampler.mode != CM_SAMPLE_NEAREST && !cm_reals_have(s->part))
        return cm_call_fail(call, CM_UNSUPPORTED, "elements of type %s cannot be interpolated",
                            cm_dtype_name(type));
    if (!cm_dim_mul(s->channels * s->lanes, s->area, &pixels) ||
        !cm_dim_mul(s->channels * s->lanes, s->places, &results) || pixels > INT64_MAX / 64 ||
        results > INT64_MAX / 64)
        return cm_call_fail(call, CM_LIMIT, "its image is too large");
    s->offsets = (size_t)s->combinations * sizeof(double);
    s->image = s->offsets + (size_t)s->combinations * sizeof(int64_t);
    s->result = s->image + (size_t)pixels * sizeof(double);
    cm_call_scratch(call, s->result + (size_t)results * sizeof(double));
    return CM_OK;
}

/* Pixels, in the image of one channel, and weights of one place; returns how many there are. */
static int64_t locate(const struct cm_call *call, const struct grid_sample *s, int64_t place,
                      int64_t *offsets, double *weights)
{
    const struct cm_shape *x = &call->in[0]->shape;
    const struct cm_tensor *grid = call->in[1];
    double at[CM_MAX_RANK];
    for (int a = 0; a < s->axes; a++) {
        const int64_t length = x->dims[a + 2];
        /* The last coordinate of a place is that of the first axis. */
        const double g = cm_tensor_real(grid, place * s->axes + s->axes - 1 - a);
        if (grid->type == CM_DOUBLE)
            at[a] = s->sampler.align_corners ? (g + 1) / 2 * (double)(length - 1)
                                             : ((g + 1) * (double)length - 1) / 2;
        else /* places are rounded as the operands are */
            at[a] = s->sampler.align_corners ? (double)(((float)g + 1) / 2 * (float)(length - 1))
                                             : (double)((((float)g + 1) * (float)length - 1) / 2);
    }
    return cm_sampler_locate(&s->sampler, s->axes, at, x->dims + 2, offsets, weights);
}

static void move_nearest(const struct cm_call *call, const struct grid_sample *s, int64_t image)
{
    const enum cm_dtype type = call->in[0]->type;
    int64_t offset;
    double weight;
    for (int64_t p = 0; p < s->places; p++) {
        locate(call, s, image * s->places + p, &offset, &weight);
        for (int64_t c = 0; c < s->channels; c++) {
            const int64_t plane = image * s->channels + c, to = plane * s->places + p;
            if (offset < 0)
                cm_move_zero(type, call->out[0]->data, to, 1);
            else
                cm_move_span(type, call->in[0]->data, plane * s->area + offset, call->out[0]->data,
                             to, 1);
        }
    }
}

static void interpolate(const struct cm_call *call, const struct grid_sample *s, int64_t image)
{
    char *scratch = call->scratch;
    double *weights = call->scratch;
    int64_t *offsets = (int64_t *)(void *)(scratch + s->offsets);
    double *pixels = (double *)(void *)(scratch + s->image);
    double *results = (double *)(void *)(scratch + s->result);
    const int64_t in = s->channels * s->area * s->lanes, out = s->channels * s->places * s->lanes;
    cm_reals_load(s->part, call->in[0]->data, image * in, in, pixels);
    for (int64_t p = 0; p < s->places; p++) {
        const int64_t n = locate(call, s, image * s->places + p, offsets, weights);
        for (int64_t c = 0; c < s->channels; c++) {
            for (int lane = 0; lane < s->lanes; lane++) {
                double sum = 0;
                for (int64_t i = 0; i < n; i++)
                    if (offsets[i] >= 0)
                        sum += weights[i] * pixels[(c * s->area + offsets[i]) * s->lanes + lane];
                results[(c * s->places + p) * s->lanes + lane] = sum;
            }
        }
    }
    cm_reals_store(s->part, call->out[0]->data, image * out, out, results);
}

static enum cm_status grid_sample_run(struct cm_call *call)
{
    const struct grid_sample *s = call->state;
    if (cm_tensor_count(call->out[0]) == 0)
        return CM_OK;
    if (s->area == 0)
        return cm_call_fail(call, CM_BAD_ARGUMENT, "there is no pixel to read");
    CM_TRY(cm_move_hold(call->out[0], call->in[0], call->err));
    for (int64_t image = 0; image < s->images; image++)
        (s->sampler.mode == CM_SAMPLE_NEAREST ? move_nearest : interpolate)(call, s, image);
    return CM_OK;
}

/* The coordinates of all places along axis a of x, in pixels: (N, P). */
static cm_value places(struct cm_body *b, cm_value flat, int coordinate, bool align,
                       cm_value length)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    const cm_value one = cm_build_scalar_like(&b->build, flat, 1);
    const cm_value half = cm_build_scalar_like(&b->build, flat, 0.5);
    const cm_value g = cm_emit_with(b, "Gather", CM_ATTRIBUTES(cm_attr_int(arena, "axis", 2)), flat,
                                    cm_build_int64(&b->build, coordinate));
    const cm_value up = cm_emit(b, "Add", g, one);
    if (align)
        return cm_emit(b, "Mul", cm_emit(b, "Mul", up, half), cm_emit(b, "Sub", length, one));
    return cm_emit(b, "Mul", cm_emit(b, "Sub", cm_emit(b, "Mul", up, length), one), half);
}

/* The nearest whole number that the type has. */
static cm_value to_whole(struct cm_body *b, cm_value y, enum cm_dtype type)
{
    const struct cm_dtype_info *info = cm_dtype_info(type);
    const bool has_sign = info->kind == CM_CLASS_SIGNED;
    const double past = ldexp(1, (int)info->bits - has_sign);
    const double high = info->bits > 32 ? nextafter(past, 0) : past - 1;
    y = cm_emit(b, "Max", cm_emit(b, "Round", y),
                cm_emit_scalar(b, CM_DOUBLE, has_sign ? -past : 0));
    return cm_emit(b, "Min", y, cm_emit_scalar(b, CM_DOUBLE, high));
}

static enum cm_status grid_sample_body(struct cm_body *b)
{
    const cm_value x = cm_body_input(b, 0), grid = cm_body_input(b, 1);
    const struct cm_type *type = cm_builder_type(&b->build, x);
    const struct cm_type *grid_type = cm_builder_type(&b->build, grid);
    const enum cm_dtype_class kind = cm_dtype_info(type->dtype)->kind;
    const bool whole = kind == CM_CLASS_SIGNED || kind == CM_CLASS_UNSIGNED;
    const enum cm_dtype wide =
        whole || type->dtype == CM_DOUBLE || grid_type->dtype == CM_DOUBLE ? CM_DOUBLE : CM_FLOAT;
    struct cm_arena *arena = cm_builder_arena(&b->build);
    struct cm_sampler sampler;
    cm_value at[CM_MAX_RANK], lengths[CM_MAX_RANK], sizes[CM_MAX_RANK];
    CM_TRY(read_sampler(b->node, &sampler, b->build.err));
    const bool nearest = sampler.mode == CM_SAMPLE_NEAREST;
    const int rank = type->rank != CM_RANK_UNKNOWN ? type->rank : grid_type->rank;
    if (rank == CM_RANK_UNKNOWN)
        return cm_body_decline(b, "the rank of its operands is not known");
    if (rank > 5)
        return cm_body_decline(b, "it has too many axes");
    if (nearest ? type->dtype == CM_STRING : kind != CM_CLASS_FLOAT && !whole)
        return cm_body_decline(b, "its element type is not supported by its function body");
    const int axes = rank - 2;
    cm_value image = cm_emit(b, "Reshape", x, cm_emit_int64s(b, 0, 0, -1));
    if (!nearest)
        image = cm_emit_cast(b, image, wide);
    const cm_value flat =
        cm_emit_cast(b, cm_emit(b, "Reshape", grid, cm_emit_int64s(b, 0, -1, axes)), wide);
    for (int a = 0; a < axes; a++) {
        sizes[a] = cm_emit(b, "Squeeze", cm_emit_dims(b, x, a + 2, a + 3), cm_emit_int64s(b, 0));
        lengths[a] = cm_emit_cast(b, sizes[a], wide);
        at[a] = places(b, flat, axes - 1 - a, sampler.align_corners, lengths[a]);
    }
    cm_value y = cm_sampler_build(&b->build, &sampler, image, axes, at, lengths, sizes);
    if (whole && !nearest)
        y = to_whole(b, y, type->dtype);
    const cm_value shape =
        cm_emit_with(b, "Concat", CM_ATTRIBUTES(cm_attr_int(arena, "axis", 0)),
                     cm_emit_dims(b, x, 0, 2), cm_emit_dims(b, grid, 1, rank - 1));
    return cm_body_return(b, 0, cm_emit_cast(b, cm_emit(b, "Reshape", y, shape), type->dtype));
}

static void grid_sample_require(struct cm_require *r)
{
    cm_require_same(r, 1, 0, 0, 0, "the input and the grid have different batches");
}

CM_OP(GridSample, .require = grid_sample_require, .infer = grid_sample_infer,
      .prepare = grid_sample_prepare, .run = grid_sample_run, .body = grid_sample_body);
