/* Runs of elements as doubles. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/common/reals.h"

#include "tensor/element_types.h"
#include "tensor/half.h"

#include <math.h>

typedef void load_fn(int64_t count, const void *from, double *to);
typedef void store_fn(int64_t count, const double *from, void *to);

#define LOAD_ROW(TAG, ctype, name, extra)                                                          \
    static void name##_##TAG(int64_t count, const void *from, double *to)                          \
    {                                                                                              \
        const ctype *xs = from;                                                                    \
        for (int64_t i = 0; i < count; i++)                                                        \
            to[i] = (double)xs[i];                                                                 \
    }
/* The limits are those of the type; the upper one of 64 bits is no double, so it is compared with
 * the power of two above it. */
#define NEAREST(v, ctype, lowest, highest)                                                         \
    (v != v                         ? 0                                                            \
     : v <= (double)(lowest)        ? (lowest)                                                     \
     : v >= (double)(highest) + 1.0 ? (highest)                                                    \
                                    : (ctype)v)
#define STORE_INTEGER(TAG, ctype, lowest, highest)                                                 \
    static void store_##TAG(int64_t count, const double *from, void *to)                           \
    {                                                                                              \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const double v = nearbyint(from[i]);                                                   \
            ((ctype *)to)[i] = NEAREST(v, ctype, lowest, highest);                                 \
        }                                                                                          \
    }
#define STORE_FLOAT(TAG, ctype, name, extra)                                                       \
    static void name##_##TAG(int64_t count, const double *from, void *to)                          \
    {                                                                                              \
        ctype *ys = to;                                                                            \
        for (int64_t i = 0; i < count; i++)                                                        \
            ys[i] = (ctype)from[i];                                                                \
    }

CM_NUMBER_TYPES(LOAD_ROW, load, ())
CM_FLOAT_TYPES(STORE_FLOAT, store, ())
STORE_INTEGER(INT8, int8_t, INT8_MIN, INT8_MAX)
STORE_INTEGER(INT16, int16_t, INT16_MIN, INT16_MAX)
STORE_INTEGER(INT32, int32_t, INT32_MIN, INT32_MAX)
STORE_INTEGER(INT64, int64_t, INT64_MIN, INT64_MAX)
STORE_INTEGER(UINT8, uint8_t, 0, UINT8_MAX)
STORE_INTEGER(UINT16, uint16_t, 0, UINT16_MAX)
STORE_INTEGER(UINT32, uint32_t, 0, UINT32_MAX)
STORE_INTEGER(UINT64, uint64_t, 0, UINT64_MAX)

static void store_BOOL(int64_t count, const double *from, void *to)
{
    uint8_t *ys = to;
    for (int64_t i = 0; i < count; i++)
        ys[i] = from[i] != 0;
}

static load_fn *const loads[CM_DTYPE_COUNT] = {CM_NUMBER_TYPES(CM_LOOP_ENTRY, load, ())[CM_BOOL] =
                                                   load_UINT8};
static store_fn *const stores[CM_DTYPE_COUNT] = {
    CM_NUMBER_TYPES(CM_LOOP_ENTRY, store, ())[CM_BOOL] = store_BOOL};

enum { BLOCK = 256 };

bool cm_reals_have(enum cm_dtype type)
{
    return loads[type] || cm_dtype_is_narrow(type);
}

void cm_reals_load(enum cm_dtype type, const void *from, int64_t first, int64_t count, double *to)
{
    if (loads[type]) {
        loads[type](count, (const char *)from + (size_t)first * cm_dtype_size(type), to);
        return;
    }
    for (int64_t at = 0; at < count; at += BLOCK) {
        const int64_t n = count - at < BLOCK ? count - at : BLOCK;
        float block[BLOCK];
        cm_narrow_load(type, from, first + at, n, block);
        load_FLOAT(n, block, to + at);
    }
}

void cm_reals_store(enum cm_dtype type, void *to, int64_t first, int64_t count, const double *from)
{
    if (stores[type]) {
        stores[type](count, from, (char *)to + (size_t)first * cm_dtype_size(type));
        return;
    }
    for (int64_t at = 0; at < count; at += BLOCK) {
        const int64_t n = count - at < BLOCK ? count - at : BLOCK;
        float block[BLOCK];
        store_FLOAT(n, from + at, block);
        cm_narrow_store(type, to, first + at, n, block);
    }
}
