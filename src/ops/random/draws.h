/* What the random operators share: the element type that attribute dtype asks for, and drawn
 * numbers. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_RANDOM_DRAWS_H
#define CM_OPS_RANDOM_DRAWS_H

#include "base/random.h"
#include "graph/op.h"

/* The element type of output 0: attribute dtype, or `otherwise` without one. Refuses what the
 * schema does not allow. */
enum cm_status cm_draws_dtype(struct cm_infer *in, enum cm_dtype otherwise,
                              enum cm_dtype *out) CM_MUST_CHECK;

/* A distribution: what is drawn, times scale, plus shift. */
struct cm_draws {
    double (*draw)(struct cm_random *random);
    double scale, shift;
};

/* The next number as an element of a float type. Draws are rounded to the type before they are
 * scaled, and again before they are shifted, as ONNX's reference evaluator does. */
double cm_draws_next(const struct cm_draws *draws, struct cm_random *random, enum cm_dtype type);

#endif
