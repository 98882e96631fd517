/* A training as state dictionaries of PyTorch: what torch_state.c and its kin read, written. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "base/map.h"
#include "convert/frameworks/torch/safetensors_file.h"
#include "convert/frameworks/torch/torch_file.h"
#include "convert/frameworks/torch/torch_settings.h"
#include "convert/frameworks/torch/torch_state.h"

const struct cm_item *cm_torch_weights_item(struct cm_arena *arena, const struct cm_saved *saved)
{
    struct cm_item *map = cm_item_new(arena, CM_ITEM_MAP);
    size_t *numbers;
    const size_t count = cm_saved_weights(arena, saved, &numbers);

    for (size_t i = 0; i < count; i++) {
        const struct cm_saved_entry *entry = &saved->entries.items[numbers[i]];
        cm_item_set(arena, map, cm_item_text(arena, entry->name),
                    cm_item_tensor(arena, entry->tensor));
    }
    return map;
}

/* ---- optimizers ---- */

static const struct cm_item *key_item(struct cm_arena *arena, struct cm_str name, size_t number,
                                      bool by_name)
{
    return by_name ? cm_item_text(arena, name) : cm_item_int(arena, (int64_t)number);
}

static struct cm_item *group_item(struct cm_arena *arena, const struct cm_saved *saved,
                                  size_t number, size_t first, bool by_name)
{
    const struct cm_saved_group *group = &saved->groups.items[number];
    struct cm_plan_group now = group->settings;
    struct cm_item *item = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_item *names = cm_item_new(arena, CM_ITEM_LIST);

    if (cm_torch_decays_itself(saved) && saved->schedule.items[0].from)
        now.lr = saved->schedule.items[0].from[number];
    cm_torch_put_settings(arena, saved, &now, item);
    if (!isnan(group->settings.initial_lr))
        cm_item_put(arena, item, "initial_lr", cm_item_real(arena, group->settings.initial_lr));
    for (size_t i = 0; i < cm_item_count(group->said); i++) { /* what a scheduler put there */
        const struct cm_item_entry *entry = &group->said->entries.items[i];
        struct cm_str key;
        if (cm_item_is_text(entry->key, &key) &&
            (cm_str_is(key, "max_lr") || cm_str_is(key, "min_lr")))
            cm_item_set(arena, item, entry->key, entry->value);
    }
    for (size_t i = 0; i < group->names.count; i++)
        cm_item_append(arena, names, key_item(arena, group->names.items[i], first + i, by_name));
    cm_item_put(arena, item, "params", names);
    if (!by_name) /* as PyTorch itself has them, where it was given names */
        cm_item_put(arena, item, "param_names",
                    cm_item_texts(arena, group->names.items, group->names.count));
    return item;
}

const struct cm_item *cm_torch_optimizer_item(struct cm_arena *arena, const struct cm_saved *saved,
                                              bool by_name)
{
    struct cm_item *all = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_item *states = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_item *groups = cm_item_new(arena, CM_ITEM_LIST);
    struct cm_map slots = {0}; /* name to the item of its state */
    struct {
        CM_ARRAY(struct cm_item *);
    } made = {0};
    size_t number = 0;

    for (size_t i = 0; i < saved->entries.count; i++) {
        const struct cm_saved_entry *entry = &saved->entries.items[i];
        bool added;

        if (entry->role != CM_SAVED_SLOT || !entry->meaning)
            continue;
        uint64_t *at = cm_map_insert(&slots, arena, entry->name, &added);
        if (added) {
            *at = made.count;
            *CM_PUSH(arena, &made) = cm_item_new(arena, CM_ITEM_MAP);
        }
        cm_item_put(arena, made.items[*at], entry->meaning, cm_item_tensor(arena, entry->tensor));
    }
    for (size_t i = 0; i < saved->groups.count; i++) {
        const struct cm_saved_group *group = &saved->groups.items[i];
        const int64_t step = saved->step < 0 ? 0 : saved->step + group->settings.step_offset;

        cm_item_append(arena, groups, group_item(arena, saved, i, number, by_name));
        for (size_t k = 0; k < group->names.count; k++, number++) {
            const uint64_t *at = cm_map_find(&slots, group->names.items[k]);
            if (!at)
                continue;
            cm_torch_put_counts(arena, saved, &group->settings, step, made.items[*at]);
            cm_item_set(arena, states, key_item(arena, group->names.items[k], number, by_name),
                        made.items[*at]);
        }
    }
    cm_item_put(arena, all, "state", states);
    cm_item_put(arena, all, "param_groups", groups);
    return all;
}

/* ---- schedulers ---- */

struct moving {
    struct cm_arena *arena;
    const struct cm_item *rates; /* _last_lr */
    int depth;
};

static bool is_moved(struct cm_str key)
{
    return cm_str_is(key, "last_epoch") || cm_str_is(key, "_step_count") ||
           cm_str_is(key, "_last_lr") || cm_str_is(key, "_schedulers") || cm_str_is(key, "T_cur") ||
           cm_str_is(key, "T_i") ||
           cm_str_is(key, "milestones"); /* a Counter, which the constructor makes */
}

static const struct cm_item *move_to(struct moving *moving, const struct cm_item *state,
                                     int64_t position);

/* Those of a sequence have each their own position; those of a chain that of the chain. */
static const struct cm_item *move_parts(struct moving *moving, const struct cm_item *state,
                                        int64_t position)
{
    const struct cm_item *parts = cm_item_get(state, "_schedulers");
    const struct cm_item *milestones = cm_item_get(state, "_milestones");
    struct cm_item *list = cm_item_new(moving->arena, CM_ITEM_LIST);
    int64_t begin = 0;

    for (size_t i = 0; i < cm_item_count(parts); i++) {
        int64_t at = position, end;

        if (milestones) {
            const bool has_end = cm_item_is_int(cm_item_at(milestones, i), &end);
            at = has_end && position >= end ? end - begin - 1 : position - begin;
            begin = has_end ? end : begin;
        }
        cm_item_append(moving->arena, list,
                       at < 0 ? cm_item_at(parts, i) : move_to(moving, cm_item_at(parts, i), at));
    }
    return list;
}

static const struct cm_item *move_to(struct moving *moving, const struct cm_item *state,
                                     int64_t position)
{
    struct cm_arena *arena = moving->arena;
    struct cm_item *out = cm_item_new(arena, CM_ITEM_MAP);
    int64_t length, times, at = position;
    struct cm_str key;

    if (!state || state->kind != CM_ITEM_MAP || ++moving->depth > 1000)
        return state ? state : &cm_item_none;
    for (size_t i = 0; i < state->entries.count; i++)
        if (!cm_item_is_text(state->entries.items[i].key, &key) || !is_moved(key))
            cm_item_set(arena, out, state->entries.items[i].key, state->entries.items[i].value);
    if (cm_item_get(state, "last_epoch"))
        cm_item_put(arena, out, "last_epoch", cm_item_int(arena, position));
    if (cm_item_get(state, "_step_count"))
        cm_item_put(arena, out, "_step_count", cm_item_int(arena, position + 1));
    if (cm_item_is_int(cm_item_get(state, "T_0"), &length) && length > 0 &&
        cm_item_is_int(cm_item_get(state, "T_mult"), &times) && times > 0) {
        if (times == 1)
            at %= length;
        for (; at >= length && length < INT64_MAX / times; length *= times)
            at -= length;
        cm_item_put(arena, out, "T_i", cm_item_int(arena, length));
        cm_item_put(arena, out, "T_cur", cm_item_int(arena, at));
    }
    cm_item_put(arena, out, "_last_lr", moving->rates);
    if (cm_item_get(state, "_schedulers"))
        cm_item_put(arena, out, "_schedulers", move_parts(moving, state, position));
    return out;
}

/* A scheduler of any class takes its position from these: its own state is not known. The phases
 * are for us; PyTorch keeps them as an attribute that nothing reads. */
static const struct cm_item *bare_schedule(struct cm_arena *arena, const struct cm_saved *saved)
{
    struct cm_item *out = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_item *base = cm_item_new(arena, CM_ITEM_LIST);
    struct cm_item *functions = cm_item_new(arena, CM_ITEM_LIST);

    for (size_t i = 0; i < saved->groups.count; i++) {
        const struct cm_plan_group *group = &saved->groups.items[i].settings;
        cm_item_append(
            arena, base,
            cm_item_real(arena, isnan(group->initial_lr) ? group->lr : group->initial_lr));
        cm_item_append(arena, functions, &cm_item_none);
    }
    cm_item_put(arena, out, "base_lrs", base);
    cm_item_put(arena, out, "last_epoch", cm_item_int(arena, 0));
    cm_item_put(arena, out, "_step_count", cm_item_int(arena, 1));
    cm_item_put(arena, out, "_get_lr_called_within_step", cm_item_bool(arena, false));
    cm_item_put(arena, out, "lr_lambdas", functions);
    return out;
}

const struct cm_item *cm_torch_schedule_item(struct cm_arena *arena, const struct cm_saved *saved)
{
    const struct cm_item *state = cm_saved_fact(saved, "scheduler");
    const double updates = cm_item_real_or(cm_saved_fact(saved, "scheduler.updates"), 1);
    struct cm_item *rates = cm_item_new(arena, CM_ITEM_LIST);
    const int64_t step = saved->step < 0 ? 0 : saved->step;
    struct moving moving = {arena, rates, 0};

    if (!saved->has_optimizer ||
        (!state && (saved->schedule_known == CM_SCHEDULE_NONE || cm_torch_decays_itself(saved))))
        return NULL;
    for (size_t i = 0; i < saved->groups.count; i++)
        cm_item_append(arena, rates, cm_item_real(arena, saved->groups.items[i].settings.lr));
    if (!state || state->kind != CM_ITEM_MAP)
        state = bare_schedule(arena, saved);
    const double position = (double)(step + saved->schedule.offset) / updates;
    return move_to(&moving, state, position > 0 && position < 1e15 ? (int64_t)position : 0);
}

struct file {
    const char *stem;
    const struct cm_item *item;
};

static enum cm_status write_item(void *arg, struct cm_save *save, struct cm_error *err)
{
    const struct file *file = arg;

    return cm_torch_write(save, file->stem, file->item, err);
}

enum cm_status cm_torch_save_item(const struct cm_saved *saved, const char *path, const char *stem,
                                  const struct cm_item *item, struct cm_error *err)
{
    struct file file = {stem, item};

    return cm_saved_write_file(saved, path, write_item, &file, err);
}
