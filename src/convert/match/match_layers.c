/* Tensors found by the layer that they are part of: that of another tensor beside them in the
 * graph, or the one that the name of their node tells. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/match/match.h"

#include "graph/originals.h"
#include "graph/registry.h"

const char *cm_match_duty(const struct cm_match_reader *read)
{
    return cm_operand_duty(read->op, read->operand);
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

    if (read->op->layer.entry == CM_ENTERS_AS_SHIFT) {
        for (size_t i = 0; !layer.size && i < read->node->input.count; i++)
            layer = layer_at(m, maker_of(m, read->node->input.items[i]));
        return layer;
    }
    const struct cm_str result =
        read->node->output.count ? read->node->output.items[0] : CM_STR_NONE;
    for (uint64_t n = cm_map_get(&m->readers, result, 0); n && !layer.size;) {
        const struct cm_match_read *use = &m->reads.items[n - 1];
        const struct cm_node_proto *node = &m->file->model.graph->node.items[use->node];

        if (cm_builtin_op(node)->layer.entry == CM_ENTERS_AS_SHIFT)
            layer = layer_at(m, node);
        n = use->next;
    }
    return layer;
}

/* The source of a layer that does this duty in this shape: the one called so ("bias"), or the only
 * one that ends so ("in_proj_bias"). */
static struct cm_match_source *find(struct cm_matching *m, struct cm_str layer, const char *duty,
                                    const struct cm_shape *shape)
{
    struct cm_match_source *found = NULL;
    size_t count = 0;

    for (uint64_t n = cm_map_get(&m->layers, layer, 0); n;) {
        struct cm_match_source *one = &m->sources.items[n - 1];
        const size_t word = layer.size ? layer.size + 1 : 0;

        n = one->next;
        if (one->uses || !cm_str_ends(one->key, duty) || !cm_match_fits(m, one, shape))
            continue;
        if (one->key.size - word == strlen(duty))
            return one;
        found = one;
        count++;
    }
    return count == 1 ? found : NULL;
}

/* "/model/encoder/fc1/MatMul": every tail of it but for the last part may be the layer. */
static struct cm_match_source *find_by_scope(struct cm_matching *m,
                                             const struct cm_match_reader *read, bool is_traced,
                                             const struct cm_shape *shape)
{
    struct cm_str layer = cm_match_layer(cm_match_key(m->arena, read->node->name, is_traced));
    struct cm_match_source *found = NULL;

    while (layer.size && !found) {
        found = find(m, layer, cm_match_duty(read), shape);
        layer = cm_str_after_first(layer, '.');
    }
    return found;
}

/* ---- what PyTorch's newer exporter writes down ---- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The parameter enc.0.weight is "%p_enc_0_weight" there. */
static void spell_all(struct cm_matching *m)
{
    for (size_t i = 0; i < m->sources.count; i++) {
        const struct cm_str name = m->sources.items[i].name;
        char *text = cm_arena_alloc(m->arena, name.size + 1);
        bool added;

        for (size_t c = 0; c < name.size; c++)
            text[c] = is_word(name.data[c]) ? name.data[c] : '_';
        uint64_t *place =
            cm_map_insert(&m->spelled, m->arena, (struct cm_str){text, name.size}, &added);
        *place = added ? i + 1 : 0;
    }
}

/* The source that a noted name stands for, whatever wrappers are around it there. */
static struct cm_match_source *find_spelled(struct cm_matching *m, struct cm_str word)
{
    while (word.size) {
        const uint64_t number = cm_map_get(&m->spelled, word, 0);

        if (number)
            return &m->sources.items[number - 1];
        word = cm_str_after_first(word, '_');
    }
    return NULL;
}

static struct cm_match_source *noted_source(struct cm_matching *m,
                                            const struct cm_match_reader *read,
                                            const struct cm_shape *shape)
{
    const char *duty = cm_match_duty(read);
    struct cm_match_source *found = NULL;
    struct cm_str name;

    for (size_t at = 0; cm_node_next_parameter(read->node, &at, &name);) {
        if (!m->spelled.count)
            spell_all(m);
        struct cm_match_source *one = find_spelled(m, cm_str_from(name, 2)); /* without "p_" */
        if (!one || !cm_match_fits(m, one, shape))
            continue;
        if (duty && cm_str_ends(one->key, duty))
            return one;
        found = found ? found : one;
    }
    return found;
}

struct cm_match_source *cm_match_told_source(struct cm_matching *m,
                                             const struct cm_match_reader *read,
                                             const struct cm_shape *shape)
{
    struct cm_match_source *source = noted_source(m, read, shape);

    for (int traced = 0; traced < 2 && !source && cm_match_duty(read); traced++)
        source = find_by_scope(m, read, traced, shape);
    return source;
}

void cm_match_by_layer(struct cm_matching *m)
{
    for (size_t i = 0; i < m->targets.count; i++) {
        struct cm_match_target *target = &m->targets.items[i];

        if (target->parts.count || !target->is_needed)
            continue;
        struct cm_match_source *source = cm_match_told_source(m, &target->read, &target->shape);
        if (source && !source->uses && cm_match_accept(m, target, source, "by its node"))
            continue;
        const struct cm_str layer = layer_beside(m, &target->read);
        source = layer.size ? find(m, layer, cm_match_duty(&target->read), &target->shape) : NULL;
        if (source)
            (void)cm_match_accept(m, target, source, "by its layer");
    }
}

/* ---- norms that hold nothing to tell them by ---- */

enum { OPERANDS_MAX = 16 };

static bool is_open(const struct cm_match_target *target)
{
    return target && !target->parts.count && target->is_needed;
}

/* Has the layer each of the tensors that a node reads and that are not found yet? */
static bool layer_fits(struct cm_matching *m, const struct cm_node_proto *node, struct cm_str layer,
                       struct cm_match_source **found)
{
    for (size_t i = 0; i < node->input.count; i++) {
        const struct cm_match_target *target = cm_match_find_target(m, node->input.items[i]);
        const struct cm_match_reader read = {node, cm_builtin_op(node), (int)i};
        const char *duty = cm_match_duty(&read);

        found[i] = is_open(target) && duty ? find(m, layer, duty, &target->shape) : NULL;
        if (is_open(target) && !found[i])
            return false;
    }
    return true;
}

/* The place in the checkpoint of the layer that feeds a node, + 1; 0: it is not found yet. */
static size_t place_before(const struct cm_matching *m, const struct cm_node_proto *node)
{
    for (int depth = 0; depth < 4 && node && node->input.count; depth++) {
        node = maker_of(m, node->input.items[0]);
        for (size_t i = 0; node && i < node->input.count; i++) {
            const struct cm_match_target *target = cm_match_find_target(m, node->input.items[i]);

            if (target && target->parts.count)
                return (size_t)cm_map_get(&m->source_names, target->parts.items[0].source, 0);
        }
    }
    return 0;
}

/* The only layer that fits, or in PyTorch, which lists modules as they were made, the next one
 * behind the layer that feeds the node. */
static void find_place(struct cm_matching *m, const struct cm_node_proto *node)
{
    struct cm_match_source *found[OPERANDS_MAX];
    const size_t before = place_before(m, node);
    struct cm_str chosen = CM_STR_NONE, last = CM_STR_NONE;
    size_t fitting = 0;
    bool is_behind = false;

    for (size_t i = 0; i < m->sources.count; i++) {
        const struct cm_str layer = cm_match_layer(m->sources.items[i].key);

        if (m->sources.items[i].uses || (last.data && cm_str_equal(layer, last)) ||
            !layer_fits(m, node, layer, found))
            continue;
        last = layer;
        fitting++;
        if (!chosen.data || (!is_behind && before && i + 1 > before)) {
            chosen = layer;
            is_behind = before && i + 1 > before;
        }
    }
    if (!(fitting == 1 || (is_behind && m->saved->arithmetic == CM_LIKE_TORCH)) ||
        !layer_fits(m, node, chosen, found))
        return;
    for (size_t i = 0; i < node->input.count; i++)
        if (found[i])
            (void)cm_match_accept(m, cm_match_find_target(m, node->input.items[i]), found[i],
                                  fitting == 1 ? "by the only layer that fits"
                                               : "by the place of its layer");
}

void cm_match_by_place(struct cm_matching *m)
{
    const struct cm_graph_proto *graph = m->file->model.graph;

    for (size_t n = 0; n < graph->node.count; n++) {
        const struct cm_node_proto *node = &graph->node.items[n];
        size_t open = 0;

        if (node->input.count > OPERANDS_MAX ||
            cm_builtin_op(node)->layer.entry != CM_ENTERS_AFTER_NORM)
            continue;
        for (size_t i = 1; i < node->input.count; i++)
            open += is_open(cm_match_find_target(m, node->input.items[i]));
        if (open >= 2)
            find_place(m, node);
    }
}
