/* Bernoulli and Multinomial: outcomes drawn with probabilities that a tensor gives. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/common/reals.h"
#include "ops/random/draws.h"

#include <math.h>

/* ---- Bernoulli ---- */

static enum cm_status bernoulli_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    enum cm_dtype dtype;
    CM_TRY(cm_draws_dtype(in, x->dtype, &dtype));
    return cm_infer_set_tensor(in, 0, dtype, x->rank, x->dims);
}

/* 1 where a number drawn in the type of x is below x: what its body computes. */
static enum cm_status bernoulli_run(struct cm_call *call)
{
    static const struct cm_draws draws = {cm_random_uniform, 1, 0};
    const struct cm_tensor *x = call->in[0];
    struct cm_tensor *y = call->out[0];
    struct cm_random *random = cm_call_random(call);
    for (int64_t i = 0; i < cm_tensor_count(x); i++)
        cm_tensor_set_real(y, i, cm_draws_next(&draws, random, x->type) < cm_tensor_real(x, i));
    return CM_OK;
}

static enum cm_status bernoulli_body(struct cm_body *b)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    const cm_value x = cm_body_input(b, 0);
    const enum cm_dtype like = cm_builder_type(&b->build, x)->dtype;
    const bool given = cm_node_has_attr(b->node, "dtype");
    struct cm_attribute_proto seed[1];
    const size_t n_seeds = cm_node_has_attr(b->node, "seed") ? 1 : 0;
    if (n_seeds)
        seed[0] = cm_attr_float(arena, "seed", cm_node_float(b->node, "seed"));
    const cm_value drawn = cm_build(&b->build, &(struct cm_emission){.op = "RandomUniformLike",
                                                                     CM_INPUTS(x),
                                                                     .attributes = seed,
                                                                     .n_attributes = n_seeds});
    const int64_t to = given ? cm_node_int(b->node, "dtype") : (int64_t)like;
    return cm_body_return(b, 0,
                          cm_emit_with(b, "Cast", CM_ATTRIBUTES(cm_attr_int(arena, "to", to)),
                                       cm_emit(b, "Less", drawn, x)));
}

CM_OP(Bernoulli, .infer = bernoulli_infer, .run = bernoulli_run, .grad = cm_grad_none,
      .body = bernoulli_body, .effects = CM_RANDOM);

/* ---- Multinomial ---- */

static enum cm_status multinomial_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    const int64_t samples = cm_node_int(in->node, "sample_size");
    enum cm_dtype dtype;
    CM_TRY(cm_draws_dtype(in, CM_INT32, &dtype));
    CM_TRY(cm_infer_rank(in, 0, 2, 2));
    if (samples < 0)
        return cm_infer_fail(in, "attribute 'sample_size' is %lld, must not be negative",
                             (long long)samples);
    const struct cm_dim dims[] = {x->rank == 2 ? x->dims[0] : CM_DIM_ANY, CM_DIM(samples)};
    return cm_infer_set_tensor(in, 0, dtype, 2, dims);
}

static enum cm_status multinomial_prepare(struct cm_call *call)
{
    cm_call_scratch(call, (size_t)call->in[0]->shape.dims[1] * sizeof(double));
    return CM_OK;
}

/* Log-probabilities become sums of probabilities up to each outcome, not divided by the total,
 * which is returned. */
static double accumulate(int64_t count, double *p)
{
    double most = -INFINITY, total = 0;
    for (int64_t i = 0; i < count; i++)
        most = p[i] > most ? p[i] : most;
    for (int64_t i = 0; i < count; i++) {
        total += exp(p[i] - most);
        p[i] = total;
    }
    return total;
}

/* The first outcome whose sum is above u. */
static int64_t choose(int64_t count, const double *sums, double u)
{
    int64_t low = 0, high = count - 1;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (sums[middle] > u)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static enum cm_status multinomial_run(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0];
    struct cm_tensor *y = call->out[0];
    struct cm_random *random = cm_call_random(call);
    const int64_t rows = x->shape.dims[0], outcomes = x->shape.dims[1], samples = y->shape.dims[1];
    double *sums = call->scratch;

    for (int64_t r = 0; r < rows && samples > 0; r++) {
        cm_reals_load(x->type, x->data, r * outcomes, outcomes, sums);
        const double total = accumulate(outcomes, sums);
        if (!(total > 0) || !isfinite(total))
            return cm_call_fail(call, CM_BAD_ARGUMENT, "row %lld has no probabilities to draw from",
                                (long long)r);
        for (int64_t s = 0; s < samples; s++) {
            const int64_t outcome = choose(outcomes, sums, cm_random_uniform(random) * total);
            if (y->type == CM_INT64)
                ((int64_t *)y->data)[r * samples + s] = outcome;
            else
                ((int32_t *)y->data)[r * samples + s] = (int32_t)outcome;
        }
    }
    return CM_OK;
}

CM_OP(Multinomial, .infer = multinomial_infer, .prepare = multinomial_prepare,
      .run = multinomial_run, .grad = cm_grad_none, .effects = CM_RANDOM);
