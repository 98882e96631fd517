/* Builds the sample model by hand. */
// SPDX-License-Identifier: Apache-2.0
#include "check/sample_model.h"

#include "tensor/dtype.h"

struct cm_strs sample_words(struct cm_arena *arena, const char *words)
{
    struct cm_strs list = {NULL, 0};

    while (*words) {
        const size_t size = strcspn(words, " ");
        const bool empty = size == 1 && words[0] == '-';

        *CM_LIST_ADD(arena, &list) = (struct cm_str){words, empty ? 0 : size};
        words += size;
        words += *words == ' ';
    }
    return list;
}

struct cm_node_proto *sample_node(struct cm_arena *arena, struct cm_nodes *nodes, const char *name,
                                  const char *op, const char *inputs, const char *outputs)
{
    struct cm_node_proto *node = CM_LIST_ADD(arena, nodes);

    node->name = cm_str(name);
    node->op_type = cm_str(op);
    node->input = sample_words(arena, inputs);
    node->output = sample_words(arena, outputs);
    return node;
}

struct cm_attribute_proto *sample_attribute(struct cm_arena *arena, struct cm_node_proto *node,
                                            const char *name, int32_t type)
{
    struct cm_attribute_proto *attribute = CM_LIST_ADD(arena, &node->attribute);

    attribute->name = cm_str(name);
    attribute->type = type;
    cm_msg_set(&attribute->msg, CM_ATTRIBUTE_TYPE);
    return attribute;
}

void sample_tensor(struct cm_arena *arena, struct cm_tensor_proto *tensor, const char *name,
                   int64_t size)
{
    tensor->name = cm_str(name);
    tensor->data_type = CM_FLOAT;
    *CM_LIST_ADD(arena, &tensor->dims) = size;
    tensor->raw_data = (struct cm_str){cm_arena_alloc(arena, (size_t)size * 4), (size_t)size * 4};
    cm_msg_set(&tensor->msg, CM_TENSOR_RAW_DATA);
}

void sample_value(struct cm_arena *arena, struct cm_value_infos *list, const char *name,
                  int32_t elem_type, int rank, int64_t size)
{
    struct cm_value_info_proto *value = CM_LIST_ADD(arena, list);

    value->name = cm_str(name);
    value->type = CM_NEW(arena, struct cm_type_proto);
    value->type->tensor_type = CM_NEW(arena, struct cm_tensor_type_proto);
    cm_msg_set(&value->type->msg, CM_TYPE_TENSOR_TYPE);
    value->type->tensor_type->elem_type = elem_type;
    cm_msg_set(&value->type->tensor_type->msg, CM_TENSOR_TYPE_ELEM_TYPE);
    value->type->tensor_type->shape = CM_NEW(arena, struct cm_shape_proto);
    for (int i = 0; i < rank; i++) {
        struct cm_dim_proto *dim = CM_LIST_ADD(arena, &value->type->tensor_type->shape->dim);

        dim->dim_value = size;
        cm_msg_set(&dim->msg, CM_DIM_VALUE);
    }
}

void sample_entry(struct cm_arena *arena, struct cm_entries *list, const char *key,
                  const char *value)
{
    struct cm_entry_proto *entry = CM_LIST_ADD(arena, list);

    entry->key = cm_str(key);
    entry->value = cm_str(value);
    cm_msg_set(&entry->msg, CM_ENTRY_KEY);
    cm_msg_set(&entry->msg, CM_ENTRY_VALUE);
}

void sample_opset(struct cm_arena *arena, struct cm_opsets *list, const char *domain,
                  int64_t version)
{
    struct cm_opset_proto *opset = CM_LIST_ADD(arena, list);

    opset->domain = cm_str(domain);
    opset->version = version;
}

static void add_constant(struct cm_arena *arena, struct cm_nodes *nodes, const char *name,
                         const char *output)
{
    struct cm_node_proto *node = sample_node(arena, nodes, name, "Constant", "", output);
    struct cm_attribute_proto *value = sample_attribute(arena, node, "value", CM_ATTR_TENSOR);

    value->t = CM_NEW(arena, struct cm_tensor_proto);
    sample_tensor(arena, value->t, "", 2);
    cm_msg_set(&value->msg, CM_ATTRIBUTE_T);
}

static void add_branch(struct cm_arena *arena, struct cm_node_proto *node, const char *name,
                       const char *output)
{
    struct cm_attribute_proto *attribute = sample_attribute(arena, node, name, CM_ATTR_GRAPH);

    attribute->g = CM_NEW(arena, struct cm_graph_proto);
    cm_msg_set(&attribute->msg, CM_ATTRIBUTE_G);
    attribute->g->name = cm_str(name);
    sample_node(arena, &attribute->g->node, "", "Relu", "h", output);
    sample_value(arena, &attribute->g->output, output, CM_FLOAT, 1, 2);
}

static void add_nodes(struct cm_arena *arena, struct cm_graph_proto *graph)
{
    struct cm_node_device_proto *use;

    sample_node(arena, &graph->node, "add", "Add", "x w", "h");
    use = CM_LIST_ADD(arena, &graph->node.items[0].device_configurations);
    use->configuration_id = cm_str("pair");
    CM_LIST_ADD(arena, &use->sharding_spec)->tensor_name = cm_str("h");
    add_constant(arena, &graph->node, "const", "k");
    struct cm_node_proto *branch = sample_node(arena, &graph->node, "if", "If", "c", "i");
    add_branch(arena, branch, "then_branch", "then");
    add_branch(arena, branch, "else_branch", "else");
    sample_node(arena, &graph->node, "call", "F", "h", "f")->domain = cm_str("local");
    sample_node(arena, &graph->node, "sum", "Sum", "k i f", "y");
}

static struct cm_graph_proto *make_graph(struct cm_arena *arena)
{
    struct cm_graph_proto *graph = CM_NEW(arena, struct cm_graph_proto);
    struct cm_sparse_proto *sparse = CM_LIST_ADD(arena, &graph->sparse_initializer);

    graph->name = cm_str("g");
    sample_value(arena, &graph->input, "x", CM_FLOAT, 1, 2);
    sample_value(arena, &graph->input, "c", CM_BOOL, 0, 0);
    sample_value(arena, &graph->output, "y", CM_FLOAT, 1, 2);
    sample_value(arena, &graph->value_info, "h", CM_FLOAT, 1, 2);
    sample_tensor(arena, CM_LIST_ADD(arena, &graph->initializer), "w", 2);
    sparse->values = CM_NEW(arena, struct cm_tensor_proto);
    sample_tensor(arena, sparse->values, "s", 1);
    sparse->indices = CM_NEW(arena, struct cm_tensor_proto);
    sample_tensor(arena, sparse->indices, "", 1);
    sparse->indices->data_type = CM_INT64;
    sparse->indices->raw_data = (struct cm_str){"\1\0\0\0\0\0\0\0", 8};
    *CM_LIST_ADD(arena, &sparse->dims) = 4;
    struct cm_annotation_proto *annotation = CM_LIST_ADD(arena, &graph->quantization_annotation);
    annotation->tensor_name = cm_str("h");
    sample_entry(arena, &annotation->quant_parameter_tensor_names, "SCALE_TENSOR", "w");
    add_nodes(arena, graph);
    return graph;
}

static void add_function(struct cm_arena *arena, struct cm_model_proto *model)
{
    struct cm_function_proto *function = CM_LIST_ADD(arena, &model->functions);

    function->name = cm_str("F");
    function->domain = cm_str("local");
    cm_msg_set(&function->msg, CM_FUNCTION_DOMAIN);
    function->input = sample_words(arena, "a");
    function->output = sample_words(arena, "b");
    sample_opset(arena, &function->opset_import, "", 21);
    sample_opset(arena, &function->opset_import, "local", 1);
    sample_node(arena, &function->node, "relu", "Relu", "a", "b");
}

static struct cm_graph_proto *make_step(struct cm_arena *arena)
{
    struct cm_graph_proto *graph = CM_NEW(arena, struct cm_graph_proto);
    struct cm_node_proto *node = sample_node(arena, &graph->node, "grad", "Gradient", "w x", "dw");

    graph->name = cm_str("step");
    cm_msg_set(&graph->msg, CM_GRAPH_NAME);
    node->domain = cm_str("ai.onnx.preview.training");
    sample_attribute(arena, node, "xs", CM_ATTR_STRINGS)->strings = sample_words(arena, "w");
    sample_attribute(arena, node, "zs", CM_ATTR_STRINGS)->strings = sample_words(arena, "x");
    struct cm_attribute_proto *y = sample_attribute(arena, node, "y", CM_ATTR_STRING);
    y->s = cm_str("h");
    cm_msg_set(&y->msg, CM_ATTRIBUTE_S);
    sample_node(arena, &graph->node, "sub", "Sub", "w dw", "w_next");
    sample_value(arena, &graph->output, "w_next", CM_FLOAT, 1, 2);
    sample_tensor(arena, CM_LIST_ADD(arena, &graph->initializer), "rate", 2);
    return graph;
}

static void add_training(struct cm_arena *arena, struct cm_model_proto *model)
{
    struct cm_training_proto *training = CM_LIST_ADD(arena, &model->training_info);

    training->initialization = CM_NEW(arena, struct cm_graph_proto);
    training->initialization->name = cm_str("start");
    cm_msg_set(&training->initialization->msg, CM_GRAPH_NAME);
    add_constant(arena, &training->initialization->node, "", "w_first");
    sample_value(arena, &training->initialization->output, "w_first", CM_FLOAT, 1, 2);
    training->algorithm = make_step(arena);
    sample_entry(arena, &training->initialization_binding, "w", "w_first");
    sample_entry(arena, &training->update_binding, "w", "w_next");
}

struct cm_model_proto *sample_model(struct cm_arena *arena)
{
    struct cm_model_proto *model = CM_NEW(arena, struct cm_model_proto);
    struct cm_device_proto *device = CM_LIST_ADD(arena, &model->configuration);

    model->ir_version = 14;
    sample_opset(arena, &model->opset_import, "", 21);
    sample_opset(arena, &model->opset_import, "ai.onnx.preview.training", 1);
    sample_opset(arena, &model->opset_import, "local", 1);
    device->name = cm_str("pair");
    device->num_devices = 2;
    model->graph = make_graph(arena);
    add_function(arena, model);
    add_training(arena, model);
    return model;
}
