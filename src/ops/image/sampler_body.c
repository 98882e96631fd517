/* Reading between pixels as a graph: per axis the neighbours and their weights, then one gather per
 * combination. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/image/sampler.h"

struct parts {
    struct cm_builder build;
    const struct cm_sampler *sampler;
    cm_value length;    /* of the axis at hand, as a float */
    cm_value low, high; /* where reflection happens */
    cm_value zero, last;
};

/* Neighbours along one axis: whole numbers as floats, weights (0 for 1) of the same shape. */
struct axis_taps {
    int count;
    cm_value index[CM_SAMPLER_TAPS], weight[CM_SAMPLER_TAPS], inside[CM_SAMPLER_TAPS];
};

static cm_value number(struct parts *p, double v)
{
    return cm_build_scalar_like(&p->build, p->length, v);
}

static cm_value clip(struct parts *p, cm_value x)
{
    return cm_emit(p, "Min", cm_emit(p, "Max", x, p->zero), p->last);
}

/* A triangle wave between low and high. */
static cm_value reflect(struct parts *p, cm_value x)
{
    /* An axis of one pixel has no range; any that is not zero will do. */
    const cm_value range = cm_emit(p, "Max", cm_emit(p, "Sub", p->high, p->low), number(p, 1e-3));
    const cm_value period = cm_emit(p, "Mul", range, number(p, 2));
    const cm_value t = cm_emit(p, "Abs", cm_emit(p, "Sub", x, p->low));
    const cm_value laps = cm_emit(p, "Floor", cm_emit(p, "Div", t, period));
    const cm_value r = cm_emit(p, "Sub", t, cm_emit(p, "Mul", laps, period));
    const cm_value back = cm_emit(p, "Sub", period, r);
    return cm_emit(p, "Add", cm_emit(p, "Where", cm_emit(p, "Greater", r, range), back, r), p->low);
}

/* ((a x + b) x + c) x + d; only the tail that differs from zero is emitted. */
static cm_value cubic(struct parts *p, cm_value x, double a, double b, double c, double d)
{
    cm_value y = cm_emit(p, "Add", cm_emit(p, "Mul", x, number(p, a)), number(p, b));
    y = cm_emit(p, "Mul", y, x);
    if (c != 0)
        y = cm_emit(p, "Add", y, number(p, c));
    return cm_emit(p, "Add", cm_emit(p, "Mul", y, x), number(p, d));
}

static void weights(struct parts *p, cm_value t, struct axis_taps *taps)
{
    const double a = -0.75;
    const cm_value one = number(p, 1);
    if (p->sampler->mode == CM_SAMPLE_LINEAR) {
        taps->weight[0] = cm_emit(p, "Sub", one, t);
        taps->weight[1] = t;
    } else if (p->sampler->mode == CM_SAMPLE_CUBIC) {
        const cm_value near = cm_emit(p, "Sub", one, t);
        taps->weight[0] = cubic(p, cm_emit(p, "Add", t, one), a, -5 * a, 8 * a, -4 * a);
        taps->weight[1] = cubic(p, t, a + 2, -(a + 3), 0, 1);
        taps->weight[2] = cubic(p, near, a + 2, -(a + 3), 0, 1);
        taps->weight[3] = cubic(p, cm_emit(p, "Add", near, one), a, -5 * a, 8 * a, -4 * a);
    }
}

static void settle(struct parts *p, int i, struct axis_taps *taps)
{
    const cm_value x = taps->index[i];
    if (p->sampler->outside == CM_OUTSIDE_REFLECTION) {
        taps->index[i] = clip(p, cm_emit(p, "Round", reflect(p, x)));
        return;
    }
    taps->index[i] = clip(p, x);
    if (p->sampler->outside == CM_OUTSIDE_ZEROS)
        taps->inside[i] = cm_emit(p, "Equal", taps->index[i], x);
}

static void axis_taps(struct parts *p, cm_value x, struct axis_taps *taps)
{
    const bool nearest = p->sampler->mode == CM_SAMPLE_NEAREST;
    p->zero = number(p, 0);
    p->last = cm_emit(p, "Sub", p->length, number(p, 1));
    p->low = number(p, p->sampler->align_corners ? 0 : -0.5);
    p->high = cm_emit(p, "Sub", p->length, number(p, p->sampler->align_corners ? 1 : 0.5));
    if (nearest)
        x = cm_emit(p, "Round", x);
    if (p->sampler->outside != CM_OUTSIDE_ZEROS) {
        const cm_value off =
            cm_emit(p, "Or", cm_emit(p, "Less", x, p->low), cm_emit(p, "Greater", x, p->high));
        const cm_value back = p->sampler->outside == CM_OUTSIDE_BORDER ? clip(p, x) : reflect(p, x);
        x = cm_emit(p, "Where", off, back, x);
    }
    const cm_value start = nearest ? x : cm_emit(p, "Floor", x);
    const int first = p->sampler->mode == CM_SAMPLE_CUBIC ? -1 : 0;
    taps->count = nearest ? 1 : p->sampler->mode == CM_SAMPLE_LINEAR ? 2 : 4;
    if (!nearest)
        weights(p, cm_emit(p, "Sub", x, start), taps);
    for (int i = 0; i < taps->count; i++) {
        taps->index[i] = first + i == 0 ? start : cm_emit(p, "Add", start, number(p, first + i));
        settle(p, i, taps);
        if (taps->inside[i] && taps->weight[i])
            taps->weight[i] = cm_emit(p, "Where", taps->inside[i], taps->weight[i], p->zero);
    }
}

static cm_value with_channel(struct parts *p, cm_value x)
{
    return cm_emit(p, "Unsqueeze", x, cm_emit_int64s(p, 1));
}

/* One combination of neighbours: their pixel times their weights. */
static cm_value term(struct parts *p, cm_value image, int axes, const struct axis_taps *taps,
                     const int *choice, const cm_value *sizes)
{
    struct cm_arena *arena = cm_builder_arena(&p->build);
    cm_value at = 0, weight = 0, inside = 0;
    for (int a = 0; a < axes; a++) {
        const cm_value i = cm_emit_with(
            p, "Cast", CM_ATTRIBUTES(cm_attr_int(arena, "to", CM_INT64)), taps[a].index[choice[a]]);
        const cm_value w = taps[a].weight[choice[a]], here = taps[a].inside[choice[a]];
        at = at ? cm_emit(p, "Add", cm_emit(p, "Mul", at, sizes[a]), i) : i;
        if (w)
            weight = weight ? cm_emit(p, "Mul", weight, w) : w;
        else if (here)
            inside = inside ? cm_emit(p, "And", inside, here) : here;
    }
    const cm_value head =
        cm_emit_with(p, "Shape", CM_ATTRIBUTES(cm_attr_int(arena, "end", 2)), image);
    const cm_value tail =
        cm_emit_with(p, "Shape", CM_ATTRIBUTES(cm_attr_int(arena, "start", 1)), at);
    const cm_value shape =
        cm_emit_with(p, "Concat", CM_ATTRIBUTES(cm_attr_int(arena, "axis", 0)), head, tail);
    const cm_value spread = cm_emit(p, "Expand", with_channel(p, at), shape);
    cm_value v = cm_emit_with(p, "GatherElements", CM_ATTRIBUTES(cm_attr_int(arena, "axis", 2)),
                              image, spread);
    if (weight)
        v = cm_emit(p, "Mul", v, with_channel(p, weight));
    if (inside)
        v = cm_emit(p, "Where", with_channel(p, inside), v,
                    cm_build_scalar_like(&p->build, image, 0));
    return v;
}

cm_value cm_sampler_build(struct cm_builder *build, const struct cm_sampler *sampler,
                          cm_value image, int axes, const cm_value *places, const cm_value *lengths,
                          const cm_value *sizes)
{
    struct parts p = {.build = *build, .sampler = sampler};
    struct axis_taps taps[CM_MAX_RANK] = {{0}};
    int choice[CM_MAX_RANK] = {0};
    cm_value sum = 0;
    for (int a = 0; a < axes; a++) {
        p.length = lengths[a];
        axis_taps(&p, places[a], &taps[a]);
    }
    for (int a = axes - 1; a >= 0 && !p.build.status;) {
        const cm_value v = term(&p, image, axes, taps, choice, sizes);
        sum = sum ? cm_emit(&p, "Add", sum, v) : v;
        for (a = axes - 1; a >= 0 && ++choice[a] == taps[a].count; a--)
            choice[a] = 0;
    }
    *build = p.build;
    return sum;
}
