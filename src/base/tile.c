/* Transposed blocks. A square as wide as a vector is transposed in registers: interleaving row i
 * with row i + n / 2 turns the bits of an element's position (row, column) by one place, so after
 * log2(n) rounds rows and columns have changed places. Where rows are a power of two apart their
 * lines drive each other out of the cache: there squares of whole lines go through a buffer, so
 * that each line is written at once. */
// SPDX-License-Identifier: Apache-2.0
#include "base/tile.h"

#if defined(__GNUC__) && !defined(__clang__) /* which unrolls short loops by itself */
#define UNROLL _Pragma("GCC unroll 16")
#else
#define UNROLL
#endif

enum {
    LINE = 64,
    CROWDED = 512, /* rows this many elements apart share few places in the cache */
    STRIP = 2048,  /* elements of a narrow block at a time: they stay in the first-level cache */
};

#define WIDTH     1
#define FOR(name) name##_1
#include "base/tile_strips.inc"
#define WIDTH     2
#define FOR(name) name##_2
#include "base/tile_strips.inc"
#define WIDTH     4
#define FOR(name) name##_4
#include "base/tile_strips.inc"
#define WIDTH     8
#define FOR(name) name##_8
#include "base/tile_strips.inc"
#define WIDTH     16
#define FOR(name) name##_16
#include "base/tile_strips.inc"

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define HAVE_SHUFFLES
#endif
#endif

#ifdef HAVE_SHUFFLES
/* clang-format off */
#define LOW_2(a, b) __builtin_shufflevector(a, b, 0, 2)
#define HIGH_2(a, b) __builtin_shufflevector(a, b, 1, 3)
#define LOW_4(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGH_4(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define LOW_8(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH_8(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define LOW_16(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH_16(a, b) __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
/* clang-format on */
#define WIDTH      1
#define SIDE       16
#define ROUNDS     4
#define T          uint8_t
#define LOW(a, b)  LOW_16(a, b)
#define HIGH(a, b) HIGH_16(a, b)
#define FOR(name)  name##_1
#include "base/tile_squares.inc"
#define WIDTH      2
#define SIDE       8
#define ROUNDS     3
#define T          uint16_t
#define LOW(a, b)  LOW_8(a, b)
#define HIGH(a, b) HIGH_8(a, b)
#define FOR(name)  name##_2
#include "base/tile_squares.inc"
#define WIDTH      4
#define SIDE       4
#define ROUNDS     2
#define T          uint32_t
#define LOW(a, b)  LOW_4(a, b)
#define HIGH(a, b) HIGH_4(a, b)
#define FOR(name)  name##_4
#include "base/tile_squares.inc"
#define WIDTH      8
#define SIDE       2
#define ROUNDS     1
#define T          uint64_t
#define LOW(a, b)  LOW_2(a, b)
#define HIGH(a, b) HIGH_2(a, b)
#define FOR(name)  name##_8
#include "base/tile_squares.inc"
#else
#define block_1 strips_1
#define block_2 strips_2
#define block_4 strips_4
#define block_8 strips_8
#endif

void cm_tile_transpose(size_t width, int64_t rows, int64_t columns, const void *from,
                       int64_t from_row, void *to, int64_t to_row)
{
    switch (width) {
    case 1:
        block_1(rows, columns, from, from_row, to, to_row);
        break;
    case 2:
        block_2(rows, columns, from, from_row, to, to_row);
        break;
    case 4:
        block_4(rows, columns, from, from_row, to, to_row);
        break;
    case 8:
        block_8(rows, columns, from, from_row, to, to_row);
        break;
    default:
        strips_16(rows, columns, from, from_row, to, to_row);
    }
}
