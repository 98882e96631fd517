/* Running elementwise operators. An operator says which loop computes its elements (its member
 * `elementwise`); walking broadcast shapes, converting narrow floats block by block and using all
 * threads is done here, once. Groups of operators that are computed as one use the same loops. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_ELEMENTWISE_ELEMENT_LOOPS_H
#define CM_OPS_ELEMENTWISE_ELEMENT_LOOPS_H

#include "graph/op.h"

/* prepare and run of operators with the member `elementwise`. */
enum cm_status cm_elements_prepare(struct cm_call *call);
enum cm_status cm_elements_run(struct cm_call *call);

/* For types that `elementwise` refuses because nothing is computed: cm_elements_run with this loop,
 * on elements as they are stored. */
void cm_elements_prepare_stored(struct cm_call *call, const struct cm_element_loop *loop);

/* Says that there is no loop for the types of the operands. */
enum cm_status cm_elements_refuse(struct cm_call *call);

/* The type in which loops see elements of this one: float for narrow floats, else itself. */
enum cm_dtype cm_element_type(enum cm_dtype type);
/* Bytes of an element as loops that only move it see it; 0 where they cannot: strings, types below
 * a byte, and float8, whose infinities do not come back from float. */
size_t cm_element_width(enum cm_dtype type);

/* Elements moved as they are; elementwise of operators that keep their first operand. */
bool cm_copy_elementwise(const struct cm_node *node, const enum cm_dtype *in, enum cm_dtype out,
                         struct cm_element_loop *loop);

/* The output may overwrite the inputs. */
enum cm_sharing cm_share_elementwise(const struct cm_node *node, int output, int input);

#endif
