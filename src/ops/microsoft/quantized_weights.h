/* MatMulNBits and MatMulBnb4: products with a matrix whose rows (N of K numbers) are stored as
 * codes of a few bits, with a scale for each block of neighbours. What their kernel and their
 * bodies have to know of the attributes. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_MICROSOFT_QUANTIZED_WEIGHTS_H
#define CM_OPS_MICROSOFT_QUANTIZED_WEIGHTS_H

#include "graph/op.h"

struct cm_coded_weights {
    int64_t n, k; /* rows and columns */
    int64_t bits, block;
    int64_t
        blocks; /* MatMulNBits: in a row; MatMulBnb4, where blocks go over the ends of rows: all */
    int64_t row_bytes, zero_bytes; /* MatMulNBits: of a row of codes, and of packed zero points */
    int64_t bytes;                 /* of all codes */
};

/* Reads and checks the attributes; the message is complete. */
enum cm_status cm_coded_weights_read(const struct cm_node *node, struct cm_coded_weights *out,
                                     struct cm_error *err) CM_MUST_CHECK;
cm_body_fn cm_matmulnbits_body, cm_matmulbnb4_body;

#endif
