/* Attention as a graph of simpler operators: what its gradient and other runtimes use. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "ops/attention/attention.h"

#include <math.h>

/* Queries, keys and values with an axis for the heads, those of the past before the others. Of rank
 * 3 heads are apart only inside. */
static enum cm_status with_heads(struct cm_body *b, bool split, cm_value *qkv)
{
    const struct cm_str text = cm_arena_printf(
        cm_builder_arena(&b->build),
        "q, k, v, past_key, past_value: apart(t, heads) = %s; join(before, t) = "
        "Concat<axis=2>(before, t);"
        "queries = apart(q, q_num_heads); keys = %s; values = %s -> queries, keys, values",
        split ? "Transpose<perm=[0, 2, 1, 3]>(Reshape(t, [0, 0, heads, -1]))" : "t",
        cm_body_input(b, CM_ATTENTION_PAST_KEY) ? "join(past_key, apart(k, kv_num_heads))"
                                                : "apart(k, kv_num_heads)",
        cm_body_input(b, CM_ATTENTION_PAST_VALUE) ? "join(past_value, apart(v, kv_num_heads))"
                                                  : "apart(v, kv_num_heads)");
    cm_build_formulas(&b->build, b->node, cm_str_text(text),
                      (const cm_value[]){cm_body_input(b, CM_ATTENTION_QUERY),
                                         cm_body_input(b, CM_ATTENTION_KEY),
                                         cm_body_input(b, CM_ATTENTION_VALUE),
                                         cm_body_input(b, CM_ATTENTION_PAST_KEY),
                                         cm_body_input(b, CM_ATTENTION_PAST_VALUE)},
                      5, qkv, 3);
    return b->build.status;
}

/* The root of the scale: queries and keys are both multiplied by it, which keeps narrow types in
 * range. */
static const char *root_text(struct cm_body *b, const struct cm_type *q)
{
    double root = 0;
    if (cm_node_has_attr(b->node, "scale"))
        root = sqrt((double)cm_node_float(b->node, "scale"));
    else if (cm_dim_known(q->dims[3]))
        root = 1 / sqrt(sqrt((double)q->dims[3].value));
    else
        return q->dtype == CM_DOUBLE
                   ? "Reciprocal(Sqrt(Sqrt(double(Squeeze(Shape<start=3, end=4>(q))))))"
                   : "cast(Reciprocal(Sqrt(Sqrt(float(Squeeze(Shape<start=3, end=4>(q)))))), q)";
    return cm_str_text(cm_arena_printf(cm_builder_arena(&b->build), "like(q, %.17g)", root));
}

/* Which keys may be seen, as statements: causality, windows and padding are comparisons of places.
 * `offset` is how many keys there are before the first query. */
static const char *allowed_text(struct cm_body *b)
{
    const long long left = cm_node_int(b->node, "left_window_size");
    const long long right = cm_node_int(b->node, "right_window_size");
    const bool causal = cm_node_int(b->node, "is_causal") != 0;
    const bool nonpad = cm_body_input(b, CM_ATTENTION_NONPAD) != 0;
    struct cm_arena *arena = cm_builder_arena(&b->build);
    bool some = nonpad;
    struct cm_str text = CM_STR("");
    if (!causal && left < 0 && right < 0 && !nonpad)
        return "";
    const char *const tests[] = {causal ? "LessOrEqual(ahead, 0)" : NULL,
                                 left >= 0 ? "GreaterOrEqual(ahead, -left_window_size)" : NULL,
                                 right >= 0 ? "LessOrEqual(ahead, right_window_size)" : NULL};
    for (size_t i = 0; i < CM_COUNT(tests); i++) {
        if (!tests[i])
            continue;
        text = cm_arena_printf(
            arena, some ? "%s test = %s; allowed = And(allowed, test);" : "%s allowed = %s;",
            cm_str_text(text), tests[i]);
        some = true;
    }
    return cm_str_text(cm_arena_printf(
        arena,
        "range(t) = Range(0, Squeeze(Shape<start=2, end=3>(t)), 1); keys = range(k); %s"
        "places = Unsqueeze(range(q), [1]) + offset; ahead = keys - places; %s"
        "bias = Where(allowed, like(q, 0), like(q, -inf));",
        nonpad ? "valid = Unsqueeze(nonpad, [1, 2, 3]); offset = valid - Shape<start=2, end=3>(q);"
                 "allowed = Less(keys, valid);"
        : cm_body_input(b, CM_ATTENTION_PAST_KEY) ? "offset = Shape<start=2, end=3>(past_key);"
                                                  : "offset = int64(0);",
        cm_str_text(text)));
}

/* The mask as something to add; keys past its end are not to be seen. */
static const char *mask_text(struct cm_body *b, const struct cm_type *k, bool has_bias)
{
    const struct cm_type *mask = cm_builder_type(&b->build, cm_body_input(b, CM_ATTENTION_MASK));
    if (!mask)
        return "";
    const int rank = mask->rank;
    const bool whole = cm_dim_same(mask->dims[rank - 1], k->dims[2]);
    return cm_str_text(cm_arena_printf(
        cm_builder_arena(&b->build),
        "zero = like(q, 0); never = like(q, -inf); given = %s; missing(t) = Shape<start=2, "
        "end=3>(k)"
        " - Shape<start=%d, end=%d>(t); pads(t) = Concat<axis=0>([%.*s], t); mask = %s; bias = %s;",
        mask->dtype == CM_BOOL ? "Where(attn_mask, zero, never)" : "cast(attn_mask, q)", rank - 1,
        rank, 3 * (2 * rank - 1) - 2, "0, 0, 0, 0, 0, 0, 0",
        whole ? "given" : "Pad(given, pads(missing(given)), never)",
        has_bias ? "bias + mask" : "mask"));
}

/* What the scores show when it is asked for them: s0 to s3. */
static const char *scores_text(struct cm_body *b, const struct cm_type *k)
{
    const char *const allowed = allowed_text(b), *const mask = mask_text(b, k, *allowed != '\0');
    const bool has_bias = *allowed || *mask;
    const bool precise = cm_node_has_attr(b->node, "softmax_precision");
    const enum cm_dtype in = (enum cm_dtype)cm_node_int(b->node, "softmax_precision");
    const struct cm_str soft = cm_arena_printf(
        cm_builder_arena(&b->build), "cast(Softmax<axis=-1>(%s(seen)), q)",
        cm_dtype_name(precise ? in : cm_builder_type(&b->build, cm_body_input(b, 0))->dtype));
    return cm_str_text(cm_arena_printf(
        cm_builder_arena(&b->build),
        "s0 = MatMul(q * root, swap(scaled)); s1 = %s; %s %s s2 = %s; %s",
        (double)cm_node_float(b->node, "softcap") > 0 ? "cap(s0)" : "s0", allowed, mask,
        has_bias ? "s1 + bias" : "s1",
        /* Rows that may see nothing become zero; they take part as zeros, so that no NaN comes up
         * on the way there or back. */
        cm_str_text(cm_arena_printf(cm_builder_arena(&b->build),
                                    has_bias
                                        ? "none = like(q, 0); lowest = like(q, -inf);"
                                          "count = ReduceSum(float(Greater(bias, lowest)), [-1]);"
                                          "blind = Equal(count, 0); seen = Where(blind, none, s2);"
                                          "s3 = Where(blind, none, %s)"
                                        : "seen = s2; s3 = %s",
                                    cm_str_text(soft)))));
}

enum cm_status cm_attention_body(struct cm_body *b)
{
    for (int i = CM_ATTENTION_QUERY; i <= CM_ATTENTION_MASK; i++) {
        const struct cm_type *type = cm_builder_type(&b->build, cm_body_input(b, i));
        if (type && type->rank == CM_RANK_UNKNOWN)
            return cm_body_decline(b, "the rank of input %d is not known", i);
    }
    const bool split = cm_builder_type(&b->build, cm_body_input(b, CM_ATTENTION_QUERY))->rank == 3;
    cm_value v[3], results[2];
    CM_TRY(with_heads(b, split, v));
    CM_TRY(cm_body_return(b, CM_ATTENTION_PRESENT_KEY, v[1]));
    CM_TRY(cm_body_return(b, CM_ATTENTION_PRESENT_VALUE, v[2]));

    const struct cm_type *q = cm_builder_type(&b->build, v[0]),
                         *k = cm_builder_type(&b->build, v[1]);
    const bool shared = !cm_dim_same(q->dims[1], k->dims[1]); /* heads of keys by several queries */
    const struct cm_str text = cm_arena_printf(
        cm_builder_arena(&b->build),
        "q, k, v, attn_mask, past_key, nonpad: swap(t) = Transpose<perm=[0, 1, 3, 2]>(t);"
        "cap(t) = { limit = like(q, softcap); limit * Tanh(t / limit) };"
        "repeated(t) = {"
        "  apart = Unsqueeze(t, [2]); ones = [1, 1]; sizes = Concat<axis=0>(ones, times, ones);"
        "  many = Expand(apart, sizes); batch = Shape<start=0, end=1>(t); any = [-1];"
        "  Reshape(many, Concat<axis=0>(batch, any, Shape<start=2, end=4>(t)))"
        "};"
        "%s root = %s; scaled = %s * root; %s; weights = cast(s3, v); product = MatMul(weights, "
        "%s);"
        "y = cast(product, q); result = %s -> s%d, result",
        shared ? "times = Shape<start=1, end=2>(q) / Shape<start=1, end=2>(k);" : "",
        root_text(b, q), shared ? "repeated(k)" : "k", scores_text(b, k),
        shared ? "repeated(v)" : "v",
        split ? "Reshape(Transpose<perm=[0, 2, 1, 3]>(y), [0, 0, -1])" : "y",
        (int)cm_node_int(b->node, "qk_matmul_output_mode"));
    cm_emit_formulas(b, results, cm_str_text(text), v[0], v[1], v[2],
                     cm_body_input(b, CM_ATTENTION_MASK), cm_body_input(b, CM_ATTENTION_PAST_KEY),
                     cm_body_input(b, CM_ATTENTION_NONPAD));
    CM_TRY(cm_body_return(b, CM_ATTENTION_SCORES, results[0]));
    return cm_body_return(b, CM_ATTENTION_RESULT, results[1]);
}
