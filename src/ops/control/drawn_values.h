/* Random numbers that bodies draw. The backward pass runs a body again and must find what was drawn
 * on the way there: the forward node gives these values, and copies of the body read them. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_CONTROL_DRAWN_VALUES_H
#define CM_OPS_CONTROL_DRAWN_VALUES_H

#include "base/array.h"
#include "graph/op.h"

struct cm_drawn {
    CM_ARRAY(cm_value); /* values of the body: masks of Dropout, results of generators */
};

/* Lists what the nodes of a body draw. An If or a Loop among them that draws in its own bodies is
 * made to give that; fails if another node does. */
enum cm_status cm_drawn_find(struct cm_grad *g, struct cm_graph *body,
                             struct cm_drawn *out) CM_MUST_CHECK;
/* Makes an If give what its branches drew, those of the first before those of the second. */
enum cm_status cm_drawn_save_branches(struct cm_node *node, const struct cm_drawn drawn[2],
                                      cm_value *saved[2], struct cm_error *err) CM_MUST_CHECK;
/* In a copy of the body: puts `given` in place of what is drawn, and no more is drawn. */
enum cm_status cm_drawn_replace(struct cm_module *module, cm_value drawn, cm_value given,
                                struct cm_error *err) CM_MUST_CHECK;

#endif
