/* Attention as a graph of simpler operators: what its gradient and other runtimes use. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "ops/attention/attention.h"

#include <math.h>

struct pieces {
    struct cm_body *b;
    struct cm_arena *arena;
    const struct cm_node *node;
    enum cm_dtype dtype; /* of Q and K */
    bool split;          /* operands of rank 3: heads are apart only inside */
    cm_value times;      /* heads of queries to one of keys; 0: one */
    cm_value offset;     /* keys before the first query: a scalar, or (batch, 1, 1, 1) */
    cm_value bias;       /* added to the scores; 0: nothing is */
    cm_value allowed;    /* which keys may be seen; 0: all */
};

static const struct cm_type *type_of(const struct pieces *p, cm_value x)
{
    return cm_builder_type(&p->b->build, x);
}

static cm_value part_of_shape(const struct pieces *p, cm_value x, int64_t from, int64_t to)
{
    return cm_emit_with(
        p->b, "Shape",
        CM_ATTRIBUTES(cm_attr_int(p->arena, "start", from), cm_attr_int(p->arena, "end", to)), x);
}

static cm_value transpose(const struct pieces *p, cm_value x, const int64_t *perm)
{
    return cm_emit_with(p->b, "Transpose", CM_ATTRIBUTES(cm_attr_ints(p->arena, "perm", 4, perm)),
                        x);
}

static const int64_t heads_first[] = {0, 2, 1, 3}, last_two[] = {0, 1, 3, 2};

/* (batch, length, heads * size) as (batch, heads, length, size). */
static cm_value with_heads(const struct pieces *p, cm_value x, const char *attribute)
{
    if (!p->split)
        return x;
    const int64_t heads = cm_node_int(p->node, attribute);
    return transpose(p, cm_emit(p->b, "Reshape", x, cm_emit_int64s(p->b, 0, 0, heads, -1)),
                     heads_first);
}

static cm_value with_past(const struct pieces *p, int past, cm_value x)
{
    const cm_value before = cm_body_input(p->b, past);
    if (!before)
        return x;
    return cm_emit_with(p->b, "Concat", CM_ATTRIBUTES(cm_attr_int(p->arena, "axis", 2)), before, x);
}

/* Each head of keys as often as heads of queries read it. */
static cm_value repeated(const struct pieces *p, cm_value x)
{
    if (!p->times)
        return x;
    const cm_value apart = cm_emit(p->b, "Unsqueeze", x, cm_emit_int64s(p->b, 2));
    const struct cm_attribute_proto axis = cm_attr_int(p->arena, "axis", 0);
    const cm_value ones = cm_emit_int64s(p->b, 1, 1);
    const cm_value sizes = cm_emit_with(p->b, "Concat", CM_ATTRIBUTES(axis), ones, p->times, ones);
    const cm_value many = cm_emit(p->b, "Expand", apart, sizes);
    const cm_value shape = cm_emit_with(
        p->b, "Concat", CM_ATTRIBUTES(cm_attr_int(p->arena, "axis", 0)), part_of_shape(p, x, 0, 1),
        cm_emit_int64s(p->b, -1), part_of_shape(p, x, 2, 4));
    return cm_emit(p->b, "Reshape", many, shape);
}

/* The root of the scale: queries and keys are both multiplied by it, which keeps narrow types in
 * range. */
static cm_value root_of_scale(const struct pieces *p, cm_value q)
{
    const struct cm_type *type = type_of(p, q);
    if (cm_node_has_attr(p->node, "scale"))
        return cm_emit_scalar(p->b, p->dtype, sqrt((double)cm_node_float(p->node, "scale")));
    if (type && cm_dim_known(type->dims[3]))
        return cm_emit_scalar(p->b, p->dtype, 1 / sqrt(sqrt((double)type->dims[3].value)));
    const enum cm_dtype wide = p->dtype == CM_DOUBLE ? CM_DOUBLE : CM_FLOAT;
    const cm_value size =
        cm_emit_cast(p->b, cm_emit(p->b, "Squeeze", part_of_shape(p, q, 3, 4)), wide);
    const cm_value root = cm_emit(p->b, "Sqrt", cm_emit(p->b, "Sqrt", size));
    return cm_emit_cast(p->b, cm_emit(p->b, "Reciprocal", root), p->dtype);
}

/* 0, 1, .. up to the length of an axis, shaped to lie along axis -1 or -2. */
static cm_value indices(const struct pieces *p, cm_value x, int64_t axis, bool as_column)
{
    const cm_value count = cm_emit(p->b, "Squeeze", part_of_shape(p, x, axis, axis + 1));
    const cm_value range = cm_emit(p->b, "Range", cm_build_int64(&p->b->build, 0), count,
                                   cm_build_int64(&p->b->build, 1));
    return as_column ? cm_emit(p->b, "Unsqueeze", range, cm_emit_int64s(p->b, 1)) : range;
}

static void allow(struct pieces *p, cm_value condition)
{
    p->allowed = p->allowed ? cm_emit(p->b, "And", p->allowed, condition) : condition;
}

/* Causality, windows and padding: each is a comparison of places. */
static void collect_allowed(struct pieces *p, cm_value q, cm_value k)
{
    const int64_t left = cm_node_int(p->node, "left_window_size");
    const int64_t right = cm_node_int(p->node, "right_window_size");
    const bool causal = cm_node_int(p->node, "is_causal") != 0;
    const cm_value nonpad = cm_body_input(p->b, CM_ATTENTION_NONPAD);
    const cm_value past = cm_body_input(p->b, CM_ATTENTION_PAST_KEY);
    cm_value valid = 0;
    if (!causal && left < 0 && right < 0 && !nonpad)
        return;
    const cm_value keys = indices(p, k, 2, false);
    if (nonpad) {
        valid = cm_emit(p->b, "Unsqueeze", nonpad, cm_emit_int64s(p->b, 1, 2, 3));
        p->offset = cm_emit(p->b, "Sub", valid, part_of_shape(p, q, 2, 3));
        allow(p, cm_emit(p->b, "Less", keys, valid));
    } else if (past) {
        p->offset = part_of_shape(p, past, 2, 3);
    } else {
        p->offset = cm_build_int64(&p->b->build, 0);
    }
    const cm_value places = cm_emit(p->b, "Add", indices(p, q, 2, true), p->offset);
    const cm_value ahead = cm_emit(p->b, "Sub", keys, places);
    if (causal)
        allow(p, cm_emit(p->b, "LessOrEqual", ahead, cm_build_int64(&p->b->build, 0)));
    if (left >= 0)
        allow(p, cm_emit(p->b, "GreaterOrEqual", ahead, cm_build_int64(&p->b->build, -left)));
    if (right >= 0)
        allow(p, cm_emit(p->b, "LessOrEqual", ahead, cm_build_int64(&p->b->build, right)));
}

/* The mask as something to add; keys past its end are not to be seen. */
static cm_value mask_bias(const struct pieces *p, cm_value k)
{
    const cm_value zero = cm_emit_scalar(p->b, p->dtype, 0);
    const cm_value never = cm_emit_scalar(p->b, p->dtype, (double)-INFINITY);
    cm_value mask = cm_body_input(p->b, CM_ATTENTION_MASK);
    const struct cm_type *type = type_of(p, mask), *keys = type_of(p, k);
    if (!type || !keys)
        return 0;
    mask = type->dtype == CM_BOOL ? cm_emit(p->b, "Where", mask, zero, never)
                                  : cm_emit_cast(p->b, mask, p->dtype);
    if (cm_dim_same(type->dims[type->rank - 1], keys->dims[2]))
        return mask;
    const int64_t zeros[8] = {0};
    const cm_value missing = cm_emit(p->b, "Sub", part_of_shape(p, k, 2, 3),
                                     part_of_shape(p, mask, type->rank - 1, type->rank));
    const cm_value pads =
        cm_emit_with(p->b, "Concat", CM_ATTRIBUTES(cm_attr_int(p->arena, "axis", 0)),
                     cm_build_int64s(&p->b->build, (size_t)(2 * type->rank - 1), zeros), missing);
    return cm_emit(p->b, "Pad", mask, pads, never);
}

static void collect_bias(struct pieces *p, cm_value q, cm_value k)
{
    collect_allowed(p, q, k);
    if (p->allowed)
        p->bias = cm_emit(p->b, "Where", p->allowed, cm_emit_scalar(p->b, p->dtype, 0),
                          cm_emit_scalar(p->b, p->dtype, (double)-INFINITY));
    if (!cm_body_input(p->b, CM_ATTENTION_MASK))
        return;
    const cm_value mask = mask_bias(p, k);
    p->bias = p->bias ? cm_emit(p->b, "Add", p->bias, mask) : mask;
}

/* Softmax in the precision asked for. Rows that may see nothing become zero; they take part as
 * zeros, so that no NaN comes up on the way there or back. */
static cm_value soften(const struct pieces *p, cm_value scores)
{
    const bool precise = cm_node_has_attr(p->node, "softmax_precision");
    const enum cm_dtype in =
        precise ? (enum cm_dtype)cm_node_int(p->node, "softmax_precision") : p->dtype;
    const cm_value zero = cm_emit_scalar(p->b, p->dtype, 0);
    const struct cm_attribute_proto axis = cm_attr_int(p->arena, "axis", -1);
    cm_value blind = 0;
    if (p->bias) {
        const cm_value never = cm_emit_scalar(p->b, p->dtype, (double)-INFINITY);
        const cm_value seen =
            cm_emit_cast(p->b, cm_emit(p->b, "Greater", p->bias, never), CM_FLOAT);
        const cm_value count = cm_emit(p->b, "ReduceSum", seen, cm_emit_int64s(p->b, -1));
        blind = cm_emit(p->b, "Equal", count, cm_emit_scalar(p->b, CM_FLOAT, 0));
        scores = cm_emit(p->b, "Where", blind, zero, scores);
    }
    const cm_value soft = cm_emit_cast(
        p->b, cm_emit_with(p->b, "Softmax", CM_ATTRIBUTES(axis), cm_emit_cast(p->b, scores, in)),
        p->dtype);
    return blind ? cm_emit(p->b, "Where", blind, zero, soft) : soft;
}

static cm_value capped(const struct pieces *p, cm_value scores)
{
    const double cap = (double)cm_node_float(p->node, "softcap");
    if (!(cap > 0))
        return scores;
    const cm_value limit = cm_emit_scalar(p->b, p->dtype, cap);
    return cm_emit(p->b, "Mul", limit, cm_emit(p->b, "Tanh", cm_emit(p->b, "Div", scores, limit)));
}

/* How many heads of queries read one head of keys, as a list of one number; 0 for one. */
static cm_value sharing(const struct pieces *p, cm_value q, cm_value k)
{
    const struct cm_type *queries = type_of(p, q), *keys = type_of(p, k);
    if (!queries || !keys || cm_dim_same(queries->dims[1], keys->dims[1]))
        return 0;
    return cm_emit(p->b, "Div", part_of_shape(p, q, 1, 2), part_of_shape(p, k, 1, 2));
}

static cm_value without_heads(const struct pieces *p, cm_value y)
{
    if (!p->split)
        return y;
    return cm_emit(p->b, "Reshape", transpose(p, y, heads_first), cm_emit_int64s(p->b, 0, 0, -1));
}

enum cm_status cm_attention_body(struct cm_body *b)
{
    struct pieces p = {.b = b, .arena = cm_builder_arena(&b->build), .node = b->node};
    for (int i = CM_ATTENTION_QUERY; i <= CM_ATTENTION_MASK; i++) {
        const struct cm_type *type = cm_builder_type(&b->build, cm_body_input(b, i));
        if (type && type->rank == CM_RANK_UNKNOWN)
            return cm_body_decline(b, "the rank of input %d is not known", i);
    }
    const struct cm_type *type = type_of(&p, cm_body_input(b, CM_ATTENTION_QUERY));
    p.dtype = type->dtype;
    p.split = type->rank == 3;
    const cm_value q = with_heads(&p, cm_body_input(b, CM_ATTENTION_QUERY), "q_num_heads");
    const cm_value k =
        with_past(&p, CM_ATTENTION_PAST_KEY,
                  with_heads(&p, cm_body_input(b, CM_ATTENTION_KEY), "kv_num_heads"));
    const cm_value v =
        with_past(&p, CM_ATTENTION_PAST_VALUE,
                  with_heads(&p, cm_body_input(b, CM_ATTENTION_VALUE), "kv_num_heads"));
    CM_TRY(b->build.status);
    p.times = sharing(&p, q, k);
    CM_TRY(cm_body_return(b, CM_ATTENTION_PRESENT_KEY, k));
    CM_TRY(cm_body_return(b, CM_ATTENTION_PRESENT_VALUE, v));

    const cm_value root = root_of_scale(&p, q);
    const cm_value scaled_keys = cm_emit(b, "Mul", repeated(&p, k), root);
    cm_value stages[4]; /* what output SCORES may show */
    stages[0] =
        cm_emit(b, "MatMul", cm_emit(b, "Mul", q, root), transpose(&p, scaled_keys, last_two));
    stages[1] = capped(&p, stages[0]);
    collect_bias(&p, q, k);
    stages[2] = p.bias ? cm_emit(b, "Add", stages[1], p.bias) : stages[1];
    stages[3] = soften(&p, stages[2]);
    CM_TRY(b->build.status);
    CM_TRY(cm_body_return(b, CM_ATTENTION_SCORES,
                          stages[cm_node_int(b->node, "qk_matmul_output_mode")]));
    const cm_value weights = cm_emit_cast(b, stages[3], type_of(&p, v)->dtype);
    const cm_value y = cm_emit(b, "MatMul", weights, repeated(&p, v));
    return cm_body_return(b, CM_ATTENTION_RESULT, without_heads(&p, cm_emit_cast(b, y, p.dtype)));
}
