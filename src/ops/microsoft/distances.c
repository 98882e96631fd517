/* CDist, the distances between all rows of two matrices, and IsAllFinite. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/compose.h"

static cm_value sum_of_squares(struct cm_body *b, cm_value x)
{
    return cm_emit(b, "ReduceSumSquare", x, cm_emit_int64s(b, 1));
}

/* |a - b|^2 = |a|^2 - 2 a b + |b|^2: a product instead of all differences at once. Rounding must
 * not make it negative. */
static enum cm_status cdist_body(struct cm_body *b)
{
    const struct cm_str metric = cm_node_str(b->node, "metric");
    const bool rooted = cm_str_is(metric, "euclidean");
    const cm_value x = cm_body_input(b, 0), y = cm_body_input(b, 1);
    if (!rooted && !cm_str_is(metric, "sqeuclidean"))
        return cm_body_decline(b,
                               "attribute 'metric' is '%.*s', expected 'euclidean' or "
                               "'sqeuclidean'",
                               CM_STR_FMT(metric));
    const cm_value product = cm_emit(b, "MatMul", x, CM_COMPOSE_TRANSPOSE(b, y, 1, 0));
    const cm_value twice = cm_emit(b, "Mul", product, cm_emit_scalar_like(b, x, 2));
    const cm_value squares = cm_emit(b, "Add", sum_of_squares(b, x),
                                     CM_COMPOSE_TRANSPOSE(b, sum_of_squares(b, y), 1, 0));
    const cm_value distance = cm_emit(b, "Relu", cm_emit(b, "Sub", squares, twice));
    return cm_body_return(b, 0, rooted ? cm_emit(b, "Sqrt", distance) : distance);
}

/* Is any element infinite, or no number, whichever is asked for? */
static cm_value has_outlier(struct cm_body *b, cm_value x)
{
    const bool infinite = !cm_node_int(b->node, "isnan_only");
    const bool nan = !cm_node_int(b->node, "isinf_only");
    const cm_value inf = infinite ? cm_emit(b, "IsInf", x) : 0;
    const cm_value odd = nan ? cm_emit(b, "IsNaN", x) : 0;
    const cm_value either = inf && odd ? cm_emit(b, "Or", inf, odd) : inf ? inf : odd;
    const cm_value flat = CM_COMPOSE_RESHAPE(b, either, -1);
    return cm_emit_with(b, "ReduceMax",
                        CM_ATTRIBUTES(cm_attr_int(cm_builder_arena(&b->build), "keepdims", 0)),
                        flat);
}

static enum cm_status is_all_finite_body(struct cm_body *b)
{
    cm_value found = 0;
    if (cm_node_int(b->node, "isnan_only") && cm_node_int(b->node, "isinf_only"))
        return cm_body_decline(b, "isnan_only and isinf_only exclude each other");
    for (int i = 0; i < b->node->n_inputs; i++) {
        const cm_value here = has_outlier(b, cm_body_input(b, i));
        found = found ? cm_emit(b, "Or", found, here) : here;
    }
    return cm_body_return(b, 0, cm_emit(b, "Not", found));
}

CM_OP_IN(microsoft, "com.microsoft", CDist, .body = cdist_body);
CM_OP_IN(microsoft, "com.microsoft", IsAllFinite, .body = is_all_finite_body, .grad = cm_grad_none);
