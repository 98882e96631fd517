/* Masks of attention: what adding one does to a row of scores. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_REWRITE_PATTERN_MASKS_H
#define CM_REWRITE_PATTERN_MASKS_H

#include "rewrite/pattern_match.h"

/* A row of scores that are all -inf is NaN after a softmax and 0 after the operator. */
enum cm_mask_kind {
    CM_MASK_ANY,    /* may hide a whole row, or hold what is no number */
    CM_MASK_FINITE, /* hides nothing that another could not bring back */
    CM_MASK_OPEN,   /* 0 or -inf somewhere in each row, never -inf in all of it */
    CM_MASK_CAUSAL, /* 0 on and below the diagonal of a square, -inf above */
};

/* Of a float tensor of rank 1 or more. */
enum cm_mask_kind cm_mask_kind(struct cm_module *module, struct cm_mask_memo *memo, cm_value mask);

#endif
