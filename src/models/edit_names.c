/* Every place that names a value, and reports of edits. */
// SPDX-License-Identifier: Apache-2.0
#include "models/edit.h"

#include "graph/node_order.h"
#include "onnx/descriptor.h"

/* ---- places ---- */

struct places {
    cm_edit_name_fn *fn;
    void *arg;
};

static void one(const struct places *p, struct cm_msg *msg, int field, struct cm_str *name)
{
    if (name->size && p->fn(p->arg, name))
        cm_msg_set(msg, field);
}

static void several(const struct places *p, struct cm_msg *msg, int field,
                    const struct cm_strs *names)
{
    for (size_t i = 0; i < names->count; i++)
        one(p, msg, field, &names->items[i]);
}

/* Attributes whose strings are names of values. */
static void named_by_attributes(const struct places *p, struct cm_node_proto *node)
{
    const char *const *names = cm_naming_attributes(node->domain, node->op_type);

    for (; names && *names; names++)
        for (size_t a = 0; a < node->attribute.count; a++) {
            struct cm_attribute_proto *attr = &node->attribute.items[a];
            if (!cm_str_is(attr->name, *names))
                continue;
            if (attr->type == CM_ATTR_STRING)
                one(p, &attr->msg, CM_ATTRIBUTE_S, &attr->s);
            several(p, &attr->msg, CM_ATTRIBUTE_STRINGS, &attr->strings);
        }
}

static void of_node(const struct places *p, struct cm_node_proto *node)
{
    several(p, &node->msg, CM_NODE_INPUT, &node->input);
    several(p, &node->msg, CM_NODE_OUTPUT, &node->output);
    named_by_attributes(p, node);
    for (size_t d = 0; d < node->device_configurations.count; d++) {
        struct cm_node_device_proto *device = &node->device_configurations.items[d];
        for (size_t s = 0; s < device->sharding_spec.count; s++)
            one(p, &device->sharding_spec.items[s].msg, CM_SHARDING_SPEC_TENSOR_NAME,
                &device->sharding_spec.items[s].tensor_name);
    }
}

/* What is no node and no value info: those come by themselves. */
static void of_graph(const struct places *p, struct cm_graph_proto *graph)
{
    for (size_t i = 0; i < graph->initializer.count; i++)
        one(p, &graph->initializer.items[i].msg, CM_TENSOR_NAME, &graph->initializer.items[i].name);
    for (size_t i = 0; i < graph->sparse_initializer.count; i++) {
        struct cm_tensor_proto *values = graph->sparse_initializer.items[i].values;
        if (values)
            one(p, &values->msg, CM_TENSOR_NAME, &values->name);
    }
    for (size_t i = 0; i < graph->quantization_annotation.count; i++) {
        struct cm_annotation_proto *a = &graph->quantization_annotation.items[i];
        one(p, &a->msg, CM_ANNOTATION_TENSOR_NAME, &a->tensor_name);
        for (size_t k = 0; k < a->quant_parameter_tensor_names.count; k++)
            one(p, &a->quant_parameter_tensor_names.items[k].msg, CM_ENTRY_VALUE,
                &a->quant_parameter_tensor_names.items[k].value);
    }
}

static enum cm_status visit(void *arg, const struct cm_message_info *info, struct cm_msg *msg)
{
    const struct places *p = arg;
    void *any = msg;

    if (info == &cm_graph_info) {
        of_graph(p, any);
    } else if (info == &cm_node_info) {
        of_node(p, any);
    } else if (info == &cm_value_info_info) {
        struct cm_value_info_proto *value = any;
        one(p, msg, CM_VALUE_INFO_NAME, &value->name);
    }
    return CM_OK;
}

enum cm_status cm_edit_names(struct cm_graph_proto *graph, cm_edit_name_fn *fn, void *arg)
{
    struct places p = {fn, arg};

    return graph ? cm_message_walk(&cm_graph_info, graph, visit, &p) : CM_OK;
}

static void of_bindings(const struct places *p, struct cm_entries *bindings)
{
    for (size_t i = 0; i < bindings->count; i++) {
        one(p, &bindings->items[i].msg, CM_ENTRY_KEY, &bindings->items[i].key);
        one(p, &bindings->items[i].msg, CM_ENTRY_VALUE, &bindings->items[i].value);
    }
}

enum cm_status cm_edit_model_names(struct cm_model_proto *model, cm_edit_name_fn *fn, void *arg)
{
    const struct places p = {fn, arg};

    struct cm_graph_proto *graph;

    for (size_t at = 0; (graph = cm_model_next_graph(model, &at));)
        CM_TRY(cm_edit_names(graph, fn, arg));
    for (size_t i = 0; i < model->training_info.count; i++) {
        of_bindings(&p, &model->training_info.items[i].initialization_binding);
        of_bindings(&p, &model->training_info.items[i].update_binding);
    }
    return CM_OK;
}

/* ---- what is near ---- */

void cm_nearest_try(struct cm_nearest *nearest, struct cm_str candidate)
{
    const size_t distance = cm_str_distance(nearest->typed, candidate);

    if (distance > 2 || distance * 2 > nearest->typed.size ||
        (nearest->best.size && distance >= nearest->distance))
        return;
    nearest->best = candidate;
    nearest->distance = distance;
}

const char *cm_nearest_hint(const struct cm_nearest *nearest, struct cm_arena *arena)
{
    return nearest->best.size
               ? cm_arena_printf(arena, ", did you mean '%.*s'?", CM_STR_FMT(nearest->best)).data
               : "";
}
