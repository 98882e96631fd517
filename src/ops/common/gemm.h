/* The matrix product that MatMul, Gemm, Einsum, convolution and recurrent networks share: C = alpha
 * A B + beta D for operands of any strides, every number type, blocked for the caches. Narrow
 * floats are multiplied as floats and rounded once, integers wrap around. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_COMMON_GEMM_H
#define CM_OPS_COMMON_GEMM_H

#include "tensor/dtype.h"

#include <stdbool.h>

/* Element (i, j) is at position first + i * row + j * column of data; a stride of 0 repeats. */
struct cm_matrix {
    const void *data;
    int64_t first, row, column;
};

struct cm_gemm {
    enum cm_dtype type;
    bool of_codes; /* with type CM_INT32: a and b are floats that hold whole numbers between -255
                      and 255; sums are exact and wrap around as integers */
    int64_t m, n, k;
    struct cm_matrix a, b; /* m x k and k x n */
    struct cm_matrix add;  /* D, m x n; data NULL: nothing is added. May be C itself */
    double alpha, beta;
    void *c; /* m x n, positions as in struct cm_matrix; no two elements the same */
    int64_t c_first, c_row, c_column;
};

/* Is there a product for this type? */
bool cm_gemm_has(enum cm_dtype type);
/* Bytes of scratch for products of at most these sizes. */
size_t cm_gemm_scratch(enum cm_dtype type, int64_t m, int64_t n, int64_t k);
void cm_gemm(const struct cm_gemm *g, void *scratch);

#endif
