/* Order-preserving keys. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/index/order.h"

#include "ops/elementwise/types.h"
#include "tensor/half.h"

#include <math.h>

#define SIGN_BIT (UINT64_C(1) << 63)

/* The bits of a float order like its magnitude; negative ones the other way round. Every float is a
 * double of the same order. */
static uint64_t key_of_real(double value, uint64_t nan_key)
{
    uint64_t bits;
    if (isnan(value))
        return nan_key;
    value += 0.0; /* minus zero becomes zero */
    memcpy(&bits, &value, sizeof bits);
    return bits & SIGN_BIT ? ~bits : bits | SIGN_BIT;
}

#define KEYS(TAG, ctype, name, expression)                                                         \
    static void keys_##TAG(const struct cm_tensor *tensor, int64_t first, int64_t count,           \
                           uint64_t nan_key, uint64_t *keys)                                       \
    {                                                                                              \
        const ctype *xs = (const ctype *)tensor->data + first;                                     \
        (void)nan_key;                                                                             \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const ctype x = xs[i];                                                                 \
            keys[i] = (expression);                                                                \
        }                                                                                          \
    }
CM_FLOAT_TYPES(KEYS, keys, key_of_real((double)x, nan_key))
CM_SIGNED_TYPES(KEYS, keys, (uint64_t)x ^ SIGN_BIT)
CM_UNSIGNED_TYPES(KEYS, keys, x)

enum { BLOCK = 256 };

static void keys_narrow(const struct cm_tensor *x, int64_t first, int64_t count, uint64_t nan_key,
                        uint64_t *keys)
{
    float block[BLOCK];
    for (int64_t at = 0; at < count; at += BLOCK) {
        const int64_t n = count - at < BLOCK ? count - at : BLOCK;
        cm_narrow_load(x->type, x->data, first + at, n, block);
        for (int64_t i = 0; i < n; i++)
            keys[at + i] = key_of_real((double)block[i], nan_key);
    }
}

cm_order_fn *cm_order_of(enum cm_dtype type)
{
    static cm_order_fn *const table[CM_DTYPE_COUNT] = {CM_NUMBER_TYPES(CM_LOOP_ENTRY, keys, ())};
    return cm_dtype_is_narrow(type) ? keys_narrow : table[type];
}
