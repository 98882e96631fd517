/* The body of a product region: a product, what follows it element by element, and before it, where
 * a MatMul reads a matrix transposed, that Transpose. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_PRODUCT_BODY_H
#define CM_BACKENDS_PRODUCT_BODY_H

#include "graph/op.h"

/* Is it this operator of ai.onnx? */
static inline bool cm_body_is(const struct cm_node *node, const char *op)
{
    return !node->domain.size && cm_str_is(node->op_type, op);
}

static inline const struct cm_graph *cm_body_of(const struct cm_node *region)
{
    return region->bodies[0].graph;
}

/* Which operand of the region a value of the body is; -1: none. */
static inline int cm_body_place(const struct cm_graph *body, cm_value value)
{
    for (size_t i = 0; value && i < body->n_inputs; i++)
        if (body->inputs[i] == value)
            return (int)i;
    return -1;
}

/* How an operand of what follows the product lies over the result. */
enum cm_body_extent {
    CM_BODY_NUMBER, /* one element that repeats */
    CM_BODY_COLUMN, /* one element for each place on the axis of columns */
    CM_BODY_WHOLE,  /* as large as the result */
    CM_BODY_OTHER,
};
static inline enum cm_body_extent cm_body_extent(const struct cm_shape *x, const struct cm_shape *y,
                                                 int column_axis)
{
    const int missing = y->rank - x->rank, axis = column_axis - missing; /* that of columns, in x */
    if (cm_shape_equal(x, y))
        return CM_BODY_WHOLE;
    if (cm_shape_elements(x) == 1 && missing >= 0)
        return CM_BODY_NUMBER;
    return missing >= 0 && axis >= 0 && x->dims[axis] == y->dims[column_axis] &&
                   cm_shape_elements(x) == x->dims[axis]
               ? CM_BODY_COLUMN
               : CM_BODY_OTHER;
}

static inline bool cm_body_turns(const struct cm_graph *body)
{
    return body->first && cm_body_is(body->first, "Transpose") && body->first->next;
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
