/* Regions: groups of nodes that become one node whose body they are. What the two kinds share:
 * which nodes may follow or join others element by element, and the making of the region. Not for
 * other folders. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_REWRITE_REGION_PASS_H
#define CM_REWRITE_REGION_PASS_H

#include "graph/op.h"

enum { CM_REGION_OPERANDS = 32, CM_REGION_RESULTS = 16 };

/* The pass at work on one graph. A node's mark is its place in the order while groups are sought,
 * and a member's place in its group while a region is made. */
struct cm_region_work {
    struct cm_graph *graph;
    struct cm_marks marks;
    struct cm_arena *scratch; /* gone after the pass */
    size_t made;              /* regions so far */
    bool full;                /* the module may have no more nodes: no further region is made */
    struct cm_error *err;
};

/* Does an elementwise loop compute the node, all of it, with its types? */
bool cm_region_is_elementwise(const struct cm_node *node);
/* A constant of one element, which a body holds itself; no state variable. */
bool cm_region_is_number(const struct cm_module *module, cm_value value);

/* Members are in the order of the graph. After cm_region_mark the others can be asked. */
struct cm_region_group {
    const struct cm_marks *marks;
    struct cm_node *const *members;
    size_t count;
};
void cm_region_mark(const struct cm_region_group *group);
bool cm_region_is_member(const struct cm_region_group *group, const struct cm_node *node);
/* Is output 0 of a member read by anything but members? */
bool cm_region_is_result(const struct cm_region_group *group, const struct cm_node *member);

/* Puts a region in the place of the last member and gives it that one's mark; nothing outside the
 * group that reads a member may stand before that place. The first `kept` members read all their
 * operands from outside the body, constants too. Where the module's node budget is spent, nothing
 * changes but work->full. */
enum cm_status cm_region_make(struct cm_region_work *work, const char *op_type,
                              const struct cm_region_group *group, size_t kept) CM_MUST_CHECK;

/* The two kinds. */
enum cm_status cm_region_products(struct cm_region_work *work) CM_MUST_CHECK;
enum cm_status cm_region_elementwise(struct cm_region_work *work) CM_MUST_CHECK;

#endif
