/* Which functions of a model are called, by its graph or by each other. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_CALLED_FUNCTIONS_H
#define CM_GRAPH_CALLED_FUNCTIONS_H

#include "base/map.h"
#include "onnx/messages.h"

/* What a call and the function it calls have in common, in arena. */
struct cm_str cm_function_key(struct cm_arena *arena, struct cm_str domain, struct cm_str name,
                              struct cm_str overload);
struct cm_str cm_call_key(struct cm_arena *arena, const struct cm_node_proto *node);
/* The numbers of functions by that, from 1. Of functions with one key the last counts. */
struct cm_map cm_functions_by_key(struct cm_arena *arena, const struct cm_model_proto *model);
/* By number: is the function of the model called by nodes, or by one that is? Lives in arena. */
const bool *cm_called_functions(struct cm_arena *arena, const struct cm_model_proto *model,
                                const struct cm_nodes *nodes);
/* Is there a node of this domain among them, or in a graph that one holds? */
bool cm_nodes_use_domain(const struct cm_nodes *nodes, struct cm_str domain);

#endif
