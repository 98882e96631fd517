/* Changes to the messages of a graph that several parts of the library make. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_GRAPH_MESSAGES_H
#define CM_GRAPH_GRAPH_MESSAGES_H

#include "base/map.h"
#include "onnx/messages.h"

/* Removes the initializers of these names. The old list stays as it is, for those who point into
 * it. */
void cm_graph_proto_drop_initializers(struct cm_arena *arena, struct cm_graph_proto *graph,
                                      const struct cm_map *names);
void cm_graph_proto_drop_initializer(struct cm_arena *arena, struct cm_graph_proto *graph,
                                     struct cm_str name);
/* A node of ai.onnx with one output and one attribute, named after its output. */
struct cm_node_proto cm_node_proto_make(struct cm_arena *arena, const char *op,
                                        const struct cm_str *inputs, size_t count,
                                        struct cm_str output, struct cm_attribute_proto attribute);
/* Adds nodes before all others. */
void cm_graph_proto_add_first(struct cm_arena *arena, struct cm_graph_proto *graph,
                              const struct cm_node_proto *nodes, size_t count);

#endif
