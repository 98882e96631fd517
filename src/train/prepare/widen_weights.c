/* Weights that are kept in 16 bits, trained as floats. What frameworks call master weights becomes
 * the initializer; a Cast makes of it what the graph reads. */
// SPDX-License-Identifier: Apache-2.0
#include "train/prepare/preparation.h"

#include "onnx/tensor_data.h"
#include "tensor/half.h"

enum { DEPTH_MAX = 64, PIECE = 1 << 20 };

/* Floats, from what the file has. */
struct widened {
    struct cm_contents contents;
    struct cm_tensor_proto from;
    struct cm_external_files *files;
};

static enum cm_status read_wide(const struct cm_contents *self, uint64_t offset, size_t size,
                                void *out, struct cm_error *err)
{
    const struct widened *widened = (const struct widened *)self;
    struct cm_tensor narrow;

    CM_TRY(cm_tensor_proto_load(&widened->from, widened->files, &narrow, err));
    cm_narrow_load(narrow.type, narrow.data, (int64_t)(offset / sizeof(float)),
                   (int64_t)(size / sizeof(float)), out);
    cm_tensor_drop(&narrow);
    return CM_OK;
}

static enum cm_status widen(struct cm_preparation *p, struct cm_tensor_proto *tensor)
{
    struct widened *widened = CM_NEW(p->arena, struct widened);
    struct cm_shape shape;

    *widened = (struct widened){
        .contents = {.read = read_wide, .piece = PIECE}, .from = *tensor, .files = p->file->files};
    CM_TRY(cm_tensor_proto_check(tensor, p->err));
    CM_TRY(cm_tensor_proto_shape(tensor, &shape, p->err));
    return cm_tensor_proto_store_later(tensor, p->arena, CM_FLOAT, &shape, &widened->contents,
                                       p->err);
}

static struct cm_node_proto cast_node(struct cm_preparation *p, struct cm_str from,
                                      struct cm_str to, int64_t dtype)
{
    struct cm_node_proto node = {.op_type = CM_STR("Cast"), .name = to};

    *CM_LIST_ADD(p->arena, &node.input) = from;
    *CM_LIST_ADD(p->arena, &node.output) = to;
    *CM_LIST_ADD(p->arena, &node.attribute) = cm_attr_int(p->arena, "to", dtype);
    cm_msg_set(&node.msg, CM_NODE_INPUT);
    cm_msg_set(&node.msg, CM_NODE_OUTPUT);
    cm_msg_set(&node.msg, CM_NODE_NAME);
    cm_msg_set(&node.msg, CM_NODE_OP_TYPE);
    cm_msg_set(&node.msg, CM_NODE_ATTRIBUTE);
    return node;
}

/* Nodes read what is cast; casts: names to places in `names`, from 1. */
static void redirect(struct cm_preparation *p, struct cm_graph_proto *graph,
                     const struct cm_map *casts, const struct cm_str *names, int depth)
{
    for (size_t i = 0; i < graph->node.count; i++) {
        struct cm_node_proto *node = &graph->node.items[i];
        struct cm_graph_proto *body;

        for (size_t k = 0; k < node->input.count; k++) {
            const uint64_t cast = cm_map_get(casts, node->input.items[k], 0);

            if (cast)
                cm_node_proto_read(p->arena, node, k, names[cast - 1]);
        }
        for (size_t b = 0; depth < DEPTH_MAX && (body = cm_node_subgraph(node, b)); b++)
            redirect(p, body, casts, names, depth + 1);
    }
}

/* A message that is not marked is written with the bytes that it was read from. */
static void declare_float(struct cm_preparation *p, struct cm_value_info_proto *info)
{
    struct cm_tensor_type_proto *tensor = info->type->tensor_type;

    tensor->elem_type = CM_FLOAT;
    cm_msg_set(&tensor->msg, CM_TENSOR_TYPE_ELEM_TYPE);
    cm_msg_set(&info->type->msg, CM_TYPE_TENSOR_TYPE);
    cm_msg_set(&info->msg, CM_VALUE_INFO_TYPE);
    cm_msg_set(&p->model->graph->msg, CM_GRAPH_VALUE_INFO);
}

static void retype(const struct cm_value_infos *list, struct cm_preparation *p,
                   const struct cm_map *casts, const char *role)
{
    for (size_t i = 0; i < list->count; i++) {
        struct cm_value_info_proto *info = &list->items[i];

        if (!cm_map_get(casts, info->name, 0))
            continue;
        if (role)
            cm_preparation_block(p, "'%.*s' cannot be trained as float: it is %s of the model",
                                 CM_STR_FMT(info->name), role);
        else if (info->type && info->type->tensor_type)
            declare_float(p, info);
    }
}

/* ONNX's Gradient takes no inputs of bfloat16, and the inputs of a model are its users'. */
static void refuse_inputs(struct cm_preparation *p, const struct cm_map *casts)
{
    const struct cm_value_infos *inputs = &p->model->graph->input;

    for (size_t i = 0; i < inputs->count; i++) {
        const struct cm_type_proto *type = inputs->items[i].type;

        if (type && type->tensor_type && type->tensor_type->elem_type == CM_BFLOAT16 &&
            !cm_map_get(casts, inputs->items[i].name, 0))
            cm_preparation_block(p,
                                 "input '%.*s' is bfloat16, which Gradient does not take; export "
                                 "the model with a float input and a Cast behind it",
                                 CM_STR_FMT(inputs->items[i].name));
    }
}

/* Those of an imported training, whose optimizer has floats; and bfloat16, of which Gradient takes
 * none, and in which most updates would be lost: it has 8 bits, an update often needs more. */
static bool is_widened(const struct cm_preparation *p, const struct cm_tensor_proto *tensor)
{
    const enum cm_dtype dtype = (enum cm_dtype)tensor->data_type;

    if (p->options->plan)
        return cm_map_get(&p->planned, tensor->name, 0) && cm_wide_type(dtype) != dtype;
    return dtype == CM_BFLOAT16 && tensor->dims.count &&
           !cm_preparation_matches(p, p->freeze, tensor->name) &&
           (!p->train || cm_preparation_matches(p, p->train, tensor->name));
}

enum cm_status cm_widen_weights(struct cm_preparation *p)
{
    struct cm_graph_proto *graph = p->model->graph;
    struct cm_node_proto *nodes =
        CM_NEW_ARRAY(p->arena, struct cm_node_proto, graph->initializer.count + graph->node.count);
    struct cm_str *names = CM_NEW_ARRAY(p->arena, struct cm_str, graph->initializer.count);
    struct cm_map casts = {0};
    size_t count = 0;

    for (size_t i = 0; i < graph->initializer.count; i++) {
        struct cm_tensor_proto *tensor = &graph->initializer.items[i];
        const enum cm_dtype dtype = (enum cm_dtype)tensor->data_type;

        if (!is_widened(p, tensor))
            continue;
        CM_TRY(widen(p, tensor));
        names[count] =
            cm_preparation_name(p, "%.*s.%s", CM_STR_FMT(tensor->name), cm_dtype_name(dtype));
        nodes[count] = cast_node(p, tensor->name, names[count], dtype);
        *cm_map_insert(&casts, p->arena, tensor->name, NULL) = ++count;
    }
    if (!count)
        return CM_OK;
    refuse_inputs(p, &casts);
    retype(&graph->value_info, p, &casts, NULL);
    retype(&graph->input, p, &casts, "an input");
    retype(&graph->output, p, &casts, "an output");
    redirect(p, graph, &casts, names, 0);
    if (graph->node.count) /* an output may be an initializer */
        memcpy(nodes + count, graph->node.items, graph->node.count * sizeof *nodes);
    graph->node.items = nodes;
    graph->node.count += count;
    cm_msg_set(&graph->msg, CM_GRAPH_NODE);
    cm_msg_set(&graph->msg, CM_GRAPH_INITIALIZER);
    cm_preparation_note(p, "%zu %s of 16 bits %s trained as %s, which the graph casts", count,
                        count == 1 ? "weight" : "weights", count == 1 ? "is" : "are",
                        count == 1 ? "a float" : "floats");
    return CM_OK;
}
