/* What passes share: questions, and putting one value or node in the place of another. */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/pass.h"

bool cm_is_output(const struct cm_graph *graph, cm_value value)
{
    for (const struct cm_use *use = cm_value_get(graph->module, value)->uses; use; use = use->next)
        if (!use->node && use->graph == graph)
            return true;
    return false;
}

/* May replacement be called as an output of the graph is called? */
static bool takes_name(const struct cm_graph *graph, cm_value replacement)
{
    const struct cm_value_def *def = cm_value_get(graph->module, replacement);
    return def->node && def->graph == graph && !cm_is_output(graph, replacement);
}

bool cm_replace_value(struct cm_graph *graph, cm_value old, cm_value replacement)
{
    struct cm_module *module = graph->module;
    struct cm_value_def *from = cm_value_get(module, old), *to = cm_value_get(module, replacement);
    const bool is_output = cm_is_output(graph, old);

    if (is_output && !takes_name(graph, replacement))
        return false;
    const struct cm_str name = from->name;
    cm_value_replace(module, old, replacement);
    if (name.size && to->node && to->graph == graph && (is_output || !to->name.size)) {
        cm_value_set_name(module, old, CM_STR_NONE);
        cm_value_set_name(module, replacement, name);
    }
    return true;
}

bool cm_node_is(const struct cm_node *node, const char *op_type)
{
    return node && !node->domain.size && cm_str_is(node->op_type, op_type);
}

const struct cm_type *cm_value_type(const struct cm_module *module, cm_value value)
{
    return cm_value_get(module, value)->fact.type;
}

const struct cm_tensor *cm_small_constant(const struct cm_module *module, cm_value value,
                                          int64_t most)
{
    const struct cm_tensor *tensor = NULL;
    struct cm_shape shape;
    int64_t count;

    if (!value || !cm_type_shape(cm_value_type(module, value), &shape) ||
        !cm_shape_count(&shape, &count) || count > most ||
        cm_value_constant((struct cm_module *)(uintptr_t)module, value, &tensor, NULL))
        return NULL;
    return tensor;
}

struct cm_node_spec cm_spec_like(const struct cm_node *node, const char *const *without,
                                 size_t more, size_t n_inputs, cm_value **inputs)
{
    struct cm_arena *arena = cm_module_arena(node->module);
    struct cm_node_spec spec = cm_node_spec_of(node, arena);

    *inputs = CM_NEW_ARRAY(arena, cm_value, n_inputs);
    for (size_t i = 0; i < n_inputs; i++)
        (*inputs)[i] = cm_node_input(node, (int)i);
    spec.inputs = *inputs;
    spec.n_inputs = n_inputs;
    spec.name = node->name;
    spec.version = node->schema ? node->schema->since_version : 0;
    spec.original_version = node->original_version;
    spec.phase = node->phase;
    spec.n_attributes = 0;
    spec.attributes = CM_NEW_ARRAY(arena, struct cm_attribute_proto, node->n_attributes + more);
    for (size_t i = 0; i < node->n_attributes; i++) {
        const char *const *name = without;
        while (*name && !cm_str_is(node->attributes[i].name, *name))
            name++;
        if (!*name)
            spec.attributes[spec.n_attributes++] = node->attributes[i];
    }
    return spec;
}
