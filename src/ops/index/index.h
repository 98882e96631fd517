/* What operators that read or write at computed places share: indices brought into range, elements
 * moved by width, and gradients put back where the values came from. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_INDEX_INDEX_H
#define CM_OPS_INDEX_INDEX_H

#include "ops/common/along_axis.h"

enum { CM_INDEX_BLOCK = 256 }; /* places worked out at a time */

/* The same without a reason: false when one is out of range. */
bool cm_index_places(const struct cm_tensor *indices, int64_t first, int64_t count, int64_t limit,
                     int64_t *to);
/* Fails for the first index that is out of range, which one must be. */
enum cm_status cm_index_fail(struct cm_call *call, const struct cm_tensor *indices,
                             int64_t limit) CM_MUST_CHECK;

/* to[i] = from[at[i]], elements of `width` bytes (1, 2, 4, 8, 16). */
void cm_index_gather(size_t width, int64_t count, const void *from, const int64_t *at, void *to);
/* to[at[i]] = from[i] */
void cm_index_scatter(size_t width, int64_t count, const void *from, const int64_t *at, void *to);

/* Elements are moved from in to out: refuses types stored below a byte, keeps the bytes of strings
 * alive. */
enum cm_status cm_index_movable(struct cm_call *call, const struct cm_tensor *from) CM_MUST_CHECK;

/* ---- for gradients ---- */

/* Zeros of the shape and type of x. */
cm_value cm_index_zeros(struct cm_grad *g, cm_value x);
/* Zeros like x, with the slices of dy along axis added at the indices (int64, rank 1): the gradient
 * of taking those slices. */
cm_value cm_index_put_slices(struct cm_grad *g, cm_value x, int axis, cm_value indices,
                             cm_value dy);
/* x seen as a flat list. */
cm_value cm_index_flat(struct cm_grad *g, cm_value x);
/* The rank of a value, or a failure that says it must be known. */
enum cm_status cm_index_rank(struct cm_grad *g, cm_value x, int *rank) CM_MUST_CHECK;

#endif
