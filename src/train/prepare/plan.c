/* Plans: what a few flags mean, what is assumed where a plan says nothing, and what cannot be. */
// SPDX-License-Identifier: Apache-2.0
#include "train/prepare/update.h"

#include "train/formula.h"
#include "train/plateau.h"
#include "train/rules.h"
#include "training_names.h"

#include <float.h>
#include <stdlib.h>

/* ---- flags ---- */

/* An optimizer by name is PyTorch's, or that of the framework it comes from: formula and defaults.
 */
struct flagged {
    const struct cm_optimizer_rule *rule;
    const struct cm_optimizer_preset *preset;
    enum cm_arithmetic like;
};

/* NAN: it has no such setting. */
static double preset_of(const struct flagged *named, const char *setting)
{
    return cm_optimizer_default(named->rule, named->preset, (int)named->like, setting);
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

/* The rows of a batch that inputs of the model fix, or otherwise. */
static int64_t fixed_batch(struct cm_arena *arena, const struct cm_graph_proto *graph,
                           int64_t otherwise)
{
    struct cm_map defaults = {0};

    for (size_t i = 0; i < graph->initializer.count; i++)
        cm_map_insert(&defaults, arena, graph->initializer.items[i].name, NULL);
    for (size_t i = 0; i < graph->input.count; i++) {
        const struct cm_value_info_proto *input = &graph->input.items[i];
        const struct cm_tensor_type_proto *type = input->type ? input->type->tensor_type : NULL;

        if (type && type->shape && type->shape->dim.count &&
            type->shape->dim.items[0].dim_value > 0 && !cm_map_find(&defaults, input->name))
            return type->shape->dim.items[0].dim_value;
    }
    return otherwise;
}

void cm_schedule_fit_run(struct cm_arena *arena, const struct cm_graph_proto *graph,
                         struct cm_prepare_options *o)
{
    const int64_t batch = o->run_batch_size > 0 ? o->run_batch_size : fixed_batch(arena, graph, 32);
    const int64_t every = o->accumulate > 1 ? o->accumulate : 1;
    const bool ends = o->schedule == CM_SCHEDULE_COSINE || o->schedule == CM_SCHEDULE_LINEAR;

    if (o->run_samples > 0 && o->updates_per_epoch == 0)
        o->updates_per_epoch = ceil((double)o->run_samples / (double)batch) / (double)every;
    if (o->schedule_steps || o->schedule_epochs > 0 || !ends)
        return;
    if (o->run_steps > 0)
        o->schedule_steps = (o->run_steps - 1) / every + 1;
    else if (o->run_epochs > 0)
        o->schedule_epochs = (double)o->run_epochs;
}

int64_t cm_schedule_updates(const struct cm_prepare_options *options, int64_t steps, double epochs)
{
    const double updates = ceil(epochs * options->updates_per_epoch);

    return epochs == 0 ? steps : updates >= 0 && updates < 0x1p53 ? (int64_t)updates : 0;
}

/* What a schedule 'plateau' begins with, without its rates; in arena. */
static const double *schedule_plateau(struct cm_arena *arena,
                                      const struct cm_prepare_options *options)
{
    double *state = CM_NEW_ARRAY(arena, double, CM_PLATEAU_RATES);

    state[CM_PLATEAU_BEST] = DBL_MAX; /* an infinity would look like a training that diverged */
    state[CM_PLATEAU_FACTOR] = options->schedule_factor;
    state[CM_PLATEAU_PATIENCE] = (double)options->schedule_patience;
    state[CM_PLATEAU_THRESHOLD] = options->schedule_threshold;
    state[CM_PLATEAU_COOLDOWN] = (double)options->schedule_cooldown;
    state[CM_PLATEAU_LEAST] = options->schedule_min_lr;
    return state;
}

static void check_plateau(struct cm_preparation *p)
{
    const struct cm_prepare_options *o = p->options;
    const struct {
        const char *name;
        double value, below;
    } settings[] = {{"schedule_factor", o->schedule_factor, 1},
                    {"schedule_threshold", o->schedule_threshold, 1},
                    {"schedule_patience", (double)o->schedule_patience, INFINITY},
                    {"schedule_cooldown", (double)o->schedule_cooldown, INFINITY},
                    {"schedule_min_lr", o->schedule_min_lr, INFINITY}};

    for (size_t i = 0; i < CM_COUNT(settings); i++)
        check_flag(p, settings[i].name, settings[i].value, 0, settings[i].below);
}

/* A length is given in updates or in epochs; those need to know how long an epoch is. */
static void check_length(struct cm_preparation *p, const char *what, int64_t updates, double epochs)
{
    if (epochs == 0)
        return;
    if (!(epochs > 0 && epochs < INFINITY))
        cm_preparation_block(p, "%s_epochs is %g, must be at least 0", what, epochs);
    else if (updates)
        cm_preparation_block(p, "the %s is given in epochs and in updates", what);
    else if (!(p->options->updates_per_epoch > 0 && p->options->updates_per_epoch < INFINITY))
        cm_preparation_block(p, "%s_epochs needs updates_per_epoch, the updates of an epoch", what);
}

static void check_schedule(struct cm_preparation *p)
{
    const struct cm_prepare_options *o = p->options;
    const bool is_timed = o->schedule != CM_SCHEDULE_CONSTANT && o->schedule != CM_SCHEDULE_PLATEAU;

    check_length(p, "warmup", o->warmup, o->warmup_epochs);
    check_length(p, "schedule", o->schedule_steps, o->schedule_epochs);
    if (o->schedule == CM_SCHEDULE_PLATEAU)
        check_plateau(p);
    if (is_timed && p->schedule_steps <= 0 && o->schedule_epochs == 0)
        cm_preparation_block(p, "the schedule needs a number of steps (schedule_steps)");
    if (is_timed && o->schedule != CM_SCHEDULE_STEP && p->schedule_steps > 0 &&
        p->warmup >= p->schedule_steps)
        cm_preparation_block(
            p, "%lld steps of warmup are as long as the whole schedule of %lld steps or longer",
            (long long)p->warmup, (long long)p->schedule_steps);
    if (p->warmup < 0)
        cm_preparation_block(p, "%lld steps of warmup: expected 0 or more", (long long)p->warmup);
    if (!(o->clip_norm >= 0))
        cm_preparation_block(
            p, "gradients cannot be clipped to a norm of %g: expected 0 (no clipping) or more",
            o->clip_norm);
}

/* Settings that have an option of their own. */
static const struct {
    const char *name;
    size_t at; /* in struct cm_prepare_options */
} own_options[] = {{"lr", offsetof(struct cm_prepare_options, lr)},
                   {"momentum", offsetof(struct cm_prepare_options, momentum)},
                   {"weight_decay", offsetof(struct cm_prepare_options, weight_decay)},
                   {"beta1", offsetof(struct cm_prepare_options, beta1)},
                   {"beta2", offsetof(struct cm_prepare_options, beta2)},
                   {"epsilon", offsetof(struct cm_prepare_options, epsilon)}};

static double option_of(const struct cm_prepare_options *o, size_t setting)
{
    return *(const double *)(const void *)((const char *)o + own_options[setting].at);
}

/* The next "name=value" of the settings. false: there is none; a value that is no number is NAN. */
static bool next_setting(const char **at, struct cm_str *name, double *value)
{
    char text[64];

    if (!*at || !**at)
        return false;
    const size_t size = strcspn(*at, ","), part = strcspn(*at, "=,");
    const size_t digits = part < size ? size - part - 1 : 0;
    *name = (struct cm_str){*at, part};
    *value = NAN;
    if (digits && digits < sizeof text) {
        char *end;

        memcpy(text, *at + part + 1, digits);
        text[digits] = '\0';
        const double read = strtod(text, &end);
        if (!*end)
            *value = read;
    }
    *at += size + ((*at)[size] == ',');
    return true;
}

double cm_preparation_setting(const struct cm_preparation *p, const char *name, double otherwise)
{
    const char *at = p->options->settings;
    struct cm_str found;
    double value;

    while (next_setting(&at, &found, &value))
        if (cm_str_is(found, name))
            otherwise = value;
    return otherwise;
}

/* Each setting is one of the optimizer or of the loss, and a number. */
static void check_settings(struct cm_preparation *p, const struct flagged *named)
{
    const struct cm_loss_rule *loss = cm_loss_rule_find(p->options->loss);
    const char *at = p->options->settings;
    struct cm_str name;
    double value;

    while (next_setting(&at, &name, &value)) {
        const char *text = cm_arena_str(p->arena, name).data;
        const struct cm_group_field *field = cm_group_field_find(text);
        bool known = named->rule && field && !field->is_flag && !isnan(preset_of(named, text));

        for (const struct cm_rule_number *n = loss ? loss->settings : NULL; n && n->name; n++)
            known = known || strcmp(n->name, text) == 0;
        if (!known && !named->rule)
            cm_preparation_block(p,
                                 "setting '%s': loss %s does not have it, and the checkpoint says "
                                 "those of the optimizer",
                                 text, p->options->loss);
        else if (!known)
            cm_preparation_block(p, "setting '%s': neither optimizer %s nor loss %s has it", text,
                                 p->options->optimizer, p->options->loss);
        else if (!(fabs(value) < INFINITY))
            cm_preparation_block(p, "setting '%s' is not a number", text);
    }
}

static void check_flags(struct cm_preparation *p, const struct flagged *named)
{
    const struct cm_prepare_options *o = p->options;

    for (size_t i = 0; i < CM_COUNT(own_options); i++)
        check_flag(p, own_options[i].name, option_of(o, i), preset_of(named, own_options[i].name),
                   strncmp(own_options[i].name, "beta", 4) == 0 ? 1 : INFINITY);
    if (preset_of(named, "nesterov") > 0 && o->momentum == 0)
        cm_preparation_block(p, "nesterov needs a momentum above 0");
    check_settings(p, named);
    if (p->no_decay.flag && !(p->plan->groups[0].weight_decay > 0))
        cm_preparation_block(p, "%s: no weight decays; give a weight_decay",
                             o->no_decay ? "no_decay" : "no_decay_vectors");
    if (!isnan(o->warmup_from) && !(o->warmup_from >= 0 && o->warmup_from < 1))
        cm_preparation_block(p, "warmup_from is %g, must be at least 0 and below 1",
                             o->warmup_from);
    if (!isnan(o->warmup_from) && o->warmup == 0 && o->warmup_epochs == 0)
        cm_preparation_block(p, "warmup_from needs a number of updates (warmup)");
    check_schedule(p);
}

/* ---- groups of flags ---- */

/* "REGEX=X;REGEX=X" */
static void read_rates(struct cm_preparation *p)
{
    const char *text = p->options->lr_for;
    size_t most = 1;

    for (const char *at = text; at && *at; at++)
        most += *at == ';';
    p->rates = CM_NEW_ARRAY(p->arena, struct cm_flag_group, most);
    while (text && *text) {
        const struct cm_str one = {text, strcspn(text, ";")};
        char *copy = (char *)cm_arena_str(p->arena, one).data, *equals = strrchr(copy, '='), *end;
        double lr = NAN;

        if (equals && equals[1]) {
            lr = strtod(equals + 1, &end);
            lr = *end ? (double)NAN : lr;
            *equals = '\0';
        }
        if (lr >= 0 && lr < INFINITY)
            p->rates[p->n_rates++] = (struct cm_flag_group){
                "lr_for", copy, cm_preparation_pattern(p, "lr_for", copy), lr, false};
        else
            cm_preparation_block(p, "lr_for '%.100s': expected REGEX=X with X at least 0",
                                 cm_arena_str(p->arena, one).data);
        text += one.size + (text[one.size] == ';');
    }
}

static void read_groups(struct cm_preparation *p)
{
    const struct cm_prepare_options *o = p->options;

    read_rates(p);
    if (!o->no_decay && !o->no_decay_vectors)
        return;
    p->no_decay =
        (struct cm_flag_group){.flag = "no_decay",
                               .text = o->no_decay,
                               .pattern = cm_preparation_pattern(p, "no_decay", o->no_decay)};
}

size_t cm_update_group_of(struct cm_preparation *p, struct cm_str name, int rank)
{
    size_t rate = 0;

    for (size_t i = 0; i < p->n_rates; i++)
        if (p->rates[i].pattern && cm_preparation_matches(p, p->rates[i].pattern, name)) {
            p->rates[i].is_found = true;
            rate = rate ? rate : i + 1;
        }
    if (!p->no_decay.flag)
        return rate;
    const bool matches =
        p->no_decay.pattern && cm_preparation_matches(p, p->no_decay.pattern, name);
    p->no_decay.is_found = p->no_decay.is_found || matches;
    return 2 * rate + (matches || (p->options->no_decay_vectors && rank < 2));
}

static void check_matched(struct cm_preparation *p, const struct cm_flag_group *group)
{
    if (group->pattern && !group->is_found)
        cm_preparation_block(p, "%s '%.100s' matches no weight that is trained", group->flag,
                             group->text);
}

void cm_update_check_groups(struct cm_preparation *p)
{
    for (size_t i = 0; i < p->n_rates; i++)
        check_matched(p, &p->rates[i]);
    check_matched(p, &p->no_decay);
}

static const struct cm_plan *plan_of_flags(struct cm_preparation *p, const struct flagged *named)
{
    static const enum cm_phase_shape shapes[] = {[CM_SCHEDULE_STEP] = CM_PHASE_EXPONENTIAL,
                                                 [CM_SCHEDULE_COSINE] = CM_PHASE_COSINE,
                                                 [CM_SCHEDULE_LINEAR] = CM_PHASE_LINEAR};
    const struct cm_prepare_options *o = p->options;
    struct cm_plan *plan = CM_NEW(p->arena, struct cm_plan);
    const size_t apart = p->no_decay.flag ? 2 : 1, count = (p->n_rates + 1) * apart;
    struct cm_plan_group *group = CM_NEW_ARRAY(p->arena, struct cm_plan_group, count);
    double *from = CM_NEW_ARRAY(p->arena, double, count);
    double *to = CM_NEW_ARRAY(p->arena, double, count);

    *group = CM_PLAN_GROUP;
    for (size_t i = 0; i < cm_group_field_count; i++)
        cm_group_field_set(group, &cm_group_fields[i],
                           cm_preparation_setting(p, cm_group_fields[i].name,
                                                  preset_of(named, cm_group_fields[i].name)));
    for (size_t i = 0; i < CM_COUNT(own_options); i++)
        if (!isnan(option_of(o, i)))
            cm_group_field_set(group, cm_group_field_find(own_options[i].name), option_of(o, i));
    for (size_t i = 0; i < count; i++) { /* by rate, then with and without decay */
        group[i] = group[0];
        if (i >= apart)
            group[i].lr = p->rates[i / apart - 1].lr;
        from[i] = group[i].lr;
    }
    for (size_t i = 1; i < count && apart == 2; i += 2)
        group[i].weight_decay = 0;
    *plan = (struct cm_plan){.rule = (enum cm_update_rule)(named->rule - cm_optimizer_rules),
                             .arithmetic = named->like,
                             .groups = group,
                             .n_groups = count,
                             .clip = {CM_CLIP_GLOBAL, o->clip_norm}};
    p->warmup = cm_schedule_updates(o, o->warmup, o->warmup_epochs);
    p->schedule_steps = cm_schedule_updates(o, o->schedule_steps, o->schedule_epochs);
    if (o->schedule == CM_SCHEDULE_PLATEAU)
        plan->plateau = schedule_plateau(p->arena, o);
    if (o->schedule == CM_SCHEDULE_CONSTANT || o->schedule == CM_SCHEDULE_PLATEAU)
        return plan;
    plan->schedule.count = 1;
    plan->schedule.items = CM_NEW(p->arena, struct cm_phase);
    plan->schedule.items[0] = (struct cm_phase){
        .shape = shapes[o->schedule],
        .length = (double)(p->schedule_steps - (o->schedule == CM_SCHEDULE_STEP ? 0 : p->warmup)),
        .factor = o->schedule_factor,
        .is_stepped = true,
        .from = from,
        .to = to};
    return plan;
}

/* ---- what a plan need not say ---- */

struct cm_plan_group cm_plan_group_full(const struct cm_plan *plan, size_t group)
{
    const struct cm_optimizer_rule *rule = &cm_optimizer_rules[plan->rule];
    struct cm_plan_group full = plan->groups[group];

    for (size_t i = 0; i < cm_group_field_count; i++) {
        const struct cm_group_field *field = &cm_group_fields[i];
        const double preset = cm_optimizer_default(rule, NULL, (int)plan->arithmetic, field->name);
        const bool is_rate = strcmp(field->name, "lr") == 0;

        if (isnan(cm_group_field_get(&full, field)) && !is_rate)
            cm_group_field_set(&full, field, given(preset, 0));
    }
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
    const char *const *words = cm_update_words(p->arena, plan, &group, false);
    for (const struct cm_optimizer_words *refusal = cm_optimizer_rules[plan->rule].refusals;
         refusal->name; refusal++)
        if (cm_words_hold(refusal->name, words))
            cm_preparation_block(p, "optimizer group %zu: %s", g, refusal->words);
    if (plan->step + group.step_offset < 0)
        cm_preparation_block(p, "optimizer group %zu has seen %lld steps, expected 0 or more", g,
                             (long long)(plan->step + group.step_offset));
}

static void check_phases(struct cm_preparation *p, const struct cm_plan *plan)
{
    const struct cm_rate_schedule *schedule = &plan->schedule;

    for (size_t i = 0; i < schedule->count; i++) {
        const struct cm_phase *phase = &schedule->items[i];
        const double least = phase->shape == CM_PHASE_LOG ? 1 : 0;

        if (i ? phase->first <= schedule->items[i - 1].first : phase->first != 0)
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
    if (!cm_optimizer_rules[plan->rule].defaults[plan->arithmetic])
        cm_preparation_block(p, "%s does not have %s; it has %s",
                             cm_arithmetics[plan->arithmetic].title,
                             cm_optimizer_rules[plan->rule].title,
                             cm_optimizer_list(p->arena, (int)plan->arithmetic));
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

static bool find_optimizer(const char *name, struct flagged *out)
{
    out->rule = cm_optimizer_find(cm_str(name), &out->preset);
    if (!out->rule)
        return false;
    out->like = (enum cm_arithmetic)cm_optimizer_arithmetic(
        (enum cm_update_rule)(out->rule - cm_optimizer_rules));
    return true;
}

/* A plan says how each weight is trained: flags that would say it too. */
static void refuse_flags(struct cm_preparation *p)
{
    const struct cm_prepare_options *o = p->options;
    const struct {
        const char *name;
        bool given;
    } flags[] = {{"no_decay", o->no_decay != NULL},
                 {"no_decay_vectors", o->no_decay_vectors},
                 {"lr_for", o->lr_for != NULL},
                 {"warmup_from", !isnan(o->warmup_from)}};

    for (size_t i = 0; i < CM_COUNT(flags); i++)
        if (flags[i].given)
            cm_preparation_block(
                p, "%s does not apply: the checkpoint says how each weight is trained",
                flags[i].name);
    check_settings(p, &(struct flagged){0});
}

void cm_update_check(struct cm_preparation *p)
{
    const struct cm_prepare_options *o = p->options;
    struct flagged named = {0};

    if (o->accumulate < 0)
        cm_preparation_block(p, "gradients of %lld batches cannot be averaged: expected at least 1",
                             (long long)o->accumulate);
    if (o->plan) {
        p->plan = o->plan;
        check_plan(p, o->plan);
        refuse_flags(p);
    } else if (find_optimizer(o->optimizer, &named)) {
        read_groups(p);
        p->plan = plan_of_flags(p, &named);
        check_flags(p, &named);
    } else {
        cm_preparation_block(p, "there is no optimizer '%.60s'; there are " CAMEO_OPTIMIZER_NAMES,
                             o->optimizer ? o->optimizer : "");
    }
}
