/* Which node of the model a compiled one comes from: compiling begins with expanding, and what is
 * wrong with a part is said of the whole that people know. */
// SPDX-License-Identifier: Apache-2.0
#include "api/compiling.h"

#include "api/running.h"
#include "graph/import_context.h"

enum { DEPTH_MAX = 64 };

static void add(struct cm_api_origins *o, struct cm_str name, const struct cm_mlir_origin *origin)
{
    bool added;
    uint64_t *entry = cm_map_insert(&o->by_name, o->arena, name, &added);

    if (added)
        *entry = (uintptr_t)origin;
}

static void add_nodes(struct cm_api_origins *o, const struct cm_nodes *nodes, int depth)
{
    for (size_t i = 0; i < nodes->count && depth < DEPTH_MAX; i++) {
        const struct cm_node_proto *node = &nodes->items[i];
        struct cm_mlir_origin *origin = CM_NEW(o->arena, struct cm_mlir_origin);

        *origin = (struct cm_mlir_origin){cm_import_name_node(o->arena, node), node->op_type};
        if (node->name.size)
            add(o, node->name, origin);
        for (size_t k = 0; k < node->output.count; k++)
            if (node->output.items[k].size)
                add(o, node->output.items[k], origin);
        for (size_t a = 0; a < node->attribute.count; a++)
            if (node->attribute.items[a].g)
                add_nodes(o, &node->attribute.items[a].g->node, depth + 1);
    }
}

void cm_api_list_origins(struct cm_api_origins *o, const struct cm_model_proto *model,
                         struct cm_arena *arena)
{
    *o = (struct cm_api_origins){.arena = arena};
    if (model->graph)
        add_nodes(o, &model->graph->node, 0);
}

const struct cm_mlir_origin *cm_api_origin(const void *origins, struct cm_str name)
{
    const struct cm_api_origins *o = origins;
    const uint64_t *entry = cm_map_find(&o->by_name, name);

    return entry ? (const struct cm_mlir_origin *)(uintptr_t)*entry : NULL;
}
