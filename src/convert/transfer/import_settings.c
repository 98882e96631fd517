/* The settings of a training that goes on: what the checkpoint says, what the user says over it,
 * and what is missing then. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/saved_item.h"
#include "convert/transfer/import_parts.h"
#include "train/rules.h"
#include "training_names.h"

#include <math.h>

/* ---- optimizers by name ---- */

struct named {
    const struct cm_optimizer_rule *rule;
    const struct cm_optimizer_preset *preset; /* NULL: none was named */
};

/* What the name itself says of a flag; -1: nothing. */
static int flag_of(const struct named *named, enum cm_arithmetic like, const char *flag)
{
    const double value =
        named->preset ? cm_optimizer_preset_says(named->preset, (int)like, flag) : (double)NAN;

    return isnan(value) ? -1 : value != 0;
}

/* The default of the optimizer that was named. */
static double default_of(const struct named *named, enum cm_arithmetic like, const char *setting)
{
    return named->preset ? cm_optimizer_default(named->rule, named->preset, (int)like, setting)
                         : (double)NAN;
}

/* ---- what --set says ---- */

static const char *const top_keys[] = {
    "optimizer",       "groups", "clip_norm", "clip_value", "clip",  "schedule",   "schedule_steps",
    "schedule_factor", "warmup", "rates",     "step",       "epoch", "accumulate", "arithmetic"};

static void set_all(struct cm_importing *in, const struct cm_item *set, bool *given)
{
    for (size_t g = 0; g < in->saved->groups.count; g++) {
        cm_import_set_group(in, set, &in->saved->groups.items[g].settings);
        given[g] = given[g] || cm_item_get(set, "lr");
    }
}

static void set_count(struct cm_importing *in, const struct cm_item *set, const char *key,
                      int64_t *out)
{
    const struct cm_item *item = cm_item_get(set, key);

    if (item && (!cm_item_is_int(item, out) || *out < 0))
        cm_import_block(in, "--set: %s must be a whole number that is not negative", key);
}

static void set_clip(struct cm_importing *in, const struct cm_item *set)
{
    struct cm_plan_clip *clip = &in->saved->clip;
    const struct cm_item *norm = cm_item_get(set, "clip_norm"),
                         *value = cm_item_get(set, "clip_value");
    struct cm_str word = CM_STR_NONE;

    if (norm && clip->kind == CM_CLIP_VALUE)
        clip->kind = CM_CLIP_GLOBAL;
    if (norm && isnan(clip->limit) && in->saved->arithmetic != CM_LIKE_TORCH)
        clip->kind = CM_CLIP_GLOBAL_EXACT;
    if (value)
        clip->kind = CM_CLIP_VALUE;
    if (cm_item_get(set, "clip")) {
        const int kind =
            cm_item_is_text(cm_item_get(set, "clip"), &word) ? cm_clip_named(word) : -1;

        if (kind < 0)
            cm_import_block(in, "--set: clip is 'global', 'global-exact', 'each' or 'value'");
        else
            clip->kind = (enum cm_clip_kind)kind;
    }
    if ((norm && !cm_item_is_real(norm, &clip->limit)) ||
        (value && !cm_item_is_real(value, &clip->limit)) || clip->limit < 0)
        cm_import_block(in, "--set: gradients are clipped to a number that is not negative");
}

/* ---- flags ---- */

static void set_flags(struct cm_importing *in, bool *given)
{
    const struct cm_prepare_options *o = &in->options->prepare;
    const struct {
        double value;
        const char *setting;
    } numbers[] = {
        {o->lr, "lr"},       {o->momentum, "momentum"}, {o->weight_decay, "weight_decay"},
        {o->beta1, "beta1"}, {o->beta2, "beta2"},       {o->epsilon, "epsilon"}};

    for (size_t g = 0; g < in->saved->groups.count; g++)
        for (size_t i = 0; i < CM_COUNT(numbers); i++)
            if (!isnan(numbers[i].value)) {
                cm_group_field_set(&in->saved->groups.items[g].settings,
                                   cm_group_field_find(numbers[i].setting), numbers[i].value);
                given[g] = given[g] || i == 0;
            }
    if (in->options->has_clip)
        in->saved->clip.limit = o->clip_norm;
    if (in->options->has_clip && in->saved->clip.kind == CM_CLIP_VALUE)
        in->saved->clip.kind = CM_CLIP_GLOBAL;
    if (in->options->has_accumulate)
        in->saved->accumulate = o->accumulate;
}

static struct named set_optimizer(struct cm_importing *in, const struct cm_item *set)
{
    struct cm_saved *saved = in->saved;
    struct named named = {0};
    struct cm_str name = cm_str(in->options->prepare.optimizer), word;

    if (!name.size && cm_item_get(set, "optimizer") &&
        !cm_item_is_text(cm_item_get(set, "optimizer"), &name))
        cm_import_block(in, "--set: optimizer must be a text");
    if (cm_item_get(set, "arithmetic")) {
        const int number =
            cm_item_is_text(cm_item_get(set, "arithmetic"), &word) ? cm_arithmetic_named(word) : -1;

        if (number < 0)
            cm_import_block(in, "--set: arithmetic is 'torch', 'keras', 'optax' or 'onnxruntime'");
        else
            saved->arithmetic = (enum cm_arithmetic)number;
    }
    if (!name.size)
        return named;
    named.rule = cm_optimizer_find(name, &named.preset);
    if (!named.rule) {
        cm_import_block(in, "there is no optimizer '%.*s'; there are " CAMEO_OPTIMIZER_NAMES,
                        CM_STR_FMT(name));
        return named;
    }
    const enum cm_update_rule rule = (enum cm_update_rule)(named.rule - cm_optimizer_rules);
    if (saved->rule != CM_RULE_UNKNOWN && saved->rule != rule)
        cm_import_note(in, "the checkpoint is of %s; its state does not apply to %s",
                       cm_rule_name(saved->rule), named.preset->name);
    saved->rule = rule;
    saved->optimizer = cm_str(named.preset->name);
    saved->has_optimizer = true;
    return named;
}

/* ---- what is missing ---- */

/* One number of a group: the optimizer's default where the user named it, else it is missing. */
static void need(struct cm_importing *in, struct cm_str *missing, const char *name, double *value,
                 double preset)
{
    if (!isnan(*value))
        return;
    if (!isnan(preset)) {
        *value = preset;
        cm_import_note(in, "%s is not in the checkpoint: %g, the optimizer's default, is used",
                       name, preset);
        return;
    }
    *missing = cm_arena_printf(in->arena, "%s%s%s", cm_str_text(*missing),
                               missing->size ? ", " : "", name);
}

/* The flag of a setting, "--weight-decay"; those that have none go with --optimizer. */
static struct cm_str flags_of(struct cm_arena *arena, struct cm_str missing)
{
    char *text = cm_arena_alloc(arena, missing.size * 4 + 100);
    size_t size = 0;
    bool begins = true, named = false;

    for (size_t i = 0; i < missing.size; i++) {
        const struct cm_str rest = cm_str_from(missing, i);

        if (begins && (cm_str_starts(rest, "nesterov") || cm_str_starts(rest, "decoupled"))) {
            named = true;
            break; /* they are the last */
        }
        if (begins)
            size += (size_t)snprintf(text + size, 3, "--");
        begins = missing.data[i] == ' ';
        text[size++] = (char)(missing.data[i] == '_' ? '-' : missing.data[i]);
    }
    if (named)
        snprintf(text + size, 20, "--optimizer");
    return cm_str(text);
}

static void complete_group(struct cm_importing *in, size_t number, struct named named)
{
    struct cm_saved *saved = in->saved;
    struct cm_plan_group *group = &saved->groups.items[number].settings;
    const enum cm_arithmetic like = saved->arithmetic;
    const bool moves = cm_saved_has_slot(saved, "momentum_buffer");
    struct cm_str missing = CM_STR("");

    if (group->decoupled < 0)
        group->decoupled = flag_of(&named, like, "decoupled");
    if (flag_of(&named, like, "nesterov") >= 0)
        group->nesterov = flag_of(&named, like, "nesterov");
    if (isnan(group->lr) && saved->schedule_known != CM_SCHEDULE_KNOWN)
        need(in, &missing, "lr", &group->lr, NAN);
    need(in, &missing, "weight_decay", &group->weight_decay,
         default_of(&named, like, "weight_decay"));
    for (size_t i = 0; i < cm_group_field_count; i++) {
        const struct cm_group_field *field = &cm_group_fields[i];
        const bool is_momentum = strcmp(field->name, "momentum") == 0;
        double value = cm_group_field_get(group, field);
        double preset = default_of(&named, like, field->name);

        if (field->is_flag || strcmp(field->name, "lr") == 0 ||
            strcmp(field->name, "weight_decay") == 0 || !cm_optimizer_has(saved->rule, field->name))
            continue;
        if (is_momentum && moves && preset == 0)
            preset = NAN;
        need(in, &missing, field->name, &value, preset);
        cm_group_field_set(group, field, value);
        if (is_momentum && cm_optimizer_may(saved->rule, "nesterov") && group->momentum > 0 &&
            group->nesterov < 0) {
            double nesterov = NAN;
            need(in, &missing, "nesterov", &nesterov, NAN);
        }
    }
    if (cm_optimizer_may(saved->rule, "decoupled") && group->weight_decay > 0 &&
        group->decoupled < 0) {
        double decoupled = NAN;
        need(in, &missing, "decoupled", &decoupled, NAN);
    }
    if (missing.size && saved->groups.count > 1)
        cm_import_block(in, "the checkpoint does not say, of group %zu: %s; give it with --set",
                        number, cm_str_text(missing));
    else if (missing.size)
        cm_import_block(in, "the checkpoint does not say: %s; give it with %s, or with --set",
                        cm_str_text(missing), flags_of(in->arena, missing).data);
}

static void complete(struct cm_importing *in, struct named named)
{
    struct cm_saved *saved = in->saved;

    if (saved->rule == CM_RULE_UNKNOWN) {
        cm_import_block(in, "the checkpoint does not say which optimizer%s: give --optimizer",
                        saved->has_optimizer ? " its state is of" : "");
        return;
    }
    for (size_t g = 0; g < saved->groups.count; g++) {
        complete_group(in, g, named);
        if (saved->groups.count > 1 && !saved->groups.items[g].names.count)
            cm_import_block(in,
                            "the checkpoint does not say which weights are in group %zu: give "
                            "their names with --set",
                            g);
    }
    if (saved->step < 0 && cm_optimizer_counts(saved->rule) && cm_saved_has_slot(saved, NULL))
        cm_import_block(in,
                        "the checkpoint does not say how many steps were done: give 'step' with "
                        "--set");
    saved->step = saved->step < 0 ? 0 : saved->step;
    if (isnan(saved->clip.limit)) {
        saved->clip.limit = 0;
        cm_import_note(in,
                       "the checkpoint does not say whether gradients were clipped: they are not");
    }
}

void cm_import_settings(struct cm_importing *in)
{
    struct cm_saved *saved = in->saved;
    struct cm_item *set = NULL;
    struct cm_error why;

    if (in->options->settings &&
        cm_item_parse_json(in->arena, cm_str(in->options->settings), &set, &why)) {
        cm_import_block(in, "--set: %s", why.text);
        return;
    }
    if (set && set->kind != CM_ITEM_MAP) {
        cm_import_block(in, "--set: expected an object, {..}");
        return;
    }
    if (set)
        cm_import_check_keys(in, set, top_keys, CM_COUNT(top_keys));
    if (!saved->groups.count)
        (void)cm_saved_add_group(saved);
    bool *given = CM_NEW_ARRAY(in->arena, bool,
                               saved->groups.count + cm_item_count(cm_item_get(set, "groups")) + 1);
    const struct named named = set_optimizer(in, set);
    if (cm_item_get(set, "groups"))
        cm_import_groups(in, cm_item_get(set, "groups"), given);
    if (set) {
        set_all(in, set, given);
        set_count(in, set, "step", &saved->step);
        set_count(in, set, "epoch", &saved->epoch);
        set_count(in, set, "accumulate", &saved->accumulate);
        set_clip(in, set);
    }
    set_flags(in, given);
    saved->step = saved->step < 0 && !saved->has_optimizer ? 0 : saved->step;
    cm_import_schedule(in, set, given);
    complete(in, named);
}
