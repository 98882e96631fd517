/* What a model does that ONNX does not allow and we run all the same, in sentences. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api.h"

#include "graph/import_context.h"
#include "graph/node_order.h"
#include "versions/nchwc_blocks.h"

enum { MOST_NOTES = 8 };

struct note_list {
    struct cameo_model *model;
    struct cm_arena *scratch;
};

static void add_note(struct note_list *list, struct cm_str text)
{
    struct cameo_model *model = list->model;
    if (model->note_count == MOST_NOTES)
        return;
    if (!model->notes)
        model->notes = CM_NEW_ARRAY(&model->arena, struct cameo_text, MOST_NOTES);
    model->notes[model->note_count++] = cm_api_text(&model->arena, text);
}

static void note_order(struct note_list *list, const char *what, struct cm_str name,
                       const struct cm_node_order *order)
{
    add_note(list, cm_arena_printf(list->scratch,
                                   "the nodes of %s '%.*s' are not in topological order: %s reads "
                                   "'%.*s', which a later node makes; they are sorted in memory",
                                   what, CM_STR_FMT(name),
                                   cm_import_name_node(list->scratch, order->reader).data,
                                   CM_STR_FMT(order->name)));
}

/* A wrong block size gives wrong results without any other sign. */
static void note_blocks(struct note_list *list, const struct cm_model_proto *proto)
{
    const struct cm_channel_blocks blocks = cm_channel_blocks_find(list->scratch, proto);
    if (blocks.is_used && !blocks.is_known && !blocks.is_at_odds)
        add_note(list, cm_arena_printf(list->scratch,
                                       "weights of %s are stored in blocks of channels, and no "
                                       "shape tells whether the blocks hold 8 or 16; %lld is "
                                       "assumed, as ONNX Runtime does on this machine. If the "
                                       "model was saved on another machine, save it again with "
                                       "ORT_ENABLE_EXTENDED",
                                       cm_nchwc_domain, (long long)blocks.size));
}

/* Recursion is as deep as graphs nest, which the readers of both forms bound. */
static void note_nodes(struct note_list *list, const char *what, struct cm_str name,
                       const struct cm_nodes *nodes)
{
    struct cm_node_order order;
    /* A circle is told by whoever builds the graph. */
    if (!cm_node_order(list->scratch, list->scratch, nodes, &order, NULL) && order.items)
        note_order(list, what, name, &order);
    for (size_t i = 0; i < nodes->count; i++)
        for (size_t a = 0; a < nodes->items[i].attribute.count; a++)
            if (nodes->items[i].attribute.items[a].g) {
                const struct cm_graph_proto *body = nodes->items[i].attribute.items[a].g;
                note_nodes(list, "graph", body->name, &body->node);
            }
}

static void note_graph(struct note_list *list, const struct cm_graph_proto *graph)
{
    if (graph)
        note_nodes(list, "graph", graph->name, &graph->node);
}

static enum cm_status note_all(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    struct cameo_model *model = arg;
    const struct cm_model_proto *proto = &model->file->model;
    struct note_list list = {model, scratch};

    (void)err;
    if (model->has_notes)
        return CM_OK;
    model->note_count = 0; /* of an attempt that ran out of memory */
    note_blocks(&list, proto);
    note_graph(&list, proto->graph);
    for (size_t i = 0; i < proto->functions.count; i++)
        note_nodes(&list, "function", proto->functions.items[i].name,
                   &proto->functions.items[i].node);
    for (size_t i = 0; i < proto->training_info.count; i++) {
        note_graph(&list, proto->training_info.items[i].initialization);
        note_graph(&list, proto->training_info.items[i].algorithm);
    }
    model->has_notes = true;
    return CM_OK;
}

void cm_api_saw_order(struct cameo_model *model, const struct cm_module *module)
{
    const struct cm_model_proto *proto = &model->file->model;

    if (!cm_module_had(module, CM_HAD_LATER_NODES) && !cm_module_channel_block(module) &&
        !proto->functions.count && !proto->training_info.count)
        model->has_notes = true;
}

const struct cameo_text *cameo_model_note(const struct cameo_model *model, size_t index)
{
    if (!model || cm_api_call(model, note_all, (void *)(uintptr_t)model, NULL) != CAMEO_OK)
        return NULL;
    return index < model->note_count ? &model->notes[index] : NULL;
}
