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

/* piece(t, i): part i of (batch, length, heads, parts, size), as (batch, heads, length, size).
 * packed(t, bias, n): t and a bias for packed operands, (n * heads * size), as (heads, n, size).
 * part(from, to): elements [from, to) of the bias. */
#define PACKED                                                                                     \
    CM_HEADS                                                                                       \
    "piece(t, i) = Transpose<perm=[0, 2, 1, 3]>(Gather<axis=3>(t, int64(i)));"                     \
    "packed(t, bias, n) ="                                                                         \
    "  t + (bias ? Transpose<perm=[1, 0, 2]>(Reshape(bias, [n, num_heads, -1])) : none);"          \
    "part(from, to) = bias ? Slice(bias, from, to, [0]) : none;"
#define BIASED_QUERY                                                                               \
    "hidden = bias ? Shape<start=2, end=3>(query) : none; q = query + part([0], hidden);"

/* Keys and values of rank 3 get their part of the bias. Those of rank 4 have heads apart already,
 * and their bias in them: they were computed in an earlier step. Of another rank they are refused
 * later. */
static enum cm_status take_operands(struct cm_body *b, struct cm_attention_parts *parts)
{
    const struct cm_type *key = cm_builder_type(&b->build, cm_body_input(b, IN_KEY));
    cm_value v[3];
    if (key && !cm_body_input(b, IN_VALUE) && key->rank != 5)
        return cm_body_decline(b, "it has no values");
    cm_body_values(
        b, v,
        !key             ? "query:" PACKED "all = packed(query, bias, 3);"
                           "q = piece(all, 0); k = piece(all, 1); v = piece(all, 2) -> q, k, v"
        : key->rank == 4 ? "query:" PACKED BIASED_QUERY "q = apart(q, num_heads) -> q, key, value"
        : key->rank == 5
            ? "query:" PACKED BIASED_QUERY "both = packed(key, part(hidden, [inf]), 2);"
              "q = apart(q, num_heads); k = piece(both, 0); v = piece(both, 1) -> q, k, v"
            : "query:" PACKED BIASED_QUERY "twice = bias ? hidden + hidden : none;"
              "k = key + part(hidden, twice); v = value + part(twice, [inf]);"
              "heads(t) = rank(key) == 3 ? apart(t, num_heads) : t;"
              "q = heads(q); k = heads(k); v = heads(v) -> q, k, v",
        cm_body_input(b, IN_QUERY));
    parts->q = v[0];
    parts->k = v[1];
    parts->v = v[2];
    if (key && key->rank != 3 && key->rank != 4 && key->rank != 5)
        parts->q_heads = parts->kv_heads = cm_node_int(b->node, "num_heads");
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
    CM_TRY(take_operands(b, &parts));
    CM_TRY(cm_compose_key_mask(b, &parts, cm_body_input(b, IN_MASK), parts.q, parts.k,
                               parts.q_heads ? 1 : 2));
    parts.mask = cm_emit_formula(b, "mask, bias: mask + bias", parts.mask,
                                 cm_body_input(b, IN_ATTENTION_BIAS));
    cm_compose_attention(b, &parts);
    CM_TRY(cm_body_return(b, OUT_PRESENT_KEY, parts.present_key));
    CM_TRY(cm_body_return(b, OUT_PRESENT_VALUE, parts.present_value));
    CM_TRY(cm_body_return(b, OUT_SCORES, parts.scores));
    return cm_body_return(
        b, OUT_RESULT, parts.q_heads ? parts.result : cm_compose_heads_together(b, parts.result));
}

CM_OP_IN(microsoft, "com.microsoft", MultiHeadAttention, .body = multi_head_attention_body);
