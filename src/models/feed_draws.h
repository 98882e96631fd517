/* What random nodes draw, as inputs of their graph: a runtime that draws other numbers is fed those
 * that it shall use. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MODELS_FEED_DRAWS_H
#define CM_MODELS_FEED_DRAWS_H

#include "graph/op.h"

bool cm_node_draws(const struct cm_node *node);

/* Nodes in bodies stay as they are: nothing can be fed there. */
enum cm_status cm_feed_draws(struct cm_graph *graph, struct cm_error *err) CM_MUST_CHECK;

#endif
