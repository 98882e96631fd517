/* Attention of com.microsoft: projects its input to queries, keys and values by one matrix. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/attention_parts.h"

enum { IN_INPUT, IN_WEIGHTS, IN_BIAS, IN_MASK, IN_PAST, IN_ATTENTION_BIAS, IN_PAST_LENGTH };
enum { OUT_RESULT, OUT_PRESENT };

/* Queries, keys and values lie side by side in the last axis. */
static enum cm_status project(struct cm_body *b, struct cm_attention_parts *parts)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    const int64_t heads = cm_node_int(b->node, "num_heads");
    const struct cm_int64s sizes = cm_node_ints(b->node, "qkv_hidden_sizes");
    const cm_value all = cm_compose_add(
        b, cm_emit(b, "MatMul", cm_body_input(b, IN_INPUT), cm_body_input(b, IN_WEIGHTS)),
        cm_body_input(b, IN_BIAS));
    const struct cm_attribute_proto attributes[] = {cm_attr_int(arena, "axis", -1),
                                                    cm_attr_int(arena, "num_outputs", 3)};
    cm_value results[3] = {0};
    if (sizes.count != 0 && sizes.count != 3)
        return cm_body_decline(b, "attribute 'qkv_hidden_sizes' has %zu sizes, needs 3",
                               sizes.count);
    const cm_value inputs[] = {all, sizes.count ? cm_build_int64s(&b->build, 3, sizes.items) : 0};
    results[0] = cm_build(&b->build, &(struct cm_emission){.op = "Split",
                                                           .inputs = inputs,
                                                           .n_inputs = sizes.count ? 2 : 1,
                                                           .attributes = attributes,
                                                           .n_attributes = sizes.count ? 1 : 2,
                                                           .n_outputs = 3,
                                                           .outputs = results});
    parts->q = cm_compose_heads_apart(b, results[0], heads);
    parts->k = cm_compose_heads_apart(b, results[1], heads);
    parts->v = cm_compose_heads_apart(b, results[2], heads);
    return b->build.status;
}

static cm_value past_part(struct cm_body *b, int64_t part)
{
    const cm_value past = cm_body_input(b, IN_PAST);
    return past ? cm_emit(b, "Gather", past, cm_build_int64(&b->build, part)) : 0;
}

static enum cm_status set_mask(struct cm_body *b, struct cm_attention_parts *parts)
{
    const cm_value mask = cm_body_input(b, IN_MASK), input = cm_body_input(b, IN_INPUT);
    if (mask) {
        const cm_value queries = cm_compose_dim(b, input, 1);
        const cm_value past =
            parts->past_key ? cm_compose_dim(b, parts->past_key, 2) : cm_build_int64(&b->build, 0);
        const struct cm_key_mask key_mask = {.mask = mask,
                                             .like = input,
                                             .batch = cm_compose_dims(b, input, 0, 1),
                                             .queries = queries,
                                             .past = past,
                                             .keys = cm_emit(b, "Add", past, queries)};
        CM_TRY(cm_compose_key_mask(b, &key_mask, &parts->mask));
    }
    parts->mask = cm_compose_add(b, parts->mask, cm_body_input(b, IN_ATTENTION_BIAS));
    return b->build.status;
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
    CM_TRY(set_mask(b, &parts));
    cm_compose_attention(b, &parts);
    CM_TRY(cm_body_return(b, OUT_RESULT, cm_compose_heads_together(b, parts.result)));
    if (!parts.wants_present)
        return CM_OK;
    return cm_body_return(b, OUT_PRESENT,
                          CM_COMPOSE_CONCAT(b, 0, CM_COMPOSE_UNSQUEEZE(b, parts.present_key, 0),
                                            CM_COMPOSE_UNSQUEEZE(b, parts.present_value, 0)));
}

CM_OP_IN(microsoft, "com.microsoft", Attention, .body = attention_body);
