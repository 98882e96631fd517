/* DeformConv: convolution whose windows read the image at places of their own, each tap moved by an
 * offset and weighted by a mask. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "graph/node_formula.h"
#include "ops/common/gemm.h"
#include "ops/common/reals.h"
#include "ops/common/window.h"
#include "ops/image/sampler.h"
#include "tensor/line.h"

enum { X, W, OFFSET, BIAS, MASK };
enum { MOST_AXES = 5 };

static const struct cm_sampler sampler = {CM_SAMPLE_LINEAR, CM_OUTSIDE_ZEROS, true};

/* Sizes that the operands must agree on. */
static enum cm_status check_channels(struct cm_infer *in, const struct cm_type *x,
                                     const struct cm_type *w)
{
    const int64_t group = cm_node_int(in->node, "group");
    const int64_t groups = cm_node_int(in->node, "offset_group");
    if (group < 1 || groups < 1)
        return cm_infer_fail(in, "group and offset_group must be 1 or more");
    if (x->rank == CM_RANK_UNKNOWN || w->rank == CM_RANK_UNKNOWN)
        return CM_OK;
    const struct cm_dim have = x->dims[1],
                        need = cm_dim_product(in->symbols, w->dims[1], CM_DIM(group));
    if (cm_dim_known(have) && cm_dim_known(need) && have.value != need.value)
        return cm_infer_fail(in, "input 0 has %lld channels, W with group %lld needs %lld",
                             (long long)have.value, (long long)group, (long long)need.value);
    if (cm_dim_known(have) && have.value % groups != 0)
        return cm_infer_fail(in, "offset_group %lld does not divide %lld channels",
                             (long long)groups, (long long)have.value);
    if (cm_dim_known(w->dims[0]) && w->dims[0].value % group != 0)
        return cm_infer_fail(in, "axis 0 of W has %lld, which group %lld does not divide",
                             (long long)w->dims[0].value, (long long)group);
    return CM_OK;
}

/* The spatial sizes of the result are those of offset and mask; channels are `times` per tap. */
static enum cm_status check_moves(struct cm_infer *in, int i, int64_t times, const int64_t *kernel,
                                  int rank, struct cm_dim *dims)
{
    const struct cm_type *p = cm_infer_type(in, i);
    struct cm_dim taps = CM_DIM(cm_node_int(in->node, "offset_group"));
    if (!p || p->rank == CM_RANK_UNKNOWN)
        return CM_OK;
    if (p->rank != rank)
        return cm_infer_fail(in, "input %d has rank %d, needs %d", i, p->rank, rank);
    taps = cm_dim_product(in->symbols, taps, CM_DIM(times));
    for (int a = 0; kernel && a < rank - 2; a++)
        taps = cm_dim_product(in->symbols, taps, CM_DIM(kernel[a]));
    if (kernel && cm_dim_known(p->dims[1]) && taps.value != p->dims[1].value)
        return cm_infer_fail(in, "input %d has %lld channels, needs %lld", i,
                             (long long)p->dims[1].value, (long long)taps.value);
    for (int a = 2; a < rank; a++)
        if (!cm_dim_unify(p->dims[a], dims[a], &dims[a]))
            return cm_infer_fail(in, "input %d has %lld along axis %d, the result has %lld", i,
                                 (long long)p->dims[a].value, a, (long long)dims[a].value);
    if (!cm_dim_unify(p->dims[0], dims[0], &dims[0]))
        return cm_infer_fail(in, "input %d has another batch size", i);
    return CM_OK;
}

static enum cm_status deform_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, X), *w = cm_infer_type(in, W);
    const struct cm_type *offset = cm_infer_type(in, OFFSET);
    const int rank = x->rank != CM_RANK_UNKNOWN   ? x->rank
                     : w->rank != CM_RANK_UNKNOWN ? w->rank
                                                  : offset->rank;
    struct cm_dim dims[CM_MAX_RANK];
    int64_t kernel[CM_MAX_RANK];
    struct cm_window window;
    if (rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, x->dtype, CM_RANK_UNKNOWN, NULL);
    if (rank < 3 || rank > MOST_AXES + 2)
        return cm_infer_fail(in, "its input has rank %d, needs 3 to %d", rank, MOST_AXES + 2);
    if ((x->rank != CM_RANK_UNKNOWN && x->rank != rank) ||
        (w->rank != CM_RANK_UNKNOWN && w->rank != rank))
        return cm_infer_fail(in, "input 0 and W have different ranks");
    CM_TRY(check_channels(in, x, w));
    bool known = w->rank != CM_RANK_UNKNOWN;
    for (int a = 0; known && a < rank - 2; a++) {
        kernel[a] = w->dims[a + 2].value;
        known = kernel[a] > 0 && kernel[a] <= INT32_MAX;
    }
    dims[0] = x->rank != CM_RANK_UNKNOWN ? x->dims[0] : CM_DIM_ANY;
    dims[1] = w->rank != CM_RANK_UNKNOWN ? w->dims[0] : CM_DIM_ANY;
    for (int a = 2; a < rank; a++)
        dims[a] = CM_DIM_ANY;
    if (known && x->rank != CM_RANK_UNKNOWN) {
        const struct cm_type *type;
        CM_TRY(cm_window_read(in->node, rank - 2, kernel, &window, in->err));
        for (int a = 0; a < rank - 2; a++)
            if (window.kernel[a] != kernel[a])
                return cm_infer_fail(in, "kernel_shape says %lld, W has %lld",
                                     (long long)window.kernel[a], (long long)kernel[a]);
        CM_TRY(cm_window_infer(in, &window, x, dims[1], &type));
        memcpy(dims + 2, type->dims + 2, (size_t)(rank - 2) * sizeof dims[0]);
    }
    CM_TRY(check_moves(in, OFFSET, rank - 2, known ? kernel : NULL, rank, dims));
    CM_TRY(check_moves(in, MASK, 1, known ? kernel : NULL, rank, dims));
    return cm_infer_set_tensor(in, 0, x->dtype, rank, dims);
}

struct deform {
    struct cm_window window;
    int64_t images, channels, area, results, places, taps, group, offset_group;
    enum cm_dtype wide;
    size_t image, columns, weights, sums; /* places in scratch, in bytes */
};

static bool reserve(int64_t rows, int64_t columns, size_t *end, size_t *at)
{
    int64_t count;
    size_t bytes;
    *at = *end;
    return cm_dim_mul(rows, columns, &count) && cm_dtype_bytes(CM_DOUBLE, count, &bytes) &&
           bytes < SIZE_MAX / 2 && cm_size_add(*end, cm_round_up(bytes, CM_TENSOR_ALIGNMENT), end);
}

static enum cm_status deform_prepare(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[X]->shape, *w = &call->in[W]->shape;
    struct deform *d = cm_call_state(call, sizeof *d);
    int64_t lines;
    CM_TRY(cm_window_read(call->node, x->rank - 2, w->dims + 2, &d->window, call->err));
    d->images = x->dims[0];
    d->channels = x->dims[1];
    d->area = cm_shape_span(x, 2, x->rank);
    d->results = w->dims[0];
    d->taps = cm_shape_span(w, 2, w->rank);
    d->places = cm_shape_span(&call->out[0]->shape, 2, x->rank);
    d->group = cm_node_int(call->node, "group");
    d->offset_group = cm_node_int(call->node, "offset_group");
    d->wide = cm_line_wide(call->in[X]->type);
    const int64_t depth = d->channels / d->group;
    if (!cm_dim_mul(d->channels, d->taps, &lines))
        return cm_call_fail(call, CM_LIMIT, "the kernel is too large");
    size_t end =
        cm_round_up(cm_gemm_scratch(d->wide, d->results / d->group, d->places, depth * d->taps),
                    CM_TENSOR_ALIGNMENT);
    if (!reserve(d->channels, d->area, &end, &d->image) ||
        !reserve(lines, d->places, &end, &d->columns) ||
        !reserve(d->results, depth * d->taps, &end, &d->weights) ||
        !reserve(d->results, d->places, &end, &d->sums))
        return cm_call_fail(call, CM_LIMIT, "the matrix of its windows is too large");
    cm_call_scratch(call, end);
    return CM_OK;
}

static void unravel(int64_t at, int rank, const int64_t *dims, int64_t *index)
{
    for (int i = rank - 1; i >= 0; i--) {
        index[i] = at % dims[i];
        at /= dims[i];
    }
}

/* What one tap of one offset group reads, for all its channels and all places. */
static void read_tap(const struct cm_call *call, const struct deform *d, int64_t image,
                     int64_t group, int64_t tap)
{
    const struct cm_shape *x = &call->in[X]->shape, *y = &call->out[0]->shape;
    const struct cm_tensor *mask = call->n_in > MASK ? call->in[MASK] : NULL;
    const int axes = d->window.rank;
    const int64_t shared = d->channels / d->offset_group;
    const int64_t row = (image * d->offset_group + group) * d->taps + tap;
    const double *pixels = (const double *)(const void *)((char *)call->scratch + d->image);
    void *columns = (char *)call->scratch + d->columns;
    int64_t step[CM_MAX_RANK], index[CM_MAX_RANK], offsets[1 << MOST_AXES];
    double place[CM_MAX_RANK], weights[1 << MOST_AXES];
    unravel(tap, axes, d->window.kernel, step);
    for (int64_t p = 0; p < d->places; p++) {
        unravel(p, axes, y->dims + 2, index);
        for (int a = 0; a < axes; a++)
            place[a] = (double)(index[a] * d->window.stride[a] - d->window.pad_begin[a] +
                                step[a] * d->window.dilation[a]) +
                       cm_tensor_real(call->in[OFFSET], (row * axes + a) * d->places + p);
        const int64_t n = cm_sampler_locate(&sampler, axes, place, x->dims + 2, offsets, weights);
        const double factor = mask ? cm_tensor_real(mask, row * d->places + p) : 1;
        for (int64_t c = group * shared; c < (group + 1) * shared; c++) {
            double sum = 0;
            for (int64_t i = 0; i < n; i++)
                if (offsets[i] >= 0)
                    sum += weights[i] * pixels[c * d->area + offsets[i]];
            sum *= factor;
            cm_reals_store(d->wide, columns, (c * d->taps + tap) * d->places + p, 1, &sum);
        }
    }
}

/* All results of one image, from its columns. */
static void multiply(const struct cm_call *call, const struct deform *d, int64_t image)
{
    const int64_t lines = d->channels / d->group * d->taps, rows = d->results / d->group;
    const struct cm_tensor *bias = call->n_in > BIAS ? call->in[BIAS] : NULL;
    char *scratch = call->scratch;
    struct cm_gemm g = {.type = d->wide,
                        .m = rows,
                        .n = d->places,
                        .k = lines,
                        .alpha = 1,
                        .c = scratch + d->sums,
                        .c_row = d->places,
                        .c_column = 1};
    for (int64_t group = 0; group < d->group; group++) {
        g.a = (struct cm_matrix){scratch + d->weights, group * rows * lines, lines, 1};
        g.b = (struct cm_matrix){scratch + d->columns, group * lines * d->places, d->places, 1};
        g.c_first = group * rows * d->places;
        cm_gemm(&g, scratch);
    }
    for (int64_t c = 0; c < d->results; c++) {
        const int64_t at = c * d->places;
        const double shift = bias ? cm_tensor_real(bias, c) : 0;
        const struct cm_line line = {d->wide, scratch + d->sums, at};
        cm_line_affine(line, line, d->places, 0, 1, shift);
        cm_line_save(cm_line_at(call->out[0], image * d->results * d->places + at), 1, d->places,
                     d->wide, scratch + d->sums + (size_t)at * cm_dtype_size(d->wide));
    }
}

static enum cm_status deform_run(struct cm_call *call)
{
    const struct deform *d = call->state;
    const int64_t pixels = d->channels * d->area;
    char *scratch = call->scratch;
    if (cm_tensor_count(call->out[0]) == 0)
        return CM_OK;
    cm_line_load(cm_line_at(call->in[W], 0), 1, cm_tensor_count(call->in[W]), d->wide,
                 scratch + d->weights);
    for (int64_t image = 0; image < d->images; image++) {
        cm_reals_load(call->in[X]->type, call->in[X]->data, image * pixels, pixels,
                      (double *)(void *)(scratch + d->image));
        for (int64_t group = 0; group < d->offset_group; group++)
            for (int64_t tap = 0; tap < d->taps; tap++)
                read_tap(call, d, image, group, tap);
        multiply(call, d, image);
    }
    return CM_OK;
}

/* ---- as a graph ---- */

struct pieces {
    struct cm_body *b;
    struct cm_arena *arena;
    struct cm_window window;
    int axes;
    enum cm_dtype wide;
    int64_t channels, taps, group, offset_group;
    cm_value places; /* how many, as a list of one */
};

static cm_value join(const struct pieces *p, cm_value a, cm_value b)
{
    return cm_emit_with(p->b, "Concat", CM_ATTRIBUTES(cm_attr_int(p->arena, "axis", 0)), a, b);
}

/* How many elements a list of dimensions stands for, as a list of one. */
static cm_value product(const struct pieces *p, cm_value dims)
{
    return cm_emit(p->b, "ReduceProd", dims);
}

/* Where the windows' taps are along one axis before they are moved: (taps, places). */
static cm_value resting_places(const struct pieces *p, int axis)
{
    const cm_value offset = cm_body_input(p->b, OFFSET);
    const cm_value dims = cm_emit_dims(p->b, offset, 2, p->axes + 2);
    const cm_value count = cm_emit(p->b, "Squeeze", cm_emit_dims(p->b, offset, axis + 2, axis + 3),
                                   cm_emit_int64s(p->b, 0));
    cm_value at = cm_emit(p->b, "Range", cm_build_int64(&p->b->build, 0), count,
                          cm_build_int64(&p->b->build, 1));
    at = cm_emit(p->b, "Mul", at, cm_build_int64(&p->b->build, p->window.stride[axis]));
    at = cm_emit(p->b, "Sub", at, cm_build_int64(&p->b->build, p->window.pad_begin[axis]));
    int64_t behind[MOST_AXES];
    for (int i = 0; i < p->axes - 1 - axis; i++)
        behind[i] = i + 1;
    if (axis < p->axes - 1)
        at = cm_emit(p->b, "Unsqueeze", at,
                     cm_build_int64s(&p->b->build, (size_t)(p->axes - 1 - axis), behind));
    at = cm_emit(p->b, "Reshape", cm_emit(p->b, "Expand", at, dims), cm_emit_int64s(p->b, 1, -1));

    int64_t *steps = CM_NEW_ARRAY(p->arena, int64_t, (size_t)p->taps);
    for (int64_t tap = 0; tap < p->taps; tap++) {
        int64_t index[CM_MAX_RANK];
        unravel(tap, p->axes, p->window.kernel, index);
        steps[tap] = index[axis] * p->window.dilation[axis];
    }
    const cm_value moves =
        cm_emit(p->b, "Unsqueeze", cm_build_int64s(&p->b->build, (size_t)p->taps, steps),
                cm_emit_int64s(p->b, 1));
    return cm_emit_cast(p->b, cm_emit(p->b, "Add", at, moves), p->wide);
}

/* The columns: (N, group, depth * taps, places). */
static cm_value columns(const struct pieces *p)
{
    const cm_value x = cm_body_input(p->b, X), mask = cm_body_input(p->b, MASK);
    const cm_value area = product(p, cm_emit_dims(p->b, x, 2, p->axes + 2));
    const cm_value image = cm_emit_cast(
        p->b,
        cm_emit(p->b, "Reshape", x,
                join(p, cm_emit_int64s(p->b, -1, p->channels / p->offset_group), area)),
        p->wide);
    const cm_value moves =
        cm_emit_cast(p->b,
                     cm_emit(p->b, "Reshape", cm_body_input(p->b, OFFSET),
                             join(p, cm_emit_int64s(p->b, -1, p->taps, p->axes), p->places)),
                     p->wide);
    const cm_value flat = join(p, cm_emit_int64s(p->b, -1),
                               cm_emit(p->b, "Mul", p->places, cm_emit_int64s(p->b, p->taps)));
    cm_value at[MOST_AXES], lengths[MOST_AXES], sizes[MOST_AXES];
    for (int a = 0; a < p->axes; a++) {
        const cm_value move =
            cm_emit_with(p->b, "Gather", CM_ATTRIBUTES(cm_attr_int(p->arena, "axis", 2)), moves,
                         cm_build_int64(&p->b->build, a));
        at[a] = cm_emit(p->b, "Reshape", cm_emit(p->b, "Add", move, resting_places(p, a)), flat);
        sizes[a] =
            cm_emit(p->b, "Squeeze", cm_emit_dims(p->b, x, a + 2, a + 3), cm_emit_int64s(p->b, 0));
        lengths[a] = cm_emit_cast(p->b, sizes[a], p->wide);
    }
    cm_value v = cm_sampler_build(&p->b->build, &sampler, image, p->axes, at, lengths, sizes);
    if (mask) {
        const cm_value factors = cm_emit(p->b, "Reshape", cm_emit_cast(p->b, mask, p->wide), flat);
        v = cm_emit(p->b, "Mul", v, cm_emit(p->b, "Unsqueeze", factors, cm_emit_int64s(p->b, 1)));
    }
    return cm_emit(
        p->b, "Reshape", v,
        join(p, cm_emit_int64s(p->b, -1, p->group, p->channels / p->group * p->taps), p->places));
}

static enum cm_status deform_body(struct cm_body *b)
{
    const cm_value x = cm_body_input(b, X), w = cm_body_input(b, W), bias = cm_body_input(b, BIAS);
    const struct cm_type *type = cm_builder_type(&b->build, w);
    struct pieces p = {.b = b, .arena = cm_builder_arena(&b->build), .taps = 1};
    int64_t kernel[MOST_AXES];
    if (type->rank == CM_RANK_UNKNOWN || type->rank > MOST_AXES + 2)
        return cm_body_decline(b, "the rank of W is not known");
    p.axes = type->rank - 2;
    for (int a = 0; a < p.axes; a++) {
        kernel[a] = type->dims[a + 2].value;
        if (kernel[a] < 1 || !cm_dim_mul(p.taps, kernel[a], &p.taps) || p.taps > 1 << 16)
            return cm_body_decline(b, "the sizes of the kernel are not known");
    }
    if (!cm_dim_known(type->dims[1]))
        return cm_body_decline(b, "the number of channels is not known");
    CM_TRY(cm_window_read(b->node, p.axes, kernel, &p.window, b->build.err));
    p.group = cm_node_int(b->node, "group");
    p.offset_group = cm_node_int(b->node, "offset_group");
    int64_t inputs;
    if (!cm_dim_mul(type->dims[1].value, p.group, &p.channels) ||
        !cm_dim_mul(type->dims[1].value, p.taps, &inputs))
        return cm_body_decline(b, "the number of channels is too large");
    p.wide = type->dtype == CM_DOUBLE ? CM_DOUBLE : CM_FLOAT;
    const cm_value dims = cm_emit_dims(b, cm_body_input(b, OFFSET), 2, p.axes + 2);
    p.places = product(&p, dims);
    const cm_value rows =
        cm_emit(b, "Reshape", cm_emit_cast(b, w, p.wide), cm_emit_int64s(b, p.group, -1, inputs));
    cm_value y = cm_emit(b, "MatMul", rows, columns(&p));
    y = cm_emit(b, "Reshape", y,
                join(&p, join(&p, cm_emit_dims(b, x, 0, 1), cm_emit_int64s(b, -1)), dims));
    if (bias) {
        int64_t behind[MOST_AXES];
        for (int i = 0; i < p.axes; i++)
            behind[i] = i + 1;
        y = cm_emit(b, "Add", y,
                    cm_emit(b, "Unsqueeze", cm_emit_cast(b, bias, p.wide),
                            cm_build_int64s(&b->build, (size_t)p.axes, behind)));
    }
    return cm_body_return(b, 0, cm_emit_cast(b, y, type->dtype));
}

CM_OP(DeformConv, .infer = deform_infer, .prepare = deform_prepare, .run = deform_run,
      .body = deform_body, .layer.weights = CM_OPERAND(1) | CM_OPERAND(3));
