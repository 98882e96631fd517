/* Optimizers by their names, and their settings by theirs. */
// SPDX-License-Identifier: Apache-2.0
#include "train/rules.h"

#include "train/prepare/plan.h"

#include <stddef.h>
#include <string.h>

/* ---- settings of a group ---- */

/* clang-format off */
#define NUMBER(member)                                                                             \
    {                                                                                              \
#member, offsetof(struct cm_plan_group, member), false                                     \
    }
#define FLAG(member)                                                                               \
    {                                                                                              \
#member, offsetof(struct cm_plan_group, member), true                                      \
    }
#define OWN(member) NUMBER(member),
const struct cm_group_field cm_group_fields[] = {
    NUMBER(lr),    NUMBER(initial_lr), NUMBER(momentum),     NUMBER(dampening),    NUMBER(beta1),
    NUMBER(beta2), NUMBER(epsilon),    NUMBER(epsilon_root), NUMBER(weight_decay), FLAG(nesterov),
    FLAG(amsgrad), FLAG(decoupled),    FLAG(maximize),       FLAG(centered),       FLAG(adam_mode),
    CM_OWN_SETTINGS(OWN)
};
/* clang-format on */
const size_t cm_group_field_count = CM_COUNT(cm_group_fields);

double cm_group_field_get(const struct cm_plan_group *group, const struct cm_group_field *field)
{
    const char *at = (const char *)group + field->offset;

    if (!field->is_flag)
        return *(const double *)(const void *)at;
    const int flag = *(const int *)(const void *)at;
    return flag < 0 ? (double)NAN : (double)flag;
}

void cm_group_field_set(struct cm_plan_group *group, const struct cm_group_field *field,
                        double value)
{
    char *at = (char *)group + field->offset;

    if (field->is_flag)
        *(int *)(void *)at = isnan(value) ? -1 : value != 0;
    else
        *(double *)(void *)at = value;
}

const struct cm_group_field *cm_group_field_find(const char *name)
{
    for (size_t i = 0; i < CM_COUNT(cm_group_fields); i++)
        if (strcmp(cm_group_fields[i].name, name) == 0)
            return &cm_group_fields[i];
    return NULL;
}

/* ---- conditions ---- */

static bool is_word(const char *const *words, struct cm_str word)
{
    for (size_t i = 0; words && words[i]; i++)
        if (cm_str_is(word, words[i]))
            return true;
    return false;
}

bool cm_words_hold(const char *conditions, const char *const *words)
{
    bool all = true;

    for (const char *p = conditions ? conditions : ""; *p && *p != ']';) {
        const bool wanted = *p != '!';
        p += !wanted;
        const size_t size = strcspn(p, " ]");
        all = all && is_word(words, (struct cm_str){p, size}) == wanted;
        p += size;
        p += *p == ' ';
    }
    return all;
}

bool cm_rule_word_next(const char **at, struct cm_rule_word *out)
{
    const char *text = *at ? *at : "";
    const size_t size = strcspn(text, " "), key = strcspn(text, "= ");

    out->key = (struct cm_str){text, key};
    out->value = key < size ? (struct cm_str){text + key + 1, size - key - 1} : out->key;
    *at = text + size + (text[size] == ' ');
    return size > 0;
}

/* ---- rules ---- */

const struct cm_arithmetic_name cm_arithmetics[] = {[CM_LIKE_TORCH] = {"torch", "PyTorch"},
                                                    [CM_LIKE_KERAS] = {"keras", "Keras"},
                                                    [CM_LIKE_OPTAX] = {"optax", "optax"},
                                                    [CM_LIKE_ORT] = {"ort", "ONNX Runtime"}};

static double value_in(const struct cm_rule_number *settings, const char *name)
{
    for (; settings && settings->name; settings++)
        if (strcmp(settings->name, name) == 0)
            return settings->value;
    return NAN;
}

double cm_optimizer_preset_says(const struct cm_optimizer_preset *preset, int arithmetic,
                                const char *name)
{
    const char *word = cm_arithmetics[arithmetic].word;
    const size_t size = strlen(word);

    for (const struct cm_rule_number *n = preset->settings; n->name; n++)
        if (strncmp(n->name, word, size) == 0 && n->name[size] == '.' &&
            strcmp(n->name + size + 1, name) == 0)
            return n->value;
    return value_in(preset->settings, name);
}

double cm_optimizer_default(const struct cm_optimizer_rule *rule,
                            const struct cm_optimizer_preset *preset, int arithmetic,
                            const char *name)
{
    double value = preset ? cm_optimizer_preset_says(preset, arithmetic, name) : (double)NAN;

    if (isnan(value))
        value = value_in(rule->defaults[arithmetic], name);
    return isnan(value) ? value_in(rule->defaults[CM_LIKE_TORCH], name) : value;
}

int cm_optimizer_arithmetic(enum cm_update_rule rule)
{
    int like = CM_LIKE_TORCH;

    while (like < CM_LIKE_ORT && !cm_optimizer_rules[rule].defaults[like])
        like++;
    return like;
}

static const char *title(enum cm_update_rule rule, bool is_decoupled)
{
    const struct cm_optimizer_rule *is = &cm_optimizer_rules[rule];

    return is_decoupled && is->decoupled ? is->decoupled : is->title;
}

struct cm_str cm_optimizer_title(enum cm_update_rule rule, bool is_decoupled)
{
    return cm_str(title(rule, is_decoupled));
}

const char *cm_optimizer_list(struct cm_arena *arena, int arithmetic)
{
    const char *text = "", *last = "";

    for (enum cm_update_rule rule = CM_RULE_UNKNOWN + 1; rule < CM_RULES; rule++) {
        const struct cm_rule_number *settings = cm_optimizer_rules[rule].defaults[arithmetic];

        if (!settings)
            continue;
        if (*last)
            text = cm_arena_printf(arena, "%s%s%s", text, *text ? ", " : "", last).data;
        last = title(rule, value_in(settings, "decoupled") > 0);
    }
    return cm_arena_printf(arena, "%s%s%s", text, *text ? " and " : "", last).data;
}

enum cm_update_rule cm_optimizer_stateless(void)
{
    for (enum cm_update_rule rule = CM_RULE_UNKNOWN + 1; rule < CM_RULES; rule++) {
        const struct cm_optimizer_state *state = cm_optimizer_rules[rule].states;

        while (state->name && state->when)
            state++;
        if (!state->name)
            return rule;
    }
    return CM_RULE_UNKNOWN;
}

bool cm_optimizer_may(enum cm_update_rule rule, const char *setting)
{
    for (const struct cm_optimizer_preset *p = cm_optimizer_rules[rule].presets; p && p->name; p++)
        if (cm_optimizer_preset_says(p, CM_LIKE_TORCH, setting) > 0)
            return true;
    return false;
}

bool cm_optimizer_epsilon_differs(enum cm_update_rule rule, int from, int to)
{
    const char *alike = cm_optimizer_rules[rule].epsilon_alike;

    return alike && (strstr(alike, cm_arithmetics[from].word) != NULL) !=
                        (strstr(alike, cm_arithmetics[to].word) != NULL);
}

bool cm_optimizer_counts(enum cm_update_rule rule)
{
    const char *functions = cm_optimizer_rules[rule].functions;

    return functions && strstr(functions, "(t_next, ") != NULL;
}

bool cm_optimizer_has(enum cm_update_rule rule, const char *setting)
{
    for (size_t like = 0; like < CM_COUNT(cm_optimizer_rules[rule].defaults); like++)
        if (!isnan(value_in(cm_optimizer_rules[rule].defaults[like], setting)))
            return true;
    return false;
}

const struct cm_optimizer_rule *cm_optimizer_find(struct cm_str name,
                                                  const struct cm_optimizer_preset **preset)
{
    for (size_t rule = CM_RULE_UNKNOWN + 1; rule < CM_RULES; rule++)
        for (*preset = cm_optimizer_rules[rule].presets; (*preset)->name; (*preset)++)
            if (cm_str_is(name, (*preset)->name))
                return &cm_optimizer_rules[rule];
    *preset = NULL;
    return NULL;
}

const struct cm_optimizer_state *cm_optimizer_slot(enum cm_update_rule rule, const char *slot)
{
    const struct cm_optimizer_state *state = cm_optimizer_rules[rule].states;

    while (state && state->name && strcmp(state->slot, slot) != 0)
        state++;
    return state && state->name ? state : NULL;
}

const char *cm_optimizer_slot_named(struct cm_str word)
{
    for (size_t rule = CM_RULE_UNKNOWN + 1; rule < CM_RULES; rule++)
        for (const struct cm_optimizer_state *s = cm_optimizer_rules[rule].states; s->name; s++)
            if (cm_str_is(word, s->slot))
                return s->slot;
    return NULL;
}
