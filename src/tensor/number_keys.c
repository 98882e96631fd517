/* Order-preserving keys. */
// SPDX-License-Identifier: Apache-2.0
#include "tensor/number_keys.h"

#include "base/machine.h"
#include "tensor/element_types.h"
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

/* The same of a float, in the upper half. */
static CM_ALWAYS_INLINE uint64_t key_of_float(float value, uint64_t nan_key)
{
    const float number = value + 0.0F; /* minus zero becomes zero */
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    const uint32_t key = bits >> 31 ? ~bits : bits | UINT32_C(1) << 31;
    return value == value ? (uint64_t)key << 32 : nan_key;
}

#define KEYS(TAG, ctype, name, expression)                                                         \
    static void keys_##TAG(const struct cm_tensor *tensor, int64_t first, int64_t count,           \
                           uint64_t nan_key, uint64_t *keys)                                       \
    {                                                                                              \
        (void)nan_key;                                                                             \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const ctype x = ((const ctype *)tensor->data)[first + i];                              \
            keys[i] = (expression);                                                                \
        }                                                                                          \
    }
static CM_ALWAYS_INLINE void float_keys_on(enum cm_machine machine, int64_t count, const float *x,
                                           uint64_t nan_key, uint64_t *keys)
{
    (void)machine;
    for (int64_t i = 0; i < count; i++)
        keys[i] = key_of_float(x[i], nan_key);
}
CM_TWO_BUILDS(float_keys, (int64_t count, const float *x, uint64_t nan_key, uint64_t *keys),
              (machine, count, x, nan_key, keys))

static void keys_FLOAT(const struct cm_tensor *x, int64_t first, int64_t count, uint64_t nan_key,
                       uint64_t *keys)
{
    float_keys_builds[cm_this_machine()](count, (const float *)x->data + first, nan_key, keys);
}

KEYS(DOUBLE, double, keys, key_of_real(x, nan_key))
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
        float_keys_builds[cm_this_machine()](n, block, nan_key, keys + at);
    }
}

cm_order_fn *cm_order_of(enum cm_dtype type)
{
    static cm_order_fn *const table[CM_DTYPE_COUNT] = {CM_NUMBER_TYPES(CM_LOOP_ENTRY, keys, ())};
    return cm_dtype_is_narrow(type) ? keys_narrow : table[type];
}
