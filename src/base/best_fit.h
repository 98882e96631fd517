/* Best fit: places in a block of memory whose size is not fixed. A list holds the gaps between what
 * is in use, sorted by offset; bytes are taken from the smallest gap that has as many, or else at
 * the end. Nothing here allocates. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_BEST_FIT_H
#define CM_BASE_BEST_FIT_H

#include "base/array.h"

struct cm_gap {
    size_t offset, size;
};

struct cm_gaps {
    CM_ARRAY(struct cm_gap); /* never adjacent */
    size_t end;              /* of the last byte in use or in a gap */
};

/* The offset of `size` bytes, which is not 0. The end may not overflow. */
size_t cm_gaps_take(struct cm_gaps *gaps, size_t size);
/* Those bytes are free again; the list has capacity for one more gap. */
void cm_gaps_give_back(struct cm_gaps *gaps, size_t offset, size_t size);

#endif
