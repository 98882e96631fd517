/* The gradient of one operator as a graph that people can read: the nodes that `cameo grad` emits
 * for an example of its use. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_AUTODIFF_EXPLAIN_OPERATOR_GRADIENT_H
#define CM_AUTODIFF_EXPLAIN_OPERATOR_GRADIENT_H

#include "base/array.h"
#include "graph/import.h"

struct cm_operand_names {
    CM_ARRAY(struct cm_str);
};

struct cm_operator_gradient {
    struct cm_graph_proto graph; /* from the forward values and the gradients of the results ("dY")
                                    to those of the operands ("dX") */
    struct cm_operand_names without; /* float operands that no gradient reaches */
    struct cm_operand_names whole;   /* operands of other types */
    struct cm_operand_names kept; /* operands and results whose elements the backward pass reads */
    bool keeps_more;              /* and values from within the operator */
    size_t nodes;                 /* those of bodies included */
};

/* import builds the graph of the example, whose function bodies may be of older opsets.
 * example is a line of data/gradients/, whose head explains the form; empty: each operand that must
 * be there, a vector. All of the result lives in arena. */
enum cm_status cm_operator_gradient(struct cm_arena *arena, const struct cm_schema *schema,
                                    struct cm_str example, cm_import_fn *import,
                                    struct cm_operator_gradient *out,
                                    struct cm_error *err) CM_MUST_CHECK;

/* The function body that defines the operator, for the same example, into a zeroed graph; no nodes:
 * it has none. */
enum cm_status cm_operator_definition(struct cm_arena *arena, const struct cm_schema *schema,
                                      struct cm_str example, cm_import_fn *import,
                                      struct cm_graph_proto *out, size_t *nodes,
                                      struct cm_error *err) CM_MUST_CHECK;

#endif
