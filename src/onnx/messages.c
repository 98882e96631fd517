/* Growing the exact lists of message structs, and looking into some. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/messages.h"

#include "base/number.h"

void *cm_list_extended_by(struct cm_arena *arena, const void *items, size_t count, size_t more,
                          size_t size)
{
    size_t total;

    /* A count that overflows cannot be allocated either; let the arena say so. */
    if (!cm_size_add(count, more, &total))
        total = SIZE_MAX;
    void *const longer = cm_arena_alloc_array(arena, total, size);
    if (count)
        memcpy(longer, items, count * size);
    return longer;
}

void *cm_list_extended(struct cm_arena *arena, const void *items, size_t count, size_t size)
{
    return cm_list_extended_by(arena, items, count, 1, size);
}

#define FIND(list, member, name)                                                                   \
    do {                                                                                           \
        for (size_t i = 0; i < (list)->count; i++)                                                 \
            if (cm_str_equal((list)->items[i].member, (name)))                                     \
                return &(list)->items[i];                                                          \
        return NULL;                                                                               \
    } while (0)

struct cm_value_info_proto *cm_value_infos_find(const struct cm_value_infos *infos,
                                                struct cm_str name)
{
    FIND(infos, name, name);
}

struct cm_entry_proto *cm_entries_get(const struct cm_entries *entries, struct cm_str key)
{
    FIND(entries, key, key);
}

struct cm_str cm_entries_find(const struct cm_entries *entries, const char *key)
{
    const struct cm_entry_proto *entry = cm_entries_get(entries, cm_str(key));

    return entry ? entry->value : CM_STR_NONE;
}

struct cm_attribute_proto *cm_node_attribute(const struct cm_node_proto *node, struct cm_str name)
{
    FIND(&node->attribute, name, name);
}

struct cm_graph_proto *cm_node_subgraph(const struct cm_node_proto *node, size_t index)
{
    for (size_t a = 0; a < node->attribute.count; a++) {
        const struct cm_attribute_proto *attribute = &node->attribute.items[a];

        if (attribute->g && index-- == 0)
            return attribute->g;
        if (index < attribute->graphs.count)
            return &attribute->graphs.items[index];
        index -= attribute->graphs.count;
    }
    return NULL;
}

struct cm_graph_proto *cm_model_next_graph(const struct cm_model_proto *model, size_t *at)
{
    while (*at <= 2 * model->training_info.count) {
        const size_t i = (*at)++;
        const struct cm_training_proto *entry = i ? &model->training_info.items[(i - 1) / 2] : NULL;
        struct cm_graph_proto *graph = !entry  ? model->graph
                                       : i % 2 ? entry->initialization
                                               : entry->algorithm;
        if (graph)
            return graph;
    }
    return NULL;
}

struct cm_node_proto cm_identity_proto(struct cm_arena *arena, struct cm_str from, struct cm_str to)
{
    struct cm_str *names = CM_NEW_ARRAY(arena, struct cm_str, 2);
    struct cm_node_proto node = {
        .op_type = CM_STR("Identity"), .input = {&names[0], 1}, .output = {&names[1], 1}};

    names[0] = from;
    names[1] = to;
    cm_msg_set(&node.msg, CM_NODE_OP_TYPE);
    cm_msg_set(&node.msg, CM_NODE_INPUT);
    cm_msg_set(&node.msg, CM_NODE_OUTPUT);
    return node;
}
