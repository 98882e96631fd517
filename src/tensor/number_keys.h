/* Numbers of any type as keys that compare as the numbers do. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TENSOR_NUMBER_KEYS_H
#define CM_TENSOR_NUMBER_KEYS_H

#include "tensor/tensor.h"

/* Keys of count elements of x from element first on. Both zeros have one key; every NaN has
 * nan_key. */
typedef void cm_order_fn(const struct cm_tensor *x, int64_t first, int64_t count, uint64_t nan_key,
                         uint64_t *keys);
/* NULL for types without an order. */
cm_order_fn *cm_order_of(enum cm_dtype type);

#endif
