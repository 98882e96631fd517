/* Moving elements without looking at them: copies between strided places, written per element width
 * and never per type. Types below a byte are moved by their bits in packed storage. String elements
 * are views: whoever moves them also calls cm_move_hold, so that the bytes stay. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_COMMON_MOVE_H
#define CM_OPS_COMMON_MOVE_H

#include "graph/op.h"

/* A copy ready to run: axes of length 1 dropped, neighbouring axes merged, ordered for memory.
 * Innermost axis first. */
struct cm_move {
    int rank;   /* 0: one element */
    bool empty; /* nothing to do */
    int64_t dims[CM_MAX_RANK], from_strides[CM_MAX_RANK], to_strides[CM_MAX_RANK];
    int64_t from_at, to_at; /* the first element on either side */
};

/* Plans copying dims[0] x .. x dims[rank - 1] elements, outermost axis first, strides in elements
 * (from: any, 0 repeats; to: no two elements the same). rank may be up to twice CM_MAX_RANK if the
 * product of dims fits in 63 bits. */
void cm_move_plan(struct cm_move *move, int rank, const int64_t *dims, const int64_t *from_strides,
                  const int64_t *to_strides);
void cm_move_run(const struct cm_move *move, enum cm_dtype type, const void *from, void *to);

/* A copy of so many bytes, by all threads. */
void cm_move_bytes(void *to, const void *from, size_t bytes);
/* count elements side by side; from and to are the starts of the tensors, the positions are in
 * elements. */
void cm_move_span(enum cm_dtype type, const void *from, int64_t from_at, void *to, int64_t to_at,
                  int64_t count);
/* count copies of element from_at, side by side. */
void cm_move_fill(enum cm_dtype type, const void *from, int64_t from_at, void *to, int64_t to_at,
                  int64_t count);
/* to[i] = from[from_at + i * step]. */
void cm_move_row(enum cm_dtype type, const void *from, int64_t from_at, int64_t step, void *to,
                 int64_t to_at, int64_t count);
/* All bits zero: 0, false or the empty string. Not for float8e8m0, which has no zero. */
void cm_move_zero(enum cm_dtype type, void *to, int64_t to_at, int64_t count);

/* Keeps the bytes of from's strings alive as long as to; does nothing for other types. */
enum cm_status cm_move_hold(struct cm_tensor *to, const struct cm_tensor *from,
                            struct cm_error *err) CM_MUST_CHECK;

/* The whole of input 0 into output 0, whatever their shapes; the run of operators that change
 * nothing but the shape. */
enum cm_status cm_run_copy(struct cm_call *call);
/* Output 0 may be written over input 0. */
enum cm_sharing cm_share_first(const struct cm_node *node, int output, int input);
/* Output 0 is input 0's bytes. */
enum cm_sharing cm_share_view(const struct cm_node *node, int output, int input);

#endif
