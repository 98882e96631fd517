/* RotaryEmbedding of com.microsoft, which finds out more by itself than ONNX's. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/attention_parts.h"

enum { IN_INPUT, IN_POSITIONS, IN_COSINES, IN_SINES };

/* One position is that of the first element of every sequence. Without num_heads a row of the
 * caches is half a head. */
static enum cm_status rotary_embedding_body(struct cm_body *b)
{
    const struct cm_type *x = cm_builder_type(&b->build, cm_body_input(b, IN_INPUT));
    const struct cm_type *positions = cm_builder_type(&b->build, cm_body_input(b, IN_POSITIONS));
    cm_value v[2]; /* heads apart, positions */
    if (x->rank != 3 && x->rank != 4)
        return cm_body_decline(b, "the rank of input 0 must be known to be 3 or 4");
    if (positions->rank == CM_RANK_UNKNOWN)
        return cm_body_decline(b, "the rank of position_ids is not known");
    cm_body_values(
        b, v,
        "x, sines:" CM_HEADS "size(t) = Concat<axis=0>([0, 0, -1], [2] * Shape<start=1, end=2>(t));"
        "split(t) = num_heads ? apart(t, num_heads)"
        "  : Transpose<perm=[0, 2, 1, 3]>(Reshape(t, size(cos_cache)));"
        "heads = rank(x) == 4 ? x : split(x);"
        "length = Squeeze(Shape<start=2, end=3>(heads), [0]); batch = Shape<start=0, end=1>(x);"
        "all(t) = { sums = Range(0, length, 1) + t; Expand(sums, Concat<axis=0>(batch, [1])) };"
        "positions = rank(position_ids) == 2 ? position_ids : all(position_ids)"
        "-> heads, positions",
        cm_body_input(b, IN_INPUT), cm_body_input(b, IN_SINES));
    const struct cm_rotation rotation = {.cosines = cm_body_input(b, IN_COSINES),
                                         .sines = cm_body_input(b, IN_SINES),
                                         .positions = v[1],
                                         .interleaved = cm_node_int(b->node, "interleaved") != 0,
                                         .turned = cm_node_int(b->node, "rotary_embedding_dim")};
    const cm_value turned = cm_compose_rotary(b, &rotation, v[0]);
    return cm_body_return(b, 0, x->rank == 4 ? turned : cm_compose_heads_together(b, turned));
}

CM_OP_IN(microsoft, "com.microsoft", RotaryEmbedding, .body = rotary_embedding_body);
