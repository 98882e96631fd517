/* Curves: keeping, smoothing, and the round numbers of their axes. */
// SPDX-License-Identifier: Apache-2.0
#include "draw/curve.h"

#include <math.h>

const struct cm_curve_range cm_curve_nothing = {INFINITY, -INFINITY};

struct cm_curve *cm_curves_get(struct cm_curves *curves, struct cm_str name)
{
    for (size_t i = 0; i < curves->count; i++)
        if (cm_str_equal(curves->items[i].name, name))
            return &curves->items[i];
    struct cm_curve *curve = CM_PUSH(curves->arena, curves);
    *curve = (struct cm_curve){.name = cm_arena_str(curves->arena, name)};
    return curve;
}

void cm_curve_add(struct cm_curves *curves, struct cm_curve *curve, double x, double y)
{
    if (!isfinite(x) || !isfinite(y))
        return;
    *CM_PUSH(curves->arena, &curve->x) = x;
    *CM_PUSH(curves->arena, &curve->y) = y;
}

/* 1 + keep + .. + keep^(n - 1). */
static double weight_of(double keep, size_t n)
{
    return (1 - pow(keep, (double)n)) / (1 - keep);
}

/* Once from each side: what comes from the left includes the point itself. */
void cm_curve_smooth(const struct cm_curve *curve, double window, double *to)
{
    const double keep = window > 1 ? 1 - 2 / (window + 1) : 0;
    double sum = 0;

    for (size_t i = curve->x.count; i-- > 0;) {
        to[i] = keep * sum; /* of the points to the right */
        sum = keep * sum + curve->y.items[i];
    }
    sum = 0;
    for (size_t i = 0; i < curve->x.count; i++) {
        sum = keep * sum + curve->y.items[i];
        to[i] = (sum + to[i]) /
                (weight_of(keep, i + 1) + keep * weight_of(keep, curve->x.count - 1 - i));
    }
}

double cm_curve_ticks(double low, double high, int most, double *first)
{
    static const double rounds[] = {1, 2, 5, 10};
    const double rough = (high - low) / most;
    const double power = pow(10, floor(log10(rough)));
    double step = 10 * power;

    for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) {
        if (rounds[i] * power >= rough * (1 - 1e-9)) {
            step = rounds[i] * power;
            break;
        }
    }
    *first = ceil(low / step - 1e-9) * step;
    return step;
}

void cm_curve_label(double value, double step, char *text, size_t size)
{
    const double magnitude = fabs(value);
    const int decimals = step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0;

    if (magnitude < step * 1e-6)
        snprintf(text, size, "0");
    else if (magnitude >= 1e6 || (magnitude < 1e-4 && decimals > 4))
        cm_format(text, size, "%.3g", value);
    else
        cm_format(text, size, "%.*f", decimals > 12 ? 12 : decimals, value);
}

struct cm_curve_range cm_curve_span(const double *values, size_t count, struct cm_curve_range range)
{
    for (size_t i = 0; i < count; i++) {
        range.low = values[i] < range.low ? values[i] : range.low;
        range.high = values[i] > range.high ? values[i] : range.high;
    }
    return range;
}
