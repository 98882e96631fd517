/* LayerNormalization and RMSNormalization: the trailing axes of each row normalized, then scaled
 * element by element. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "graph/require.h"
#include "ops/norm/norm_grad.h"

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

struct layers {
    int64_t rows, size;
    double epsilon;
    int64_t strides[3][CM_MAX_RANK]; /* of operand 1 and 2 along the axes of X */
};

static enum cm_status layer_norm_prepare(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[0]->shape;
    struct layers *layers = cm_call_state(call, sizeof *layers);
    int axis;
    if (!cm_axis_fix(cm_node_int(call->node, "axis"), x->rank, &axis))
        return cm_call_fail(call, CM_BAD_MODEL, "its axis is out of range for rank %d", x->rank);
    layers->rows = cm_shape_span(x, 0, axis);
    layers->size = cm_shape_span(x, axis, x->rank);
    layers->epsilon = (double)cm_node_float(call->node, "epsilon");
    for (int i = 1; i < call->n_in; i++)
        if (call->in[i])
            cm_broadcast_strides(&call->in[i]->shape, x, layers->strides[i]);
    return CM_OK;
}

/* What operand i has for element `element` of X. */
static double operand_over(const struct cm_call *call, int i, int64_t element)
{
    const struct layers *layers = call->state;
    const struct cm_shape *x = &call->in[0]->shape;
    int64_t at = 0;
    for (int d = x->rank - 1; d >= 0; d--) {
        at += element % x->dims[d] * layers->strides[i][d];
        element /= x->dims[d];
    }
    return cm_tensor_real(call->in[i], at);
}

/* y = (x - mean) / sqrt(variance + epsilon) * scale + bias, the mean being 0 where it is not taken
 * off; of no elements mean and variance are NaN. */
static enum cm_status layer_norm_run(struct cm_call *call)
{
    const struct layers *layers = call->state;
    const struct cm_tensor *x = call->in[0];
    const bool takes_mean = centred(call->node), has_bias = call->n_in > 2 && call->in[2];
    const double size = (double)layers->size;
    for (int64_t row = 0; row < layers->rows; row++) {
        const int64_t first = row * layers->size, end = first + layers->size;
        double mean = 0, variance = 0;
        for (int64_t i = first; takes_mean && i < end; i++)
            mean += cm_tensor_real(x, i);
        mean = takes_mean ? mean / size : 0;
        for (int64_t i = first; i < end; i++) {
            const double off = cm_tensor_real(x, i) - mean;
            variance += off * off;
        }
        const double inverse = 1 / sqrt(variance / size + layers->epsilon);
        for (int64_t i = first; i < end; i++) {
            const double y = (cm_tensor_real(x, i) - mean) * inverse * operand_over(call, 1, i);
            cm_tensor_set_real(call->out[0], i, has_bias ? y + operand_over(call, 2, i) : y);
        }
        if (call->n_out > 1 && call->out[1])
            cm_tensor_set_real(call->out[1], row, mean);
        if (call->n_out > 2 && call->out[2])
            cm_tensor_set_real(call->out[2], row, inverse);
    }
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
