/* STFT: Fourier transforms of windows that slide over a signal. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "graph/require.h"
#include "ops/signal/fourier.h"
#include "tensor/line.h"

/* The signal is (batch, length, 1 or 2). Exporters also write a real one without its last axis,
 * which is not ONNX's form but can mean only one thing. */
enum { SIGNAL, STEP, WINDOW, LENGTH };

static bool has_rows(const struct cm_type *signal)
{
    return signal->rank == 2 || signal->rank == 3;
}

/* One known number; false when it is not known yet. */
static bool known_number(struct cm_infer *in, int i, int64_t *out)
{
    struct cm_known known;
    if (!cm_infer_type(in, i) || !cm_infer_known(in, i, &known) || known.count != 1 ||
        !known.items[0].is_number)
        return false;
    *out = known.items[0].number;
    return true;
}

/* The length of a frame, below 0 when it is not known. */
static enum cm_status frame_length(struct cm_infer *in, int64_t *out)
{
    const struct cm_type *x = cm_infer_type(in, SIGNAL), *window = cm_infer_type(in, WINDOW);
    *out = -1;
    CM_TRY(cm_infer_rank(in, WINDOW, 1, 1));
    const int64_t wide = window && window->rank == 1 ? window->dims[0].value : -1;
    if (known_number(in, LENGTH, out)) {
        if (*out < 1)
            return cm_infer_fail(in, "frame_length is %lld, must be 1 or more", (long long)*out);
        if (wide >= 0 && wide != *out)
            return cm_infer_fail(in, "frame_length is %lld, the window has %lld", (long long)*out,
                                 (long long)wide);
    } else if (window) {
        *out = wide;
    } else if (!cm_infer_type(in, LENGTH) && has_rows(x)) {
        *out = x->dims[1].value;
    }
    if (*out == 0 || *out > INT64_C(1) << 40)
        return cm_infer_fail(in, "the frames have length %lld, expected 1 or more",
                             (long long)*out);
    return CM_OK;
}

static enum cm_status stft_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, SIGNAL);
    const bool onesided = cm_node_int(in->node, "onesided") != 0;
    struct cm_dim dims[4] = {CM_DIM_ANY, CM_DIM_ANY, CM_DIM_ANY, CM_DIM(2)};
    int64_t length, step;
    if (x->rank != CM_RANK_UNKNOWN && !has_rows(x))
        return cm_infer_fail(in, "the signal has rank %d, needs 2 or 3", x->rank);
    CM_TRY(cm_infer_number(in, STEP));
    CM_TRY(cm_infer_number(in, LENGTH));
    CM_TRY(frame_length(in, &length));
    if (length > 0)
        dims[2] = CM_DIM(onesided ? length / 2 + 1 : length);
    if (has_rows(x))
        dims[0] = x->dims[0];
    if (x->rank == 3) {
        const struct cm_dim lanes = x->dims[2];
        if (cm_dim_known(lanes) && lanes.value != 1 && lanes.value != 2)
            return cm_infer_fail(in, "the last axis has %lld, must have 1 (real) or 2 (complex)",
                                 (long long)lanes.value);
        if (onesided && lanes.value == 2)
            return cm_infer_fail(in, "a complex signal has no one-sided transform");
    }
    if (known_number(in, STEP, &step)) {
        if (step < 1)
            return cm_infer_fail(in, "frame_step is %lld, must be 1 or more", (long long)step);
        if (length > 0 && has_rows(x)) {
            if (cm_dim_known(x->dims[1]) && x->dims[1].value < length)
                return cm_infer_fail(in, "frames of %lld are longer than the signal of %lld",
                                     (long long)length, (long long)x->dims[1].value);
            dims[1] = cm_dim_floor(in->symbols, x->dims[1], step - length, step);
        }
    }
    return cm_infer_set_tensor(in, 0, x->dtype, 4, dims);
}

/* Frames are at most as long as the bins say, twice that when one side is left out. */
static enum cm_status stft_prepare(struct cm_call *call)
{
    const int64_t most = call->out[0]->shape.dims[2] * 2;
    size_t bytes;
    if (!cm_fourier_bytes(most, &bytes))
        return cm_call_fail(call, CM_LIMIT, "its frames are too long");
    cm_call_scratch(call, bytes + (size_t)most * 4 * sizeof(double));
    return CM_OK;
}

static enum cm_status stft_run(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[SIGNAL];
    const struct cm_tensor *window = call->n_in > WINDOW ? call->in[WINDOW] : NULL;
    const struct cm_tensor *given = call->n_in > LENGTH ? call->in[LENGTH] : NULL;
    const struct cm_shape *y = &call->out[0]->shape;
    const int64_t n = given    ? cm_tensor_int(given, 0)
                      : window ? cm_tensor_count(window)
                               : x->shape.dims[1];
    const int64_t lanes = x->shape.rank == 3 ? x->shape.dims[2] : 1;
    const int64_t step = cm_tensor_int(call->in[STEP], 0);
    double *line = call->scratch, *part = line + 2 * n;
    struct cm_fourier f;
    if (cm_tensor_count(call->out[0]) == 0)
        return CM_OK;
    if (window && cm_tensor_count(window) != n)
        return cm_call_fail(call, CM_BAD_ARGUMENT, "frame_length is %lld, the window has %lld",
                            (long long)n, (long long)cm_tensor_count(window));
    cm_fourier_init(&f, n, false, part + n);
    for (int64_t i = 0; i < y->dims[0] * y->dims[1]; i++) {
        const int64_t start = i / y->dims[1] * x->shape.dims[1] + i % y->dims[1] * step;
        for (int64_t k = 0; k < 2 * n; k++)
            line[k] = 0;
        for (int64_t lane = 0; lane < lanes; lane++) {
            cm_line_load(cm_line_at(x, start * lanes + lane), lanes, n, CM_DOUBLE, part);
            for (int64_t k = 0; k < n; k++)
                line[2 * k + lane] = part[k];
        }
        for (int64_t k = 0; window && k < n; k++) {
            const double w = cm_tensor_real(window, k);
            line[2 * k] *= w;
            line[2 * k + 1] *= w;
        }
        cm_fourier_run(&f, line);
        cm_line_save(cm_line_at(call->out[0], i * y->dims[2] * 2), 1, y->dims[2] * 2, CM_DOUBLE,
                     line);
    }
    return CM_OK;
}

/* Frames gathered by index, weighted, then transformed. */
CM_BODY(stft_body,
        "whole(t) = Reshape(int64(t), []); size(t, i) = Gather(Shape(t), int64(i));"
        "x = rank(signal) == 3 ? signal"
        "  : rank(signal) == 2 ? Unsqueeze(signal, [2]) : Reshape(signal, [0, 0, -1]);"
        "zero = int64(0); one = int64(1); step = whole(frame_step);"
        "n = frame_length ? whole(frame_length) : window ? size(window, 0) : size(x, 1);"
        "frames = (size(x, 1) - n) / step + one; starts = Range(zero, frames, one) * step;"
        "within = Range(zero, n, one); at = Unsqueeze(starts, [1]) + within;"
        "cut = Gather<axis=1>(x, at); y = window ? cut * Unsqueeze(window, [1]) : cut;"
        "output = DFT<onesided>(y, , int64(2))")

static void stft_require(struct cm_require *r)
{
    const bool has_length = cm_require_type(r, LENGTH) != NULL;
    if (cm_node_int(r->node, "onesided"))
        cm_require_size(r, SIGNAL, 2, 1, "a complex signal has no one-sided transform");
    cm_require_least(r, STEP, 1, "frame_step is below 1");
    cm_require_least(r, LENGTH, 1, "frame_length is below 1");
    if (!has_length) {
        if (cm_require_type(r, WINDOW))
            cm_require_that(r, WINDOW,
                            cm_emit(r, "LessOrEqual", cm_require_length(r, WINDOW, 0),
                                    cm_require_length(r, SIGNAL, 1)),
                            "its frames are longer than the signal");
        return;
    }
    const cm_value length = cm_emit(r, "Reshape", r->in[LENGTH], cm_emit_int64s(r, 1));
    const cm_value frame = cm_emit_with(
        r, "Cast", CM_ATTRIBUTES(cm_attr_int(cm_builder_arena(&r->build), "to", CM_INT64)), length);
    cm_require_that(r, LENGTH, cm_emit(r, "LessOrEqual", frame, cm_require_length(r, SIGNAL, 1)),
                    "its frames are longer than the signal");
    if (cm_require_type(r, WINDOW))
        cm_require_that(r, WINDOW, cm_emit(r, "Equal", cm_require_length(r, WINDOW, 0), frame),
                        "the window does not have frame_length elements");
}

CM_OP(STFT, .require = stft_require, .infer = stft_infer, .prepare = stft_prepare, .run = stft_run,
      .body = stft_body);
