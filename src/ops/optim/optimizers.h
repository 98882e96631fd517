/* What the kernels and the function bodies of the optimizers share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_OPTIM_OPTIMIZERS_H
#define CM_OPS_OPTIM_OPTIMIZERS_H

#include "graph/op.h"

enum { CM_OPTIMIZER_STATES = 2 }; /* the most states an optimizer keeps per tensor */

enum cm_optimizer_kind { CM_ADAGRAD, CM_MOMENTUM, CM_ADAM };

struct cm_rates;

/* Updates n elements in place: x and the states; g is the gradient. */
typedef void cm_optimizer_step_fn(const struct cm_rates *rates, int64_t n, double *x,
                                  const double *g, double *const *states);
/* The rate for update count t; may also change what else depends on it. */
typedef double cm_optimizer_rate_fn(struct cm_rates *rates, double r, int64_t t);

struct cm_optimizer {
    enum cm_optimizer_kind kind;
    int n_states;
    cm_optimizer_rate_fn *rate;
    cm_optimizer_step_fn *step;
};

cm_body_fn cm_optimizer_body;

#endif
