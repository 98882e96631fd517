/* The optimizer that preparing with flags wrote: models that were never imported carry no metadata
 * about it, but what its numbers and states are called says all of it (train/plan.c). */
// SPDX-License-Identifier: Apache-2.0
#include "convert/transfer/export_saved.h"

#include "base/number.h"
#include "onnx/tensor_data.h"
#include "train/plateau.h"
#include "train/rules.h"

/* The state that "W.exp_avg" is; *weight becomes "W". */
static const struct cm_optimizer_state *state_of(struct cm_str name, enum cm_update_rule rule,
                                                 struct cm_str *weight)
{
    for (const struct cm_optimizer_state *s = cm_optimizer_rules[rule].states; s->name; s++) {
        const size_t size = strlen(s->name);

        if (name.size > size + 1 && cm_str_ends(name, s->name) &&
            name.data[name.size - size - 1] == '.') {
            *weight = (struct cm_str){name.data, name.size - size - 1};
            return s;
        }
    }
    return NULL;
}

const char *cm_prepared_slot(struct cm_str name, struct cm_str *weight)
{
    for (enum cm_update_rule rule = CM_RULE_UNKNOWN + 1; rule < CM_RULES; rule++) {
        const struct cm_optimizer_state *state = state_of(name, rule, weight);
        if (state)
            return state->slot;
    }
    return NULL;
}

/* Does the rule have all states that weights of the algorithm have, and do they have all that the
 * rule always has? */
static bool fits(const struct cm_graph_proto *algorithm, const struct cm_map *weights,
                 enum cm_update_rule rule)
{
    const struct cm_optimizer_state *states = cm_optimizer_rules[rule].states, *found;
    struct cm_str weight;
    uint64_t seen = 0;

    for (size_t i = 0; i < algorithm->initializer.count; i++) {
        const struct cm_str name = algorithm->initializer.items[i].name;

        if ((found = state_of(name, rule, &weight)) && cm_map_find(weights, weight))
            seen |= UINT64_C(1) << (found - states);
        else if (cm_prepared_slot(name, &weight) && cm_map_find(weights, weight))
            return false;
    }
    for (size_t s = 0; states[s].name; s++)
        if (!states[s].when && !(seen >> s & 1))
            return false;
    return true;
}

struct prepared {
    struct cm_arena *arena;
    const struct cm_model_file *file;
    const struct cm_graph_proto *algorithm;
    struct cm_map initializers, values; /* of the algorithm; values: what its nodes compute */
};

/* A float was rounded from the number that somebody typed: the shortest that rounds to it. */
static double as_typed(float number)
{
    char text[40];
    double typed = (double)number;

    for (int digits = 6; digits <= 9; digits++) {
        cm_format(text, sizeof text, "%.*g", digits, (double)number);
        if (cm_str_to_double(cm_str(text), &typed) && (float)typed == number)
            return typed;
    }
    return (double)number;
}

/* The scalar "training.NAME", as double, as float, or as int64; NAN: there is none. */
static double number(const struct prepared *p, const char *name)
{
    static const char *const endings[] = {".double", "", ".int64"};
    struct cm_tensor tensor;
    struct cm_error ignored;

    for (size_t i = 0; i < CM_COUNT(endings); i++) {
        const struct cm_str full = cm_arena_printf(p->arena, "training.%s%s", name, endings[i]);
        const uint64_t at = cm_map_get(&p->initializers, full, 0);

        if (!at || cm_tensor_proto_load(&p->algorithm->initializer.items[at - 1], p->file->files,
                                        &tensor, &ignored) != CM_OK)
            continue;
        double found = NAN;
        if (cm_tensor_count(&tensor) == 1)
            found = tensor.type == CM_INT64   ? (double)cm_tensor_int(&tensor, 0)
                    : tensor.type == CM_FLOAT ? as_typed((float)cm_tensor_real(&tensor, 0))
                                              : cm_tensor_real(&tensor, 0);
        cm_tensor_drop(&tensor);
        return found;
    }
    return NAN;
}

static bool computes(const struct prepared *p, struct cm_str weight, const char *what)
{
    const struct cm_str name = cm_arena_printf(p->arena, "%.*s.%s", CM_STR_ALL(weight), what);

    return cm_map_find(&p->values, name);
}

static double or_zero(double value)
{
    return isnan(value) ? 0 : value;
}

/* The rate rises to (t + 1) / warmup, then the schedule begins. */
static void read_schedule(const struct prepared *p, struct cm_saved *saved, double lr)
{
    const double warmup = number(p, "warmup"), period = number(p, "period");
    const double span = number(p, "span");
    double *ends = CM_NEW_ARRAY(p->arena, double, 4);
    struct cm_phase *phases = CM_NEW_ARRAY(p->arena, struct cm_phase, 2);

    ends[0] = lr / warmup;
    ends[1] = lr * (warmup + 1) / warmup;
    ends[2] = lr;
    if (!isnan(warmup))
        phases[saved->schedule.count++] = (struct cm_phase){
            .shape = CM_PHASE_LINEAR, .length = warmup, .from = &ends[0], .to = &ends[1]};
    if (isnan(warmup) && isnan(period) && isnan(span))
        return;
    struct cm_phase phase = {.first = (int64_t)or_zero(warmup), .from = &ends[2], .to = &ends[3]};
    if (!isnan(period)) {
        phase.shape = CM_PHASE_EXPONENTIAL;
        phase.length = period;
        phase.factor = number(p, "schedule_factor");
        phase.is_stepped = true;
    } else if (!isnan(span)) {
        phase.shape = isnan(number(p, "pi")) ? CM_PHASE_LINEAR : CM_PHASE_COSINE;
        phase.length = span;
    }
    phases[saved->schedule.count++] = phase;
    saved->schedule.items = phases;
    saved->schedule_known = CM_SCHEDULE_KNOWN;
}

static void read_group(const struct prepared *p, const struct cm_training_proto *training,
                       const struct cm_map *weights, struct cm_saved *saved)
{
    struct cm_saved_group *group = cm_saved_add_group(saved);
    struct cm_plan_group *is = &group->settings;
    /* No preset of Adam has Nesterov momentum, but optax's Adam may. */
    const bool may_look_ahead = cm_optimizer_may(saved->rule, "nesterov") ||
                                strcmp(cm_optimizer_rules[saved->rule].name, "adam") == 0;

    for (size_t i = 0; i < training->update_binding.count; i++) {
        const struct cm_str name = training->update_binding.items[i].key;

        if (!cm_map_find(weights, name) || !computes(p, name, "gradient"))
            continue;
        *CM_PUSH(p->arena, &group->names) = name;
        if (may_look_ahead && computes(p, name, "ahead"))
            is->nesterov = 1;
    }
    for (size_t i = 0; i < cm_group_field_count; i++) {
        const struct cm_group_field *field = &cm_group_fields[i];
        const double found = number(p, field->name);

        if (!field->is_flag) /* a number that is not there had its default, which needed no node */
            cm_group_field_set(is, field,
                               isnan(found)
                                   ? cm_optimizer_default(&cm_optimizer_rules[saved->rule], NULL,
                                                          (int)saved->arithmetic, field->name)
                                   : found);
    }
    is->lr = is->initial_lr = number(p, "lr_base");
    is->weight_decay = or_zero(number(p, "weight_decay"));
    is->decoupled = cm_map_find(&p->values, CM_STR("training.shrink")) != NULL;
}

/* What flags of prepare ask for and no checkpoint can say; NULL: nothing. */
static const char *untold(const struct prepared *p)
{
    if (cm_map_find(&p->initializers, CM_STR(CM_PLATEAU_NAME)))
        return "a schedule that can be written: the rate follows the validation loss";
    if (cm_map_find(&p->values, CM_STR("lr.1")))
        return "a record of the settings of each weight: some have a rate or a weight decay of "
               "their own (--lr-for, --no-decay)";
    if (!isnan(number(p, "warmup_from")))
        return "a schedule that can be written: the warmup begins elsewhere (--warmup-from)";
    return NULL;
}

bool cm_export_prepared(struct cm_arena *arena, const struct cm_model_file *file,
                        const struct cm_training_proto *training, const struct cm_map *weights,
                        struct cm_saved *saved)
{
    struct prepared p = {.arena = arena, .file = file, .algorithm = training->algorithm};
    enum cm_update_rule rule = CM_RULE_UNKNOWN + 1;

    if (!p.algorithm)
        return false;
    for (size_t i = 0; i < p.algorithm->initializer.count; i++) {
        const struct cm_str name = p.algorithm->initializer.items[i].name;

        *cm_map_insert(&p.initializers, arena, name, NULL) = i + 1;
    }
    for (size_t i = 0; i < p.algorithm->node.count; i++)
        for (size_t k = 0; k < p.algorithm->node.items[i].output.count; k++)
            (void)cm_map_insert(&p.values, arena, p.algorithm->node.items[i].output.items[k], NULL);
    while (rule < CM_RULES && !fits(p.algorithm, weights, rule))
        rule++;
    const double step = number(&p, "step"), lr = number(&p, "lr_base");
    int64_t steps;
    const char *more = untold(&p);
    if (rule != CM_RULES && more)
        cm_saved_missing(saved, "%s", more);
    if (rule == CM_RULES || more || isnan(lr) || !cm_int64_from(step, &steps))
        return false; /* NaN: there is none */
    saved->has_optimizer = true;
    saved->rule = rule;
    saved->step = steps;
    saved->clip = (struct cm_plan_clip){CM_CLIP_GLOBAL, or_zero(number(&p, "clip_norm"))};
    saved->accumulate = (int64_t)or_zero(number(&p, "accumulate"));
    saved->arithmetic = (enum cm_arithmetic)cm_optimizer_arithmetic(saved->rule);
    read_group(&p, training, weights, saved);
    saved->optimizer = cm_optimizer_title(saved->rule, saved->groups.items[0].settings.decoupled);
    read_schedule(&p, saved, lr);
    return true;
}
