/* Estimates of how much work a run is: rules that many operators share. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/op.h"

#include <math.h>

double cm_work_linear(const struct cm_node *node, const struct cm_amount *amount)
{
    (void)node;
    return amount->in + amount->out + amount->chars;
}

/* (m, k) by (k, n) is m n k products: the root of mk, kn and mn multiplied. */
double cm_work_product(const struct cm_node *node, const struct cm_amount *amount)
{
    return cm_work_linear(node, amount) + sqrt(amount->two * amount->out);
}

double cm_flops_conv(const struct cm_node *node, const struct cm_tensor *const *in, int n_in,
                     const struct cm_tensor *const *out, int n_out)
{
    const int64_t channels = n_in > 1 && in[1]->shape.rank > 0 ? in[1]->shape.dims[0] : 0;
    (void)node;
    if (n_out < 1 || !out[0] || channels < 1)
        return 0;
    return 2.0 * (double)cm_tensor_count(out[0]) * (double)(cm_tensor_count(in[1]) / channels);
}

/* Every element with every other, or with all combinations of the other operands' (Einsum). */
double cm_work_any(const struct cm_node *node, const struct cm_amount *amount)
{
    const double touched = cm_work_linear(node, amount);
    return touched * touched > amount->all ? touched * touched : amount->all;
}
