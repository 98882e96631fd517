/* Initializers that are several in the framework, or one: exporters merge what is equal when they
 * write it, and write twice what is tied. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/match/match.h"

#include "graph/graph_messages.h"
#include "graph/originals.h"
#include "graph/registry.h"
#include "onnx/tensor_data.h"

/* ---- taking apart ---- */

static bool is_output(const struct cm_graph_proto *graph, struct cm_str name)
{
    for (size_t i = 0; i < graph->output.count; i++)
        if (cm_str_equal(graph->output.items[i].name, name))
            return true;
    return false;
}

/* An initializer like another, under this name. */
static void add_like(struct cm_matching *m, size_t number, struct cm_str name)
{
    struct cm_graph_proto *graph = m->file->model.graph;
    struct cm_tensor_proto *added = CM_LIST_ADD(m->arena, &graph->initializer);

    *added = graph->initializer.items[number];
    added->name = name;
    cm_msg_set(&added->msg, CM_TENSOR_NAME);
    cm_msg_set(&graph->msg, CM_GRAPH_INITIALIZER);
}

/* Is there a tensor of this name, or one that the exporter renamed to it? */
static bool has_source(const struct cm_matching *m, const struct cm_originals *originals,
                       struct cm_str name)
{
    const struct cm_original *original = cm_originals_find(originals, name);

    return cm_match_find_source(m, name) ||
           (original && original->names.count && cm_match_find_source(m, original->names.items[0]));
}

/* Nodes that copy an initializer under the name of another tensor of the checkpoint (PyTorch's
 * older exporter) give way to one of that name. */
static void split_copies(struct cm_matching *m, const struct cm_originals *originals,
                         const struct cm_map *initializers)
{
    struct cm_graph_proto *graph = m->file->model.graph;
    size_t kept = 0;

    for (size_t i = 0; i < graph->node.count; i++) {
        const struct cm_node_proto *node = &graph->node.items[i];
        const uint64_t number =
            cm_builtin_op(node)->values.is_copy && node->input.count == 1 && node->output.count == 1
                ? cm_map_get(initializers, node->input.items[0], 0)
                : 0;

        if (number && has_source(m, originals, node->output.items[0]) &&
            !is_output(graph, node->output.items[0]))
            add_like(m, number - 1, node->output.items[0]);
        else
            graph->node.items[kept++] = *node;
    }
    if (kept == graph->node.count)
        return;
    graph->node.count = kept;
    cm_msg_set(&graph->msg, CM_GRAPH_NODE);
    cm_match_read_again(m);
}

static struct cm_str free_name(struct cm_matching *m, const struct cm_map *initializers,
                               struct cm_str wanted)
{
    struct cm_str name = wanted;

    for (int i = 2; cm_map_find(initializers, name) || cm_map_find(&m->makers, name) ||
                    cm_map_find(&m->readers, name);
         i++)
        name = cm_arena_printf(m->arena, "%.*s_%d", CM_STR_ALL(wanted), i);
    return name;
}

/* The name of a part, and the record that it is folded as the whole is. */
static struct cm_str name_part(struct cm_matching *m, const struct cm_map *initializers,
                               const struct cm_original *original, size_t number,
                               struct cm_str source)
{
    struct cm_graph_proto *graph = m->file->model.graph;
    const bool is_folded = original && original->folding != CM_FOLDED_NOT;
    const struct cm_str whole = graph->initializer.items[number].name;
    const struct cm_str name = free_name(
        m, initializers,
        is_folded ? cm_arena_printf(m->arena, "%.*s.%.*s", CM_STR_FMT(source), CM_STR_FMT(whole))
                  : source);

    add_like(m, number, name);
    if (is_folded)
        cm_originals_record(m->arena, &graph->initializer.items[graph->initializer.count - 1],
                            source);
    return name;
}

/* Readers of one initializer whose nodes tell of different sources. An initializer that is called
 * after its source is no other initializer's source too: what nodes tell is a guess there. */
static void split_readers(struct cm_matching *m, const struct cm_originals *originals,
                          struct cm_map *initializers, size_t number)
{
    struct cm_graph_proto *graph = m->file->model.graph;
    const struct cm_tensor_proto *tensor = &graph->initializer.items[number];
    const struct cm_match_source *kept = cm_match_find_source(m, tensor->name);
    const struct cm_original *original = cm_originals_find(originals, tensor->name);
    struct cm_map names = {0}; /* of sources to number of the initializer + 1 */
    struct cm_shape shape;

    if (cm_tensor_proto_shape(tensor, &shape, NULL) || !cm_dtype_is_float(tensor->data_type))
        return;
    for (uint64_t n = cm_map_get(&m->readers, tensor->name, 0); n;) {
        const struct cm_match_read *use = &m->reads.items[n - 1];
        struct cm_node_proto *node = &graph->node.items[use->node];
        const struct cm_match_reader read = {node, cm_builtin_op(node), use->operand};
        const struct cm_str meant =
            cm_originals_meant(originals, tensor->name, node, (size_t)use->operand);
        const struct cm_match_source *source = cm_match_find_source(m, meant);
        bool added;

        n = use->next;
        source = source ? source : cm_match_told_source(m, &read, &shape);
        if (!source || source == kept ||
            (kept && !cm_map_find(&names, source->name) && cm_map_find(initializers, source->name)))
            continue;
        if (!kept) { /* the first keeps it */
            kept = source;
            continue;
        }
        uint64_t *place = cm_map_insert(&names, m->arena, source->name, &added);
        if (added) {
            const struct cm_str name = name_part(m, initializers, original, number, source->name);

            tensor = &graph->initializer.items[number]; /* the list has moved */
            *place = graph->initializer.count;
            *cm_map_insert(initializers, m->arena, name, NULL) = graph->initializer.count;
        }
        node->input.items[use->operand] = graph->initializer.items[*place - 1].name;
        cm_msg_set(&node->msg, CM_NODE_INPUT);
    }
}

void cm_match_split(struct cm_matching *m)
{
    struct cm_graph_proto *graph = m->file->model.graph;
    const size_t count = graph->initializer.count;
    const struct cm_originals *originals = cm_originals_read(m->arena, graph);
    struct cm_map initializers = {0};

    for (size_t i = 0; i < count; i++)
        *cm_map_insert(&initializers, m->arena, graph->initializer.items[i].name, NULL) = i + 1;
    split_copies(m, originals, &initializers);
    for (size_t i = 0; i < count; i++) {
        const uint64_t first = cm_map_get(&m->readers, graph->initializer.items[i].name, 0);

        if (first && m->reads.items[first - 1].next)
            split_readers(m, originals, &initializers, i);
    }
    if (graph->initializer.count != count)
        cm_match_read_again(m);
}

/* ---- tying ---- */

/* The order of axes that makes one tensor of another, both of one source whole; false: there is
 * none. */
static bool turn(const struct cm_match_target *from, const struct cm_match_target *to,
                 int64_t *axes)
{
    const struct cm_part *a = from->parts.items, *b = to->parts.items;

    if (from->parts.count != 1 || to->parts.count != 1 || a->rank != b->rank ||
        a->rank != a->source_rank)
        return false;
    for (int i = 0; i < a->rank; i++) {
        int k = 0;

        if (a->from[i] || b->from[i] || a->size[i] >= 0 || b->size[i] >= 0)
            return false;
        while (k < a->rank && a->axes[k] != b->axes[i])
            k++;
        if (k == a->rank)
            return false;
        axes[i] = k;
    }
    return true;
}

static bool is_input(const struct cm_graph_proto *graph, struct cm_str name)
{
    for (size_t i = 0; i < graph->input.count; i++)
        if (cm_str_equal(graph->input.items[i].name, name))
            return true;
    return false;
}

void cm_match_tie(struct cm_matching *m)
{
    struct cm_map firsts = {0}; /* sources to index + 1 of the tensor that stands for them */

    for (int whole = 1; whole >= 0;
         whole--) /* one that is as the framework has it stands for all */
        for (size_t i = 0; i < m->targets.count; i++) {
            struct cm_match_target *target = &m->targets.items[i];
            int64_t axes[CM_MAX_RANK];
            bool added;

            if (!target->parts.count || target->is_constant ||
                (whole && !cm_parts_are_whole(&target->parts)))
                continue;
            uint64_t *place =
                cm_map_insert(&firsts, m->arena, target->parts.items[0].source, &added);
            if (added)
                *place = i + 1;
            struct cm_match_target *first = &m->targets.items[*place - 1];
            if (first == target || target->is_tied || !turn(first, target, axes) ||
                is_input(m->file->model.graph, target->name))
                continue;
            target->is_tied = true;
            cm_graph_proto_drop_initializer(m->arena, m->file->model.graph, target->name);
            const struct cm_node_proto turns = cm_node_proto_make(
                m->arena, "Transpose", &first->name, 1, target->name,
                cm_attr_ints(m->arena, "perm", (size_t)target->shape.rank, axes));
            cm_graph_proto_add_first(m->arena, m->file->model.graph, &turns, 1);
        }
}
