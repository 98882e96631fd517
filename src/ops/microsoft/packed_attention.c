/* Attention of com.microsoft: projects its input to queries, keys and values by one matrix. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/attention_parts.h"

enum { IN_INPUT, IN_WEIGHTS, IN_BIAS, IN_MASK, IN_PAST, IN_ATTENTION_BIAS, IN_PAST_LENGTH };
enum { OUT_RESULT, OUT_PRESENT };

#define SPLIT_HEADS                                                                                \
    "x = apart(q, num_heads); y = apart(k, num_heads); z = apart(v, num_heads) -> x, y, z"

/* Queries, keys and values lie side by side in the last axis. */
static enum cm_status project(struct cm_body *b, struct cm_attention_parts *parts)
{
    const struct cm_int64s sizes = cm_node_ints(b->node, "qkv_hidden_sizes");
    cm_value v[3];
    if (sizes.count != 0 && sizes.count != 3)
        return cm_body_decline(b, "attribute 'qkv_hidden_sizes' has %zu sizes, needs 3",
                               sizes.count);
    cm_body_values(b, v,
                   sizes.count ? "x:" CM_HEADS "all = MatMul(x, weights) + bias;"
                                 "q, k, v = Split<axis=-1>(all, qkv_hidden_sizes);" SPLIT_HEADS
                               : "x:" CM_HEADS "all = MatMul(x, weights) + bias;"
                                 "q, k, v = Split<axis=-1, num_outputs=3>(all);" SPLIT_HEADS,
                   cm_body_input(b, IN_INPUT));
    parts->q = v[0];
    parts->k = v[1];
    parts->v = v[2];
    return b->build.status;
}

static cm_value past_part(struct cm_body *b, int64_t part)
{
    const cm_value past = cm_body_input(b, IN_PAST);
    return past ? cm_emit(b, "Gather", past, cm_build_int64(&b->build, part)) : 0;
}

static enum cm_status attention_body(struct cm_body *b)
{
    const struct cm_node *node = b->node;
    const int64_t heads = cm_node_int(node, "num_heads");
    struct cm_attention_parts parts = {.past_key = past_part(b, 0),
                                       .past_value = past_part(b, 1),
                                       .causal = cm_node_int(node, "unidirectional") != 0,
                                       .scale = cm_node_float(node, "scale"),
                                       .wants_present = cm_body_wants(b, OUT_PRESENT)};
    if (heads < 1)
        return cm_body_decline(b, "attribute 'num_heads' is %lld, expected 1 or more",
                               (long long)heads);
    if (cm_node_int(node, "do_rotary"))
        return cm_body_decline(b, "attribute 'do_rotary' is not supported");
    if (cm_node_int(node, "past_present_share_buffer") || cm_body_input(b, IN_PAST_LENGTH))
        return cm_body_decline(b,
                               "a past that shares its buffer with the present is not supported");
    CM_TRY(project(b, &parts));
    CM_TRY(cm_compose_key_mask(b, &parts, cm_body_input(b, IN_MASK), cm_body_input(b, IN_INPUT), 0,
                               1));
    parts.mask = cm_emit_formula(b, "mask, bias: mask + bias", parts.mask,
                                 cm_body_input(b, IN_ATTENTION_BIAS));
    cm_compose_attention(b, &parts);
    CM_TRY(cm_body_return(b, OUT_RESULT, cm_compose_heads_together(b, parts.result)));
    if (!parts.wants_present)
        return CM_OK;
    return cm_body_return(
        b, OUT_PRESENT,
        cm_emit_formula(b, "k, v: Concat<axis=0>(Unsqueeze(k, [0]), Unsqueeze(v, [0]))",
                        parts.present_key, parts.present_value));
}

CM_OP_IN(microsoft, "com.microsoft", Attention, .body = attention_body);
