/* What the attention operators of com.microsoft share: their masks, and the standard Attention that
 * each of them becomes. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_MICROSOFT_ATTENTION_PARTS_H
#define CM_OPS_MICROSOFT_ATTENTION_PARTS_H

#include "ops/microsoft/compose.h"

/* One standard Attention: what goes in, and after cm_compose_attention what came out. */
struct cm_attention_parts {
    cm_value q, k, v;              /* all of rank 3, or of rank 4 with heads on axis 1 */
    cm_value past_key, past_value; /* 0: absent */
    cm_value mask;                 /* to be added to the scores; 0: none */
    int64_t q_heads, kv_heads;     /* for operands of rank 3; 0: rank 4 */
    bool causal;                   /* a query sees the past and what comes up to itself */
    float scale;                   /* 0: one over the root of the head size */
    float softcap;                 /* 0: none */
    bool wants_present;
    bool wants_scores;
    int64_t scores_mode; /* qk_matmul_output_mode of ONNX */
    cm_value result, present_key, present_value, scores;
};

void cm_compose_attention(struct cm_body *b, struct cm_attention_parts *parts);

/* (batch, length, heads * size) as (batch, heads, length, size), and back. */
cm_value cm_compose_heads_apart(struct cm_body *b, cm_value x, int64_t heads);
cm_value cm_compose_heads_together(struct cm_body *b, cm_value x);

/* A mask of integers that says which keys count, in one of its forms:
 *   (batch): keys before this one; (2 * batch): the ends of the keys that count, then their starts;
 *   (batch, keys), (batch, queries, keys): above 0; (batch, 1, most, most): the same for sequences
 *   of any length, of which the rows after the past count.
 * Gives what is to be added to the scores, in the type of `like`: 0, or the attribute
 * mask_filter_value. queries and past are scalars: how many queries there are, and how many keys
 * come before the first of them; keys is how many keys there are. */
struct cm_key_mask {
    cm_value mask;
    cm_value like;
    cm_value batch;               /* a list of one */
    cm_value queries, past, keys; /* scalars */
};
enum cm_status cm_compose_key_mask(struct cm_body *b, const struct cm_key_mask *m,
                                   cm_value *out) CM_MUST_CHECK;

/* What turns pairs of elements by the angle of their position. */
struct cm_rotation {
    cm_value cosines, sines, positions; /* positions: (batch, length) */
    bool interleaved;
    int64_t turned; /* elements of a head that are turned; 0: as the caches say, or all */
};
/* x is (batch, heads, length, size). */
cm_value cm_compose_rotary(struct cm_body *b, const struct cm_rotation *rotation, cm_value x);

#endif
