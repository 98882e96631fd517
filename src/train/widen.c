/* Models in double precision. */
// SPDX-License-Identifier: Apache-2.0
#include "train/widen.h"

#include "graph/builder.h"
#include "graph/registry.h"
#include "onnx/tensor_data.h"

enum { DEPTH_MAX = 64 };

struct widening {
    struct cm_arena *arena;
    struct cm_external_files *files;
    struct cm_error *err;
};

static bool is_float(int64_t code)
{
    return cm_dtype_is_valid(code) && code != CM_DOUBLE &&
           cm_dtype_info((enum cm_dtype)code)->kind == CM_CLASS_FLOAT;
}

static void drop(void *tensor)
{
    cm_tensor_drop(tensor);
}

static enum cm_status widen_tensor(struct widening *w, struct cm_tensor_proto *proto)
{
    struct cm_tensor narrow;
    struct cm_tensor *wide = CM_NEW(w->arena, struct cm_tensor);
    const struct cm_str name = proto->name;

    if (!is_float(proto->data_type))
        return CM_OK;
    CM_TRY(cm_tensor_proto_load(proto, w->files, &narrow, w->err));
    const enum cm_status status = cm_tensor_new(CM_DOUBLE, &narrow.shape, wide, w->err);
    if (status) {
        cm_tensor_drop(&narrow);
        return status;
    }
    cm_arena_defer(w->arena, drop, wide);
    double *to = wide->data;
    for (int64_t i = 0, n = cm_tensor_count(&narrow); i < n; i++)
        to[i] = cm_tensor_real(&narrow, i);
    cm_tensor_drop(&narrow);
    *proto = (struct cm_tensor_proto){0};
    CM_TRY(cm_tensor_proto_store(proto, w->arena, wide, w->err));
    proto->name = name;
    cm_msg_set(&proto->msg, CM_TENSOR_NAME);
    return CM_OK;
}

static struct cm_type_proto *wide_type(struct widening *w, const struct cm_type_proto *from,
                                       int depth);

/* A sequence or an optional of something. */
static struct cm_wrap_type_proto *wide_wrap(struct widening *w,
                                            const struct cm_wrap_type_proto *from, int depth)
{
    struct cm_wrap_type_proto *wrap = CM_NEW(w->arena, struct cm_wrap_type_proto);

    *wrap = *from;
    if (from->elem_type)
        wrap->elem_type = wide_type(w, from->elem_type, depth);
    return wrap;
}

/* Deeper types than any operator takes stay as they are. */
static struct cm_type_proto *wide_type(struct widening *w, const struct cm_type_proto *from,
                                       int depth)
{
    struct cm_type_proto *type = CM_NEW(w->arena, struct cm_type_proto);

    *type = *from;
    if (from->tensor_type && is_float(from->tensor_type->elem_type)) {
        type->tensor_type = CM_NEW(w->arena, struct cm_tensor_type_proto);
        *type->tensor_type = *from->tensor_type;
        type->tensor_type->elem_type = CM_DOUBLE;
    }
    if (from->sequence_type && depth < DEPTH_MAX)
        type->sequence_type = wide_wrap(w, from->sequence_type, depth + 1);
    if (from->optional_type && depth < DEPTH_MAX)
        type->optional_type = wide_wrap(w, from->optional_type, depth + 1);
    return type;
}

static void widen_type(struct widening *w, struct cm_value_info_proto *info)
{
    if (info->type)
        info->type = wide_type(w, info->type, 0);
}

/* Numbers that an attribute holds become a tensor, in an attribute of this name. */
static enum cm_status widen_constant(struct widening *w, struct cm_attribute_proto *attribute,
                                     const char *name)
{
    const bool single = cm_str_is(attribute->name, "value_float");
    const size_t count = single ? 1 : attribute->floats.count;
    const struct cm_shape shape = single ? CM_SCALAR : CM_SHAPE((int64_t)count);
    double *values = CM_NEW_ARRAY(w->arena, double, count);

    for (size_t i = 0; i < count; i++)
        values[i] = (double)(single ? attribute->f : attribute->floats.items[i]);
    const struct cm_tensor tensor = cm_tensor_borrow(CM_DOUBLE, &shape, values);
    *attribute = cm_attr_int(w->arena, name, 0);
    attribute->type = CM_ATTR_TENSOR;
    attribute->t = CM_NEW(w->arena, struct cm_tensor_proto);
    cm_msg_clear(&attribute->msg, CM_ATTRIBUTE_I);
    cm_msg_set(&attribute->msg, CM_ATTRIBUTE_T);
    return cm_tensor_proto_store(attribute->t, w->arena, &tensor, w->err);
}

static enum cm_status widen_graph(struct widening *w, struct cm_graph_proto *graph, int depth);

static enum cm_status widen_attribute(struct widening *w, const struct cm_node_proto *node,
                                      struct cm_attribute_proto *attribute, int depth)
{
    static const char *const types[] = {"to", "dtype", "output_datatype"};

    if (attribute->g) {
        struct cm_graph_proto *copy = CM_NEW(w->arena, struct cm_graph_proto);
        *copy = *attribute->g;
        attribute->g = copy;
        return widen_graph(w, copy, depth + 1);
    }
    if (attribute->t) {
        struct cm_tensor_proto *copy = CM_NEW(w->arena, struct cm_tensor_proto);
        *copy = *attribute->t;
        attribute->t = copy;
        return widen_tensor(w, copy);
    }
    if (attribute->tp)
        attribute->tp = wide_type(w, attribute->tp, 0);
    if (cm_builtin_op(node)->is_constant &&
        (cm_str_is(attribute->name, "value_float") || cm_str_is(attribute->name, "value_floats")))
        return widen_constant(w, attribute, "value");
    for (size_t i = 0; i < CM_COUNT(types); i++)
        if (cm_str_is(attribute->name, types[i]) && is_float(attribute->i))
            attribute->i = CM_DOUBLE;
    return CM_OK;
}

/* What makes floats unless it is told otherwise is told. */
static enum cm_status set_default(struct widening *w, struct cm_node_proto *node)
{
    const char *name = cm_builtin_op(node)->zero_attribute;

    if (name && node->attribute.count == 0) {
        const float zero = 0;
        struct cm_attribute_proto value = cm_attr_floats(w->arena, name, 1, &zero);
        CM_TRY(widen_constant(w, &value, name));
        *CM_LIST_ADD(w->arena, &node->attribute) = value;
    }
    return CM_OK;
}

static enum cm_status widen_nodes(struct widening *w, struct cm_nodes *nodes, int depth)
{
    struct cm_node_proto *items = CM_NEW_ARRAY(w->arena, struct cm_node_proto, nodes->count);

    if (depth > DEPTH_MAX)
        return cm_fail(w->err, CM_LIMIT, "graphs nest deeper than %d", DEPTH_MAX);
    for (size_t n = 0; n < nodes->count; n++) {
        struct cm_node_proto *node = &items[n];
        *node = nodes->items[n];
        struct cm_attribute_proto *attributes =
            CM_NEW_ARRAY(w->arena, struct cm_attribute_proto, node->attribute.count);
        for (size_t i = 0; i < node->attribute.count; i++) {
            attributes[i] = node->attribute.items[i];
            CM_TRY(widen_attribute(w, node, &attributes[i], depth));
        }
        node->attribute.items = attributes;
        CM_TRY(set_default(w, node));
    }
    nodes->items = items;
    return CM_OK;
}

static enum cm_status widen_graph(struct widening *w, struct cm_graph_proto *graph, int depth)
{
    struct cm_tensor_proto *tensors =
        CM_NEW_ARRAY(w->arena, struct cm_tensor_proto, graph->initializer.count);
    struct cm_value_info_proto *inputs =
        CM_NEW_ARRAY(w->arena, struct cm_value_info_proto, graph->input.count);
    struct cm_value_info_proto *outputs =
        CM_NEW_ARRAY(w->arena, struct cm_value_info_proto, graph->output.count);

    for (size_t i = 0; i < graph->initializer.count; i++) {
        tensors[i] = graph->initializer.items[i];
        CM_TRY(widen_tensor(w, &tensors[i]));
    }
    for (size_t i = 0; i < graph->input.count; i++) {
        inputs[i] = graph->input.items[i];
        widen_type(w, &inputs[i]);
    }
    for (size_t i = 0; i < graph->output.count; i++) {
        outputs[i] = graph->output.items[i];
        widen_type(w, &outputs[i]);
    }
    graph->initializer.items = tensors;
    graph->input.items = inputs;
    graph->output.items = outputs;
    graph->value_info.count = 0; /* hints of narrower types */
    return widen_nodes(w, &graph->node, depth);
}

enum cm_status cm_widen(struct cm_arena *arena, const struct cm_model_file *file,
                        struct cm_model_proto *out, struct cm_error *err)
{
    struct widening w = {arena, file->files, err};

    if (!file->model.graph)
        return cm_fail(err, CM_BAD_MODEL, "the model has no graph");
    *out = file->model;
    out->graph = CM_NEW(arena, struct cm_graph_proto);
    *out->graph = *file->model.graph;
    CM_TRY(widen_graph(&w, out->graph, 0));
    out->functions.items =
        CM_NEW_ARRAY(arena, struct cm_function_proto, file->model.functions.count);
    for (size_t i = 0; i < out->functions.count; i++) {
        out->functions.items[i] = file->model.functions.items[i];
        CM_TRY(widen_nodes(&w, &out->functions.items[i].node, 0));
    }
    return CM_OK;
}
