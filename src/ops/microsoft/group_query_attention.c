/* GroupQueryAttention of com.microsoft: several heads of queries to one of keys, rotated places,
 * and a cache of keys and values in which the sequences of a batch may have different lengths. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/attention_parts.h"

#include <math.h>

enum {
    IN_QUERY,
    IN_KEY,
    IN_VALUE,
    IN_PAST_KEY,
    IN_PAST_VALUE,
    IN_LAST_KEYS, /* (batch): the index of each sequence's last key */
    IN_TOTAL,
    IN_COSINES,
    IN_SINES,
    IN_POSITIONS,
    IN_ATTENTION_BIAS,
    IN_HEAD_SINK,
    IN_KEY_SCALE,
    IN_VALUE_SCALE,
    IN_QUERY_NORM,
    IN_KEY_NORM
};
enum { OUT_RESULT, OUT_PRESENT_KEY, OUT_PRESENT_VALUE, OUT_SCORES };
enum { SCORES_BEFORE = 1, SCORES_AFTER = 2 }; /* attribute qk_output */

/* Sizes and places; (batch, 1) where nothing else is said. */
struct sequences {
    cm_value length; /* scalar: new elements of each sequence */
    cm_value valid;  /* keys that each sequence has, the new ones included */
    cm_value past;   /* those that were there before */
    cm_value room;   /* scalar: keys that the present cache has room for */
};

static cm_value integer(struct cm_body *b, int i)
{
    return cm_compose_cast(b, cm_body_input(b, i), CM_INT64);
}

/* A first prompt is as long as the longest sequence will be, and has no past. */
static struct sequences measure(struct cm_body *b, cm_value q)
{
    struct sequences s;
    const cm_value zero = cm_build_int64(&b->build, 0), past = cm_body_input(b, IN_PAST_KEY);
    const cm_value total =
        cm_emit(b, "Reshape", integer(b, IN_TOTAL), cm_build_int64s(&b->build, 0, NULL));
    s.length = cm_compose_dim(b, q, 2);
    s.valid = cm_emit(b, "Add", CM_COMPOSE_RESHAPE(b, integer(b, IN_LAST_KEYS), -1, 1),
                      cm_build_int64(&b->build, 1));
    s.past = cm_emit(b, "Where", cm_emit(b, "Equal", s.length, total), zero,
                     cm_emit(b, "Sub", s.valid, s.length));
    s.room = past ? cm_emit(b, "Max", cm_compose_dim(b, past, 2), total) : s.length;
    return s;
}

/* Queries, keys and values lie side by side where there is one operand for all. */
static void take_operands(struct cm_body *b, struct cm_attention_parts *parts)
{
    const int64_t heads = cm_node_int(b->node, "num_heads");
    const int64_t kv_heads = cm_node_int(b->node, "kv_num_heads");
    const cm_value query = cm_body_input(b, IN_QUERY);
    if (cm_body_input(b, IN_KEY)) {
        parts->q = cm_compose_heads_apart(b, query, heads);
        parts->k = cm_compose_heads_apart(b, cm_body_input(b, IN_KEY), kv_heads);
        parts->v = cm_compose_heads_apart(b, cm_body_input(b, IN_VALUE), kv_heads);
        return;
    }
    const cm_value all = cm_compose_heads_apart(b, query, heads + 2 * kv_heads);
    parts->q = cm_compose_slice(b, all, 1, 0, heads);
    parts->k = cm_compose_slice(b, all, 1, heads, heads + kv_heads);
    parts->v = cm_compose_slice(b, all, 1, heads + kv_heads, heads + 2 * kv_heads);
}

static cm_value normalized(struct cm_body *b, cm_value x, int weight)
{
    const cm_value scale = cm_body_input(b, weight);
    if (!scale)
        return x;
    const struct cm_attribute_proto epsilon = cm_attr_float(
        cm_builder_arena(&b->build), "epsilon", cm_node_float(b->node, "qk_norm_epsilon"));
    return cm_emit_with(b, "RMSNormalization", CM_ATTRIBUTES(epsilon), x, scale);
}

static void rotate(struct cm_body *b, struct cm_attention_parts *parts, const struct sequences *s)
{
    const cm_value given = cm_body_input(b, IN_POSITIONS);
    const struct cm_rotation rotation = {
        .cosines = cm_body_input(b, IN_COSINES),
        .sines = cm_body_input(b, IN_SINES),
        .positions = given ? given : cm_emit(b, "Add", s->past, cm_compose_range(b, s->length)),
        .interleaved = cm_node_int(b->node, "rotary_interleaved") != 0};
    parts->q = cm_compose_rotary(b, &rotation, parts->q);
    parts->k = cm_compose_rotary(b, &rotation, parts->k);
}

/* Where each element of the present cache comes from, (batch, room, 1): an index into past and new
 * elements one after the other, and one of zeros behind them. */
static cm_value cache_sources(struct cm_body *b, const struct sequences *s)
{
    const cm_value before = cm_compose_dim(b, cm_body_input(b, IN_PAST_KEY), 2);
    const cm_value places = cm_compose_range(b, s->room);
    const cm_value end = cm_emit(b, "Add", s->past, s->length);
    const cm_value fresh = cm_emit(b, "Add", cm_emit(b, "Sub", places, s->past), before);
    const cm_value zeros = cm_emit(b, "Add", before, s->length);
    const cm_value later = cm_emit(b, "Where", cm_emit(b, "Less", places, end), fresh, zeros);
    return CM_COMPOSE_UNSQUEEZE(
        b, cm_emit(b, "Where", cm_emit(b, "Less", places, s->past), places, later), 2);
}

/* x with n zeros behind its elements along axis 2; n is a list of one. */
static cm_value padded(struct cm_body *b, cm_value x, cm_value n)
{
    return cm_emit(
        b, "Pad", x,
        CM_COMPOSE_CONCAT(b, 0, cm_emit_int64s(b, 0, 0, 0, 0, 0, 0), n, cm_emit_int64s(b, 0)));
}

/* (batch, heads, room, size): the past of each sequence, then what is new, then zeros. */
static cm_value cached(struct cm_body *b, int past, cm_value x, cm_value sources)
{
    const struct cm_attribute_proto batch =
        cm_attr_int(cm_builder_arena(&b->build), "batch_dims", 1);
    if (!sources)
        return x;
    const cm_value both = CM_COMPOSE_CONCAT(b, 2, cm_body_input(b, past), x);
    const cm_value rows =
        CM_COMPOSE_TRANSPOSE(b, padded(b, both, cm_emit_int64s(b, 1)), 0, 2, 1, 3);
    return CM_COMPOSE_TRANSPOSE(b, cm_emit_with(b, "GatherND", CM_ATTRIBUTES(batch), rows, sources),
                                0, 2, 1, 3);
}

/* (batch, 1, length, room): which keys may a query see? */
static cm_value allowed_keys(struct cm_body *b, const struct sequences *s)
{
    const int64_t window = cm_node_int(b->node, "local_window_size");
    const cm_value keys = cm_compose_range(b, s->room);
    const cm_value query =
        cm_emit(b, "Add", CM_COMPOSE_UNSQUEEZE(b, cm_compose_range(b, s->length), 1),
                CM_COMPOSE_RESHAPE(b, s->past, -1, 1, 1, 1));
    cm_value allowed = cm_emit(b, "Less", keys, CM_COMPOSE_RESHAPE(b, s->valid, -1, 1, 1, 1));
    if (cm_node_int(b->node, "causal"))
        allowed = cm_emit(b, "And", allowed, cm_emit(b, "LessOrEqual", keys, query));
    if (window >= 0)
        allowed = cm_emit(b, "And", allowed,
                          cm_emit(b, "Greater", keys,
                                  cm_emit(b, "Sub", query, cm_build_int64(&b->build, window))));
    return allowed;
}

/* The bias is for as many keys as there are in all; the cache may have room for more. */
static cm_value bias_for(struct cm_body *b, const struct sequences *s)
{
    const cm_value bias = cm_body_input(b, IN_ATTENTION_BIAS);
    if (!bias || !cm_body_input(b, IN_PAST_KEY))
        return bias;
    const cm_value missing = cm_emit(b, "Sub", s->room, cm_compose_dims(b, bias, 3, 4));
    return cm_emit(b, "Pad", bias,
                   CM_COMPOSE_CONCAT(b, 0, cm_emit_int64s(b, 0, 0, 0, 0, 0, 0, 0), missing));
}

/* One more key that scores the head's sink, or 0, and has nothing to give: it only takes its part
 * of the softmax. */
static void add_sink(struct cm_body *b, struct cm_attention_parts *parts)
{
    const int64_t heads = cm_node_int(b->node, "num_heads");
    const cm_value sink = cm_body_input(b, IN_HEAD_SINK), one = cm_emit_int64s(b, 1);
    const cm_value score =
        sink ? CM_COMPOSE_RESHAPE(b, sink, 1, heads, 1, 1) : cm_emit_scalar_like(b, parts->q, 0);
    const cm_value zeros = cm_emit(b, "Expand", cm_emit_scalar_like(b, parts->q, 0),
                                   cm_emit_int64s(b, 1, sink ? heads : 1, 1, 1));
    const cm_value mask = cm_emit(b, "Add", parts->mask, zeros);
    const cm_value shape = CM_COMPOSE_CONCAT(b, 0, cm_compose_dims(b, mask, 0, 3), one);
    parts->mask = CM_COMPOSE_CONCAT(b, 3, mask, cm_emit(b, "Expand", score, shape));
    parts->k = padded(b, parts->k, one);
    parts->v = padded(b, parts->v, one);
}

/* Scores without the sink's, and 0 where a key must not be seen. */
static cm_value shown_scores(struct cm_body *b, cm_value scores, cm_value allowed, bool has_sink)
{
    const cm_value own = has_sink ? cm_compose_slice(b, scores, 3, 0, -1) : scores;
    return cm_emit(b, "Where", allowed, own, cm_emit_scalar_like(b, scores, 0));
}

static enum cm_status check_supported(struct cm_body *b)
{
    const struct cm_node *node = b->node;
    const int64_t heads = cm_node_int(node, "num_heads"), kv = cm_node_int(node, "kv_num_heads");
    if (heads < 1 || kv < 1 || heads > INT32_MAX || kv > INT32_MAX)
        return cm_body_decline(
            b, "attributes 'num_heads' and 'kv_num_heads' are %lld and %lld, expected 1 or more",
            (long long)heads, (long long)kv);
    if (!cm_str_is(cm_node_str(node, "k_quant_type"), "NONE") ||
        !cm_str_is(cm_node_str(node, "v_quant_type"), "NONE") || cm_body_input(b, IN_KEY_SCALE) ||
        cm_body_input(b, IN_VALUE_SCALE))
        return cm_body_decline(b, "a quantized cache is not supported");
    if (cm_node_int(node, "sliding_window_cache"))
        return cm_body_decline(b, "attribute 'sliding_window_cache' is not supported");
    if (!cm_body_input(b, IN_KEY) != !cm_body_input(b, IN_VALUE) ||
        !cm_body_input(b, IN_PAST_KEY) != !cm_body_input(b, IN_PAST_VALUE))
        return cm_body_decline(b, "only one of keys and values is present, expected both or neither");
    if (cm_node_int(node, "do_rotary") &&
        (!cm_body_input(b, IN_COSINES) || !cm_body_input(b, IN_SINES)))
        return cm_body_decline(b, "do_rotary needs cos_cache and sin_cache");
    return CM_OK;
}

static enum cm_status group_query_attention_body(struct cm_body *b)
{
    const int64_t shown = cm_node_int(b->node, "qk_output");
    const bool has_sink =
        cm_node_int(b->node, "smooth_softmax") > 0 || cm_body_input(b, IN_HEAD_SINK);
    struct cm_attention_parts parts = {.scale = cm_node_float(b->node, "scale"),
                                       .softcap = cm_node_float(b->node, "softcap"),
                                       .wants_scores = cm_body_wants(b, OUT_SCORES),
                                       .scores_mode = shown == SCORES_AFTER ? 3 : 2};
    CM_TRY(check_supported(b));
    if (parts.wants_scores && shown != SCORES_BEFORE && shown != SCORES_AFTER)
        return cm_body_decline(b, "output 3 needs attribute 'qk_output' to be 1 or 2");
    take_operands(b, &parts);
    parts.q = normalized(b, parts.q, IN_QUERY_NORM);
    parts.k = normalized(b, parts.k, IN_KEY_NORM);
    const struct sequences s = measure(b, parts.q);
    if (cm_node_int(b->node, "do_rotary"))
        rotate(b, &parts, &s);
    const cm_value sources = cm_body_input(b, IN_PAST_KEY) ? cache_sources(b, &s) : 0;
    parts.k = cached(b, IN_PAST_KEY, parts.k, sources);
    parts.v = cached(b, IN_PAST_VALUE, parts.v, sources);
    CM_TRY(cm_body_return(b, OUT_PRESENT_KEY, parts.k));
    CM_TRY(cm_body_return(b, OUT_PRESENT_VALUE, parts.v));
    const cm_value allowed = allowed_keys(b, &s);
    parts.mask = cm_emit(b, "Where", allowed, cm_emit_scalar_like(b, parts.q, 0),
                         cm_emit_scalar_like(b, parts.q, (double)-INFINITY));
    parts.mask = cm_compose_add(b, parts.mask, bias_for(b, &s));
    if (has_sink)
        add_sink(b, &parts);
    cm_compose_attention(b, &parts);
    if (parts.wants_scores)
        CM_TRY(cm_body_return(b, OUT_SCORES, shown_scores(b, parts.scores, allowed, has_sink)));
    return cm_body_return(b, OUT_RESULT, cm_compose_heads_together(b, parts.result));
}

CM_OP_IN(microsoft, "com.microsoft", GroupQueryAttention, .body = group_query_attention_body);
