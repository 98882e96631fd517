/* What a file says of its graph, as far as it holds for the graph that is written in its place. */
// SPDX-License-Identifier: Apache-2.0
#include "models/kept_parts.h"

#include "base/map.h"

/* Values that a message of the main graph defines. */
static struct cm_map defined_names(struct cm_arena *arena, const struct cm_graph_proto *graph)
{
    struct cm_map names = {0};

    for (size_t i = 0; i < graph->input.count; i++)
        cm_map_insert(&names, arena, graph->input.items[i].name, NULL);
    for (size_t i = 0; i < graph->initializer.count; i++)
        cm_map_insert(&names, arena, graph->initializer.items[i].name, NULL);
    for (size_t n = 0; n < graph->node.count; n++)
        for (size_t o = 0; o < graph->node.items[n].output.count; o++)
            cm_map_insert(&names, arena, graph->node.items[n].output.items[o], NULL);
    return names;
}

/* Does what the file says of a value hold for the one that has its name now? */
static bool still_holds(const struct cm_graph *graph, const struct cm_value_info_proto *info)
{
    struct cm_module *module = graph->module;
    const cm_value value = cm_graph_find(graph, info->name);
    const struct cm_type *type;
    struct cm_error ignored = {0};

    return value && info->type &&
           cm_type_from_proto(cm_module_arena(module), cm_module_symbols(module), info->type, &type,
                              &ignored) == CM_OK &&
           cm_type_meet(cm_module_arena(module), cm_value_get(module, value)->fact.type, type);
}

static void keep_value_infos(const struct cm_graph *graph, struct cm_arena *arena,
                             const struct cm_map *names, struct cm_graph_proto *out)
{
    struct cm_value_infos kept = {NULL, 0};

    kept.items = CM_NEW_ARRAY(arena, struct cm_value_info_proto, out->value_info.count);
    for (size_t i = 0; i < out->value_info.count; i++)
        if (cm_map_find(names, out->value_info.items[i].name) &&
            still_holds(graph, &out->value_info.items[i]))
            kept.items[kept.count++] = out->value_info.items[i];
    if (kept.count == out->value_info.count)
        return;
    out->value_info = kept;
    cm_msg_set(&out->msg, CM_GRAPH_VALUE_INFO);
}

static void keep_annotations(struct cm_arena *arena, const struct cm_map *names,
                             struct cm_graph_proto *out)
{
    struct cm_annotation_proto *kept =
        CM_NEW_ARRAY(arena, struct cm_annotation_proto, out->quantization_annotation.count);
    size_t count = 0;

    for (size_t i = 0; i < out->quantization_annotation.count; i++) {
        const struct cm_annotation_proto *note = &out->quantization_annotation.items[i];
        bool there = cm_map_find(names, note->tensor_name) != NULL;
        for (size_t p = 0; p < note->quant_parameter_tensor_names.count; p++)
            there = there && cm_map_find(names, note->quant_parameter_tensor_names.items[p].value);
        if (there)
            kept[count++] = *note;
    }
    if (count == out->quantization_annotation.count)
        return;
    out->quantization_annotation.items = kept;
    out->quantization_annotation.count = count;
    cm_msg_set(&out->msg, CM_GRAPH_QUANTIZATION_ANNOTATION);
}

/* Inputs of the graph; before IR version 4 its constants were listed among them. */
static void keep_inputs(const struct cm_graph *graph, struct cm_arena *arena,
                        struct cm_graph_proto *out)
{
    struct cm_value_infos kept = {NULL, 0};

    kept.items = CM_NEW_ARRAY(arena, struct cm_value_info_proto, out->input.count);
    for (size_t i = 0; i < out->input.count; i++) {
        const cm_value value = cm_graph_find(graph, out->input.items[i].name);
        if (value && cm_value_get(graph->module, value)->role == CM_ROLE_INPUT)
            kept.items[kept.count++] = out->input.items[i];
    }
    if (kept.count == out->input.count)
        return;
    out->input = kept;
    cm_msg_set(&out->msg, CM_GRAPH_INPUT);
}

void cm_keep_what_holds(const struct cm_graph *graph, struct cm_arena *arena,
                        struct cm_graph_proto *out)
{
    keep_inputs(graph, arena, out);
    const struct cm_map names = defined_names(arena, out);
    keep_value_infos(graph, arena, &names, out);
    keep_annotations(arena, &names, out);
}
