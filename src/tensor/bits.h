/* Moving elements of any type by position, packed ones included: what operators that compute
 * nothing are made of. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TENSOR_BITS_H
#define CM_TENSOR_BITS_H

#include "tensor/dtype.h"

/* Copies count elements; positions are in elements. The ranges must not overlap. */
void cm_elements_copy(enum cm_dtype type, void *to, int64_t to_first, const void *from,
                      int64_t from_first, int64_t count);

/* One packed element (fewer than 8 bits) as its bit pattern. */
uint8_t cm_packed_get(int bits, const void *data, int64_t i);
void cm_packed_set(int bits, void *data, int64_t i, uint8_t value);

#endif
