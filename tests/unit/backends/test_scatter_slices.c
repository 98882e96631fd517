/* Slices that are replaced or added, against the reference kernel: the same bits. */
// SPDX-License-Identifier: Apache-2.0
#include "kernel_case.h"

static const char *const adds = "add", *const replaces = "none";

static void scatter(struct cm_arena *arena, const char *data, const char *tuples,
                    const char *updates, const char *type, const char *how, const char *kernel)
{
    const struct cm_str graph = cm_arena_printf(
        arena,
        "g (float[%s] x, float[%s] p, float[%s] u) => (y)"
        " { cx = Cast<to = %s>(x) cu = Cast<to = %s>(u) n = Constant<value_float = 2.9>()"
        " m = Mul(p, n) i = Cast<to = 7>(m) y = ScatterND<reduction = \"%s\">(cx, i, cu) }",
        data, tuples, updates, type, type, how);
    check_kernels(arena, &(struct kernel_case){.graph = graph.data, .kernels = kernel});
}

static void slices(struct cm_arena *arena)
{
    static const char *const floats[] = {"1", "10", "11", "16"};
    for (size_t i = 0; i < CM_COUNT(floats); i++) {
        scatter(arena, "3,16", "40,1", "40,16", floats[i], adds, "cpu");
        scatter(arena, "3,4,600", "9,70,2", "9,70,600", floats[i], adds, "cpu");
        scatter(arena, "3,2,9", "7,1", "7,2,9", floats[i], adds, "cpu");
        scatter(arena, "3,2100", "300,1", "300,2100", floats[i], replaces, "cpu");
    }
    scatter(arena, "3,2100", "300,1", "300,2100", "7", replaces, "cpu");
    scatter(arena, "3,40", "5,1", "5,40", "3", replaces, "cpu");
    scatter(arena, "40", "5,0", "5,40", "1", adds, "cpu");
}

static void others(struct cm_arena *arena)
{
    scatter(arena, "3,40", "5,1", "5,40", "7", adds, "reference");
    scatter(arena, "3,40", "5,1", "5,40", "1", "max", "reference");
    scatter(arena, "3,3", "9,1", "9,3", "1", adds, "reference");
}

void test_scatter_slices__in_the_order_of_the_indices(void)
{
    check_in_arena(slices);
}

void test_scatter_slices__others_stay_with_the_reference(void)
{
    check_in_arena(others);
}
