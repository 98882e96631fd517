/* What the attention operators of com.microsoft share: their masks, and the standard Attention that
 * each of them becomes. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_MICROSOFT_ATTENTION_PARTS_H
#define CM_OPS_MICROSOFT_ATTENTION_PARTS_H

#include "graph/node_formula.h"

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

/* Functions of formulas: (batch, length, n * size) as (batch, n, length, size), and back. */
#define CM_HEADS                                                                                   \
    "apart(t, n) = Transpose<perm=[0, 2, 1, 3]>(Reshape(t, [0, 0, n, -1]));"                       \
    "together(t) = Reshape(Transpose<perm=[0, 2, 1, 3]>(t), [0, 0, -1]);"
cm_value cm_compose_heads_together(struct cm_body *b, cm_value x);

/* Adds to parts->mask a mask of integers that says which keys count, in one of its forms:
 *   (batch): keys before this one; (2 * batch): the ends of the keys that count, then their starts;
 *   (batch, keys), (batch, queries, keys): above 0; (batch, 1, most, most): the same for sequences
 *   of any length, of which the rows after the past count.
 * What is added to the scores has the type of `queries`: 0, or the attribute mask_filter_value.
 * `axis` is that of the places in `queries` and in `keys`, those after the past (0: as many as
 * queries). An absent mask adds nothing. */
enum cm_status cm_compose_key_mask(struct cm_body *b, struct cm_attention_parts *parts,
                                   cm_value mask, cm_value queries, cm_value keys,
                                   int axis) CM_MUST_CHECK;

/* What turns pairs of elements by the angle of their position. */
struct cm_rotation {
    cm_value cosines, sines, positions; /* positions: (batch, length) */
    bool interleaved;
    int64_t turned; /* elements of a head that are turned; 0: as the caches say, or all */
};
/* Elements of a head that are turned: as given, or as the cosines say; 0: all. */
int64_t cm_compose_turned(const struct cm_body *b, cm_value cosines, int64_t given);
/* x is (batch, heads, length, size). */
cm_value cm_compose_rotary(struct cm_body *b, const struct cm_rotation *rotation, cm_value x);

#endif
