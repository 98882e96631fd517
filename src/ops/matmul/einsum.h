/* Equations of Einsum: "ij,jk->ik" as lists of labels, one per axis. A label is a letter, or an
 * axis that "..." stands for; those are counted from the right, because that is how they broadcast.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_MATMUL_EINSUM_H
#define CM_OPS_MATMUL_EINSUM_H

#include "graph/op.h"

enum {
    CM_EINSUM_LETTERS = 52,
    CM_EINSUM_LABELS = CM_EINSUM_LETTERS + CM_MAX_RANK, /* the last "..." axis is the last label */
};

struct cm_einsum_term {
    int rank;
    unsigned char labels[CM_MAX_RANK];
};

/* Reads the equation. ranks[i] is that of operand i, CM_RANK_UNKNOWN where not known: then terms
 * with "..." are read as if it stood for nothing, and *vague is set. terms has room for n_operands
 * + 1; the last is the result. */
enum cm_status cm_einsum_parse(struct cm_str equation, size_t n_operands, const int *ranks,
                               struct cm_einsum_term *terms, bool *vague,
                               struct cm_error *err) CM_MUST_CHECK;

/* The gradient rule, in a file of its own. */
enum cm_status cm_einsum_grad(struct cm_grad *g);

#endif
