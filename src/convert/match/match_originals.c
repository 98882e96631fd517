/* Tensors by the names that the exported network had for them: what PyTorch's exporters recorded
 * says which tensor an initializer is and how it was turned. What they computed from tensors
 * (-exp(A), rows of a table) is no tensor of a checkpoint, however alike the shapes are. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/match/match.h"
#include "convert/transfer/export_saved.h"

/* The source of a recorded name, whatever modules were wrapped around the network for its export.
 */
static struct cm_match_source *find_original(const struct cm_matching *m, struct cm_str name)
{
    struct cm_match_source *source = NULL;

    for (; name.size && !source; name = cm_str_after_first(name, '.'))
        source = cm_match_find_source(m, name);
    return source;
}

static bool reaches(const struct cm_part *part, const struct cm_shape *shape)
{
    if (part->source_rank != shape->rank)
        return false;
    for (int a = 0; a < shape->rank; a++)
        if (part->size[a] >= 0 && part->from[a] + part->size[a] > shape->dims[a])
            return false;
    return true;
}

/* Has the whole tensor as many elements as its sources? */
static bool is_whole(const struct cm_matching *m, const struct cm_match_target *target,
                     const struct cm_parts *parts)
{
    struct cm_map counted = {0};
    int64_t count = 0;

    for (size_t i = 0; i < parts->count; i++) {
        if (cm_map_add(&counted, m->arena, parts->items[i].source))
            count +=
                cm_shape_elements(&cm_match_find_source(m, parts->items[i].source)->tensor->shape);
    }
    return count == cm_shape_elements(&target->shape);
}

static void take(struct cm_matching *m, struct cm_match_target *target, struct cm_parts parts,
                 size_t n_aliases)
{
    size_t first = 0;

    if (n_aliases) { /* any of the names that the checkpoint has */
        while (first < parts.count && !find_original(m, parts.items[first].source))
            first++;
        parts = (struct cm_parts){
            .items = parts.items + first, .count = first < parts.count, .capacity = 1};
    }
    for (size_t i = 0; i < parts.count; i++) {
        const struct cm_match_source *source = find_original(m, parts.items[i].source);

        if (!source || !cm_dtype_is_float(source->tensor->dtype) ||
            !reaches(&parts.items[i], &source->tensor->shape))
            return;
        parts.items[i].source = source->name;
    }
    if (parts.count && is_whole(m, target, &parts))
        cm_match_take(m, target, &parts, "by its name in the network%s",
                      parts.count > 1 ? ", gates reordered" : cm_layout_word(&parts));
}

/* Nothing but a rule of the user fills what an exporter computed. */
static void refuse_computed(struct cm_matching *m, struct cm_match_target *target,
                            const struct cm_original *original)
{
    const struct cm_str name = original->names.items[0];

    target->is_computed = true;
    target->misfit = cm_arena_printf(
        m->arena,
        "initializer '%.*s' is %s '%.*s', which cannot fill it; export with "
        "torch.onnx.export(.., dynamo=True, optimize=False), or name a tensor with --map",
        CM_STR_FMT(target->name),
        original->folding == CM_FOLDED_ROWS ? "rows that the exporter took of"
                                            : "computed by the exporter from",
        CM_STR_FMT(name));
    for (size_t i = 0; i < original->names.count; i++) {
        struct cm_match_source *source = find_original(m, original->names.items[i]);

        if (source && !source->uses)
            source->is_misfit = true;
        if (source && original->is_parameter) /* its own values would be those of another network */
            target->is_needed = true;
    }
}

void cm_match_by_original(struct cm_matching *m)
{
    const struct cm_graph_proto *graph = m->file->model.graph;
    const struct cm_originals *originals = cm_originals_read(m->arena, graph);

    for (size_t i = 0; i < m->targets.count; i++) { /* before others take their sources */
        struct cm_match_target *target = &m->targets.items[i];
        struct cm_match_source *source = cm_match_find_source(m, target->name);

        if (source && !target->parts.count &&
            (originals->is_older || cm_originals_find(originals, target->name)))
            (void)cm_match_accept(m, target, source, "by name");
    }
    for (size_t i = 0; i < m->targets.count; i++) {
        struct cm_match_target *target = &m->targets.items[i];
        const struct cm_original *original = cm_originals_find(originals, target->name);
        struct cm_parts parts;
        size_t n_aliases;

        if (target->parts.count || target->is_constant || !original ||
            cm_match_find_source(m, target->name))
            continue;
        if (cm_original_parts(m->arena, originals, graph, target->tensor, &parts, &n_aliases))
            take(m, target, parts, n_aliases);
        else if (original->names.count && !original->is_named_by_node &&
                 (original->folding == CM_FOLDED_COMPUTED || original->folding == CM_FOLDED_ROWS))
            refuse_computed(m, target, original);
    }
}
