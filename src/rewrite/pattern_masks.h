/* Masks of attention: what adding one does to a row of scores. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_REWRITE_PATTERN_MASKS_H
#define CM_REWRITE_PATTERN_MASKS_H

#include "rewrite/pattern_match.h"

/* Of a float tensor of rank 1 or more. */
enum cm_mask_kind cm_mask_kind(struct cm_module *module, struct cm_mask_memo *memo, cm_value mask);

#endif
