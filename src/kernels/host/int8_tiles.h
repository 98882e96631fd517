/* Tiles of products of bytes: up to INT8_ROWS rows of unsigned bytes times one or two panels of
 * INT8_PANEL columns of signed bytes, summed as 32-bit integers without saturation. One function
 * for each of what processors have; all give the same sums.
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
    memcpy(&v, from, count < INT8_GROUP ? (size_t)count : INT8_GROUP);
    return v;
}

static inline void int8_tile_plain(int rows, int panels, const struct int8_tile *t)
{
    for (int r = 0; r < rows; r++)
        for (int p = 0; p < panels; p++) {
            const int8_t *b = t->b + p * t->panel_bytes;
            int32_t s[INT8_PANEL] = {0};
            for (int64_t tap = 0; tap < t->taps; tap++) {
                const uint8_t *a = t->a[tap * INT8_ROWS + r];
                for (int64_t k = 0; k < t->depth; k += INT8_GROUP, b += INT8_PANEL * INT8_GROUP) {
                    uint8_t x[INT8_GROUP];
                    const uint32_t group = four_bytes(a + k, t->depth - k);
                    memcpy(x, &group, sizeof x);
                    for (int j = 0; j < INT8_PANEL; j++)
                        for (int i = 0; i < INT8_GROUP; i++)
                            s[j] += x[i] * b[j * INT8_GROUP + i];
                }
            }
            memcpy(t->sums + r * INT8_WIDTH + p * INT8_PANEL, s, sizeof s);
        }
}

#ifdef CM_FOR_AVX2
#include <immintrin.h>

#define CM_FOR_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))
#define INT8_UNROLL _Pragma("GCC unroll 8")

/* Bytes as 16-bit numbers, whose products two by two are summed exactly. A register holds four
 * columns, each as two sums, which are joined at the end. Two rows at a time fill the registers. */
CM_FOR_AVX2 static inline void int8_tile_avx2(int rows, int panels, const struct int8_tile *t)
{
    for (int r = 0; r < rows; r += 2)
        for (int p = 0; p < panels; p++) {
            const int8_t *b = t->b + p * t->panel_bytes;
            __m256i s[2][4];
            INT8_UNROLL
            for (int q = 0; q < 4; q++)
                s[0][q] = s[1][q] = _mm256_setzero_si256();
            for (int64_t tap = 0; tap < t->taps; tap++) {
                const uint8_t *a0 = t->a[tap * INT8_ROWS + r];
                const uint8_t *a1 = t->a[tap * INT8_ROWS + (r + 1 < rows ? r + 1 : r)];
                for (int64_t k = 0; k < t->depth; k += INT8_GROUP, b += INT8_PANEL * INT8_GROUP) {
                    const int64_t left = t->depth - k;
                    const __m256i x0 = _mm256_broadcastq_epi64(
                        _mm_cvtepu8_epi16(_mm_cvtsi32_si128((int)four_bytes(a0 + k, left))));
                    const __m256i x1 = _mm256_broadcastq_epi64(
                        _mm_cvtepu8_epi16(_mm_cvtsi32_si128((int)four_bytes(a1 + k, left))));
                    INT8_UNROLL
                    for (int q = 0; q < 4; q++) {
                        const __m256i y = _mm256_cvtepi8_epi16(
                            _mm_loadu_si128((const __m128i *)(const void *)(b + 16 * q)));
                        s[0][q] = _mm256_add_epi32(s[0][q], _mm256_madd_epi16(x0, y));
                        s[1][q] = _mm256_add_epi32(s[1][q], _mm256_madd_epi16(x1, y));
                    }
                }
            }
            for (int i = 0; i < 2 && r + i < rows; i++)
                for (int q = 0; q < 4; q += 2) {
                    /* columns 0 1 4 5 2 3 6 7 of the eight */
                    const __m256i mixed = _mm256_hadd_epi32(s[i][q], s[i][q + 1]);
                    int32_t *to = t->sums + (r + i) * INT8_WIDTH + p * INT8_PANEL + 4 * q;
                    _mm256_storeu_si256((__m256i *)(void *)to,
                                        _mm256_permute4x64_epi64(mixed, 0xd8));
                }
        }
}

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
#endif

#endif
