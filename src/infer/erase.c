/* Declared shapes out of messages. */
// SPDX-License-Identifier: Apache-2.0
#include "infer/erase.h"

enum { DEPTH_MAX = 64 }; /* of types, and of graphs inside each other */

static void erase_tensor(struct cm_tensor_type_proto *tensor, bool ranks)
{
    if (!tensor || !tensor->shape)
        return;
    if (ranks) {
        tensor->shape = NULL;
        cm_msg_clear(&tensor->msg, CM_TENSOR_TYPE_SHAPE);
        return;
    }
    for (size_t d = 0; d < tensor->shape->dim.count; d++) {
        struct cm_dim_proto *dim = &tensor->shape->dim.items[d];
        dim->dim_value = 0;
        dim->dim_param = CM_STR_NONE;
        cm_msg_clear(&dim->msg, CM_DIM_VALUE);
        cm_msg_clear(&dim->msg, CM_DIM_PARAM);
    }
}

static void erase_type(struct cm_type_proto *type, bool ranks, int depth)
{
    if (!type || depth > DEPTH_MAX)
        return;
    erase_tensor(type->tensor_type, ranks);
    erase_tensor(type->sparse_tensor_type, ranks);
    if (type->sequence_type)
        erase_type(type->sequence_type->elem_type, ranks, depth + 1);
    if (type->optional_type)
        erase_type(type->optional_type->elem_type, ranks, depth + 1);
    if (type->map_type)
        erase_type(type->map_type->value_type, ranks, depth + 1);
}

static void erase_infos(const struct cm_value_infos *infos, bool ranks)
{
    for (size_t i = 0; i < infos->count; i++)
        erase_type(infos->items[i].type, ranks, 0);
}

static void erase_graph(struct cm_graph_proto *graph, bool ranks, int depth);

static void erase_bodies(const struct cm_nodes *nodes, bool ranks, int depth)
{
    for (size_t n = 0; n < nodes->count; n++)
        for (size_t a = 0; a < nodes->items[n].attribute.count; a++)
            erase_graph(nodes->items[n].attribute.items[a].g, ranks, depth + 1);
}

static void erase_graph(struct cm_graph_proto *graph, bool ranks, int depth)
{
    if (!graph || depth > DEPTH_MAX)
        return;
    erase_infos(&graph->input, ranks);
    erase_infos(&graph->output, ranks);
    erase_infos(&graph->value_info, ranks);
    erase_bodies(&graph->node, ranks, depth);
}

void cm_erase_shapes(struct cm_model_proto *model, bool ranks)
{
    struct cm_graph_proto *graph;

    for (size_t at = 0; (graph = cm_model_next_graph(model, &at));)
        erase_graph(graph, ranks, 0);
    for (size_t f = 0; f < model->functions.count; f++) {
        erase_infos(&model->functions.items[f].value_info, ranks);
        erase_bodies(&model->functions.items[f].node, ranks, 0);
    }
}
