/* MultiHeadAttention of com.microsoft: queries, keys and values apart or packed. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/attention_parts.h"

enum {
    IN_QUERY,
    IN_KEY,
    IN_VALUE,
    IN_BIAS,
    IN_MASK,
    IN_ATTENTION_BIAS,
    IN_PAST_KEY,
    IN_PAST_VALUE,
    IN_PAST_LENGTH,
    IN_INDIRECTION
};
enum { OUT_RESULT, OUT_PRESENT_KEY, OUT_PRESENT_VALUE, OUT_SCORES };

/* Elements [from, to) of the bias; to 0: all that are left. Both are lists of one. */
static cm_value bias_part(struct cm_body *b, cm_value from, cm_value to)
{
    const cm_value end = to ? to : cm_emit_int64s(b, INT64_MAX);
    return cm_emit(b, "Slice", cm_body_input(b, IN_BIAS), from, end, cm_emit_int64s(b, 0));
}

/* Part `part` of (batch, length, heads, parts, size), as (batch, heads, length, size). */
static cm_value unpacked(struct cm_body *b, cm_value x, int64_t part)
{
    const struct cm_attribute_proto axis = cm_attr_int(cm_builder_arena(&b->build), "axis", 3);
    const cm_value piece =
        cm_emit_with(b, "Gather", CM_ATTRIBUTES(axis), x, cm_build_int64(&b->build, part));
    return CM_COMPOSE_TRANSPOSE(b, piece, 0, 2, 1, 3);
}

/* A bias for packed operands, (parts * heads * size), as (heads, parts, size). */
static cm_value with_packed_bias(struct cm_body *b, cm_value x, cm_value bias, int64_t parts)
{
    const int64_t heads = cm_node_int(b->node, "num_heads");
    if (!bias)
        return x;
    const cm_value apart = CM_COMPOSE_RESHAPE(b, bias, parts, heads, -1);
    return cm_emit(b, "Add", x, CM_COMPOSE_TRANSPOSE(b, apart, 1, 0, 2));
}

static void take_packed_all(struct cm_body *b, struct cm_attention_parts *parts)
{
    const cm_value all =
        with_packed_bias(b, cm_body_input(b, IN_QUERY), cm_body_input(b, IN_BIAS), 3);
    parts->q = unpacked(b, all, 0);
    parts->k = unpacked(b, all, 1);
    parts->v = unpacked(b, all, 2);
}

/* Keys and values of rank 3 get their part of the bias. Those of rank 4 have heads apart already,
 * and their bias in them: they were computed in an earlier step. */
static enum cm_status take_operands(struct cm_body *b, struct cm_attention_parts *parts)
{
    const int64_t heads = cm_node_int(b->node, "num_heads");
    const cm_value query = cm_body_input(b, IN_QUERY), key = cm_body_input(b, IN_KEY);
    const cm_value value = cm_body_input(b, IN_VALUE), bias = cm_body_input(b, IN_BIAS);
    const int rank = cm_compose_rank(b, key);
    if (!value && rank != 5)
        return cm_body_decline(b, "it has no values");
    const cm_value none = cm_emit_int64s(b, 0);
    const cm_value hidden = bias ? cm_compose_dims(b, query, 2, 3) : 0;
    const cm_value q = bias ? cm_emit(b, "Add", query, bias_part(b, none, hidden)) : query;
    if (rank == 4) {
        parts->q = cm_compose_heads_apart(b, q, heads);
        parts->k = key;
        parts->v = value;
    } else if (rank == 5) {
        const cm_value both = with_packed_bias(b, key, bias ? bias_part(b, hidden, 0) : 0, 2);
        parts->q = cm_compose_heads_apart(b, q, heads);
        parts->k = unpacked(b, both, 0);
        parts->v = unpacked(b, both, 1);
    } else {
        const cm_value twice = bias ? cm_emit(b, "Add", hidden, hidden) : 0;
        const cm_value k = bias ? cm_emit(b, "Add", key, bias_part(b, hidden, twice)) : key;
        const cm_value v = bias ? cm_emit(b, "Add", value, bias_part(b, twice, 0)) : value;
        parts->q = rank == 3 ? cm_compose_heads_apart(b, q, heads) : q;
        parts->k = rank == 3 ? cm_compose_heads_apart(b, k, heads) : k;
        parts->v = rank == 3 ? cm_compose_heads_apart(b, v, heads) : v;
        parts->q_heads = parts->kv_heads = rank == 3 ? 0 : heads; /* else it is refused later */
    }
    return b->build.status;
}

static enum cm_status set_mask(struct cm_body *b, struct cm_attention_parts *parts)
{
    const cm_value mask = cm_body_input(b, IN_MASK);
    if (mask) {
        const int length = parts->q_heads ? 1 : 2; /* the axis of queries, or keys */
        const cm_value past =
            parts->past_key ? cm_compose_dim(b, parts->past_key, 2) : cm_build_int64(&b->build, 0);
        const struct cm_key_mask key_mask = {
            .mask = mask,
            .like = parts->q,
            .batch = cm_compose_dims(b, parts->q, 0, 1),
            .queries = cm_compose_dim(b, parts->q, length),
            .past = past,
            .keys = cm_emit(b, "Add", past, cm_compose_dim(b, parts->k, length))};
        CM_TRY(cm_compose_key_mask(b, &key_mask, &parts->mask));
    }
    parts->mask = cm_compose_add(b, parts->mask, cm_body_input(b, IN_ATTENTION_BIAS));
    return b->build.status;
}

static enum cm_status multi_head_attention_body(struct cm_body *b)
{
    const struct cm_node *node = b->node;
    struct cm_attention_parts parts = {.past_key = cm_body_input(b, IN_PAST_KEY),
                                       .past_value = cm_body_input(b, IN_PAST_VALUE),
                                       .causal = cm_node_int(node, "unidirectional") != 0,
                                       .scale = cm_node_float(node, "scale"),
                                       .wants_present = cm_body_wants(b, OUT_PRESENT_KEY) ||
                                                        cm_body_wants(b, OUT_PRESENT_VALUE),
                                       .wants_scores = cm_body_wants(b, OUT_SCORES),
                                       .scores_mode = 2 /* with what was added to them */};
    if (cm_node_int(node, "num_heads") < 1)
        return cm_body_decline(b, "attribute 'num_heads' is %lld, expected 1 or more",
                               (long long)cm_node_int(node, "num_heads"));
    if (cm_body_input(b, IN_PAST_LENGTH) || cm_body_input(b, IN_INDIRECTION))
        return cm_body_decline(b,
                               "a past that shares its buffer with the present is not supported");
    if (cm_body_input(b, IN_KEY))
        CM_TRY(take_operands(b, &parts));
    else
        take_packed_all(b, &parts);
    CM_TRY(set_mask(b, &parts));
    cm_compose_attention(b, &parts);
    CM_TRY(cm_body_return(b, OUT_PRESENT_KEY, parts.present_key));
    CM_TRY(cm_body_return(b, OUT_PRESENT_VALUE, parts.present_value));
    CM_TRY(cm_body_return(b, OUT_SCORES, parts.scores));
    return cm_body_return(
        b, OUT_RESULT, parts.q_heads ? parts.result : cm_compose_heads_together(b, parts.result));
}

CM_OP_IN(microsoft, "com.microsoft", MultiHeadAttention, .body = multi_head_attention_body);
