/* Learning rates computed outside of a graph: what a schedule says at some position. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/export_saved.h"

#include <math.h>

static double polynomial(const struct cm_phase *phase, double from, double to, double k)
{
    return k >= phase->length ? to : to + (from - to) * pow(1 - k / phase->length, phase->factor);
}

static double cosine(const struct cm_phase *phase, double from, double to, double k)
{
    const double pi = 3.14159265358979323846;

    if (k > phase->length && !phase->swings_back)
        k = phase->length;
    return to + (from - to) * (1 + cos(pi * k / phase->length)) / 2;
}

static double in_phase(const struct cm_phase *phase, size_t n_groups, size_t group, double k)
{
    const double from = phase->from ? phase->from[group] : NAN;
    const double to = phase->to ? phase->to[group] : NAN;
    const double length = phase->length, turns = k / length;
    const double whole = phase->is_stepped ? floor(turns) : turns;

    switch (phase->shape) {
    case CM_PHASE_CONSTANT:
        return from;
    case CM_PHASE_LINEAR:
        return k >= length ? to : from + (to - from) * turns;
    case CM_PHASE_COSINE:
        return cosine(phase, from, to, k);
    case CM_PHASE_EXPONENTIAL:
        return from * pow(phase->factor, whole);
    case CM_PHASE_POLYNOMIAL:
        return polynomial(phase, from, to, k);
    case CM_PHASE_INVERSE:
        return from / (1 + phase->factor * whole);
    case CM_PHASE_ROOT:
        return from * sqrt(length / (k + length));
    case CM_PHASE_LOG:
        return k + 1 >= length ? to : from + (to - from) * log(k + 1) / log(length);
    case CM_PHASE_TABLE:
        break;
    }
    const size_t row = k < (double)phase->n_rates ? (size_t)k : phase->n_rates - 1;
    return phase->n_rates ? phase->rates[row * n_groups + group] : NAN;
}

double cm_schedule_rate(const struct cm_rate_schedule *schedule, size_t n_groups, size_t group,
                        int64_t position)
{
    size_t i = schedule->count;

    while (i > 1 && schedule->phases[i - 1].first > position)
        i--;
    if (!i)
        return NAN;
    const struct cm_phase *phase = &schedule->phases[i - 1];
    return in_phase(phase, n_groups, group, fmax(0, (double)(position - phase->first)));
}
