/* The optimizers as plain arithmetic: what a training step becomes in a file for runtimes that do
 * not know them, and what gradients through a step are taken of. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/optim/optimizers.h"

#include "graph/node_formula.h"

/* One tensor's update while it is written. */
struct update {
    struct cm_body *b;
    enum cm_dtype dtype; /* of the tensor; everything else is cast to it */
    cm_value x, slope;   /* the tensor, and its gradient with the norm's part */
    cm_value states[CM_OPTIMIZER_STATES];
    cm_value rate, later; /* R; is T above 0? */
    cm_value count;       /* T as a float */
};

static cm_value number(const struct update *u, double value)
{
    return cm_emit_scalar(u->b, u->dtype, value);
}

static double attribute(const struct update *u, const char *name)
{
    return (double)cm_node_float(u->b->node, name);
}

/* x * factor, and x itself when the factor is 1. */
static cm_value times(const struct update *u, cm_value x, double factor)
{
    return factor == 1 ? x : cm_emit(u->b, "Mul", x, number(u, factor));
}

static cm_value mean_of(const struct update *u, cm_value old, cm_value now, double keep)
{
    return cm_emit(u->b, "Add", times(u, old, keep), times(u, now, 1 - keep));
}

/* x - rate * step / (sqrt(spread) + epsilon) */
static cm_value step_by(const struct update *u, cm_value rate, cm_value step, cm_value spread)
{
    const cm_value root = cm_emit(u->b, "Sqrt", spread);
    const cm_value size = cm_emit(u->b, "Add", root, number(u, attribute(u, "epsilon")));
    const cm_value far = cm_emit(u->b, "Div", cm_emit(u->b, "Mul", rate, step), size);
    return cm_emit(u->b, "Sub", u->x, far);
}

static void adagrad(struct update *u)
{
    const cm_value slowed =
        cm_emit(u->b, "Add", times(u, u->count, attribute(u, "decay_factor")), number(u, 1));
    const cm_value rate = cm_emit(u->b, "Div", u->rate, slowed);
    u->states[0] = cm_emit(u->b, "Add", u->states[0], cm_emit(u->b, "Mul", u->slope, u->slope));
    u->x = step_by(u, rate, u->slope, u->states[0]);
}

static void momentum(struct update *u)
{
    const double alpha = attribute(u, "alpha");
    const cm_value share =
        cm_emit(u->b, "Where", u->later, number(u, attribute(u, "beta")), number(u, 1));
    const cm_value v =
        cm_emit(u->b, "Add", times(u, u->states[0], alpha), cm_emit(u->b, "Mul", share, u->slope));
    const bool nesterov = cm_str_is(cm_node_str(u->b->node, "mode"), "nesterov");
    const cm_value step = nesterov ? cm_emit(u->b, "Add", u->slope, times(u, v, alpha)) : v;
    u->states[0] = v;
    u->x = cm_emit(u->b, "Sub", u->x, cm_emit(u->b, "Mul", u->rate, step));
}

/* 1 - base^T, or 1 for T = 0, so that nothing is divided by zero. */
static cm_value correction(const struct update *u, double base)
{
    const cm_value one = number(u, 1);
    const cm_value power = cm_emit(u->b, "Pow", number(u, base), u->count);
    return cm_emit(u->b, "Where", u->later, cm_emit(u->b, "Sub", one, power), one);
}

static void adam(struct update *u)
{
    const double alpha = attribute(u, "alpha"), beta = attribute(u, "beta");
    const cm_value square = cm_emit(u->b, "Mul", u->slope, u->slope);
    const cm_value lift = cm_emit(u->b, "Sqrt", correction(u, beta));
    const cm_value rate =
        cm_emit(u->b, "Div", cm_emit(u->b, "Mul", u->rate, lift), correction(u, alpha));
    u->states[0] = mean_of(u, u->states[0], u->slope, alpha);
    u->states[1] = mean_of(u, u->states[1], square, beta);
    u->x = times(u, step_by(u, rate, u->states[0], u->states[1]),
                 1 - attribute(u, "norm_coefficient_post"));
}

typedef void emit_fn(struct update *u);
static emit_fn *const emits[] = {
    [CM_ADAGRAD] = adagrad, [CM_MOMENTUM] = momentum, [CM_ADAM] = adam};

/* Tensor i of n. */
static enum cm_status update_tensor(struct cm_body *b, const struct cm_optimizer *what, int i,
                                    int n, cm_value rate, cm_value count, cm_value later)
{
    const cm_value x = cm_body_input(b, 2 + i);
    struct update u = {.b = b, .x = x, .later = later};
    CM_TRY(b->build.status);
    u.dtype = cm_builder_type(&b->build, x)->dtype;
    u.rate = cm_emit_cast(b, rate, u.dtype);
    u.count = cm_emit_cast(b, count, u.dtype);
    u.slope = cm_emit_cast(b, cm_body_input(b, 2 + n + i), u.dtype);
    const double norm = attribute(&u, "norm_coefficient");
    if (norm != 0)
        u.slope = cm_emit(b, "Add", times(&u, x, norm), u.slope);
    for (int s = 0; s < what->n_states; s++)
        u.states[s] = cm_emit_cast(b, cm_body_input(b, 2 + (2 + s) * n + i), u.dtype);
    emits[what->kind](&u);
    CM_TRY(cm_body_return(b, i, u.x));
    for (int s = 0; s < what->n_states; s++) {
        const struct cm_type *type =
            cm_builder_type(&b->build, cm_body_input(b, 2 + (2 + s) * n + i));
        CM_TRY(cm_body_return(b, (1 + s) * n + i, cm_emit_cast(b, u.states[s], type->dtype)));
    }
    return CM_OK;
}

enum cm_status cm_optimizer_body(struct cm_body *b)
{
    const struct cm_optimizer *what = b->node->op->arg;
    const int n = (b->node->n_inputs - 2) / (2 + what->n_states);
    /* Either may be a tensor of one element, which must not lend its axes to a scalar. */
    const cm_value rate = cm_emit(b, "Squeeze", cm_body_input(b, 0));
    const cm_value count = cm_emit(b, "Squeeze", cm_body_input(b, 1));
    const cm_value later = cm_emit(b, "Greater", count, cm_build_int64(&b->build, 0));
    for (int i = 0; i < n; i++)
        CM_TRY(update_tensor(b, what, i, n, rate, count, later));
    return b->build.status;
}
