/* The rules of the pass `patterns`, by what they find. Each list ends with a row without name. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_REWRITE_PATTERNS_H
#define CM_REWRITE_PATTERNS_H

#include "rewrite/pattern_match.h"

extern const struct cm_pattern_row cm_activation_patterns[]; /* GELU, SiLU, Mish */
extern const struct cm_pattern_row cm_norm_patterns[];       /* layer norm, RMS norm */
extern const struct cm_pattern_row cm_loss_patterns[];       /* softmax with cross-entropy */

/* Attention has too many spellings for rows: does this product end one? */
bool cm_attention_match(struct cm_node *root, struct cm_mask_memo *memo, struct cm_group *out);
cm_group_build_fn cm_attention_build;

#endif
