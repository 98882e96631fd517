/* LayerNormalization and RMSNormalization: the trailing axes of each row normalized, then scaled
 * element by element. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "graph/require.h"
#include "ops/norm/norm_grad.h"
#include "tensor/line.h"

#include "base/number.h"
#include "base/parallel.h"

#include <math.h>

/* What the two differ in. */
struct kind {
    bool centred; /* takes the mean off */
};

static bool centred(const struct cm_node *node)
{
    return ((const struct kind *)node->op->arg)->centred;
}

/* Scale and bias broadcast to X, never the other way round. */
static enum cm_status check_operand(struct cm_infer *in, int i)
{
    const struct cm_type *x = cm_infer_type(in, 0), *p = cm_infer_type(in, i);
    if (!p || p->rank == CM_RANK_UNKNOWN)
        return CM_OK;
    if (p->rank > x->rank)
        return cm_infer_fail(in, "input %d has rank %d, more than the %d of input 0", i, p->rank,
                             x->rank);
    for (int d = 0; d < p->rank; d++) {
        const struct cm_dim have = p->dims[d], need = x->dims[x->rank - p->rank + d];
        if (cm_dim_known(have) && cm_dim_known(need) && have.value != 1 && have.value != need.value)
            return cm_infer_fail(in, "input %d has %lld where input 0 has %lld", i,
                                 (long long)have.value, (long long)need.value);
    }
    return CM_OK;
}

static enum cm_status layer_norm_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    const int64_t stash = cm_node_int(in->node, "stash_type");
    const enum cm_dtype result = centred(in->node) ? x->dtype : cm_infer_type(in, 1)->dtype;
    struct cm_dim dims[CM_MAX_RANK];
    int axis;
    if (stash != CM_FLOAT && stash != CM_BFLOAT16 && stash != CM_DOUBLE && stash != CM_FLOAT16)
        return cm_infer_fail(in, "attribute 'stash_type' is %lld, which is not a float type",
                             (long long)stash);
    if (x->rank == CM_RANK_UNKNOWN) {
        CM_TRY(cm_infer_set_tensor(in, 0, result, CM_RANK_UNKNOWN, NULL));
        CM_TRY(cm_infer_set_tensor(in, 1, (enum cm_dtype)stash, CM_RANK_UNKNOWN, NULL));
        return cm_infer_set_tensor(in, 2, (enum cm_dtype)stash, CM_RANK_UNKNOWN, NULL);
    }
    CM_TRY(cm_infer_axis(in, cm_node_int(in->node, "axis"), x->rank, false, &axis));
    CM_TRY(check_operand(in, 1));
    CM_TRY(check_operand(in, 2));
    for (int i = 0; i < x->rank; i++)
        dims[i] = i < axis ? x->dims[i] : CM_DIM(1);
    CM_TRY(cm_infer_set_tensor(in, 0, result, x->rank, x->dims));
    CM_TRY(cm_infer_set_tensor(in, 1, (enum cm_dtype)stash, x->rank, dims));
    return cm_infer_set_tensor(in, 2, (enum cm_dtype)stash, x->rank, dims);
}

/* How scale or bias is laid over X. */
struct spread {
    int64_t strides[CM_MAX_RANK];
    bool varies; /* from row to row */
};

struct layers {
    int axis;
    int64_t rows, size;
    double epsilon;
    struct spread spread[2]; /* of inputs 1 and 2 */
};

static enum cm_status layer_norm_prepare(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[0]->shape;
    struct layers *layers = cm_call_state(call, sizeof *layers);
    size_t bytes;
    if (!cm_axis_fix(cm_node_int(call->node, "axis"), x->rank, &layers->axis))
        return cm_call_fail(call, CM_BAD_MODEL, "its axis is out of range for rank %d", x->rank);
    layers->rows = cm_shape_span(x, 0, layers->axis);
    layers->size = cm_shape_span(x, layers->axis, x->rank);
    layers->epsilon = (double)cm_node_float(call->node, "epsilon");
    for (int i = 0; i < 2 && i + 1 < call->n_in; i++) {
        if (!call->in[i + 1])
            continue;
        cm_broadcast_strides(&call->in[i + 1]->shape, x, layers->spread[i].strides);
        for (int d = 0; d < layers->axis; d++)
            layers->spread[i].varies =
                layers->spread[i].varies || layers->spread[i].strides[d] != 0;
    }
    if (!cm_size_mul((size_t)layers->size, 2 * sizeof(double), &bytes))
        return cm_call_fail(call, CM_LIMIT, "its axes are too long");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

/* The part of p that lies over one row of X. */
static void fetch_row(const struct layers *layers, const struct cm_shape *x, int which,
                      const struct cm_tensor *p, int64_t row, double *to)
{
    const int64_t *strides = layers->spread[which].strides;
    const int last = x->rank - 1;
    int64_t index[CM_MAX_RANK] = {0}, at = 0, rest = row;
    for (int d = layers->axis - 1; d >= 0; d--) {
        at += rest % x->dims[d] * strides[d];
        rest /= x->dims[d];
    }
    for (int64_t done = 0; done < layers->size; done += x->dims[last]) {
        if (strides[last] != 0) {
            cm_line_load(cm_line_at(p, at), strides[last], x->dims[last], CM_DOUBLE, to + done);
        } else {
            const double value = cm_tensor_real(p, at);
            for (int64_t i = 0; i < x->dims[last]; i++)
                to[done + i] = value;
        }
        for (int d = last - 1; d >= layers->axis; d--) {
            at += strides[d];
            if (++index[d] < x->dims[d])
                break;
            at -= strides[d] * x->dims[d];
            index[d] = 0;
        }
    }
}

static void store_statistic(const struct cm_call *call, int o, int64_t row, double value)
{
    if (o < call->n_out && call->out[o])
        cm_line_store(cm_line_at(call->out[o], row), value);
}

static void normalize_rows(void *arg, int64_t begin, int64_t end)
{
    const struct cm_call *call = arg;
    const struct layers *layers = call->state;
    const struct cm_tensor *x = call->in[0];
    const bool takes_mean = centred(call->node), has_bias = call->n_in > 2 && call->in[2];
    const double size = (double)layers->size;
    double *operands[2] = {call->scratch, (double *)call->scratch + layers->size};
    for (int64_t row = begin; row < end; row++) {
        const struct cm_line line = cm_line_at(x, row * layers->size);
        const double mean = takes_mean ? cm_line_sum(line, layers->size) / size : 0;
        const double variance = cm_line_square_sum(line, layers->size, mean) / size;
        const double inverse = 1 / sqrt(variance + layers->epsilon);
        for (int i = 0; i < 1 + has_bias; i++)
            if (layers->spread[i].varies)
                fetch_row(layers, &x->shape, i, call->in[i + 1], row, operands[i]);
        cm_line_affine_each(line, cm_line_at(call->out[0], row * layers->size), layers->size, mean,
                            inverse, operands[0], has_bias ? operands[1] : NULL);
        store_statistic(call, 1, row, mean);
        store_statistic(call, 2, row, inverse);
    }
}

enum { GRAIN = 1 << 13 }; /* elements worth a thread */

static enum cm_status layer_norm_run(struct cm_call *call)
{
    const struct layers *layers = call->state;
    const struct cm_tensor *x = call->in[0];
    const bool has_bias = call->n_in > 2 && call->in[2];
    double *operands[2] = {call->scratch, (double *)call->scratch + layers->size};
    bool varies = false;
    if (layers->size == 0) { /* means of nothing are all there is to write */
        for (int o = 1; o < call->n_out; o++)
            for (int64_t row = 0; call->out[o] && row < layers->rows; row++)
                store_statistic(call, o, row, (double)NAN);
        return CM_OK;
    }
    if (layers->rows == 0)
        return CM_OK;
    for (int i = 0; i < 1 + has_bias; i++) {
        varies = varies || layers->spread[i].varies;
        fetch_row(layers, &x->shape, i, call->in[i + 1], 0, operands[i]);
    }
    /* Operands that differ from row to row share one place: then one thread does all. */
    cm_parallel(layers->rows,
                varies                 ? layers->rows
                : layers->size < GRAIN ? GRAIN / layers->size
                                       : 1,
                normalize_rows, call);
    return CM_OK;
}

/* Statistics in the stash type; the scale is applied in the type of the result. */
static enum cm_status layer_norm_body(struct cm_body *b)
{
    const struct cm_type *type = cm_builder_type(&b->build, cm_body_input(b, 0));
    const cm_value scale = cm_body_input(b, 1);
    cm_value results[3];
    int axis;
    if (type->rank == CM_RANK_UNKNOWN)
        return cm_body_decline(b, "the rank of input 0 is not known");
    if (!cm_axis_fix(cm_node_int(b->node, "axis"), type->rank, &axis))
        return cm_body_decline(b, "its axis is out of range");
    const struct cm_str text = cm_arena_printf(
        cm_builder_arena(&b->build),
        "x, scale, bias: list = [%d to %d]; wide = Cast<to=stash_type>(x); %s"
        "variance = ReduceMean(off * off, list); inverse = Reciprocal(Sqrt(variance + epsilon));"
        "scaled = Cast<to=%d>(off * inverse) * scale; y = %s -> y, mean, inverse",
        axis, type->rank - 1,
        centred(b->node) ? "mean = ReduceMean(wide, list); off = wide - mean;"
                         : "mean = wide; off = wide;",
        (int)cm_builder_type(&b->build, scale)->dtype,
        cm_body_input(b, 2) ? "scaled + bias" : "scaled");
    cm_emit_formulas(b, results, cm_str_text(text), cm_body_input(b, 0), scale,
                     cm_body_input(b, 2));
    for (int o = 0; o < 3; o++)
        CM_TRY(cm_body_return(b, o, results[o]));
    return CM_OK;
}

static const struct kind layer = {true}, rms = {false};

static void layer_norm_require(struct cm_require *r)
{
    cm_require_broadcast(r, 1, 0, "the scale does not broadcast to the input");
    cm_require_broadcast(r, 2, 0, "the bias does not broadcast to the input");
}

CM_OP(LayerNormalization, .infer = layer_norm_infer, .prepare = layer_norm_prepare,
      .run = layer_norm_run, .grad = cm_layer_norm_grad, .body = layer_norm_body,
      .require = layer_norm_require, .arg = &layer, .cost.work = cm_work_linear,
      .layer.weights = CM_OPERAND(1) | CM_OPERAND(2), .layer.entry = CM_ENTERS_AFTER_NORM);
CM_OP(RMSNormalization, .infer = layer_norm_infer, .prepare = layer_norm_prepare,
      .run = layer_norm_run, .grad = cm_rms_norm_grad, .body = layer_norm_body,
      .require = layer_norm_require, .arg = &rms, .layer.weights = CM_OPERAND(1));
