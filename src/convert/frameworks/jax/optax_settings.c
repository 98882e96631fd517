/* What a chain of optax's transformations comes to: settings, and what is missing. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/jax/optax_chain.h"
#include "convert/saved_item.h"

/* Settings that inject_hyperparams stores. */
static const struct cm_setting_word settings[] = {
    {"learning_rate", "lr"},  {"b1", "beta1"},
    {"b2", "beta2"},          {"decay", "beta2"},
    {"eps", "epsilon"},       {"eps_root", "epsilon_root"},
    {"momentum", "momentum"}, {"weight_decay", "weight_decay"},
    {"nesterov", "nesterov"},
};

static void need(struct cm_optax *o, double known, enum cm_optax_need what)
{
    if (isnan(known))
        o->needs |= what;
}

/* The numbers that optax stores with inject_hyperparams only. */
static const char *const numbers[CM_OPTAX_NUMBERS] = {"beta1", "beta2", "epsilon"};

static void need_numbers(struct cm_optax *o, const struct cm_plan_group *is)
{
    for (size_t i = 0; i < CM_COUNT(numbers); i++)
        if (cm_optimizer_has(o->rule->rule, numbers[i]) &&
            isnan(cm_group_field_get(is, cm_group_field_find(numbers[i])))) {
            o->lacking = o->rule->rule;
            o->lacks[i] = true;
        }
}

size_t cm_optax_after(const struct cm_optimizer_optax *form, bool is_decoupled)
{
    return (form->after ? (size_t)form->after : 1) + (form->may_decay && is_decoupled);
}

static bool same_fields(const struct cm_optax_rule *a, const struct cm_optax_rule *b)
{
    bool same = a->n_fields == b->n_fields;

    for (size_t f = 0; same && f < a->n_fields; f++)
        same = strcmp(a->fields[f].field, b->fields[f].field) == 0;
    return same;
}

/* Forms that have the same fields (adam, lamb) differ in the transformations that follow. */
static void choose_form(struct cm_optax *o)
{
    for (const struct cm_optax_rule *rule = o->rules; rule->is; rule++)
        if (same_fields(rule, o->rule) && (cm_optax_after(rule->is, false) == o->after ||
                                           cm_optax_after(rule->is, true) == o->after)) {
            o->rule = rule;
            return;
        }
}

static void need_decay(struct cm_optax *o, const struct cm_plan_group *is)
{
    if (o->masked && isnan(is->weight_decay))
        o->needs |= CM_NEED_MASK;
    else
        need(o, is->weight_decay, CM_NEED_DECAY);
}

static void conclude_rule(struct cm_optax *o, struct cm_plan_group *is, struct cm_str path)
{
    choose_form(o);
    const struct cm_optimizer_optax *form = o->rule->is;
    const struct cm_optimizer_rule *rule = &cm_optimizer_rules[o->rule->rule];
    const bool decays = form->decay || (form->may_decay && (o->after > 1 || o->masked));

    for (const struct cm_optimizer_optax *any = rule->optax; any->name; any++) {
        is->amsgrad = any->amsgrad ? form->amsgrad : is->amsgrad;
        is->centered = any->centered ? form->centered : is->centered;
    }
    if (form->may_decay || form->decay)
        is->decoupled = decays && !rule->decays_itself;
    if (decays)
        need_decay(o, is);
    else
        is->weight_decay = 0;
    need_numbers(o, is);
    if (form->momentum || o->has_trace)
        need(o, is->momentum, CM_NEED_MOMENTUM);
    else if (cm_optimizer_has(o->rule->rule, "momentum"))
        is->momentum = 0;
    if (o->after > cm_optax_after(form, true))
        cm_saved_unknown(o->saved,
                         "%.*s: after '%s' come %zu transformations without state, more than "
                         "it has; what they do is not stored",
                         CM_STR_FMT(path), form->name, o->after);
}

/* The name whose weight decay is decoupled, where another name's is not. */
static const char *decoupled_name(enum cm_update_rule rule, const char *name)
{
    for (const struct cm_optimizer_preset *p = cm_optimizer_rules[rule].presets; p->name; p++)
        if (cm_optimizer_preset_says(p, CM_LIKE_OPTAX, "decoupled") > 0)
            return p->name;
    return name;
}

void cm_optax_conclude(struct cm_optax *o, struct cm_saved_group *group, struct cm_str path)
{
    struct cm_plan_group *is = &group->settings;
    struct cm_saved *saved = o->saved;
    const bool plain = !o->rule; /* sgd without momentum has no state but for its rate's */
    size_t before = o->before;

    cm_group_take(is, o->hyperparams, settings, CM_COUNT(settings));
    if (plain) {
        is->momentum = is->weight_decay = 0;
        before = before > 2 ? before - 2 : 0;
    } else
        conclude_rule(o, is, path);
    const enum cm_update_rule rule = plain ? cm_optimizer_stateless() : o->rule->rule;
    const char *name = plain ? cm_optimizer_rules[rule].name : o->rule->is->name;
    if (is->decoupled == 1)
        name = decoupled_name(rule, name);
    if (saved->rule != CM_RULE_UNKNOWN && saved->rule != rule)
        cm_saved_unknown(saved, "%.*s moves its weights by '%s', others are moved by '%.*s'",
                         CM_STR_FMT(path), name, CM_STR_FMT(saved->optimizer));
    else
        saved->rule = rule;
    if (!saved->optimizer.size)
        saved->optimizer = cm_str(name);
    if (before)
        o->needs |= CM_NEED_CLIP;
    if (o->schedule_count >= 0)
        o->needs |= CM_NEED_SCHEDULE;
    need(o, is->lr, CM_NEED_RATE);
    /* Counts are those of the rule; a training without a step of its own has theirs. */
    const int64_t count = o->count >= 0 ? o->count : o->schedule_count;
    if (saved->step < 0)
        saved->step = count;
    if (o->count >= 0)
        is->step_offset = o->count - saved->step;
    if (o->schedule_count >= 0)
        saved->schedule.offset = o->schedule_count - saved->step;
}

/* "beta1, beta2 and epsilon: .. its defaults in optax, 0.9, 0.999 and 1e-8" */
static void tell_numbers(struct cm_optax *o)
{
    struct cm_str names = CM_STR(""), keys = CM_STR(""), values = CM_STR("");
    size_t count = 0, at = 0;

    for (size_t i = 0; i < CM_COUNT(numbers); i++)
        count += o->lacks[i];
    for (size_t i = 0; i < CM_COUNT(numbers); i++) {
        char value[40];

        if (!o->lacks[i])
            continue;
        const char *before = at == 0 ? "" : at + 1 == count ? " and " : ", ";
        cm_print_setting(
            value, sizeof value,
            cm_optimizer_default(&cm_optimizer_rules[o->lacking], NULL, CM_LIKE_OPTAX, numbers[i]));
        names = cm_arena_printf(o->arena, "%.*s%s%s", CM_STR_FMT(names), before, numbers[i]);
        keys = cm_arena_printf(o->arena, "%.*s%s\"%s\"", CM_STR_FMT(keys), before, numbers[i]);
        values = cm_arena_printf(o->arena, "%.*s%s%s", CM_STR_FMT(values), before, value);
        at++;
    }
    if (count)
        cm_saved_missing(o->saved,
                         "%.*s: optax stores none; give %.*s with --set, or name the optimizer for "
                         "its default%s in optax, %.*s",
                         CM_STR_FMT(names), CM_STR_FMT(keys), count > 1 ? "s" : "",
                         CM_STR_FMT(values));
}

void cm_optax_tell_needs(struct cm_optax *o)
{
    static const struct {
        enum cm_optax_need need;
        const char *text;
    } sentences[] = {
        {CM_NEED_RATE,
         "the learning rate: optax stores none; give it with --lr, or as \"lr\" with --set"},
        {CM_NEED_SCHEDULE,
         "how the learning rate goes on: optax stores the position of a schedule and not the "
         "schedule; give \"rates\" or \"schedule\" with --set"},
        {CM_NEED_MOMENTUM,
         "the momentum: optax stores none; give it with --momentum, or as \"momentum\" with --set "
         "(and \"nesterov\": true, if it is of that kind)"},
        {CM_NEED_DECAY, "the weight decay: optax stores none; give it with --weight-decay, or as "
                        "\"weight_decay\" with --set (the default in optax is 1e-4)"},
        {CM_NEED_MASK,
         "the weight decay, and which weights decay: optax stores neither; give \"groups\" with "
         "their names and \"weight_decay\" with --set"},
        {CM_NEED_CLIP, "what comes before the optimizer: a transformation without state, such as "
                       "clipping; give \"clip_norm\" with --set (0: it does not clip)"},
        {CM_NEED_ACCUMULATION,
         "how many batches make an update: MultiSteps stores only how many there were; give it "
         "with --accumulate"},
        {CM_NEED_NAMES,
         "which weights a group without state has: optax does not store the labels of "
         "multi_transform; give \"groups\" with their names with --set"},
    };

    for (size_t i = 0; i < CM_COUNT(sentences); i++) {
        if (sentences[i].need == CM_NEED_MOMENTUM)
            tell_numbers(o);
        if (o->needs & sentences[i].need)
            cm_saved_missing(o->saved, "%s", sentences[i].text);
    }
    if (o->needs & CM_NEED_SCHEDULE)
        o->saved->schedule_known = CM_SCHEDULE_UNKNOWN;
    if (!(o->needs & CM_NEED_CLIP))
        o->saved->clip = (struct cm_plan_clip){CM_CLIP_GLOBAL_EXACT, 0};
    else
        o->saved->clip.kind = CM_CLIP_GLOBAL_EXACT;
}
