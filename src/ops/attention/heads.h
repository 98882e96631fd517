/* Tensors of heads: (batch, heads, length, size), or (batch, length, heads * size) with the number
 * of heads said elsewhere. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_ATTENTION_HEADS_H
#define CM_OPS_ATTENTION_HEADS_H

#include "graph/op.h"

/* What is known before it runs. */
struct cm_heads_type {
    struct cm_dim batch, heads, length, size;
};
/* heads is used for rank 3 only. Refuses other ranks than 3 and 4. */
enum cm_status cm_heads_read(struct cm_infer *in, int i, int64_t heads,
                             struct cm_heads_type *out) CM_MUST_CHECK;

/* Refuses two sizes that differ; what: "batches". */
enum cm_status cm_heads_unify(struct cm_infer *in, struct cm_dim a, struct cm_dim b,
                              const char *what) CM_MUST_CHECK;

struct cm_heads {
    int64_t batch, heads, length, size;
    int64_t head_stride, row_stride; /* in elements */
};
struct cm_heads cm_heads_of(const struct cm_shape *shape, int64_t heads);
/* Where the row of one position begins; its size elements lie side by side. */
int64_t cm_heads_row(const struct cm_heads *heads, int64_t batch, int64_t head, int64_t position);

#endif
