/* DFT: the Fourier transform along one axis; complex numbers are pairs along the last. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "graph/node_formula.h"
#include "ops/signal/fourier.h"
#include "tensor/line.h"

enum { X, LENGTH, AXIS };

static bool flag(const struct cm_node *node, const char *name)
{
    return cm_node_int(node, name) != 0;
}

/* Axes are those before the last. */
static bool fix_axis(int64_t axis, int rank, int *out)
{
    return cm_axis_fix(axis, rank, out) && *out < rank - 1;
}

/* The length of the transform, of an axis with this dimension; below 0: not known. */
static enum cm_status transform_length(struct cm_infer *in, struct cm_dim dim, int64_t *out)
{
    struct cm_known known;
    *out = -1;
    if (cm_infer_type(in, LENGTH)) {
        if (!cm_infer_known(in, LENGTH, &known) || known.count != 1 || !known.items[0].is_number)
            return CM_OK;
        *out = known.items[0].number;
    } else if (cm_dim_known(dim)) {
        const bool folded = flag(in->node, "inverse") && flag(in->node, "onesided");
        if (!folded)
            *out = dim.value;
        else if (!cm_int64_mul(2, dim.value - 1, out))
            *out = INT64_MAX; /* refused below */
    } else {
        return CM_OK;
    }
    if (*out < 1 || *out > INT64_C(1) << 40)
        return cm_infer_fail(in, "the transform has length %lld, expected 1 or more",
                             (long long)*out);
    return CM_OK;
}

static enum cm_status dft_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, X);
    const bool inverse = flag(in->node, "inverse"), onesided = flag(in->node, "onesided");
    struct cm_dim dims[CM_MAX_RANK];
    struct cm_known known;
    int64_t where = -2, n;
    int axis;
    if (x->rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, x->dtype, CM_RANK_UNKNOWN, NULL);
    CM_TRY(cm_infer_rank(in, X, 2, CM_MAX_RANK));
    for (int i = 1; i < in->n_in; i++)
        CM_TRY(cm_infer_number(in, i));
    const struct cm_dim last = x->dims[x->rank - 1];
    if (cm_dim_known(last) && last.value != 1 && last.value != 2)
        return cm_infer_fail(in, "the last axis has %lld, must have 1 (real) or 2 (complex)",
                             (long long)last.value);
    if (onesided && last.value == (inverse ? 1 : 2))
        return cm_infer_fail(in, "a one-sided transform %s",
                             inverse ? "back needs a complex signal" : "needs a real signal");
    cm_type_copy_dims(dims, x);
    dims[x->rank - 1] = CM_DIM(inverse && onesided ? 1 : 2);
    if (cm_infer_type(in, AXIS)) {
        if (!cm_infer_known(in, AXIS, &known) || known.count != 1 || !known.items[0].is_number) {
            for (int i = 0; i < x->rank - 1 && (onesided || cm_infer_type(in, LENGTH)); i++)
                dims[i] = CM_DIM_ANY;
            return cm_infer_set_tensor(in, 0, x->dtype, x->rank, dims);
        }
        where = known.items[0].number;
    }
    if (!fix_axis(where, x->rank, &axis))
        return cm_infer_fail(in, "axis %lld is out of range for a signal of rank %d",
                             (long long)where, x->rank);
    CM_TRY(transform_length(in, x->dims[axis], &n));
    if (n >= 0)
        dims[axis] = CM_DIM(onesided && !inverse ? n / 2 + 1 : n);
    else if (cm_infer_type(in, LENGTH))
        dims[axis] = CM_DIM_ANY;
    else if (onesided)
        dims[axis] = inverse ? CM_DIM_ANY : cm_dim_floor(in->symbols, x->dims[axis], 2, 2);
    return cm_infer_set_tensor(in, 0, x->dtype, x->rank, dims);
}

/* Axis and length may come from data, so scratch is for the longest there could be. */
static enum cm_status dft_prepare(struct cm_call *call)
{
    const struct cm_shape *y = &call->out[0]->shape;
    const bool folded = flag(call->node, "onesided") && !flag(call->node, "inverse");
    int64_t most = 0;
    size_t bytes;
    for (int i = 0; i < y->rank - 1; i++) {
        const int64_t n = folded ? 2 * y->dims[i] : y->dims[i];
        most = n > most ? n : most;
    }
    if (!cm_fourier_bytes(most, &bytes))
        return cm_call_fail(call, CM_LIMIT, "it is too long");
    cm_call_scratch(call, bytes + (size_t)most * 4 * sizeof(double));
    return CM_OK;
}

/* A line of the input as n complex numbers: cut, or filled up with zeros. */
static void load_line(const struct cm_tensor *x, int64_t at, int64_t step, int64_t have, int64_t n,
                      bool folded, double *part, double *line)
{
    const int64_t lanes = x->shape.dims[x->shape.rank - 1];
    const int64_t whole = folded ? n / 2 + 1 : n, count = have < whole ? have : whole;
    for (int64_t i = 0; i < 2 * n; i++)
        line[i] = 0;
    for (int64_t lane = 0; lane < lanes; lane++) {
        cm_line_load(cm_line_at(x, at + lane), step, count, CM_DOUBLE, part);
        for (int64_t i = 0; i < count; i++)
            line[2 * i + lane] = part[i];
    }
    if (!folded)
        return;
    line[1] = 0; /* a real signal has no imaginary part at zero and in the middle */
    if (n % 2 == 0)
        line[n + 1] = 0;
    for (int64_t i = 1; i < n - i; i++) {
        line[2 * (n - i)] = line[2 * i];
        line[2 * (n - i) + 1] = -line[2 * i + 1];
    }
}

static void store_line(struct cm_tensor *y, int64_t at, int64_t step, int64_t count, double factor,
                       double *part, const double *line)
{
    const int64_t lanes = y->shape.dims[y->shape.rank - 1];
    for (int64_t lane = 0; lane < lanes; lane++) {
        for (int64_t i = 0; i < count; i++)
            part[i] = line[2 * i + lane] * factor;
        cm_line_save(cm_line_at(y, at + lane), step, count, CM_DOUBLE, part);
    }
}

static enum cm_status dft_run(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[X];
    struct cm_tensor *y = call->out[0];
    const bool inverse = flag(call->node, "inverse"), onesided = flag(call->node, "onesided");
    const int rank = x->shape.rank;
    int axis = rank - 2;
    if (cm_tensor_count(y) == 0)
        return CM_OK;
    if (call->n_in > AXIS && call->in[AXIS] &&
        !fix_axis(cm_tensor_int(call->in[AXIS], 0), rank, &axis))
        return cm_call_fail(call, CM_BAD_ARGUMENT, "its axis is out of range for the signal");
    const int64_t have = x->shape.dims[axis], results = y->shape.dims[axis];
    int64_t n = results;
    if (onesided && !inverse)
        n = call->n_in > LENGTH && call->in[LENGTH] ? cm_tensor_int(call->in[LENGTH], 0) : have;
    const int64_t lanes_in = x->shape.dims[rank - 1], lanes_out = y->shape.dims[rank - 1];
    const int64_t inner = cm_shape_span(&x->shape, axis + 1, rank - 1);
    const int64_t outer = cm_shape_span(&x->shape, 0, axis);
    double *line = call->scratch, *part = line + 2 * n;
    struct cm_fourier f;
    cm_fourier_init(&f, n, inverse, part + n);
    for (int64_t i = 0; i < outer * inner; i++) {
        const int64_t o = i / inner, j = i % inner;
        load_line(x, (o * have * inner + j) * lanes_in, inner * lanes_in, have, n,
                  inverse && onesided, part, line);
        cm_fourier_run(&f, line);
        store_line(y, (o * results * inner + j) * lanes_out, inner * lanes_out, results,
                   inverse ? 1 / (double)n : 1, part, line);
    }
    return CM_OK;
}

/* ---- gradient: the transform is linear, its transpose is another one ---- */

/* a: the axis, a list of one, not negative; n: the length, likewise. fit: t with n places along an
 * axis: cut, or filled up with zeros. folding: what counts twice in a folded spectrum, all but the
 * first and, of even lengths, the last. Of a real signal the gradient is the real part. */
#define DFT_SLOPE                                                                                  \
    "x, length, axis, dy, zeros, ones: real = %d; r = rank(x); list(t) = int64(Reshape(t, [1]));"  \
    "size(t, a) = Gather(Shape(t), a); scalar(t) = Squeeze(t, [0]);"                               \
    "a = axis ? Mod(list(axis), [r]) : [r - 2];"                                                   \
    "n = length ? list(length) : size(inverse ? dy : x, a); count = cast(n, x);"                   \
    "fit(t, a, n) = { cut = Slice(t, [0], n, a); missing = n - size(cut, a);"                      \
    "  Pad(cut, ScatterElements(zeros, a + [r], missing)) };"                                      \
    "dft(t, back, half) = DFT<inverse=back, onesided=half>(t, scalar(n), scalar(a));"              \
    "folding(t) = { one = int64(1); zero = int64(0); m = scalar(t);"                               \
    "  k = Range(zero, m / 2 + one, one); lone = Equal(k, Mod(m - k, m));"                         \
    "  v = Where(lone, like(dy, 1), like(dy, 2)); Reshape(v, ScatterElements(ones, a, [-1])) };"   \
    "back(t) = onesided ? dft(t, 0, 1) * folding(n) / count : dft(t, 0, 0) / count;"               \
    "dx = inverse ? back(dy) : dft(onesided ? fit(dy, a, n) : dy, 1, 0) * count;"                  \
    "cut = fit(dx, a, size(x, a)); last = [r - 1];"                                                \
    "real ? fit(cut, last, size(x, last)) : cut"

static enum cm_status dft_grad(struct cm_grad *g)
{
    const cm_value x = cm_grad_input(g, X);
    const struct cm_type *type = cm_builder_type(&g->build, x);
    int64_t list[2 * CM_MAX_RANK] = {0};
    if (type->rank == CM_RANK_UNKNOWN)
        return cm_builder_fail(&g->build, CM_UNSUPPORTED, "the gradient needs to know the rank");
    const cm_value zeros = cm_build_int64s(&g->build, 2 * (size_t)type->rank, list);
    for (int i = 0; i < type->rank; i++)
        list[i] = 1;
    const cm_value ones = flag(g->node, "inverse") && flag(g->node, "onesided")
                              ? cm_build_int64s(&g->build, (size_t)type->rank, list)
                              : 0;
    const struct cm_str text = cm_arena_printf(cm_builder_arena(&g->build), DFT_SLOPE,
                                               type->dims[type->rank - 1].value != 2);
    return cm_grad_set(g, X,
                       cm_emit_formula(g, cm_str_text(text), x, cm_grad_input(g, LENGTH),
                                       cm_grad_input(g, AXIS), cm_grad_incoming(g, 0), zeros,
                                       ones));
}

CM_OP(DFT, .infer = dft_infer, .prepare = dft_prepare, .run = dft_run, .grad = dft_grad);
