/* Rows of 16-bit floats to and from float, many at once, with the bits of the functions for one in
 * tensor/half.h. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TENSOR_HALF_ROWS_H
#define CM_TENSOR_HALF_ROWS_H

#include "base/compiler.h"

void cm_half_load(int64_t count, const uint16_t *from, float *to);
void cm_half_store(int64_t count, const float *from, uint16_t *to);
void cm_bfloat_load(int64_t count, const uint16_t *from, float *to);
void cm_bfloat_store(int64_t count, const float *from, uint16_t *to);

#endif
