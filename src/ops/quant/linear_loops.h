/* Floats to and from the codes that most models use, with one scale: 8 and 16 bits. Compiled for
 * each instruction set, on all threads. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_QUANT_LINEAR_LOOPS_H
#define CM_OPS_QUANT_LINEAR_LOOPS_H

#include "graph/op.h"

/* Are there loops for codes of this type? */
bool cm_codes_have_loops(enum cm_dtype type);
void cm_quantize_all(enum cm_dtype type, int64_t count, const float *x, float scale, float zero,
                     void *codes);
void cm_dequantize_all(enum cm_dtype type, int64_t count, const void *codes, float scale,
                       float zero, float *y);

/* QuantizeLinear and DequantizeLinear element by element, where they have one scale. */
cm_elementwise_fn cm_quantize_elementwise, cm_dequantize_elementwise;

#endif
