/* Sums over taps. Weights are 16-bit numbers; those of two taps lie side by side for each channel,
 * in the order in which registers interleave two rows of channels: of each eight the first four,
 * then the others. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/int8_depthwise.h"

#include "base/number.h"
#include "kernels/host/int8_tiles.h"

enum { PAIR = 2, BLOCK_WEIGHTS = PAIR * INT8_WIDTH };

/* Where channel j of a block is among its sums. */
static inline int place_of(int j)
{
    return j % 4 + j / 8 * 4 + (j / 4 % 2) * (INT8_WIDTH / 2);
}

static int64_t pairs_of(int64_t taps)
{
    return (taps + 1) / PAIR;
}

bool cm_int8_taps_bytes(int64_t taps, int64_t channels, int64_t *out)
{
    int64_t weights;
    return cm_dim_mul(pairs_of(taps), (channels + INT8_WIDTH - 1) / INT8_WIDTH, &weights) &&
           cm_dim_mul(weights, BLOCK_WEIGHTS * (int64_t)sizeof(int16_t), out);
}

void cm_int8_taps_pack(const struct cm_int8_packing *p, const uint8_t *from, void *to)
{
    const uint8_t flip = p->is_unsigned ? 0x80 : 0;
    int32_t *sums = to;
    int16_t *weights = (int16_t *)(void *)(sums + p->padded);
    memset(to, 0, p->layout.bytes);
    for (int64_t c = 0; c < p->columns; c++) {
        int16_t *block = weights + c / INT8_WIDTH * pairs_of(p->taps) * BLOCK_WEIGHTS;
        const int place = place_of((int)(c % INT8_WIDTH));
        for (int64_t tap = 0; tap < p->taps; tap++) {
            const int8_t v = (int8_t)(from[c * p->column_stride + tap * p->tap_stride] ^ flip);
            block[tap / PAIR * BLOCK_WEIGHTS + place * PAIR + tap % PAIR] = v;
            sums[c] += v;
        }
    }
}

/* For CM_INT8_ROWS results: `count` channels from `from` on. */
struct taps_tile {
    const uint8_t *const *a; /* INT8_ROWS pointers for each tap */
    int64_t taps, from;
    int rows, count;
    const int16_t *weights; /* of the block */
    int32_t *sums;          /* INT8_ROWS times INT8_WIDTH */
};

static CM_ALWAYS_INLINE void sum_taps_on(enum cm_machine machine, const struct taps_tile *t)
{
    (void)machine;
    for (int r = 0; r < t->rows; r++) {
        int32_t s[INT8_WIDTH] = {0};
        for (int64_t tap = 0; tap < t->taps; tap++) {
            uint8_t x[INT8_WIDTH] = {0};
            const int16_t *w = t->weights + tap / PAIR * BLOCK_WEIGHTS + tap % PAIR;
            memcpy(x, t->a[tap * INT8_ROWS + r] + t->from, (size_t)t->count);
            for (int j = 0; j < INT8_WIDTH; j += 8)
                for (int i = 0; i < 4; i++) {
                    s[j + i] += x[j + i] * w[(j / 2 + i) * PAIR];
                    s[j + i + 4] += x[j + i + 4] * w[(j / 2 + i + INT8_WIDTH / 2) * PAIR];
                }
        }
        memcpy(t->sums + r * INT8_WIDTH, s, sizeof s);
    }
}
CM_BUILDS(sum_taps, (const struct taps_tile *t), (machine, t))

#ifdef CM_FOR_AVX2
/* Two taps at a time, 32 channels. */
CM_FOR_VNNI static void sum_taps_vnni(const struct taps_tile *t)
{
    const __mmask32 mask = t->count < INT8_WIDTH ? (1u << t->count) - 1 : UINT32_MAX;
    const __m512i first = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    const __m512i second =
        _mm512_setr_epi32(8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
    for (int r = 0; r < t->rows; r++) {
        __m512i low = _mm512_setzero_si512(), high = _mm512_setzero_si512();
        const int16_t *w = t->weights;
        for (int64_t tap = 0; tap < t->taps; tap += PAIR, w += BLOCK_WEIGHTS) {
            const uint8_t *const *a = t->a + tap * INT8_ROWS + r;
            const __m512i x0 = _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(mask, a[0] + t->from));
            const __m512i x1 =
                tap + 1 < t->taps
                    ? _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(mask, a[INT8_ROWS] + t->from))
                    : _mm512_setzero_si512();
            low = _mm512_dpwssd_epi32(low, _mm512_unpacklo_epi16(x0, x1), _mm512_loadu_si512(w));
            high = _mm512_dpwssd_epi32(high, _mm512_unpackhi_epi16(x0, x1),
                                       _mm512_loadu_si512(w + INT8_WIDTH));
        }
        _mm512_storeu_si512(t->sums + r * INT8_WIDTH, _mm512_permutex2var_epi32(low, first, high));
        _mm512_storeu_si512(t->sums + r * INT8_WIDTH + 16,
                            _mm512_permutex2var_epi32(low, second, high));
    }
}
#endif

void cm_int8_taps_sum(const struct cm_int8_block *block, int64_t from, int64_t to)
{
    const struct cm_int8_packing *p = block->packing;
    const int64_t width = block->finish->type == CM_INT32 ? sizeof(int32_t) : 1;
    const enum cm_machine machine = cm_this_machine();
    void (*sum)(const struct taps_tile *) = sum_taps_builds[machine];
#ifdef CM_FOR_AVX2
    if (cm_int8_has_vnni(machine))
        sum = sum_taps_vnni;
#endif
    int32_t sums[INT8_ROWS * INT8_WIDTH];
    struct taps_tile tile = {
        .taps = p->taps,
        .from = from,
        .count = (int)(to - from),
        .weights = (const int16_t *)(const void *)((const int32_t *)block->packed + p->padded) +
                   from / INT8_WIDTH * pairs_of(p->taps) * BLOCK_WEIGHTS,
        .sums = sums};
    for (int i = 0; i < block->rows; i += INT8_ROWS) {
        tile.a = block->a + i * p->taps;
        tile.rows = block->rows - i < INT8_ROWS ? block->rows - i : INT8_ROWS;
        sum(&tile);
        cm_int8_finish_sums(&(struct cm_int8_sums){.finish = block->finish,
                                                   .from = from,
                                                   .count = to - from,
                                                   .rows = tile.rows,
                                                   .sums = sums,
                                                   .y = block->y + i * block->y_row + from * width,
                                                   .y_row = block->y_row});
    }
}
