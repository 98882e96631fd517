/* Inputs, types of values and annotations that a file lists, after its graph was changed. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MODELS_KEPT_PARTS_H
#define CM_MODELS_KEPT_PARTS_H

#include "graph/graph.h"

/* out is the file's graph with the nodes and initializers of graph in place of its own: what it
 * lists of values that are gone, or are others by now, is left out. */
void cm_keep_what_holds(const struct cm_graph *graph, struct cm_arena *arena,
                        struct cm_graph_proto *out);

#endif
