/* The order of an epoch: a permutation of [0, count) computed position by position, so that it
 * takes no memory and any place of it can be asked for. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_IO_SHUFFLE_H
#define CM_IO_SHUFFLE_H

#include "base/compiler.h"

enum { CM_SHUFFLE_ROUNDS = 8 };

struct cm_shuffle {
    uint64_t count;
    int half; /* bits of each half of a position */
    uint64_t keys[CM_SHUFFLE_ROUNDS];
};

/* Follows from these three alone. count is at least 1. */
void cm_shuffle_init(struct cm_shuffle *shuffle, int64_t count, uint64_t seed, uint64_t epoch);
int64_t cm_shuffle_at(const struct cm_shuffle *shuffle, int64_t position);

#endif
