/* Quantized values of runs that share a scale, and of the range of the data, against the reference
 * kernels: the same bits. */
// SPDX-License-Identifier: Apache-2.0
#include "kernel_case.h"

#include <math.h>

/* x and scales as inputs, both directions. */
static void both_ways(struct cm_arena *arena, const char *x, const char *scale, const char *how,
                      const char *type, const char *kernel, float odd)
{
    const struct cm_str graph = cm_arena_printf(
        arena,
        "g (float[%s] x, float[%s] s) => (q, y)"
        " { t = Constant<value_float = 0.01>() a = Abs(s) p = Add(a, t) n = Mul(a, t)"
        " d = Add(n, t) w = Constant<value_float = 90.0>() m = Mul(s, w)"
        " z = Cast<to = %s>(m) q = QuantizeLinear<%s>(x, d, z)"
        " y = DequantizeLinear<%s>(q, p, z) }",
        x, scale, type, how, how);
    check_kernels(arena, &(struct kernel_case){.graph = graph.data, .kernels = kernel, .odd = odd});
}

static void axes_and_blocks(struct cm_arena *arena)
{
    static const char *const types[] = {"2", "3", "4", "5"};
    for (size_t i = 0; i < CM_COUNT(types); i++) {
        both_ways(arena, "3,70,17", "1", "axis = 1", types[i], "cpu, cpu", 0);
        both_ways(arena, "2,5,18", "5", "axis = 1", types[i], "cpu, cpu", NAN);
        both_ways(arena, "5,40", "5", "axis = 0", types[i], "cpu, cpu", INFINITY);
        both_ways(arena, "2,3,70", "2,3,4", "axis = 2, block_size = 20", types[i], "cpu, cpu", 0);
        both_ways(arena, "2,48", "2,3", "axis = -1, block_size = 16", types[i], "cpu, cpu", 0);
        both_ways(arena, "600,100", "600", "axis = 0", types[i], "cpu, cpu", 0);
    }
}

static void others(struct cm_arena *arena)
{
    both_ways(arena, "5,40", "40", "axis = 1", "2", "reference, reference", 0);
    both_ways(arena, "32,18", "2,18", "axis = 0, block_size = 16", "2", "reference, reference", 0);
}

static void dynamic(struct cm_arena *arena)
{
    static const char *const graphs[] = {
        "g (float[7] x) => (y, s, z) { y, s, z = DynamicQuantizeLinear(x) }",
        "g (float[3,50001] x) => (y, s, z) { y, s, z = DynamicQuantizeLinear(x) }"};
    for (size_t i = 0; i < CM_COUNT(graphs); i++)
        for (int shift = -3; shift <= 3; shift += 3)
            check_kernels(
                arena, &(struct kernel_case){.graph = graphs[i], .kernels = "cpu", .shift = shift});
    check_kernels(arena, &(struct kernel_case){.graph = graphs[1], .kernels = "cpu", .odd = NAN});
}

void test_linear_runs__scales_of_axes_and_blocks(void)
{
    check_in_arena(axes_and_blocks);
}

void test_linear_runs__short_runs_stay_with_the_reference(void)
{
    check_in_arena(others);
}

void test_linear_runs__the_range_of_the_data(void)
{
    check_in_arena(dynamic);
}
