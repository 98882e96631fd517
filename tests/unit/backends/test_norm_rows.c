/* Normalizations of neighbouring elements, against the reference kernels. */
// SPDX-License-Identifier: Apache-2.0
#include "kernel_case.h"

#include <math.h>

/* The tensor, what is normalized together, and the first axis of that. */
static const struct {
    const char *x, *row;
    int axis;
} shapes[] = {
    {"1,1", "1", 1},         {"3,7", "7", 1},       {"5,8", "8", -1},    {"2,3,17", "17", 2},
    {"4,3,5", "3,5", 1},     {"2,40", "1,40", 1},   {"700,33", "33", 1}, {"300,1,96", "96", -1},
    {"3,2,1030", "1030", 2}, {"2,5000", "5000", 1}, {"6,4", "6,4", 0},   {"2100,64", "64", 1},
};

static void agree(struct cm_arena *arena, const char *graph, bool far, float odd)
{
    check_kernels(arena, &(struct kernel_case){graph, "cpu", far ? 2e-5 : 2e-6, far ? 50 : 0, odd,
                                               false, false});
}

static void layers(struct cm_arena *arena)
{
    for (size_t i = 0; i < CM_COUNT(shapes); i++)
        for (int far = 0; far < 2; far++) {
            const char *x = shapes[i].x, *row = shapes[i].row;
            const int axis = shapes[i].axis;
            agree(arena,
                  cm_arena_printf(arena,
                                  "g (float[%s] x, float[%s] s, float[%s] b) => (y, m, d) "
                                  "{ y, m, d = LayerNormalization<axis = %d>(x, s, b) }",
                                  x, row, row, axis)
                      .data,
                  far, 0);
            for (int rms = 0; rms < 2; rms++)
                agree(arena,
                      cm_arena_printf(arena,
                                      "g (float[%s] x, float[%s] s) => (y) "
                                      "{ y = %sNormalization<axis = %d>(x, s) }",
                                      x, row, rms ? "RMS" : "Layer", axis)
                          .data,
                      far, 0);
            agree(arena,
                  cm_arena_printf(arena,
                                  "g (float[%s] x, float[%s] dy, float[%s] s) => (dx, ds, db) "
                                  "{ dx, ds, db = ai.cameo.LayerNormalizationGrad<axis = %d, "
                                  "epsilon = 0.01>(dy, x, s) }",
                                  x, x, row, axis)
                      .data,
                  far, 0);
            agree(arena,
                  cm_arena_printf(arena,
                                  "g (float[%s] x, float[%s] dy, float[%s] s) => (dx, ds) "
                                  "{ dx, ds = ai.cameo.RMSNormalizationGrad<axis = %d, epsilon = "
                                  "0.5>(dy, x, s) }",
                                  x, x, row, axis)
                      .data,
                  false, 0);
        }
}

void test_norm_rows__layers_of_sizes_that_fill_no_vector(void)
{
    check_in_arena(layers);
}

static void groups(struct cm_arena *arena)
{
    static const struct {
        const char *x;
        int channels, groups;
    } cases[] = {
        {"1,1,1", 1, 1}, {"2,6,5", 6, 3}, {"2,8,3,7", 8, 2}, {"3,4", 4, 4}, {"2,64,16,17", 64, 32}};
    for (size_t i = 0; i < CM_COUNT(cases); i++)
        for (int far = 0; far < 2; far++) {
            const int c = cases[i].channels;
            agree(arena,
                  cm_arena_printf(arena,
                                  "g (float[%s] x, float[%d] s, float[%d] b) => (y) "
                                  "{ y = GroupNormalization<num_groups = %d>(x, s, b) }",
                                  cases[i].x, c, c, cases[i].groups)
                      .data,
                  far, 0);
            agree(arena,
                  cm_arena_printf(arena,
                                  "g (float[%s] x, float[%d] s, float[%d] b) => (y) "
                                  "{ y = InstanceNormalization(x, s, b) }",
                                  cases[i].x, c, c)
                      .data,
                  far, 0);
        }
}

void test_norm_rows__groups_and_instances(void)
{
    check_in_arena(groups);
}

static void lengths(struct cm_arena *arena)
{
    static const char *const cases[] = {"1,1", "3,7", "2,3,16", "40,333"};
    for (size_t i = 0; i < CM_COUNT(cases); i++) {
        agree(arena,
              cm_arena_printf(arena, "g (float[%s] x) => (y) { y = LpNormalization(x) }", cases[i])
                  .data,
              false, 0);
    }
    agree(arena, "g (float[3,70] v) => (y) { z = Sub(v, v) y = LpNormalization(z) }", false, 0);
}

void test_norm_rows__lengths_of_rows(void)
{
    check_in_arena(lengths);
}

static void odd_numbers(struct cm_arena *arena)
{
    const float odd[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < CM_COUNT(odd); i++) {
        agree(arena,
              "g (float[9,17] x, float[17] s, float[17] b) => (y, m, d) "
              "{ y, m, d = LayerNormalization(x, s, b) }",
              false, odd[i]);
        agree(arena,
              "g (float[2,6,9] x, float[6] s, float[6] b) => (y) "
              "{ y = InstanceNormalization(x, s, b) }",
              false, odd[i]);
        agree(arena,
              "g (float[9,17] x, float[9,17] dy, float[17] s) => (dx, ds, db) "
              "{ dx, ds, db = ai.cameo.LayerNormalizationGrad(dy, x, s) }",
              false, odd[i]);
    }
}

void test_norm_rows__what_is_no_number_spoils_its_row_alone(void)
{
    check_in_arena(odd_numbers);
}

static void others(struct cm_arena *arena)
{
    static const char *const graphs[] = {
        "g (float[3,4] x, float[1] s) => (y) { y = LayerNormalization(x, s) }",
        "g (float[3,4] x, float[3,4] s) => (y) { y = LayerNormalization(x, s) }",
        "g (float[0,4] x, float[4] s) => (y) { y = LayerNormalization(x, s) }",
        "g (float[3,4] x) => (y) { y = LpNormalization<p = 1>(x) }",
        "g (float[3,4] x) => (y) { y = LpNormalization<axis = 0>(x) }"};
    for (size_t i = 0; i < CM_COUNT(graphs); i++)
        check_kernels(arena, &(struct kernel_case){.graph = graphs[i],
                                                   .kernels = i < 2 ? "cpu" : "reference",
                                                   .tolerance = 1e-6});
}

void test_norm_rows__what_is_not_one_scale_a_column(void)
{
    check_in_arena(others);
}

/* Types that are computed in double, and operands that differ from row to row. */
static void any_type(struct cm_arena *arena)
{
    static const char *const types[] = {"1", "10", "11", "16"};
    static const char *const nodes[] = {
        "y, m, d = LayerNormalization<axis = 2>(cx, cs)",
        "y, m, d = LayerNormalization<axis = 1, epsilon = 0.2>(cx, cs, cb)",
        "y = RMSNormalization<axis = -1>(cx, cs)",
        "y, m, d = ai.cameo.LayerNormalizationGrad<axis = -1, epsilon = 0.01>(cx, ce, cb)",
        "y, m = ai.cameo.RMSNormalizationGrad<axis = 2, epsilon = 0.5>(cx, ce, cb)"};
    for (size_t t = 0; t < CM_COUNT(types); t++)
        for (size_t i = 0; i < CM_COUNT(nodes); i++) {
            const bool grad = i > 2, floats = t == 0;
            if (grad && floats)
                continue;
            agree(arena,
                  cm_arena_printf(arena,
                                  "g (float[40,3,33] x, float[40,3,33] e, float[40,1,33] s, "
                                  "float[33] b) => (%s) { cx = Cast<to = %s>(x) "
                                  "ce = Cast<to = %s>(e) cs = Cast<to = %s>(s) "
                                  "cb = Cast<to = %s>(b) %s }",
                                  i == 2   ? "y"
                                  : i == 4 ? "y, m"
                                           : "y, m, d",
                                  types[t], types[t], types[t], types[t], nodes[i])
                      .data,
                  false, 0);
        }
}

void test_norm_rows__of_any_type_and_with_scales_of_their_own(void)
{
    check_in_arena(any_type);
}
