/* How operators are computed on transposed operands: which of them can be, what becomes of their
 * axes, and how their results are transposed then. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_REWRITE_TRANSPOSE_RULES_H
#define CM_REWRITE_TRANSPOSE_RULES_H

#include "graph/op.h"
#include "rewrite/permutation.h"

/* A node that reads x where v = Transpose(x, p) is what it read, and gives y where Transpose(y,
 * out) is what it gave. */
struct cm_transposed {
    struct cm_perm out;
    bool has_axis; /* attribute `axis` becomes this */
    int64_t axis;
    int operand; /* an operand that becomes this list of integers; -1: none */
    enum cm_dtype type;
    bool is_scalar;
    size_t count;
    int64_t items[2 * CM_MAX_RANK];
};

/* False where node cannot be computed like that. */
bool cm_transpose_through(const struct cm_node *node, const struct cm_perm *p,
                          struct cm_transposed *out);
/* Is operand i one of those that are transposed? */
bool cm_transpose_moves(const struct cm_node *node, int i);

#endif
