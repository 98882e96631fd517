/* What a model holds after an import: weights, the optimizer's state, and what nothing computes
 * with. Contents are read while the model is saved. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/match/state_parts.h"
#include "convert/saved_contents.h"
#include "convert/transfer/hold.h"
#include "convert/transfer/import_parts.h"

/* ---- weights ---- */

/* Initializers of a graph by name, to index + 1. */
static struct cm_map initializers_of(struct cm_arena *arena, const struct cm_graph_proto *graph)
{
    struct cm_map map = {0};

    for (size_t i = 0; i < graph->initializer.count; i++)
        *cm_map_insert(&map, arena, graph->initializer.items[i].name, NULL) = i + 1;
    return map;
}

/* Preparing may have moved a tensor out of a Constant node, or written the graph anew. */
static struct cm_tensor_proto *find_tensor(struct cm_importing *in, const struct cm_map *map,
                                           const struct cm_match_target *target)
{
    const uint64_t number = cm_map_get(map, target->name, 0);

    return number ? &in->file->model.graph->initializer.items[number - 1] : target->tensor;
}

/* tensor becomes what parts make of sources; its type and shape stay. */
static enum cm_status fill(struct cm_importing *in, struct cm_tensor_proto *tensor,
                           const struct cm_parts *parts, cm_part_source_fn *find, void *arg,
                           struct cm_error *err)
{
    const enum cm_dtype dtype = (enum cm_dtype)tensor->data_type;
    const struct cm_saved_tensor *first = find(arg, parts->items[0].source);
    struct cm_saved_tensor *gathered;
    struct cm_shape shape;

    CM_TRY(cm_tensor_proto_shape(tensor, &shape, err));
    CM_TRY(cm_error_context(
        err, cm_parts_gather(in->arena, parts, &shape, first->dtype, find, arg, &gathered, err),
        "initializer '%.*s'", CM_STR_FMT(tensor->name)));
    return cm_tensor_proto_store_later(tensor, in->arena, dtype, &shape,
                                       cm_saved_contents(in->arena, gathered, dtype), err);
}

enum cm_status cm_import_weights(struct cm_importing *in, struct cm_error *err)
{
    struct cm_matching *m = in->matching;
    const struct cm_map map = initializers_of(in->arena, in->file->model.graph);

    for (size_t i = 0; i < m->targets.count; i++) {
        const struct cm_match_target *target = &m->targets.items[i];
        struct cm_tensor_proto *tensor = find_tensor(in, &map, target);

        if (!target->parts.count || target->is_tied)
            continue;
        CM_TRY(fill(in, tensor, &target->parts, cm_match_tensor, m, err));
        if (!cm_parts_are_whole(&target->parts) ||
            !cm_str_equal(target->parts.items[0].source, target->name))
            cm_hold_parts(in->arena, tensor, &target->parts);
    }
    return CM_OK;
}

/* ---- states ---- */

struct slots {
    struct cm_importing *in;
    struct cm_saved_index index;
    const char *meaning;
    size_t found;
};

static struct cm_graph_proto *algorithm_of(const struct cm_importing *in)
{
    const struct cm_model_proto *model = &in->file->model;

    return model->training_info.items[model->training_info.count - 1].algorithm;
}

/* The slot of a weight; where the checkpoint has none, zeros. */
static const struct cm_saved_tensor *find_slot(void *arg, struct cm_str name)
{
    struct slots *slots = arg;
    const struct cm_importing *in = slots->in;
    const struct cm_saved_entry *entry = cm_saved_entry(&slots->index, slots->meaning, name);

    if (!entry) {
        const struct cm_saved_tensor like = {
            .dtype = CM_FLOAT, .shape = cm_match_find_source(in->matching, name)->tensor->shape};
        return cm_saved_zeros(in->arena, &like);
    }
    slots->found++;
    in->is_filled[entry - in->saved->entries.items] = true;
    return entry->tensor;
}

/* The framework's word for a slot. */
static struct cm_str word_of(const struct slots *slots, struct cm_str weight)
{
    const struct cm_saved_entry *entry = cm_saved_entry(&slots->index, slots->meaning, weight);

    return entry ? entry->slot : cm_str(slots->meaning);
}

/* A state that has not the weight's shape is made in its own way. */
static enum cm_status parts_of_state(struct slots *slots, const struct cm_plan_state *state,
                                     const struct cm_match_target *target, struct cm_parts *out,
                                     struct cm_error *err)
{
    const struct cm_importing *in = slots->in;
    const enum cm_update_rule rule = in->saved->rule;
    const struct cm_optimizer_state *is = cm_optimizer_slot(rule, state->slot);
    const struct cm_match_source *source =
        cm_match_find_source(in->matching, target->parts.items[0].source);

    slots->meaning = state->slot;
    *out = target->parts;
    if (!is || (!is->shape && !cm_optimizer_rules[rule].needs_whole))
        return CM_OK;
    const struct cm_shape *shape = &source->tensor->shape;
    if (is->shape && strcmp(is->shape, "scalar") == 0) {
        *out = cm_state_parts(in->arena, rule, is, &target->parts.items[0], shape).parts;
        return CM_OK;
    }
    if (!cm_parts_keep_tensor(target->parts.items, target->parts.count, shape))
        return cm_fail(err, CM_UNSUPPORTED,
                       "'%.*s' is not the whole of '%.*s', and the state of %s belongs to whole "
                       "tensors",
                       CM_STR_FMT(target->name), CM_STR_FMT(source->name),
                       cm_optimizer_rules[rule].title);
    const struct cm_state_parts own =
        cm_state_parts(in->arena, rule, is, &target->parts.items[0], shape);
    slots->meaning = own.there->slot;
    *out = own.parts;
    return CM_OK;
}

enum cm_status cm_import_states(struct cm_importing *in, const struct cm_prepare_report *prepared,
                                struct cm_error *err)
{
    struct cm_saved *saved = in->saved;
    struct cm_graph_proto *algorithm = algorithm_of(in);
    struct slots slots = {.in = in, .index = cm_saved_index(in->arena, saved)};
    const struct cm_map map = initializers_of(in->arena, algorithm);
    size_t empty = 0;

    in->is_filled = CM_NEW_ARRAY(in->arena, bool, saved->entries.count + 1);
    for (size_t i = 0; i < prepared->n_states; i++) {
        const struct cm_plan_state *state = &prepared->states[i];
        const struct cm_match_target *target = cm_match_find_target(in->matching, state->weight);
        const uint64_t number = cm_map_get(&map, state->state, 0);

        if (!target || !number)
            continue;
        struct cm_tensor_proto *tensor = &algorithm->initializer.items[number - 1];
        const size_t found = slots.found;
        struct cm_parts parts;
        CM_TRY(parts_of_state(&slots, state, target, &parts, err));
        for (size_t p = 0; p < parts.count; p++)
            (void)find_slot(&slots, parts.items[p].source);
        if (slots.found == found)
            empty++;
        else
            CM_TRY(fill(in, tensor, &parts, find_slot, &slots, err));
        cm_hold_slot(in->arena, tensor, target->name,
                     word_of(&slots, target->parts.items[0].source), state->slot);
    }
    if (empty)
        cm_import_note(in,
                       "%zu of %zu state variables are not in the checkpoint: they begin with 0",
                       empty, prepared->n_states);
    return CM_OK;
}

/* ---- what nothing computes with ---- */

/* Is a tensor of the checkpoint in the model by now? The weight in fewer bits, whose float copy is,
 * counts too. */
static bool is_in_model(const struct cm_importing *in, size_t number)
{
    const struct cm_saved_entry *entry = &in->saved->entries.items[number];
    const struct cm_match_source *source;

    switch (entry->role) {
    case CM_SAVED_WEIGHT:
    case CM_SAVED_BUFFER:
    case CM_SAVED_MASTER:
        source = cm_match_find_source(in->matching, entry->name);
        return source->uses || source->same || source->tensor != entry->tensor;
    case CM_SAVED_SLOT:
        return in->is_filled[number];
    default:
        return false;
    }
}

enum cm_status cm_import_keep(struct cm_importing *in, const struct cm_prepare_report *prepared,
                              struct cm_error *err)
{
    const struct cm_saved *saved = in->saved;
    const size_t entry = in->file->model.training_info.count - 1;
    struct cm_hold_group *groups =
        CM_NEW_ARRAY(in->arena, struct cm_hold_group, saved->groups.count);

    for (size_t g = 0; g < saved->groups.count; g++)
        groups[g].initializers = CM_NEW_ARRAY(in->arena, struct cm_str, in->n_weights);
    for (size_t i = 0; i < in->n_weights; i++) {
        struct cm_hold_group *group = &groups[in->weights[i].group];

        group->initializers[group->count++] = in->weights[i].name;
    }
    CM_TRY(cm_hold_training(in->file, entry, saved, groups, prepared->step_name, err));
    for (size_t i = 0; i < saved->entries.count; i++) {
        const struct cm_saved_entry *one = &saved->entries.items[i];

        if (!is_in_model(in, i) && cm_dtype_size(one->tensor->dtype) &&
            one->tensor->dtype != CM_STRING)
            CM_TRY(cm_hold_keep(in->file, entry, one,
                                cm_saved_contents(in->arena, one->tensor, one->tensor->dtype),
                                err));
    }
    return CM_OK;
}
