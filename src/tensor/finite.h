/* Looking for NaN and infinity. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TENSOR_FINITE_H
#define CM_TENSOR_FINITE_H

#include "tensor/tensor.h"

/* Is there neither a NaN nor an infinity among them? Elements that are no floats are finite. */
bool cm_elements_are_finite(enum cm_dtype type, const void *elements, int64_t count);
/* The same of a tensor in any layout, with the threads of the calling thread's team. */
bool cm_tensor_is_finite(const struct cm_tensor *tensor);

#endif
