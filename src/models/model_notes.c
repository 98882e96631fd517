/* What a model does that ONNX does not allow and we run all the same, in sentences. */
// SPDX-License-Identifier: Apache-2.0
#include "models/model_notes.h"

#include "graph/import_context.h"
#include "graph/node_order.h"
#include "versions/nchwc_blocks.h"

enum { MOST_NOTES = 8 };

struct note_list {
    struct cm_findings *notes;
    struct cm_arena *scratch;
};

static void note_order(struct note_list *list, const char *what, struct cm_str name,
                       const struct cm_node_order *order)
{
    if (list->notes->count < MOST_NOTES)
        cm_findings_note(list->notes,
                         "the nodes of %s '%.*s' are not in topological order: %s reads '%.*s', "
                         "which a later node makes; they are sorted in memory",
                         what, CM_STR_FMT(name),
                         cm_import_name_node(list->scratch, order->reader).data,
                         CM_STR_FMT(order->name));
}

/* A wrong block size gives wrong results without any other sign. */
static void note_blocks(struct note_list *list, const struct cm_model_proto *proto)
{
    const struct cm_channel_blocks blocks = cm_channel_blocks_find(list->scratch, proto);
    if (blocks.is_used && !blocks.is_known && !blocks.is_at_odds)
        cm_findings_note(list->notes,
                         "weights of %s are stored in blocks of channels, and no shape tells "
                         "whether the blocks hold 8 or 16; %lld is assumed, as ONNX Runtime does "
                         "on this machine. If the model was saved on another machine, save it "
                         "again with ORT_ENABLE_EXTENDED",
                         cm_nchwc_domain, (long long)blocks.size);
}

/* Recursion is as deep as graphs nest, which the readers of both forms bound. */
static void note_nodes(struct note_list *list, const char *what, struct cm_str name,
                       const struct cm_nodes *nodes)
{
    struct cm_node_order order;
    /* The importer reports a circle. */
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

void cm_model_notes(const struct cm_model_proto *model, struct cm_arena *scratch,
                    struct cm_findings *out)
{
    struct note_list list = {out, scratch};

    note_blocks(&list, model);
    note_graph(&list, model->graph);
    for (size_t i = 0; i < model->functions.count; i++)
        note_nodes(&list, "function", model->functions.items[i].name,
                   &model->functions.items[i].node);
    for (size_t i = 0; i < model->training_info.count; i++) {
        note_graph(&list, model->training_info.items[i].initialization);
        note_graph(&list, model->training_info.items[i].algorithm);
    }
}
