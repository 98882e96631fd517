/* Optimizers of Keras: names, words and settings. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/keras/keras_optimizer.h"

#include "convert/saved_item.h"
#include "convert/schedule.h"

/* ---- names ---- */

const struct cm_optimizer_keras *cm_keras_optimizer(struct cm_str name, enum cm_update_rule *rule)
{
    while (name.size && name.data[name.size - 1] >= '0' && name.data[name.size - 1] <= '9')
        name.size--;
    if (name.size && name.data[name.size - 1] == '_')
        name.size--;
    for (*rule = CM_RULE_UNKNOWN + 1; *rule < CM_RULES; (*rule)++)
        for (const struct cm_optimizer_keras *k = cm_optimizer_rules[*rule].keras; k->word; k++)
            if (cm_str_is(name, k->word) || cm_str_is(name, k->class_name))
                return k;
    *rule = CM_RULE_UNKNOWN;
    return NULL;
}

/* Is the word one of a list, "*momentum,m,Adam"? A word after "*" counts where the optimizer is
 * known. */
static bool lists(const char *list, struct cm_str word, bool is_known)
{
    while (list && *list) {
        const bool is_own = *list == '*';
        list += is_own;
        const struct cm_str one = {list, strcspn(list, ",")};
        if (cm_str_equal(one, word) && (is_known || !is_own))
            return true;
        list += one.size;
        list += *list == ',';
    }
    return false;
}

static const char *find_meaning(enum cm_update_rule rule, struct cm_str word, bool is_known)
{
    const struct cm_optimizer_state *state = cm_optimizer_rules[rule].states;

    for (; state && state->name; state++)
        if (lists(state->keras, word, is_known))
            return state->slot;
    return NULL;
}

const char *cm_keras_meaning(enum cm_update_rule rule, struct cm_str word)
{
    const char *meaning = find_meaning(rule, word, true);

    for (enum cm_update_rule other = CM_RULE_UNKNOWN + 1; !meaning && other < CM_RULES; other++)
        meaning = find_meaning(other, word, false);
    return meaning;
}

enum cm_update_rule cm_keras_rule_of_slot(struct cm_str word)
{
    for (enum cm_update_rule rule = CM_RULE_UNKNOWN + 1; rule < CM_RULES; rule++)
        if (find_meaning(rule, word, true))
            return rule;
    return CM_RULE_UNKNOWN;
}

/* "SGD, Adam, AdamW, Adagrad and RMSprop" */
static const char *known_classes(struct cm_arena *arena)
{
    const char *last = "", *text = "";

    for (enum cm_update_rule rule = CM_RULE_UNKNOWN + 1; rule < CM_RULES; rule++)
        for (const struct cm_optimizer_keras *k = cm_optimizer_rules[rule].keras; k->word; k++) {
            if (strcmp(last, k->class_name) == 0 || strstr(text, k->class_name))
                continue;
            if (*last)
                text = cm_arena_printf(arena, "%s%s%s", text, *text ? ", " : "", last).data;
            last = k->class_name;
        }
    return cm_arena_printf(arena, "%s and %s", text, last).data;
}

void cm_keras_set_optimizer(struct cm_saved *saved, struct cm_str name)
{
    enum cm_update_rule rule;
    const struct cm_optimizer_keras *found = cm_keras_optimizer(name, &rule);

    saved->has_optimizer = true;
    saved->arithmetic = CM_LIKE_KERAS;
    saved->optimizer = found ? cm_str(found->class_name) : name;
    saved->rule = rule;
    if (!found && name.size)
        cm_saved_unknown(saved, "the optimizer '%.*s': only %s are continued", CM_STR_FMT(name),
                         known_classes(saved->arena));
}

/* ---- schedules ---- */

static struct cm_phase *add_phase(struct cm_saved *saved, enum cm_phase_shape shape, double first,
                                  double length, double from, double to)
{
    static const double one = 1;
    const struct cm_schedule_maker maker = {saved->arena, &saved->schedule, &one, 1};
    struct cm_phase *phase = cm_schedule_add(
        &maker, shape, first > 0 && first < 1e18 ? (int64_t)first : 0, length, from, to, 0);

    phase->factor = 0;
    return phase;
}

static double number(const struct cm_item *config, const char *key)
{
    return cm_item_get_real(config, key, NAN);
}

static bool is_set(const struct cm_item *config, const char *key)
{
    bool truth = false;

    return cm_item_is_bool(cm_item_get(config, key), &truth) && truth;
}

typedef bool schedule_fn(struct cm_saved *saved, const struct cm_item *config, double rate);

/* rate * decay_rate ^ (step / decay_steps), or divided by 1 + decay_rate * step / decay_steps. */
static bool decay(struct cm_saved *saved, const struct cm_item *config, double rate,
                  enum cm_phase_shape shape)
{
    struct cm_phase *phase = add_phase(saved, shape, 0, number(config, "decay_steps"), rate, rate);

    phase->factor = number(config, "decay_rate");
    phase->is_stepped = is_set(config, "staircase");
    return phase->length > 0 && !isnan(phase->factor);
}

static bool exponential(struct cm_saved *saved, const struct cm_item *config, double rate)
{
    return decay(saved, config, rate, CM_PHASE_EXPONENTIAL);
}

static bool inverse_time(struct cm_saved *saved, const struct cm_item *config, double rate)
{
    return decay(saved, config, rate, CM_PHASE_INVERSE);
}

static bool cosine(struct cm_saved *saved, const struct cm_item *config, double rate)
{
    const double length = number(config, "decay_steps");
    const double alpha = cm_item_get_real(config, "alpha", 0);
    const double target = number(config, "warmup_target");
    double warmup = 0;

    if (!isnan(target)) {
        warmup = cm_item_get_real(config, "warmup_steps", 0);
        if (warmup > 0)
            add_phase(saved, CM_PHASE_LINEAR, 0, warmup, rate, target);
        rate = target;
    }
    add_phase(saved, CM_PHASE_COSINE, warmup, length, rate, rate * alpha);
    return length > 0;
}

static bool polynomial(struct cm_saved *saved, const struct cm_item *config, double rate)
{
    struct cm_phase *phase = add_phase(saved, CM_PHASE_POLYNOMIAL, 0, number(config, "decay_steps"),
                                       rate, cm_item_get_real(config, "end_learning_rate", 0.0001));

    phase->factor = cm_item_get_real(config, "power", 1);
    return phase->length > 0 && !is_set(config, "cycle");
}

/* values[i] up to and with boundaries[i]. */
static bool piecewise(struct cm_saved *saved, const struct cm_item *config, double rate)
{
    const struct cm_item *boundaries = cm_item_get(config, "boundaries");
    const struct cm_item *values = cm_item_get(config, "values");
    const size_t count = cm_item_count(values);
    double value, first = -1;

    (void)rate;
    for (size_t i = 0; i < count; i++) {
        if (!cm_item_is_real(cm_item_at(values, i), &value) ||
            (i > 0 && !cm_item_is_real(cm_item_at(boundaries, i - 1), &first)))
            return false;
        add_phase(saved, CM_PHASE_CONSTANT, floor(first) + 1, 1, value, value);
    }
    return count > 0 && cm_item_count(boundaries) + 1 == count;
}

static const struct {
    const char *class_name;
    schedule_fn *take;
} schedules[] = {
    {"ExponentialDecay", exponential},
    {"InverseTimeDecay", inverse_time},
    {"CosineDecay", cosine},
    {"PolynomialDecay", polynomial},
    {"PiecewiseConstantDecay", piecewise},
};

static void take_schedule(struct cm_saved *saved, const struct cm_item *rate,
                          struct cm_plan_group *group)
{
    const struct cm_item *config = cm_item_get(rate, "config");
    const struct cm_str name = cm_item_get_text(rate, "class_name");
    bool is_known = false;

    saved->schedule_name = name;
    group->initial_lr = number(config, "initial_learning_rate");
    for (size_t i = 0; i < CM_COUNT(schedules); i++)
        if (cm_str_is(name, schedules[i].class_name))
            is_known = schedules[i].take(saved, config, group->initial_lr);
    if (is_known && saved->accumulate > 1) {
        cm_saved_unknown(saved, "the schedule counts batches, not updates: with "
                                "gradient_accumulation_steps it is not continued");
        is_known = false;
    }
    saved->schedule_known = is_known ? CM_SCHEDULE_KNOWN : CM_SCHEDULE_UNKNOWN;
    if (!is_known) {
        saved->schedule = (struct cm_rate_schedule){0};
        cm_saved_missing(saved, "the learning rate schedule: '%.*s' is not understood",
                         CM_STR_FMT(name));
        return;
    }
    if (isnan(group->initial_lr))
        group->initial_lr = saved->schedule.items[0].from[0];
    if (saved->step >= 0)
        group->lr = cm_schedule_rate(&saved->schedule, 1, 0, saved->step);
}

/* ---- settings ---- */

static void take_clip(struct cm_saved *saved, const struct cm_item *config)
{
    static const struct {
        const char *key;
        enum cm_clip_kind kind;
    } kinds[] = {{"global_clipnorm", CM_CLIP_GLOBAL_EXACT},
                 {"clipnorm", CM_CLIP_EACH},
                 {"clipvalue", CM_CLIP_VALUE}};

    saved->clip.limit = 0;
    for (size_t i = 0; i < CM_COUNT(kinds); i++)
        if (!isnan(number(config, kinds[i].key)))
            saved->clip = (struct cm_plan_clip){kinds[i].kind, number(config, kinds[i].key)};
}

void cm_keras_configure(struct cm_saved *saved, const struct cm_item *optimizer)
{
    const struct cm_item *config = cm_item_get(optimizer, "config");
    struct cm_plan_group *group = &saved->groups.items[0].settings;
    static const struct cm_setting_word words[] = {
        {"momentum", "momentum"}, {"rho", "beta2"},       {"beta_1", "beta1"},
        {"beta_2", "beta2"},      {"epsilon", "epsilon"}, {"weight_decay", "weight_decay"},
        {"nesterov", "nesterov"}, {"amsgrad", "amsgrad"}, {"centered", "centered"},
    };

    if (!config)
        return;
    if (!saved->optimizer.size)
        cm_keras_set_optimizer(saved, cm_item_get_text(optimizer, "class_name"));
    saved->groups.items[0].said = config;
    const double accumulate = number(config, "gradient_accumulation_steps");
    saved->accumulate = accumulate >= 1 && accumulate < 1e9 ? (int64_t)accumulate : 1;
    if (saved->accumulate > 1 && saved->step > 0)
        saved->step /= saved->accumulate;
    group->weight_decay = 0;
    group->decoupled = 1;
    cm_group_take(group, config, words, CM_COUNT(words));
    take_clip(saved, config);
    saved->loss_scale = number(config, "loss_scale_factor");
    const struct cm_item *rate = cm_item_get(config, "learning_rate");
    if (cm_item_get(rate, "class_name"))
        take_schedule(saved, rate, group);
    else if (!isnan(cm_item_real_or(rate, NAN))) {
        saved->schedule_known = CM_SCHEDULE_NONE;
        if (isnan(group->lr))
            group->lr = group->initial_lr = cm_item_real_or(rate, NAN);
    }
}

/* What the slots that are there say of the settings that they depend on: of a flag whether it is
 * set, of a number that it is 0. */
static void settings_of_slots(struct cm_saved *saved)
{
    struct cm_plan_group *group = &saved->groups.items[0].settings;
    const struct cm_optimizer_state *state = cm_optimizer_rules[saved->rule].states;

    for (; state && state->name; state++) {
        const struct cm_group_field *field = state->when ? cm_group_field_find(state->when) : NULL;
        const bool is_there = cm_saved_has_slot(saved, state->slot);

        if (field && isnan(cm_group_field_get(group, field)) && (field->is_flag || !is_there))
            cm_group_field_set(group, field, is_there);
    }
}

/* A setting that is not known; flags are not told. */
static void miss(struct cm_saved *saved, const struct cm_plan_group *group, const char *name,
                 double usual, const char *kind)
{
    const struct cm_group_field *field = cm_group_field_find(name);
    char text[40];

    if (field->is_flag || !isnan(cm_group_field_get(group, field)))
        return;
    cm_print_setting(text, sizeof text, usual);
    cm_saved_missing(saved, "%s: %s does not hold it (Keras's default is %s)", name, kind, text);
}

/* The weight decay of the name that decouples it. */
static double decay_of(enum cm_update_rule rule)
{
    for (const struct cm_optimizer_preset *p = cm_optimizer_rules[rule].presets; p->name; p++)
        if (cm_optimizer_preset_says(p, CM_LIKE_KERAS, "decoupled") > 0)
            return cm_optimizer_preset_says(p, CM_LIKE_KERAS, "weight_decay");
    return NAN;
}

void cm_keras_missing(struct cm_saved *saved, const char *kind)
{
    enum cm_update_rule rule;
    const struct cm_optimizer_keras *found = cm_keras_optimizer(saved->optimizer, &rule);

    if (!saved->has_optimizer || saved->groups.count == 0)
        return;
    settings_of_slots(saved);
    const struct cm_plan_group *group = &saved->groups.items[0].settings;
    if (saved->rule == CM_RULE_UNKNOWN && !saved->optimizer.size)
        cm_saved_missing(saved, "the optimizer: %s does not tell which one it is", kind);
    if (saved->schedule_known == CM_SCHEDULE_UNKNOWN && !saved->schedule_name.size)
        cm_saved_missing(saved, "the learning rate schedule: %s does not hold it", kind);
    else if (saved->schedule_known == CM_SCHEDULE_NONE && isnan(group->lr))
        cm_saved_missing(saved, "the learning rate: %s does not hold it", kind);
    for (const struct cm_rule_number *usual =
             cm_optimizer_rules[saved->rule].defaults[CM_LIKE_KERAS];
         usual && usual->name; usual++)
        miss(saved, group, usual->name, usual->value, kind);
    if (found && found->decays)
        miss(saved, group, "weight_decay", decay_of(rule), kind);
    if (cm_optimizer_has(saved->rule, "momentum") && isnan(group->momentum))
        cm_saved_missing(saved,
                         cm_optimizer_may(saved->rule, "nesterov")
                             ? "momentum: %s holds neither it nor whether it is Nesterov's"
                             : "momentum: %s does not hold it",
                         kind);
}
