/* RotaryEmbedding of com.microsoft, which finds out more by itself than ONNX's. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/attention_parts.h"

enum { IN_INPUT, IN_POSITIONS, IN_COSINES, IN_SINES };

/* One position is that of the first element of every sequence. */
static cm_value positions_of(struct cm_body *b, cm_value batch, cm_value length)
{
    const cm_value given = cm_body_input(b, IN_POSITIONS);
    const struct cm_type *type = cm_compose_type(b, given);
    if (type->rank == 2)
        return given;
    const cm_value places = cm_emit(b, "Add", cm_compose_range(b, length), given);
    return cm_emit(b, "Expand", places, CM_COMPOSE_CONCAT(b, 0, batch, cm_emit_int64s(b, 1)));
}

/* Without num_heads a row of the caches is half a head. */
static cm_value heads_apart(struct cm_body *b, cm_value x)
{
    const int64_t heads = cm_node_int(b->node, "num_heads");
    if (heads)
        return cm_compose_heads_apart(b, x, heads);
    const cm_value size = cm_emit(b, "Mul", cm_emit_int64s(b, 2),
                                  cm_compose_dims(b, cm_body_input(b, IN_COSINES), 1, 2));
    const cm_value shape = CM_COMPOSE_CONCAT(b, 0, cm_emit_int64s(b, 0, 0, -1), size);
    return CM_COMPOSE_TRANSPOSE(b, cm_emit(b, "Reshape", x, shape), 0, 2, 1, 3);
}

static enum cm_status rotary_embedding_body(struct cm_body *b)
{
    const cm_value x = cm_body_input(b, IN_INPUT);
    const int rank = cm_compose_rank(b, x);
    if (rank != 3 && rank != 4)
        return cm_body_decline(b, "the rank of input 0 must be known to be 3 or 4");
    if (cm_compose_rank(b, cm_body_input(b, IN_POSITIONS)) == CM_RANK_UNKNOWN)
        return cm_body_decline(b, "the rank of position_ids is not known");
    const cm_value apart = rank == 4 ? x : heads_apart(b, x);
    const struct cm_rotation rotation = {
        .cosines = cm_body_input(b, IN_COSINES),
        .sines = cm_body_input(b, IN_SINES),
        .positions = positions_of(b, cm_compose_dims(b, x, 0, 1), cm_compose_dim(b, apart, 2)),
        .interleaved = cm_node_int(b->node, "interleaved") != 0,
        .turned = cm_node_int(b->node, "rotary_embedding_dim")};
    const cm_value turned = cm_compose_rotary(b, &rotation, apart);
    return cm_body_return(b, 0, rank == 4 ? turned : cm_compose_heads_together(b, turned));
}

CM_OP_IN(microsoft, "com.microsoft", RotaryEmbedding, .body = rotary_embedding_body);
