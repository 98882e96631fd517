/* What the checks of gradients share: the case in another type, and the graph of its first
 * gradient. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_OP_GRADIENT_H
#define CM_TESTS_OP_GRADIENT_H

#include "op_slope.h"

/* A copy of the case whose float operands have this type; those the schema does not let be of it
 * stay. */
enum cm_status case_in(enum cm_dtype type, const struct op_case *from, struct cm_arena *arena,
                       struct op_case *out, struct cm_error *err);

/* Is there a rule to check? Fails for an operator that has none and does not say so. */
enum cm_status case_is_differentiable(const struct op_graph *graph, bool *out,
                                      struct cm_error *err);
/* Is graph input i an operand that gradients are asked for? */
bool is_float_input(const struct op_graph *graph, size_t i);
/* Does the case want the gradient by this operand to be checked? */
bool case_asks_for(const struct op_case *what, const struct case_value *value);
/* Does ONNX say that there is no derivative by this operand? */
bool case_has_no_derivative(const struct op_case *what, const struct case_value *value);
/* Result number o of the case: may it have a gradient? */
bool case_result_moves(const struct op_case *what, size_t o, const struct cm_datum *got);

/* The graph of a case with the nodes that compute the gradients of one result, under the weights
 * that its last input brings. */
struct first_gradient {
    struct op_graph graph; /* with the weights as its last feed, and room for more */
    cm_value *xs;          /* float inputs */
    size_t *inputs;        /* which inputs these are */
    cm_value *grads;       /* by xs; 0 where no path leads */
    size_t n_xs;
    cm_value weights;
};
enum cm_status first_gradient_build(const struct op_case *what, enum telling telling, size_t result,
                                    const struct cm_datum *weights, struct cm_arena *arena,
                                    struct first_gradient *out, struct cm_error *err);
/* The gradients that are there, in order, become the graph's outputs; how many. */
size_t first_gradient_set_outputs(struct first_gradient *first, struct cm_arena *arena);

#endif
