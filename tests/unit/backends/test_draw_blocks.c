/* Blocks of random numbers against those that the reference kernels draw one by one: the same bits.
 */
// SPDX-License-Identifier: Apache-2.0
#include "kernel_case.h"

static void draws(struct cm_arena *arena)
{
    static const char *const nodes[] = {
        "y = RandomNormal<shape = [777], mean = 0.3, scale = 2.5, seed = 3.0, dtype = %d>()",
        "y = RandomUniform<shape = [3, 300], low = -0.7, high = 9.1, dtype = %d>()",
        "y = RandomUniformLike<high = 3.3, seed = 1.0, dtype = %d>(x)",
        "y = RandomNormalLike<mean = 0.1, dtype = %d>(x)",
        "p = Abs(x) y = Bernoulli<seed = 2.0, dtype = %d>(p)",
        "p = Cast<to = 10>(x) y = Bernoulli<dtype = %d>(p)",
        "p = Cast<to = 11>(x) y = Bernoulli<dtype = %d>(p)"};
    static const int types[] = {1, 10, 11, 16};
    for (size_t i = 0; i < CM_COUNT(nodes); i++)
        for (size_t k = 0; k < CM_COUNT(types); k++) {
            char node[128];
            snprintf(node, sizeof node, nodes[i], types[k]);
            check_kernels(
                arena,
                &(struct kernel_case){
                    .graph = cm_arena_printf(arena, "g (float[2,301] x) => (y) { %s }", node).data,
                    .kernels = "cpu"});
        }
    check_kernels(arena, &(struct kernel_case){
                             .graph = "g (float[700] x) => (y) { y = Bernoulli<dtype = 9>(x) }",
                             .kernels = "cpu"});
}

void test_draw_blocks__are_what_the_reference_draws(void)
{
    check_in_arena(draws);
}
