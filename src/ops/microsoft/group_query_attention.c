/* GroupQueryAttention of com.microsoft: several heads of queries to one of keys, rotated places,
 * and a cache of keys and values in which the sequences of a batch may have different lengths. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/attention_parts.h"

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

static bool keeps_window(const struct cm_body *b)
{
    return cm_node_int(b->node, "sliding_window_cache") != 0;
}

/* Queries, keys and values lie side by side where there is one operand for all. */
#define OPERANDS                                                                                   \
    "take(t, from, to) = Slice(t, [from], [to], [1]);"                                             \
    "all = key ? none : apart(query, num_heads + 2 * kv_num_heads);"                               \
    "q = key ? apart(query, num_heads) : take(all, 0, num_heads);"                                 \
    "k = key ? apart(key, kv_num_heads) : take(all, num_heads, num_heads + kv_num_heads);"         \
    "v = key ? apart(value, kv_num_heads)"                                                         \
    "  : take(all, num_heads + kv_num_heads, num_heads + 2 * kv_num_heads);"                       \
    "q = q_norm_weight ? RMSNormalization<epsilon=qk_norm_epsilon>(q, q_norm_weight) : q;"         \
    "k = k_norm_weight ? RMSNormalization<epsilon=qk_norm_epsilon>(k, k_norm_weight) : k;"

/* Sizes and positions; (batch, 1) where nothing else is said. Row i of a cache holds position
 * first + i of its sequence. A window cache (attribute sliding_window_cache) evicts: there first
 * may be above 0, and the rows after `rows` hold nothing; the cache of `room` rows drops `step`
 * tokens at once, and `resident` of t tokens are left. It has at least as many rows as the window;
 * the Gather fails where it has fewer. A first prompt is as long as the longest sequence will be,
 * and has no past.
 *   length         scalar: new elements of each sequence
 *   valid, past    keys that each sequence has had, the new ones included; those before
 *   room           scalar: rows of the present cache
 *   rows, first    of the present cache: rows in use, position of the first
 *   pastrows, pastfirst   the same of the past cache */
#define SEQUENCES                                                                                  \
    "size(t, i) = Squeeze(Shape<start=i, end=i + 1>(t), [0]); range(t) = Range(0, t, 1);"          \
    "window = sliding_window_cache;"                                                               \
    "zero = int64(0); total = Reshape(int64(total_sequence_length), []); length = size(q, 2);"     \
    "valid = Reshape(int64(seqlens_k), [-1, 1]) + 1;"                                              \
    "past = Where(Equal(length, total), zero, valid - length);"                                    \
    "room = window ? size(past_key, 2) : past_key ? Max(size(past_key, 2), total) : length;"       \
    "width(t) = Gather([local_window_size], int64(Less(t, local_window_size)));"                   \
    "step = window ? room - width(room) + 1 : none;"                                               \
    "resident(t) = { over = Max(t - room, 0); t - (over + (step - 1)) / step * step };"            \
    "rows = window ? resident(valid) : past + length; first = window ? valid - rows : zero;"       \
    "pastrows = window ? resident(past) : none; pastfirst = window ? past - pastrows : zero;"

#define ROTATED                                                                                    \
    "positions = do_rotary ? position_ids ? position_ids : past + range(length) : none;"           \
    "turn(t) = do_rotary"                                                                          \
    "  ? RotaryEmbedding<interleaved=(rotary_interleaved ? 1 : 0), rotary_embedding_dim=turned>("  \
    "      t, cos_cache, sin_cache, positions)"                                                    \
    "  : t;"                                                                                       \
    "q = turn(q); k = turn(k);"

/* A quantized cache holds x / scale: int8, or two values of 4 bits in a byte, the first of two
 * neighbours in the low half, or float8e4m3fn. */
#define QUANTIZED                                                                                  \
    "nibbles = dtype(past_key) == uint8; half = nibbles ? 8 : 128;"                                \
    "pack(t) = { sizes = Shape<start=0, end=3>(t); offset = t + half;"                             \
    "  pairs = Reshape(offset, Concat<axis=0>(sizes, [-1, 2]));"                                   \
    "  high = Slice(pairs, [1], [2], [4]) * 16; both = Slice(pairs, [0], [1], [4]) + high;"        \
    "  Reshape(both, Concat<axis=0>(sizes, [-1])) };"                                              \
    "clip(t) = Clip(Round(t), -half, half - 1);"                                                   \
    "code(t) = dtype(past_key) == float8e4m3fn ? t : nibbles ? pack(clip(t)) : clip(t);"           \
    "store(t, scale) = scale ? cast(code(float(t) / scale), past_key) : t;"                        \
    "unpack(t) = { byte = Unsqueeze(t, [4]); high = Floor(byte * 0.0625); low = byte - high * 16;" \
    "  sizes = Concat<axis=0>(Shape<start=0, end=3>(t), [-1]);"                                    \
    "  Reshape(Concat<axis=4>(low, high), sizes) - 8 };"                                           \
    "load(t, scale) ="                                                                             \
    "  scale ? cast((nibbles ? unpack(float(t)) : float(t)) * scale, q) : t;"                      \
    "newk = store(k, kscale); newv = store(v, vscale);"

/* sources(t): where each row of the present cache comes from, (batch, room, 1): an index into past
 * and new rows one after the other, and one of zeros behind them.
 * seen(t): the same for the rows that queries are compared with where a window cache is kept: all
 * past and new ones, because a new query may see a key that its step evicts. Rows that are not in
 * use may hold anything, so zeros are read instead.
 * cached(old, t, at): (batch, heads, rows, size), the rows of old and new elements at these places,
 * by way of a type that Concat takes. */
#define CACHED                                                                                     \
    "sources(t) = { before = size(t, 2); row = range(room); place = row + first;"                  \
    "  old = place - pastfirst; fresh = place - past + before; empty = before + length;"           \
    "  later = Where(Less(row, rows), fresh, empty);"                                              \
    "  Unsqueeze(Where(Less(place, past), old, later), [2]) };"                                    \
    "seen(t) = { empty = t + length; row = range(empty);"                                          \
    "  used = Or(Less(row, pastrows), GreaterOrEqual(row, t));"                                    \
    "  Unsqueeze(Where(used, row, empty), [2]) };"                                                 \
    "pad(t) = Pad(t, Concat<axis=0>([0, 0, 0, 0, 0, 0], [1], [0]));"                               \
    "wide(t) = dtype(t) == float8e4m3fn ? float(t) : t; swap(t) = Transpose<perm=[0, 2, 1, "       \
    "3]>(t);"                                                                                      \
    "picked(t, at) = swap(GatherND<batch_dims=1>(swap(pad(t)), at));"                              \
    "cached(old, t, at) ="                                                                         \
    "  at ? cast(picked(Concat<axis=2>(wide(old), wide(t)), at), t) : t;"                          \
    "at = past_key ? sources(past_key) : none;"                                                    \
    "present_key = cached(past_key, newk, at); present_value = cached(past_value, newv, at);"      \
    "at = window ? seen(room) : none;"                                                             \
    "k = load(window ? cached(past_key, newk, at) : present_key, kscale);"                         \
    "v = load(window ? cached(past_value, newv, at) : present_value, vscale);"

/* keys: the position of each key that queries are compared with, to be broadcast to (batch, 1, 1,
 * keys). Rows of a window cache that are not in use count as behind the end.
 * allowed, (batch, 1, length, keys): which keys may a query see? */
#define ALLOWED                                                                                    \
    "places(t) = { row = range(t); old = Where(Less(row, pastrows), row + pastfirst, valid);"      \
    "  Unsqueeze(Concat<axis=1>(old, range(length) + past), [1, 2]) };"                            \
    "keys = window ? places(room) : range(room);"                                                  \
    "here = Unsqueeze(range(length), [1]) + Reshape(past, [-1, 1, 1, 1]);"                         \
    "allowed = Less(keys, Reshape(valid, [-1, 1, 1, 1]));"                                         \
    "allowed = causal ? And(allowed, LessOrEqual(keys, here)) : allowed;"                          \
    "allowed = local ? And(allowed, Greater(keys, here - local_window_size)) : allowed;"

/* The bias of each key. The operand has a column for each position; a cache may have rows for
 * more, and a window cache has rows for some (of those not in use: any column). */
#define BIASED                                                                                     \
    "longer(t) = { missing = room - Shape<start=3, end=4>(t);"                                     \
    "  Pad(t, Concat<axis=0>([0, 0, 0, 0, 0, 0, 0], missing)) };"                                  \
    "chosen(t) = { columns = Shape<start=3, end=4>(t); one = [1];"                                 \
    "  batch = Shape<start=0, end=1>(keys); middle = Shape<start=1, end=3>(t);"                    \
    "  wide = Expand(t, Concat<axis=0>(batch, [1, 1, 1])); last = columns - one;"                  \
    "  at = Expand(Min(keys, last), Concat<axis=0>(batch, middle, one));"                          \
    "  GatherElements<axis=3>(wide, at) };"                                                        \
    "mask = Where(allowed, like(q, 0), like(q, -inf));"                                            \
    "bias = attention_bias;"                                                                       \
    "mask = mask + (bias ? past_key ? window ? chosen(bias) : longer(bias) : bias : none);"

/* One more key that scores the head's sink, or 0, and has nothing to give: it only takes its part
 * of the softmax. */
#define WITH_SINK                                                                                  \
    "sunk(t) = { score = head_sink ? Reshape(head_sink, [1, num_heads, 1, 1]) : like(q, 0);"       \
    "  zeros = Expand(like(q, 0), head_sink ? [1, num_heads, 1, 1] : [1, 1, 1, 1]); s = t + "      \
    "zeros;"                                                                                       \
    "  Concat<axis=3>(s, Expand(score, Concat<axis=0>(Shape<start=0, end=3>(s), [1]))) };"         \
    "mask = sink ? sunk(mask) : mask; k = sink ? pad(k) : k; v = sink ? pad(v) : v"

static bool is_quantized(enum cm_dtype type)
{
    return type == CM_INT8 || type == CM_UINT8 || type == CM_FLOAT8E4M3FN;
}

static enum cm_status check_cache(struct cm_body *b, int past, int scale, const char *attribute)
{
    const struct cm_str mode = cm_node_str(b->node, attribute);
    const int64_t bits = cm_node_int(b->node, "kv_cache_bit_width");
    const bool plain = cm_str_is(mode, "NONE");
    const struct cm_type *cache = cm_builder_type(&b->build, cm_body_input(b, past));
    const enum cm_dtype type = cache ? cache->dtype : CM_FLOAT;
    if (!plain && !cm_str_is(mode, "PER_CHANNEL") && !cm_str_is(mode, "PER_TENSOR"))
        return cm_body_decline(
            b, "attribute '%s' is '%.*s', expected 'NONE', 'PER_TENSOR' or 'PER_CHANNEL'",
            attribute, CM_STR_FMT(mode));
    if (plain != !is_quantized(type))
        return cm_body_decline(b, "attribute '%s' is '%.*s', but input %d has type %s", attribute,
                               CM_STR_FMT(mode), past, cm_dtype_name(type));
    if (plain)
        return CM_OK;
    if (!cm_body_input(b, scale))
        return cm_body_decline(b, "a quantized cache needs input %d, its scale", scale);
    if (bits != 0 && bits != (type == CM_UINT8 ? 4 : 8))
        return cm_body_decline(b,
                               "attribute 'kv_cache_bit_width' is %lld, but the cache has type %s",
                               (long long)bits, cm_dtype_name(type));
    return CM_OK;
}

static enum cm_status check_supported(struct cm_body *b)
{
    const struct cm_node *node = b->node;
    const int64_t heads = cm_node_int(node, "num_heads"), kv = cm_node_int(node, "kv_num_heads");
    if (heads < 1 || kv < 1 || heads > INT32_MAX || kv > INT32_MAX)
        return cm_body_decline(
            b, "attributes 'num_heads' and 'kv_num_heads' are %lld and %lld, expected 1 or more",
            (long long)heads, (long long)kv);
    if (!cm_body_input(b, IN_KEY) != !cm_body_input(b, IN_VALUE) ||
        !cm_body_input(b, IN_PAST_KEY) != !cm_body_input(b, IN_PAST_VALUE))
        return cm_body_decline(b,
                               "only one of keys and values is present, expected both or neither");
    if (keeps_window(b) &&
        (cm_node_int(node, "local_window_size") < 1 || !cm_body_input(b, IN_PAST_KEY)))
        return cm_body_decline(
            b, "attribute 'sliding_window_cache' needs inputs 3 and 4, past_key and "
               "past_value, and a local_window_size of 1 or more");
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
    cm_value v[5];
    CM_TRY(check_supported(b));
    if (parts.wants_scores && keeps_window(b))
        return cm_body_decline(b, "output 3 is not defined for a window cache");
    if (parts.wants_scores && shown != SCORES_BEFORE && shown != SCORES_AFTER)
        return cm_body_decline(b, "output 3 needs attribute 'qk_output' to be 1 or 2");
    CM_TRY(check_cache(b, IN_PAST_KEY, IN_KEY_SCALE, "k_quant_type"));
    CM_TRY(check_cache(b, IN_PAST_VALUE, IN_VALUE_SCALE, "v_quant_type"));
    static const char cached[] = CM_HEADS
        "fit(t) = Reshape(t, [1, kv_num_heads, 1, -1]); one(t) = Reshape(t, [1]);"
        "kscale = k_quant_type == 'NONE' ? none"
        "  : k_quant_type == 'PER_TENSOR' ? one(k_scale) : fit(k_scale);"
        "vscale = v_quant_type == 'NONE' ? none"
        "  : v_quant_type == 'PER_TENSOR' ? one(v_scale) : fit(v_scale);" OPERANDS SEQUENCES ROTATED
            QUANTIZED CACHED;
    static const char masked[] = ALLOWED BIASED WITH_SINK;
    const struct cm_str text = cm_arena_printf(
        cm_builder_arena(&b->build),
        "query: turned = %lld; local = %d; sink = %d; %s %s -> q, k, v, mask, allowed",
        (long long)cm_compose_turned(b, cm_body_input(b, IN_COSINES), 0),
        cm_node_int(b->node, "local_window_size") >= 0, has_sink, cached, masked);
    cm_body_values(b, v, cm_str_text(text), cm_body_input(b, IN_QUERY));
    parts.q = v[0];
    parts.k = v[1];
    parts.v = v[2];
    parts.mask = v[3];
    cm_compose_attention(b, &parts);
    /* Scores without the sink's, and 0 where a key must not be seen. */
    if (parts.wants_scores)
        CM_TRY(cm_body_return(
            b, OUT_SCORES,
            cm_emit_formula(b,
                            has_sink ? "scores, allowed: own = Slice(scores, [0], [-1], [3]);"
                                       "Where(allowed, own, 0)"
                                     : "scores, allowed: Where(allowed, scores, 0)",
                            parts.scores, v[4])));
    return cm_body_return(b, OUT_RESULT, cm_compose_heads_together(b, parts.result));
}

CM_OP_IN(microsoft, "com.microsoft", GroupQueryAttention, .body = group_query_attention_body);
