/* Narrow floats and integers to and from float, one element or a block at a time. Rounding is to
 * nearest even. Kernels compute in float (or int32) and convert around the loop. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TENSOR_HALF_H
#define CM_TENSOR_HALF_H

#include "tensor/dtype.h"

float cm_half_to_float(uint16_t bits);
uint16_t cm_half_from_float(float value);
float cm_bfloat_to_float(uint16_t bits);
uint16_t cm_bfloat_from_float(float value);

/* What happens to values beyond the largest of a float8 type. */
enum cm_overflow { CM_SATURATE, CM_OVERFLOW_TO_NAN /* infinity for float8e5m2 */ };

/* float8 in its four forms, float8e8m0, float6 in two and float4e2m1 (in the low bits). What a
 * format without NaN makes of one is its largest number. */
float cm_minifloat_to_float(enum cm_dtype type, uint8_t bits);
uint8_t cm_minifloat_from_float(enum cm_dtype type, float value, enum cm_overflow overflow);

/* Is this a type that is converted around a computed loop (below 32 bits and not a whole-byte
 * integer)? */
bool cm_dtype_is_narrow(enum cm_dtype type);
/* count elements of a narrow type, starting with element first of packed storage, to floats and
 * back. Integers of 4 and 2 bits convert exactly; storing wraps them. Storing rewrites whole bytes:
 * threads must not share one. */
void cm_narrow_load(enum cm_dtype type, const void *from, int64_t first, int64_t count, float *to);
void cm_narrow_store(enum cm_dtype type, void *to, int64_t first, int64_t count, const float *from);

#endif
