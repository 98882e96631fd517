/* Changes to the messages of a graph. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_messages.h"

void cm_graph_proto_drop_initializers(struct cm_arena *arena, struct cm_graph_proto *graph,
                                      const struct cm_map *names)
{
    struct cm_tensor_proto *list =
        CM_NEW_ARRAY(arena, struct cm_tensor_proto, graph->initializer.count);
    size_t kept = 0;

    for (size_t i = 0; i < graph->initializer.count; i++)
        if (!cm_map_find(names, graph->initializer.items[i].name))
            list[kept++] = graph->initializer.items[i];
    graph->initializer.items = list;
    graph->initializer.count = kept;
    cm_msg_set(&graph->msg, CM_GRAPH_INITIALIZER);
}

void cm_graph_proto_drop_initializer(struct cm_arena *arena, struct cm_graph_proto *graph,
                                     struct cm_str name)
{
    struct cm_map names = {0};

    cm_map_insert(&names, arena, name, NULL);
    cm_graph_proto_drop_initializers(arena, graph, &names);
}

struct cm_node_proto cm_node_proto_make(struct cm_arena *arena, const char *op,
                                        const struct cm_str *inputs, size_t count,
                                        struct cm_str output, struct cm_attribute_proto attribute)
{
    struct cm_attribute_proto *own = CM_NEW(arena, struct cm_attribute_proto);
    struct cm_str *names = CM_NEW_ARRAY(arena, struct cm_str, count + 1);
    struct cm_node_proto node = {
        .op_type = cm_str(op),
        .name = cm_arena_printf(arena, "%.*s.made", (int)output.size, output.data)};

    memcpy(names, inputs, count * sizeof *names);
    names[count] = output;
    *own = attribute;
    node.input.items = names;
    node.input.count = count;
    node.output.items = names + count;
    node.output.count = 1;
    node.attribute.items = own;
    node.attribute.count = 1;
    cm_msg_set(&node.msg, CM_NODE_OP_TYPE);
    cm_msg_set(&node.msg, CM_NODE_NAME);
    cm_msg_set(&node.msg, CM_NODE_INPUT);
    cm_msg_set(&node.msg, CM_NODE_OUTPUT);
    cm_msg_set(&node.msg, CM_NODE_ATTRIBUTE);
    return node;
}

void cm_graph_proto_add_first(struct cm_arena *arena, struct cm_graph_proto *graph,
                              const struct cm_node_proto *nodes, size_t count)
{
    struct cm_node_proto *list =
        CM_NEW_ARRAY(arena, struct cm_node_proto, graph->node.count + count);

    memcpy(list, nodes, count * sizeof *nodes);
    if (graph->node.count)
        memcpy(list + count, graph->node.items, graph->node.count * sizeof *nodes);
    graph->node.items = list;
    graph->node.count += count;
    cm_msg_set(&graph->msg, CM_GRAPH_NODE);
}
