/* Pieces that slopes of elementwise functions are made of. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_ELEMENTWISE_SLOPE_H
#define CM_OPS_ELEMENTWISE_SLOPE_H

#include "graph/op.h"

/* factor * v * v + constant, with factor 1 or -1. */
cm_value cm_slope_square_plus(struct cm_grad *g, cm_value v, int factor, double constant);
/* factor * v + constant; a factor of 1 and a constant of 0 emit nothing. */
cm_value cm_slope_linear(struct cm_grad *g, cm_value v, double factor, double constant);
/* Where v compares (an operator's name: "Greater", "Less", ..) with limit: inside, elsewhere
 * outside. */
cm_value cm_slope_choose(struct cm_grad *g, cm_value v, const char *comparison, double limit,
                         cm_value inside, cm_value outside);
/* A float attribute of the forward node. */
double cm_slope_parameter(const struct cm_grad *g, const char *name);

#endif
