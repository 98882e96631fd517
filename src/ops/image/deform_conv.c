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
    struct cm_window window;
    int axes;
    enum cm_dtype wide;
    int64_t channels, taps, group, offset_group;
};

/* A formula that knows the numbers of the pieces, and of one axis. */
static const char *formula_of(const struct pieces *p, int axis, const char *names, const char *text)
{
    return cm_str_text(cm_arena_printf(
        cm_builder_arena(&p->b->build),
        "%s: axes = %d; at = %d; stride = %lld; pad = %lld; taps = %lld; inputs = %lld;"
        "depth = %lld; wide(t) = %s(t); list(t, u) = Concat<axis=0>(t, u);"
        "size(t, i) = Squeeze(Shape<start=i, end=i + 1>(t), [0]); %s",
        names, p->axes, axis, (long long)p->window.stride[axis],
        (long long)p->window.pad_begin[axis], (long long)p->taps,
        (long long)(p->channels / p->group * p->taps), (long long)(p->channels / p->offset_group),
        cm_dtype_name(p->wide), text));
}

/* How far each tap is from the first one along an axis. */
static cm_value tap_steps(const struct pieces *p, int axis)
{
    int64_t *steps = CM_NEW_ARRAY(cm_builder_arena(&p->b->build), int64_t, (size_t)p->taps);
    for (int64_t tap = 0; tap < p->taps; tap++) {
        int64_t index[CM_MAX_RANK];
        unravel(tap, p->axes, p->window.kernel, index);
        steps[tap] = index[axis] * p->window.dilation[axis];
    }
    return cm_build_int64s(&p->b->build, (size_t)p->taps, steps);
}

/* The columns: (N, group, depth * taps, places). `rest` is where the windows' taps are along one
 * axis before they are moved: (taps, places). */
static cm_value columns(const struct pieces *p, cm_value count)
{
    struct cm_body *b = p->b;
    const cm_value x = cm_body_input(b, X), offset = cm_body_input(b, OFFSET);
    cm_value v[3], at[MOST_AXES], lengths[MOST_AXES], sizes[MOST_AXES];
    cm_emit_formulas(b, v,
                     formula_of(p, 0, "x, offset, count",
                                "area = ReduceProd(Shape<start=2, end=axes + 2>(x));"
                                "image = wide(Reshape(x, list([-1, depth], area)));"
                                "moves = wide(Reshape(offset, list([-1, taps, axes], count)));"
                                "flat = list([-1], count * [taps]) -> image, moves, flat"),
                     x, offset, count);
    for (int a = 0; a < p->axes; a++) {
        cm_value axis[3];
        cm_emit_formulas(
            b, axis,
            formula_of(p, a, "x, offset, moves, flat, steps",
                       "move = Gather<axis=2>(moves, int64(at));"
                       "dims = Shape<start=2, end=axes + 2>(offset); n = size(offset, at + 2);"
                       "line = Range(int64(0), n, int64(1)) * stride - pad;"
                       "line = at == axes - 1 ? line : Unsqueeze(line, [1 to axes - 1 - at]);"
                       "rest = wide(Reshape(Expand(line, dims), [1, -1]) + Unsqueeze(steps, [1]));"
                       "places = Reshape(move + rest, flat); pixels = size(x, at + 2);"
                       "length = wide(pixels) -> places, pixels, length"),
            x, offset, v[1], v[2], tap_steps(p, a));
        at[a] = axis[0];
        sizes[a] = axis[1];
        lengths[a] = axis[2];
    }
    return cm_emit_formula(
        b,
        formula_of(p, 0, "v, mask, flat, count",
                   "by = mask ? Reshape(wide(mask), flat) : none;"
                   "Reshape(mask ? v * Unsqueeze(by, [1]) : v, list([-1, group, inputs], count))"),
        cm_sampler_build(&b->build, &sampler, v[0], p->axes, at, lengths, sizes),
        cm_body_input(b, MASK), v[2], count);
}

static enum cm_status deform_body(struct cm_body *b)
{
    const cm_value x = cm_body_input(b, X), w = cm_body_input(b, W), bias = cm_body_input(b, BIAS);
    const struct cm_type *type = cm_builder_type(&b->build, w);
    struct pieces p = {.b = b, .taps = 1};
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
    cm_value v[3];
    cm_emit_formulas(
        b, v,
        formula_of(&p, 0, "w, offset",
                   "dims = Shape<start=2, end=axes + 2>(offset); count = ReduceProd(dims);"
                   "rows = Reshape(wide(w), [group, -1, inputs]) -> dims, count, rows"),
        w, cm_body_input(b, OFFSET));
    const cm_value cut = columns(&p, v[1]);
    return cm_body_return(
        b, 0,
        cm_emit_formula(b,
                        formula_of(&p, 0, "x, w, bias, dims, rows, columns",
                                   "shape = list(list(Shape<start=0, end=1>(x), [-1]), dims);"
                                   "y = Reshape(MatMul(rows, columns), shape);"
                                   "cast(bias ? y + Unsqueeze(wide(bias), [1 to axes]) : y, w)"),
                        x, w, bias, v[0], v[2], cut));
}

CM_OP(DeformConv, .infer = deform_infer, .prepare = deform_prepare, .run = deform_run,
      .body = deform_body, .layer.weights = CM_OPERAND(1) | CM_OPERAND(3));
