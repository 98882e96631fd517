/* Normalizations with the sum before them: SkipLayerNormalization and its form without a mean,
 * EmbedLayerNormalization, BiasSoftmax. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"

/* Results that are not wanted are not given. */
static enum cm_status skip_layer_norm_body(struct cm_body *b)
{
    return cm_body_formula(b,
                           "input_skip_bias_sum = input + skip + bias;"
                           "%s = LayerNormalization<epsilon>(input_skip_bias_sum, gamma, beta)",
                           cm_body_wants(b, 1) || cm_body_wants(b, 2) ? "output, mean, inv_std_var"
                                                                      : "output");
}

/* There is no beta here. No mean is taken, which counts as 0; what RMSNormalization divides by it
 * does not give itself. */
static enum cm_status skip_rms_norm_body(struct cm_body *b)
{
    return cm_body_formula(
        b,
        "input_skip_bias_sum = input + skip + bias; %s"
        "output = RMSNormalization<epsilon>(input_skip_bias_sum, gamma)",
        cm_body_wants(b, 1) || cm_body_wants(b, 2)
            ? "wide = float(input_skip_bias_sum); square = ReduceMean(wide * wide, [-1]);"
              "inv_std_var = Reciprocal(Sqrt(square + epsilon)); mean = inv_std_var * 0;"
            : "");
}

/* Rows of three tables are added: of the words, of their places (counted where no ids are given,
 * one row of ids counts for the whole batch), of their segments. mask_index is how many ones the
 * mask has in each row; zeros where there is no mask. */
CM_BODY(embed_layer_norm_body,
        "words = Gather(word_embedding, input_ids);"
        "places(t) = { n = Squeeze(Shape<start=1, end=2>(t), [0]); Range(0, n, 1) };"
        "rows = position_ids ? position_ids : places(input_ids);"
        "both = words + Gather(position_embedding, rows);"
        "segments = segment_ids ? segment_embedding ? Gather(segment_embedding, segment_ids) : none"
        "           : none;"
        "embedding_sum = both + segments;"
        "counts(t) = t ? ReduceSum<keepdims=0>(int32(Equal(t, 1)), [1])"
        "            : Expand(int32(0), Shape<start=0, end=1>(input_ids));"
        "mask_index = wants(mask_index) ? counts(mask) : none;"
        "output = LayerNormalization<epsilon>(embedding_sum, gamma, beta)")

/* The softmax goes over all axes from `axis` on, taken as one. */
CM_BODY(bias_softmax_body,
        "x = data + bias; output = Reshape(Softmax<axis=1>(Flatten<axis>(x)), Shape(x))")

CM_OP_IN(microsoft, "com.microsoft", SkipLayerNormalization, .body = skip_layer_norm_body);
CM_OP_IN(microsoft, "com.microsoft", SkipSimplifiedLayerNormalization, .body = skip_rms_norm_body);
CM_OP_IN(microsoft, "com.microsoft", EmbedLayerNormalization, .body = embed_layer_norm_body);
CM_OP_IN(microsoft, "com.microsoft", BiasSoftmax, .body = bias_softmax_body);
