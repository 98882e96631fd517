/* Steps of the pass `transposes` that need no choice: each is right wherever it can be done. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_REWRITE_TRANSPOSE_STEPS_H
#define CM_REWRITE_TRANSPOSE_STEPS_H

#include "graph/op.h"
#include "rewrite/permutation.h"

struct cm_transpose_steps {
    struct cm_module *module;
    size_t bytes; /* that new constants may still take */
    struct cm_error *err;
};

/* Adds a Transpose of x before a node. */
enum cm_status cm_transpose_emit(struct cm_transpose_steps *t, struct cm_node *before, cm_value x,
                                 const struct cm_perm *p, cm_value *out) CM_MUST_CHECK;
/* A constant transposed; *out is 0 where it cannot be. */
enum cm_status cm_transpose_constant(struct cm_transpose_steps *t, struct cm_graph *graph,
                                     const struct cm_tensor *from, const struct cm_perm *p,
                                     cm_value *out) CM_MUST_CHECK;
/* All Transposes of a graph that move nothing, or are of a constant or of a Transpose. */
enum cm_status cm_transpose_merge(struct cm_transpose_steps *t,
                                  struct cm_graph *graph) CM_MUST_CHECK;

/* A product of two matrices: Gemm, or a MatMul that could be one. */
bool cm_is_matrix_product(const struct cm_node *node);
/* Such a node reads what its operands are the Transposes of: Gemm does that at no cost. */
enum cm_status cm_transpose_into_product(struct cm_transpose_steps *t,
                                         struct cm_node *node) CM_MUST_CHECK;
/* A Transpose of such a node, which nobody else reads and which adds nothing, becomes the product
 * of its operands the other way round. */
enum cm_status cm_transpose_of_product(struct cm_transpose_steps *t,
                                       struct cm_node *node) CM_MUST_CHECK;
bool cm_is_shape(const struct cm_node *node);
/* Where only shapes are read of a Transpose, they are read of its operand and put in order. */
enum cm_status cm_transpose_read_shape(struct cm_transpose_steps *t, struct cm_node *node,
                                       const struct cm_perm *p) CM_MUST_CHECK;
/* A Transpose that leaves the elements in their order becomes a Reshape, which moves none. */
enum cm_status cm_transpose_as_reshape(struct cm_transpose_steps *t,
                                       struct cm_node *node) CM_MUST_CHECK;

#endif
