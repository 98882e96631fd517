/* State dictionaries of PyTorch's schedulers. The class is not stored: the keys tell it. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "convert/frameworks/torch/torch_state.h"
#include "convert/schedule.h"

enum { CYCLES_MAX = 1000, NESTED_MAX = 8 };
static const double far = 1e12; /* no position is past it */

/* One scheduler on its way to phases. */
struct reading {
    struct cm_saved *saved;
    struct cm_schedule_maker maker; /* its base is that of the scheduler being read */
    int64_t begin;                  /* where position 0 of the scheduler is */
    int depth;
    const char *why; /* it is not known how the rate goes on; NULL: nothing is in the way */
};

static double number(const struct cm_item *state, const char *key)
{
    const double value = cm_item_get_real(state, key, NAN);

    return fabs(value) < far ? value : NAN;
}

static struct cm_phase *add(struct reading *reading, enum cm_phase_shape shape, double first,
                            double length, double from, double to)
{
    return cm_schedule_add(&reading->maker, shape, reading->begin + (int64_t)first, length, from,
                           to, 0);
}

/* By which list of the scheduler's groups a group of saved goes: groups that were one in the file
 * stand next to each other and have the same item. */
static void spread(const struct cm_saved *saved, const struct cm_item *list, double *out)
{
    size_t at = 0;

    for (size_t i = 0; i < saved->groups.count; i++) {
        const struct cm_item *said = saved->groups.items[i].said;
        if (i > 0 && (!said || said != saved->groups.items[i - 1].said))
            at++;
        out[i] = cm_item_real_or(cm_item_at(list, at), NAN);
    }
}

static bool step_lr(struct reading *reading, const struct cm_item *state)
{
    struct cm_phase *phase =
        add(reading, CM_PHASE_EXPONENTIAL, 0, number(state, "step_size"), 1, 1);

    phase->factor = number(state, "gamma");
    phase->is_stepped = true;
    return phase->length >= 1;
}

static bool exponential_lr(struct reading *reading, const struct cm_item *state)
{
    add(reading, CM_PHASE_EXPONENTIAL, 0, 1, 1, 1)->factor = number(state, "gamma");
    return true;
}

static int by_number(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* milestones is a Counter: position to how often; or a list. */
static bool multi_step_lr(struct reading *reading, const struct cm_item *state)
{
    const struct cm_item *counter = cm_item_get(state, "milestones");
    const double gamma = number(state, "gamma");
    struct {
        CM_ARRAY(double);
    } at = {0};

    if (counter && counter->kind == CM_ITEM_OBJECT)
        counter = cm_item_count(counter->state) ? counter->state
                  : counter->entries.count == 1 ? counter->entries.items[0].value
                                                : NULL;
    for (size_t i = 0; i < cm_item_count(counter); i++) {
        const struct cm_item_entry *entry = &counter->entries.items[i];
        const double times = entry->key ? cm_item_real_or(entry->value, NAN) : 1;
        const double where = cm_item_real_or(entry->key ? entry->key : entry->value, NAN);

        if (!(times >= 0 && times <= 1000 && where >= 0 && where < far))
            return false;
        for (double k = 0; k < times; k++)
            *CM_PUSH(reading->saved->arena, &at) = where;
    }
    if (at.count)
        qsort(at.items, at.count, sizeof *at.items, by_number);
    double scale = 1;
    add(reading, CM_PHASE_CONSTANT, 0, 1, 1, 1);
    for (size_t i = 0; i < at.count; i++) {
        scale *= gamma;
        if (i + 1 == at.count || at.items[i + 1] != at.items[i])
            add(reading, CM_PHASE_CONSTANT, at.items[i], 1, scale, scale);
    }
    return true;
}

static bool linear_lr(struct reading *reading, const struct cm_item *state)
{
    add(reading, CM_PHASE_LINEAR, 0, number(state, "total_iters"), number(state, "start_factor"),
        number(state, "end_factor"));
    return true;
}

static bool constant_lr(struct reading *reading, const struct cm_item *state)
{
    const double factor = number(state, "factor"), length = number(state, "total_iters");

    if (length > 0)
        add(reading, CM_PHASE_CONSTANT, 0, 1, factor, factor);
    add(reading, CM_PHASE_CONSTANT, length > 0 ? length : 0, 1, 1, 1);
    return !isnan(length);
}

static bool polynomial_lr(struct reading *reading, const struct cm_item *state)
{
    add(reading, CM_PHASE_POLYNOMIAL, 0, number(state, "total_iters"), 1, 0)->factor =
        number(state, "power");
    return true;
}

static void add_cosine(struct reading *reading, double first, double length, double low,
                       bool swings_back)
{
    cm_schedule_add(&reading->maker, CM_PHASE_COSINE, reading->begin + (int64_t)first, length, 1, 0,
                    low)
        ->swings_back = swings_back;
}

static bool cosine_lr(struct reading *reading, const struct cm_item *state)
{
    add_cosine(reading, 0, number(state, "T_max"), number(state, "eta_min"), true);
    return number(state, "T_max") > 0;
}

/* Cycle after cycle, each `T_mult` times as long as the one before. */
static bool warm_restarts_lr(struct reading *reading, const struct cm_item *state)
{
    const double low = number(state, "eta_min"), times = number(state, "T_mult");
    const double now = number(state, "last_epoch");
    double first = 0, length = number(state, "T_0");
    int more = CYCLES_MAX;

    if (!(length >= 1 && times >= 1) || !(now / length < CYCLES_MAX * 100))
        return false;
    for (; more > 0 && first + length<far; more -= first> now) {
        add_cosine(reading, first, length, low, false);
        first += length;
        length *= times;
    }
    if (first + length < far)
        cm_saved_unknown(reading->saved,
                         "CosineAnnealingWarmRestarts: restarts are followed up to position %.0f",
                         first);
    return true;
}

/* Rates of a one-cycle phase are members of the groups. */
struct cycle {
    const struct cm_item *phases;
    const struct cm_saved *saved;
    bool is_linear;
};

static double group_rate(const struct cm_saved *saved, size_t group, const struct cm_item *phase,
                         const char *which)
{
    const struct cm_item *key = cm_item_get(phase, which);
    struct cm_str name;

    if (!cm_item_is_text(key, &name))
        return NAN;
    return cm_item_real_or(
        cm_item_get(saved->groups.items[group].said, cm_arena_str(saved->arena, name).data), NAN);
}

static double cycle_rate(const void *arg, size_t group, int64_t position)
{
    const struct cycle *cycle = arg;
    const size_t count = cm_item_count(cycle->phases);
    double start = 0;

    for (size_t i = 0; i < count; i++) {
        const struct cm_item *phase = cm_item_at(cycle->phases, i);
        const double end = number(phase, "end_step");
        const double part = ((double)position - start) / (end - start);
        const double from = group_rate(cycle->saved, group, phase, "start_lr");
        const double to = group_rate(cycle->saved, group, phase, "end_lr");

        if ((double)position <= end || i + 1 == count)
            return cycle->is_linear ? from + (to - from) * part
                                    : to + (from - to) / 2 * (cos(acos(-1.0) * part) + 1);
        start = end;
    }
    return NAN;
}

/* Where phases end at whole positions they are phases here; otherwise a table. */
static bool one_cycle_lr(struct reading *reading, const struct cm_item *state)
{
    const struct cm_item *phases = cm_item_get(state, "_schedule_phases");
    const double total = number(state, "total_steps");
    struct cycle cycle = {phases, reading->saved, false};
    struct cm_str kind;
    bool moves = false, whole = true;
    double start = 0;

    if (cm_item_is_bool(cm_item_get(state, "cycle_momentum"), &moves) && moves) {
        reading->why = "OneCycleLR moves the momentum too (cycle_momentum)";
        return true;
    }
    cycle.is_linear = cm_item_is_text(cm_item_get(state, "_anneal_func_type"), &kind) &&
                      cm_str_is(kind, "linear");
    if (!(total >= 1) || cm_item_count(phases) < 1 || cm_item_count(phases) > 3)
        return false;
    for (size_t i = 0; i < cm_item_count(phases); i++) {
        const double end = number(cm_item_at(phases, i), "end_step");
        whole = whole && end == floor(end) && end > start;
        start = end;
    }
    if (!whole || reading->begin)
        return reading->begin == 0 &&
               cm_schedule_add_table(&reading->maker, 0, (int64_t)total, cycle_rate, &cycle);
    start = 0;
    for (size_t i = 0; i < cm_item_count(phases); i++) {
        const struct cm_item *said = cm_item_at(phases, i);
        const double end = number(said, "end_step");
        struct cm_phase *phase = add(reading, cycle.is_linear ? CM_PHASE_LINEAR : CM_PHASE_COSINE,
                                     start, end - start, 1, 1);
        double *rates = CM_NEW_ARRAY(reading->saved->arena, double, 2 * reading->maker.groups + 1);
        for (size_t group = 0; group < reading->maker.groups; group++) {
            rates[group] = group_rate(reading->saved, group, said, "start_lr");
            rates[reading->maker.groups + group] =
                group_rate(reading->saved, group, said, "end_lr");
        }
        phase->from = rates;
        phase->to = rates + reading->maker.groups;
        start = end;
    }
    return true;
}

static bool read_schedule(struct reading *reading, const struct cm_item *state);

/* One after another: each begins with position 0 at its milestone. */
static bool sequential_lr(struct reading *reading, const struct cm_item *state)
{
    const struct cm_item *parts = cm_item_get(state, "_schedulers");
    const struct cm_item *milestones = cm_item_get(state, "_milestones");
    struct cm_rate_schedule *out = reading->maker.out;
    const int64_t begin = reading->begin;

    for (size_t i = 0; i < cm_item_count(parts); i++) {
        if (i > 0) {
            const double at = cm_item_real_or(cm_item_at(milestones, i - 1), NAN);
            if (!(at >= 0 && at < far))
                return false;
            reading->begin = begin + (int64_t)at;
        }
        while (out->count && out->items[out->count - 1].first >= reading->begin && i > 0)
            out->count--;
        if (!read_schedule(reading, cm_item_at(parts, i)))
            return false;
    }
    reading->begin = begin;
    return cm_item_count(parts) > 0;
}

/* All at once: their factors are multiplied. */
static bool chained(struct reading *reading, const struct cm_item *state)
{
    const struct cm_item *parts = cm_item_get(state, "_schedulers");
    struct cm_rate_schedule *out = reading->maker.out, all = {0};

    if (reading->begin || out->count)
        return false;
    for (size_t i = 0; i < cm_item_count(parts); i++) {
        struct cm_rate_schedule one = {0}, product = {0};

        reading->maker.out = &one;
        if (!read_schedule(reading, cm_item_at(parts, i)))
            return false;
        reading->maker.out = &product;
        if (i > 0 && !reading->why && !cm_schedule_multiply(&reading->maker, &all, &one))
            reading->why = "ChainedScheduler multiplies rates in a way that has no end";
        all = i > 0 ? product : one;
    }
    *out = all;
    reading->maker.out = out;
    return cm_item_count(parts) > 0;
}

static bool lambda_lr(struct reading *reading, const struct cm_item *state)
{
    (void)state;
    reading->why = "its function is not stored";
    return true;
}

static bool plateau(struct reading *reading, const struct cm_item *state)
{
    (void)state;
    reading->why = "it follows a measured value, which is not known ahead";
    return true;
}

static bool cyclic_lr(struct reading *reading, const struct cm_item *state)
{
    (void)state;
    reading->why = "cyclic rates are not supported";
    return true;
}

static bool nemo(struct reading *reading, const struct cm_item *state)
{
    struct cm_str name = reading->saved->schedule_name;

    if (!name.size || !cm_schedule_nemo(&reading->maker, name, state))
        reading->why = "the name of its class is not stored";
    return true;
}

/* The first row whose keys are all there. */
static const struct {
    const char *name;
    const char *keys[3];
    bool (*read)(struct reading *reading, const struct cm_item *state);
} classes[] = {
    {"SequentialLR", {"_schedulers", "_milestones"}, sequential_lr},
    {"ChainedScheduler", {"_schedulers"}, chained},
    {"LambdaLR", {"lr_lambdas"}, lambda_lr},
    {"ReduceLROnPlateau", {"patience", "num_bad_epochs"}, plateau},
    {"CyclicLR", {"max_lrs", "total_size"}, cyclic_lr},
    {"OneCycleLR", {"_schedule_phases", "total_steps"}, one_cycle_lr},
    {"StepLR", {"step_size", "gamma"}, step_lr},
    {"MultiStepLR", {"milestones", "gamma"}, multi_step_lr},
    {"CosineAnnealingWarmRestarts", {"T_0", "T_mult", "eta_min"}, warm_restarts_lr},
    {"CosineAnnealingLR", {"T_max", "eta_min"}, cosine_lr},
    {"LinearLR", {"start_factor", "end_factor", "total_iters"}, linear_lr},
    {"ConstantLR", {"factor", "total_iters"}, constant_lr},
    {"PolynomialLR", {"total_iters", "power"}, polynomial_lr},
    {"", {"warmup_steps", "min_lr", "max_steps"}, nemo},
    {"ExponentialLR", {"gamma"}, exponential_lr},
};

static size_t class_of(const struct cm_item *state)
{
    size_t row = 0;

    for (; row < CM_COUNT(classes); row++) {
        bool all = true;
        for (size_t i = 0; i < CM_COUNT(classes[row].keys) && classes[row].keys[i]; i++)
            all = all && cm_item_get(state, classes[row].keys[i]);
        if (all)
            break;
    }
    return row;
}

static bool read_schedule(struct reading *reading, const struct cm_item *state)
{
    const size_t row = class_of(state);
    const struct cm_item *base = cm_item_get(state, "base_lrs");
    double *rates;

    if (row == CM_COUNT(classes) || reading->depth >= NESTED_MAX)
        return false;
    if (base) {
        rates = CM_NEW_ARRAY(reading->saved->arena, double, reading->maker.groups + 1);
        spread(reading->saved, base, rates);
        reading->maker.base = rates;
    }
    reading->depth++;
    const bool fine = classes[row].read(reading, state);
    reading->depth--;
    return fine;
}

bool cm_torch_is_schedule(const struct cm_item *item)
{
    return item && item->kind == CM_ITEM_MAP && !cm_item_get(item, "param_groups") &&
           (cm_item_get(item, "last_epoch") || cm_item_get(item, "_schedulers")) &&
           (cm_item_get(item, "_last_lr") || cm_item_get(item, "base_lrs") ||
            cm_item_get(item, "_step_count"));
}

/* Numbers that the keys of a file gave are finite, or nothing is known. */
static bool is_sound(const struct cm_rate_schedule *schedule, size_t groups)
{
    for (size_t i = 0; i < schedule->count; i++) {
        const struct cm_phase *phase = &schedule->items[i];
        bool fine = isfinite(phase->length) && phase->length >= 0 && isfinite(phase->factor);

        for (size_t k = 0; k < groups; k++)
            fine = fine && isfinite(phase->from[k]) && isfinite(phase->to[k]);
        if (!fine || (i == 0 ? phase->first != 0 : phase->first <= phase[-1].first))
            return false;
    }
    return schedule->count > 0;
}

/* How often the scheduler was stepped; parts of a chain tell it for the chain. */
static bool position_of(const struct cm_item *state, int64_t *out)
{
    if (!cm_item_get(state, "last_epoch") && cm_item_get(state, "_schedulers"))
        state = cm_item_at(cm_item_get(state, "_schedulers"), 0);
    return cm_item_is_int(cm_item_get(state, "last_epoch"), out) && *out >= 0 && (double)*out < far;
}

/* Positions become updates: schedulers are stepped with each update (but for a few that a loss
 * scale skipped), once per epoch, or (accelerate on several processes) several times. Says what is
 * in the way. */
static const char *align(struct cm_saved *saved, int64_t position)
{
    struct cm_rate_schedule once = saved->schedule;
    double *base;

    if (saved->step < 0)
        saved->step = position;
    const double ratio = saved->step > 0 ? (double)position / (double)saved->step : 1;
    if (saved->step == position || (ratio > 0.8 && ratio < 1.25)) {
        saved->schedule.offset = position - saved->step;
        return NULL;
    }
    if (saved->step == 0 || position == 0 || (saved->step % position && position % saved->step))
        return "it is not stepped with each update, and the updates of an epoch are not known";
    cm_saved_tell(saved, "scheduler.updates",
                  cm_item_real(saved->arena, (double)saved->step / (double)position));
    if (saved->step < position)
        return cm_schedule_shrink(&saved->schedule, position / saved->step)
                   ? NULL
                   : "it is stepped several times with each update";
    saved->schedule = (struct cm_rate_schedule){0};
    const struct cm_schedule_maker maker = cm_schedule_for(saved, &base);
    cm_saved_unknown(
        saved, "the scheduler was stepped %lld times in %lld updates: taken as once in %lld",
        (long long)position, (long long)saved->step, (long long)(saved->step / position));
    return cm_schedule_stretch(&maker, &once, saved->step / position)
               ? NULL
               : "it is stepped once per epoch and has no end";
}

void cm_torch_take_schedule(struct cm_saved *saved, const struct cm_item *schedule)
{
    double *base, *last;
    struct reading reading = {saved, cm_schedule_for(saved, &base), 0, 0, NULL};
    const size_t row = class_of(schedule);
    int64_t position;

    for (size_t i = 0; i < saved->groups.count; i++)
        base[i] = saved->groups.items[i].settings.initial_lr;
    const bool known = read_schedule(&reading, schedule) && position_of(schedule, &position);
    if (row < CM_COUNT(classes) && classes[row].name[0])
        saved->schedule_name = cm_str(classes[row].name);
    cm_saved_tell(saved, "scheduler", schedule);
    last = CM_NEW_ARRAY(saved->arena, double, saved->groups.count + 1);
    spread(saved, cm_item_get(schedule, "_last_lr"), last);
    for (size_t i = 0; i < saved->groups.count; i++)
        if (isnan(saved->groups.items[i].settings.lr))
            saved->groups.items[i].settings.lr = last[i];
    if (!known && !reading.why)
        reading.why = "its state is not understood";
    if (!reading.why && !is_sound(&saved->schedule, saved->groups.count))
        reading.why = "its numbers are not finite, or not in order";
    if (!reading.why)
        reading.why = align(saved, position);
    if (!reading.why && !cm_schedule_agrees(saved))
        reading.why = "the rates of the optimizer are not those it gives";
    saved->schedule_known = reading.why ? CM_SCHEDULE_UNKNOWN : CM_SCHEDULE_KNOWN;
    if (reading.why) {
        saved->schedule = (struct cm_rate_schedule){0};
        saved->schedule.offset = known ? position - (saved->step < 0 ? 0 : saved->step) : 0;
        cm_saved_missing(
            saved, "how the learning rate goes on: %s%.*s%s%s",
            saved->schedule_name.size ? "" : "the scheduler: ", CM_STR_FMT(saved->schedule_name),
            saved->schedule_name.size ? ": " : "", reading.why);
    }
}
