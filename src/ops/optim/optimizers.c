/* Adagrad, Adam, Momentum: one step of an optimizer for several tensors at once. Inputs are R (the
 * learning rate), T (the number of updates so far), then all tensors, all gradients and all states,
 * kind by kind; outputs the new tensors and states. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/optim/optimizers.h"

#include "tensor/line.h"

#include <math.h>

enum { CHUNK = 256 };

/* Attributes and what follows from R and T. */
struct cm_rates {
    double rate; /* R, corrected where the operator does so */
    double alpha, beta, epsilon, decay, norm, norm_post;
    bool nesterov;
};

static double adagrad_rate(struct cm_rates *rates, double r, int64_t t)
{
    return r / (1 + (double)t * rates->decay);
}

static void adagrad_step(const struct cm_rates *rates, int64_t n, double *x, const double *g,
                         double *const *states)
{
    double *h = states[0];
    for (int64_t i = 0; i < n; i++) {
        const double slope = rates->norm * x[i] + g[i];
        h[i] += slope * slope;
        x[i] -= rates->rate * slope / (sqrt(h[i]) + rates->epsilon);
    }
}

/* The first update takes the gradient whole. */
static double momentum_rate(struct cm_rates *rates, double r, int64_t t)
{
    if (t <= 0)
        rates->beta = 1;
    return r;
}

static void momentum_step(const struct cm_rates *rates, int64_t n, double *x, const double *g,
                          double *const *states)
{
    double *v = states[0];
    for (int64_t i = 0; i < n; i++) {
        const double slope = rates->norm * x[i] + g[i];
        v[i] = rates->alpha * v[i] + rates->beta * slope;
        x[i] -= rates->rate * (rates->nesterov ? slope + rates->alpha * v[i] : v[i]);
    }
}

/* The correction of both averages' bias sits in the rate; none for T = 0. */
static double adam_rate(struct cm_rates *rates, double r, int64_t t)
{
    if (t <= 0)
        return r;
    return r * sqrt(1 - pow(rates->beta, (double)t)) / (1 - pow(rates->alpha, (double)t));
}

static void adam_step(const struct cm_rates *rates, int64_t n, double *x, const double *g,
                      double *const *states)
{
    double *v = states[0], *h = states[1];
    for (int64_t i = 0; i < n; i++) {
        const double slope = rates->norm * x[i] + g[i];
        v[i] = rates->alpha * v[i] + (1 - rates->alpha) * slope;
        h[i] = rates->beta * h[i] + (1 - rates->beta) * slope * slope;
        x[i] -= rates->rate * v[i] / (sqrt(h[i]) + rates->epsilon);
        x[i] *= 1 - rates->norm_post;
    }
}

static const struct cm_optimizer adagrad = {CM_ADAGRAD, 1, adagrad_rate, adagrad_step};
static const struct cm_optimizer momentum = {CM_MOMENTUM, 1, momentum_rate, momentum_step};
static const struct cm_optimizer adam = {CM_ADAM, 2, adam_rate, adam_step};

/* Where the result o comes from: the tensor itself, or a state. n is the number of tensors. */
static int source_of(int o, int n)
{
    return 2 + (o < n ? o : o + n);
}

/* A scalar, or at least one number. */
static enum cm_status check_single(struct cm_infer *in, int i)
{
    const struct cm_type *type = cm_infer_type(in, i);
    bool single = true;
    for (int d = 0; d < type->rank; d++)
        single = single && (!cm_dim_known(type->dims[d]) || type->dims[d].value == 1);
    return single ? CM_OK : cm_infer_fail(in, "input %d must be a single number", i);
}

static enum cm_status optimizer_infer(struct cm_infer *in)
{
    const struct cm_optimizer *what = in->node->op->arg;
    const int kinds = 2 + what->n_states, n = (in->n_in - 2) / kinds;
    const struct cm_str mode = cm_node_str(in->node, "mode");
    if (in->n_in - 2 != n * kinds || n < 1)
        return cm_infer_fail(in, "it has %d inputs after R and T, not a multiple of %d",
                             in->n_in - 2, kinds);
    if (in->n_out > n * (kinds - 1))
        return cm_infer_fail(in, "it has %d outputs, more than the %d of %d tensors", in->n_out,
                             n * (kinds - 1), n);
    if (mode.size && !cm_str_is(mode, "standard") && !cm_str_is(mode, "nesterov"))
        return cm_infer_fail(in, "attribute 'mode' is '%.*s', expected 'standard' or 'nesterov'",
                             CM_STR_FMT(mode));
    CM_TRY(check_single(in, 0));
    CM_TRY(check_single(in, 1));
    for (int i = 2 + n; i < in->n_in; i++) {
        const struct cm_type *x = cm_infer_type(in, 2 + (i - 2) % n), *other = cm_infer_type(in, i);
        bool same =
            x->rank == CM_RANK_UNKNOWN || other->rank == CM_RANK_UNKNOWN || x->rank == other->rank;
        struct cm_dim both;
        for (int d = 0; same && x->rank == other->rank && d < x->rank; d++)
            same = cm_dim_unify(x->dims[d], other->dims[d], &both);
        if (!same)
            return cm_infer_fail(in, "input %d does not have the shape of its tensor, input %d", i,
                                 2 + (i - 2) % n);
    }
    for (int o = 0; o < in->n_out; o++)
        CM_TRY(cm_infer_set(in, o, cm_infer_type(in, source_of(o, n))));
    return CM_OK;
}

static enum cm_status optimizer_prepare(struct cm_call *call)
{
    struct cm_rates *rates = cm_call_state(call, sizeof *rates);
    const struct cm_node *node = call->node;
    *rates = (struct cm_rates){.alpha = (double)cm_node_float(node, "alpha"),
                               .beta = (double)cm_node_float(node, "beta"),
                               .epsilon = (double)cm_node_float(node, "epsilon"),
                               .decay = (double)cm_node_float(node, "decay_factor"),
                               .norm = (double)cm_node_float(node, "norm_coefficient"),
                               .norm_post = (double)cm_node_float(node, "norm_coefficient_post"),
                               .nesterov = cm_str_is(cm_node_str(node, "mode"), "nesterov")};
    return CM_OK;
}

static void store(const struct cm_call *call, int o, int64_t at, int64_t n, const double *values)
{
    if (o < call->n_out && call->out[o])
        cm_line_save(cm_line_at(call->out[o], at), 1, n, CM_DOUBLE, values);
}

/* Tensor i of n. */
static void update(const struct cm_call *call, const struct cm_rates *rates, int i, int n)
{
    const struct cm_optimizer *what = call->op->arg;
    const int64_t count = cm_tensor_count(call->in[2 + i]);
    double x[CHUNK], g[CHUNK], states[CM_OPTIMIZER_STATES][CHUNK];
    double *const state_lines[CM_OPTIMIZER_STATES] = {states[0], states[1]};
    for (int64_t at = 0; at < count; at += CHUNK) {
        const int64_t here = count - at < CHUNK ? count - at : CHUNK;
        cm_line_load(cm_line_at(call->in[2 + i], at), 1, here, CM_DOUBLE, x);
        cm_line_load(cm_line_at(call->in[2 + n + i], at), 1, here, CM_DOUBLE, g);
        for (int s = 0; s < what->n_states; s++)
            cm_line_load(cm_line_at(call->in[2 + (2 + s) * n + i], at), 1, here, CM_DOUBLE,
                         states[s]);
        what->step(rates, here, x, g, state_lines);
        store(call, i, at, here, x);
        for (int s = 0; s < what->n_states; s++)
            store(call, (1 + s) * n + i, at, here, states[s]);
    }
}

static enum cm_status optimizer_run(struct cm_call *call)
{
    const struct cm_optimizer *what = call->op->arg;
    struct cm_rates rates = *(const struct cm_rates *)call->state;
    const int n = (call->n_in - 2) / (2 + what->n_states);
    rates.rate = what->rate(&rates, cm_tensor_real(call->in[0], 0), cm_tensor_int(call->in[1], 0));
    for (int i = 0; i < n; i++)
        update(call, &rates, i, n);
    return CM_OK;
}

static enum cm_sharing optimizer_share(const struct cm_node *node, int output, int input)
{
    const struct cm_optimizer *what = node->op->arg;
    const int n = (node->n_inputs - 2) / (2 + what->n_states);
    return input == source_of(output, n) ? CM_SHARE_OVERWRITE : CM_SHARE_NOTHING;
}

CM_OP_IN(training, "ai.onnx.preview.training", Adagrad, .infer = optimizer_infer,
         .prepare = optimizer_prepare, .run = optimizer_run, .body = cm_optimizer_body,
         .memory.share = optimizer_share, .arg = &adagrad);
CM_OP_IN(training, "ai.onnx.preview.training", Momentum, .infer = optimizer_infer,
         .prepare = optimizer_prepare, .run = optimizer_run, .body = cm_optimizer_body,
         .memory.share = optimizer_share, .arg = &momentum);
CM_OP_IN(training, "ai.onnx.preview.training", Adam, .infer = optimizer_infer,
         .prepare = optimizer_prepare, .run = optimizer_run, .body = cm_optimizer_body,
         .memory.share = optimizer_share, .arg = &adam);
