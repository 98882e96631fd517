/* Weights that are not initializers of the graph: in Constant nodes, in attributes of classical
 * models, in nested graphs. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api.h"

#include "graph/registry.h"
#include "onnx/tensor_data.h"

static void add_to(struct cameo_weights *weights, size_t tensors, uint64_t count, uint64_t bytes)
{
    weights->tensor_count += tensors;
    weights->count = count > UINT64_MAX - weights->count ? UINT64_MAX : weights->count + count;
    weights->bytes = bytes > UINT64_MAX - weights->bytes ? UINT64_MAX : weights->bytes + bytes;
}

static void add_tensor(struct cameo_weights *weights, const struct cm_tensor_proto *tensor)
{
    struct cm_shape shape;
    uint64_t bytes = 0;

    if (cm_tensor_proto_shape(tensor, &shape, NULL) != CM_OK)
        return;
    const int64_t elements = cm_shape_elements(&shape);
    if (cm_tensor_proto_bytes(tensor, &bytes, NULL) != CM_OK)
        bytes = 0;
    add_to(weights, 1, elements > 0 ? (uint64_t)elements : 0, bytes);
}

/* Of sparse ones what is stored. */
static void add_sparse(struct cameo_weights *weights, const struct cm_sparse_proto *sparse)
{
    if (sparse->values)
        add_tensor(weights, sparse->values);
}

/* What a Constant gives: a tensor, or a list of numbers. */
static void add_constant(struct cameo_weights *weights, const struct cm_attribute_proto *attribute)
{
    if (attribute->t)
        add_tensor(weights, attribute->t);
    if (attribute->sparse_tensor)
        add_sparse(weights, attribute->sparse_tensor);
    if (attribute->floats.count)
        add_to(weights, 1, attribute->floats.count, attribute->floats.count * sizeof(float));
    if (attribute->ints.count)
        add_to(weights, 1, attribute->ints.count, attribute->ints.count * sizeof(int64_t));
}

/* Thresholds and leaves of trees, coefficients, support vectors: floats, as a list or a tensor.
 * Integers are the structure of a tree, or the names of classes. */
static void add_learnt(struct cameo_weights *weights, const struct cm_attribute_proto *attribute)
{
    if (attribute->floats.count)
        add_to(weights, 1, attribute->floats.count, attribute->floats.count * sizeof(float));
    if (attribute->t && cm_dtype_is_valid(attribute->t->data_type) &&
        cm_dtype_info((enum cm_dtype)attribute->t->data_type)->kind == CM_CLASS_FLOAT)
        add_tensor(weights, attribute->t);
}

static void add_nodes(struct cameo_summary *summary, const struct cm_nodes *nodes);

static void add_nested(struct cameo_summary *summary, const struct cm_graph_proto *graph)
{
    for (size_t i = 0; i < graph->initializer.count; i++)
        add_tensor(&summary->nested_weights, &graph->initializer.items[i]);
    for (size_t i = 0; i < graph->sparse_initializer.count; i++)
        add_sparse(&summary->nested_weights, &graph->sparse_initializer.items[i]);
    add_nodes(summary, &graph->node);
}

/* Recursion is as deep as graphs nest, which the readers of both forms bound. */
static void add_nodes(struct cameo_summary *summary, const struct cm_nodes *nodes)
{
    for (size_t i = 0; i < nodes->count; i++) {
        const struct cm_node_proto *node = &nodes->items[i];
        const bool learns = cm_str_is(node->domain, "ai.onnx.ml");
        const bool constant =
            !learns && !node->input.count && cm_builtin_op(node)->values.is_constant;

        for (size_t a = 0; a < node->attribute.count; a++) {
            const struct cm_attribute_proto *attribute = &node->attribute.items[a];

            if (learns)
                add_learnt(&summary->attribute_weights, attribute);
            if (constant)
                add_constant(&summary->constant_weights, attribute);
            if (attribute->g)
                add_nested(summary, attribute->g);
            for (size_t g = 0; g < attribute->graphs.count; g++)
                add_nested(summary, &attribute->graphs.items[g]);
        }
    }
}

void cm_describe_weights(struct cameo_model *model)
{
    const struct cm_model_proto *proto = &model->file->model;

    if (proto->graph)
        add_nodes(&model->summary, &proto->graph->node);
    for (size_t i = 0; i < proto->functions.count; i++)
        add_nodes(&model->summary, &proto->functions.items[i].node);
}
