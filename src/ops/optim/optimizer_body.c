/* The optimizers as plain arithmetic: what a training step becomes in a file for runtimes that do
 * not know them, and what gradients through a step are taken of. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/optim/optimizers.h"

#include "graph/node_formula.h"

/* One tensor's update: from x, its gradient d, states s and v, the rate R, the count T, and later,
 * is T above 0? All are cast to the type of x before. step: x - rate * d / (sqrt(v) + epsilon). */
#define UPDATE                                                                                     \
    "x, d, s, v, rate, count, later: times(t, by) = by == 1 ? t : t * by;"                         \
    "d = norm_coefficient ? times(x, norm_coefficient) + d : d;"                                   \
    "step(rate, d, v) = { size = Sqrt(v) + epsilon; x - rate * d / size };"

/* unbiased(base): 1 - base^T, or 1 for T = 0, so that nothing is divided by zero. */
static const char *const updates[] = {
    [CM_ADAGRAD] = UPDATE "slow = rate / (times(count, decay_factor) + 1); s = s + d * d;"
                          "y = step(slow, d, s) -> y, s, v",
    [CM_MOMENTUM] = UPDATE "share = Where(later, like(x, beta), like(x, 1));"
                           "s = times(s, alpha) + share * d;"
                           "d = mode == 'nesterov' ? d + times(s, alpha) : s;"
                           "y = x - rate * d -> y, s, v",
    [CM_ADAM] = UPDATE "unbiased(base) = { one = like(x, 1); power = Pow(like(x, base), count);"
                       "  Where(later, one - power, one) };"
                       "mean(old, new, keep) = times(old, keep) + times(new, 1 - keep);"
                       "square = d * d; rate = rate * Sqrt(unbiased(beta)) / unbiased(alpha);"
                       "s = mean(s, d, alpha); v = mean(v, square, beta);"
                       "y = times(step(rate, s, v), 1 - norm_coefficient_post) -> y, s, v",
};

/* Tensor i of n. */
static enum cm_status update_tensor(struct cm_body *b, const struct cm_optimizer *what, int i,
                                    int n, cm_value rate, cm_value count, cm_value later)
{
    const cm_value x = cm_body_input(b, 2 + i);
    cm_value states[CM_OPTIMIZER_STATES] = {0}, results[1 + CM_OPTIMIZER_STATES];
    CM_TRY(b->build.status);
    const enum cm_dtype dtype = cm_builder_type(&b->build, x)->dtype;
    rate = cm_emit_cast(b, rate, dtype);
    count = cm_emit_cast(b, count, dtype);
    const cm_value slope = cm_emit_cast(b, cm_body_input(b, 2 + n + i), dtype);
    for (int s = 0; s < what->n_states; s++)
        states[s] = cm_emit_cast(b, cm_body_input(b, 2 + (2 + s) * n + i), dtype);
    cm_emit_formulas(b, results, updates[what->kind], x, slope, states[0], states[1], rate, count,
                     later);
    CM_TRY(cm_body_return(b, i, results[0]));
    for (int s = 0; s < what->n_states; s++) {
        const struct cm_type *type =
            cm_builder_type(&b->build, cm_body_input(b, 2 + (2 + s) * n + i));
        CM_TRY(cm_body_return(b, (1 + s) * n + i, cm_emit_cast(b, results[1 + s], type->dtype)));
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
