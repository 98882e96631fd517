/* What a file says of its graph, as far as it holds for the graph that is written in its place. */
// SPDX-License-Identifier: Apache-2.0
#include "models/kept_parts.h"

#include "onnx/defined_names.h"

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

static bool is_input(const struct cm_graph *graph, struct cm_str name)
{
    const cm_value value = cm_graph_find(graph, name);

    return value && cm_value_get(graph->module, value)->role == CM_ROLE_INPUT;
}

static bool all_defined(const struct cm_map *names, const struct cm_annotation_proto *note)
{
    bool there = cm_map_find(names, note->tensor_name) != NULL;

    for (size_t p = 0; p < note->quant_parameter_tensor_names.count; p++)
        there = there && cm_map_find(names, note->quant_parameter_tensor_names.items[p].value);
    return there;
}

void cm_keep_what_holds(const struct cm_graph *graph, struct cm_arena *arena,
                        struct cm_graph_proto *out)
{
    /* Before IR version 4 the graph's constants were listed among its inputs. */
    CM_LIST_OWN(arena, &out->input);
    CM_LIST_KEEP(out, CM_GRAPH_INPUT, &out->input, is_input(graph, out->input.items[i].name));
    const struct cm_map names = cm_graph_defined(arena, out);
    CM_LIST_OWN(arena, &out->value_info);
    CM_LIST_KEEP(out, CM_GRAPH_VALUE_INFO, &out->value_info,
                 cm_map_find(&names, out->value_info.items[i].name) &&
                     still_holds(graph, &out->value_info.items[i]));
    CM_LIST_OWN(arena, &out->quantization_annotation);
    CM_LIST_KEEP(out, CM_GRAPH_QUANTIZATION_ANNOTATION, &out->quantization_annotation,
                 all_defined(&names, &out->quantization_annotation.items[i]));
}
