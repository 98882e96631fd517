/* Tiles of products of bytes: up to INT8_ROWS rows of unsigned bytes times one or two panels of
 * INT8_PANEL columns of signed bytes, summed as 32-bit integers without saturation. One function
 * for each of what processors have; all give the same sums.
 *
 * Compiled code has another product, kernels/i8.c: it takes zero points off while it packs, so that
 * operands of any strides and signs need no sums of rows and columns, and multiplies 32-bit
 * numbers, which every target has vectors for. Products of 128 x 512 by 512 x 256, in 10^9
 * operations per second, one core, gcc 12 here and clang 19 there, these tiles without packing:
 * SSE2 33 here, 44 there; AVX2 147 and 107; AVX-512 with VNNI 1010 and 75.
 *
 * A row is `taps` runs of `depth` bytes, each with a pointer of its own: the windows of a
 * convolution are multiplied where they lie. A panel holds, for each run, groups of four rows of
 * the right operand, in a group four bytes for each column, zeros after the last row. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_KERNELS_HOST_INT8_TILES_H
#define CM_KERNELS_HOST_INT8_TILES_H

#include "base/machine.h"

#include <stdint.h>
#include <string.h>

enum { INT8_ROWS = 8, INT8_PANEL = 16, INT8_PANELS = 2, INT8_GROUP = 4 };
enum { INT8_WIDTH = INT8_PANEL * INT8_PANELS };

/* Codes of sums, in registers: see struct cm_int8_finish. */
struct int8_codes {
    const int32_t *offsets; /* of the columns of the tile */
    const float *scales;
    float low, high; /* limits, less the zero point */
    int32_t zero;
    int rows;
    int64_t count; /* columns */
    char *y;
    int64_t y_row;
};

struct int8_tile {
    const uint8_t *const *a; /* INT8_ROWS pointers for each tap */
    int64_t taps, depth;
    const int8_t *b;
    int64_t panel_bytes;            /* from one panel to the next */
    int32_t *sums;                  /* INT8_ROWS times INT8_WIDTH */
    const struct int8_codes *codes; /* with VNNI: what is stored instead; NULL: the sums are */
};

/* Four bytes as one number; `count` of them where there are fewer. */
static inline uint32_t four_bytes(const uint8_t *from, int64_t count)
{
    uint32_t v = 0;
    if (count >= INT8_GROUP) /* memcpy of a constant size is a load */
        memcpy(&v, from, INT8_GROUP);
    else
        memcpy(&v, from, (size_t)count);
    return v;
}

#define INT8_UNROLL _Pragma("GCC unroll 8")

#ifdef CM_FOR_AVX2
#include <immintrin.h>

#define FOR(name) name##_plain
#define TARGET
#define COLUMNS              2
#define TOGETHER             1
#define SIGNED_WORDS(x)      __builtin_convertvector(x, words_plain)
#define UNSIGNED_WORDS(x)    __builtin_convertvector(x, words_plain)
#define MULTIPLY_PAIRS(x, y) (ints_plain) _mm_madd_epi16((__m128i)(x), (__m128i)(y))
#include "kernels/host/int8_pairs.inc"

#define FOR(name)            name##_avx2
#define TARGET               CM_FOR_AVX2
#define COLUMNS              4
#define TOGETHER             2
#define SIGNED_WORDS(x)      (words_avx2) _mm256_cvtepi8_epi16((__m128i)(x))
#define UNSIGNED_WORDS(x)    (words_avx2) _mm256_cvtepu8_epi16((__m128i)(x))
#define MULTIPLY_PAIRS(x, y) (ints_avx2) _mm256_madd_epi16((__m256i)(x), (__m256i)(y))
#include "kernels/host/int8_pairs.inc"

#define CM_FOR_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))

/* The codes of 16 sums of a row: limits are set before rounding, where NaN becomes the lowest. */
CM_FOR_VNNI static CM_ALWAYS_INLINE void store_codes_vnni(const struct int8_codes *c, int row,
                                                          int column, __m512i sums)
{
    const int64_t left = c->count - column;
    const __mmask16 mask = left < INT8_PANEL ? (__mmask16)((1u << left) - 1) : UINT16_MAX;
    const __m512i sum = _mm512_add_epi32(sums, _mm512_loadu_si512(c->offsets + column));
    __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_loadu_ps(c->scales + column));
    v = _mm512_min_ps(_mm512_max_ps(v, _mm512_set1_ps(c->low)), _mm512_set1_ps(c->high));
    const __m512i code =
        _mm512_add_epi32(_mm512_cvt_roundps_epi32(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
                         _mm512_set1_epi32(c->zero));
    _mm512_mask_cvtepi32_storeu_epi8(c->y + row * c->y_row + column, mask, code);
}

/* Four products at a time, added to a sum as they are. rows and panels are constants where this is
 * called. */
CM_FOR_VNNI static CM_ALWAYS_INLINE void int8_tile_vnni(int rows, int panels,
                                                        const struct int8_tile *t)
{
    const int64_t whole = t->depth / INT8_GROUP, rest = t->depth % INT8_GROUP;
    const int8_t *b = t->b, *b1 = t->b + (panels > 1 ? t->panel_bytes : 0);
    __m512i s[INT8_ROWS][INT8_PANELS];
    INT8_UNROLL
    for (int r = 0; r < rows; r++)
        s[r][0] = s[r][1] = _mm512_setzero_si512();
    for (int64_t tap = 0; tap < t->taps; tap++) {
        const uint8_t *a[INT8_ROWS];
        INT8_UNROLL
        for (int r = 0; r < rows; r++)
            a[r] = t->a[tap * INT8_ROWS + r];
        for (int64_t g = 0; g < whole; g++, b += 64, b1 += 64) {
            const __m512i y0 = _mm512_loadu_si512(b), y1 = _mm512_loadu_si512(b1);
            INT8_UNROLL
            for (int r = 0; r < rows; r++) {
                int32_t four;
                memcpy(&four, a[r] + INT8_GROUP * g, sizeof four);
                const __m512i x = _mm512_set1_epi32(four);
                s[r][0] = _mm512_dpbusd_epi32(s[r][0], x, y0);
                if (panels > 1)
                    s[r][1] = _mm512_dpbusd_epi32(s[r][1], x, y1);
            }
        }
        if (rest) {
            const __m512i y0 = _mm512_loadu_si512(b), y1 = _mm512_loadu_si512(b1);
            INT8_UNROLL
            for (int r = 0; r < rows; r++) {
                const __m512i x =
                    _mm512_set1_epi32((int)four_bytes(a[r] + INT8_GROUP * whole, rest));
                s[r][0] = _mm512_dpbusd_epi32(s[r][0], x, y0);
                if (panels > 1)
                    s[r][1] = _mm512_dpbusd_epi32(s[r][1], x, y1);
            }
            b += 64;
            b1 += 64;
        }
    }
    if (t->codes) {
        const struct int8_codes codes = *t->codes; /* what is stored does not change it */
        INT8_UNROLL
        for (int r = 0; r < rows; r++) {
            if (r >= codes.rows)
                break;
            store_codes_vnni(&codes, r, 0, s[r][0]);
            if (panels > 1)
                store_codes_vnni(&codes, r, INT8_PANEL, s[r][1]);
        }
        return;
    }
    INT8_UNROLL
    for (int r = 0; r < rows; r++) {
        _mm512_storeu_si512(t->sums + r * INT8_WIDTH, s[r][0]);
        if (panels > 1)
            _mm512_storeu_si512(t->sums + r * INT8_WIDTH + INT8_PANEL, s[r][1]);
    }
}
#else
#define CM_FOR_VNNI

#define FOR(name) name##_plain
#define TARGET
#define COLUMNS           2
#define TOGETHER          2
#define SIGNED_WORDS(x)   __builtin_convertvector(x, words_plain)
#define UNSIGNED_WORDS(x) __builtin_convertvector(x, words_plain)
/* A product of two bytes fits in 16 bits. */
#define MULTIPLY_PAIRS(x, y)                                                                       \
    ((ints_plain)((uints_plain)((x) * (y)) << 16) >> 16) + ((ints_plain)((x) * (y)) >> 16)
#include "kernels/host/int8_pairs.inc"
#endif

#endif
