/* The rules of the passes `patterns` and `quantized`, by what they find. Each list ends with a row
 * without name. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_REWRITE_PATTERNS_H
#define CM_REWRITE_PATTERNS_H

#include "rewrite/pattern_match.h"

extern const struct cm_pattern_row cm_activation_patterns[]; /* GELU, SiLU, Mish */
extern const struct cm_pattern_row cm_norm_patterns[];       /* layer norm, RMS norm */
extern const struct cm_pattern_row cm_loss_patterns[];       /* softmax with cross-entropy */

extern const struct cm_pattern_row cm_quantized_patterns[]; /* products and moves of codes */

/* Replaces what rows of these tables find, from the last node to the first; and attention. */
enum cm_status cm_patterns_apply(struct cm_graph *graph, const struct cm_pattern_row *const *tables,
                                 size_t n_tables, bool attention,
                                 struct cm_error *err) CM_MUST_CHECK;

/* Attention has too many spellings for rows: does this product end one? */
bool cm_attention_match(struct cm_node *root, struct cm_mask_memo *memo, struct cm_group *out);
cm_group_build_fn cm_attention_build;

#endif
