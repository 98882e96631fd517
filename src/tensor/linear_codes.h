/* Floats to and from quantized values of 8 and 16 bits that share a scale and a zero point;
 * compiled for each instruction set. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TENSOR_LINEAR_CODES_H
#define CM_TENSOR_LINEAR_CODES_H

#include "tensor/dtype.h"

/* x / scale, rounded to even, plus zero; NaN becomes the lowest. */
typedef void cm_quantize_fn(int64_t count, const float *x, float scale, float zero, void *codes);
/* (code - zero) * scale */
typedef void cm_dequantize_fn(int64_t count, const void *codes, float scale, float zero, float *y);

/* The loop for this machine; NULL: there is none for the type. */
cm_quantize_fn *cm_quantize_loop(enum cm_dtype type);
cm_dequantize_fn *cm_dequantize_loop(enum cm_dtype type);

#endif
