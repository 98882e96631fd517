/* Phases of a learning rate: how they are added, asked and combined. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/schedule.h"

#include "base/number.h"

#define PI 3.14159265358979323846

struct cm_phase *cm_schedule_add(const struct cm_schedule_maker *maker, enum cm_phase_shape shape,
                                 int64_t first, double length, double from, double to,
                                 double to_plain)
{
    double *rates = CM_NEW_ARRAY(maker->arena, double, 2 * maker->groups + 1);
    struct cm_rate_schedule *out = maker->out;

    for (size_t i = 0; i < maker->groups; i++) {
        rates[i] = maker->base[i] * from;
        rates[maker->groups + i] = maker->base[i] * to + to_plain;
    }
    struct cm_phase *phase = CM_PUSH(maker->arena, out);
    *phase = (struct cm_phase){.shape = shape,
                               .first = first,
                               .length = length,
                               .factor = 1,
                               .from = rates,
                               .to = rates + maker->groups};
    return phase;
}

bool cm_schedule_add_table(const struct cm_schedule_maker *maker, int64_t first, int64_t rows,
                           cm_schedule_rate_fn *rate, const void *arg)
{
    if (rows < 1 || rows > CM_SCHEDULE_ROWS_MAX)
        return false;
    double *rates = CM_NEW_ARRAY(maker->arena, double, (size_t)rows * maker->groups + 1);
    for (int64_t row = 0; row < rows; row++)
        for (size_t group = 0; group < maker->groups; group++)
            rates[(size_t)row * maker->groups + group] = rate(arg, group, first + row);
    struct cm_phase *phase = cm_schedule_add(maker, CM_PHASE_TABLE, first, (double)rows, 1, 1, 0);
    phase->rates = rates;
    phase->n_rates = (size_t)rows;
    phase->from = rates;
    phase->to = rates + ((size_t)rows - 1) * maker->groups;
    return true;
}

static double phase_rate(const struct cm_phase *phase, size_t groups, size_t group, double k)
{
    const double from = phase->from ? phase->from[group] : NAN;
    const double to = phase->to ? phase->to[group] : NAN, length = phase->length;
    const double part = length > 0 ? k / length : 1;
    const double turns = phase->is_stepped ? floor(part) : part;

    switch (phase->shape) {
    case CM_PHASE_LINEAR:
        return part >= 1 ? to : from + (to - from) * part;
    case CM_PHASE_COSINE:
        return part >= 1 && !phase->swings_back ? to : to + (from - to) * (1 + cos(PI * part)) / 2;
    case CM_PHASE_EXPONENTIAL:
        return from * pow(phase->factor, turns);
    case CM_PHASE_POLYNOMIAL:
        return part >= 1 ? to : to + (from - to) * pow(1 - part, phase->factor);
    case CM_PHASE_INVERSE:
        return from / (1 + phase->factor * turns);
    case CM_PHASE_ROOT:
        return from * sqrt(length / (k + length));
    case CM_PHASE_LOG:
        return part >= 1 || length <= 1 ? to : from + (to - from) * log(k + 1) / log(length);
    case CM_PHASE_TABLE: {
        const size_t row = k < (double)phase->n_rates ? (size_t)k : phase->n_rates - 1;
        return phase->rates[row * groups + group];
    }
    case CM_PHASE_CONSTANT:
        break;
    }
    return from;
}

/* The phase that position is in: the last that begins at or before it. */
static const struct cm_phase *phase_at(const struct cm_rate_schedule *schedule, int64_t position)
{
    size_t low = 0, high = schedule->count;

    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (schedule->items[middle].first <= position)
            low = middle;
        else
            high = middle;
    }
    return &schedule->items[low];
}

double cm_schedule_rate(const struct cm_rate_schedule *schedule, size_t groups, size_t group,
                        int64_t position)
{
    if (schedule->count == 0)
        return NAN;
    const struct cm_phase *phase = phase_at(schedule, position);
    const double k = (double)position - (double)phase->first;
    return phase_rate(phase, groups, group, k > 0 ? k : 0);
}

/* The position from which on the rate no longer changes; -1: it never stops. */
static int64_t schedule_end(const struct cm_rate_schedule *schedule)
{
    if (schedule->count == 0)
        return 0;
    const struct cm_phase *last = &schedule->items[schedule->count - 1];
    const double length = ceil(last->length);

    switch (last->shape) {
    case CM_PHASE_CONSTANT:
        return last->first;
    case CM_PHASE_COSINE:
        if (last->swings_back)
            return -1;
        break;
    case CM_PHASE_EXPONENTIAL:
        if (last->factor == 1)
            return last->first;
        return -1;
    case CM_PHASE_INVERSE:
    case CM_PHASE_ROOT:
        return -1;
    default:
        break;
    }
    return length >= 0 && length < 1e15 ? last->first + (int64_t)length : -1;
}

/* ---- one schedule out of others ---- */

/* The phase as it goes on from position `at`, as a phase of its own; false: its shape cannot begin
 * in the middle. */
static bool cut_phase(struct cm_arena *arena, const struct cm_phase *phase, size_t groups,
                      int64_t at, struct cm_phase *out)
{
    const double k = (double)(at - phase->first);
    double *from = CM_NEW_ARRAY(arena, double, groups + 1);

    *out = *phase;
    if (k == 0)
        return true;
    for (size_t i = 0; i < groups; i++)
        from[i] = phase_rate(phase, groups, i, k);
    out->first = at;
    out->from = from;
    switch (phase->shape) {
    case CM_PHASE_LINEAR:
    case CM_PHASE_POLYNOMIAL:
        if (k >= phase->length)
            out->shape = CM_PHASE_CONSTANT;
        out->length = phase->length - k;
        return true;
    case CM_PHASE_EXPONENTIAL:
        return !phase->is_stepped || fmod(k, phase->length) == 0;
    case CM_PHASE_INVERSE:
        out->factor = phase->factor / (1 + phase->factor * k / phase->length);
        return !phase->is_stepped;
    case CM_PHASE_COSINE:
    case CM_PHASE_LOG:
        out->shape = CM_PHASE_CONSTANT;
        return k >= phase->length && !phase->swings_back;
    case CM_PHASE_TABLE:
        out->rates = phase->rates + (size_t)k * groups;
        out->n_rates = phase->n_rates - (size_t)k;
        if ((double)phase->n_rates <= k)
            out->shape = CM_PHASE_CONSTANT;
        return true;
    case CM_PHASE_CONSTANT:
        return true;
    default:
        return false;
    }
}

/* a * b / base over one stretch on which both are single phases that begin together. */
static bool multiply_phases(const struct cm_schedule_maker *maker, const struct cm_phase *a,
                            const struct cm_phase *b)
{
    const bool powers = a->shape == CM_PHASE_EXPONENTIAL && b->shape == CM_PHASE_EXPONENTIAL &&
                        !a->is_stepped && !b->is_stepped;

    if (a->shape == CM_PHASE_CONSTANT) {
        const struct cm_phase *other = a;
        a = b;
        b = other;
    }
    if (a->shape == CM_PHASE_TABLE || (b->shape != CM_PHASE_CONSTANT && !powers))
        return false;
    struct cm_phase *phase = cm_schedule_add(maker, a->shape, a->first, a->length, 0, 0, 0);
    double *from = CM_NEW_ARRAY(maker->arena, double, maker->groups + 1);
    double *to = CM_NEW_ARRAY(maker->arena, double, maker->groups + 1);
    for (size_t i = 0; i < maker->groups; i++) {
        const double scale = maker->base[i] != 0 ? b->from[i] / maker->base[i] : 0;
        from[i] = a->from[i] * scale;
        to[i] = a->to[i] * scale;
    }
    phase->from = from;
    phase->to = to;
    phase->factor = a->factor;
    phase->is_stepped = a->is_stepped;
    phase->swings_back = a->swings_back;
    if (powers) {
        phase->factor = pow(a->factor, 1 / a->length) * pow(b->factor, 1 / b->length);
        phase->length = 1;
    }
    return true;
}

struct product {
    const struct cm_schedule_maker *maker;
    const struct cm_rate_schedule *a, *b;
};

static double product_rate(const void *arg, size_t group, int64_t position)
{
    const struct product *product = arg;
    const size_t groups = product->maker->groups;

    return product->maker->base[group] == 0
               ? 0
               : cm_schedule_rate(product->a, groups, group, position) *
                     cm_schedule_rate(product->b, groups, group, position) /
                     product->maker->base[group];
}

/* Phase by phase, where at most one of two that meet changes. */
static bool multiply_pieces(const struct cm_schedule_maker *maker, const struct cm_rate_schedule *a,
                            const struct cm_rate_schedule *b)
{
    for (size_t i = 0, k = 0; i < a->count || k < b->count;) {
        const int64_t next_a = i < a->count ? a->items[i].first : INT64_MAX;
        const int64_t next_b = k < b->count ? b->items[k].first : INT64_MAX;
        const int64_t at = next_a < next_b ? next_a : next_b;
        struct cm_phase of_a, of_b;

        i += next_a == at;
        k += next_b == at;
        if (i == 0 || k == 0)
            continue;
        if (!cut_phase(maker->arena, &a->items[i - 1], maker->groups, at, &of_a) ||
            !cut_phase(maker->arena, &b->items[k - 1], maker->groups, at, &of_b) ||
            !multiply_phases(maker, &of_a, &of_b))
            return false;
    }
    return true;
}

bool cm_schedule_multiply(const struct cm_schedule_maker *maker, const struct cm_rate_schedule *a,
                          const struct cm_rate_schedule *b)
{
    const struct product product = {maker, a, b};
    const size_t before = maker->out->count;
    int64_t end = schedule_end(a), other = schedule_end(b);
    struct cm_phase of_a, of_b;

    if (a->count == 0 || b->count == 0)
        return false;
    if (multiply_pieces(maker, a, b))
        return true;
    maker->out->count = before;
    if (end >= 0 && other >= 0)
        return cm_schedule_add_table(maker, 0, (end > other ? end : other) + 1, product_rate,
                                     &product);
    /* One goes on for ever: a table up to where the other ends, and one phase from there. */
    if (end < 0) {
        const struct cm_rate_schedule *swapped = a;
        a = b;
        b = swapped;
        end = other;
    }
    const struct cm_phase *last = &b->items[b->count - 1];
    if (end < 0)
        return false;
    if (end < last->first)
        end = last->first;
    if (last->is_stepped)
        end = last->first +
              (int64_t)(ceil((double)(end - last->first) / last->length) * last->length);
    return cm_schedule_add_table(maker, 0, end > 0 ? end : 1, product_rate, &product) &&
           cut_phase(maker->arena, &a->items[a->count - 1], maker->groups, end, &of_a) &&
           cut_phase(maker->arena, last, maker->groups, end, &of_b) &&
           multiply_phases(maker, &of_a, &of_b);
}

bool cm_schedule_stretch(const struct cm_schedule_maker *maker, const struct cm_rate_schedule *from,
                         int64_t times)
{
    for (size_t i = 0; i < from->count; i++) {
        const struct cm_phase *phase = &from->items[i];
        const bool is_last = i + 1 == from->count;
        const int64_t end = is_last ? schedule_end(from) : from->items[i + 1].first - 1;
        const bool whole = phase->shape == CM_PHASE_CONSTANT || phase->is_stepped;

        if (phase->first > INT64_MAX / 4 / times ||
            (!whole && phase->shape != CM_PHASE_EXPONENTIAL &&
             (end < 0 || end - phase->first > 10000)))
            return false;
        if (whole || phase->shape == CM_PHASE_EXPONENTIAL) {
            struct cm_phase *copy = cm_schedule_add(maker, phase->shape, 0, 0, 0, 0, 0);
            *copy = *phase;
            copy->first *= times;
            copy->length *= (double)times;
            copy->is_stepped = true;
            if (!whole && phase->length != 1)
                return false;
            continue;
        }
        for (int64_t at = phase->first; at <= end; at++) {
            struct cm_phase *flat =
                cm_schedule_add(maker, CM_PHASE_CONSTANT, at * times, 1, 0, 0, 0);
            double *rates = CM_NEW_ARRAY(maker->arena, double, maker->groups + 1);
            for (size_t group = 0; group < maker->groups; group++)
                rates[group] = phase_rate(phase, maker->groups, group, (double)(at - phase->first));
            flat->from = flat->to = rates;
        }
    }
    return true;
}

bool cm_schedule_shrink(struct cm_rate_schedule *schedule, int64_t times)
{
    for (size_t i = 0; i < schedule->count; i++)
        if (schedule->items[i].first % times || schedule->items[i].shape == CM_PHASE_TABLE)
            return false;
    for (size_t i = 0; i < schedule->count; i++) {
        schedule->items[i].first /= times;
        schedule->items[i].length /= (double)times;
    }
    return true;
}

/* ---- for a training ---- */

struct cm_schedule_maker cm_schedule_for(struct cm_saved *saved, double **base)
{
    *base = CM_NEW_ARRAY(saved->arena, double, saved->groups.count + 1);
    saved->schedule.count = 0;
    return (struct cm_schedule_maker){saved->arena, &saved->schedule, *base, saved->groups.count};
}

bool cm_schedule_agrees(const struct cm_saved *saved)
{
    const int64_t position = (saved->step < 0 ? 0 : saved->step) + saved->schedule.offset;

    for (size_t i = 0; i < saved->groups.count; i++) {
        const double lr = saved->groups.items[i].settings.lr;
        const double rate = cm_schedule_rate(&saved->schedule, saved->groups.count, i, position);
        if (!isnan(lr) && !(fabs(rate - lr) <= 1e-5 * fabs(lr) + 1e-12))
            return false;
    }
    return true;
}
