/* Schedules that transformers and NeMo know by a name. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/schedule.h"

/* One schedule to build: warmup and total in updates. */
struct named {
    const struct cm_schedule_maker *maker;
    const struct cm_item *more; /* its own settings */
    double warmup, total, decay;
};

static double setting(const struct named *named, const char *key, double otherwise)
{
    return cm_item_get_real(named->more, key, otherwise);
}

static bool is_set(const struct named *named, const char *key, const char *value)
{
    struct cm_str text;

    return cm_item_is_text(cm_item_get(named->more, key), &text) && cm_str_is(text, value);
}

static struct cm_phase *add(const struct named *named, enum cm_phase_shape shape, double first,
                            double length, double from, double to)
{
    return cm_schedule_add(named->maker, shape, (int64_t)first, length, from, to, 0);
}

/* The lowest rate as a part of the first: said as a rate, or as a part. */
static double least(const struct named *named)
{
    const double rate = setting(named, "min_lr", NAN);
    const double base = named->maker->groups ? named->maker->base[0] : 1;

    return isnan(rate) ? setting(named, "min_lr_rate", 0) : base != 0 ? rate / base : 0;
}

/* num_cycles of a cosine over `length`, 0.5 being once down. */
static void add_waves(const struct named *named, double first, double length, double least)
{
    const double cycles = setting(named, "num_cycles", 0.5);

    if (cycles > 0)
        add(named, CM_PHASE_COSINE, first, length / (2 * cycles), 1, least)->swings_back = true;
    else
        add(named, CM_PHASE_CONSTANT, first, 1, 1, 1);
}

static bool linear(const struct named *named)
{
    add(named, CM_PHASE_LINEAR, named->warmup, named->decay, 1, 0);
    return true;
}

static bool cosine(const struct named *named)
{
    add_waves(named, named->warmup, named->decay, least(named));
    return true;
}

static double restarts_rate(const void *arg, size_t group, int64_t position)
{
    const struct named *named = arg;
    const double progress = ((double)position - named->warmup) / named->decay;
    const double part = setting(named, "num_cycles", 1) * progress;

    return progress >= 1 ? 0
                         : named->maker->base[group] * (1 + cos(acos(-1.0) * fmod(part, 1))) / 2;
}

static bool restarts(const struct named *named)
{
    const double cycles = setting(named, "num_cycles", 1), length = named->decay / cycles;

    if (!(cycles >= 1 && cycles <= 10000))
        return false;
    if (length != floor(length) || cycles != floor(cycles))
        return cm_schedule_add_table(named->maker, (int64_t)named->warmup,
                                     (int64_t)named->decay + 1, restarts_rate, named);
    for (double i = 0; i < cycles; i++)
        add(named, CM_PHASE_COSINE, named->warmup + i * length, length, 1, 0);
    return true;
}

static bool polynomial(const struct named *named)
{
    const double base = named->maker->groups ? named->maker->base[0] : 1;
    const double end = setting(named, "lr_end", 1e-7);

    add(named, CM_PHASE_POLYNOMIAL, named->warmup, named->total - named->warmup, 1,
        base != 0 ? end / base : 0)
        ->factor = setting(named, "power", 1);
    return named->total > named->warmup;
}

static bool constant(const struct named *named)
{
    add(named, CM_PHASE_CONSTANT, named->warmup, 1, 1, 1);
    return true;
}

static bool inverse_root(const struct named *named)
{
    const double scale = setting(named, "timescale", named->warmup > 0 ? named->warmup : 10000);

    add(named, CM_PHASE_ROOT, named->warmup, scale, 1, 1);
    return scale > 0;
}

/* Its cosine is one step ahead, so it begins with the last step of the warmup, where it is 1. */
static bool ahead(const struct named *named)
{
    const double start = setting(named, "warmup_lr_rate", NAN);

    if (!(named->warmup >= 1))
        return false;
    if (isnan(start))
        add(named, CM_PHASE_LINEAR, 0, named->warmup, 1 / named->warmup, 1 + 1 / named->warmup);
    else
        add(named, CM_PHASE_LINEAR, 0, named->warmup > 2 ? named->warmup - 1 : 1, start, 1);
    add_waves(named, named->warmup - 1, named->decay, least(named));
    return true;
}

static double falling_root(const void *arg, size_t group, int64_t position)
{
    const struct named *named = arg;
    const double least = setting(named, "min_lr_ratio", 0);
    const double part = ((double)position - named->warmup) / named->decay;

    return named->maker->base[group] * (part >= 1 ? least : (1 - sqrt(part)) * (1 - least) + least);
}

static bool stable(const struct named *named)
{
    const double fall = setting(named, "num_decay_steps", NAN);
    const double hold = setting(named, "num_stable_steps", named->total - named->warmup - fall);
    const double low = setting(named, "min_lr_ratio", 0), begin = named->warmup + hold;

    if (!(fall >= 0 && hold >= 0 && begin < 1e12 && fall < 1e12))
        return false;
    if (named->warmup > 0) {
        struct cm_phase *rise = add(named, CM_PHASE_LINEAR, 0, named->warmup, low, 1);
        rise->shape = is_set(named, "warmup_type", "cosine")   ? CM_PHASE_COSINE
                      : is_set(named, "warmup_type", "1-sqrt") ? CM_PHASE_POLYNOMIAL
                                                               : CM_PHASE_LINEAR;
        rise->factor = 0.5;
    }
    if (hold > 0)
        add(named, CM_PHASE_CONSTANT, named->warmup, 1, 1, 1);
    if (fall > 0 && is_set(named, "decay_type", "1-sqrt")) {
        const struct named at = {named->maker, named->more, begin, 0, fall};
        if (!cm_schedule_add_table(named->maker, (int64_t)begin, (int64_t)fall + 1, falling_root,
                                   &at))
            return false;
    } else if (fall > 0 && is_set(named, "decay_type", "linear")) {
        add(named, CM_PHASE_LINEAR, begin, fall, 1, low);
    } else if (fall > 0) {
        add_waves(named, begin, fall, low);
    }
    add(named, CM_PHASE_CONSTANT, begin + fall, 1, low, low);
    return true;
}

static const struct {
    const char *name;
    bool (*build)(const struct named *named);
    bool own_warmup, needs_total;
} schedules[] = {
    {"linear", linear, false, true},
    {"cosine", cosine, false, true},
    {"cosine_with_restarts", restarts, false, true},
    {"polynomial", polynomial, false, true},
    {"constant", constant, false, false},
    {"constant_with_warmup", constant, false, false},
    {"inverse_sqrt", inverse_root, false, false},
    {"cosine_with_min_lr", cosine, false, true},
    {"cosine_warmup_with_min_lr", ahead, true, true},
    {"warmup_stable_decay", stable, true, false},
};

bool cm_schedule_transformers(const struct cm_schedule_maker *maker, struct cm_str name,
                              double warmup, double total, const struct cm_item *more)
{
    struct named named = {maker, more, warmup, total, total > warmup + 1 ? total - warmup : 1};
    const bool has_total = total >= 0 && total < 1e12;

    if (cm_str_is(name, "constant"))
        named.warmup = 0;
    if (!(named.warmup >= 0 && named.warmup < 1e12))
        return false;
    for (size_t i = 0; i < CM_COUNT(schedules); i++) {
        if (!cm_str_is(name, schedules[i].name))
            continue;
        if (schedules[i].needs_total && !has_total)
            return false;
        if (!schedules[i].own_warmup && named.warmup > 0)
            add(&named, CM_PHASE_LINEAR, 0, named.warmup, 0, 1);
        return schedules[i].build(&named);
    }
    return false;
}

/* ---- NeMo ---- */

/* Its warmup begins with the first step of `warmup + 1`, but where the rate stays constant at the
 * end, with 0. */
bool cm_schedule_nemo(const struct cm_schedule_maker *maker, struct cm_str name,
                      const struct cm_item *state)
{
    struct named named = {maker, state, 0, 0, 0};
    const double held = setting(&named, "constant_steps", 0);
    const double low = setting(&named, "min_lr", 0);
    const bool is_cosine = cm_str_is(name, "CosineAnnealing");
    double factor = cm_str_is(name, "PolynomialDecayAnnealing") ? setting(&named, "power", 1) : 0;

    named.warmup = setting(&named, "warmup_steps", 0);
    named.total = setting(&named, "max_steps", NAN);
    named.decay = setting(&named, "decay_steps", named.total - named.warmup - held);
    if (!(named.warmup >= 0 && named.warmup < 1e12 && held >= 0 && held < 1e12))
        return false;
    if (low == 0 && cm_str_is(name, "SquareAnnealing"))
        factor = 2;
    if (named.warmup > 0)
        add(&named, CM_PHASE_LINEAR, 0, named.warmup,
            is_cosine && held > 0 ? 0 : 1 / (named.warmup + 1), 1);
    if (cm_str_is(name, "WarmupPolicy")) {
        add(&named, CM_PHASE_CONSTANT, named.warmup, 1, 1, 1);
    } else if ((is_cosine || factor != 0) && named.total < 1e12 && named.decay > 0) {
        cm_schedule_add(maker, is_cosine ? CM_PHASE_COSINE : CM_PHASE_POLYNOMIAL,
                        (int64_t)named.warmup, named.decay, 1, 0, low)
            ->factor = factor;
        return true;
    } else {
        return false;
    }
    if (named.total > named.warmup && named.total < 1e12) {
        struct cm_phase *end =
            cm_schedule_add(maker, CM_PHASE_CONSTANT, (int64_t)named.total + 1, 1, 0, 0, low);
        end->from = end->to;
    }
    return true;
}
