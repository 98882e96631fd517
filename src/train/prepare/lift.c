/* Weights that are not initializers of the graph: those in bodies of control flow and, where a
 * model has no initializers or the user names them, those in Constant nodes. Training needs a
 * variable to bind, so they become initializers. */
// SPDX-License-Identifier: Apache-2.0
#include "train/prepare/preparation.h"

#include "graph/op.h"
#include "onnx/tensor_data.h"

/* ---- what nodes hold ---- */

const struct cm_tensor_proto *cm_node_constant(struct cm_arena *arena, const struct cm_node *node)
{
    if (!node->op || !node->op->values.is_constant)
        return NULL;
    const struct cm_attribute_proto *value = cm_node_attr(node, "value");
    const struct cm_attribute_proto *floats = cm_node_attr(node, "value_floats");
    if (value)
        return value->t;
    if (!floats || !floats->floats.count)
        return NULL;
    const struct cm_shape shape = CM_SHAPE((int64_t)floats->floats.count);
    const struct cm_tensor list =
        cm_tensor_borrow(CM_FLOAT, &shape, (void *)(uintptr_t)floats->floats.items);
    struct cm_tensor_proto *tensor = CM_NEW(arena, struct cm_tensor_proto);
    (void)!cm_tensor_proto_store(tensor, arena, &list, NULL); /* plain floats can be stored */
    return tensor;
}

bool cm_tensor_may_be_weight(const struct cm_tensor_proto *tensor)
{
    return tensor && tensor->dims.count > 0 && cm_dtype_is_float(tensor->data_type);
}

bool cm_tensor_repeats(const struct cm_preparation *p, const struct cm_tensor_proto *proto,
                       double *number)
{
    struct cm_tensor tensor;
    bool same = true;

    if (cm_tensor_proto_load(proto, p->file->files, &tensor, NULL))
        return false;
    const int64_t count = cm_tensor_count(&tensor);
    *number = count ? cm_tensor_real(&tensor, 0) : 0;
    for (int64_t i = 1; i < count && same; i++)
        same = cm_tensor_real(&tensor, i) == *number;
    cm_tensor_drop(&tensor);
    return same && count > 0;
}

/* ---- tensors that are no initializers of the graph ---- */

/* A tensor of the inference graph, or of a body in it, becomes an initializer of the graph. */
static cm_value lift(struct cm_preparation *p, cm_value from, const struct cm_tensor_proto *tensor,
                     const char *holder)
{
    struct cm_module *module = p->inference->module;
    const struct cm_value_def *def = cm_value_get(module, from);
    const struct cm_str name = def->name;

    cm_value_set_name(module, from, CM_STR_NONE);
    const cm_value value = cm_preparation_tensor(p, p->inference, tensor, name);
    cm_preparation_add(p, value, name, def->graph != p->inference);
    cm_value_replace(module, from, value);
    if (def->node)
        cm_graph_remove_node(def->node);
    cm_preparation_note(p, "'%.*s', held in a %s, is now an initializer", CM_STR_FMT(name), holder);
    return value;
}

cm_value cm_lift_constant(struct cm_preparation *p, cm_value constant,
                          const struct cm_tensor_proto *tensor)
{
    return lift(p, constant, tensor, "Constant node");
}

/* Is a graph a body of control flow in the inference graph, however deep? */
static bool is_body(const struct cm_preparation *p, const struct cm_graph *graph)
{
    if (graph == p->inference)
        return false;
    for (; graph->parent; graph = graph->parent) {
        const struct cm_node *owner = graph->owner;
        bool held = false;

        for (size_t b = 0; owner && b < owner->n_bodies; b++)
            held = held || owner->bodies[b].graph == graph;
        if (!held || owner->is_gone)
            return false;
    }
    return graph == p->inference;
}

static bool is_result(const struct cm_graph *body, cm_value value)
{
    for (size_t i = 0; i < body->n_outputs; i++)
        if (body->outputs[i].value == value)
            return true;
    return false;
}

/* What a value in a body holds that may be a weight; NULL: nothing. Where a model has initializers
 * that may be, those in Constant nodes are none, unless the user names them. */
static const struct cm_tensor_proto *
held_weight(const struct cm_preparation *p, const struct cm_value_def *def, bool has_initializers)
{
    const struct cm_tensor_proto *tensor = def->initializer;

    if (def->node && (!has_initializers || cm_preparation_matches(p, p->train, def->name)))
        tensor = cm_node_constant(p->arena, def->node);
    return cm_tensor_may_be_weight(tensor) ? tensor : NULL;
}

enum cm_status cm_lift_bodies(struct cm_preparation *p)
{
    struct cm_module *module = p->inference->module;
    const cm_value n_values = (cm_value)cm_module_value_count(module);
    struct cm_map seen = {0}; /* names in bodies, to how often */
    bool has_initializers = false;

    for (cm_value v = 1; v < n_values; v++) {
        const struct cm_value_def *def = cm_value_get(module, v);
        const bool inside = is_body(p, def->graph);

        if (inside)
            ++*cm_map_insert(&seen, p->arena, def->name, NULL);
        if (inside || def->graph == p->inference)
            has_initializers = has_initializers || cm_tensor_may_be_weight(def->initializer);
    }
    for (cm_value v = 1; seen.count && v < n_values; v++) {
        const struct cm_value_def *def = cm_value_get(module, v);
        const struct cm_tensor_proto *tensor =
            is_body(p, def->graph) ? held_weight(p, def, has_initializers) : NULL;

        if (!tensor || !def->name.size || is_result(def->graph, v)) /* no name: a function's */
            continue;
        if (cm_map_get(&seen, def->name, 0) == 1 && !cm_graph_find(p->inference, def->name))
            (void)lift(p, v, tensor, "body of control flow");
        else
            cm_preparation_block(p,
                                 "'%.*s' is a weight inside a body of control flow, and its name "
                                 "is used more than once, so it cannot be lifted out",
                                 CM_STR_FMT(def->name));
    }
    return CM_OK;
}
