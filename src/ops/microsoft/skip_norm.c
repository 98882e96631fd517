/* Normalizations with the sum before them: SkipLayerNormalization and its form without a mean,
 * EmbedLayerNormalization, BiasSoftmax. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/compose.h"

/* LayerNormalization over the last axis, as the call's epsilon says. Results that are not wanted
 * are not given. */
static enum cm_status return_layer_norm(struct cm_body *b, cm_value sum, cm_value scale,
                                        cm_value shift, bool with_statistics)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    const cm_value inputs[] = {sum, scale, shift};
    cm_value results[3];
    const bool statistics = with_statistics && (cm_body_wants(b, 1) || cm_body_wants(b, 2));
    const float epsilon = cm_node_float(b->node, "epsilon");
    results[0] = cm_build(
        &b->build, &(struct cm_emission){.op = "LayerNormalization",
                                         .inputs = inputs,
                                         .n_inputs = shift ? 3 : 2,
                                         CM_ATTRIBUTES(cm_attr_float(arena, "epsilon", epsilon)),
                                         .n_outputs = statistics ? 3 : 1,
                                         .outputs = results});
    CM_TRY(cm_body_return(b, 0, results[0]));
    if (!statistics)
        return CM_OK;
    CM_TRY(cm_body_return(b, 1, results[1]));
    return cm_body_return(b, 2, results[2]);
}

enum { IN_INPUT, IN_SKIP, IN_GAMMA, IN_BETA, IN_BIAS };
enum { OUT_RESULT, OUT_MEAN, OUT_INVERSE, OUT_SUM };

static enum cm_status skip_layer_norm_body(struct cm_body *b)
{
    const cm_value both = cm_emit(b, "Add", cm_body_input(b, IN_INPUT), cm_body_input(b, IN_SKIP));
    const cm_value sum = cm_compose_add(b, both, cm_body_input(b, IN_BIAS));
    CM_TRY(cm_body_return(b, OUT_SUM, sum));
    return return_layer_norm(b, sum, cm_body_input(b, IN_GAMMA), cm_body_input(b, IN_BETA), true);
}

/* What RMSNormalization divides by, which it does not give itself. */
static cm_value inverse_root_mean_square(struct cm_body *b, cm_value x, float epsilon)
{
    const cm_value wide = cm_emit_cast(b, x, CM_FLOAT);
    const cm_value mean =
        cm_emit(b, "ReduceMean", cm_emit(b, "Mul", wide, wide), cm_emit_int64s(b, -1));
    const cm_value shifted = cm_emit(b, "Add", mean, cm_emit_scalar(b, CM_FLOAT, (double)epsilon));
    return cm_emit(b, "Reciprocal", cm_emit(b, "Sqrt", shifted));
}

/* There is no beta here: the bias comes after gamma. No mean is taken, which counts as 0. */
static enum cm_status skip_rms_norm_body(struct cm_body *b)
{
    const float epsilon = cm_node_float(b->node, "epsilon");
    const cm_value both = cm_emit(b, "Add", cm_body_input(b, IN_INPUT), cm_body_input(b, IN_SKIP));
    const cm_value sum = cm_compose_add(b, both, cm_body_input(b, IN_BETA));
    CM_TRY(cm_body_return(b, OUT_SUM, sum));
    if (cm_body_wants(b, OUT_MEAN) || cm_body_wants(b, OUT_INVERSE)) {
        const cm_value inverse = inverse_root_mean_square(b, sum, epsilon);
        CM_TRY(cm_body_return(b, OUT_INVERSE, inverse));
        CM_TRY(cm_body_return(b, OUT_MEAN,
                              cm_emit(b, "Mul", inverse, cm_emit_scalar(b, CM_FLOAT, 0))));
    }
    return cm_body_return(
        b, OUT_RESULT,
        cm_emit_with(b, "RMSNormalization",
                     CM_ATTRIBUTES(cm_attr_float(cm_builder_arena(&b->build), "epsilon", epsilon)),
                     sum, cm_body_input(b, IN_GAMMA)));
}

enum {
    IN_IDS,
    IN_SEGMENTS,
    IN_WORD_TABLE,
    IN_PLACE_TABLE,
    IN_SEGMENT_TABLE,
    IN_EMBED_GAMMA,
    IN_EMBED_BETA,
    IN_MASK,
    IN_PLACES
};

/* How many ones the mask has in each row; zeros where there is no mask. */
static cm_value mask_counts(struct cm_body *b)
{
    const cm_value mask = cm_body_input(b, IN_MASK);
    const cm_value zero = cm_emit_scalar(b, CM_INT32, 0);
    if (!mask)
        return cm_emit(b, "Expand", zero, cm_compose_dims(b, cm_body_input(b, IN_IDS), 0, 1));
    const cm_value ones = cm_emit(b, "Equal", mask, cm_emit_scalar(b, CM_INT32, 1));
    return cm_emit_with(b, "ReduceSum",
                        CM_ATTRIBUTES(cm_attr_int(cm_builder_arena(&b->build), "keepdims", 0)),
                        cm_emit_cast(b, ones, CM_INT32), cm_emit_int64s(b, 1));
}

/* Rows of three tables are added: of the words, of their places (counted where no ids are given,
 * one row of ids counts for the whole batch), of their segments. */
static enum cm_status embed_layer_norm_body(struct cm_body *b)
{
    const cm_value ids = cm_body_input(b, IN_IDS), places = cm_body_input(b, IN_PLACES);
    const cm_value segments = cm_body_input(b, IN_SEGMENTS);
    const cm_value words = cm_emit(b, "Gather", cm_body_input(b, IN_WORD_TABLE), ids);
    const cm_value rows = places ? places : cm_compose_range(b, cm_compose_dim(b, ids, 1));
    cm_value sum =
        cm_emit(b, "Add", words, cm_emit(b, "Gather", cm_body_input(b, IN_PLACE_TABLE), rows));
    if (segments && cm_body_input(b, IN_SEGMENT_TABLE))
        sum = cm_emit(b, "Add", sum,
                      cm_emit(b, "Gather", cm_body_input(b, IN_SEGMENT_TABLE), segments));
    if (cm_body_wants(b, 1))
        CM_TRY(cm_body_return(b, 1, mask_counts(b)));
    CM_TRY(cm_body_return(b, 2, sum));
    return return_layer_norm(b, sum, cm_body_input(b, IN_EMBED_GAMMA),
                             cm_body_input(b, IN_EMBED_BETA), false);
}

/* The softmax goes over all axes from `axis` on, taken as one. */
static enum cm_status bias_softmax_body(struct cm_body *b)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    const cm_value sum = cm_emit(b, "Add", cm_body_input(b, 0), cm_body_input(b, 1));
    const struct cm_attribute_proto axis = cm_attr_int(arena, "axis", cm_node_int(b->node, "axis"));
    const cm_value rows = cm_emit_with(b, "Flatten", CM_ATTRIBUTES(axis), sum);
    const cm_value soft =
        cm_emit_with(b, "Softmax", CM_ATTRIBUTES(cm_attr_int(arena, "axis", 1)), rows);
    return cm_body_return(b, 0, cm_emit(b, "Reshape", soft, cm_emit(b, "Shape", sum)));
}

CM_OP_IN(microsoft, "com.microsoft", SkipLayerNormalization, .body = skip_layer_norm_body);
CM_OP_IN(microsoft, "com.microsoft", SkipSimplifiedLayerNormalization, .body = skip_rms_norm_body);
CM_OP_IN(microsoft, "com.microsoft", EmbedLayerNormalization, .body = embed_layer_norm_body);
CM_OP_IN(microsoft, "com.microsoft", BiasSoftmax, .body = bias_softmax_body);
