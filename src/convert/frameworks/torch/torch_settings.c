/* Settings of PyTorch's groups, read and written by the words of data/training/optimizers/. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/torch/torch_settings.h"

#include "train/optimizer_numbers.h"
#include "train/rules.h"

/* ---- words ---- */

/* A setting that a word names. */
struct member {
    const struct cm_group_field *field;
    bool has_none; /* None stands for 0 */
};

/* The next of "epsilon1,epsilon2"; *at moves past it. */
static bool next_member(struct cm_str *rest, struct member *out)
{
    const char *comma = rest->size ? memchr(rest->data, ',', rest->size) : NULL;
    const size_t size = comma ? (size_t)(comma - rest->data) : rest->size;
    char name[64];

    *out = (struct member){.has_none = size && *rest->data == '?'};
    snprintf(name, sizeof name, "%.*s", (int)(size - out->has_none), rest->data + out->has_none);
    out->field = cm_group_field_find(name);
    rest->data += size + (comma != NULL);
    rest->size -= size + (comma != NULL);
    return out->field != NULL;
}

static bool is_tuple(struct cm_str value)
{
    return memchr(value.data, ',', value.size) != NULL;
}

/* ---- reading ---- */

static double read_value(const struct cm_item *item, const struct member *member)
{
    if (item && item->kind == CM_ITEM_NONE && member->has_none)
        return 0;
    return cm_item_real_or(item, NAN);
}

int cm_torch_flag(const struct cm_item *group, const char *key)
{
    double real;

    return cm_item_is_real(cm_item_get(group, key), &real) ? real != 0 : -1;
}

struct cm_plan_group cm_torch_settings(const struct cm_item *group, enum cm_update_rule rule)
{
    struct cm_plan_group out = CM_PLAN_GROUP;
    const char *at = cm_optimizer_rules[rule].torch_group;
    struct cm_rule_word word;
    struct member member;
    char key[64];

    out.initial_lr = cm_item_get_real(group, "initial_lr", NAN);
    out.decoupled = 0;
    while (cm_rule_word_next(&at, &word)) {
        snprintf(key, sizeof key, "%.*s", CM_STR_FMT(word.key));
        const struct cm_item *item = cm_item_get(group, key);
        struct cm_str rest = word.value;

        for (size_t i = 0; next_member(&rest, &member); i++) {
            const struct cm_item *one = is_tuple(word.value) ? cm_item_at(item, i) : item;
            cm_group_field_set(&out, member.field, read_value(one, &member));
        }
    }
    return out;
}

/* ---- writing ---- */

static const struct cm_item *value_item(struct cm_arena *arena, enum cm_update_rule rule,
                                        const struct cm_plan_group *settings,
                                        const struct member *member)
{
    double value = cm_group_field_get(settings, member->field);

    if (isnan(value))
        value = cm_optimizer_default(&cm_optimizer_rules[rule], NULL, CM_LIKE_TORCH,
                                     member->field->name);
    if (member->field->is_flag)
        return cm_item_bool(arena, value > 0);
    if (member->has_none && value == 0)
        return &cm_item_none;
    return cm_item_real(arena, isnan(value) ? 0 : value);
}

/* What a word stands for that names no setting. */
static const struct cm_item *constant_item(struct cm_arena *arena, const struct cm_saved *saved,
                                           struct cm_str value)
{
    double number = 0;

    if (cm_str_is(value, "none"))
        return &cm_item_none;
    if (cm_str_is(value, "false"))
        return cm_item_bool(arena, false);
    if (cm_str_is(value, "schedule"))
        number = cm_torch_decays_itself(saved) ? saved->schedule.items[0].factor : 0;
    else
        (void)cm_str_to_double(value, &number);
    return cm_item_real(arena, number);
}

void cm_torch_put_settings(struct cm_arena *arena, const struct cm_saved *saved,
                           const struct cm_plan_group *settings, struct cm_item *group)
{
    const char *at = cm_optimizer_rules[saved->rule].torch_group;
    struct cm_rule_word word;
    struct member member;

    while (cm_rule_word_next(&at, &word)) {
        struct cm_str rest = word.value;
        struct cm_item *tuple = cm_item_new(arena, CM_ITEM_LIST);
        const struct cm_item *item = NULL;

        tuple->truth = true; /* no list */
        while (next_member(&rest, &member)) {
            item = value_item(arena, saved->rule, settings, &member);
            cm_item_append(arena, tuple, item);
        }
        if (is_tuple(word.value))
            item = tuple;
        else if (!item)
            item = constant_item(arena, saved, word.value);
        cm_item_set(arena, group, cm_item_text(arena, word.key), item);
    }
}

/* ---- counts ---- */

const struct cm_item *cm_torch_scalar(struct cm_arena *arena, double number)
{
    return cm_item_tensor(arena, cm_saved_scalar(arena, CM_FLOAT, number));
}

void cm_torch_put_counts(struct cm_arena *arena, const struct cm_saved *saved,
                         const struct cm_plan_group *settings, int64_t step, struct cm_item *state)
{
    const char *at = cm_optimizer_rules[saved->rule].torch_counts;
    struct cm_rule_word word;

    while (cm_rule_word_next(&at, &word)) {
        const double number =
            cm_str_is(word.value, "step")
                ? (double)step
                : cm_optimizer_number(arena, saved->rule, settings, step, word.value);
        cm_item_set(arena, state, cm_item_text(arena, word.key), cm_torch_scalar(arena, number));
    }
}

bool cm_torch_is_count(enum cm_update_rule rule, struct cm_str key)
{
    const char *at = cm_optimizer_rules[rule].torch_counts;
    struct cm_rule_word word;

    while (cm_rule_word_next(&at, &word))
        if (cm_str_equal(word.key, key))
            return true;
    return cm_str_is(key, "step");
}

/* ---- a rate that falls by itself ---- */

struct cm_str cm_torch_decay_key(enum cm_update_rule rule)
{
    const char *at = cm_optimizer_rules[rule].torch_group;
    struct cm_rule_word word;

    while (cm_rule_word_next(&at, &word))
        if (cm_str_is(word.value, "schedule"))
            return word.key;
    return CM_STR_NONE;
}

bool cm_torch_decays_itself(const struct cm_saved *saved)
{
    return cm_torch_decay_key(saved->rule).size && saved->schedule.count == 1 &&
           saved->schedule.items[0].shape == CM_PHASE_INVERSE;
}
