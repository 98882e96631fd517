/* Rows of 16-bit floats. bfloat16 is shifts and an addition, which compilers turn into vectors.
 * float16 has instructions of its own on processors with AVX2 (F16C), eight at a time; they make
 * every NaN quiet, so eights that hold one are converted one by one. */
// SPDX-License-Identifier: Apache-2.0
#include "tensor/half_rows.h"

#include "tensor/half.h"
#include "tensor/vector_math.h"

/* ---- float16 ---- */

static void load_singly(int64_t count, const uint16_t *from, float *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = cm_half_to_float(from[i]);
}

static void store_singly(int64_t count, const float *from, uint16_t *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = cm_half_from_float(from[i]);
}

#ifdef CM_FOR_AVX2
#include <immintrin.h>

#define FOR_F16C __attribute__((target("avx2,fma,f16c")))

static bool have_f16c(void)
{
    return cm_this_machine() >= CM_AVX2; /* all that have AVX2 and FMA have F16C */
}

FOR_F16C static bool holds_nan(__m256 eight)
{
    return _mm256_movemask_ps(_mm256_cmp_ps(eight, eight, _CMP_UNORD_Q)) != 0;
}

FOR_F16C static void load_eights(int64_t count, const uint16_t *from, float *to)
{
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const __m256 eight =
            _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + i)));
        _mm256_storeu_ps(to + i, eight);
        if (holds_nan(eight))
            load_singly(8, from + i, to + i);
    }
    load_singly(count - i, from + i, to + i);
}

FOR_F16C static void store_eights(int64_t count, const float *from, uint16_t *to)
{
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const __m256 eight = _mm256_loadu_ps(from + i);
        _mm_storeu_si128((__m128i *)(void *)(to + i),
                         _mm256_cvtps_ph(eight, _MM_FROUND_TO_NEAREST_INT));
        if (holds_nan(eight))
            store_singly(8, from + i, to + i);
    }
    store_singly(count - i, from + i, to + i);
}
#else
#define have_f16c()  false
#define load_eights  load_singly
#define store_eights store_singly
#endif

void cm_half_load(int64_t count, const uint16_t *from, float *to)
{
    if (have_f16c())
        load_eights(count, from, to);
    else
        load_singly(count, from, to);
}

void cm_half_store(int64_t count, const float *from, uint16_t *to)
{
    if (have_f16c())
        store_eights(count, from, to);
    else
        store_singly(count, from, to);
}

/* ---- bfloat16 ---- */

void cm_bfloat_load(int64_t count, const uint16_t *from, float *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = cm_float_of_bits((uint32_t)from[i] << 16);
}

static CM_ALWAYS_INLINE void bfloat_store_on(enum cm_machine machine, int64_t count,
                                             const float *from, uint16_t *to)
{
    (void)machine;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t bits = cm_float_bits(from[i]), code = bits >> 16;
        const uint32_t rounded = (bits + 0x7FFF + (code & 1)) >> 16; /* ties to even */
        const uint32_t nan = (code & 0x7F) ? code : code | 0x40;     /* which must stay one */
        to[i] = (uint16_t)((bits & 0x7FFFFFFF) > 0x7F800000 ? nan : rounded);
    }
}
CM_TWO_BUILDS(bfloat_store, (int64_t count, const float *from, uint16_t *to),
              (machine, count, from, to))

void cm_bfloat_store(int64_t count, const float *from, uint16_t *to)
{
    bfloat_store_builds[cm_this_machine()](count, from, to);
}
