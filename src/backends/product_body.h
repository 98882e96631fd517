/* The body of a product region: a product, what follows it element by element, and before it, where
 * a MatMul reads a matrix transposed, that Transpose. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_PRODUCT_BODY_H
#define CM_BACKENDS_PRODUCT_BODY_H

#include "graph/op.h"

static inline bool cm_body_turns(const struct cm_graph *body)
{
    return body->first && !body->first->domain.size &&
           cm_str_is(body->first->op_type, "Transpose") && body->first->next;
}

/* NULL in an empty body. */
static inline const struct cm_node *cm_body_product(const struct cm_graph *body)
{
    return cm_body_turns(body) ? body->first->next : body->first;
}

/* Operand i of the product as it lies. */
static inline cm_value cm_body_operand(const struct cm_graph *body, int i)
{
    const cm_value value = cm_node_input(cm_body_product(body), i);
    return i == 1 && cm_body_turns(body) && value == body->first->outputs[0]
               ? cm_node_input(body->first, 0)
               : value;
}

#endif
