/* Permutations of axes, as Transpose has them: axis a of the result is axis axes[a] of the operand.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_REWRITE_PERMUTATION_H
#define CM_REWRITE_PERMUTATION_H

#include "graph/builder.h"

struct cm_perm {
    int rank;
    unsigned char axes[CM_MAX_RANK];
};

bool cm_perm_equal(const struct cm_perm *a, const struct cm_perm *b);
bool cm_perm_is_identity(const struct cm_perm *p);
struct cm_perm cm_perm_inverse(const struct cm_perm *p);
/* Transpose by first, then by second, as one. */
struct cm_perm cm_perm_compose(const struct cm_perm *first, const struct cm_perm *second);
/* Do the elements of a result of this type lie in the order in which those of the operand lie? True
 * where only axes of size 1 move. */
bool cm_perm_keeps_order(const struct cm_perm *p, const struct cm_type *result);

/* The permutation of a Transpose node; false for other nodes and where the rank is not known. */
bool cm_perm_of_node(const struct cm_node *node, struct cm_perm *out);

/* Emits a Transpose. */
cm_value cm_perm_build(struct cm_builder *build, cm_value x, const struct cm_perm *p);

/* A constant transposed, seen as if it had leading axes of size 1 up to the rank of p. Not for
 * strings. */
enum cm_status cm_perm_apply(const struct cm_perm *p, const struct cm_tensor *from,
                             struct cm_tensor *out, struct cm_error *err) CM_MUST_CHECK;

#endif
