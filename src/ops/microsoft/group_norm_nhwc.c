/* What ONNX Runtime writes for diffusion models: GroupNorm and SkipGroupNorm, channels last or not,
 * with SiLU behind them, and NhwcConv. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/compose.h"

enum { IN_X, IN_GAMMA, IN_BETA, IN_SKIP, IN_BIAS };

static cm_value channels_first(struct cm_body *b, cm_value x)
{
    return CM_COMPOSE_TRANSPOSE(b, x, 0, 3, 1, 2);
}

static cm_value channels_last(struct cm_body *b, cm_value x)
{
    return CM_COMPOSE_TRANSPOSE(b, x, 0, 2, 3, 1);
}

/* Computed in the type of gamma, which may be wider than that of x. */
static enum cm_status return_group_norm(struct cm_body *b, cm_value x)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    const int64_t activation = cm_node_int(b->node, "activation");
    const bool last = cm_node_int(b->node, "channels_last") != 0;
    const cm_value gamma = cm_body_input(b, IN_GAMMA), beta = cm_body_input(b, IN_BETA);
    if (activation != 0 && activation != 1)
        return cm_body_decline(b, "attribute 'activation' is %lld, expected 0 or 1",
                               (long long)activation);
    CM_TRY(b->build.status);
    const enum cm_dtype narrow = cm_compose_type(b, x)->dtype;
    const cm_value wide =
        cm_emit_cast(b, last ? channels_first(b, x) : x, cm_compose_type(b, gamma)->dtype);
    cm_value y = cm_emit_with(
        b, "GroupNormalization",
        CM_ATTRIBUTES(cm_attr_int(arena, "num_groups", cm_node_int(b->node, "groups")),
                      cm_attr_float(arena, "epsilon", cm_node_float(b->node, "epsilon"))),
        wide, gamma, beta);
    if (activation == 1)
        y = cm_emit(b, "Swish", y);
    y = cm_emit_cast(b, y, narrow);
    return cm_body_return(b, 0, last ? channels_last(b, y) : y);
}

static enum cm_status group_norm_body(struct cm_body *b)
{
    return return_group_norm(b, cm_body_input(b, IN_X));
}

/* One number per channel, or per image and channel, laid along the channels of x. */
static cm_value along_channels(struct cm_body *b, cm_value x, int rank)
{
    const bool last = cm_node_int(b->node, "channels_last") != 0;
    if (rank == 2)
        return last ? CM_COMPOSE_UNSQUEEZE(b, x, 1, 2) : CM_COMPOSE_UNSQUEEZE(b, x, 2, 3);
    return last ? x : CM_COMPOSE_UNSQUEEZE(b, x, 1, 2);
}

static enum cm_status skip_group_norm_body(struct cm_body *b)
{
    const cm_value skip = cm_body_input(b, IN_SKIP), bias = cm_body_input(b, IN_BIAS);
    const int rank = cm_compose_rank(b, skip);
    if (rank == CM_RANK_UNKNOWN)
        return cm_body_decline(b, "the rank of the skip is not known");
    const cm_value both =
        cm_emit(b, "Add", cm_body_input(b, IN_X), rank == 2 ? along_channels(b, skip, 2) : skip);
    const cm_value sum = cm_compose_add(b, both, bias ? along_channels(b, bias, 1) : 0);
    CM_TRY(cm_body_return(b, 1, sum));
    return return_group_norm(b, sum);
}

/* Weights are (outputs, kernel.., inputs / group), the bias is as usual. */
static enum cm_status nhwc_conv_body(struct cm_body *b)
{
    const cm_value y =
        CM_COMPOSE_AS_CALLED(b, "Conv", channels_first(b, cm_body_input(b, 0)),
                             channels_first(b, cm_body_input(b, 1)), cm_body_input(b, 2));
    return cm_body_return(b, 0, channels_last(b, y));
}

CM_OP_IN(microsoft, "com.microsoft", GroupNorm, .body = group_norm_body);
CM_OP_IN(microsoft, "com.microsoft", SkipGroupNorm, .body = skip_group_norm_body);
CM_OP_IN(microsoft, "com.microsoft", NhwcConv, .body = nhwc_conv_body);
