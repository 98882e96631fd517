/* CausalConvWithState: a convolution of each channel with its own kernel that looks back only, into
 * what came before the input too. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "graph/node_formula.h"
#include "graph/op.h"
#include "tensor/line.h"

#include <math.h>

enum { X, W, BIAS, PAST };

/* 0: none, 1: x * sigmoid(x), below 0: not known. */
static int activation(const struct cm_node *node)
{
    const struct cm_str name = cm_node_str(node, "activation");
    return cm_str_is(name, "none")                               ? 0
           : cm_str_is(name, "silu") || cm_str_is(name, "swish") ? 1
                                                                 : -1;
}

static enum cm_status causal_infer(struct cm_infer *in)
{
    static const int ranks[] = {3, 3, 1, 3};
    const struct cm_type *x = cm_infer_type(in, X), *w = cm_infer_type(in, W);
    const struct cm_type *bias = cm_infer_type(in, BIAS), *past = cm_infer_type(in, PAST);
    struct cm_dim channels = CM_DIM_ANY, batch = CM_DIM_ANY, before = CM_DIM_ANY, one;
    bool fit = true;
    if (activation(in->node) < 0)
        return cm_infer_fail(in, "attribute 'activation' is '%.*s', which ONNX does not define",
                             CM_STR_FMT(cm_node_str(in->node, "activation")));
    for (int i = 0; i < 4; i++) {
        const struct cm_type *p = cm_infer_type(in, i);
        if (p && p->rank != CM_RANK_UNKNOWN && p->rank != ranks[i])
            return cm_infer_fail(in, "input %d has rank %d, needs %d", i, p->rank, ranks[i]);
    }
    if (x->rank == 3) {
        batch = x->dims[0];
        channels = x->dims[1];
    }
    if (w->rank == 3) {
        fit = cm_dim_unify(channels, w->dims[0], &channels) &&
              cm_dim_unify(w->dims[1], CM_DIM(1), &one);
        if (w->dims[2].value == 0)
            return cm_infer_fail(in, "its kernel is empty");
        if (cm_dim_known(w->dims[2]))
            before = CM_DIM(w->dims[2].value - 1);
    }
    if (bias && bias->rank == 1)
        fit = fit && cm_dim_unify(channels, bias->dims[0], &channels);
    if (past && past->rank == 3)
        fit = fit && cm_dim_unify(channels, past->dims[1], &channels) &&
              cm_dim_unify(batch, past->dims[0], &batch) &&
              cm_dim_unify(before, past->dims[2], &before);
    if (!fit)
        return cm_infer_fail(in, "the shapes of its operands do not match");
    const struct cm_dim length = x->rank == 3 ? x->dims[2] : CM_DIM_ANY;
    const struct cm_dim y[3] = {batch, channels, length}, state[3] = {batch, channels, before};
    CM_TRY(cm_infer_set_tensor(in, 0, x->dtype, 3, y));
    return cm_infer_set_tensor(in, 1, x->dtype, 3, state);
}

static enum cm_status causal_prepare(struct cm_call *call)
{
    const int64_t length = call->in[X]->shape.dims[2], taps = call->in[W]->shape.dims[2];
    int64_t count;
    size_t bytes;
    if (!cm_dim_add(length, taps, &count) || !cm_dim_mul(count, 2, &count) ||
        !cm_dtype_bytes(CM_FLOAT, count, &bytes))
        return cm_call_fail(call, CM_LIMIT, "its input is too long");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

/* One channel of one sample: number `row` of them all. */
static void run_row(const struct cm_call *call, int64_t row, bool swish)
{
    const int64_t length = call->in[X]->shape.dims[2], taps = call->in[W]->shape.dims[2];
    const int64_t before = taps - 1, channel = row % call->in[X]->shape.dims[1];
    const struct cm_tensor *bias = call->n_in > BIAS ? call->in[BIAS] : NULL;
    const struct cm_tensor *past = call->n_in > PAST ? call->in[PAST] : NULL;
    float *line = call->scratch, *w = line + before + length, *y = w + taps;
    for (int64_t i = 0; i < before; i++)
        line[i] = 0;
    if (past)
        cm_line_load(cm_line_at(past, row * before), 1, before, CM_FLOAT, line);
    cm_line_load(cm_line_at(call->in[X], row * length), 1, length, CM_FLOAT, line + before);
    cm_line_load(cm_line_at(call->in[W], channel * taps), 1, taps, CM_FLOAT, w);
    const float shift = bias ? (float)cm_tensor_real(bias, channel) : 0;
    for (int64_t i = 0; i < length; i++)
        y[i] = shift;
    for (int64_t k = 0; k < taps; k++)
        for (int64_t i = 0; i < length; i++)
            y[i] += w[k] * line[i + k];
    for (int64_t i = 0; swish && i < length; i++)
        y[i] /= 1 + expf(-y[i]);
    if (call->out[0])
        cm_line_save(cm_line_at(call->out[0], row * length), 1, length, CM_FLOAT, y);
    if (call->n_out > 1 && call->out[1])
        cm_line_save(cm_line_at(call->out[1], row * before), 1, before, CM_FLOAT, line + length);
}

static enum cm_status causal_run(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[X]->shape;
    const bool swish = activation(call->node) == 1;
    for (int64_t row = 0; row < x->dims[0] * x->dims[1]; row++)
        run_row(call, row, swish);
    return CM_OK;
}

static enum cm_status causal_body(struct cm_body *b)
{
    const struct cm_type *w = cm_builder_type(&b->build, cm_body_input(b, W));
    if (w->rank != 3 || !cm_dim_known(w->dims[0]) || !cm_dim_known(w->dims[2]))
        return cm_body_decline(b, "the sizes of its kernels are not known");
    return cm_body_formula(
        b, "before = %lld; whole = %s; y = Conv<group=%lld>(whole, weight, bias); output = %s; %s",
        (long long)w->dims[2].value - 1,
        cm_body_input(b, PAST) ? "Concat<axis=2>(past_state, input)"
                               : "Pad(input, [0, 0, before, 0, 0, 0])",
        (long long)w->dims[0].value, activation(b->node) == 1 ? "y * Sigmoid(y)" : "y",
        cm_body_wants(b, 1) ? "length = Shape<start=2>(input); end = Shape<start=2>(whole);"
                              "present_state = Slice(whole, length, end, [2])"
                            : "");
}

CM_OP(CausalConvWithState, .infer = causal_infer, .prepare = causal_prepare, .run = causal_run,
      .body = causal_body);
