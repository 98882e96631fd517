/* Plans: what a few flags mean, what is assumed where a plan says nothing, and what cannot be. */
// SPDX-License-Identifier: Apache-2.0
#include "train/update.h"

/* ---- flags ---- */

/* An optimizer by name is PyTorch's: its formula and its defaults. NAN: it has none. */
static const struct flagged {
    const char *name;
    enum cm_update_rule rule;
    double lr, momentum, weight_decay, beta1, beta2, epsilon;
    bool nesterov, decoupled;
} optimizers[] = {
    {"sgd", CM_RULE_SGD, 1e-3, 0, 0, NAN, NAN, NAN, false, false},
    {"momentum", CM_RULE_SGD, 1e-3, 0.9, 0, NAN, NAN, NAN, false, false},
    {"nesterov", CM_RULE_SGD, 1e-3, 0.9, 0, NAN, NAN, NAN, true, false},
    {"adam", CM_RULE_ADAM, 1e-3, NAN, 0, 0.9, 0.999, 1e-8, false, false},
    {"adamw", CM_RULE_ADAM, 1e-3, NAN, 1e-2, 0.9, 0.999, 1e-8, false, true},
    {"adagrad", CM_RULE_ADAGRAD, 1e-2, NAN, 0, NAN, NAN, 1e-10, false, false},
    {"rmsprop", CM_RULE_RMSPROP, 1e-2, 0, 0, NAN, 0.99, 1e-8, false, false},
};

static const struct flagged *find_optimizer(const char *name)
{
    for (size_t i = 0; name && i < CM_COUNT(optimizers); i++)
        if (strcmp(optimizers[i].name, name) == 0)
            return &optimizers[i];
    return NULL;
}

static double given(double value, double otherwise)
{
    return isnan(value) ? otherwise : value;
}

static void check_flag(struct cm_preparation *p, const char *flag, double value, double preset,
                       double below)
{
    const char *optimizer = p->options->optimizer;

    if (isnan(value))
        return;
    if (isnan(preset))
        cm_preparation_block(p, "%s does not apply to %s", flag, optimizer);
    else if (!(value >= 0 && value < below))
        cm_preparation_block(p, "%s is %g, must be at least 0%s", flag, value,
                             below == 1 ? " and below 1" : "");
}

static void check_schedule(struct cm_preparation *p)
{
    const struct cm_prepare_options *o = p->options;

    if (o->schedule != CM_SCHEDULE_CONSTANT && o->schedule_steps <= 0)
        cm_preparation_block(p, "the schedule needs a number of steps (schedule_steps)");
    if (o->schedule != CM_SCHEDULE_CONSTANT && o->schedule != CM_SCHEDULE_STEP &&
        o->schedule_steps > 0 && o->warmup >= o->schedule_steps)
        cm_preparation_block(
            p, "%lld steps of warmup are as long as the whole schedule of %lld steps or longer",
            (long long)o->warmup, (long long)o->schedule_steps);
    if (o->warmup < 0)
        cm_preparation_block(p, "%lld steps of warmup: expected 0 or more", (long long)o->warmup);
    if (!(o->clip_norm >= 0))
        cm_preparation_block(
            p, "gradients cannot be clipped to a norm of %g: expected 0 (no clipping) or more",
            o->clip_norm);
}

static void check_flags(struct cm_preparation *p, const struct flagged *named)
{
    const struct cm_prepare_options *o = p->options;

    check_flag(p, "lr", o->lr, named->lr, INFINITY);
    check_flag(p, "momentum", o->momentum, named->momentum, INFINITY);
    check_flag(p, "weight_decay", o->weight_decay, named->weight_decay, INFINITY);
    check_flag(p, "beta1", o->beta1, named->beta1, 1);
    check_flag(p, "beta2", o->beta2, named->beta2, 1);
    check_flag(p, "epsilon", o->epsilon, named->epsilon, INFINITY);
    if (named->nesterov && o->momentum == 0)
        cm_preparation_block(p, "nesterov needs a momentum above 0");
    check_schedule(p);
}

static const struct cm_plan *plan_of_flags(struct cm_preparation *p, const struct flagged *named)
{
    static const enum cm_phase_shape shapes[] = {[CM_SCHEDULE_STEP] = CM_PHASE_EXPONENTIAL,
                                                 [CM_SCHEDULE_COSINE] = CM_PHASE_COSINE,
                                                 [CM_SCHEDULE_LINEAR] = CM_PHASE_LINEAR};
    const struct cm_prepare_options *o = p->options;
    struct cm_plan *plan = CM_NEW(p->arena, struct cm_plan);
    struct cm_plan_group *group = CM_NEW(p->arena, struct cm_plan_group);
    double *ends = CM_NEW_ARRAY(p->arena, double, 2);

    *group = CM_PLAN_GROUP;
    group->lr = ends[0] = given(o->lr, named->lr);
    group->momentum = given(o->momentum, named->momentum);
    group->weight_decay = given(o->weight_decay, named->weight_decay);
    group->beta1 = given(o->beta1, named->beta1);
    group->beta2 = given(o->beta2, named->beta2);
    group->epsilon = given(o->epsilon, named->epsilon);
    group->nesterov = named->nesterov;
    group->decoupled = named->decoupled;
    *plan = (struct cm_plan){.rule = named->rule,
                             .groups = group,
                             .n_groups = 1,
                             .clip = {CM_CLIP_GLOBAL, o->clip_norm}};
    p->warmup = o->warmup;
    if (o->schedule == CM_SCHEDULE_CONSTANT)
        return plan;
    plan->schedule.count = 1;
    plan->schedule.phases = CM_NEW(p->arena, struct cm_phase);
    plan->schedule.phases[0] = (struct cm_phase){
        .shape = shapes[o->schedule],
        .length = (double)(o->schedule_steps - (o->schedule == CM_SCHEDULE_STEP ? 0 : o->warmup)),
        .factor = o->schedule_factor,
        .is_stepped = true,
        .from = &ends[0],
        .to = &ends[1]};
    return plan;
}

/* ---- what a plan need not say ---- */

static int flag(int value, int otherwise)
{
    return value < 0 ? otherwise : value;
}

struct cm_plan_group cm_plan_group_full(const struct cm_plan *plan, size_t group)
{
    /* by rule and arithmetic: beta2, epsilon */
    static const double presets[][4][2] = {
        [CM_RULE_SGD] = {{0}},
        [CM_RULE_ADAM] = {{0.999, 1e-8}, {0.999, 1e-7}, {0.999, 1e-8}, {0.999, 1e-8}},
        [CM_RULE_ADAGRAD] = {{0, 1e-10}, {0, 1e-7}, {0, 1e-7}, {0, 1e-10}},
        [CM_RULE_RMSPROP] = {{0.99, 1e-8}, {0.9, 1e-7}, {0.9, 1e-8}, {0.99, 1e-8}},
    };
    const double *preset = presets[plan->rule][plan->arithmetic];
    const bool shrinks = plan->arithmetic == CM_LIKE_KERAS || plan->arithmetic == CM_LIKE_ORT;
    struct cm_plan_group full = plan->groups[group];

    full.momentum = given(full.momentum, 0);
    full.dampening = given(full.dampening, 0);
    full.beta1 = given(full.beta1, 0.9);
    full.beta2 = given(full.beta2, preset[0]);
    full.epsilon = given(full.epsilon, preset[1]);
    full.epsilon_root = given(full.epsilon_root, 0);
    full.weight_decay = given(full.weight_decay, 0);
    full.nesterov = flag(full.nesterov, 0);
    full.amsgrad = flag(full.amsgrad, 0);
    full.decoupled = flag(full.decoupled, shrinks);
    full.maximize = flag(full.maximize, 0);
    full.centered = flag(full.centered, 0);
    full.adam_mode = flag(full.adam_mode, 0);
    return full;
}

/* ---- what a plan may say ---- */

static void check_setting(struct cm_preparation *p, size_t group, const char *name, double value,
                          double below)
{
    if (!(value >= 0 && value < below))
        cm_preparation_block(p, "optimizer group %zu: %s is %g, must be at least 0%s", group, name,
                             value, below == 1 ? " and below 1" : "");
}

static void check_group(struct cm_preparation *p, const struct cm_plan *plan, size_t g)
{
    const struct cm_plan_group group = cm_plan_group_full(plan, g);

    if (!plan->schedule.count)
        check_setting(p, g, "the learning rate", group.lr, INFINITY);
    check_setting(p, g, "momentum", group.momentum, INFINITY);
    check_setting(p, g, "beta1", group.beta1, 1);
    check_setting(p, g, "beta2", group.beta2, 1);
    check_setting(p, g, "epsilon", group.epsilon, INFINITY);
    check_setting(p, g, "epsilon_root", group.epsilon_root, INFINITY);
    check_setting(p, g, "weight_decay", group.weight_decay, INFINITY);
    if (!(fabs(group.dampening) < INFINITY))
        cm_preparation_block(p, "optimizer group %zu: dampening is %g", g, group.dampening);
    if (plan->rule == CM_RULE_ADAM && group.nesterov && plan->arithmetic != CM_LIKE_OPTAX)
        cm_preparation_block(
            p, "optimizer group %zu: Adam with Nesterov momentum is known of optax only", g);
    if (plan->arithmetic == CM_LIKE_ORT && group.amsgrad)
        cm_preparation_block(p, "optimizer group %zu: ONNX Runtime's AdamW has no amsgrad", g);
    if (plan->step + group.step_offset < 0)
        cm_preparation_block(p, "optimizer group %zu has seen %lld steps, expected 0 or more", g,
                             (long long)(plan->step + group.step_offset));
}

static void check_phases(struct cm_preparation *p, const struct cm_plan *plan)
{
    const struct cm_rate_schedule *schedule = &plan->schedule;

    for (size_t i = 0; i < schedule->count; i++) {
        const struct cm_phase *phase = &schedule->phases[i];
        const double least = phase->shape == CM_PHASE_LOG ? 1 : 0;

        if (i ? phase->first <= schedule->phases[i - 1].first : phase->first != 0)
            cm_preparation_block(p, "schedule: phase %zu begins at step %lld, expected %s", i,
                                 (long long)phase->first, i ? "a later one than that before" : "0");
        if (phase->shape != CM_PHASE_CONSTANT && phase->shape != CM_PHASE_TABLE &&
            !(phase->length > least && phase->length < INFINITY))
            cm_preparation_block(p, "schedule: phase %zu has a length of %g, expected more than %g",
                                 i, phase->length, least);
        if (phase->shape == CM_PHASE_TABLE && !phase->n_rates)
            cm_preparation_block(p, "schedule: phase %zu is a table without rates", i);
    }
}

static void check_plan(struct cm_preparation *p, const struct cm_plan *plan)
{
    if (plan->rule == CM_RULE_UNKNOWN || !plan->n_groups) {
        cm_preparation_block(p, "the optimizer is not known");
        return;
    }
    if (plan->arithmetic == CM_LIKE_ORT && plan->rule > CM_RULE_ADAM)
        cm_preparation_block(p, "ONNX Runtime trains with SGD and AdamW only");
    for (size_t g = 0; g < plan->n_groups; g++)
        check_group(p, plan, g);
    for (size_t i = 0; i < plan->n_weights; i++) {
        if (plan->weights[i].group >= plan->n_groups)
            cm_preparation_block(p, "'%.*s' is of optimizer group %zu, but there are %zu groups",
                                 CM_STR_FMT(plan->weights[i].name), plan->weights[i].group,
                                 plan->n_groups);
        uint64_t *group = cm_map_insert(&p->planned, p->arena, plan->weights[i].name, NULL);
        if (*group)
            cm_preparation_block(p, "the optimizer has '%.*s' twice",
                                 CM_STR_FMT(plan->weights[i].name));
        *group = plan->weights[i].group + 1;
    }
    if (plan->clip.limit < 0)
        cm_preparation_block(p,
                             "gradients cannot be clipped to %g: expected 0 (no clipping) or more",
                             plan->clip.limit);
    if (plan->step < 0)
        cm_preparation_block(p, "%lld updates so far: expected 0 or more", (long long)plan->step);
    check_phases(p, plan);
}

void cm_update_check(struct cm_preparation *p)
{
    const struct cm_prepare_options *o = p->options;
    const struct flagged *named = find_optimizer(o->optimizer);

    if (o->accumulate < 0)
        cm_preparation_block(p, "gradients of %lld batches cannot be averaged: expected at least 1",
                             (long long)o->accumulate);
    if (o->plan) {
        p->plan = o->plan;
        check_plan(p, o->plan);
    } else if (named) {
        p->plan = plan_of_flags(p, named);
        check_flags(p, named);
    } else {
        cm_preparation_block(
            p,
            "there is no optimizer '%.60s'; there are sgd, momentum, nesterov, adam, "
            "adamw, adagrad and rmsprop",
            o->optimizer ? o->optimizer : "");
    }
}
