/* Masks and the standard Attention. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/attention_parts.h"

static struct cm_arena *arena_of(const struct cm_body *b)
{
    return cm_builder_arena(&b->build);
}

cm_value cm_compose_heads_apart(struct cm_body *b, cm_value x, int64_t heads)
{
    return CM_COMPOSE_TRANSPOSE(b, CM_COMPOSE_RESHAPE(b, x, 0, 0, heads, -1), 0, 2, 1, 3);
}

cm_value cm_compose_heads_together(struct cm_body *b, cm_value x)
{
    return CM_COMPOSE_RESHAPE(b, CM_COMPOSE_TRANSPOSE(b, x, 0, 2, 1, 3), 0, 0, -1);
}

void cm_compose_attention(struct cm_body *b, struct cm_attention_parts *parts)
{
    struct cm_arena *arena = arena_of(b);
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

/* (batch, 1, 1, keys): is the key between start and end? The list has batch or 2 * batch elements;
 * zeros fill it up, of which there can be no negative number. */
static cm_value between_ends(struct cm_body *b, const struct cm_key_mask *m)
{
    const cm_value rows = cm_emit(b, "Reshape", cm_emit_cast(b, m->mask, CM_INT64),
                                  CM_COMPOSE_CONCAT(b, 0, cm_emit_int64s(b, -1), m->batch));
    const cm_value missing =
        cm_emit(b, "Sub", cm_emit_int64s(b, 2), cm_compose_dims(b, rows, 0, 1));
    const cm_value zeros = cm_emit(b, "Expand", cm_build_int64(&b->build, 0),
                                   CM_COMPOSE_CONCAT(b, 0, missing, m->batch));
    const cm_value both = CM_COMPOSE_CONCAT(b, 0, rows, zeros);
    const cm_value end = cm_emit(b, "Gather", both, cm_build_int64(&b->build, 0));
    const cm_value start = cm_emit(b, "Gather", both, cm_build_int64(&b->build, 1));
    const cm_value keys = cm_compose_range(b, m->keys);
    return cm_emit(b, "And", cm_emit(b, "Less", keys, CM_COMPOSE_UNSQUEEZE(b, end, 1, 2, 3)),
                   cm_emit(b, "GreaterOrEqual", keys, CM_COMPOSE_UNSQUEEZE(b, start, 1, 2, 3)));
}

static cm_value as_list(struct cm_body *b, cm_value scalar)
{
    return CM_COMPOSE_RESHAPE(b, scalar, 1);
}

/* Of a mask for sequences of any length: the rows of these queries, the columns of these keys. */
static cm_value window_of(struct cm_body *b, const struct cm_key_mask *m)
{
    const cm_value zero = cm_emit_int64s(b, 0);
    const cm_value last = cm_emit(b, "Add", m->past, m->queries);
    return cm_emit(b, "Slice", m->mask, CM_COMPOSE_CONCAT(b, 0, as_list(b, m->past), zero),
                   CM_COMPOSE_CONCAT(b, 0, as_list(b, last), as_list(b, m->keys)),
                   cm_emit_int64s(b, 2, 3));
}

/* A mask with one column says the same of all keys. */
static cm_value for_all_keys(struct cm_body *b, const struct cm_key_mask *m, cm_value mask)
{
    const cm_value shape = CM_COMPOSE_CONCAT(b, 0, cm_emit_int64s(b, 1, 1, 1), as_list(b, m->keys));
    return cm_emit(b, "Expand", mask, shape);
}

enum cm_status cm_compose_key_mask(struct cm_body *b, const struct cm_key_mask *m, cm_value *out)
{
    const struct cm_type *type = cm_compose_type(b, m->mask);
    const int rank = cm_compose_rank(b, m->mask);
    cm_value allowed;
    *out = 0;
    CM_TRY(b->build.status);
    if (rank == CM_RANK_UNKNOWN || rank < 1 || rank > 4)
        return cm_body_decline(b, "the rank of the mask is %s, must be known to be 1 to 4",
                               rank == CM_RANK_UNKNOWN ? "not known" : "another");
    if (rank == 2 && cm_dim_known(type->dims[1]) && type->dims[1].value == 1)
        return CM_OK;
    if (rank == 1) {
        allowed = between_ends(b, m);
    } else {
        const cm_value above = cm_emit(b, "Greater", rank == 4 ? window_of(b, m) : m->mask,
                                       cm_emit_scalar(b, CM_INT32, 0));
        allowed = rank == 2   ? CM_COMPOSE_UNSQUEEZE(b, above, 1, 2)
                  : rank == 3 ? CM_COMPOSE_UNSQUEEZE(b, above, 1)
                              : above;
    }
    const bool given = cm_node_attr(b->node, "mask_filter_value") != NULL;
    const double filter = given ? (double)cm_node_float(b->node, "mask_filter_value") : -10000.0;
    const cm_value added = cm_emit(b, "Where", allowed, cm_emit_scalar_like(b, m->like, 0),
                                   cm_emit_scalar_like(b, m->like, filter));
    *out = rank == 2 ? for_all_keys(b, m, added) : added;
    return b->build.status;
}

cm_value cm_compose_rotary(struct cm_body *b, const struct cm_rotation *rotation, cm_value x)
{
    struct cm_arena *arena = arena_of(b);
    const struct cm_type *cache = cm_compose_type(b, rotation->cosines);
    int64_t turned = rotation->turned;
    if (!turned && cache && cache->rank == 2 && cm_dim_known(cache->dims[1]))
        turned = 2 * cache->dims[1].value;
    return cm_emit_with(b, "RotaryEmbedding",
                        CM_ATTRIBUTES(cm_attr_int(arena, "interleaved", rotation->interleaved),
                                      cm_attr_int(arena, "rotary_embedding_dim", turned)),
                        x, rotation->cosines, rotation->sines, rotation->positions);
}
