/* Curves: keeping, smoothing, and the round numbers of their axes. */
// SPDX-License-Identifier: Apache-2.0
#include "curve.h"

#include "cli.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

const struct curve_range curve_nothing = {INFINITY, -INFINITY};

void curves_free(struct curves *curves)
{
    for (size_t i = 0; i < curves->count; i++) {
        free(curves->items[i].x);
        free(curves->items[i].y);
    }
    free(curves->items);
    *curves = (struct curves){0};
}

struct curve *curves_get(struct curves *curves, const char *name)
{
    for (size_t i = 0; i < curves->count; i++)
        if (strcmp(curves->items[i].name, name) == 0)
            return &curves->items[i];
    curves->items =
        cli_grow(curves->items, curves->count, &curves->capacity, sizeof *curves->items);
    struct curve *curve = &curves->items[curves->count++];
    *curve = (struct curve){0};
    snprintf(curve->name, sizeof curve->name, "%s", name);
    return curve;
}

void curve_add(struct curve *curve, double x, double y)
{
    size_t room = curve->capacity;

    if (!isfinite(x) || !isfinite(y))
        return;
    curve->x = cli_grow(curve->x, curve->count, &room, sizeof *curve->x);
    curve->y = cli_grow(curve->y, curve->count, &curve->capacity, sizeof *curve->y);
    curve->x[curve->count] = x;
    curve->y[curve->count++] = y;
}

/* 1 + keep + .. + keep^(n - 1). */
static double weight_of(double keep, size_t n)
{
    return (1 - pow(keep, (double)n)) / (1 - keep);
}

/* Once from each side: what comes from the left includes the point itself. */
void curve_smooth(const struct curve *curve, double window, double *to)
{
    const double keep = window > 1 ? 1 - 2 / (window + 1) : 0;
    double sum = 0;

    for (size_t i = curve->count; i-- > 0;) {
        to[i] = keep * sum; /* of the points to the right */
        sum = keep * sum + curve->y[i];
    }
    sum = 0;
    for (size_t i = 0; i < curve->count; i++) {
        sum = keep * sum + curve->y[i];
        to[i] =
            (sum + to[i]) / (weight_of(keep, i + 1) + keep * weight_of(keep, curve->count - 1 - i));
    }
}

double curve_ticks(double low, double high, int most, double *first)
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

void curve_label(double value, double step, char *text, size_t size)
{
    const double magnitude = fabs(value);
    const int decimals = step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0;

    if (magnitude < step * 1e-6)
        snprintf(text, size, "0");
    else if (magnitude >= 1e6 || (magnitude < 1e-4 && decimals > 4))
        snprintf(text, size, "%.3g", value);
    else
        snprintf(text, size, "%.*f", decimals > 12 ? 12 : decimals, value);
}

struct curve_range curve_span(const double *values, size_t count, struct curve_range range)
{
    for (size_t i = 0; i < count; i++) {
        range.low = values[i] < range.low ? values[i] : range.low;
        range.high = values[i] > range.high ? values[i] : range.high;
    }
    return range;
}
