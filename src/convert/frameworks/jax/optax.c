/* States of optax's optimizers: which one it is, by the fields that it has. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/jax/optax.h"

#include "base/array.h"
#include "bytes/numpy_types.h"
#include "convert/frameworks/jax/optax_chain.h"
#include "train/rules.h"

/* ---- what optax's states have for fields ---- */

static const char counts[] = "count"; /* as a meaning: a count of updates */

/* A state of optax's by the file of the rule: a count, then the slots that this form has. */
static struct cm_optax_rule fill_rule(enum cm_update_rule number,
                                      const struct cm_optimizer_optax *is)
{
    const char *words[4] = {NULL};
    struct cm_optax_rule rule = {.is = is, .rule = number};
    size_t count = 0;

    if (is->momentum)
        words[count++] = "momentum";
    if (is->amsgrad)
        words[count++] = "amsgrad";
    if (is->centered)
        words[count] = "centered";
    if (is->counts)
        rule.fields[rule.n_fields++].field = rule.fields[0].meaning = counts;
    for (const struct cm_optimizer_state *s = cm_optimizer_rules[number].states; s->name; s++)
        if (s->optax && cm_words_hold(s->when, words) && rule.n_fields < CM_COUNT(rule.fields)) {
            rule.fields[rule.n_fields].field = s->optax;
            rule.fields[rule.n_fields++].meaning = s->slot;
        }
    return rule;
}

const char *cm_optax_slot(const char *meaning, enum cm_update_rule rule)
{
    const struct cm_optimizer_optax *form = cm_optimizer_rules[rule].optax;

    for (; meaning && form && form->name; form++) {
        const struct cm_optax_rule is = fill_rule(rule, form);

        for (size_t f = 0; f < is.n_fields; f++)
            if (strcmp(is.fields[f].meaning, meaning) == 0)
                return is.fields[f].field;
    }
    return NULL;
}

/* All of them. */
static const struct cm_optax_rule *all_rules(struct cm_arena *arena)
{
    struct {
        CM_ARRAY(struct cm_optax_rule);
    } list = {0};

    for (enum cm_update_rule rule = CM_RULE_UNKNOWN + 1; rule < CM_RULES; rule++)
        for (const struct cm_optimizer_optax *o = cm_optimizer_rules[rule].optax; o->name; o++)
            *CM_PUSH(arena, &list) = fill_rule(rule, o);
    CM_PUSH(arena, &list)->is = NULL;
    return list.items;
}

static const struct cm_optax_rule *find_rule(const struct cm_optax *o, const struct cm_item *state)
{
    const struct cm_optax_rule *rule = o->rules;

    for (; rule->is; rule++) {
        size_t f = 0;

        while (f < rule->n_fields && cm_item_get(state, rule->fields[f].field))
            f++;
        if (f && f == rule->n_fields && cm_item_count(state) == f)
            return rule;
    }
    return NULL;
}

/* ---- taking ---- */

/* Is it all of a tree of slots: tensors where weights of that shape are? Otherwise takes nothing.
 * `add`: it is, and they are added. */
static bool walk_slots(struct cm_optax *o, const struct cm_item *tree, struct cm_str below,
                       const char *slot, const char *meaning, bool add, int depth)
{
    if (depth > CM_ITEM_DEPTH_MAX)
        return false;
    if (tree->kind == CM_ITEM_TENSOR) {
        const struct cm_str name =
            cm_arena_printf(o->arena, "%.*s%.*s", CM_STR_ALL(o->prefix), CM_STR_ALL(below));
        uint64_t *entry = cm_map_find(&o->weights, name);

        if (!entry)
            entry = cm_map_find(&o->weights, below);
        if (!entry || !cm_shape_equal(&o->saved->entries.items[*entry - 1].tensor->shape,
                                      &tree->tensor->shape))
            return false;
        if (add) {
            const struct cm_str weight = o->saved->entries.items[*entry - 1].name;

            cm_saved_add_slot(o->saved, weight, cm_str(slot), meaning, tree->tensor);
        }
        return true;
    }
    if (tree->kind != CM_ITEM_MAP && tree->kind != CM_ITEM_LIST)
        return tree->kind == CM_ITEM_NONE;
    for (size_t i = 0; i < tree->entries.count; i++) {
        const struct cm_item_entry *entry = &tree->entries.items[i];
        struct cm_str key = cm_arena_printf(o->arena, "%zu", i);

        if (entry->key && !cm_item_is_text(entry->key, &key))
            return false;
        key = cm_arena_printf(o->arena, "%.*s%s%.*s", CM_STR_ALL(below), below.size ? "/" : "",
                              CM_STR_ALL(key));
        if (!walk_slots(o, entry->value, key, slot, meaning, add, depth + 1))
            return false;
    }
    return true;
}

/* field is the text of a key, which lives as long as the file. */
static const struct cm_item *take_slots(struct cm_optax *o, const struct cm_item *tree,
                                        struct cm_str path, const char *slot, const char *meaning)
{
    if (!walk_slots(o, tree, CM_STR_NONE, slot, meaning, false, 0)) {
        cm_saved_unknown(o->saved, "%.*s does not have the tensors that the weights have",
                         CM_STR_FMT(path));
        return cm_jax_keep(o->saved, tree, path, CM_SAVED_OTHER);
    }
    walk_slots(o, tree, CM_STR_NONE, slot, meaning, true, 0);
    return cm_item_printf(o->arena, "=slots:%s:%d:%.*s", slot, o->group, CM_STR_FMT(o->prefix));
}

const struct cm_item *cm_jax_keep_count(struct cm_saved *saved, const struct cm_item *item,
                                        struct cm_str path, int64_t *count)
{
    const char *type = item->kind == CM_ITEM_TENSOR ? cm_numpy_name(item->tensor->dtype) : "int";

    if (!cm_item_is_int(item, count) || !type)
        return cm_jax_keep(saved, item, path, CM_SAVED_OTHER);
    return cm_item_printf(saved->arena, "=count:%s:%lld", type, (long long)*count);
}

const struct cm_item *cm_jax_keep(struct cm_saved *saved, const struct cm_item *item,
                                  struct cm_str path, enum cm_saved_role role)
{
    struct cm_arena *arena = saved->arena;
    double number;

    if (item->kind == CM_ITEM_MAP || item->kind == CM_ITEM_LIST) {
        struct cm_item *kept = cm_item_new(arena, item->kind);

        for (size_t i = 0; i < item->entries.count; i++) {
            const struct cm_item_entry *entry = &item->entries.items[i];
            const struct cm_str key = cm_item_key(arena, item, i);

            cm_item_set(
                arena, kept, entry->key,
                cm_jax_keep(saved, entry->value,
                            cm_arena_printf(arena, "%.*s/%.*s", CM_STR_ALL(path), CM_STR_ALL(key)),
                            role));
        }
        return kept;
    }
    if (item->kind == CM_ITEM_TENSOR) {
        if (item->tensor->shape.rank == 0 && cm_saved_tensor_number(item->tensor, &number) &&
            cm_numpy_name(item->tensor->dtype))
            return cm_item_printf(arena, "=number:%s:%.17g", cm_numpy_name(item->tensor->dtype),
                                  number);
        cm_saved_add(saved, role, path, item->tensor);
        return cm_item_printf(arena, "=kept:%d:%.*s", (int)role, CM_STR_ALL(path));
    }
    struct cm_item *plain = cm_item_new(arena, CM_ITEM_MAP);
    cm_item_put(arena, plain, "=", item);
    return plain;
}

static void skip_stateless(struct cm_optax *o)
{
    if (o->rule)
        o->after++;
    else
        o->before++;
}

static const struct cm_item *take_state(struct cm_optax *o, const struct cm_item *state,
                                        struct cm_str path, int depth);

static struct cm_str path_below(struct cm_optax *o, struct cm_str path, struct cm_str key)
{
    return cm_arena_printf(o->arena, "%.*s/%.*s", CM_STR_ALL(path), CM_STR_ALL(key));
}

static const struct cm_item *take_rule(struct cm_optax *o, const struct cm_optax_rule *rule,
                                       const struct cm_item *state, struct cm_str path)
{
    struct cm_item *kept = cm_item_new(o->arena, CM_ITEM_MAP);
    const bool second = o->rule != NULL;

    if (second && rule->is->momentum && o->rule->is->may_trace)
        o->has_trace = true; /* rmsprop with momentum */
    else if (second)
        cm_saved_unknown(o->saved, "%.*s is a second optimizer after '%s'", CM_STR_FMT(path),
                         o->rule->is->name);
    else
        o->rule = rule;
    for (size_t f = 0; f < rule->n_fields; f++) {
        const char *field = rule->fields[f].field;
        const struct cm_item *value = cm_item_get(state, field);
        const struct cm_str below = path_below(o, path, cm_str(field));

        cm_item_put(o->arena, kept, field,
                    rule->fields[f].meaning == counts
                        ? cm_jax_keep_count(o->saved, value, below, &o->count)
                        : take_slots(o, value, below, field, rule->fields[f].meaning));
    }
    return kept;
}

static const struct cm_item *take_hyperparams(struct cm_optax *o, const struct cm_item *map,
                                              struct cm_str path)
{
    struct cm_item *kept = cm_item_new(o->arena, CM_ITEM_MAP);

    o->hyperparams = map;
    for (size_t i = 0; i < cm_item_count(map); i++) {
        const struct cm_item_entry *entry = &map->entries.items[i];
        const struct cm_str key = cm_item_text_or_none(entry->key);
        double number;

        const bool is_rate =
            cm_str_is(key, "learning_rate") && entry->value->kind == CM_ITEM_TENSOR &&
            cm_item_is_real(entry->value, &number) && cm_numpy_name(entry->value->tensor->dtype);
        cm_item_set(
            o->arena, kept, entry->key,
            is_rate
                ? cm_item_printf(o->arena, "=rate:%d:%s:%.17g", o->group < 0 ? 0 : o->group,
                                 cm_numpy_name(entry->value->tensor->dtype), number)
                : cm_jax_keep(o->saved, entry->value, path_below(o, path, key), CM_SAVED_OTHER));
    }
    return kept;
}

/* multi_transform: an optimizer for each label, with the weights of the others left out. */
static const struct cm_item *take_groups(struct cm_optax *o, const struct cm_item *states,
                                         struct cm_str path, int depth)
{
    struct cm_item *kept = cm_item_new(o->arena, CM_ITEM_MAP);

    for (size_t i = 0; i < cm_item_count(states); i++) {
        const struct cm_item_entry *entry = &states->entries.items[i];
        const struct cm_item *inner = cm_item_get(entry->value, "inner_state");
        const struct cm_str below = path_below(o, path, cm_item_text_or_none(entry->key));
        const struct cm_optax before = *o;

        if (inner && (inner->kind == CM_ITEM_NONE ||
                      (inner->kind == CM_ITEM_MAP && cm_item_count(inner) == 0))) {
            /* set_to_zero: weights that do not move */
            struct cm_item *still = cm_item_new(o->arena, CM_ITEM_MAP);

            cm_item_put(o->arena, still, "inner_state", cm_item_new(o->arena, CM_ITEM_MAP));
            cm_item_set(o->arena, kept, entry->key, still);
            continue;
        }
        const size_t first = o->saved->entries.count;
        o->group = (int)o->saved->groups.count;
        cm_saved_add_group(o->saved);
        cm_item_set(o->arena, kept, entry->key, take_state(o, entry->value, below, depth + 1));
        struct cm_saved_group *group = &o->saved->groups.items[o->group];
        struct cm_map seen = {0};
        for (size_t e = first; e < o->saved->entries.count; e++) {
            const struct cm_saved_entry *slot = &o->saved->entries.items[e];
            bool added = slot->role == CM_SAVED_SLOT;

            if (added)
                cm_map_insert(&seen, o->arena, slot->name, &added);
            if (added)
                *CM_PUSH(o->arena, &group->names) = slot->name;
        }
        if (!group->names.count)
            o->needs |= CM_NEED_NAMES;
        cm_optax_conclude(o, group, below);
        const struct cm_optax after = *o;
        *o = before;
        o->needs = after.needs;
        o->lacking = after.lacking;
        memcpy(o->lacks, after.lacks, sizeof o->lacks);
    }
    return kept;
}

/* A state that holds another one, or several. */
static const struct cm_item *take_wrapper(struct cm_optax *o, const struct cm_item *state,
                                          struct cm_str path, int depth)
{
    struct cm_item *kept = cm_item_new(o->arena, CM_ITEM_MAP);
    const struct cm_item *hyperparams = cm_item_get(state, "hyperparams"), *value, *inner;
    const bool is_empty = cm_item_count(state) == 1 &&
                          (inner = cm_item_get(state, "inner_state")) &&
                          (inner->kind == CM_ITEM_NONE || cm_item_count(inner) == 0);

    if (is_empty)
        o->masked = true; /* one without state, for some weights only */
    if (hyperparams)
        o->hyperparams = hyperparams;
    for (size_t i = 0; i < cm_item_count(state); i++) {
        const struct cm_item_entry *entry = &state->entries.items[i];
        const struct cm_str key = cm_item_text_or_none(entry->key);
        const struct cm_str below = path_below(o, path, key);
        int64_t number;

        value = entry->value;
        if (cm_str_is(key, "inner_state") || cm_str_is(key, "inner_opt_state"))
            value = take_state(o, value, below, depth + 1);
        else if (cm_str_is(key, "inner_states"))
            value = take_groups(o, value, below, depth + 1);
        else if (cm_str_is(key, "hyperparams"))
            value = take_hyperparams(o, value, below);
        else if (cm_str_is(key, "acc_grads"))
            value = take_slots(o, value, below, "acc_grads", NULL);
        else if (cm_str_is(key, "count") || cm_str_is(key, "gradient_step"))
            value = cm_jax_keep_count(o->saved, value, below, &number);
        else
            value = cm_jax_keep(o->saved, value, below, CM_SAVED_OTHER);
        cm_item_set(o->arena, kept, entry->key, value);
    }
    if (cm_item_get(state, "mini_step"))
        o->needs |= CM_NEED_ACCUMULATION;
    if (cm_item_count(cm_item_get(state, "hyperparams_states")))
        o->needs |= CM_NEED_SCHEDULE;
    return kept;
}

static bool is_sequence(const struct cm_item *state)
{
    for (size_t i = 0; state->kind == CM_ITEM_MAP && i < state->entries.count; i++) {
        struct cm_str key;
        int64_t index;

        if (!state->entries.items[i].key || !cm_item_is_text(state->entries.items[i].key, &key) ||
            !cm_str_to_int64(key, &index) || index < 0)
            return false;
    }
    return state->kind == CM_ITEM_LIST || state->entries.count > 0;
}

static const struct cm_item *take_sequence(struct cm_optax *o, const struct cm_item *state,
                                           struct cm_str path, int depth)
{
    struct cm_item *kept = cm_item_new(o->arena, state->kind);

    for (size_t i = 0; i < state->entries.count; i++) {
        const struct cm_item *value = cm_item_nth(state, i);
        const struct cm_str key = cm_arena_printf(o->arena, "%zu", i);

        if (!value)
            value = &cm_item_none;
        cm_item_set(o->arena, kept, state->kind == CM_ITEM_MAP ? cm_item_text(o->arena, key) : NULL,
                    take_state(o, value, path_below(o, path, key), depth + 1));
    }
    return kept;
}

static const struct cm_item *take_state(struct cm_optax *o, const struct cm_item *state,
                                        struct cm_str path, int depth)
{
    static const char *const wrapped[] = {"inner_state", "inner_opt_state", "inner_states"};
    const bool is_tree = state->kind == CM_ITEM_MAP || state->kind == CM_ITEM_LIST;

    if (depth > CM_ITEM_DEPTH_MAX)
        return &cm_item_none;
    if (state->kind == CM_ITEM_NONE || (is_tree && !state->entries.count)) {
        skip_stateless(o);
        return cm_item_new(o->arena, is_tree ? state->kind : CM_ITEM_MAP);
    }
    if (state->kind == CM_ITEM_MAP) {
        const struct cm_optax_rule *rule = find_rule(o, state);

        if (rule)
            return take_rule(o, rule, state, path);
        for (size_t i = 0; i < CM_COUNT(wrapped); i++)
            if (cm_item_get(state, wrapped[i]))
                return take_wrapper(o, state, path, depth);
        const struct cm_item *count = cm_item_get(state, counts);
        if (count && state->entries.count == 1) {
            struct cm_item *kept = cm_item_new(o->arena, CM_ITEM_MAP);

            skip_stateless(o);
            cm_item_put(o->arena, kept, counts,
                        cm_jax_keep_count(o->saved, count, path, &o->schedule_count));
            return kept;
        }
    }
    if (is_tree && is_sequence(state))
        return take_sequence(o, state, path, depth);
    cm_saved_unknown(o->saved, "%.*s is a state of optax that is not known: %.*s", CM_STR_FMT(path),
                     CM_STR_FMT(cm_item_json(o->arena, state, 160)));
    return cm_jax_keep(o->saved, state, path, CM_SAVED_OTHER);
}

const struct cm_item *cm_optax_take(struct cm_saved *saved, const struct cm_item *state,
                                    struct cm_str path, struct cm_str prefix)
{
    struct cm_optax o = {.saved = saved,
                         .arena = saved->arena,
                         .prefix = prefix,
                         .group = -1,
                         .count = -1,
                         .schedule_count = -1,
                         .rules = all_rules(saved->arena)};

    for (size_t i = 0; i < saved->entries.count; i++)
        if (saved->entries.items[i].role == CM_SAVED_WEIGHT)
            *cm_map_insert(&o.weights, o.arena, saved->entries.items[i].name, NULL) = i + 1;
    saved->has_optimizer = true;
    saved->arithmetic = CM_LIKE_OPTAX;
    const struct cm_item *kept = take_state(&o, state, path, 0);
    if (!saved->groups.count && (o.rule || !saved->unknown.count)) {
        struct cm_saved_group *group = cm_saved_add_group(saved);

        for (size_t i = 0; i < saved->entries.count; i++)
            if (saved->entries.items[i].role == CM_SAVED_WEIGHT)
                *CM_PUSH(o.arena, &group->names) = saved->entries.items[i].name;
        cm_optax_conclude(&o, group, path);
    } else if (o.before + o.after > 0 && saved->groups.count)
        o.needs |= CM_NEED_CLIP;
    cm_optax_tell_needs(&o);
    return kept;
}

/* ---- the way there, for trainings of others ---- */

const struct cm_item *cm_optax_state(struct cm_arena *arena, const struct cm_saved *saved,
                                     struct cm_str prefix)
{
    struct cm_item *chain = cm_item_new(arena, CM_ITEM_MAP), *state = NULL;
    const struct cm_plan_group *is = saved->groups.count ? &saved->groups.items[0].settings : NULL;
    const struct cm_optax_rule *rule = all_rules(arena);

    while (rule->is &&
           (rule->rule != saved->rule || (is && (rule->is->amsgrad != (is->amsgrad == 1) ||
                                                 rule->is->centered != (is->centered == 1)))))
        rule++;
    state = cm_item_new(arena, CM_ITEM_MAP);
    if (rule->is && !(rule->is->momentum && is && !(is->momentum > 0)))
        for (size_t f = 0; f < rule->n_fields; f++)
            cm_item_put(arena, state, rule->fields[f].field,
                        rule->fields[f].meaning == counts
                            ? cm_item_printf(arena, "=count:int32:%lld",
                                             (long long)(saved->step < 0 ? 0 : saved->step))
                            : cm_item_printf(arena, "=slots:%s:-1:%.*s", rule->fields[f].field,
                                             CM_STR_FMT(prefix)));
    const size_t stateless = rule->is ? cm_optax_after(rule->is, is && is->decoupled == 1) : 1;
    cm_item_put(arena, chain, "0", state);
    for (size_t i = 1; i <= stateless; i++)
        cm_item_set(arena, chain, cm_item_text(arena, cm_arena_printf(arena, "%zu", i)),
                    cm_item_new(arena, CM_ITEM_MAP));
    return chain;
}
