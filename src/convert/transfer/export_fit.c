/* The optimizer of one framework in another: which arithmetic both have, what the states are
 * called there, and what the other does not store. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/saved_item.h"
#include "convert/transfer/export_saved.h"
#include "train/rules.h"

enum cm_family cm_family_of(const char *system)
{
    static const struct {
        const char *word;
        enum cm_family family;
    } words[] = {
        {"Cameo", CM_FAMILY_NONE},       {"ONNX Runtime", CM_FAMILY_ORT},
        {"TensorFlow", CM_FAMILY_KERAS}, {"Keras", CM_FAMILY_KERAS},
        {"JAX", CM_FAMILY_JAX},          {"flax", CM_FAMILY_JAX},
        {"Flax", CM_FAMILY_JAX},         {"Orbax", CM_FAMILY_JAX},
    };

    for (size_t i = 0; system && i < CM_COUNT(words); i++)
        if (strstr(system, words[i].word))
            return words[i].family;
    return system ? CM_FAMILY_TORCH : CM_FAMILY_NONE;
}

static const enum cm_arithmetic arithmetic_of[] = {
    [CM_FAMILY_TORCH] = CM_LIKE_TORCH,
    [CM_FAMILY_KERAS] = CM_LIKE_KERAS,
    [CM_FAMILY_JAX] = CM_LIKE_OPTAX,
    [CM_FAMILY_ORT] = CM_LIKE_ORT,
};

/* What the framework calls a state, its newest word. */
static struct cm_str word_of(const struct cm_optimizer_state *state, enum cm_arithmetic like)
{
    const char *const words[] = {state->slot, state->keras, state->optax, state->ort};
    const char *word = words[like];

    if (!word)
        return CM_STR_NONE;
    word += *word == '*';
    return (struct cm_str){word, strcspn(word, ",")};
}

/* ---- what differs ---- */

static bool any_momentum(const struct cm_saved *saved)
{
    for (size_t i = 0; i < saved->groups.count; i++)
        if (saved->groups.items[i].settings.momentum > 0)
            return true;
    return false;
}

static bool any_amsgrad(const struct cm_saved *saved)
{
    for (size_t i = 0; i < saved->groups.count; i++)
        if (saved->groups.items[i].settings.amsgrad > 0)
            return true;
    return false;
}

static bool any_coupled_decay(const struct cm_saved *saved)
{
    for (size_t i = 0; i < saved->groups.count; i++) {
        const struct cm_plan_group *group = &saved->groups.items[i].settings;

        if (group->weight_decay > 0 && group->decoupled < 1)
            return true;
    }
    return false;
}

/* Why the optimizer cannot be had there; NULL: it can. Adam's moments, Adagrad's sum and RMSprop's
 * average mean the same to all. */
static const char *obstacle(const struct cm_saved *saved, enum cm_arithmetic to)
{
    const enum cm_arithmetic from = saved->arithmetic;
    const bool moves_on = any_momentum(saved), holds_most = any_amsgrad(saved);

    if (saved->rule == CM_RULE_UNKNOWN)
        return "its arithmetic is not known";
    if (to == CM_LIKE_ORT) {
        if (!cm_optimizer_rules[saved->rule].defaults[CM_LIKE_ORT])
            return cm_arena_printf(saved->arena, "it has %s only",
                                   cm_optimizer_list(saved->arena, CM_LIKE_ORT))
                .data;
        if (holds_most || moves_on)
            return cm_arena_printf(saved->arena, "its %.*s has no %s",
                                   CM_STR_FMT(cm_optimizer_title(saved->rule, true)),
                                   holds_most ? "amsgrad" : "momentum")
                .data;
        if (any_coupled_decay(saved))
            return "it has no weight decay that goes through the gradient";
    }
    if (from == to)
        return NULL;
    if (!cm_optimizer_rules[saved->rule].defaults[to])
        return "it has no such optimizer, or one with other states";
    if (moves_on && (from == CM_LIKE_KERAS || to == CM_LIKE_KERAS))
        return "the velocity of Keras has the learning rate in it, that of others has not";
    if (holds_most && (from == CM_LIKE_OPTAX || to == CM_LIKE_OPTAX))
        return "optax takes amsgrad's maximum after the bias correction, others before";
    if (any_coupled_decay(saved) && to == CM_LIKE_KERAS)
        return "the weight decay of Keras does not go through the gradient";
    return NULL;
}

/* ---- settings that the format has no place for ---- */

/* ", lr 0.001, beta1 0.9, nesterov" */
static void put_settings(char *text, size_t size, const struct cm_plan_group *group)
{
    size_t at = 0;

    for (size_t i = 0; i < cm_group_field_count; i++) {
        const struct cm_group_field *field = &cm_group_fields[i];
        const double value = cm_group_field_get(group, field);

        if (isnan(value) || (field->is_flag && value == 0) || at >= size ||
            strcmp(field->name, "initial_lr") == 0)
            continue;
        at += (size_t)snprintf(text + at, size - at, ", %s", field->name);
        if (!field->is_flag && at < size)
            at += (size_t)cm_format(text + at, size - at, " %.9g", value);
    }
}

static void note_settings(struct cm_saved *saved, const struct cm_format *format,
                          struct cm_saved_texts *notes)
{
    for (size_t i = 0; i < saved->groups.count; i++) {
        const struct cm_plan_group *group = &saved->groups.items[i].settings;
        char text[600] = "";

        put_settings(text, sizeof text, group);
        if (saved->groups.count > 1)
            cm_saved_note(saved->arena, notes,
                          "%s stores no settings; group %zu (%zu weights) is %s%s", format->name, i,
                          saved->groups.items[i].names.count, cm_optimizer_rules[saved->rule].title,
                          text);
        else
            cm_saved_note(saved->arena, notes, "%s stores no settings; the optimizer is %s%s",
                          format->name, cm_optimizer_rules[saved->rule].title, text);
    }
    if (saved->clip.limit > 0)
        cm_saved_note(saved->arena, notes, "%s does not store that gradients are clipped at %.9g",
                      format->name, saved->clip.limit);
    if (saved->schedule_known == CM_SCHEDULE_KNOWN && saved->schedule.count)
        cm_saved_note(saved->arena, notes, "%s does not store the schedule of the rate",
                      format->name);
}

enum cm_status cm_export_fit(struct cm_saved *saved, const struct cm_format *format,
                             enum cm_family to, struct cm_saved_texts *notes, struct cm_error *err)
{
    const enum cm_arithmetic arithmetic = arithmetic_of[to];
    const char *why = obstacle(saved, arithmetic);

    if (why)
        return cm_fail(err, CM_UNSUPPORTED,
                       "the optimizer (%s as in %s) cannot be written for %s: %s; --weights-only "
                       "leaves it out",
                       cm_optimizer_rules[saved->rule].title,
                       cm_arithmetics[saved->arithmetic].title, format->system, why);
    if (cm_optimizer_epsilon_differs(saved->rule, (int)saved->arithmetic, (int)arithmetic))
        cm_saved_note(saved->arena, notes,
                      "%s adds epsilon elsewhere than %s: the next losses differ a little",
                      cm_arithmetics[arithmetic].title, cm_arithmetics[saved->arithmetic].title);
    for (size_t i = 0; i < saved->entries.count; i++) {
        struct cm_saved_entry *entry = &saved->entries.items[i];
        const struct cm_optimizer_state *state =
            entry->meaning ? cm_optimizer_slot(saved->rule, entry->meaning) : NULL;

        if (entry->role == CM_SAVED_SLOT && state && word_of(state, arithmetic).size)
            entry->slot = word_of(state, arithmetic);
    }
    if (to != CM_FAMILY_TORCH)
        note_settings(saved, format, notes);
    saved->arithmetic = arithmetic;
    return CM_OK;
}
