/* The gradient of attention in double, against the reference kernel. */
// SPDX-License-Identifier: Apache-2.0
#include "kernel_case.h"

static void gradients_of_doubles(struct cm_arena *arena)
{
    static const char *const nodes[] = {
        "dq, dk, dv = ai.cameo.AttentionGrad(cy, cq, ck, cv)",
        "dq, dk, dv = ai.cameo.AttentionGrad<is_causal = 1, scale = 0.7>(cy, cq, ck, cv)",
        "dq, dk, dv = ai.cameo.AttentionGrad(cy, cq, ck, cv, cm)",
        "dq, dk, dv, dm = ai.cameo.AttentionGrad(cy, cq, ck, cv, cm)"};
    for (size_t i = 0; i < CM_COUNT(nodes); i++) {
        const struct cm_str graph = cm_arena_printf(
            arena,
            "g (float[2,3,5,9] y, float[2,3,5,4] q, float[2,3,7,4] k, float[2,3,7,9] v,"
            " float[1,5,7] m) => (dq, dk, dv%s) { cy = Cast<to = 11>(y) cq = Cast<to = 11>(q)"
            " ck = Cast<to = 11>(k) cv = Cast<to = 11>(v) cm = Cast<to = 11>(m) %s }",
            i == 3 ? ", dm" : "", nodes[i]);
        check_kernels(arena, &(struct kernel_case){.graph = graph.data, .kernels = "cpu"});
    }
}

void test_attention_grad_wide__the_same_doubles(void)
{
    check_in_arena(gradients_of_doubles);
}
