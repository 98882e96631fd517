/* Masks and the standard Attention. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/attention_parts.h"

cm_value cm_compose_heads_together(struct cm_body *b, cm_value x)
{
    return cm_emit_formula(b, "x:" CM_HEADS "together(x)", x);
}

void cm_compose_attention(struct cm_body *b, struct cm_attention_parts *parts)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    const cm_value inputs[] = {parts->q,    parts->k,        parts->v,
                               parts->mask, parts->past_key, parts->past_value};
    struct cm_attribute_proto attributes[6];
    size_t count = 0;
    cm_value results[4];
    if (parts->q_heads) {
        attributes[count++] = cm_attr_int(arena, "q_num_heads", parts->q_heads);
        attributes[count++] = cm_attr_int(arena, "kv_num_heads", parts->kv_heads);
    }
    if (parts->causal)
        attributes[count++] = cm_attr_int(arena, "is_causal", 1);
    if (parts->scale != 0)
        attributes[count++] = cm_attr_float(arena, "scale", parts->scale);
    if (parts->softcap != 0)
        attributes[count++] = cm_attr_float(arena, "softcap", parts->softcap);
    if (parts->wants_scores)
        attributes[count++] = cm_attr_int(arena, "qk_matmul_output_mode", parts->scores_mode);
    const size_t n_outputs = parts->wants_scores ? 4 : parts->wants_present ? 3 : 1;
    results[0] = cm_build(&b->build, &(struct cm_emission){.op = "Attention",
                                                           .inputs = inputs,
                                                           .n_inputs = CM_COUNT(inputs),
                                                           .attributes = attributes,
                                                           .n_attributes = count,
                                                           .n_outputs = n_outputs,
                                                           .outputs = results});
    parts->result = results[0];
    parts->present_key = n_outputs >= 3 ? results[1] : 0;
    parts->present_value = n_outputs >= 3 ? results[2] : 0;
    parts->scores = n_outputs >= 4 ? results[3] : 0;
}

/* A list of ends has batch or 2 * batch elements; zeros fill it up, of which there can be no
 * negative number. Of a mask for sequences of any length the rows of these queries and the columns
 * of these keys count. A mask with one column says the same of all keys. */
static const char key_mask[] =
    "size(t, i) = Squeeze(Shape<start=i, end=i + 1>(t), [0]); list(t) = Reshape(t, [1]);"
    "past = past_key ? size(past_key, 2) : int64(0); batch = Shape<start=0, end=1>(q);"
    "queries = size(q, place); keys = past + (k ? size(k, place) : queries);"
    "between(t) = {"
    "  rows = Reshape(int64(t), Concat<axis=0>([-1], batch));"
    "  missing = [2] - Shape<start=0, end=1>(rows);"
    "  both = Concat<axis=0>(rows, Expand(int64(0), Concat<axis=0>(missing, batch)));"
    "  last = Gather(both, int64(0)); first = Gather(both, int64(1)); places = Range(0, keys, 1);"
    "  And(Less(places, Unsqueeze(last, [1, 2, 3])),"
    "      GreaterOrEqual(places, Unsqueeze(first, [1, 2, 3])))"
    "};"
    "window(t) = { zero = [0]; end = past + queries; start = Concat<axis=0>(list(past), zero);"
    "  Slice(t, start, Concat<axis=0>(list(end), list(keys)), [2, 3]) };"
    "above(t) = Greater(t, int32(0));"
    "allowed = rank(mask) == 1 ? between(mask)"
    "  : rank(mask) == 2 ? Unsqueeze(above(mask), [1, 2])"
    "  : rank(mask) == 3 ? Unsqueeze(above(mask), [1]) : above(window(mask));"
    "filter = given(mask_filter_value) ? mask_filter_value : -10000;"
    "added = Where(allowed, like(q, 0), like(q, filter));"
    "rank(mask) == 2 ? Expand(added, Concat<axis=0>([1, 1, 1], list(keys))) : added";

enum cm_status cm_compose_key_mask(struct cm_body *b, struct cm_attention_parts *parts,
                                   cm_value mask, cm_value queries, cm_value keys, int axis)
{
    const struct cm_type *type = cm_builder_type(&b->build, mask);
    CM_TRY(b->build.status);
    if (!type)
        return CM_OK;
    if (type->rank == CM_RANK_UNKNOWN || type->rank < 1 || type->rank > 4)
        return cm_body_decline(b, "the rank of the mask is %s, must be known to be 1 to 4",
                               type->rank == CM_RANK_UNKNOWN ? "not known" : "another");
    if (type->rank == 2 && cm_dim_known(type->dims[1]) && type->dims[1].value == 1)
        return CM_OK;
    const struct cm_str text = cm_arena_printf(
        cm_builder_arena(&b->build), "mask, q, k, past_key: place = %d; %s", axis, key_mask);
    parts->mask = cm_emit_formula(b, cm_str_text(text), mask, queries, keys, parts->past_key);
    return b->build.status;
}

int64_t cm_compose_turned(const struct cm_body *b, cm_value cosines, int64_t given)
{
    const struct cm_type *cache = cm_builder_type(&b->build, cosines);
    const bool known = cache && cache->rank == 2 && cm_dim_known(cache->dims[1]);
    return given ? given : known ? 2 * cache->dims[1].value : 0;
}

cm_value cm_compose_rotary(struct cm_body *b, const struct cm_rotation *rotation, cm_value x)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    const int64_t turned = cm_compose_turned(b, rotation->cosines, rotation->turned);
    return cm_emit_with(b, "RotaryEmbedding",
                        CM_ATTRIBUTES(cm_attr_int(arena, "interleaved", rotation->interleaved),
                                      cm_attr_int(arena, "rotary_embedding_dim", turned)),
                        x, rotation->cosines, rotation->sines, rotation->positions);
}
