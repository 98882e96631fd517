/* What an operator refuses when it runs and its function body would not: bodies broadcast, slice
 * and gather, and so give a result where operands do not fit. `require` of struct cm_op lists such
 * demands. Compiled code has no kernels, so the expansion for it puts a node ai.cameo::Require
 * before the body for each demand that is not known to be met. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_REQUIRE_H
#define CM_GRAPH_REQUIRE_H

#include "graph/builder.h"

struct cm_require {
    struct cm_builder build;
    struct cm_node *node; /* attributes, facts of operands */
    cm_value *in;         /* the operands, behind the demands so far; 0: absent */
};

/* In each of these an absent operand, and one whose rank is not known, is left alone. Negative axes
 * count from the end. The reason is a sentence for people. */

/* condition has one element. */
void cm_require_that(struct cm_require *r, int operand, cm_value condition, const char *reason);
void cm_require_size(struct cm_require *r, int operand, int axis, int64_t size, const char *reason);
/* Axis of operand is as long as other_axis of other. */
void cm_require_same(struct cm_require *r, int operand, int axis, int other, int other_axis,
                     const char *reason);
/* The same, or of size 1. */
void cm_require_spread(struct cm_require *r, int operand, int axis, int other, int other_axis,
                       const char *reason);
/* The operand broadcasts to other, and not the other way round. */
void cm_require_broadcast(struct cm_require *r, int operand, int other, const char *reason);
/* All elements are at least `least`. */
void cm_require_least(struct cm_require *r, int operand, int64_t least, const char *reason);

const struct cm_type *cm_require_type(const struct cm_require *r, int operand); /* or NULL */
/* The length of an axis, int64[1]. */
cm_value cm_require_length(struct cm_require *r, int operand, int axis);

/* Puts the demands of the node's operator before it. */
enum cm_status cm_node_require(struct cm_node *node, struct cm_error *err) CM_MUST_CHECK;

#endif
