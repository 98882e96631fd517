/* Schedules of DeepSpeed, by the name and the settings in its configuration. The state is a
 * position only; update n of a training uses the rate of position n - 1. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/torch/deepspeed.h"

#include "convert/schedule.h"
#include "train/rules.h"

struct settings {
    struct cm_saved *saved;
    const struct cm_item *params;
    struct cm_schedule_maker maker;
    double warmup, total;
    bool is_linear; /* while it warms up, otherwise by the logarithm */
    double *low, *high;
    double low_ratio, end_ratio; /* of the cosine */
    int64_t position;
};

/* A number, or one for each group; false: neither. */
static bool by_group(const struct settings *s, const char *key, double otherwise, double *out)
{
    const struct cm_item *item = cm_item_get(s->params, key);
    const size_t groups = s->maker.groups;

    if (cm_item_count(item) && cm_item_count(item) != groups)
        return false;
    for (size_t i = 0; i < groups; i++) {
        const struct cm_item *one = cm_item_count(item) ? cm_item_at(item, i) : item;
        out[i] = cm_item_real_or(one, otherwise);
        if (isnan(out[i]))
            return false;
    }
    return true;
}

static struct cm_phase *add(const struct settings *s, enum cm_phase_shape shape, double first,
                            double length, const double *from, const double *to)
{
    struct cm_phase *phase = cm_schedule_add(&s->maker, shape, (int64_t)first, length, 0, 0, 0);

    phase->from = from;
    phase->to = to;
    return phase;
}

/* How far it is warmed up at a position before its end: 0 .. 1. */
static double warm(const struct settings *s, double position)
{
    return s->is_linear ? position / s->warmup : log(position + 1) / log(s->warmup);
}

static void add_warmup(const struct settings *s)
{
    add(s, s->is_linear ? CM_PHASE_LINEAR : CM_PHASE_LOG, 0, s->warmup, s->low, s->high);
}

/* The rate that warming up leads to, where the configuration leaves it to the optimizer's, which is
 * not stored: told by the rate of now. */
static bool find_high(struct settings *s, double gamma)
{
    if (!by_group(s, "warmup_min_lr", 0, s->low))
        return false;
    if (by_group(s, "warmup_max_lr", NAN, s->high))
        return true;
    for (size_t i = 0; i < s->maker.groups; i++) {
        s->high[i] = s->low[i] + (s->saved->groups.items[i].settings.lr - s->low[i]) / gamma;
        if (!(fabs(s->high[i]) < 1e9))
            return false;
    }
    return true;
}

static bool warmup(struct settings *s)
{
    const double at = (double)s->position;

    if (!find_high(s, at < s->warmup ? warm(s, at) : 1))
        return false;
    add_warmup(s);
    add(s, CM_PHASE_CONSTANT, s->warmup, 1, s->high, s->high);
    return true;
}

static bool warmup_decay(struct settings *s)
{
    const double at = (double)s->position, rest = fmax(1, s->total - s->warmup);

    if (isnan(s->total) ||
        !find_high(s, at < s->warmup ? warm(s, at) : fmax(0, s->total - at) / rest))
        return false;
    add_warmup(s);
    add(s, CM_PHASE_LINEAR, s->warmup, rest, s->high, s->low);
    return true;
}

/* The part of the first rate, of WarmupCosineLR. */
static double cosine_ratio(const struct settings *s, double position)
{
    if (position < s->warmup)
        return s->low_ratio + (1 - s->low_ratio) * warm(s, position);
    const double done = fmin(1, (position - s->warmup + 1) / fmax(1, s->total - s->warmup));
    return fmax(0, s->end_ratio + (1 - s->end_ratio) * (1 + cos(acos(-1) * done)) / 2);
}

static double cosine_rate(const void *arg, size_t group, int64_t position)
{
    const struct settings *s = arg;

    return s->high[group] * cosine_ratio(s, (double)position);
}

/* The cosine begins with its second step, so that before it nothing but a table says it all. */
static bool warmup_cosine(struct settings *s)
{
    const double now = cosine_ratio(s, (double)s->position);

    for (size_t i = 0; i < s->maker.groups; i++) {
        s->high[i] = s->saved->groups.items[i].settings.lr / now;
        s->low[i] = s->high[i] * s->end_ratio;
        if (!(fabs(s->high[i]) < 1e9))
            return false;
    }
    if (isnan(s->total))
        return false;
    if ((double)s->position < s->warmup)
        return cm_schedule_add_table(&s->maker, 0, (int64_t)s->total + 1, cosine_rate, s);
    add(s, CM_PHASE_CONSTANT, 0, 1, s->high, s->high);
    add(s, CM_PHASE_COSINE, s->warmup - 1, fmax(1, s->total - s->warmup), s->high, s->low);
    return true;
}

/* Up, down, and then slowly to nothing; its momentum would move, too. */
static bool one_cycle(struct settings *s)
{
    const double up = cm_item_get_real(s->params, "cycle_first_step_size", 2000);
    const double down = cm_item_get_real(s->params, "cycle_second_step_size", up);
    const double rate = cm_item_get_real(s->params, "decay_lr_rate", 0);
    const double size = cm_item_get_real(s->params, "decay_step_size", 0);
    bool moves_momentum = true;

    (void)cm_item_is_bool(cm_item_get(s->params, "cycle_momentum"), &moves_momentum);
    if ((moves_momentum && cm_optimizer_has(s->saved->rule, "beta1")) ||
        cm_item_get_real(s->params, "cycle_first_stair_count", 0) > 0 ||
        cm_item_get_real(s->params, "cycle_second_stair_count", 0) > 0 ||
        !by_group(s, "cycle_min_lr", NAN, s->low) || !by_group(s, "cycle_max_lr", NAN, s->high) ||
        !(up >= 1 && down >= 1 && up + down < 1e15))
        return false;
    s->saved->schedule.offset++; /* its steps are counted from the first */
    add(s, CM_PHASE_LINEAR, 0, up, s->low, s->high);
    add(s, CM_PHASE_LINEAR, up, down, s->high, s->low);
    if (rate != 0 && size > 0)
        add(s, CM_PHASE_INVERSE, up + down, size, s->low, s->low)->factor = rate;
    return true;
}

static const struct {
    const char *name;
    bool (*make)(struct settings *s);
} schedules[] = {
    {"WarmupLR", warmup},
    {"WarmupDecayLR", warmup_decay},
    {"WarmupCosineLR", warmup_cosine},
    {"OneCycle", one_cycle},
};

void cm_deepspeed_take_schedule(struct cm_saved *saved, const struct cm_item *config,
                                const struct cm_item *state)
{
    const struct cm_item *params = cm_item_get(config, "params");
    double *room;
    struct settings s = {.saved = saved, .params = params, .maker = cm_schedule_for(saved, &room)};
    bool known = false;

    s.low = CM_NEW_ARRAY(saved->arena, double, s.maker.groups + 1);
    s.high = CM_NEW_ARRAY(saved->arena, double, s.maker.groups + 1);
    s.warmup = fmax(2, cm_item_get_real(params, "warmup_num_steps", 1000));
    s.total = cm_item_get_real(params, "total_num_steps", NAN);
    s.low_ratio = cm_item_get_real(params, "warmup_min_ratio", 0);
    s.end_ratio = cm_item_get_real(params, "cos_min_ratio", 0.0001);
    s.is_linear = cm_str_is(cm_item_get_text(params, "warmup_type"), "linear");
    saved->schedule_name = cm_item_get_text(config, "type");
    if (cm_item_is_int(cm_item_get(state, "last_batch_iteration"), &s.position) &&
        s.position >= 0 && s.warmup < 1e15 && !(s.total > 1e15)) {
        saved->schedule.offset = s.position - (saved->step < 0 ? 0 : saved->step);
        for (size_t i = 0; i < CM_COUNT(schedules); i++)
            if (cm_str_is(saved->schedule_name, schedules[i].name))
                known = schedules[i].make(&s);
    }
    if (known && saved->groups.count && cm_schedule_agrees(saved)) {
        saved->schedule_known = CM_SCHEDULE_KNOWN;
        return;
    }
    saved->schedule = (struct cm_rate_schedule){0};
    saved->schedule_known = CM_SCHEDULE_UNKNOWN;
    cm_saved_missing(saved,
                     "how the learning rate goes on: DeepSpeed's '%.*s' with these settings %s; "
                     "give the rates with --set",
                     CM_STR_FMT(saved->schedule_name),
                     known ? "does not give the present rate" : "is not supported");
}
