/* RandomNormal, RandomUniform, and the forms that take their shape from a tensor. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/random/draws.h"

/* The distribution of a member of the family, by its attributes. */
typedef struct cm_draws distribution_fn(const struct cm_node *node);

struct generator {
    distribution_fn *distribution;
};

static struct cm_draws normal(const struct cm_node *node)
{
    return (struct cm_draws){cm_random_normal, (double)cm_node_float(node, "scale"),
                             (double)cm_node_float(node, "mean")};
}

static struct cm_draws uniform(const struct cm_node *node)
{
    const double low = (double)cm_node_float(node, "low");
    return (struct cm_draws){cm_random_uniform, (double)cm_node_float(node, "high") - low, low};
}

static const struct generator of_normal = {normal}, of_uniform = {uniform};

static enum cm_status generator_infer(struct cm_infer *in)
{
    const struct cm_int64s shape = cm_node_ints(in->node, "shape");
    struct cm_dim dims[CM_MAX_RANK];
    enum cm_dtype dtype;
    CM_TRY(cm_draws_dtype(in, CM_FLOAT, &dtype));
    if (shape.count > CM_MAX_RANK)
        return cm_infer_fail(in, "shape has %zu entries, the limit is %d", shape.count,
                             CM_MAX_RANK);
    for (size_t i = 0; i < shape.count; i++) {
        if (shape.items[i] < 0)
            return cm_infer_fail(in, "attribute 'shape' contains %lld, must not be negative",
                                 (long long)shape.items[i]);
        dims[i] = CM_DIM(shape.items[i]);
    }
    return cm_infer_set_tensor(in, 0, dtype, (int)shape.count, dims);
}

static enum cm_status generator_like_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    enum cm_dtype dtype;
    CM_TRY(cm_draws_dtype(in, x->dtype, &dtype));
    return cm_infer_set_tensor(in, 0, dtype, x->rank, x->dims);
}

static enum cm_status generator_run(struct cm_call *call)
{
    const struct generator *generator = call->op->arg;
    struct cm_tensor *y = call->out[0];
    const struct cm_draws draws = generator->distribution(call->node);
    struct cm_random *random = cm_call_random(call);
    for (int64_t i = 0; i < cm_tensor_count(y); i++)
        cm_tensor_set_real(y, i, cm_draws_next(&draws, random, y->type));
    return CM_OK;
}

#define GENERATOR(rule, row)                                                                       \
    .infer = (rule), .run = generator_run, .grad = cm_grad_none, .effects = CM_RANDOM, .arg = &(row)

CM_OP(RandomNormal, GENERATOR(generator_infer, of_normal));
CM_OP(RandomNormalLike, GENERATOR(generator_like_infer, of_normal));
CM_OP(RandomUniform, GENERATOR(generator_infer, of_uniform));
CM_OP(RandomUniformLike, GENERATOR(generator_like_infer, of_uniform));
