/* MatMulNBits with attribute accuracy_level 4: its left operand is rounded to int8 in blocks before
 * it is multiplied. Which nodes do that, and how; for the operator itself and for backends. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_NBITS_FORM_H
#define CM_GRAPH_NBITS_FORM_H

#include "graph/graph.h"

/* Those that ONNX Runtime multiplies as integers: accuracy_level 4, zero points absent or integers,
 * no g_idx, and a block size that it has a kernel for. */
bool cm_nbits_rounds(const struct cm_node *node);

/* Rows of `columns` floats; each `block` of neighbours becomes round(x * (127 / max)) * (max /
 * 127), where max is the largest magnitude of the block. `to` may be `from`. */
void cm_nbits_round(const float *from, int64_t rows, int64_t columns, int64_t block, float *to);

#endif
