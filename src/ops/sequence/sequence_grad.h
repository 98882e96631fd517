/* Gradient rules of the sequence operators. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_SEQUENCE_SEQUENCE_GRAD_H
#define CM_OPS_SEQUENCE_SEQUENCE_GRAD_H

#include "graph/op.h"

cm_grad_fn cm_construct_grad, cm_at_grad, cm_insert_grad, cm_erase_grad;
cm_grad_fn cm_split_sequence_grad, cm_concat_sequence_grad, cm_map_grad;
cm_grad_fn cm_pass_grad; /* the result is the operand, wrapped or unwrapped */

/* The items of a sequence put together, as ConcatFromSequence does; zeros like `like` when there
 * are none, which it refuses. */
cm_value cm_build_joined(struct cm_builder *build, cm_value sequence, int64_t axis, bool new_axis,
                         cm_value like);

#endif
