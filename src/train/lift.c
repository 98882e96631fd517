/* Weights that are not initializers of the graph: those in bodies of control flow and, where a
 * model has no initializers or the user names them, those in Constant nodes. Training needs a
 * variable to bind, so they become initializers. */
// SPDX-License-Identifier: Apache-2.0
#include "train/preparation.h"

#include "graph/registry.h"
#include "onnx/tensor_data.h"

enum { DEPTH_MAX = 64 };

/* ---- what nodes of the file hold ---- */

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

static const struct cm_attribute_proto *find_attribute(const struct cm_node_proto *node,
                                                       const char *name)
{
    for (size_t i = 0; i < node->attribute.count; i++)
        if (cm_str_is(node->attribute.items[i].name, name) &&
            !node->attribute.items[i].ref_attr_name.size)
            return &node->attribute.items[i];
    return NULL;
}

struct cm_tensor_proto *cm_node_constant(struct cm_arena *arena, const struct cm_node_proto *node)
{
    if (!cm_builtin_op(node)->is_constant || node->output.count != 1)
        return NULL;
    const struct cm_attribute_proto *value = find_attribute(node, "value");
    const struct cm_attribute_proto *floats = find_attribute(node, "value_floats");
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

bool cm_node_reads_statistic(const struct cm_node_proto *node, size_t input)
{
    const struct cm_training_form *training = cm_builtin_op(node)->training;
    const size_t first = training ? (size_t)training->statistics_input : 0;

    return training && input >= first && input - first < (size_t)training->n_statistics &&
           input < node->input.count && node->input.items[input].size;
}

bool cm_tensor_may_be_weight(const struct cm_tensor_proto *tensor)
{
    return tensor && tensor->dims.count > 0 && cm_dtype_is_valid(tensor->data_type) &&
           cm_dtype_info((enum cm_dtype)tensor->data_type)->kind == CM_CLASS_FLOAT;
}

void cm_model_add_initializer(struct cm_preparation *p, const struct cm_tensor_proto *from,
                              struct cm_str name)
{
    struct cm_graph_proto *graph = p->model->graph;
    struct cm_tensor_proto *tensor = CM_LIST_ADD(p->arena, &graph->initializer);

    *tensor = *from;
    tensor->name = name;
    cm_msg_set(&tensor->msg, CM_TENSOR_NAME);
    cm_msg_set(&graph->msg, CM_GRAPH_INITIALIZER);
}

void cm_lift_constants(struct cm_preparation *p, const struct cm_map *chosen)
{
    struct cm_graph_proto *graph = p->model->graph;
    struct cm_node_proto *nodes = CM_NEW_ARRAY(p->arena, struct cm_node_proto, graph->node.count);
    size_t kept = 0;

    for (size_t i = 0; i < graph->node.count; i++) {
        const struct cm_node_proto *node = &graph->node.items[i];
        const struct cm_tensor_proto *tensor = cm_node_constant(p->arena, node);
        if (tensor && cm_map_find(chosen, node->output.items[0])) {
            cm_model_add_initializer(p, tensor, node->output.items[0]);
            cm_preparation_note(p, "'%.*s', held in a Constant node, is now an initializer",
                                CM_STR_FMT(node->output.items[0]));
        } else {
            nodes[kept++] = *node;
        }
    }
    if (kept == graph->node.count)
        return;
    graph->node.items = nodes;
    graph->node.count = kept;
    cm_msg_set(&graph->msg, CM_GRAPH_NODE);
}

/* ---- bodies ---- */

struct lift {
    struct cm_preparation *p;
    bool has_initializers; /* that may be weights: then those in Constant nodes are none */
    struct cm_map seen;    /* names of tensors in bodies, to how often */
};

static void count_names(struct lift *lift, const struct cm_graph_proto *graph, int depth)
{
    for (size_t i = 0; i < graph->initializer.count; i++)
        lift->has_initializers =
            lift->has_initializers || cm_tensor_may_be_weight(&graph->initializer.items[i]);
    for (size_t i = 0; i < graph->node.count; i++) {
        const struct cm_graph_proto *body;
        for (size_t o = 0; o < graph->node.items[i].output.count; o++)
            ++*cm_map_insert(&lift->seen, lift->p->arena, graph->node.items[i].output.items[o],
                             NULL);
        for (size_t b = 0; depth < DEPTH_MAX && (body = cm_node_subgraph(&graph->node.items[i], b));
             b++)
            count_names(lift, body, depth + 1);
    }
    for (size_t i = 0; i < graph->initializer.count; i++)
        ++*cm_map_insert(&lift->seen, lift->p->arena, graph->initializer.items[i].name, NULL);
    for (size_t i = 0; i < graph->input.count; i++)
        ++*cm_map_insert(&lift->seen, lift->p->arena, graph->input.items[i].name, NULL);
}

static bool is_result(const struct cm_graph_proto *body, struct cm_str name)
{
    for (size_t i = 0; i < body->output.count; i++)
        if (cm_str_equal(body->output.items[i].name, name))
            return true;
    return false;
}

/* May it leave its body under its name? */
static bool lifts(struct lift *lift, const struct cm_graph_proto *body,
                  const struct cm_tensor_proto *tensor, struct cm_str name)
{
    if (!cm_tensor_may_be_weight(tensor) || is_result(body, name))
        return false;
    if (cm_map_get(&lift->seen, name, 0) != 1) {
        cm_preparation_block(
            lift->p,
            "'%.*s' is a weight inside a body of control flow, and its name is used "
            "more than once, so it cannot be lifted out",
            CM_STR_FMT(name));
        return false;
    }
    cm_model_add_initializer(lift->p, tensor, name);
    cm_preparation_note(lift->p, "'%.*s', held in a body of control flow, is now an initializer",
                        CM_STR_FMT(name));
    return true;
}

/* Is a tensor in a Constant node more than a constant? */
static bool may_be_weight(const struct lift *lift, struct cm_str name)
{
    return !lift->has_initializers || cm_preparation_matches(lift->p, lift->p->train, name);
}

static void lift_from(struct lift *lift, struct cm_graph_proto *body, int depth)
{
    struct cm_arena *arena = lift->p->arena;
    struct cm_tensor_proto *tensors =
        CM_NEW_ARRAY(arena, struct cm_tensor_proto, body->initializer.count);
    struct cm_node_proto *nodes = CM_NEW_ARRAY(arena, struct cm_node_proto, body->node.count);
    size_t n_tensors = 0, n_nodes = 0;

    for (size_t i = 0; i < body->initializer.count; i++)
        if (!lifts(lift, body, &body->initializer.items[i], body->initializer.items[i].name))
            tensors[n_tensors++] = body->initializer.items[i];
    for (size_t i = 0; i < body->node.count; i++) {
        struct cm_node_proto *node = &body->node.items[i];
        const struct cm_tensor_proto *constant = cm_node_constant(lift->p->arena, node);
        struct cm_graph_proto *inner;
        for (size_t b = 0; depth < DEPTH_MAX && (inner = cm_node_subgraph(node, b)); b++)
            lift_from(lift, inner, depth + 1);
        if (!constant || !may_be_weight(lift, node->output.items[0]) ||
            !lifts(lift, body, constant, node->output.items[0]))
            nodes[n_nodes++] = *node;
    }
    if (n_tensors != body->initializer.count) {
        body->initializer.items = tensors;
        body->initializer.count = n_tensors;
        cm_msg_set(&body->msg, CM_GRAPH_INITIALIZER);
    }
    if (n_nodes != body->node.count) {
        body->node.items = nodes;
        body->node.count = n_nodes;
        cm_msg_set(&body->msg, CM_GRAPH_NODE);
    }
}

void cm_lift_bodies(struct cm_preparation *p)
{
    struct cm_graph_proto *graph = p->model->graph;
    struct lift lift = {.p = p};
    bool any = false;

    for (size_t i = 0; i < graph->node.count && !any; i++)
        any = cm_node_subgraph(&graph->node.items[i], 0) != NULL;
    if (!any)
        return;
    count_names(&lift, graph, 0);
    for (size_t i = 0; i < graph->node.count; i++) {
        struct cm_graph_proto *body;
        for (size_t b = 0; (body = cm_node_subgraph(&graph->node.items[i], b)); b++)
            lift_from(&lift, body, 0);
    }
}
