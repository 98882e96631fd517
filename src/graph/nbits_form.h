/* MatMulNBits and MatMulBnb4, for the operators themselves and for backends. MatMulNBits with
 * attribute accuracy_level 4 rounds its left operand to int8 in blocks before it is multiplied:
 * which nodes do that, and how. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_NBITS_FORM_H
#define CM_GRAPH_NBITS_FORM_H

#include "graph/graph.h"

struct cm_call;

/* MatMulBnb4's 16 numbers, for FP4 or NF4. */
extern const float cm_bnb4_numbers[2][16];

/* Those that ONNX Runtime multiplies as integers: accuracy_level 4, zero points absent or integers,
 * no g_idx, and a block size that it has a kernel for. */
bool cm_nbits_rounds(const struct cm_node *node);

/* Rows of `columns` floats; each `block` of neighbours becomes round(x * (127 / max)) * (max /
 * 127), where max is the largest magnitude of the block. `to` may be `from`. */
void cm_nbits_round(const float *from, int64_t rows, int64_t columns, int64_t block, float *to);

/* Fails if g_idx names a block that a row of `blocks` blocks does not have. */
enum cm_status cm_nbits_check_groups(struct cm_call *call, const struct cm_tensor *g_idx,
                                     int64_t blocks) CM_MUST_CHECK;

#endif
