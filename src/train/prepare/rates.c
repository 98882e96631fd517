/* Learning rates as the graph computes them from the number of updates so far: phases of a schedule
 * one after another, in double. Several groups have their rates in one vector. */
// SPDX-License-Identifier: Apache-2.0
#include "train/prepare/update.h"

#include "train/plateau.h"

/* ---- constants of a phase ---- */

struct phase {
    struct cm_updating *u;
    const struct cm_phase *is;
    size_t number;
    cm_value past; /* where in the phase a step is, in steps */
};

/* The first phase has a constant under its plain name, the others with their number. */
static const char *called(const struct phase *phase, const char *name)
{
    struct cm_arena *arena = phase->u->p->arena;

    return phase->number ? cm_arena_printf(arena, "%s.%zu", name, phase->number).data : name;
}

static cm_value constant(const struct phase *phase, const char *name, double value)
{
    return cm_preparation_scalar(phase->u->p, called(phase, name), CM_DOUBLE, value);
}

static cm_value vector(struct cm_updating *u, const char *name, const double *values, size_t rows,
                       size_t columns)
{
    const struct cm_shape flat = CM_SHAPE((int64_t)(rows * columns));
    const struct cm_shape table = CM_SHAPE((int64_t)rows, (int64_t)columns);
    const struct cm_tensor tensor =
        cm_tensor_borrow(CM_DOUBLE, rows > 1 && columns > 1 ? &table : &flat, (void *)values);

    return cm_preparation_call(u->p, cm_build_tensor(&u->p->build, &tensor),
                               cm_preparation_name(u->p, "training.%s.double", name));
}

/* One number, or one for each group. */
static cm_value by_group(const struct phase *phase, const char *name, const double *values)
{
    const size_t groups = phase->u->plan->n_groups;

    return groups == 1 ? constant(phase, name, values[0])
                       : vector(phase->u, called(phase, name), values, 1, groups);
}

/* ---- shapes: what `from` is multiplied by, or the way from `to` back to it ---- */

typedef cm_value shape_fn(const struct phase *phase);

#define EXACT(phase, name)         cm_update_exact((phase)->u, name)
#define TERM(phase, word, op, ...) CM_STEP_TERM((phase)->u, word, op, __VA_ARGS__)
#define LENGTH(phase)              constant(phase, "span", (phase)->is->length)

static cm_value unchanged(const struct phase *phase)
{
    return EXACT(phase, "one");
}

static cm_value capped(const struct phase *phase, cm_value part)
{
    const cm_value one = EXACT(phase, "one");

    return TERM(phase, "part_capped", "Min", part, one);
}

/* How much of the phase is over, 0 to 1. */
static cm_value part_of(const struct phase *phase, cm_value span)
{
    return capped(phase, TERM(phase, "part", "Div", phase->past, span));
}

static cm_value rest_of(const struct phase *phase, cm_value part)
{
    return TERM(phase, "factor", "Sub", EXACT(phase, "one"), part);
}

static cm_value by_line(const struct phase *phase)
{
    const cm_value span = LENGTH(phase);

    (void)EXACT(phase, "one");
    return rest_of(phase, part_of(phase, span));
}

/* (1 + cos(pi * part)) / 2; written with Sin, which more runtimes have for double. */
static cm_value by_cosine(const struct phase *phase)
{
    const cm_value span = LENGTH(phase), one = EXACT(phase, "one"), half = EXACT(phase, "half");
    const cm_value pi = EXACT(phase, "pi"), half_pi = EXACT(phase, "half_pi");
    const cm_value part = phase->is->swings_back ? TERM(phase, "part", "Div", phase->past, span)
                                                 : part_of(phase, span);
    const cm_value angle = TERM(phase, "angle", "Mul", part, pi);
    const cm_value turned = TERM(phase, "turned", "Add", angle, half_pi);
    const cm_value wave = TERM(phase, "wave", "Sin", turned);
    const cm_value raised = TERM(phase, "raised", "Add", one, wave);

    return TERM(phase, "factor", "Mul", raised, half);
}

/* Periods that are over, or whole ones. */
static cm_value periods_of(const struct phase *phase, cm_value period)
{
    const cm_value periods = TERM(phase, "periods", "Div", phase->past, period);

    return phase->is->is_stepped ? TERM(phase, "whole", "Floor", periods) : periods;
}

static cm_value by_power(const struct phase *phase)
{
    const cm_value period = constant(phase, "period", phase->is->length);
    const cm_value factor = constant(phase, "schedule_factor", phase->is->factor);

    return TERM(phase, "factor", "Pow", factor, periods_of(phase, period));
}

static cm_value by_polynomial(const struct phase *phase)
{
    const cm_value power = constant(phase, "schedule_factor", phase->is->factor);
    const cm_value rest =
        TERM(phase, "rest", "Sub", EXACT(phase, "one"), part_of(phase, LENGTH(phase)));

    return TERM(phase, "factor", "Pow", rest, power);
}

static cm_value by_inverse(const struct phase *phase)
{
    const cm_value period = constant(phase, "period", phase->is->length);
    const cm_value factor = constant(phase, "schedule_factor", phase->is->factor);
    const cm_value grown = TERM(phase, "grown", "Mul", factor, periods_of(phase, period));
    const cm_value one = EXACT(phase, "one");

    return TERM(phase, "factor", "Div", one, TERM(phase, "below", "Add", one, grown));
}

static cm_value by_root(const struct phase *phase)
{
    const cm_value span = LENGTH(phase);
    const cm_value below = TERM(phase, "below", "Add", phase->past, span);
    const cm_value share = TERM(phase, "share", "Div", span, below);

    return TERM(phase, "factor", "Sqrt", share);
}

static cm_value by_log(const struct phase *phase)
{
    const cm_value span = constant(phase, "log_span", log(phase->is->length));
    const cm_value seen = TERM(phase, "seen", "Add", phase->past, EXACT(phase, "one"));
    const cm_value grown = TERM(phase, "grown", "Log", seen);

    return rest_of(phase, capped(phase, TERM(phase, "part", "Div", grown, span)));
}

/* The row of a step, no further than the last. */
static cm_value look_up(const struct phase *phase)
{
    struct cm_updating *u = phase->u;
    const struct cm_phase *is = phase->is;
    const size_t groups = u->plan->n_groups;
    const cm_value table = vector(u, called(phase, "rates"), is->rates, is->n_rates, groups);
    const cm_value last = constant(phase, "last_row", (double)(is->n_rates - 1));
    const cm_value begun = TERM(phase, "begun", "Max", phase->past, EXACT(phase, "zero"));
    const cm_value row = TERM(phase, "row", "Min", begun, last);
    const cm_value index = cm_preparation_term(u->p, CM_STR("training"), "index",
                                               cm_preparation_cast(u->p, row, CM_INT64));
    return TERM(phase, "rate", "Gather", table, index);
}

static const struct {
    shape_fn *emit;
    bool has_end; /* it goes from `from` to `to` */
} shapes[] = {
    [CM_PHASE_CONSTANT] = {unchanged, false},
    [CM_PHASE_LINEAR] = {by_line, true},
    [CM_PHASE_COSINE] = {by_cosine, true},
    [CM_PHASE_EXPONENTIAL] = {by_power, false},
    [CM_PHASE_POLYNOMIAL] = {by_polynomial, true},
    [CM_PHASE_INVERSE] = {by_inverse, false},
    [CM_PHASE_ROOT] = {by_root, false},
    [CM_PHASE_LOG] = {by_log, true},
};

/* ---- rates ---- */

static bool ends_at_zero(const struct phase *phase)
{
    for (size_t g = 0; g < phase->u->plan->n_groups; g++)
        if (phase->is->to[g] != 0)
            return false;
    return true;
}

/* to + (from - to) * factor, or from * factor. */
static cm_value scale(const struct phase *phase, cm_value factor)
{
    struct cm_updating *u = phase->u;
    const struct cm_phase *is = phase->is;
    const size_t groups = u->plan->n_groups;
    double *way = CM_NEW_ARRAY(u->p->arena, double, groups);

    if (!shapes[is->shape].has_end || ends_at_zero(phase))
        return cm_emit(u->p, "Mul", by_group(phase, "lr_base", is->from), factor);
    for (size_t g = 0; g < groups; g++)
        way[g] = is->from[g] - is->to[g];
    const cm_value more = TERM(phase, "more", "Mul", by_group(phase, "lr_way", way), factor);
    return cm_emit(u->p, "Add", by_group(phase, "lr_end", is->to), more);
}

/* from + (1 - from) * t / warmup */
static cm_value rise_from(const struct phase *phase, cm_value warmup, double from)
{
    const cm_value done = TERM(phase, "part", "Div", EXACT(phase, "t"), warmup);
    const cm_value begin = constant(phase, "warmup_from", from);
    const cm_value rest = constant(phase, "warmup_rest", 1 - from);

    return TERM(phase, "risen", "Add", begin, TERM(phase, "rise", "Mul", rest, done));
}

/* The first update has a rate already, (t + 1) / warmup, unless the user says another. */
static cm_value warm_up(const struct phase *phase, cm_value factor)
{
    const double from = phase->u->p->options->warmup_from;
    const cm_value warmup = EXACT(phase, "warmup"), one = EXACT(phase, "one");
    const cm_value part = isnan(from) ? TERM(phase, "part", "Div", EXACT(phase, "t_next"), warmup)
                                      : rise_from(phase, warmup, from);

    return TERM(phase, "warmed", "Mul", factor, TERM(phase, "part_capped", "Min", part, one));
}

static cm_value rate_of(struct phase *phase, cm_value position)
{
    struct cm_updating *u = phase->u;
    const struct cm_phase row = {
        .shape = CM_PHASE_CONSTANT, .first = phase->is->first, .from = phase->is->rates};

    if (phase->is->shape == CM_PHASE_TABLE && phase->is->n_rates == 1)
        phase->is = &row;
    phase->past = position;
    if (phase->is->first)
        phase->past = TERM(phase, "past", "Sub", position,
                           constant(phase, "first", (double)phase->is->first));
    if (phase->is->shape == CM_PHASE_TABLE)
        return look_up(phase);
    const cm_value factor = shapes[phase->is->shape].emit(phase);
    return scale(phase, u->warmup > 0 ? warm_up(phase, factor) : factor);
}

/* Without a schedule, each group's own. */
static struct cm_phase constant_phase(struct cm_updating *u)
{
    double *rates = CM_NEW_ARRAY(u->p->arena, double, u->plan->n_groups);

    for (size_t g = 0; g < u->plan->n_groups; g++)
        rates[g] = u->groups[g].is.lr;
    return (struct cm_phase){.shape = CM_PHASE_CONSTANT, .from = rates};
}

/* What the schedule's first step, and those after it, are counted from. */
static cm_value position_of(struct cm_updating *u)
{
    const struct cm_rate_schedule *schedule = &u->plan->schedule;
    const cm_value t = cm_update_exact(u, "t");

    if (u->warmup > 0 && schedule->count) {
        const cm_value warmup = cm_update_exact(u, "warmup"), zero = cm_update_exact(u, "zero");
        return CM_STEP_TERM(u, "past", "Max", CM_STEP_TERM(u, "late", "Sub", t, warmup), zero);
    }
    if (!schedule->count || !schedule->offset)
        return t;
    const cm_value offset =
        cm_preparation_scalar(u->p, "schedule_offset", CM_DOUBLE, (double)schedule->offset);
    const cm_value position = CM_STEP_TERM(u, "position", "Add", t, offset);
    if (schedule->offset > 0)
        return position;
    return CM_STEP_TERM(u, "begun", "Max", position, cm_update_exact(u, "zero"));
}

/* A number, or a vector with one for each group. */
static cm_value rates(struct cm_updating *u)
{
    const struct cm_rate_schedule *schedule = &u->plan->schedule;
    const struct cm_phase alone = constant_phase(u);
    const size_t count = schedule->count ? schedule->count : 1;
    cm_value *by_phase = CM_NEW_ARRAY(u->p->arena, cm_value, count);
    const cm_value position = position_of(u);

    for (size_t i = 0; i < count; i++) {
        struct phase phase = {
            .u = u, .is = schedule->count ? &schedule->items[i] : &alone, .number = i};
        by_phase[i] = rate_of(&phase, position);
    }
    cm_value rate = by_phase[count - 1];
    for (size_t i = count - 1; i-- > 0;) {
        const struct phase next = {.u = u, .number = i + 1};
        const double end = (double)schedule->items[i + 1].first;
        const cm_value is_before =
            CM_STEP_TERM(u, "before", "Less", position, constant(&next, "first", end));
        rate = cm_emit(u->p, "Where", is_before, by_phase[i], rate);
    }
    return rate;
}

/* The state variable of a schedule 'plateau', which the trainer changes between steps. */
static cm_value plateau(struct cm_updating *u)
{
    struct cm_preparation *p = u->p;
    const size_t groups = u->plan->n_groups;
    double *values = CM_NEW_ARRAY(p->arena, double, CM_PLATEAU_RATES + groups);
    const struct cm_str name = cm_preparation_name(p, CM_PLATEAU_NAME);

    if (!cm_str_is(name, CM_PLATEAU_NAME))
        cm_preparation_block(p, "the model has a '" CM_PLATEAU_NAME "' of its own");
    memcpy(values, u->plan->plateau, CM_PLATEAU_RATES * sizeof *values);
    for (size_t g = 0; g < groups; g++)
        values[CM_PLATEAU_RATES + g] = u->groups[g].is.lr;
    const cm_value state = cm_preparation_numbers(p, name, values, CM_PLATEAU_RATES + groups);
    cm_preparation_bind(p, state, cm_term(p, name, "next", "Identity", state));
    return state;
}

/* An element of a vector, and while the rates of a plateau rise, a part of it. */
static cm_value rate_in(struct cm_updating *u, cm_value all, size_t group)
{
    struct cm_preparation *p = u->p;
    const size_t place = group + (u->plan->plateau ? CM_PLATEAU_RATES : 0);
    const cm_value index = cm_preparation_call(p, cm_build_int64(&p->build, (int64_t)place),
                                               cm_preparation_name(p, "training.group_%zu", group));
    const cm_value rate = cm_emit(p, "Gather", all, index);
    const struct phase phase = {.u = u};

    return u->plan->plateau && u->warmup > 0 ? warm_up(&phase, rate) : rate;
}

void cm_update_rates(struct cm_updating *u)
{
    struct cm_preparation *p = u->p;
    const size_t groups = u->plan->n_groups;

    (void)cm_update_exact(u, "one"); /* all shapes but tables have it */
    const cm_value all = u->plan->plateau ? plateau(u) : rates(u);

    if (groups > 1 && !u->plan->plateau)
        cm_preparation_term(p, CM_STR("training"), "rates", all);
    for (size_t g = 0; g < groups; g++) {
        const cm_value rate = groups > 1 || u->plan->plateau ? rate_in(u, all, g) : all;
        const struct cm_str name =
            g ? cm_preparation_name(p, "lr.%zu", g) : cm_preparation_name(p, "lr");
        cm_preparation_give(
            p, cm_update_compute(u, &u->groups[g], "lr", cm_preparation_call(p, rate, name)));
    }
}
