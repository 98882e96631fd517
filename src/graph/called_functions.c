/* Which functions of a model are called. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/called_functions.h"

#include "graph/registry.h"

struct cm_str cm_function_key(struct cm_arena *arena, struct cm_str domain, struct cm_str name,
                              struct cm_str overload)
{
    domain = cm_domain_plain(domain);
    struct cm_str key = {NULL, domain.size + name.size + overload.size + 2};
    char *room = cm_arena_alloc(arena, key.size + 1); /* zeroed, so the separators are there */
    if (domain.size)
        memcpy(room, domain.data, domain.size);
    if (name.size)
        memcpy(room + domain.size + 1, name.data, name.size);
    if (overload.size)
        memcpy(room + domain.size + name.size + 2, overload.data, overload.size);
    key.data = room;
    return key;
}

struct cm_str cm_call_key(struct cm_arena *arena, const struct cm_node_proto *node)
{
    return cm_function_key(arena, node->domain, node->op_type, node->overload);
}

struct cm_map cm_functions_by_key(struct cm_arena *arena, const struct cm_model_proto *model)
{
    struct cm_map by_key = {0};

    for (size_t i = 0; i < model->functions.count; i++) {
        const struct cm_function_proto *f = &model->functions.items[i];
        *cm_map_insert(&by_key, arena, cm_function_key(arena, f->domain, f->name, f->overload),
                       NULL) = i + 1;
    }
    return by_key;
}

/* Functions of the file that are still called, found one call after the other. */
struct kept_functions {
    struct cm_arena *arena;
    struct cm_map by_key; /* key to number, from 1 */
    bool *keep;
    size_t *queue, n_queued;
};

static void note_calls(struct kept_functions *kept, const struct cm_nodes *nodes)
{
    for (size_t n = 0; n < nodes->count; n++) {
        const struct cm_node_proto *node = &nodes->items[n];
        const size_t number = (size_t)cm_map_get(&kept->by_key, cm_call_key(kept->arena, node), 0);
        const struct cm_graph_proto *body;
        if (number && !kept->keep[number - 1]) {
            kept->keep[number - 1] = true;
            kept->queue[kept->n_queued++] = number - 1;
        }
        for (size_t b = 0; (body = cm_node_subgraph(node, b)); b++)
            note_calls(kept, &body->node);
    }
}

const bool *cm_called_functions(struct cm_arena *arena, const struct cm_model_proto *model,
                                const struct cm_nodes *nodes)
{
    const size_t all = model->functions.count;
    struct kept_functions kept = {.arena = arena,
                                  .keep = CM_NEW_ARRAY(arena, bool, all),
                                  .queue = CM_NEW_ARRAY(arena, size_t, all)};

    if (!all)
        return kept.keep;
    kept.by_key = cm_functions_by_key(arena, model);
    note_calls(&kept, nodes);
    for (size_t next = 0; next < kept.n_queued; next++)
        note_calls(&kept, &model->functions.items[kept.queue[next]].node);
    return kept.keep;
}

bool cm_nodes_use_domain(const struct cm_nodes *nodes, struct cm_str domain)
{
    for (size_t n = 0; n < nodes->count; n++) {
        const struct cm_node_proto *node = &nodes->items[n];
        const struct cm_graph_proto *body;
        if (cm_str_equal(node->domain, domain))
            return true;
        for (size_t b = 0; (body = cm_node_subgraph(node, b)); b++)
            if (cm_nodes_use_domain(&body->node, domain))
                return true;
    }
    return false;
}
