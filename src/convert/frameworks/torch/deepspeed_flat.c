/* Flat tensors of ZeRO, each rank's a part, cut into parameters again. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/torch/deepspeed.h"

#include "base/number.h"
#include "train/rules.h"

/* ---- flat tensors ---- */

static const struct cm_saved_tensor *flat_tensor(const struct cm_zero *zero, size_t rank,
                                                 size_t flat, struct cm_str slot)
{
    const struct cm_item *item = NULL;

    if (!slot.size) {
        item = cm_item_at(zero->ranks[rank].flats, flat);
    } else {
        const struct cm_item *states = cm_item_get(zero->ranks[rank].base, "state");
        for (size_t i = 0; i < cm_item_count(states); i++) {
            const struct cm_item *key = states->entries.items[i].key;
            if (key && key->kind == CM_ITEM_INT && (uint64_t)key->number == flat)
                item = states->entries.items[i].value;
        }
        item = cm_item_get(item, cm_arena_str(zero->place->arena, slot).data);
    }
    return item && item->kind == CM_ITEM_TENSOR && item->tensor->shape.rank == 1 ? item->tensor
                                                                                 : NULL;
}

/* Elements [start, start + count) of a flat tensor as elements from `at` on of another. */
static enum cm_status add_run(struct cm_zero *zero, struct cm_saved_tensor *tensor,
                              const struct cm_saved_tensor *flat, int64_t start, int64_t count,
                              int64_t at)
{
    const struct cm_saved_piece *from = &flat->pieces.items[0];

    if (flat->dtype != tensor->dtype || start > flat->shape.dims[0] ||
        count > flat->shape.dims[0] - start || (from->stride && flat->shape.dims[0] > 1))
        return cm_fail(zero->err, CM_BAD_MODEL,
                       "a flat tensor has %lld elements, expected at least %lld",
                       (long long)flat->shape.dims[0], (long long)(start + count));
    struct cm_saved_piece *piece = cm_saved_piece_add(zero->place->arena, tensor, false);
    piece->bytes = from->bytes;
    piece->file = from->file;
    piece->offset = from->offset + start;
    piece->is_run = true;
    piece->first[0] = at;
    piece->size[0] = count;
    return CM_OK;
}

/* A parameter's weights (slot empty) or slot, put together from all ranks. */
static enum cm_status cut(struct cm_zero *zero, const struct cm_zero_parameter *parameter,
                          struct cm_str slot, struct cm_saved_tensor **out)
{
    struct cm_saved_tensor *tensor = CM_NEW(zero->place->arena, struct cm_saved_tensor);
    const int64_t ranks = (int64_t)zero->n_ranks;
    const int64_t share = (parameter->count + ranks - 1) / ranks; /* with ZeRO 3 */
    int64_t part = 0, done = 0;

    tensor->shape = parameter->shape;
    for (size_t r = 0; r < zero->n_ranks && done < parameter->count; r++) {
        const struct cm_saved_tensor *flat = flat_tensor(zero, r, parameter->flat, slot);
        int64_t start = parameter->at, count = parameter->count - done;

        if (!flat)
            return cm_fail(zero->err, CM_BAD_MODEL, "rank %zu has no part of it", r);
        if (r == 0) {
            tensor->dtype = flat->dtype;
            part = flat->shape.dims[0];
        }
        if (zero->is_third) {
            count = share < count ? share : count;
        } else { /* elements [at, at + n) of all ranks' parts in a row, each of `part` */
            const int64_t end = (int64_t)(r + 1) * part;
            start = parameter->at + done - (int64_t)r * part;
            if (parameter->at + done >= end)
                continue;
            count = count < end - parameter->at - done ? count : end - parameter->at - done;
        }
        CM_TRY(add_run(zero, tensor, flat, start, count, done));
        done += count;
    }
    CM_TRY(cm_saved_tensor_check(zero->place->arena, tensor, zero->err));
    *out = tensor;
    return CM_OK;
}

/* ---- parameters ---- */

static size_t group_of(const struct cm_zero *zero, size_t flat)
{
    const struct cm_item *groups = cm_item_get(zero->ranks[0].base, "param_groups");

    for (size_t i = 0; i < cm_item_count(groups); i++) {
        const struct cm_item *list = cm_item_get(cm_item_at(groups, i), "params");
        for (size_t k = 0; k < cm_item_count(list); k++) {
            int64_t number;
            if (cm_item_is_int(cm_item_at(list, k), &number) && (uint64_t)number == flat)
                return i;
        }
    }
    return SIZE_MAX;
}

/* Parameters of one group in the order of its flat tensor. Flat tensors of ZeRO 3 hold some of a
 * group: the next one begins where one is full. */
static enum cm_status list_group(struct cm_zero *zero, const struct cm_item *shapes, size_t index,
                                 size_t *flat, int64_t *at)
{
    const struct cm_item *paddings =
        cm_item_at(cm_item_get(zero->ranks[0].state, "param_alignment_paddings"), index);
    const int64_t ranks = (int64_t)zero->n_ranks;

    if (!zero->is_third) {
        *flat = index;
        *at = 0;
    }
    for (size_t i = 0; i < cm_item_count(shapes); i++) {
        struct cm_zero_parameter *parameter = CM_PUSH(zero->place->arena, &zero->parameters);
        int64_t padding = 0;

        *parameter = (struct cm_zero_parameter){0};
        if (shapes->kind != CM_ITEM_MAP ||
            !cm_item_is_text(shapes->entries.items[i].key, &parameter->name) ||
            !cm_item_is_shape(shapes->entries.items[i].value, &parameter->shape))
            return cm_fail(zero->err, CM_BAD_MODEL, "group %zu of 'param_shapes' is broken", index);
        parameter->count = cm_shape_elements(&parameter->shape);
        const int64_t part = (parameter->count + ranks - 1) / ranks;
        const struct cm_saved_tensor *first = flat_tensor(zero, 0, *flat, CM_STR_NONE);
        if (zero->is_third && first && *at >= first->shape.dims[0] && part > 0) {
            ++*flat;
            *at = 0;
        }
        parameter->flat = *flat;
        parameter->at = *at;
        parameter->group = group_of(zero, *flat);
        if (parameter->group == SIZE_MAX)
            return cm_fail(zero->err, CM_BAD_MODEL,
                           "'%.*s' is in flat tensor %zu, which no group of the optimizer has",
                           CM_STR_FMT(parameter->name), *flat);
        (void)cm_item_is_int(cm_item_at(paddings, i), &padding);
        if (!cm_dim_add(*at, zero->is_third ? part : parameter->count, at) || padding < 0 ||
            !cm_dim_add(*at, padding, at))
            return cm_fail(zero->err, CM_BAD_MODEL, "'param_shapes' is too large");
    }
    return CM_OK;
}

enum cm_status cm_zero_list_parameters(struct cm_zero *zero)
{
    const struct cm_item *shapes = cm_item_get(zero->ranks[0].model, "param_shapes");
    size_t flat = 0;
    int64_t at = 0;

    if (shapes && shapes->kind == CM_ITEM_MAP)
        return list_group(zero, shapes, 0, &flat, &at);
    if (!cm_item_count(shapes))
        return cm_fail(zero->err, CM_BAD_MODEL,
                       "'param_shapes' is missing, which cuts flat tensors");
    for (size_t i = 0; i < cm_item_count(shapes); i++)
        CM_TRY(list_group(zero, cm_item_at(shapes, i), i, &flat, &at));
    return CM_OK;
}

/* ---- weights ---- */

static void put_tensor(struct cm_zero *zero, struct cm_item *map, struct cm_str name,
                       struct cm_saved_tensor *tensor)
{
    struct cm_arena *arena = zero->place->arena;

    cm_item_set(arena, map, cm_item_text(arena, name), cm_item_tensor(arena, tensor));
}

/* Weights that are not trained, with ZeRO 3: a part of each in each rank's file. */
static enum cm_status add_frozen(struct cm_zero *zero, struct cm_item *weights)
{
    const struct cm_item *shapes = cm_item_get(zero->ranks[0].model, "frozen_param_shapes");

    for (size_t i = 0; i < cm_item_count(shapes); i++) {
        struct cm_saved_tensor *tensor = CM_NEW(zero->place->arena, struct cm_saved_tensor);
        int64_t done = 0;
        struct cm_str name;

        if (shapes->kind != CM_ITEM_MAP || !cm_item_is_text(shapes->entries.items[i].key, &name) ||
            !cm_item_is_shape(shapes->entries.items[i].value, &tensor->shape))
            return cm_fail(zero->err, CM_BAD_MODEL, "'frozen_param_shapes' is broken");
        const int64_t count = cm_shape_elements(&tensor->shape);
        const char *key = cm_arena_str(zero->place->arena, name).data;
        for (size_t r = 0; r < zero->n_ranks && done < count; r++) {
            const struct cm_item *part =
                cm_item_get(cm_item_get(zero->ranks[r].model, "frozen_param_fragments"), key);
            if (!part || part->kind != CM_ITEM_TENSOR || part->tensor->shape.rank != 1)
                return cm_fail(zero->err, CM_BAD_MODEL, "'%s': rank %zu has no part of it", key, r);
            const int64_t here = part->tensor->shape.dims[0];
            tensor->dtype = part->tensor->dtype;
            CM_TRY(add_run(zero, tensor, part->tensor, 0, here < count - done ? here : count - done,
                           done));
            done += here;
        }
        CM_TRY(cm_error_context(
            zero->err, cm_saved_tensor_check(zero->place->arena, tensor, zero->err), "'%s'", key));
        put_tensor(zero, weights, name, tensor);
    }
    return CM_OK;
}

/* With ZeRO 3 the file of weights has empty places for them, and real buffers. */
enum cm_status cm_zero_gather_weights(struct cm_zero *zero, struct cm_item *weights)
{
    const struct cm_item *module = cm_item_get(zero->ranks[0].model, "module");
    const struct cm_item *buffers = cm_item_get(zero->ranks[0].model, "buffer_names");
    const struct cm_item *shared = cm_item_get(zero->ranks[0].model, "shared_params");

    for (size_t i = 0; i < zero->parameters.count; i++) {
        const struct cm_zero_parameter *parameter = &zero->parameters.items[i];
        struct cm_saved_tensor *tensor;

        CM_TRY(cm_error_context(zero->err, cut(zero, parameter, CM_STR_NONE, &tensor), "'%.*s'",
                                CM_STR_FMT(parameter->name)));
        tensor->storage = cm_hash(parameter->name) | 1;
        put_tensor(zero, weights, parameter->name, tensor);
    }
    CM_TRY(add_frozen(zero, weights));
    for (size_t i = 0; i < cm_item_count(shared); i++) { /* tied: another name -> name */
        struct cm_str name, other;
        if (shared->kind == CM_ITEM_MAP && cm_item_is_text(shared->entries.items[i].key, &other) &&
            cm_item_is_text(shared->entries.items[i].value, &name))
            for (size_t k = 0; k < weights->entries.count; k++)
                if (cm_str_equal(weights->entries.items[k].key->text, name)) {
                    put_tensor(zero, weights, other, weights->entries.items[k].value->tensor);
                    break;
                }
    }
    for (size_t i = 0; i < cm_item_count(buffers); i++) {
        struct cm_str name;
        if (!cm_item_is_text(cm_item_at(buffers, i), &name))
            continue;
        const struct cm_item *value =
            cm_item_get(module, cm_arena_str(zero->place->arena, name).data);
        if (value && value->kind == CM_ITEM_TENSOR)
            put_tensor(zero, weights, name, value->tensor);
    }
    return CM_OK;
}

/* Float copies of weights that are kept in fewer bits. */
enum cm_status cm_zero_add_masters(struct cm_zero *zero, const struct cm_item *module)
{
    struct cm_map half = {0};

    for (size_t i = 0; i < cm_item_count(module); i++) {
        const struct cm_item_entry *entry = &module->entries.items[i];
        if (entry->key && entry->key->kind == CM_ITEM_TEXT &&
            entry->value->kind == CM_ITEM_TENSOR &&
            (entry->value->tensor->dtype == CM_BFLOAT16 ||
             entry->value->tensor->dtype == CM_FLOAT16))
            cm_map_insert(&half, zero->place->arena, entry->key->text, NULL);
    }
    for (size_t i = 0; i < zero->parameters.count; i++) {
        const struct cm_zero_parameter *parameter = &zero->parameters.items[i];
        struct cm_saved_tensor *tensor;

        if (!cm_map_find(&half, parameter->name))
            continue;
        CM_TRY(cm_error_context(zero->err, cut(zero, parameter, CM_STR_NONE, &tensor), "'%.*s'",
                                CM_STR_FMT(parameter->name)));
        cm_saved_add(zero->saved, CM_SAVED_MASTER, parameter->name, tensor);
    }
    return CM_OK;
}

/* ---- the optimizer ---- */

/* What PyTorch's optimizer keeps for one parameter. */
static enum cm_status state_of(struct cm_zero *zero, const struct cm_zero_parameter *parameter,
                               struct cm_item *out)
{
    struct cm_arena *arena = zero->place->arena;
    const struct cm_item *states = cm_item_get(zero->ranks[0].base, "state"), *state = NULL;

    for (size_t i = 0; i < cm_item_count(states); i++) {
        const struct cm_item *key = states->entries.items[i].key;
        if (key && key->kind == CM_ITEM_INT && (uint64_t)key->number == parameter->flat)
            state = states->entries.items[i].value;
    }
    for (size_t i = 0; i < cm_item_count(state); i++) {
        const struct cm_item_entry *entry = &state->entries.items[i];
        const struct cm_item *value = entry->value;
        struct cm_saved_tensor *tensor;
        struct cm_str slot;

        if (!entry->key || !cm_item_is_text(entry->key, &slot))
            continue;
        if (value->kind == CM_ITEM_TENSOR && value->tensor->shape.rank == 1) {
            CM_TRY(cm_error_context(zero->err, cut(zero, parameter, slot, &tensor),
                                    "'%.*s' of '%.*s'", CM_STR_FMT(slot),
                                    CM_STR_FMT(parameter->name)));
            value = cm_item_tensor(arena, tensor);
        }
        cm_item_set(arena, out, entry->key, value);
    }
    return CM_OK;
}

/* The optimizer that a configuration names as its users do ("Adam", "adamw"), or by a class. */
static const struct cm_optimizer_rule *named(struct cm_arena *arena, struct cm_str type,
                                             const struct cm_optimizer_preset **preset)
{
    char *lower = cm_arena_alloc(arena, type.size + 1);

    for (size_t i = 0; i < type.size; i++)
        lower[i] = (char)(type.data[i] | (type.data[i] >= 'A' && type.data[i] <= 'Z' ? 32 : 0));
    const struct cm_optimizer_rule *rule = cm_optimizer_find(cm_str(lower), preset);
    for (size_t r = CM_RULE_UNKNOWN + 1; !rule && r < CM_RULES; r++)
        for (const struct cm_optimizer_words *row = cm_optimizer_rules[r].torch; row->name; row++)
            if (cm_str_is(type, row->name))
                rule = &cm_optimizer_rules[r];
    return rule;
}

/* Whether DeepSpeed's own Adam decouples weight decay: it does unless it is told not to. */
static const struct cm_item *decoupled(struct cm_arena *arena, const struct cm_item *config)
{
    const struct cm_item *mode = cm_item_path(config, "optimizer.params.adam_w_mode");
    const struct cm_optimizer_preset *preset = NULL;
    struct cm_str type;
    bool on = true;

    if (!cm_item_is_text(cm_item_path(config, "optimizer.type"), &type))
        return NULL;
    const struct cm_optimizer_rule *rule = named(arena, type, &preset);
    if (!rule || !rule->decoupled)
        return NULL;
    if (!preset || !(cm_optimizer_preset_says(preset, CM_LIKE_TORCH, "decoupled") > 0))
        (void)cm_item_is_bool(mode, &on);
    return cm_item_bool(arena, on);
}

/* As PyTorch would have saved it, had nobody cut it: states and groups by name. */
enum cm_status cm_zero_gather_optimizer(struct cm_zero *zero, const struct cm_item *config,
                                        struct cm_item *out)
{
    struct cm_arena *arena = zero->place->arena;
    const struct cm_item *groups = cm_item_get(zero->ranks[0].base, "param_groups");
    const size_t count = cm_item_count(groups);
    struct cm_item *states = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_item *list = cm_item_new(arena, CM_ITEM_LIST);
    struct cm_item **names = CM_NEW_ARRAY(arena, struct cm_item *, count + 1);
    const struct cm_item *flag = decoupled(arena, config);

    for (size_t i = 0; i < count; i++) {
        const struct cm_item *group = cm_item_at(groups, i);
        struct cm_item *copy = cm_item_new(arena, CM_ITEM_MAP);

        names[i] = cm_item_new(arena, CM_ITEM_LIST);
        if (flag && cm_item_get(group, "betas") && !cm_item_get(group, "decoupled_weight_decay"))
            cm_item_put(arena, copy, "decoupled_weight_decay", flag);
        for (size_t k = 0; k < cm_item_count(group); k++)
            cm_item_set(arena, copy, group->entries.items[k].key, group->entries.items[k].value);
        cm_item_put(arena, copy, "params", names[i]); /* the last of a key counts */
        cm_item_append(arena, list, copy);
    }
    for (size_t i = 0; i < zero->parameters.count; i++) {
        const struct cm_zero_parameter *parameter = &zero->parameters.items[i];
        const struct cm_item *name = cm_item_text(arena, parameter->name);
        struct cm_item *state = cm_item_new(arena, CM_ITEM_MAP);

        CM_TRY(state_of(zero, parameter, state));
        cm_item_append(arena, names[parameter->group], name);
        cm_item_set(arena, states, name, state);
    }
    cm_item_put(arena, out, "state", states);
    cm_item_put(arena, out, "param_groups", list);
    return CM_OK;
}
