/* A model's tensors under the names and in the layouts that a framework has for them, with the
 * training that the model holds. Nothing is copied: tensors are pieces of the model's files. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "convert/transfer/export_saved.h"

#include "convert/match/state_parts.h"
#include "convert/schedule.h"
#include "convert/transfer/hold.h"
#include "onnx/external.h"
#include "onnx/tensor_data.h"

struct state {
    struct cm_held_slot slot;
    struct cm_saved_tensor *tensor;
};

/* An initializer of the inference graph. */
struct holder {
    struct cm_tensor_proto *proto;
    size_t n_aliases;      /* of its parts, the last: other names of the first */
    struct cm_parts parts; /* of which tensors of the framework it is made; none: nothing is said */
    struct cm_saved_tensor *tensor;
    bool is_moved;   /* training updates it */
    bool is_trained; /* a group has it */
    CM_ARRAY(struct state) states;
};

struct use {
    struct holder *holder;
    const struct cm_part *part;
};

/* A tensor of the framework, and where its parts are. */
struct source {
    struct cm_str name;
    struct cm_shape shape;
    bool is_alias;  /* the optimizer knows it by another name */
    uint64_t place; /* in the network's own list, from 1; 0: it is not listed */
    CM_ARRAY(struct use) uses;
};

struct gather {
    struct cm_arena *arena;
    const struct cm_model_file *file;
    struct cm_gathering how;
    struct cm_saved *saved;
    const struct cm_graph_proto *algorithm; /* NULL: none */
    const struct cm_training_proto *training;
    size_t entry;     /* of training info */
    bool is_prepared; /* by flags: what states are, their names say */
    struct holder *holders;
    size_t n_holders;
    struct cm_map by_name; /* of holders: 1 + index */
    CM_ARRAY(struct source) sources;
    struct cm_map by_source;        /* of sources: 1 + index */
    struct cm_map grouped;          /* the framework's names in groups, and initializers' */
    struct cm_originals *originals; /* NULL: they are not asked */
    struct cm_map own_named;        /* initializers whose names are their own */
    struct cm_error *err;
};

/* ---- the model's tensors ---- */

static void drop_buffer(void *buffer)
{
    cm_buffer_drop(buffer);
}

static enum cm_status view(struct gather *g, const struct cm_tensor_proto *proto,
                           struct cm_saved_tensor **out)
{
    struct cm_tensor tensor;
    bool aligned;

    CM_TRY(cm_tensor_proto_view(proto, g->file->files, &tensor, &aligned, g->err));
    if (tensor.buffer)
        cm_arena_defer(g->arena, drop_buffer, tensor.buffer);
    const struct cm_str bytes = {tensor.data, cm_tensor_bytes(&tensor)};
    return cm_saved_tensor_new(g->arena, tensor.type, &tensor.shape, bytes, g->file->path, out,
                               g->err);
}

/* ---- which belongs where ---- */

/* Sizes that the list of parts leaves out are those of the whole. */
static void complete_part(struct cm_part *part, const struct cm_tensor_proto *proto)
{
    for (int a = 0; a < part->source_rank; a++) {
        if (part->size[a] >= 0)
            continue;
        part->size[a] = 1;
        for (size_t i = 0; i < proto->dims.count; i++)
            if (part->axes[i] == a)
                part->size[a] = proto->dims.items[i] - part->at[i];
    }
}

static enum cm_status add_source(struct gather *g, struct holder *holder, struct cm_part *part)
{
    bool added;
    uint64_t *index = cm_map_insert(&g->by_source, g->arena, part->source, &added);

    if (added) {
        *CM_PUSH(g->arena, &g->sources) =
            (struct source){.name = part->source, .shape = {.rank = part->source_rank}};
        *index = g->sources.count;
    }
    struct source *source = &g->sources.items[*index - 1];
    complete_part(part, holder->proto);
    if (source->shape.rank != part->source_rank)
        return cm_fail(g->err, CM_BAD_MODEL,
                       "initializer '%.*s' is made of a tensor '%.*s' of %d axes, which has %d "
                       "elsewhere",
                       CM_STR_FMT(holder->proto->name), CM_STR_FMT(part->source), part->source_rank,
                       source->shape.rank);
    for (int a = 0; a < part->source_rank; a++)
        if (source->shape.dims[a] < part->from[a] + part->size[a])
            source->shape.dims[a] = part->from[a] + part->size[a];
    *CM_PUSH(g->arena, &source->uses) = (struct use){holder, part};
    return CM_OK;
}

static bool has_source(const struct gather *g)
{
    return cm_family_of(g->saved->system) != CM_FAMILY_NONE;
}

/* Without a word about where a tensor came from: what training changes is a weight or a statistic.
 * Of a model that came from no framework, what may be a weight is one: numbers with axes. */
static bool may_be_weight(const struct gather *g, const struct holder *holder)
{
    return holder->is_moved || holder->is_trained ||
           (!has_source(g) && cm_dtype_is_float(holder->proto->data_type) &&
            holder->proto->dims.count > 0);
}

/* What the network that was exported says, if it is asked. */
static bool may_be_saved(struct gather *g, const struct holder *holder)
{
    if (holder->is_moved || holder->is_trained || !g->originals)
        return may_be_weight(g, holder);
    const enum cm_belonging belongs = cm_original_belongs(g->originals, holder->proto->name);
    return belongs == CM_BELONGS || (belongs == CM_BELONGS_PERHAPS && may_be_weight(g, holder));
}

static enum cm_status open_holder(struct gather *g, struct holder *holder)
{
    struct cm_tensor_proto *proto = holder->proto;
    struct cm_shape shape;

    if (cm_entries_find(&proto->metadata_props, CM_HOLD_PREFIX "parts").size)
        CM_TRY(cm_hold_read_parts(g->arena, proto, &holder->parts, g->err));
    holder->is_trained = cm_map_find(&g->grouped, proto->name);
    for (size_t i = 0; i < holder->parts.count; i++)
        if (cm_map_find(&g->grouped, holder->parts.items[i].source))
            holder->is_trained = true;
    if (!holder->parts.count && !may_be_saved(g, holder))
        return CM_OK;
    CM_TRY(view(g, proto, &holder->tensor));
    CM_TRY(cm_tensor_proto_shape(proto, &shape, g->err));
    if (!holder->parts.count && g->originals)
        (void)cm_original_parts(g->arena, g->originals, g->file->model.graph, proto, &holder->parts,
                                &holder->n_aliases);
    if (!holder->parts.count) {
        cm_parts_whole(g->arena, &holder->parts, proto->name, &shape);
        cm_map_insert(&g->own_named, g->arena, proto->name, NULL);
    }
    for (size_t i = 0; i < holder->parts.count; i++) {
        CM_TRY(add_source(g, holder, &holder->parts.items[i]));
        if (i + holder->n_aliases >= holder->parts.count)
            g->sources.items[cm_map_get(&g->by_source, holder->parts.items[i].source, 1) - 1]
                .is_alias = true;
    }
    return CM_OK;
}

static void note_groups(struct gather *g)
{
    for (size_t i = 0; i < g->saved->groups.count; i++) {
        const struct cm_saved_group *group = &g->saved->groups.items[i];

        for (size_t k = 0; k < group->names.count; k++)
            *cm_map_insert(&g->grouped, g->arena, group->names.items[k], NULL) = i + 1;
    }
}

static void list_holders(struct gather *g)
{
    const struct cm_graph_proto *graph = g->file->model.graph;

    g->n_holders = graph->initializer.count;
    g->holders = CM_NEW_ARRAY(g->arena, struct holder, g->n_holders);
    cm_map_reserve(&g->by_name, g->arena, g->n_holders);
    for (size_t i = 0; i < g->n_holders; i++) {
        g->holders[i].proto = &graph->initializer.items[i];
        *cm_map_insert(&g->by_name, g->arena, g->holders[i].proto->name, NULL) = i + 1;
    }
}

static enum cm_status open_holders(struct gather *g)
{
    for (size_t i = 0; g->training && i < g->training->update_binding.count; i++) {
        const uint64_t at = cm_map_get(&g->by_name, g->training->update_binding.items[i].key, 0);
        if (at)
            g->holders[at - 1].is_moved = true;
    }
    for (size_t i = 0; i < g->n_holders; i++)
        CM_TRY(open_holder(g, &g->holders[i]));
    return CM_OK;
}

static enum cm_status open_states(struct gather *g)
{
    for (size_t i = 0; g->algorithm && i < g->algorithm->initializer.count; i++) {
        const struct cm_tensor_proto *proto = &g->algorithm->initializer.items[i];
        struct cm_held_slot slot;
        struct cm_saved_tensor *tensor;

        CM_TRY(cm_hold_read_slot(g->arena, proto, &slot, g->err));
        if (g->is_prepared)
            slot.slot = slot.meaning = cm_str(cm_prepared_slot(proto->name, &slot.of));
        const uint64_t at = slot.of.size ? cm_map_get(&g->by_name, slot.of, 0) : 0;
        if (!at || !g->holders[at - 1].tensor)
            continue;
        CM_TRY(view(g, proto, &tensor));
        *CM_PUSH(g->arena, &g->holders[at - 1].states) = (struct state){slot, tensor};
    }
    return CM_OK;
}

/* ---- putting together ---- */

static enum cm_saved_role role_of(const struct gather *g, const struct holder *holder)
{
    return holder->is_moved && !holder->is_trained && g->saved->has_optimizer ? CM_SAVED_BUFFER
                                                                              : CM_SAVED_WEIGHT;
}

static const char *meaning_of(struct gather *g, const struct cm_held_slot *slot)
{
    return slot->meaning.size ? cm_arena_str(g->arena, slot->meaning).data : NULL;
}

/* The tensor that a holder is, or that the state of this slot is; NULL: it has no such state. */
static struct cm_saved_tensor *tensor_of(const struct holder *holder,
                                         const struct cm_held_slot *slot)
{
    if (!slot)
        return holder->tensor;
    for (size_t i = 0; i < holder->states.count; i++)
        if (cm_str_equal(holder->states.items[i].slot.slot, slot->slot))
            return holder->states.items[i].tensor;
    return NULL;
}

static bool covers_all(const struct source *source, const struct cm_part *part)
{
    for (int a = 0; a < part->source_rank; a++)
        if (part->from[a] != 0 || part->size[a] != source->shape.dims[a])
            return false;
    return true;
}

/* Where several initializers hold the whole tensor (an exporter copied a weight that two layers
 * share), the one that is trained counts. */
static void choose_use(struct source *source)
{
    const struct use *chosen = NULL;

    for (size_t i = 0; i < source->uses.count; i++) {
        const struct use *use = &source->uses.items[i];

        if (covers_all(source, use->part) &&
            (!chosen || (use->holder->is_moved && !chosen->holder->is_moved)))
            chosen = use;
    }
    if (!chosen)
        return;
    source->uses.items[0] = *chosen;
    source->uses.count = 1;
}

static enum cm_status scatter(struct gather *g, const struct source *source,
                              const struct cm_held_slot *slot, struct cm_saved_tensor **out)
{
    const size_t count = source->uses.count;
    struct cm_part_use *uses = CM_NEW_ARRAY(g->arena, struct cm_part_use, count);

    for (size_t i = 0; i < count; i++) {
        uses[i] = (struct cm_part_use){source->uses.items[i].part,
                                       tensor_of(source->uses.items[i].holder, slot)};
        if (!uses[i].tensor)
            return cm_fail(g->err, CM_BAD_MODEL,
                           "'%.*s' is made of several initializers, and '%.*s' has no state '%.*s'",
                           CM_STR_FMT(source->name),
                           CM_STR_FMT(source->uses.items[i].holder->proto->name),
                           CM_STR_FMT(slot->slot));
    }
    return cm_parts_scatter(g->arena, uses, count, &source->shape, uses[0].tensor->dtype, out,
                            g->err);
}

/* A state of a rule that reads whole weights, or that has not the shape of its weight. */
static enum cm_status put_shaped(struct gather *g, const struct source *source,
                                 const struct state *state, const struct cm_optimizer_state *is)
{
    const enum cm_update_rule rule = g->saved->rule;
    const struct use *use = &source->uses.items[0];
    struct cm_saved_tensor *tensor;

    if (!cm_parts_keep_tensor(use->part, use->holder->parts.count - use->holder->n_aliases,
                              &source->shape) &&
        (!is->shape || strcmp(is->shape, "scalar") != 0))
        return cm_fail(g->err, CM_UNSUPPORTED,
                       "'%.*s' is not the whole of '%.*s', and the state of %s belongs to whole "
                       "tensors; --weights-only leaves it out",
                       CM_STR_FMT(use->holder->proto->name), CM_STR_FMT(source->name),
                       cm_optimizer_rules[rule].title);
    const struct cm_state_parts own = cm_state_parts(g->arena, rule, is, use->part, &source->shape);
    const struct cm_part_use part = {&own.parts.items[0], state->tensor};
    CM_TRY(cm_parts_scatter(g->arena, &part, 1, &own.shape, state->tensor->dtype, &tensor, g->err));
    (void)cm_saved_add_slot(g->saved, source->name,
                            own.there == is ? state->slot.slot : cm_str(own.there->slot),
                            own.there->slot, tensor);
    return CM_OK;
}

static enum cm_status put_slot(struct gather *g, const struct source *source,
                               const struct state *state)
{
    const char *meaning = meaning_of(g, &state->slot);
    const struct cm_optimizer_rule *rule = &cm_optimizer_rules[g->saved->rule];
    const struct cm_optimizer_state *is =
        meaning ? cm_optimizer_slot(g->saved->rule, meaning) : NULL;
    struct cm_saved_tensor *tensor;

    if (is && (is->shape || rule->needs_whole))
        return put_shaped(g, source, state, is);
    CM_TRY(scatter(g, source, &state->slot, &tensor));
    (void)cm_saved_add_slot(g->saved, source->name, state->slot.slot, meaning, tensor);
    return CM_OK;
}

static enum cm_status put_source(struct gather *g, struct source *source)
{
    struct cm_saved_tensor *tensor;

    choose_use(source);
    const struct holder *first = source->uses.items[0].holder;
    CM_TRY(scatter(g, source, NULL, &tensor));
    (void)cm_saved_add(g->saved, role_of(g, first), source->name, tensor);
    for (size_t i = 0; !source->is_alias && i < first->states.count; i++)
        CM_TRY(put_slot(g, source, &first->states.items[i]));
    return CM_OK;
}

static struct cm_str name_in_graph(const struct gather *g, const struct holder *holder)
{
    if (g->how.own_names || holder->parts.count != 1)
        return holder->proto->name;
    const struct cm_str name = holder->parts.items[0].source;
    const struct source *source = &g->sources.items[cm_map_get(&g->by_source, name, 1) - 1];
    return source->uses.count == 1 && covers_all(source, &holder->parts.items[0])
               ? name
               : holder->proto->name;
}

static void put_as_in_graph(struct gather *g, const struct holder *holder, struct cm_str name)
{
    if (!holder->tensor)
        return;
    (void)cm_saved_add(g->saved, role_of(g, holder), name, holder->tensor);
    for (size_t i = 0; i < holder->states.count; i++) {
        const struct state *state = &holder->states.items[i];

        (void)cm_saved_add_slot(g->saved, name, state->slot.slot, meaning_of(g, &state->slot),
                                state->tensor);
    }
}

/* Groups name what the tensors are called now, in the order they had. */
static void rename_groups(struct gather *g)
{
    const size_t n_groups = g->saved->groups.count;
    struct cm_map done = {0};

    for (size_t i = 0; i < n_groups; i++) {
        struct cm_saved_group *group = &g->saved->groups.items[i];
        const struct cm_saved_group old = *group;

        group->names.count = group->names.capacity = 0;
        group->names.items = NULL;
        for (size_t k = 0; k < old.names.count; k++) {
            const uint64_t at = cm_map_get(&g->by_source, old.names.items[k], 0);
            for (size_t u = 0; at && u < g->sources.items[at - 1].uses.count; u++) {
                const struct holder *holder = g->sources.items[at - 1].uses.items[u].holder;
                const struct cm_str name = name_in_graph(g, holder);

                if (cm_map_add(&done, g->arena, name))
                    *CM_PUSH(g->arena, &group->names) = name;
            }
        }
    }
}

/* ---- the order that the network has ---- */

static int by_place(const void *a, const void *b)
{
    const struct source *const left = *(struct source *const *)a, *const right =
                                                                      *(struct source *const *)b;

    if (left->place != right->place)
        return left->place < right->place ? -1 : 1;
    return left < right ? -1 : left > right;
}

/* Sources as the network lists them, those that it does not list behind them. */
static struct source **sort_sources(struct gather *g)
{
    struct source **sorted = CM_NEW_ARRAY(g->arena, struct source *, g->sources.count);
    struct cm_map places = {0};

    for (size_t i = 0; g->originals && i < g->originals->n_recorded; i++)
        *cm_map_insert(&places, g->arena, g->originals->recorded[i].target, NULL) = i + 1;
    for (size_t i = 0; i < g->sources.count; i++) {
        sorted[i] = &g->sources.items[i];
        sorted[i]->place = cm_map_get(&places, sorted[i]->name, UINT64_MAX);
    }
    qsort(sorted, g->sources.count, sizeof *sorted, by_place);
    return sorted;
}

/* Groups that name initializers name the network's tensors from now on, in the network's order:
 * PyTorch knows the tensors of its optimizer by their numbers. */
static void name_groups(struct gather *g, struct source *const *sorted)
{
    for (size_t i = 0; i < g->saved->groups.count; i++) {
        struct cm_saved_group *group = &g->saved->groups.items[i];
        const struct cm_saved_group old = *group;
        struct cm_map wanted = {0};

        for (size_t k = 0; k < old.names.count; k++) {
            const uint64_t at = cm_map_get(&g->by_name, old.names.items[k], 0);
            const struct holder *holder = at ? &g->holders[at - 1] : NULL;

            if (!holder || cm_map_find(&g->by_source, old.names.items[k]))
                cm_map_insert(&wanted, g->arena, old.names.items[k], NULL);
            for (size_t p = 0; holder && p + holder->n_aliases < holder->parts.count; p++)
                cm_map_insert(&wanted, g->arena, holder->parts.items[p].source, NULL);
        }
        group->names.count = group->names.capacity = 0;
        group->names.items = NULL;
        for (size_t k = 0; k < g->sources.count; k++)
            if (cm_map_find(&wanted, sorted[k]->name) && !sorted[k]->is_alias)
                *CM_PUSH(g->arena, &group->names) = sorted[k]->name;
    }
}

/* PyTorch's optimizer knows a weight by its number among the parameters. The older exporter writes
 * them in the network's order, but those that it folded or copied come after the others. */
static void note_order(struct gather *g)
{
    size_t count = 0;

    for (size_t i = 0; i < g->saved->groups.count; i++)
        count += g->saved->groups.items[i].names.count;
    if (g->how.notes && g->how.optimizer && g->is_prepared && g->originals->is_older &&
        !g->originals->n_recorded && count > 1)
        *CM_PUSH(g->arena, g->how.notes) =
            CM_STR("the exporter did not record the order of the parameters, by which PyTorch's "
                   "optimizer numbers its state: the state is in the order of the file; where "
                   "net.named_parameters() has another order, use --weights-only");
}

static void note_left_out(struct gather *g)
{
    if (g->how.notes)
        cm_note_originals(g->arena, g->originals, g->file->model.graph, &g->own_named,
                          &g->by_source, g->how.notes);
}

static enum cm_status put_tensors(struct gather *g)
{
    if (g->originals) {
        struct source **sorted = sort_sources(g);

        for (size_t i = 0; i < g->sources.count; i++)
            CM_TRY(put_source(g, sorted[i]));
        name_groups(g, sorted);
        note_order(g);
        note_left_out(g);
        return CM_OK;
    }
    if (!g->how.as_graph) {
        for (size_t i = 0; i < g->sources.count; i++)
            CM_TRY(put_source(g, &g->sources.items[i]));
        return CM_OK;
    }
    for (size_t i = 0; i < g->n_holders; i++)
        put_as_in_graph(g, &g->holders[i], name_in_graph(g, &g->holders[i]));
    rename_groups(g);
    return CM_OK;
}

/* ---- what no node reads ---- */

static enum cm_status put_kept(struct gather *g)
{
    struct cm_held_tensor *kept;
    struct cm_saved_tensor *tensor;
    size_t count;

    if (!g->algorithm)
        return CM_OK;
    CM_TRY(cm_hold_read_kept(g->arena, g->file, g->entry, &kept, &count, g->err));
    for (size_t i = 0; i < count; i++) {
        CM_TRY(view(g, kept[i].tensor, &tensor));
        struct cm_saved_entry *entry = cm_saved_add(g->saved, kept[i].role, kept[i].name, tensor);
        entry->slot = kept[i].slot;
        if (kept[i].meaning.size)
            entry->meaning = cm_arena_str(g->arena, kept[i].meaning).data;
    }
    return CM_OK;
}

/* ---- where it stands ---- */

static void set_rates(struct gather *g)
{
    struct cm_saved *saved = g->saved;

    if (saved->schedule_known != CM_SCHEDULE_KNOWN || saved->step < 0 || !saved->schedule.count)
        return;
    for (size_t i = 0; i < saved->groups.count; i++)
        saved->groups.items[i].settings.lr = cm_schedule_rate(
            &saved->schedule, saved->groups.count, i, saved->step + saved->schedule.offset);
}

/* The entry that says which optimizer it has; otherwise the first. */
static size_t choose_entry(const struct cm_model_file *file)
{
    for (size_t i = 0; i < file->model.training_info.count; i++) {
        const struct cm_graph_proto *graph = file->model.training_info.items[i].algorithm;

        for (size_t k = 0; graph && k < graph->metadata_props.count; k++)
            if (cm_str_is(graph->metadata_props.items[k].key, CM_HOLD_PREFIX "optimizer"))
                return i;
    }
    return 0;
}

static enum cm_status read_training(struct gather *g)
{
    g->entry = choose_entry(g->file);
    if (g->file->model.training_info.count) {
        g->training = &g->file->model.training_info.items[g->entry];
        g->algorithm = g->training->algorithm;
    }
    if (!g->algorithm) {
        g->saved = cm_saved_new(g->arena, g->file->path);
        cm_saved_missing(g->saved, "an optimizer: the model has no training info");
        return CM_OK;
    }
    CM_TRY(cm_hold_read(g->arena, g->file, g->entry, &g->saved, g->err));
    if (!g->saved->has_optimizer)
        g->is_prepared = cm_export_prepared(g->arena, g->file, g->training, &g->by_name, g->saved);
    if (!g->saved->has_optimizer && !g->saved->missing.count)
        cm_saved_missing(g->saved, "an optimizer: the training info does not say which one it has "
                                   "(metadata entry '" CM_HOLD_PREFIX "optimizer')");
    set_rates(g);
    return CM_OK;
}

enum cm_status cm_gather(struct cm_arena *arena, const struct cm_model_file *file,
                         struct cm_gathering how, struct cm_saved **out, struct cm_error *err)
{
    struct gather g = {.arena = arena, .file = file, .how = how, .err = err};

    if (!file->model.graph)
        return cm_fail(err, CM_BAD_MODEL, "the model has no graph");
    list_holders(&g);
    CM_TRY(read_training(&g));
    note_groups(&g);
    if (how.originals && cm_family_of(g.saved->system) == CM_FAMILY_NONE)
        g.originals = cm_originals_read(arena, file->model.graph);
    CM_TRY(open_holders(&g));
    CM_TRY(open_states(&g));
    const struct cm_mapped_ranges mapped = cm_external_ranges(arena, file->files);
    for (size_t i = 0; i < mapped.count; i++)
        *CM_PUSH(arena, &g.saved->mapped) = mapped.items[i];
    CM_TRY(put_tensors(&g));
    CM_TRY(put_kept(&g));
    *out = g.saved;
    return CM_OK;
}
