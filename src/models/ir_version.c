/* What IR version a model needs. */
// SPDX-License-Identifier: Apache-2.0
#include "models/ir_version.h"

#include "graph/registry.h"
#include "onnx/descriptor.h"
#include "tensor/dtype.h"
#include "versions/portable.h"

enum { IR_WITH_OPSETS = 3, IR_OF_CONSTANTS = 4 };

static int64_t ir_of_opset(int64_t opset)
{
    static const struct {
        int opset, ir;
    } steps[] = {{12, 7}, {11, 6}, {10, 5}, {9, 4}};

    if (opset >= 15)
        return cm_ir_of_opset(opset);
    for (size_t i = 0; i < CM_COUNT(steps); i++)
        if (opset >= steps[i].opset)
            return steps[i].ir;
    return IR_WITH_OPSETS;
}

/* Fields that came with an IR version. */
static const struct {
    const struct cm_message_info *info;
    int field, ir;
} newer[] = {
    {&cm_model_info, CM_MODEL_TRAINING_INFO, 7},
    {&cm_model_info, CM_MODEL_FUNCTIONS, 8},
    {&cm_model_info, CM_MODEL_CONFIGURATION, 11},
    {&cm_function_info, CM_FUNCTION_ATTRIBUTE_PROTO, 9},
    {&cm_function_info, CM_FUNCTION_VALUE_INFO, 10},
    {&cm_function_info, CM_FUNCTION_OVERLOAD, 10},
    {&cm_function_info, CM_FUNCTION_METADATA_PROPS, 10},
    {&cm_graph_info, CM_GRAPH_QUANTIZATION_ANNOTATION, 5},
    {&cm_graph_info, CM_GRAPH_SPARSE_INITIALIZER, 6},
    {&cm_graph_info, CM_GRAPH_METADATA_PROPS, 10},
    {&cm_node_info, CM_NODE_OVERLOAD, 10},
    {&cm_node_info, CM_NODE_METADATA_PROPS, 10},
    {&cm_node_info, CM_NODE_DEVICE_CONFIGURATIONS, 11},
    {&cm_tensor_info, CM_TENSOR_METADATA_PROPS, 10},
    {&cm_value_info_info, CM_VALUE_INFO_METADATA_PROPS, 10},
    {&cm_type_info, CM_TYPE_SPARSE_TENSOR_TYPE, 8},
    {&cm_type_info, CM_TYPE_OPTIONAL_TYPE, 8},
};

static int ir_of_dtype(int32_t type)
{
    return cm_dtype_is_valid(type) ? cm_dtype_info((enum cm_dtype)type)->since_ir : 0;
}

static enum cm_status find_newest(void *arg, const struct cm_message_info *info, struct cm_msg *msg)
{
    int *ir = arg, found = 0;

    for (size_t i = 0; i < CM_COUNT(newer); i++)
        if (newer[i].info == info && cm_msg_has(msg, newer[i].field) && newer[i].ir > *ir)
            *ir = newer[i].ir;
    if (info == &cm_tensor_info)
        found = ir_of_dtype(((struct cm_tensor_proto *)msg)->data_type);
    else if (info == &cm_type_info && ((struct cm_type_proto *)msg)->tensor_type)
        found = ir_of_dtype(((struct cm_type_proto *)msg)->tensor_type->elem_type);
    if (found > *ir)
        *ir = found;
    return CM_OK;
}

/* Are all initializers inputs too? */
static bool lists_initializers(struct cm_arena *arena, const struct cm_graph_proto *graph)
{
    struct cm_map inputs = {0};

    for (size_t i = 0; i < graph->input.count; i++)
        cm_map_insert(&inputs, arena, graph->input.items[i].name, NULL);
    for (size_t i = 0; i < graph->initializer.count; i++)
        if (!cm_map_find(&inputs, graph->initializer.items[i].name))
            return false;
    return true;
}

static void unlist_initializers(struct cm_arena *arena, struct cm_graph_proto *graph)
{
    struct cm_map constants = {0};

    for (size_t i = 0; i < graph->initializer.count; i++)
        cm_map_insert(&constants, arena, graph->initializer.items[i].name, NULL);
    CM_LIST_KEEP(graph, CM_GRAPH_INPUT, &graph->input,
                 !cm_map_find(&constants, graph->input.items[i].name));
}

enum cm_status cm_fit_ir_version(struct cm_arena *arena, struct cm_model_proto *model,
                                 const struct cm_opsets *before, struct cm_error *err)
{
    const int64_t old = model->ir_version;
    int64_t fits = old;

    for (size_t i = 0; i < before->count; i++) {
        if (cm_domain_plain(before->items[i].domain).size)
            continue;
        for (size_t k = 0; k < model->opset_import.count; k++) {
            const struct cm_opset_proto *now = &model->opset_import.items[k];
            if (cm_domain_plain(now->domain).size)
                continue;
            const int64_t usual = ir_of_opset(now->version);
            if (now->version > before->items[i].version ? usual > old : usual < old)
                fits = usual;
        }
    }
    if (fits < old) {
        int needed = lists_initializers(arena, model->graph) ? IR_WITH_OPSETS : IR_OF_CONSTANTS;
        if (cm_message_walk(&cm_model_info, model, find_newest, &needed) != CM_OK)
            return cm_fail(err, CM_LIMIT, "messages nest too deep");
        fits = fits < needed ? needed : fits;
        fits = fits > old ? old : fits;
    }
    if (old < IR_OF_CONSTANTS &&
        (fits >= IR_OF_CONSTANTS || !lists_initializers(arena, model->graph))) {
        fits = fits < IR_OF_CONSTANTS ? IR_OF_CONSTANTS : fits;
        unlist_initializers(arena, model->graph);
    }
    if (fits != old) {
        model->ir_version = fits;
        cm_msg_set(&model->msg, CM_MODEL_IR_VERSION);
    }
    return CM_OK;
}
