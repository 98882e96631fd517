/* Changes of models: chooses what is changed, and how often. */
// SPDX-License-Identifier: Apache-2.0
#include "mutate_model.h"

#include "onnx/decode.h"
#include "onnx/encode.h"

int32_t mutation_dtype(struct mutation *m)
{
    if (chance_percent(m->chance, 50)) {
        static const int32_t usual[] = {CM_FLOAT, CM_INT64, CM_INT32, CM_DOUBLE, CM_BOOL, CM_UINT8};
        return usual[chance_draw(m->chance, CM_COUNT(usual))];
    }
    return chance_percent(m->chance, 2) ? (int32_t)chance_number(m->chance)
                                        : (int32_t)chance_draw(m->chance, CM_DTYPE_COUNT);
}

struct cm_str mutation_name(struct mutation *m)
{
    if (!m->names.count || chance_percent(m->chance, 4))
        return CM_STR_NONE;
    return m->names.items[chance_draw(m->chance, m->names.count)];
}

struct cm_str mutation_new_name(struct mutation *m)
{
    return cm_arena_printf(m->arena, "_%zx", chance_draw(m->chance, 1 << 20));
}

void *mutation_copy(struct mutation *m, const struct cm_message_info *info, const void *msg)
{
    struct cm_error err;
    struct cm_str bytes;
    void *copy = cm_arena_alloc(m->arena, info->size);

    if (cm_encode(info, msg, m->arena, &bytes, &err) ||
        cm_decode(info, bytes, m->arena, copy, &err))
        return NULL;
    return copy;
}

/* ---- what there is ---- */

static void collect_nodes(struct mutation *m, struct cm_nodes *nodes, struct cm_msg *owner,
                          int field)
{
    *CM_PUSH(m->arena, &m->lists) = (struct node_list){nodes, owner, field};
    for (size_t i = 0; i < nodes->count; i++)
        for (size_t o = 0; o < nodes->items[i].output.count; o++)
            if (nodes->items[i].output.items[o].size)
                *CM_PUSH(m->arena, &m->names) = nodes->items[i].output.items[o];
}

static void collect_graph(struct mutation *m, struct cm_graph_proto *graph)
{
    *CM_PUSH(m->arena, &m->graphs) = graph;
    collect_nodes(m, &graph->node, &graph->msg, CM_GRAPH_NODE);
    for (size_t i = 0; i < graph->input.count; i++)
        *CM_PUSH(m->arena, &m->names) = graph->input.items[i].name;
    for (size_t i = 0; i < graph->initializer.count; i++)
        *CM_PUSH(m->arena, &m->names) = graph->initializer.items[i].name;
}

static enum cm_status collect(void *arg, const struct cm_message_info *info, struct cm_msg *msg)
{
    struct mutation *m = arg;

    *CM_PUSH(m->arena, &m->messages) = (struct message){info, msg};
    if (info == &cm_graph_info) {
        collect_graph(m, (struct cm_graph_proto *)msg);
    } else if (info == &cm_function_info) {
        struct cm_function_proto *function = (struct cm_function_proto *)msg;
        collect_nodes(m, &function->node, msg, CM_FUNCTION_NODE);
        for (size_t i = 0; i < function->input.count; i++)
            *CM_PUSH(m->arena, &m->names) = function->input.items[i];
    } else if (info == &cm_node_info) {
        *CM_PUSH(m->arena, &m->nodes) = (struct cm_node_proto *)msg;
    } else if (info == &cm_tensor_info) {
        *CM_PUSH(m->arena, &m->tensors) = (struct cm_tensor_proto *)msg;
    } else if (info == &cm_value_info_info) {
        *CM_PUSH(m->arena, &m->infos) = (struct cm_value_info_proto *)msg;
    }
    return CM_OK;
}

/* ---- the model itself ---- */

static bool mutate_versions(struct mutation *m)
{
    struct cm_model_proto *model = m->model;
    const size_t what = chance_draw(m->chance, 4);

    if (what == 0) {
        model->ir_version = chance_percent(m->chance, 90) ? 3 + (int64_t)chance_draw(m->chance, 11)
                                                          : chance_number(m->chance);
        cm_msg_set(&model->msg, CM_MODEL_IR_VERSION);
    } else if (what == 1) { /* some targets take their options from it */
        model->model_version = chance_percent(m->chance, 80)
                                   ? (int64_t)chance_draw(m->chance, 1 << 18)
                                   : chance_number(m->chance);
        cm_msg_set(&model->msg, CM_MODEL_MODEL_VERSION);
    } else if (model->opset_import.count) {
        struct cm_opset_proto *opset =
            &model->opset_import.items[chance_draw(m->chance, model->opset_import.count)];
        const int64_t newest = cm_schema_newest_opset(opset->domain);
        opset->version = newest > 0 && chance_percent(m->chance, 95)
                             ? 1 + (int64_t)chance_draw(m->chance, (size_t)newest)
                             : chance_number(m->chance);
        cm_msg_set(&opset->msg, CM_OPSET_VERSION);
    } else {
        return false;
    }
    return true;
}

/* Outputs and inputs of graphs: twice, gone, of another name, one more. */
static bool mutate_interface(struct mutation *m)
{
    if (!m->graphs.count)
        return false;
    struct cm_graph_proto *graph = m->graphs.items[chance_draw(m->chance, m->graphs.count)];
    const bool outputs = chance_percent(m->chance, 60);
    struct cm_value_infos *list = outputs ? &graph->output : &graph->input;
    const size_t what = chance_draw(m->chance, 3);

    if (what == 0 && list->count) {
        list->count--;
    } else if (what == 1 && list->count) {
        struct cm_value_info_proto *info = &list->items[chance_draw(m->chance, list->count)];
        info->name = mutation_name(m);
        cm_msg_set(&info->msg, CM_VALUE_INFO_NAME);
        return true;
    } else {
        struct cm_value_info_proto *info = CM_LIST_ADD(m->arena, list);
        if (list->count > 1 && chance_percent(m->chance, 60))
            *info = list->items[chance_draw(m->chance, list->count - 1)];
        info->name =
            outputs || chance_percent(m->chance, 20) ? mutation_name(m) : mutation_new_name(m);
        cm_msg_set(&info->msg, CM_VALUE_INFO_NAME);
        if (!info->type) {
            info->type = mutation_type(m);
            cm_msg_set(&info->msg, CM_VALUE_INFO_TYPE);
        }
    }
    cm_msg_set(&graph->msg, outputs ? CM_GRAPH_OUTPUT : CM_GRAPH_INPUT);
    return true;
}

/* Initializers: gone, made an input, one more. */
static bool mutate_initializers(struct mutation *m)
{
    if (!m->graphs.count)
        return false;
    struct cm_graph_proto *graph = m->graphs.items[chance_draw(m->chance, m->graphs.count)];

    if (graph->initializer.count && chance_percent(m->chance, 40)) {
        graph->initializer.count--;
    } else {
        struct cm_tensor_proto *tensor = CM_LIST_ADD(m->arena, &graph->initializer);
        tensor->name = chance_percent(m->chance, 15) ? mutation_name(m) : mutation_new_name(m);
        cm_msg_set(&tensor->msg, CM_TENSOR_NAME);
        mutation_fill_tensor(m, tensor, mutation_dtype(m), false);
    }
    cm_msg_set(&graph->msg, CM_GRAPH_INITIALIZER);
    return true;
}

/* ---- all of it ---- */

static void change_once(struct mutation *m)
{
    static bool (*const changes[])(struct mutation *) = {
        mutate_operator, mutate_attribute, mutate_attribute,  mutate_attribute,
        mutate_operand,  mutate_operand,   mutate_nodes,      mutate_new_node,
        mutate_tensor,   mutate_tensor,    mutate_tensor,     mutate_info,
        mutate_info,     mutate_versions,  mutate_interface,  mutate_initializers,
        mutate_field,    mutate_field,     mutate_typed_node, mutate_typed_node,
        mutate_outline,
    };

    m->lists.count = m->nodes.count = m->graphs.count = m->tensors.count = 0;
    m->infos.count = m->names.count = m->messages.count = 0;
    if (cm_message_walk(&cm_model_info, m->model, collect, m))
        return;
    for (int tries = 0; tries < 8; tries++)
        if (changes[chance_draw(m->chance, CM_COUNT(changes))](m))
            return;
}

/* A few items of a list that follow each other: with all of them, inputs double again and again. */
struct few {
    size_t from, to;
};

static struct few some_of(struct mutation *m, size_t count)
{
    enum { MOST = 8 };
    const size_t from = count > MOST ? chance_draw(m->chance, count - MOST + 1) : 0;

    return (struct few){from, count > MOST ? from + MOST : count};
}

/* Nodes of another model, their names with them: they meet where names agree. */
static void take_nodes(struct mutation *m, const struct cm_model_proto *other)
{
    struct cm_graph_proto *graph = m->model->graph;
    const struct cm_graph_proto *from = other->graph;

    if (!graph || !from)
        return;
    const struct few nodes = some_of(m, from->node.count);
    const struct few initializers = some_of(m, from->initializer.count);
    const struct few outputs = some_of(m, from->output.count);

    for (size_t i = nodes.from; i < nodes.to; i++) {
        *CM_LIST_ADD(m->arena, &graph->node) = from->node.items[i];
        cm_msg_set(&graph->msg, CM_GRAPH_NODE);
    }
    for (size_t i = initializers.from; i < initializers.to; i++) {
        *CM_LIST_ADD(m->arena, &graph->initializer) = from->initializer.items[i];
        cm_msg_set(&graph->msg, CM_GRAPH_INITIALIZER);
    }
    for (size_t i = outputs.from; i < outputs.to; i++) {
        *CM_LIST_ADD(m->arena, &graph->output) = from->output.items[i];
        cm_msg_set(&graph->msg, CM_GRAPH_OUTPUT);
    }
}

struct cm_str mutate_model(struct chance *c, struct cm_str bytes)
{
    struct cm_model_proto model = {0}, other = {0};
    struct mutation m = {.arena = c->arena, .chance = c, .model = &model};
    struct cm_error err = {0};
    struct cm_str written;

    if (cm_decode(&cm_model_info, bytes, c->arena, &model, &err))
        return CM_STR_NONE;
    if (c->other.size && !cm_decode(&cm_model_info, c->other, c->arena, &other, &err))
        take_nodes(&m, &other);
    size_t changes = 1;
    while (changes < 6 && chance_percent(c, 45))
        changes++;
    while (changes-- > 0)
        change_once(&m);
    if (cm_encode(&cm_model_info, &model, c->arena, &written, &err) || !written.size)
        return CM_STR_NONE;
    return written;
}
