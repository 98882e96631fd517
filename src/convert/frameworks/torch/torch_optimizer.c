/* State dictionaries of PyTorch's optimizers. The class is not stored: the keys of a group tell it.
 */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "base/map.h"
#include "convert/frameworks/torch/torch_names.h"
#include "convert/frameworks/torch/torch_settings.h"
#include "convert/frameworks/torch/torch_state.h"
#include "convert/schedule.h"
#include "train/rules.h"

enum { PARAMETERS_MAX = 10000000 };

/* Classes that Cameo has no rule for, by the keys of their groups; asked after those it has. */
static const struct cm_optimizer_words others[] = {
    {"Rprop", "etas"},
    {"LBFGS", "history_size max_iter"},
    {"Muon", "ns_steps"},
    {"AdamW of transformers", "betas correct_bias"},
};

/* A parameter on its way to a name. */
struct parameter {
    const struct cm_item *key;   /* a number, or a name */
    const struct cm_item *state; /* NULL: it has none */
    struct cm_str name;          /* empty: not found */
    const struct cm_shape *shape;
    size_t group;
    int64_t step; /* -1: not said */
    bool has_slots;
};

struct parameters {
    CM_ARRAY(struct parameter);
};

bool cm_torch_is_optimizer(const struct cm_item *item)
{
    const struct cm_item *state = cm_item_get(item, "state");
    const struct cm_item *groups = cm_item_get(item, "param_groups");

    return state && state->kind == CM_ITEM_MAP && groups && groups->kind == CM_ITEM_LIST;
}

/* ---- settings ---- */

/* Until some release neither class said whether it decouples weight decay; they listed these two
 * settings in another order. */
static int decoupled_by_order(const struct cm_item *group)
{
    for (size_t i = 0; i < cm_item_count(group); i++) {
        const struct cm_item *key = group->entries.items[i].key;
        if (key && cm_str_is(key->text, "foreach"))
            return cm_item_get(group, "maximize") ? 1 : -1;
        if (key && cm_str_is(key->text, "maximize"))
            return cm_item_get(group, "foreach") ? 0 : -1;
    }
    return -1;
}

/* otherwise: -1, or whether weight decay is decoupled where the group does not say. */
static struct cm_plan_group settings_of(const struct cm_item *group, enum cm_update_rule rule,
                                        int otherwise)
{
    struct cm_plan_group out = cm_torch_settings(group, rule);

    if (out.decoupled < 0)
        out.decoupled = out.weight_decay == 0 || !cm_optimizer_rules[rule].decoupled
                            ? 0
                            : decoupled_by_order(group);
    if (out.decoupled < 0)
        out.decoupled = otherwise;
    return out;
}

static void add_keys(struct cm_arena *arena, const struct cm_item *map, const char **keys,
                     size_t *count)
{
    for (size_t i = 0; i < cm_item_count(map); i++) {
        const struct cm_item *key = map->entries.items[i].key;
        if (key && key->kind == CM_ITEM_TEXT)
            keys[(*count)++] = cm_arena_str(arena, key->text).data;
    }
}

/* The class that the keys of its group, or of a weight's state, tell; the rule is unknown where
 * Cameo has none. */
static enum cm_update_rule find_class(struct cm_arena *arena, const struct cm_item *group,
                                      const struct cm_item *state, const char **name)
{
    const char **keys =
        CM_NEW_ARRAY(arena, const char *, cm_item_count(group) + cm_item_count(state) + 1);
    size_t count = 0;

    add_keys(arena, group, keys, &count);
    add_keys(arena, state, keys, &count);
    for (enum cm_update_rule rule = CM_RULE_UNKNOWN + 1; rule < CM_RULES; rule++)
        for (const struct cm_optimizer_words *row = cm_optimizer_rules[rule].torch; row->name;
             row++)
            if (cm_words_hold(row->words, keys)) {
                *name = row->name;
                return rule;
            }
    for (size_t i = 0; i < CM_COUNT(others); i++)
        if (cm_words_hold(others[i].words, keys)) {
            *name = others[i].name;
            break;
        }
    return CM_RULE_UNKNOWN;
}

static void take_class(struct cm_saved *saved, const struct cm_item *optimizer)
{
    const struct cm_item *group = cm_item_at(cm_item_get(optimizer, "param_groups"), 0);
    const struct cm_item *state = cm_item_get(optimizer, "state");
    const char *name = NULL;

    saved->rule = find_class(saved->arena, group,
                             cm_item_count(state) ? state->entries.items[0].value : NULL, &name);
    const struct cm_optimizer_rule *rule = &cm_optimizer_rules[saved->rule];
    if (name && rule->decoupled && strcmp(name, rule->title) == 0 &&
        (cm_torch_flag(group, "decoupled_weight_decay") == 1 ||
         (cm_torch_flag(group, "decoupled_weight_decay") < 0 && decoupled_by_order(group) == 1)))
        name = rule->decoupled;
    if (name)
        saved->optimizer = cm_str(name);
    if (saved->rule == CM_RULE_UNKNOWN)
        cm_saved_missing(saved, "the optimizer: %s%.*s%s is not supported",
                         saved->optimizer.size ? "'" : "one with these settings",
                         CM_STR_FMT(saved->optimizer), saved->optimizer.size ? "'" : "");
}

/* ---- parameters ---- */

static struct cm_str key_of(struct cm_arena *arena, const struct cm_item *key)
{
    if (key && key->kind == CM_ITEM_TEXT)
        return key->text;
    return key && key->kind == CM_ITEM_INT
               ? cm_arena_printf(arena, "\1%lld", (long long)key->number)
               : CM_STR_NONE;
}

/* A state tells the shape of its weight: most have it, some have rows or columns of it. */
static void note_shape(struct cm_saved *saved, struct parameter *parameter, struct cm_str key,
                       const struct cm_shape *shape)
{
    const char *slot = cm_optimizer_slot_named(key);
    const struct cm_optimizer_state *state = slot ? cm_optimizer_slot(saved->rule, slot) : NULL;
    const char *only = state ? state->shape : NULL;

    if (!only && !parameter->shape)
        parameter->shape = shape;
    if (!only || !shape->rank || (parameter->shape && parameter->shape->rank != shape->rank))
        return;
    struct cm_shape *both = CM_NEW(saved->arena, struct cm_shape);
    *both = parameter->shape ? *parameter->shape : *shape;
    for (int d = 0; d < shape->rank; d++)
        both->dims[d] = shape->dims[d] > both->dims[d] ? shape->dims[d] : both->dims[d];
    parameter->shape = both;
}

static void look_at_state(struct cm_saved *saved, struct parameter *parameter)
{
    double step;

    parameter->step = -1;
    for (size_t i = 0; i < cm_item_count(parameter->state); i++) {
        const struct cm_item_entry *entry = &parameter->state->entries.items[i];
        const struct cm_item *value = entry->value;

        if (!entry->key || entry->key->kind != CM_ITEM_TEXT)
            continue;
        if (cm_str_is(entry->key->text, "step")) {
            if (cm_item_is_real(value, &step) && step >= 0 && step < 1e15)
                parameter->step = (int64_t)step;
        } else if (value && value->kind == CM_ITEM_TENSOR &&
                   !cm_torch_is_count(saved->rule, entry->key->text)) {
            note_shape(saved, parameter, entry->key->text, &value->tensor->shape);
            parameter->has_slots = true;
        }
    }
}

static enum cm_status list_parameters(struct cm_saved *saved, const struct cm_item *optimizer,
                                      struct parameters *out, struct cm_error *err)
{
    const struct cm_item *groups = cm_item_get(optimizer, "param_groups");
    const struct cm_item *state = cm_item_get(optimizer, "state");
    struct cm_map states = {0}, seen = {0};

    for (size_t i = 0; i < cm_item_count(state); i++) {
        const struct cm_str key = key_of(saved->arena, state->entries.items[i].key);
        if (key.size)
            *cm_map_insert(&states, saved->arena, key, NULL) = i + 1;
    }
    for (size_t i = 0; i < cm_item_count(groups); i++) {
        const struct cm_item *group = cm_item_at(groups, i);
        const struct cm_item *list = cm_item_get(group, "params");
        const struct cm_item *names = cm_item_get(group, "param_names");

        for (size_t k = 0; k < cm_item_count(list); k++) {
            const struct cm_item *key = cm_item_at(list, k);
            const struct cm_str text = key_of(saved->arena, key);
            const uint64_t at = cm_map_get(&states, text, 0);
            struct parameter *parameter = CM_PUSH(saved->arena, out);
            bool added;

            cm_map_insert(&seen, saved->arena, text, &added);
            if (!text.size || !added || out->count > PARAMETERS_MAX)
                return cm_fail(err, CM_BAD_MODEL,
                               "group %zu of the optimizer: entry %zu of 'params' is %s", i, k,
                               text.size ? "listed twice" : "neither a number nor a name");
            *parameter = (struct parameter){
                .key = key,
                .group = i,
                .state = at ? state->entries.items[at - 1].value : NULL,
            };
            if (key->kind == CM_ITEM_TEXT)
                parameter->name = text;
            else if (cm_item_count(names) == cm_item_count(list))
                (void)cm_item_is_text(cm_item_at(names, k), &parameter->name);
            look_at_state(saved, parameter);
        }
    }
    for (size_t i = 0; i < cm_item_count(state); i++) {
        const struct cm_item *key = state->entries.items[i].key;
        const struct cm_str text = key_of(saved->arena, key);
        if (!text.size || !cm_map_find(&seen, text))
            cm_saved_unknown(saved, "the optimizer has a state '%.*s' that no group names",
                             CM_STR_FMT(cm_item_json(saved->arena, key, 60)));
    }
    return CM_OK;
}

/* The weights that may be parameters, each once where two share their memory. */
static size_t list_weights(struct cm_saved *saved, struct cm_torch_weight **out)
{
    struct cm_torch_weight *weights =
        CM_NEW_ARRAY(saved->arena, struct cm_torch_weight, saved->entries.count + 1);
    struct cm_map storages = {0};
    size_t count = 0;

    for (size_t i = 0; i < saved->entries.count; i++) {
        const struct cm_saved_entry *entry = &saved->entries.items[i];
        bool added = true;

        if (entry->role != CM_SAVED_WEIGHT || !cm_dtype_is_float(entry->tensor->dtype))
            continue;
        if (entry->tensor->storage) {
            char shape[256];
            cm_map_insert(
                &storages, saved->arena,
                cm_arena_printf(saved->arena, "%llu:%s", (unsigned long long)entry->tensor->storage,
                                cm_shape_print(&entry->tensor->shape, shape, sizeof shape)),
                &added);
        }
        if (added)
            weights[count++] = (struct cm_torch_weight){entry->name, &entry->tensor->shape};
    }
    *out = weights;
    return count;
}

static void name_parameters(struct cm_saved *saved, const struct cm_item *groups,
                            struct parameters *parameters)
{
    const size_t n_groups = cm_item_count(groups), count = parameters->count;
    const struct cm_shape **shapes = CM_NEW_ARRAY(saved->arena, const struct cm_shape *, count + 1);
    size_t *sizes = CM_NEW_ARRAY(saved->arena, size_t, n_groups + 1);
    double *decays = CM_NEW_ARRAY(saved->arena, double, n_groups + 1);
    struct cm_str *names = CM_NEW_ARRAY(saved->arena, struct cm_str, count + 1);
    struct cm_torch_weight *weights;
    size_t named = 0;
    bool by_names;

    for (size_t i = 0; i < count; i++) {
        shapes[i] = parameters->items[i].shape;
        sizes[parameters->items[i].group]++;
        named += parameters->items[i].name.size > 0;
    }
    if (named == count)
        return;
    for (size_t i = 0; i < n_groups; i++)
        decays[i] = cm_item_get_real(cm_item_at(groups, i), "weight_decay", NAN);
    const size_t n_weights = list_weights(saved, &weights);
    const struct cm_torch_naming naming = {saved->arena, weights, n_weights, shapes,
                                           sizes,        decays,  n_groups,  count};
    const bool found = n_weights > 0 && cm_torch_name(&naming, names, &by_names);
    for (size_t i = 0; i < count; i++)
        if (!parameters->items[i].name.size)
            parameters->items[i].name =
                found ? names[i] : cm_arena_printf(saved->arena, "parameter %zu", i);
    if (!found && n_weights == 0)
        cm_saved_missing(saved,
                         "the names of the optimizer's %zu parameters: PyTorch stores "
                         "numbers, and there are no weights beside it",
                         count);
    else if (!found)
        cm_saved_missing(saved,
                         "the names of the optimizer's %zu parameters: PyTorch stores numbers, and "
                         "the shapes of its state fit the %zu weights in several ways or in none; "
                         "give the names of each group, in order, with --set",
                         count, n_weights);
    else if (by_names)
        cm_saved_tell(saved, "optimizer.names",
                      cm_item_text(saved->arena,
                                   CM_STR("the file lists weights in alphabetical order: which "
                                          "parameter of the optimizer is which was told by shapes "
                                          "and by the usual order of modules")));
}

/* ---- all of it ---- */

static void add_slots(struct cm_saved *saved, const struct parameter *parameter)
{
    for (size_t i = 0; i < cm_item_count(parameter->state); i++) {
        const struct cm_item_entry *entry = &parameter->state->entries.items[i];
        const struct cm_item *value = entry->value;
        const char *meaning = NULL;

        if (!entry->key || entry->key->kind != CM_ITEM_TEXT ||
            cm_torch_is_count(saved->rule, entry->key->text))
            continue;
        meaning = cm_optimizer_slot_named(entry->key->text);
        if (meaning && value && value->kind == CM_ITEM_REAL) /* older releases, of scalars */
            value = cm_torch_scalar(saved->arena, value->real);
        if (value && value->kind == CM_ITEM_TENSOR)
            cm_saved_add_slot(saved, parameter->name, entry->key->text, meaning, value->tensor);
        if (!meaning && value && value->kind != CM_ITEM_NONE)
            cm_saved_unknown(saved, "the optimizer has '%.*s' for '%.*s'",
                             CM_STR_FMT(entry->key->text), CM_STR_FMT(parameter->name));
    }
}

/* How many steps more a weight has seen than the others. SGD counts none, and with dampening its
 * first step is another one: a weight that has a velocity is past it. */
static int64_t step_offset(const struct parameter *parameter, const struct cm_plan_group *settings,
                           int64_t step)
{
    if (parameter->step >= 0)
        return parameter->step - step;
    return parameter->has_slots && settings->dampening != 0 && !isnan(settings->dampening);
}

/* Groups whose weights have seen different numbers of steps are several here. */
static void add_groups(struct cm_saved *saved, const struct cm_item *groups,
                       const struct parameters *parameters, int decoupled)
{
    size_t at = 0;

    for (size_t i = 0; i < parameters->count; i++)
        if (parameters->items[i].step > saved->step)
            saved->step = parameters->items[i].step;
    for (size_t i = 0; i < cm_item_count(groups); i++) {
        const size_t first = saved->groups.count;
        struct cm_plan_group settings = settings_of(cm_item_at(groups, i), saved->rule, decoupled);

        do {
            const bool is_one = at < parameters->count && parameters->items[at].group == i;
            const int64_t offset =
                is_one ? step_offset(&parameters->items[at], &settings, saved->step) : 0;
            size_t which = first;

            while (which < saved->groups.count &&
                   saved->groups.items[which].settings.step_offset != offset)
                which++;
            if (which == saved->groups.count) {
                struct cm_saved_group *group = cm_saved_add_group(saved);
                group->settings = settings;
                group->settings.step_offset = offset;
                group->said = cm_item_at(groups, i);
            }
            if (!is_one)
                break;
            *CM_PUSH(saved->arena, &saved->groups.items[which].names) = parameters->items[at].name;
            at++;
        } while (at < parameters->count && parameters->items[at].group == i);
    }
}

/* Weights that no group names are moved by no optimizer. */
static void mark_buffers(struct cm_saved *saved, const struct parameters *parameters)
{
    struct cm_map names = {0}, storages = {0};

    for (size_t i = 0; i < parameters->count; i++)
        cm_map_insert(&names, saved->arena, parameters->items[i].name, NULL);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < saved->entries.count; i++) {
            struct cm_saved_entry *entry = &saved->entries.items[i];
            if (entry->role != CM_SAVED_WEIGHT)
                continue;
            const struct cm_str storage = {(const char *)&entry->tensor->storage,
                                           sizeof entry->tensor->storage};
            const bool moved = cm_map_find(&names, entry->name) != NULL;
            if (pass == 0 && moved && entry->tensor->storage)
                cm_map_insert(&storages, saved->arena, storage, NULL);
            if (pass == 1 && !moved && !cm_map_find(&storages, storage))
                entry->role = CM_SAVED_BUFFER;
        }
    }
}

/* An optimizer may lower its own rate (Adagrad): lr / (1 + steps * lr_decay). */
static void take_decay(struct cm_saved *saved)
{
    const char *key = cm_arena_str(saved->arena, cm_torch_decay_key(saved->rule)).data;
    const char *title = cm_optimizer_rules[saved->rule].title;
    double *base;
    const struct cm_schedule_maker maker = cm_schedule_for(saved, &base);
    double decay = NAN;
    bool same = true;

    for (size_t i = 0; i < maker.groups; i++) {
        const struct cm_saved_group *group = &saved->groups.items[i];
        const double one = cm_item_get_real(group->said, key, 0);
        base[i] = group->settings.lr;
        same = same && (isnan(decay) || one == decay) && group->settings.step_offset == 0;
        decay = one;
    }
    if (!(decay != 0) || isnan(decay))
        return;
    if (!same) {
        saved->schedule_known = CM_SCHEDULE_UNKNOWN;
        cm_saved_missing(saved, "how the learning rate goes on: groups of %s have different %s",
                         title, key);
        return;
    }
    cm_schedule_add(&maker, CM_PHASE_INVERSE, 0, 1, 1, 1, 0)->factor = decay;
    saved->schedule_known = CM_SCHEDULE_KNOWN;
    saved->schedule_name = cm_arena_printf(saved->arena, "%s of %s", key, title);
}

enum cm_status cm_torch_take_optimizer(struct cm_saved *saved, const struct cm_item *optimizer,
                                       int decoupled, struct cm_error *err)
{
    const struct cm_item *groups = cm_item_get(optimizer, "param_groups");
    struct parameters parameters = {0};

    saved->has_optimizer = true;
    saved->arithmetic = CM_LIKE_TORCH;
    take_class(saved, optimizer);
    CM_TRY(list_parameters(saved, optimizer, &parameters, err));
    name_parameters(saved, groups, &parameters);
    for (size_t i = 0; i < parameters.count; i++)
        add_slots(saved, &parameters.items[i]);
    add_groups(saved, groups, &parameters, decoupled);
    mark_buffers(saved, &parameters);
    if (cm_torch_decay_key(saved->rule).size)
        take_decay(saved);
    for (size_t i = 0; i < saved->groups.count; i++) {
        if (saved->groups.items[i].settings.decoupled < 0) {
            cm_saved_missing(saved,
                             "whether the optimizer is %.*s or %.*s: group %zu has weight decay, "
                             "and does not say whether it is decoupled",
                             CM_STR_FMT(cm_optimizer_title(saved->rule, false)),
                             CM_STR_FMT(cm_optimizer_title(saved->rule, true)), i);
            break;
        }
    }
    return CM_OK;
}
