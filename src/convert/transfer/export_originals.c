/* What a model's initializers are in the network that it was exported from, as parts that lead
 * back: PyTorch's exporters transpose weights, add axes, order gates and rename, and record it.
 * What cannot be undone is said key by key. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/transfer/export_saved.h"

#include "graph/registry.h"
#include "onnx/tensor_data.h"

/* ---- parts ---- */

static void add_turned(struct cm_arena *arena, struct cm_parts *parts, struct cm_str name,
                       const struct cm_shape *shape)
{
    static const int axes[] = {1, 0};
    const struct cm_shape source = CM_SHAPE(shape->dims[1], shape->dims[0]);

    cm_parts_transposed(arena, parts, name, &source, axes, 2);
}

/* The vector whose axes of size 1 the exporter added. */
static void add_vector(struct cm_arena *arena, struct cm_parts *parts, struct cm_str name,
                       const struct cm_shape *shape)
{
    int axes[CM_MAX_RANK];
    const struct cm_shape source = CM_SHAPE(cm_shape_elements(shape));
    bool is_found = false;

    for (int i = 0; i < shape->rank; i++) {
        const bool is_it = !is_found && (shape->dims[i] != 1 || i + 1 == shape->rank);

        axes[i] = is_it ? 0 : -1;
        is_found = is_found || is_it;
    }
    cm_parts_transposed(arena, parts, name, &source, axes, shape->rank);
}

/* W and R [directions, gates * H, ..], B [directions, 2 * gates * H] of a recurrent layer, from
 * weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0 and those that end in _reverse. */
static bool add_gates(struct cm_arena *arena, struct cm_parts *parts,
                      const struct cm_str_list *names, int gates, const struct cm_shape *shape)
{
    const bool is_bias = shape->rank == 2;
    const int64_t width = shape->rank >= 2 ? shape->dims[1] / (gates * (1 + is_bias)) : 0;
    const size_t expected = (size_t)(shape->dims[0] * (1 + is_bias));
    const int *order = cm_gate_order(gates, false);

    if ((shape->rank != 2 && shape->rank != 3) || names->count != expected ||
        width * gates * (1 + is_bias) != shape->dims[1])
        return false;
    for (size_t n = 0; n < names->count; n++) {
        const struct cm_str name = names->items[n];
        const int64_t direction = cm_str_ends(name, "_reverse");
        const bool is_second = is_bias && cm_str_contains(name, "bias_hh");

        if (direction >= shape->dims[0])
            return false;
        for (int g = 0; g < gates; g++) {
            struct cm_part *part = cm_part_add(arena, parts, name, is_bias ? 1 : 2, shape->rank);

            part->from[0] = order[g] * width;
            part->size[0] = width;
            part->axes[0] = -1;
            part->axes[1] = 0;
            if (!is_bias)
                part->axes[2] = 1;
            part->at[0] = direction;
            part->at[1] = ((is_second ? gates : 0) + g) * width;
        }
    }
    return true;
}

/* The gates of the recurrent layer that reads a tensor; 0: none does. */
static int gates_of(const struct cm_graph_proto *graph, struct cm_str name)
{
    for (size_t n = 0; n < graph->node.count; n++)
        for (size_t k = 1; k < graph->node.items[n].input.count; k++)
            if (cm_str_equal(graph->node.items[n].input.items[k], name))
                return cm_builtin_op(&graph->node.items[n])->layer.gates;
    return 0;
}

/* The names of one tensor as the network lists them: its optimizer knows the tensor by the first.
 */
static struct cm_str_list in_order(struct cm_arena *arena, const struct cm_originals *originals,
                                   const struct cm_str_list *names)
{
    struct cm_str_list out = {0};
    struct cm_map left = {0};

    for (size_t i = 0; i < names->count; i++)
        *cm_map_insert(&left, arena, names->items[i], NULL) = 1;
    for (size_t n = 0; names->count > 1 && n < originals->n_recorded; n++)
        if (cm_map_remove(&left, originals->recorded[n].target))
            *CM_PUSH(arena, &out) = originals->recorded[n].target;
    for (size_t i = 0; i < names->count; i++)
        if (cm_map_remove(&left, names->items[i]))
            *CM_PUSH(arena, &out) = names->items[i];
    return out;
}

bool cm_original_parts(struct cm_arena *arena, const struct cm_originals *originals,
                       const struct cm_graph_proto *graph, const struct cm_tensor_proto *proto,
                       struct cm_parts *out, size_t *n_aliases)
{
    const struct cm_original *original = cm_originals_find(originals, proto->name);
    struct cm_shape shape;
    struct cm_error ignored;

    *out = (struct cm_parts){0};
    *n_aliases = 0;
    if (!original || !original->names.count || original->folding == CM_FOLDED_ROWS ||
        original->folding == CM_FOLDED_COMPUTED ||
        cm_tensor_proto_shape(proto, &shape, &ignored) != CM_OK)
        return false;
    if (original->folding == CM_FOLDED_GATES) {
        const int gates = gates_of(graph, proto->name);

        if (gates && add_gates(arena, out, &original->names, gates, &shape))
            return true;
        *out = (struct cm_parts){0};
        return false;
    }
    if (original->folding == CM_FOLDED_TRANSPOSED && shape.rank != 2)
        return false;
    const struct cm_str_list names = in_order(arena, originals, &original->names);
    for (size_t i = 0; i < names.count; i++)
        if (original->folding == CM_FOLDED_TRANSPOSED)
            add_turned(arena, out, names.items[i], &shape);
        else if (original->folding == CM_FOLDED_UNSQUEEZED)
            add_vector(arena, out, names.items[i], &shape);
        else
            cm_parts_whole(arena, out, names.items[i], &shape);
    *n_aliases = names.count - 1;
    return true;
}

/* The list of a network's tensors decides, if the model has all of them: what else it holds are
 * constants of the computation. The older exporter keeps no list, but no constants either among the
 * initializers that it does not name itself. */
enum cm_belonging cm_original_belongs(const struct cm_originals *originals, struct cm_str name)
{
    const struct cm_original *original = cm_originals_find(originals, name);

    if (!originals->n_recorded)
        return originals->is_older && !cm_original_is_made_up(name) ? CM_BELONGS
                                                                    : CM_BELONGS_PERHAPS;
    if (original && original->names.count) {
        if (original->is_transient)
            return CM_BELONGS_NOT;
        return original->folding < CM_FOLDED_ROWS ? CM_BELONGS : CM_BELONGS_PERHAPS;
    }
    return originals->missing.count || originals->norms.count ? CM_BELONGS_PERHAPS : CM_BELONGS_NOT;
}

/* ---- what is not written under the network's names ---- */

static void note_initializer(struct cm_arena *arena, const struct cm_original *original,
                             struct cm_str name, const struct cm_map *keys,
                             struct cm_saved_texts *notes)
{
    const bool is_rows = original->folding == CM_FOLDED_ROWS;

    if (original->is_named_by_node) {
        cm_saved_note(arena, notes,
                      "'%.*s' is written under the model's name: the exporter computed it "
                      "from tensors of '%.*s'",
                      CM_STR_FMT(name),
                      CM_STR_FMT(cm_str_before_last(original->names.items[0], '.')));
        return;
    }
    if (!original->names.count)
        cm_saved_note(arena, notes,
                      "'%.*s' is written under the model's name: the exporter renamed it in "
                      "'%.*s' and does not say what it was",
                      CM_STR_FMT(name), CM_STR_FMT(original->module));
    size_t absent = 0;
    for (size_t i = 0; i < original->names.count; i++)
        absent += !cm_map_find(keys, original->names.items[i]);
    if (original->names.count && !absent)
        cm_saved_note(arena, notes,
                      "'%.*s' is written under the model's name: the exporter computed it "
                      "from '%.*s', which is written too",
                      CM_STR_FMT(name), CM_STR_FMT(original->names.items[0]));
    for (size_t i = 0; i < original->names.count; i++)
        if (!cm_map_find(keys, original->names.items[i]))
            cm_saved_note(
                arena, notes, "'%.*s' is not written: the model has only %s, written as '%.*s'",
                CM_STR_FMT(original->names.items[i]),
                is_rows ? "rows of it" : "what the exporter computed from it", CM_STR_FMT(name));
}

void cm_note_originals(struct cm_arena *arena, const struct cm_originals *originals,
                       const struct cm_graph_proto *graph, const struct cm_map *written,
                       const struct cm_map *keys, struct cm_saved_texts *notes)
{
    for (size_t i = 0; i < graph->initializer.count; i++) {
        const struct cm_str name = graph->initializer.items[i].name;
        const struct cm_original *original =
            cm_map_find(written, name) ? cm_originals_find(originals, name) : NULL;

        if (original)
            note_initializer(arena, original, name, keys, notes);
        else if (originals->is_older && cm_map_find(written, name) && cm_original_is_made_up(name))
            cm_saved_note(arena, notes,
                          "'%.*s' is written under the model's name: the exporter renamed "
                          "it and does not say what it was",
                          CM_STR_FMT(name));
    }
    for (size_t i = 0; i < originals->norms.count; i++)
        for (size_t k = 0; k < 2; k++)
            cm_saved_note(arena, notes,
                          "'%.*s.running_%s' is not written: the exporter folded the "
                          "BatchNormalization into another layer",
                          CM_STR_FMT(originals->norms.items[i]), k ? "var" : "mean");
    for (size_t i = 0; i < originals->buffers.count; i++)
        if (!cm_map_find(keys, originals->buffers.items[i]))
            cm_saved_note(arena, notes,
                          "'%.*s' is not written: the model does not have this buffer",
                          CM_STR_FMT(originals->buffers.items[i]));
    for (size_t i = 0; i < originals->missing.count; i++)
        if (!cm_map_find(keys, originals->missing.items[i]))
            cm_saved_note(arena, notes,
                          "'%.*s' is not written: the exporter left it out of the model "
                          "(folded into another tensor, or a bias of zeros)",
                          CM_STR_FMT(originals->missing.items[i]));
}
