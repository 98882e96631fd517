/* HannWindow, HammingWindow and BlackmanWindow, sums of cosines; MelWeightMatrix, triangles on the
 * mel scale. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "graph/require.h"
#include "ops/common/reals.h"

#include <math.h>

#define PI 3.14159265358979323846

/* a - b cos(2 pi n / N) + c cos(4 pi n / N) */
struct shape {
    double a, b, c;
};
static const struct shape hann = {0.5, 0.5, 0};
static const struct shape hamming = {25.0 / 46, 21.0 / 46, 0};
static const struct shape blackman = {0.42, 0.5, 0.08};

/* The attribute that says which type is made. */
static enum cm_status made_type(struct cm_infer *in, enum cm_dtype *out)
{
    const int64_t type = cm_node_int(in->node, "output_datatype");
    if (!cm_dtype_is_valid(type) || type == CM_BOOL || !cm_reals_have((enum cm_dtype)type))
        return cm_infer_fail(in, "attribute 'output_datatype' is %lld, which is not a numeric type",
                             (long long)type);
    *out = (enum cm_dtype)type;
    return CM_OK;
}

/* A size given as a scalar. */
static enum cm_status known_size(struct cm_infer *in, int i, struct cm_dim *out)
{
    struct cm_known known;
    *out = CM_DIM_ANY;
    if (!cm_infer_known(in, i, &known) || known.count != 1)
        return CM_OK;
    if (known.items[0].is_number && known.items[0].number < 0)
        return cm_infer_fail(in, "input %d is %lld, must not be negative", i,
                             (long long)known.items[0].number);
    *out = cm_quantity_dim(known.items[0]);
    return CM_OK;
}

static enum cm_status window_infer(struct cm_infer *in)
{
    struct cm_dim size;
    enum cm_dtype type;
    CM_TRY(made_type(in, &type));
    CM_TRY(cm_infer_number(in, 0));
    CM_TRY(known_size(in, 0, &size));
    return cm_infer_set_tensor(in, 0, type, 1, &size);
}

/* Integers are cut off, as a Cast does. */
static void store(struct cm_tensor *y, int64_t at, double v)
{
    const enum cm_dtype_class kind = cm_dtype_info(y->type)->kind;
    if (kind != CM_CLASS_FLOAT)
        v = trunc(v);
    cm_reals_store(y->type, y->data, at, 1, &v);
}

static enum cm_status window_run(struct cm_call *call)
{
    const struct shape *s = call->node->op->arg;
    struct cm_tensor *y = call->out[0];
    const int64_t size = cm_tensor_count(y);
    const double period = (double)(cm_node_int(call->node, "periodic") ? size : size - 1);
    for (int64_t n = 0; n < size; n++) {
        const double angle = 2 * PI * (double)n / period;
        store(y, n, s->a - s->b * cos(angle) + s->c * cos(2 * angle));
    }
    return CM_OK;
}

/* Cos is defined for floats alone in older opsets. */
static enum cm_status window_body(struct cm_body *b)
{
    const struct shape *s = b->node->op->arg;
    return cm_body_formula(
        b,
        "n = Reshape(double(size), []); zero = double(0); one = double(1);"
        "period = periodic ? n : n - one; angle = float(Range(zero, n, one) * %.17g / period);"
        "c = %.17g; y = %.17g - Cos(angle) * %.17g; output = %s(c ? y + Cos(angle * 2) * c : y)",
        2 * PI, s->c, s->a, s->b,
        cm_dtype_name((enum cm_dtype)cm_node_int(b->node, "output_datatype")));
}

static void window_require(struct cm_require *r)
{
    cm_require_least(r, 0, 0, "its size is below 0");
}

CM_OP(HannWindow, .infer = window_infer, .run = window_run, .body = window_body,
      .require = window_require, .grad = cm_grad_none, .arg = &hann);
CM_OP(HammingWindow, .infer = window_infer, .run = window_run, .body = window_body,
      .require = window_require, .grad = cm_grad_none, .arg = &hamming);
CM_OP(BlackmanWindow, .infer = window_infer, .run = window_run, .body = window_body,
      .require = window_require, .grad = cm_grad_none, .arg = &blackman);

/* ---- MelWeightMatrix ---- */

enum { BINS, LENGTH, RATE, LOWER, UPPER };

static enum cm_status mel_infer(struct cm_infer *in)
{
    struct cm_dim dims[2], length;
    enum cm_dtype type;
    CM_TRY(made_type(in, &type));
    for (int i = 0; i < in->n_in; i++)
        CM_TRY(cm_infer_number(in, i));
    CM_TRY(known_size(in, BINS, &dims[1]));
    CM_TRY(known_size(in, LENGTH, &length));
    dims[0] = cm_dim_floor(in->symbols, length, 2, 2);
    return cm_infer_set_tensor(in, 0, type, 2, dims);
}

static double to_mel(double hertz)
{
    return 2595 * log10(1 + hertz / 700);
}

/* The row of the spectrum where edge i of the triangles is. */
static double edge(const struct cm_call *call, int64_t i)
{
    const double low = to_mel(cm_tensor_real(call->in[LOWER], 0));
    const double high = to_mel(cm_tensor_real(call->in[UPPER], 0));
    const double edges = (double)(call->out[0]->shape.dims[1] + 2);
    const double hertz = 700 * (pow(10, ((double)i * (high - low) / edges + low) / 2595) - 1);
    return floor((double)(cm_tensor_int(call->in[LENGTH], 0) + 1) * hertz /
                 (double)cm_tensor_int(call->in[RATE], 0));
}

static enum cm_status mel_run(struct cm_call *call)
{
    struct cm_tensor *y = call->out[0];
    const int64_t rows = y->shape.dims[0], bins = y->shape.dims[1];
    for (int64_t i = 0; i < rows * bins; i++)
        store(y, i, 0);
    for (int64_t i = 0; i < bins; i++) {
        const double edges[3] = {edge(call, i), edge(call, i + 1), edge(call, i + 2)};
        int64_t at[3];
        for (int k = 0; k < 3; k++) {
            if (!(edges[k] >= 0 && edges[k] <= (double)rows))
                return cm_call_fail(call, CM_BAD_ARGUMENT,
                                    "band %lld is outside the spectrum of %lld rows", (long long)i,
                                    (long long)rows);
            at[k] = (int64_t)edges[k];
        }
        if (at[0] > at[1] || at[1] >= rows)
            return cm_call_fail(call, CM_BAD_ARGUMENT,
                                "band %lld is outside the spectrum of %lld rows", (long long)i,
                                (long long)rows);
        for (int64_t j = at[0]; j <= at[1]; j++)
            store(y, j * bins + i,
                  at[0] == at[1] ? 1 : (double)(j - at[0]) / (double)(at[1] - at[0]));
        for (int64_t j = at[1]; j < at[2]; j++)
            store(y, j * bins + i, (double)(at[2] - j) / (double)(at[2] - at[1]));
    }
    return CM_OK;
}

CM_OP(MelWeightMatrix, .infer = mel_infer, .run = mel_run, .grad = cm_grad_none);
