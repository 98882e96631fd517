/* Names that a graph of a file defines. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/defined_names.h"

static void each_initializer(const struct cm_graph_proto *graph, cm_define_fn *fn, void *arg)
{
    for (size_t i = 0; i < graph->initializer.count; i++)
        fn(arg, graph->initializer.items[i].name);
    for (size_t i = 0; i < graph->sparse_initializer.count; i++)
        if (graph->sparse_initializer.items[i].values)
            fn(arg, graph->sparse_initializer.items[i].values->name);
}

void cm_graph_each_defined(const struct cm_graph_proto *graph, cm_define_fn *fn, void *arg)
{
    for (size_t i = 0; i < graph->input.count; i++)
        fn(arg, graph->input.items[i].name);
    each_initializer(graph, fn, arg);
    for (size_t n = 0; n < graph->node.count; n++)
        for (size_t o = 0; o < graph->node.items[n].output.count; o++)
            if (graph->node.items[n].output.items[o].size)
                fn(arg, graph->node.items[n].output.items[o]);
}

void cm_name_set_add(void *arg, struct cm_str name)
{
    struct cm_name_set *set = arg;

    if (cm_map_add(&set->map, set->arena, name))
        *CM_PUSH(set->arena, set) = name;
}

bool cm_name_set_has(const struct cm_name_set *set, struct cm_str name)
{
    return cm_map_find(&set->map, name) != NULL;
}

struct keys {
    struct cm_arena *arena;
    struct cm_map *map;
};

static void add_key(void *arg, struct cm_str name)
{
    const struct keys *keys = arg;

    cm_map_insert(keys->map, keys->arena, name, NULL);
}

struct cm_map cm_graph_defined(struct cm_arena *arena, const struct cm_graph_proto *graph)
{
    struct cm_map names = {0};

    cm_graph_each_defined(graph, add_key, &(struct keys){arena, &names});
    return names;
}

void cm_graph_add_initializers(struct cm_arena *arena, const struct cm_graph_proto *graph,
                               struct cm_map *names)
{
    each_initializer(graph, add_key, &(struct keys){arena, names});
}

struct cm_map cm_training_variables(struct cm_arena *arena, const struct cm_model_proto *model)
{
    struct cm_map names = {0};

    for (size_t i = 0; i < model->training_info.count; i++) {
        const struct cm_training_proto *entry = &model->training_info.items[i];
        for (size_t k = 0; k < entry->initialization_binding.count; k++)
            cm_map_insert(&names, arena, entry->initialization_binding.items[k].key, NULL);
        for (size_t k = 0; k < entry->update_binding.count; k++)
            cm_map_insert(&names, arena, entry->update_binding.items[k].key, NULL);
    }
    return names;
}

bool cm_tensor_is_named(void *arg, const struct cm_tensor_proto *tensor)
{
    return cm_map_find(arg, tensor->name) != NULL;
}
