/* Tensors found by the layer that they are part of: that of another tensor beside them in the
 * graph, or the one that the name of their node tells. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/match.h"

#include "graph/registry.h"

const char *cm_match_duty(const struct cm_match_reader *read)
{
    const struct cm_training_form *form = read->op->training;
    const int at = form && form->n_statistics ? read->operand - form->statistics_input : -1;

    if (at >= 0 && at < form->n_statistics)
        return at == 0 ? "mean" : "var";
    if (!(read->op->weights & CM_OPERAND(read->operand < 31 ? read->operand : 31)))
        return NULL;
    switch (read->op->entry) {
    case CM_ENTERS_AS_SHIFT:
        return "bias";
    case CM_ENTERS_AS_SCALE:
    case CM_ENTERS_AS_TABLE:
        return "weight";
    default:
        return read->operand < 2 ? "weight" : "bias";
    }
}

/* The layer of some tensor that a node reads, if one of them is found already. */
static struct cm_str layer_at(const struct cm_matching *m, const struct cm_node_proto *node)
{
    for (size_t i = 0; node && i < node->input.count; i++) {
        const struct cm_match_target *target = cm_match_find_target(m, node->input.items[i]);

        if (target && target->parts.count == 1)
            return cm_match_layer(cm_match_find_source(m, target->parts.items[0].source)->key);
    }
    return CM_STR_NONE;
}

static const struct cm_node_proto *maker_of(const struct cm_matching *m, struct cm_str value)
{
    const uint64_t number = cm_map_get(&m->makers, value, 0);

    return number ? &m->file->model.graph->node.items[number - 1] : NULL;
}

/* The product that a node shifts, and the node that shifts a product. */
static struct cm_str layer_beside(const struct cm_matching *m, const struct cm_match_reader *read)
{
    struct cm_str layer = layer_at(m, read->node);

    if (read->op->entry == CM_ENTERS_AS_SHIFT) {
        for (size_t i = 0; !layer.size && i < read->node->input.count; i++)
            layer = layer_at(m, maker_of(m, read->node->input.items[i]));
        return layer;
    }
    const struct cm_str result =
        read->node->output.count ? read->node->output.items[0] : CM_STR_NONE;
    for (uint64_t n = cm_map_get(&m->readers, result, 0); n && !layer.size;) {
        const struct cm_match_read *use = &m->reads.items[n - 1];
        const struct cm_node_proto *node = &m->file->model.graph->node.items[use->node];

        if (cm_builtin_op(node)->entry == CM_ENTERS_AS_SHIFT)
            layer = layer_at(m, node);
        n = use->next;
    }
    return layer;
}

static struct cm_match_source *find(const struct cm_matching *m, struct cm_str layer,
                                    const char *duty)
{
    const struct cm_str key =
        cm_arena_printf(m->arena, "%.*s.%s", (int)layer.size, layer.data, duty);
    const uint64_t number = cm_map_get(&m->source_keys, key, 0);

    return number && !m->sources.items[number - 1].uses ? &m->sources.items[number - 1] : NULL;
}

/* "/model/encoder/fc1/MatMul": every tail of it but for the last part may be the layer. */
static struct cm_match_source *find_by_scope(const struct cm_matching *m,
                                             const struct cm_match_reader *read, bool is_traced)
{
    struct cm_str layer = cm_match_layer(cm_match_key(m->arena, read->node->name, is_traced));
    struct cm_match_source *found = NULL;

    while (layer.size && !found) {
        size_t next = 0;

        found = find(m, layer, cm_match_duty(read));
        while (next < layer.size && layer.data[next] != '.')
            next++;
        next += next < layer.size;
        layer = (struct cm_str){layer.data + next, layer.size - next};
    }
    return found;
}

void cm_match_by_layer(struct cm_matching *m)
{
    for (size_t i = 0; i < m->targets.count; i++) {
        struct cm_match_target *target = &m->targets.items[i];

        if (target->parts.count || !target->is_needed)
            continue;
        const struct cm_str layer = layer_beside(m, &target->read);
        struct cm_match_source *source =
            layer.size ? find(m, layer, cm_match_duty(&target->read)) : NULL;
        if (source && cm_match_accept(m, target, source, "by its layer"))
            continue;
        for (int traced = 0; traced < 2 && !target->parts.count; traced++) {
            source = find_by_scope(m, &target->read, traced);
            if (source)
                (void)cm_match_accept(m, target, source, "by the name of its node");
        }
    }
}
