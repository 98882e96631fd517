/* Reading between pixels as a graph: per axis the neighbours and their weights, then one gather per
 * combination. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "ops/image/sampler.h"

struct parts {
    struct cm_builder build;
    const struct cm_node *node; /* none */
};

/* Neighbours along one axis: whole numbers as floats, weights (0 for 1) of the same shape, and
 * where they are inside. */
struct axis_taps {
    int count;
    struct {
        cm_value index, weight, inside;
    } tap[CM_SAMPLER_TAPS];
};

/* reflect: a triangle wave between low and high. An axis of one pixel has no range; any that is not
 * zero will do. */
#define PLACES                                                                                     \
    "x, length: nearest = %d; zeros = %d; border = %d; aligned = %d;"                              \
    "zero = like(length, 0); last = length - 1; low = like(length, aligned ? 0 : -0.5);"           \
    "high = length - (aligned ? 1 : 0.5); clip(t) = Min(Max(t, zero), last);"                      \
    "reflect(t) = { range = Max(high - low, 1e-3); period = range * 2; d = Abs(t - low);"          \
    "  r = d - Floor(d / period) * period; back = period - r;"                                     \
    "  Where(Greater(r, range), back, r) + low };"                                                 \
    "off(t) = Where(Or(Less(t, low), Greater(t, high)), border ? clip(t) : reflect(t), t);"        \
    "x = nearest ? Round(x) : x; x = zeros ? x : off(x); start = nearest ? x : Floor(x);"          \
    "settled(t) = zeros ? clip(t) : border ? clip(t) : clip(Round(reflect(t)));"                   \
    "within(t, at) = zeros ? Equal(t, at) : none;"                                                 \
    "counted(w, inside) = inside ? Where(inside, w, zero) : w;"
#define WEIGHED(i, w)                                                                              \
    "i" i " = settled(p); h" i " = within(i" i ", p); w" i " = counted(" w ", h" i ");"
#define NEAREST "i0 = settled(x); h0 = within(i0, x); w0 = none -> i0, w0, h0"
#define LINEAR                                                                                     \
    "t = x - start; near = 1 - t;"                                                                 \
    "p = start;" WEIGHED("0", "near") "p = start + 1;" WEIGHED("1",                                \
                                                               "t") "-> i0, w0, h0, i1, w1, h1"
#define CUBIC                                                                                      \
    "t = x - start; one = like(length, 1); near = one - t;"                                        \
    "inner(t) = (t * 1.25 + -2.25) * t * t + 1;"                                                   \
    "outer(t) = ((t * -0.75 + 3.75) * t + -6) * t + 3;"                                            \
    "a = outer(t + one); b = inner(t); c = inner(near); d = outer(near + one);"                    \
    "p = start + -1;" WEIGHED("0", "a") "p = start;" WEIGHED("1", "b") "p = start + 1;" WEIGHED(   \
        "2",                                                                                       \
        "c") "p = start + 2;" WEIGHED("3",                                                         \
                                      "d") "-> i0, w0, h0, i1, w1, h1, i2, w2, h2, i3, w3, h3"

static void axis_taps(struct cm_builder *build, const struct cm_sampler *sampler, cm_value x,
                      cm_value length, struct axis_taps *taps)
{
    static const char *const texts[] = {[CM_SAMPLE_NEAREST] = PLACES NEAREST,
                                        [CM_SAMPLE_LINEAR] = PLACES LINEAR,
                                        [CM_SAMPLE_CUBIC] = PLACES CUBIC};
    static const int counts[] = {1, 2, 4};
    cm_value v[3 * CM_SAMPLER_TAPS];
    const struct cm_str text =
        cm_arena_printf(cm_builder_arena(build), texts[sampler->mode],
                        sampler->mode == CM_SAMPLE_NEAREST, sampler->outside == CM_OUTSIDE_ZEROS,
                        sampler->outside == CM_OUTSIDE_BORDER, sampler->align_corners);
    taps->count = counts[sampler->mode];
    cm_build_formulas(build, NULL, cm_str_text(text), (const cm_value[]){x, length}, 2, v,
                      3 * (size_t)taps->count);
    for (int i = 0; i < taps->count; i++) {
        taps->tap[i].index = v[3 * i];
        taps->tap[i].weight = v[3 * i + 1];
        taps->tap[i].inside = v[3 * i + 2];
    }
}

/* One combination of neighbours: their pixel times their weights. */
static cm_value term(struct parts *p, cm_value image, int axes, const struct axis_taps *taps,
                     const int *choice, const cm_value *sizes)
{
    cm_value at = 0, weight = 0, inside = 0;
    for (int a = 0; a < axes; a++) {
        const cm_value i = cm_emit_cast(p, taps[a].tap[choice[a]].index, CM_INT64);
        const cm_value w = taps[a].tap[choice[a]].weight, here = taps[a].tap[choice[a]].inside;
        at = at ? cm_emit(p, "Add", cm_emit(p, "Mul", at, sizes[a]), i) : i;
        if (w)
            weight = weight ? cm_emit(p, "Mul", weight, w) : w;
        else if (here)
            inside = inside ? cm_emit(p, "And", inside, here) : here;
    }
    return cm_emit_formula(
        p,
        "image, at, weight, inside: one(t) = Unsqueeze(t, [1]);"
        "shape = Concat<axis=0>(Shape<end=2>(image), Shape<start=1>(at));"
        "v = GatherElements<axis=2>(image, Expand(one(at), shape));"
        "v = weight ? v * one(weight) : v; inside ? Where(one(inside), v, like(image, 0)) : v",
        image, at, weight, inside);
}

cm_value cm_sampler_build(struct cm_builder *build, const struct cm_sampler *sampler,
                          cm_value image, int axes, const cm_value *places, const cm_value *lengths,
                          const cm_value *sizes)
{
    struct parts p = {.build = *build};
    struct axis_taps taps[CM_MAX_RANK] = {{0}};
    int choice[CM_MAX_RANK] = {0};
    cm_value sum = 0;
    for (int a = 0; a < axes; a++)
        axis_taps(&p.build, sampler, places[a], lengths[a], &taps[a]);
    for (int a = axes - 1; a >= 0 && !p.build.status;) {
        const cm_value v = term(&p, image, axes, taps, choice, sizes);
        sum = sum ? cm_emit(&p, "Add", sum, v) : v;
        for (a = axes - 1; a >= 0 && ++choice[a] == taps[a].count; a--)
            choice[a] = 0;
    }
    *build = p.build;
    return sum;
}
