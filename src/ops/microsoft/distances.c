/* CDist, the distances between all rows of two matrices, and IsAllFinite. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"

/* |a - b|^2 = |a|^2 - 2 a b + |b|^2: a product instead of all differences at once. Rounding must
 * not make it negative. */
static enum cm_status cdist_body(struct cm_body *b)
{
    const struct cm_str metric = cm_node_str(b->node, "metric");
    if (!cm_str_is(metric, "euclidean") && !cm_str_is(metric, "sqeuclidean"))
        return cm_body_decline(b,
                               "attribute 'metric' is '%.*s', expected 'euclidean' or "
                               "'sqeuclidean'",
                               CM_STR_FMT(metric));
    return cm_body_formula(
        b, "squares(t) = ReduceSumSquare(t, [1]); twice = MatMul(A, Transpose<perm=[1, 0]>(B)) * 2;"
           "distance = Relu(squares(A) + Transpose<perm=[1, 0]>(squares(B)) - twice);"
           "C = metric == 'euclidean' ? Sqrt(distance) : distance");
}

static enum cm_status is_all_finite_body(struct cm_body *b)
{
    cm_value found = 0;
    if (cm_node_int(b->node, "isnan_only") && cm_node_int(b->node, "isinf_only"))
        return cm_body_decline(b, "isnan_only and isinf_only exclude each other");
    for (int i = 0; i < b->node->n_inputs; i++) {
        const cm_value here = cm_emit_formula(
            b,
            "x: odd = isnan_only ? IsNaN(x) : isinf_only ? IsInf(x) : Or(IsInf(x), IsNaN(x));"
            "ReduceMax<keepdims=0>(Reshape(odd, [-1]))",
            cm_body_input(b, i));
        found = found ? cm_emit(b, "Or", found, here) : here;
    }
    return cm_body_return(b, 0, cm_emit(b, "Not", found));
}

CM_OP_IN(microsoft, "com.microsoft", CDist, .body = cdist_body);
CM_OP_IN(microsoft, "com.microsoft", IsAllFinite, .body = is_all_finite_body, .grad = cm_grad_none);
