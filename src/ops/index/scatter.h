/* How scattered updates join what is there, and the gradient that ScatterElements and ScatterND
 * share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_INDEX_SCATTER_H
#define CM_OPS_INDEX_SCATTER_H

#include "graph/op.h"

enum cm_joining { CM_JOIN_NONE, CM_JOIN_ADD, CM_JOIN_MUL, CM_JOIN_MAX, CM_JOIN_MIN };

/* Joins for one element type: see cm_join. */
typedef void cm_join_fn(int64_t count, const void *from, const int64_t *at, void *to);
struct cm_join {
    enum cm_joining how;
    enum cm_dtype type;
    cm_join_fn *loop; /* of the type, or of float around which a narrow type is converted; NULL for
                         CM_JOIN_NONE */
};
/* In prepare: fails for types that cannot be joined that way. */
enum cm_status cm_join_init(struct cm_call *call, struct cm_join *join) CM_MUST_CHECK;
/* to[at[i]] = to[at[i]] joined with element first + i of from, in order. */
void cm_join_at(const struct cm_join *join, int64_t count, const void *from, int64_t first,
                const int64_t *at, void *to);

/* op->arg of both: the operator that reads at the same places. */
enum cm_status cm_scatter_grad(struct cm_grad *g);
enum cm_status cm_scatter_infer(struct cm_infer *in);
/* Copies the data into the output, unless they are the same memory, and keeps strings alive. */
enum cm_status cm_scatter_begin(struct cm_call *call) CM_MUST_CHECK;

#endif
