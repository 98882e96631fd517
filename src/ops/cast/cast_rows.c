/* Rows of elements of one type as another, for the pairs that models are full of. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/cast/cast_rows.h"

#include "base/machine.h"
#include "ops/cast/number_text.h"
#include "tensor/half_rows.h"

#include <math.h>

enum { BLOCK = 512 }; /* floats looked at before they are converted */

/* Defines <from>_to_<to>, which is built per machine; x is the element. */
#define EACH(from_type, to_type, expression)                                                       \
    CM_ANY_ORDER                                                                                   \
    for (int64_t k = 0; k < count; k++) {                                                          \
        const from_type x = xs[k];                                                                 \
        ys[k] = (to_type)(expression);                                                             \
    }
#define ROWS(from_type, to_type) int64_t count, const from_type *xs, to_type *ys
#define DIRECT(BUILDS, name, from_type, to_type, expression)                                       \
    static CM_ALWAYS_INLINE void name##_rows_on(enum cm_machine machine, ROWS(from_type, to_type)) \
    {                                                                                              \
        (void)machine;                                                                             \
        EACH(from_type, to_type, expression)                                                       \
    }                                                                                              \
    BUILDS(name##_rows, (ROWS(from_type, to_type)), (machine, count, xs, ys))
#define DIRECT_ROW(BUILDS, FROM, from_type, TO, to_type, expression)                               \
    DIRECT(BUILDS, FROM##_to_##TO, from_type, to_type, expression)                                 \
    static void FROM##_to_##TO(int64_t count, const void *from, void *to)                          \
    {                                                                                              \
        FROM##_to_##TO##_rows_builds[cm_this_machine()](count, from, to);                          \
    }
/* Floats that the type holds, or 32 bits whose low ones are kept, convert as the processor does it;
 * a block with others goes one by one. */
#define CUT(TO, to_type)                                                                           \
    static void cut_to_##TO(int64_t count, const void *from, void *to)                             \
    {                                                                                              \
        for (int64_t k = 0; k < count; k++)                                                        \
            ((to_type *)to)[k] = (to_type)cm_number_cut((double)((const float *)from)[k]);         \
    }
#define FROM_FLOAT(BUILDS, TO, to_type, middle, limit)                                             \
    DIRECT_ROW(BUILDS, WITHIN, float, TO, to_type, (middle)x)                                      \
    CUT(TO, to_type)                                                                               \
    static void FLOAT_to_##TO(int64_t count, const void *from, void *to)                           \
    {                                                                                              \
        cut_blocks(count, from, limit, WITHIN_to_##TO, cut_to_##TO, to, sizeof(to_type));          \
    }

static CM_ALWAYS_INLINE void count_outside_on(enum cm_machine machine, int64_t count,
                                              const float *x, float limit, int32_t *outside)
{
    int32_t found = 0;
    (void)machine;
    for (int64_t k = 0; k < count; k++)
        found += !(fabsf(x[k]) < limit); /* NaN too */
    *outside = found;
}
CM_TWO_BUILDS(count_outside, (int64_t count, const float *x, float limit, int32_t *outside),
              (machine, count, x, limit, outside))

static bool all_within(int64_t count, const float *x, float limit)
{
    int32_t outside;
    count_outside_builds[cm_this_machine()](count, x, limit, &outside);
    return outside == 0;
}

static void cut_blocks(int64_t count, const float *xs, float limit, cm_cast_fn *within,
                       cm_cast_fn *cut, char *ys, size_t size)
{
    for (int64_t at = 0; at < count; at += BLOCK, xs += BLOCK, ys += BLOCK * size) {
        const int64_t n = count - at < BLOCK ? count - at : BLOCK;
        (all_within(n, xs, limit) ? within : cut)(n, xs, ys);
    }
}

DIRECT_ROW(CM_TWO_BUILDS, UINT8, uint8_t, FLOAT, float, x)
DIRECT_ROW(CM_TWO_BUILDS, INT8, int8_t, FLOAT, float, x)
DIRECT_ROW(CM_TWO_BUILDS, INT32, int32_t, FLOAT, float, x)
DIRECT_ROW(CM_BUILDS, INT64, int64_t, FLOAT, float, x)
DIRECT_ROW(CM_TWO_BUILDS, DOUBLE, double, FLOAT, float, x)
DIRECT_ROW(CM_TWO_BUILDS, BOOL, uint8_t, FLOAT, float, x != 0)
DIRECT_ROW(CM_TWO_BUILDS, FLOAT, float, DOUBLE, double, x)
DIRECT_ROW(CM_TWO_BUILDS, FLOAT, float, BOOL, uint8_t, x != 0)
DIRECT_ROW(CM_TWO_BUILDS, INT32, int32_t, INT64, int64_t, x)
DIRECT_ROW(CM_TWO_BUILDS, INT64, int64_t, INT32, int32_t, (uint32_t)(uint64_t)x)
DIRECT_ROW(CM_TWO_BUILDS, INT64, int64_t, BOOL, uint8_t, x != 0)
DIRECT_ROW(CM_TWO_BUILDS, BOOL, uint8_t, INT64, int64_t, x != 0)
FROM_FLOAT(CM_TWO_BUILDS, UINT8, uint8_t, int32_t, 0x1p31F)
FROM_FLOAT(CM_TWO_BUILDS, INT8, int8_t, int32_t, 0x1p31F)
FROM_FLOAT(CM_TWO_BUILDS, INT32, int32_t, int32_t, 0x1p31F)
FROM_FLOAT(CM_BUILDS, INT64, int64_t, int64_t, 0x1p63F)

static void half_to_float(int64_t count, const void *from, void *to)
{
    cm_half_load(count, from, to);
}

static void float_to_half(int64_t count, const void *from, void *to)
{
    cm_half_store(count, from, to);
}

static void bfloat_to_float(int64_t count, const void *from, void *to)
{
    cm_bfloat_load(count, from, to);
}

static void float_to_bfloat(int64_t count, const void *from, void *to)
{
    cm_bfloat_store(count, from, to);
}

cm_cast_fn *cm_cast_direct(enum cm_dtype from, enum cm_dtype to)
{
    static cm_cast_fn *const to_float[CM_DTYPE_COUNT] = {
        [CM_UINT8] = UINT8_to_FLOAT,  [CM_INT8] = INT8_to_FLOAT,      [CM_INT32] = INT32_to_FLOAT,
        [CM_INT64] = INT64_to_FLOAT,  [CM_DOUBLE] = DOUBLE_to_FLOAT,  [CM_BOOL] = BOOL_to_FLOAT,
        [CM_FLOAT16] = half_to_float, [CM_BFLOAT16] = bfloat_to_float};
    static cm_cast_fn *const of_float[CM_DTYPE_COUNT] = {
        [CM_UINT8] = FLOAT_to_UINT8,  [CM_INT8] = FLOAT_to_INT8,      [CM_INT32] = FLOAT_to_INT32,
        [CM_INT64] = FLOAT_to_INT64,  [CM_DOUBLE] = FLOAT_to_DOUBLE,  [CM_BOOL] = FLOAT_to_BOOL,
        [CM_FLOAT16] = float_to_half, [CM_BFLOAT16] = float_to_bfloat};
    static cm_cast_fn *const of_int64[CM_DTYPE_COUNT] = {
        [CM_INT32] = INT64_to_INT32, [CM_BOOL] = INT64_to_BOOL};
    if (to == CM_FLOAT)
        return to_float[from];
    if (from == CM_FLOAT)
        return of_float[to];
    if (from == CM_INT64)
        return of_int64[to];
    return to != CM_INT64     ? NULL
           : from == CM_INT32 ? INT32_to_INT64
           : from == CM_BOOL  ? BOOL_to_INT64
                              : NULL;
}
