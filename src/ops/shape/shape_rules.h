/* What the shape operators share: known contents passed on, and gradients that undo a move. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_SHAPE_SHAPE_RULES_H
#define CM_OPS_SHAPE_SHAPE_RULES_H

#include "graph/op.h"

/* Output 0 has the elements of input 0 in the same order; when its rank is 0 or 1 what is known of
 * them is known of it. */
void cm_infer_pass_known(struct cm_infer *in);
/* What is known of integer input i, if anything is: at least one element, not only how many there
 * are. */
bool cm_infer_some_known(struct cm_infer *in, int i, struct cm_known *out);
/* Input i as whole numbers; false when one is not known. At most max of them. */
bool cm_infer_numbers(struct cm_infer *in, int i, size_t max, int64_t *out, size_t *count);
/* A tensor of this element type whose shape is what input i holds. */
enum cm_status cm_infer_set_shape_from(struct cm_infer *in, enum cm_dtype dtype, int i);

/* The shape of x as a rank 1 tensor: a constant if it is known, else computed. */
cm_value cm_build_shape_of(struct cm_builder *builder, cm_value x);
/* The rule of operators that change nothing but the shape. */
enum cm_status cm_grad_reshape(struct cm_grad *g);

/* For operators that move elements by a pattern: positions are the elements of x numbered in order,
 * under x's shape. Moved as x was, they say where each element of dy belongs; cm_build_scatter puts
 * (or adds) them there, zero elsewhere. */
cm_value cm_build_positions(struct cm_builder *builder, cm_value x);
cm_value cm_build_scatter(struct cm_builder *builder, cm_value x, cm_value positions, cm_value dy,
                          bool repeats);

#endif
