/* Which tensors of a checkpoint a model's are: what there is on both sides, and the order in which
 * evidence is asked. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/match/match.h"

#include "graph/registry.h"
#include "onnx/tensor_data.h"

#include <math.h>
#include <stdarg.h>

enum { BEHIND_MAX = 4 };

/* ---- the checkpoint's side ---- */

static void add_source(struct cm_matching *m, const struct cm_saved_entry *entry)
{
    bool added;
    uint64_t *place = cm_map_insert(&m->source_names, m->arena, entry->name, &added);

    if (!added) { /* the float copy of a weight counts as the weight */
        if (entry->role == CM_SAVED_MASTER)
            m->sources.items[*place - 1].tensor = entry->tensor;
        return;
    }
    const struct cm_str key = cm_match_key(m->arena, entry->name, false);
    *CM_PUSH(m->arena, &m->sources) = (struct cm_match_source){
        .name = entry->name, .key = key, .tensor = entry->tensor, .role = entry->role};
    *place = m->sources.count;
    uint64_t *same = cm_map_insert(&m->source_keys, m->arena, key, &added);
    *same = added ? m->sources.count : 0;
    uint64_t *layer = cm_map_insert(&m->layers, m->arena, cm_match_layer(key), NULL);
    m->sources.items[m->sources.count - 1].next = (size_t)*layer;
    *layer = m->sources.count;
}

static void gather_sources(struct cm_matching *m)
{
    for (size_t i = 0; i < m->saved->entries.count; i++) {
        const struct cm_saved_entry *entry = &m->saved->entries.items[i];

        if (entry->role == CM_SAVED_WEIGHT || entry->role == CM_SAVED_BUFFER ||
            entry->role == CM_SAVED_MASTER)
            add_source(m, entry);
    }
}

static bool share(const struct cm_saved_tensor *a, const struct cm_saved_tensor *b)
{
    return cm_shape_equal(&a->shape, &b->shape) && a->pieces.count == 1 && b->pieces.count == 1 &&
           a->pieces.items[0].bytes.data == b->pieces.items[0].bytes.data &&
           a->pieces.items[0].offset == b->pieces.items[0].offset;
}

/* Sources that share their memory are one: the one that the optimizer knows, else the first. */
static void find_tied(struct cm_matching *m)
{
    struct cm_map known = {0}, firsts = {0};

    for (size_t g = 0; g < m->saved->groups.count; g++)
        for (size_t i = 0; i < m->saved->groups.items[g].names.count; i++)
            (void)cm_map_insert(&known, m->arena, m->saved->groups.items[g].names.items[i], NULL);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < m->sources.count; i++) {
            struct cm_match_source *source = &m->sources.items[i];
            const uint64_t *storage = &source->tensor->storage;
            bool added;

            if (!*storage || (cm_map_find(&known, source->name) != NULL) != (pass == 0))
                continue;
            uint64_t *first = cm_map_insert(
                &firsts, m->arena, (struct cm_str){(const char *)storage, sizeof *storage}, &added);
            if (added)
                *first = i + 1;
            else if (share(source->tensor, m->sources.items[*first - 1].tensor))
                source->same = (size_t)*first;
        }
}

struct cm_match_source *cm_match_find_source(const struct cm_matching *m, struct cm_str name)
{
    const uint64_t number = cm_map_get(&m->source_names, name, 0);

    return number ? &m->sources.items[number - 1] : NULL;
}

struct cm_match_target *cm_match_find_target(const struct cm_matching *m, struct cm_str name)
{
    const uint64_t number = cm_map_get(&m->target_names, name, 0);

    return number ? &m->targets.items[number - 1] : NULL;
}

const struct cm_saved_tensor *cm_match_tensor(void *matching, struct cm_str name)
{
    const struct cm_match_source *source = cm_match_find_source(matching, name);

    return source ? source->tensor : NULL;
}

/* ---- the model's side ---- */

static enum cm_status add_target(struct cm_matching *m, struct cm_tensor_proto *tensor,
                                 struct cm_str name, bool is_constant, struct cm_error *err)
{
    struct cm_match_target target = {.name = name, .tensor = tensor, .is_constant = is_constant};
    bool added;

    CM_TRY(cm_tensor_proto_shape(tensor, &target.shape, err));
    uint64_t *place = cm_map_insert(&m->target_names, m->arena, name, &added);
    if (!added)
        return CM_OK;
    *CM_PUSH(m->arena, &m->targets) = target;
    *place = m->targets.count;
    return CM_OK;
}

static enum cm_status gather_targets(struct cm_matching *m, struct cm_error *err)
{
    struct cm_graph_proto *graph = m->file->model.graph;

    for (size_t i = 0; i < graph->initializer.count; i++) {
        struct cm_tensor_proto *tensor = &graph->initializer.items[i];
        CM_TRY(add_target(m, tensor, tensor->name, false, err));
    }
    for (size_t i = 0; i < graph->node.count; i++) {
        const struct cm_node_proto *node = &graph->node.items[i];

        if (!cm_builtin_op(node)->values.is_constant || node->output.count != 1)
            continue;
        for (size_t a = 0; a < node->attribute.count; a++) {
            struct cm_tensor_proto *tensor = node->attribute.items[a].t;

            if (tensor && tensor->dims.count && cm_dtype_is_float(tensor->data_type))
                CM_TRY(add_target(m, tensor, node->output.items[0], true, err));
        }
    }
    return CM_OK;
}

void cm_match_read_again(struct cm_matching *m)
{
    const struct cm_graph_proto *graph = m->file->model.graph;

    m->makers = m->readers = (struct cm_map){0};
    m->reads.count = 0;
    for (size_t i = graph->node.count; i-- > 0;) { /* so that the first is at the head */
        const struct cm_node_proto *node = &graph->node.items[i];

        for (size_t o = 0; o < node->output.count; o++)
            *cm_map_insert(&m->makers, m->arena, node->output.items[o], NULL) = i + 1;
        for (size_t k = node->input.count; k-- > 0;) {
            if (!node->input.items[k].size)
                continue;
            uint64_t *head = cm_map_insert(&m->readers, m->arena, node->input.items[k], NULL);
            *CM_PUSH(m->arena, &m->reads) =
                (struct cm_match_read){.node = i, .operand = (int)k, .next = (size_t)*head};
            *head = m->reads.count;
        }
    }
}

/* Who reads a value, or what nodes that only turn or copy it make of it. */
static struct cm_match_reader find_reader(const struct cm_matching *m, struct cm_str value)
{
    for (int depth = 0; depth < BEHIND_MAX; depth++) {
        const uint64_t number = cm_map_get(&m->readers, value, 0);

        if (!number)
            break;
        const struct cm_match_read *read = &m->reads.items[number - 1];
        const struct cm_node_proto *node = &m->file->model.graph->node.items[read->node];
        const struct cm_op *op = cm_builtin_op(node);
        if (!((op->values.kept || op->values.is_copy) && read->operand == 0 && node->output.count))
            return (struct cm_match_reader){node, op, read->operand};
        value = node->output.items[0];
    }
    return (struct cm_match_reader){0};
}

/* Does a layer learn it? What is only added or multiplied may be a constant of the computation,
 * unless it looks like a bias. */
static bool is_needed(const struct cm_match_target *target)
{
    const struct cm_match_reader *read = &target->read;
    int axes = 0;

    if (!read->node || !cm_dtype_is_float(target->tensor->data_type) || !cm_match_duty(read))
        return false;
    for (int i = 0; i < target->shape.rank; i++)
        axes += target->shape.dims[i] != 1;
    switch (read->op->layer.entry) {
    case CM_ENTERS_AS_SHIFT:
    case CM_ENTERS_AS_SCALE:
        return axes == 1;
    case CM_ENTERS_AS_PART:
        return false;
    default:
        return true;
    }
}

/* ---- taking ---- */

void cm_match_take(struct cm_matching *m, struct cm_match_target *target,
                   const struct cm_parts *parts, const char *how, ...)
{
    va_list args;
    char text[300];

    if (target->is_computed) /* no other evidence makes it a tensor of the checkpoint */
        return;
    va_start(args, how);
    vsnprintf(text, sizeof text, how, args);
    va_end(args);
    target->parts = *parts;
    target->how = cm_arena_str(m->arena, cm_str(text));
    for (size_t i = 0; i < parts->count; i++) {
        struct cm_match_source *source = cm_match_find_source(m, parts->items[i].source);

        source->uses++;
        if (!source->same)
            continue;
        struct cm_match_source *other = &m->sources.items[source->same - 1];
        parts->items[i].source = other->name;
        other->uses++;
    }
}

/* PyTorch has a layer's weight as [out, in]; a plain product reads it turned. One that is still
 * called weight was not touched: the exporter left a node that turns it. */
static bool expects_turned(const struct cm_match_target *target,
                           const struct cm_match_source *source)
{
    const struct cm_match_reader *read = &target->read;

    return read->node && read->operand == 1 && read->op->layer.entry == CM_ENTERS_BY_PLACE &&
           read->node->attribute.count == 0 && target->shape.rank == 2 &&
           cm_str_ends(source->name, ".weight") && !cm_str_ends(target->name, ".weight");
}

bool cm_match_fits(struct cm_matching *m, const struct cm_match_source *source,
                   const struct cm_shape *shape)
{
    struct cm_parts layouts[CM_LAYOUTS_MAX];

    return cm_dtype_is_float(source->tensor->dtype) &&
           cm_layouts(m->arena, source->name, &source->tensor->shape, shape, layouts) > 0;
}

bool cm_match_accept(struct cm_matching *m, struct cm_match_target *target,
                     struct cm_match_source *source, const char *how)
{
    struct cm_parts layouts[CM_LAYOUTS_MAX];
    const struct cm_saved_tensor *tensor = source->tensor;
    size_t best = 0;
    double highest = -1, first = 0, least = 0;
    char a[100], b[100];

    size_t count = 0;
    if (target->is_computed)
        return false;
    if (cm_dtype_is_float(tensor->dtype) == cm_dtype_is_float(target->tensor->data_type))
        count = cm_layouts(m->arena, source->name, &tensor->shape, &target->shape, layouts);
    if (count == 0) {
        source->is_misfit = true;
        if (!target->misfit.size)
            target->misfit = cm_arena_printf(
                m->arena, "'%.*s' is %s %s in the model, '%.*s' is %s %s in the checkpoint",
                CM_STR_FMT(target->name), cm_dtype_name((enum cm_dtype)target->tensor->data_type),
                cm_shape_print(&target->shape, a, sizeof a), CM_STR_FMT(source->name),
                cm_dtype_name(tensor->dtype), cm_shape_print(&tensor->shape, b, sizeof b));
        return false;
    }
    for (size_t i = 0; count > 1 && i < count; i++) {
        const double score = cm_match_score(m, target, &layouts[i], &least);

        if (i == 0)
            first = score;
        if (score > highest) {
            highest = score;
            best = i;
        }
    }
    const bool is_told = highest >= least && (best == 0 || !(first > highest - 0.2));
    if (!is_told)
        best = count > 1 && expects_turned(target, source) ? count - 1 : 0;
    cm_match_take(m, target, &layouts[best], "%s%s", how, cm_layout_word(&layouts[best]));
    return true;
}

bool cm_match_may_be_left(const struct cm_matching *m, const struct cm_match_source *source)
{
    return !cm_dtype_is_float(source->tensor->dtype) || source->role == CM_SAVED_BUFFER ||
           (source->same && m->sources.items[source->same - 1].uses);
}

static void release(void *matching)
{
    struct cm_matching *m = matching;

    cm_saved_reader_release(&m->reader);
    cm_tensor_drop(&m->values);
}

enum cm_status cm_match(struct cm_matching *m, struct cm_str map, struct cm_error *err)
{
    cm_arena_defer(m->arena, release, m);
    m->problems = (struct cm_findings){.arena = m->arena, .rule = "import"};
    gather_sources(m);
    find_tied(m);
    cm_match_read_again(m);
    cm_match_split(m);
    CM_TRY(gather_targets(m, err));
    for (size_t i = 0; i < m->targets.count; i++) {
        struct cm_match_target *target = &m->targets.items[i];

        target->read = find_reader(m, target->name);
        target->is_needed = is_needed(target);
    }
    cm_match_by_rules(m, map);
    cm_match_by_original(m);
    cm_match_gates(m);
    cm_match_by_name(m);
    cm_match_by_layer(m);
    cm_match_by_values(m);
    cm_match_by_layer(m); /* what values told is evidence for the tensors beside it */
    cm_match_by_place(m);
    cm_match_the_rest(m);
    release(m);
    return CM_OK;
}
