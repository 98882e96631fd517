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

/* Sizes and positions; (batch, 1) where nothing else is said. Row i of a cache holds position
 * first + i of its sequence. A window cache (attribute sliding_window_cache) evicts: there first
 * may be above 0, and the rows after `rows` hold nothing. */
struct sequences {
    cm_value length;                /* scalar: new elements of each sequence */
    cm_value valid;                 /* keys that each sequence has had, the new ones included */
    cm_value past;                  /* those before the new ones */
    cm_value room;                  /* scalar: rows of the present cache */
    cm_value rows, first;           /* of the present cache: rows in use, position of the first */
    cm_value past_rows, past_first; /* the same of the past cache; 0 unless it is a window cache */
};

static cm_value integer(struct cm_body *b, int i)
{
    return cm_emit_cast(b, cm_body_input(b, i), CM_INT64);
}

static bool keeps_window(const struct cm_body *b)
{
    return cm_node_int(b->node, "sliding_window_cache") != 0;
}

/* Rows of a window cache in use after `count` tokens, of which the cache of `room` rows drops
 * `step` at once: count - step * ceil(max(count - room, 0) / step). */
static cm_value resident_rows(struct cm_body *b, cm_value count, cm_value room, cm_value step)
{
    const cm_value zero = cm_build_int64(&b->build, 0), one = cm_build_int64(&b->build, 1);
    const cm_value over = cm_emit(b, "Max", cm_emit(b, "Sub", count, room), zero);
    const cm_value drops =
        cm_emit(b, "Div", cm_emit(b, "Add", over, cm_emit(b, "Sub", step, one)), step);
    return cm_emit(b, "Sub", count, cm_emit(b, "Mul", drops, step));
}

/* The cache has at least as many rows as the window; the Gather fails where it has fewer. */
static void measure_window(struct cm_body *b, struct sequences *s)
{
    const int64_t width = cm_node_int(b->node, "local_window_size");
    const cm_value one = cm_build_int64(&b->build, 1);
    s->room = cm_compose_dim(b, cm_body_input(b, IN_PAST_KEY), 2);
    const cm_value too_few = cm_emit(b, "Less", s->room, cm_build_int64(&b->build, width));
    const cm_value window =
        cm_emit(b, "Gather", cm_emit_int64s(b, width), cm_emit_cast(b, too_few, CM_INT64));
    const cm_value step = cm_emit(b, "Add", cm_emit(b, "Sub", s->room, window), one);
    s->rows = resident_rows(b, s->valid, s->room, step);
    s->first = cm_emit(b, "Sub", s->valid, s->rows);
    s->past_rows = resident_rows(b, s->past, s->room, step);
    s->past_first = cm_emit(b, "Sub", s->past, s->past_rows);
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
    s.rows = cm_emit(b, "Add", s.past, s.length);
    s.first = s.past_first = zero;
    s.past_rows = 0;
    if (keeps_window(b))
        measure_window(b, &s);
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

/* Where each row of the present cache comes from, (batch, room, 1): an index into past and new
 * rows one after the other, and one of zeros behind them. */
static cm_value cache_sources(struct cm_body *b, const struct sequences *s)
{
    const cm_value before = cm_compose_dim(b, cm_body_input(b, IN_PAST_KEY), 2);
    const cm_value rows = cm_compose_range(b, s->room);
    const cm_value positions = cm_emit(b, "Add", rows, s->first);
    const cm_value old = cm_emit(b, "Sub", positions, s->past_first);
    const cm_value fresh = cm_emit(b, "Add", cm_emit(b, "Sub", positions, s->past), before);
    const cm_value zeros = cm_emit(b, "Add", before, s->length);
    const cm_value later = cm_emit(b, "Where", cm_emit(b, "Less", rows, s->rows), fresh, zeros);
    return CM_COMPOSE_UNSQUEEZE(
        b, cm_emit(b, "Where", cm_emit(b, "Less", positions, s->past), old, later), 2);
}

/* x with n zeros behind its elements along axis 2; n is a list of one. */
static cm_value padded(struct cm_body *b, cm_value x, cm_value n)
{
    return cm_emit(
        b, "Pad", x,
        CM_COMPOSE_CONCAT(b, 0, cm_emit_int64s(b, 0, 0, 0, 0, 0, 0), n, cm_emit_int64s(b, 0)));
}

/* (batch, heads, rows, size): the rows of past and new elements that `sources` names. */
static cm_value cached(struct cm_body *b, int past, cm_value x, cm_value sources)
{
    const struct cm_attribute_proto batch =
        cm_attr_int(cm_builder_arena(&b->build), "batch_dims", 1);
    if (!sources)
        return x;
    const enum cm_dtype type = cm_compose_type(b, x)->dtype;
    const enum cm_dtype moved = type == CM_FLOAT8E4M3FN ? CM_FLOAT : type; /* Concat's types */
    const cm_value both = CM_COMPOSE_CONCAT(b, 2, cm_emit_cast(b, cm_body_input(b, past), moved),
                                            cm_emit_cast(b, x, moved));
    const cm_value rows =
        CM_COMPOSE_TRANSPOSE(b, padded(b, both, cm_emit_int64s(b, 1)), 0, 2, 1, 3);
    const cm_value taken = cm_emit_with(b, "GatherND", CM_ATTRIBUTES(batch), rows, sources);
    return cm_emit_cast(b, CM_COMPOSE_TRANSPOSE(b, taken, 0, 2, 1, 3), type);
}

/* The rows that queries are compared with where a window cache is kept, as cache_sources gives
 * them: all past and new ones, because a new query may see a key that its step evicts. Rows that
 * are not in use may hold anything, so zeros are read instead. */
static cm_value window_sources(struct cm_body *b, const struct sequences *s)
{
    const cm_value zeros = cm_emit(b, "Add", s->room, s->length), rows = cm_compose_range(b, zeros);
    const cm_value used = cm_emit(b, "Or", cm_emit(b, "Less", rows, s->past_rows),
                                  cm_emit(b, "GreaterOrEqual", rows, s->room));
    return CM_COMPOSE_UNSQUEEZE(b, cm_emit(b, "Where", used, rows, zeros), 2);
}

/* The position of each key that queries are compared with, to be broadcast to (batch, 1, 1, keys).
 * Rows of a window cache that are not in use count as behind the end. */
static cm_value key_positions(struct cm_body *b, const struct sequences *s)
{
    const cm_value rows = cm_compose_range(b, s->room);
    if (!keeps_window(b))
        return rows;
    const cm_value old = cm_emit(b, "Where", cm_emit(b, "Less", rows, s->past_rows),
                                 cm_emit(b, "Add", rows, s->past_first), s->valid);
    const cm_value fresh = cm_emit(b, "Add", cm_compose_range(b, s->length), s->past);
    return CM_COMPOSE_UNSQUEEZE(b, CM_COMPOSE_CONCAT(b, 1, old, fresh), 1, 2);
}

/* (batch, 1, length, keys): which keys may a query see? */
static cm_value allowed_keys(struct cm_body *b, const struct sequences *s, cm_value keys)
{
    const int64_t window = cm_node_int(b->node, "local_window_size");
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

/* The bias of each key. The operand has a column for each position; a cache may have rows for
 * more, and a window cache has rows for some. */
static cm_value bias_for(struct cm_body *b, const struct sequences *s, cm_value keys)
{
    const cm_value bias = cm_body_input(b, IN_ATTENTION_BIAS);
    if (!bias || !cm_body_input(b, IN_PAST_KEY))
        return bias;
    const cm_value columns = cm_compose_dims(b, bias, 3, 4), one = cm_emit_int64s(b, 1);
    if (!keeps_window(b)) {
        const cm_value missing = cm_emit(b, "Sub", s->room, columns);
        return cm_emit(b, "Pad", bias,
                       CM_COMPOSE_CONCAT(b, 0, cm_emit_int64s(b, 0, 0, 0, 0, 0, 0, 0), missing));
    }
    const struct cm_attribute_proto axis = cm_attr_int(cm_builder_arena(&b->build), "axis", 3);
    const cm_value batch = cm_compose_dims(b, keys, 0, 1), middle = cm_compose_dims(b, bias, 1, 3);
    const cm_value wide =
        cm_emit(b, "Expand", bias, CM_COMPOSE_CONCAT(b, 0, batch, cm_emit_int64s(b, 1, 1, 1)));
    const cm_value last = cm_emit(b, "Sub", columns, one); /* rows not in use: any column */
    const cm_value places = cm_emit(b, "Expand", cm_emit(b, "Min", keys, last),
                                    CM_COMPOSE_CONCAT(b, 0, batch, middle, one));
    return cm_emit_with(b, "GatherElements", CM_ATTRIBUTES(axis), wide, places);
}

/* A quantized cache holds x / scale: int8, or two values of 4 bits in a byte, or float8e4m3fn. */
struct cache_form {
    enum cm_dtype type; /* of elements; CM_FLOAT and the like: not quantized */
    bool nibbles;
    cm_value scale;
};

static bool is_quantized(enum cm_dtype type)
{
    return type == CM_INT8 || type == CM_UINT8 || type == CM_FLOAT8E4M3FN;
}

static enum cm_status read_cache_form(struct cm_body *b, int past, int scale, const char *attribute,
                                      struct cache_form *out)
{
    const struct cm_str mode = cm_node_str(b->node, attribute);
    const int64_t bits = cm_node_int(b->node, "kv_cache_bit_width");
    const int64_t kv_heads = cm_node_int(b->node, "kv_num_heads");
    const bool per_channel = cm_str_is(mode, "PER_CHANNEL"), plain = cm_str_is(mode, "NONE");
    const cm_value cache = cm_body_input(b, past), given = cm_body_input(b, scale);
    *out = (struct cache_form){.type = cache ? cm_compose_type(b, cache)->dtype : CM_FLOAT};
    if (!plain && !per_channel && !cm_str_is(mode, "PER_TENSOR"))
        return cm_body_decline(
            b, "attribute '%s' is '%.*s', expected 'NONE', 'PER_TENSOR' or 'PER_CHANNEL'",
            attribute, CM_STR_FMT(mode));
    if (plain != !is_quantized(out->type))
        return cm_body_decline(b, "attribute '%s' is '%.*s', but input %d has type %s", attribute,
                               CM_STR_FMT(mode), past, cm_dtype_name(out->type));
    if (plain)
        return CM_OK;
    out->nibbles = out->type == CM_UINT8;
    if (!given)
        return cm_body_decline(b, "a quantized cache needs input %d, its scale", scale);
    if (bits != 0 && bits != (out->nibbles ? 4 : 8))
        return cm_body_decline(b,
                               "attribute 'kv_cache_bit_width' is %lld, but the cache has type %s",
                               (long long)bits, cm_dtype_name(out->type));
    out->scale = per_channel ? CM_COMPOSE_RESHAPE(b, given, 1, kv_heads, 1, -1)
                             : CM_COMPOSE_RESHAPE(b, given, 1);
    return CM_OK;
}

/* x, (batch, heads, rows, size), as the cache holds it. */
static cm_value quantized(struct cm_body *b, const struct cache_form *form, cm_value x)
{
    if (!form->scale)
        return x;
    x = cm_emit(b, "Div", cm_emit_cast(b, x, CM_FLOAT), form->scale);
    if (form->type == CM_FLOAT8E4M3FN)
        return cm_emit_cast(b, x, form->type);
    const double half = form->nibbles ? 8 : 128;
    x = cm_emit(b, "Clip", cm_emit(b, "Round", x), cm_emit_scalar(b, CM_FLOAT, -half),
                cm_emit_scalar(b, CM_FLOAT, half - 1));
    if (form->nibbles) { /* the first of two neighbours is the low half of the byte */
        const cm_value rows = cm_compose_dims(b, x, 0, 3);
        const cm_value offset = cm_emit(b, "Add", x, cm_emit_scalar(b, CM_FLOAT, half));
        const cm_value pairs =
            cm_emit(b, "Reshape", offset, CM_COMPOSE_CONCAT(b, 0, rows, cm_emit_int64s(b, -1, 2)));
        const cm_value high =
            cm_emit(b, "Mul", cm_compose_slice(b, pairs, 4, 1, 2), cm_emit_scalar(b, CM_FLOAT, 16));
        x = cm_emit(b, "Reshape", cm_emit(b, "Add", cm_compose_slice(b, pairs, 4, 0, 1), high),
                    CM_COMPOSE_CONCAT(b, 0, rows, cm_emit_int64s(b, -1)));
    }
    return cm_emit_cast(b, x, form->type);
}

/* The elements of cache rows, in the type of `like`. */
static cm_value dequantized(struct cm_body *b, const struct cache_form *form, cm_value x,
                            cm_value like)
{
    if (!form->scale)
        return x;
    x = cm_emit_cast(b, x, CM_FLOAT);
    if (form->nibbles) {
        const cm_value byte = CM_COMPOSE_UNSQUEEZE(b, x, 4);
        const cm_value high =
            cm_emit(b, "Floor", cm_emit(b, "Mul", byte, cm_emit_scalar(b, CM_FLOAT, 0.0625)));
        const cm_value low =
            cm_emit(b, "Sub", byte, cm_emit(b, "Mul", high, cm_emit_scalar(b, CM_FLOAT, 16)));
        const cm_value shape =
            CM_COMPOSE_CONCAT(b, 0, cm_compose_dims(b, x, 0, 3), cm_emit_int64s(b, -1));
        x = cm_emit(b, "Reshape", CM_COMPOSE_CONCAT(b, 4, low, high), shape);
        x = cm_emit(b, "Sub", x, cm_emit_scalar(b, CM_FLOAT, 8));
    }
    return cm_emit_cast(b, cm_emit(b, "Mul", x, form->scale), cm_compose_type(b, like)->dtype);
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
    struct cache_form key_cache, value_cache;
    CM_TRY(check_supported(b));
    if (parts.wants_scores && keeps_window(b))
        return cm_body_decline(b, "output 3 is not defined for a window cache");
    if (parts.wants_scores && shown != SCORES_BEFORE && shown != SCORES_AFTER)
        return cm_body_decline(b, "output 3 needs attribute 'qk_output' to be 1 or 2");
    CM_TRY(read_cache_form(b, IN_PAST_KEY, IN_KEY_SCALE, "k_quant_type", &key_cache));
    CM_TRY(read_cache_form(b, IN_PAST_VALUE, IN_VALUE_SCALE, "v_quant_type", &value_cache));
    take_operands(b, &parts);
    parts.q = normalized(b, parts.q, IN_QUERY_NORM);
    parts.k = normalized(b, parts.k, IN_KEY_NORM);
    const struct sequences s = measure(b, parts.q);
    if (cm_node_int(b->node, "do_rotary"))
        rotate(b, &parts, &s);
    const cm_value sources = cm_body_input(b, IN_PAST_KEY) ? cache_sources(b, &s) : 0;
    const cm_value fresh_key = quantized(b, &key_cache, parts.k);
    const cm_value fresh_value = quantized(b, &value_cache, parts.v);
    const cm_value present_key = cached(b, IN_PAST_KEY, fresh_key, sources);
    const cm_value present_value = cached(b, IN_PAST_VALUE, fresh_value, sources);
    CM_TRY(cm_body_return(b, OUT_PRESENT_KEY, present_key));
    CM_TRY(cm_body_return(b, OUT_PRESENT_VALUE, present_value));
    parts.k = present_key;
    parts.v = present_value;
    if (keeps_window(b)) {
        const cm_value seen = window_sources(b, &s);
        parts.k = cached(b, IN_PAST_KEY, fresh_key, seen);
        parts.v = cached(b, IN_PAST_VALUE, fresh_value, seen);
    }
    parts.k = dequantized(b, &key_cache, parts.k, parts.q);
    parts.v = dequantized(b, &value_cache, parts.v, parts.q);
    const cm_value keys = key_positions(b, &s);
    const cm_value allowed = allowed_keys(b, &s, keys);
    parts.mask = cm_emit(b, "Where", allowed, cm_emit_scalar_like(b, parts.q, 0),
                         cm_emit_scalar_like(b, parts.q, (double)-INFINITY));
    parts.mask = cm_compose_add(b, parts.mask, bias_for(b, &s, keys));
    if (has_sink)
        add_sink(b, &parts);
    cm_compose_attention(b, &parts);
    if (parts.wants_scores)
        CM_TRY(cm_body_return(b, OUT_SCORES, shown_scores(b, parts.scores, allowed, has_sink)));
    return cm_body_return(b, OUT_RESULT, cm_compose_heads_together(b, parts.result));
}

CM_OP_IN(microsoft, "com.microsoft", GroupQueryAttention, .body = group_query_attention_body);
