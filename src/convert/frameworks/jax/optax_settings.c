/* What a chain of optax's transformations comes to: settings, and what is missing. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/jax/optax_chain.h"

/* Settings that inject_hyperparams stores. */
static const struct {
    const char *key;
    size_t offset;
} settings[] = {
    {"learning_rate", offsetof(struct cm_plan_group, lr)},
    {"b1", offsetof(struct cm_plan_group, beta1)},
    {"b2", offsetof(struct cm_plan_group, beta2)},
    {"decay", offsetof(struct cm_plan_group, beta2)},
    {"eps", offsetof(struct cm_plan_group, epsilon)},
    {"eps_root", offsetof(struct cm_plan_group, epsilon_root)},
    {"momentum", offsetof(struct cm_plan_group, momentum)},
    {"weight_decay", offsetof(struct cm_plan_group, weight_decay)},
};

static void set_settings(struct cm_optax *o, struct cm_plan_group *is)
{
    bool truth;

    for (size_t i = 0; i < CM_COUNT(settings); i++) {
        const struct cm_item *value = cm_item_get(o->hyperparams, settings[i].key);

        if (value)
            *(double *)(void *)((char *)is + settings[i].offset) = cm_item_real_or(value, NAN);
    }
    if (cm_item_is_bool(cm_item_get(o->hyperparams, "nesterov"), &truth))
        is->nesterov = truth;
}

static void need(struct cm_optax *o, double known, enum cm_optax_need what)
{
    if (isnan(known))
        o->needs |= what;
}

static void conclude_rule(struct cm_optax *o, struct cm_plan_group *is, struct cm_str path)
{
    const size_t usual = o->rule->rule == CM_RULE_RMSPROP ? 2 : 1; /* that follow it */

    is->amsgrad = o->rule->amsgrad;
    is->centered = o->rule->centered;
    switch (o->rule->rule) {
    case CM_RULE_ADAM:
        is->decoupled = o->after > 1 || o->masked;
        need(o, is->beta1 + is->beta2 + is->epsilon, CM_NEED_BETAS);
        if (!is->decoupled)
            is->weight_decay = 0;
        else if (o->masked && isnan(is->weight_decay))
            o->needs |= CM_NEED_MASK;
        else
            need(o, is->weight_decay, CM_NEED_DECAY);
        break;
    case CM_RULE_SGD:
        need(o, is->momentum, CM_NEED_MOMENTUM);
        break;
    case CM_RULE_RMSPROP:
        need(o, is->beta2 + is->epsilon, CM_NEED_SMOOTHING);
        if (o->has_trace)
            need(o, is->momentum, CM_NEED_MOMENTUM);
        else
            is->momentum = 0;
        break;
    default:
        need(o, is->epsilon, CM_NEED_EPSILON);
    }
    if (o->rule->rule != CM_RULE_ADAM)
        is->weight_decay = 0;
    if (o->after > usual + (o->rule->rule == CM_RULE_ADAM))
        cm_saved_unknown(o->saved,
                         "%.*s: after '%s' come %zu transformations without state, more than "
                         "adamw has; what they do is not stored (lamb?)",
                         CM_STR_FMT(path), o->rule->name, o->after);
}

void cm_optax_conclude(struct cm_optax *o, struct cm_saved_group *group, struct cm_str path)
{
    struct cm_plan_group *is = &group->settings;
    struct cm_saved *saved = o->saved;
    const bool plain = !o->rule; /* sgd without momentum has no state but for its rate's */
    const char *name = plain ? "sgd" : o->rule->name;
    const enum cm_update_rule rule = plain ? CM_RULE_SGD : o->rule->rule;
    size_t before = o->before;

    set_settings(o, is);
    if (plain) {
        is->momentum = is->weight_decay = 0;
        before = before > 2 ? before - 2 : 0;
    } else
        conclude_rule(o, is, path);
    if (rule == CM_RULE_ADAM && is->decoupled == 1)
        name = "adamw";
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
        {CM_NEED_BETAS,
         "beta1, beta2 and epsilon: optax stores none; give \"betas\" and \"epsilon\" with "
         "--set, or name the optimizer for its defaults in optax, 0.9, 0.999 and 1e-8"},
        {CM_NEED_MOMENTUM,
         "the momentum: optax stores none; give it with --momentum, or as \"momentum\" with --set "
         "(and \"nesterov\": true, if it is of that kind)"},
        {CM_NEED_DECAY, "the weight decay: optax stores none; give it with --weight-decay, or as "
                        "\"weight_decay\" with --set (the default in optax is 1e-4)"},
        {CM_NEED_MASK,
         "the weight decay, and which weights decay: optax stores neither; give \"groups\" with "
         "their names and \"weight_decay\" with --set"},
        {CM_NEED_EPSILON, "epsilon: optax stores none; give \"epsilon\" with --set, or name the "
                          "optimizer for its default in optax, 1e-7"},
        {CM_NEED_CLIP, "what comes before the optimizer: a transformation without state, such as "
                       "clipping; give \"clip_norm\" with --set (0: it does not clip)"},
        {CM_NEED_SMOOTHING,
         "the decay of the average and epsilon: optax stores none; give \"beta2\" and "
         "\"epsilon\" with --set, or name the optimizer for its defaults in optax, 0.9 and 1e-8"},
        {CM_NEED_ACCUMULATION,
         "how many batches make an update: MultiSteps stores only how many there were; give it "
         "with --accumulate"},
        {CM_NEED_NAMES,
         "which weights a group without state has: optax does not store the labels of "
         "multi_transform; give \"groups\" with their names with --set"},
    };

    for (size_t i = 0; i < CM_COUNT(sentences); i++)
        if (o->needs & sentences[i].need)
            cm_saved_missing(o->saved, "%s", sentences[i].text);
    if (o->needs & CM_NEED_SCHEDULE)
        o->saved->schedule_known = CM_SCHEDULE_UNKNOWN;
    if (!(o->needs & CM_NEED_CLIP))
        o->saved->clip = (struct cm_plan_clip){CM_CLIP_GLOBAL_EXACT, 0};
    else
        o->saved->clip.kind = CM_CLIP_GLOBAL_EXACT;
}
