/* What ONNX Runtime writes for diffusion models: GroupNorm and SkipGroupNorm, channels last or not,
 * with SiLU behind them, and NhwcConv. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"

/* Computed in the type of gamma, which may be wider than that of x. */
#define GROUP_NORM                                                                                 \
    "first = channels_last ? Transpose<perm=[0, 3, 1, 2]>(x) : x;"                                 \
    "y = GroupNormalization<num_groups=groups, epsilon>(cast(first, gamma), gamma, beta);"         \
    "z = cast(activation ? Swish(y) : y, x);"                                                      \
    "Y = channels_last ? Transpose<perm=[0, 2, 3, 1]>(z) : z"

static enum cm_status check_activation(struct cm_body *b)
{
    const int64_t activation = cm_node_int(b->node, "activation");
    if (activation != 0 && activation != 1)
        return cm_body_decline(b, "attribute 'activation' is %lld, expected 0 or 1",
                               (long long)activation);
    return CM_OK;
}

static enum cm_status group_norm_body(struct cm_body *b)
{
    CM_TRY(check_activation(b));
    return cm_body_formula(b, "x = X;" GROUP_NORM);
}

/* The bias has one number per channel, the skip the shape of X or one number per image and channel.
 */
static enum cm_status skip_group_norm_body(struct cm_body *b)
{
    const struct cm_type *skip = cm_builder_type(&b->build, cm_body_input(b, 3));
    if (skip->rank == CM_RANK_UNKNOWN)
        return cm_body_decline(b, "the rank of the skip is not known");
    CM_TRY(check_activation(b));
    return cm_body_formula(
        b, "both = X + (rank(skip) == 2 ? Unsqueeze(skip, channels_last ? [1, 2] : [2, 3]) : skip);"
           "S = both + (bias ? channels_last ? bias : Unsqueeze(bias, [1, 2]) : bias);"
           "x = S;" GROUP_NORM);
}

/* Weights are (outputs, kernel.., inputs / group), the bias is as usual. */
CM_BODY(nhwc_conv_body, "first(t) = Transpose<perm=[0, 3, 1, 2]>(t);"
                        "Y = Transpose<perm=[0, 2, 3, 1]>(Conv<*>(first(X), first(W), B))")

CM_OP_IN(microsoft, "com.microsoft", GroupNorm, .body = group_norm_body);
CM_OP_IN(microsoft, "com.microsoft", SkipGroupNorm, .body = skip_group_norm_body);
CM_OP_IN(microsoft, "com.microsoft", NhwcConv, .body = nhwc_conv_body);
