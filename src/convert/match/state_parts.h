/* How an optimizer's state of a weight is made of a framework's, where the weight is made of parts:
 * a state of the weight's shape in the same way, one that has only rows or columns of it along the
 * axes that the framework has for them. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_STATE_PARTS_H
#define CM_CONVERT_STATE_PARTS_H

#include "convert/match/parts.h"
#include "train/rules.h"

/* Is the weight one tensor of the framework, of this shape, with its axes in any order that keeps
 * the last two axes last? Else an optimizer that reads the whole weight computes other numbers. */
bool cm_parts_keep_tensor(const struct cm_part *parts, size_t count, const struct cm_shape *source);

/* `is` is the state in the model. there: the framework's state that it is made of: rows become
 * columns where the part turns them. shape: of that state, for a weight of shape `source`. parts:
 * how the state is made of it; the caller has asked cm_parts_keep_tensor. */
struct cm_state_parts {
    const struct cm_optimizer_state *there;
    struct cm_shape shape;
    struct cm_parts parts;
};
struct cm_state_parts cm_state_parts(struct cm_arena *arena, enum cm_update_rule rule,
                                     const struct cm_optimizer_state *is,
                                     const struct cm_part *part, const struct cm_shape *source);

#endif
