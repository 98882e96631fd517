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

/* A block of which one side is short: along the longer one. */
#define STRIPS(width)                                                                              \
    static void strip_##width(int64_t rows, int64_t columns, const char *from, int64_t from_row,   \
                              char *to, int64_t to_row)                                            \
    {                                                                                              \
        if (columns <= rows) {                                                                     \
            for (int64_t c = 0; c < columns; c++)                                                  \
                for (int64_t r = 0; r < rows; r++)                                                 \
                    memcpy(to + (c * to_row + r) * width, from + (r * from_row + c) * width,       \
                           width);                                                                 \
        } else {                                                                                   \
            for (int64_t r = 0; r < rows; r++)                                                     \
                for (int64_t c = 0; c < columns; c++)                                              \
                    memcpy(to + (c * to_row + r) * width, from + (r * from_row + c) * width,       \
                           width);                                                                 \
        }                                                                                          \
    }                                                                                              \
    static void strips_##width(int64_t rows, int64_t columns, const char *from, int64_t from_row,  \
                               char *to, int64_t to_row)                                           \
    {                                                                                              \
        for (int64_t r = 0; r < rows; r += STRIP)                                                  \
            for (int64_t c = 0; c < columns; c += STRIP)                                           \
                strip_##width(rows - r < STRIP ? rows - r : STRIP,                                 \
                              columns - c < STRIP ? columns - c : STRIP,                           \
                              from + (r * from_row + c) * width, from_row,                         \
                              to + (c * to_row + r) * width, to_row);                              \
    }

/* side: elements of a vector of sixteen bytes. */
#define SQUARES(width, side, rounds, ctype)                                                        \
    typedef ctype vector_##width __attribute__((vector_size(16)));                                 \
    static inline void square_##width(const char *from, int64_t from_row, char *to,                \
                                      int64_t to_row)                                              \
    {                                                                                              \
        vector_##width a[side], b[side];                                                           \
        UNROLL for (int i = 0; i < (side); i++) memcpy(&a[i], from + i * from_row * width, 16);    \
        UNROLL for (int round = 0; round < (rounds); round++)                                      \
        {                                                                                          \
            UNROLL for (int i = 0; i < (side) / 2; i++)                                            \
            {                                                                                      \
                b[2 * i] = LOW_##side(a[i], a[i + (side) / 2]);                                    \
                b[2 * i + 1] = HIGH_##side(a[i], a[i + (side) / 2]);                               \
            }                                                                                      \
            UNROLL for (int i = 0; i < (side); i++) a[i] = b[i];                                   \
        }                                                                                          \
        UNROLL for (int i = 0; i < (side); i++) memcpy(to + i * to_row * width, &a[i], 16);        \
    }                                                                                              \
    static void lines_##width(const char *from, int64_t from_row, char *to, int64_t to_row)        \
    {                                                                                              \
        enum { COUNT = LINE / (width) };                                                           \
        _Alignas(LINE) char buffer[COUNT * LINE];                                                  \
        for (int r = 0; r < COUNT; r += (side))                                                    \
            for (int c = 0; c < COUNT; c += (side))                                                \
                square_##width(from + (r * from_row + c) * width, from_row,                        \
                               buffer + c * LINE + r * (width), COUNT);                            \
        for (int c = 0; c < COUNT; c++)                                                            \
            memcpy(to + c * to_row * width, buffer + c * LINE, LINE);                              \
    }                                                                                              \
    static void block_##width(int64_t rows, int64_t columns, const char *from, int64_t from_row,   \
                              char *to, int64_t to_row)                                            \
    {                                                                                              \
        enum { COUNT = LINE / (width) };                                                           \
        const int64_t whole_rows = rows - rows % (side), whole = columns - columns % (side);       \
        for (int64_t c = 0; c < whole; c += COUNT) {                                               \
            for (int64_t r = 0; r < whole_rows; r += COUNT) {                                      \
                const char *x = from + (r * from_row + c) * width;                                 \
                char *y = to + (c * to_row + r) * width;                                           \
                if (to_row % CROWDED == 0 && r + COUNT <= rows && c + COUNT <= columns) {          \
                    lines_##width(x, from_row, y, to_row);                                         \
                    continue;                                                                      \
                }                                                                                  \
                for (int64_t i = 0; i < COUNT && r + i < whole_rows; i += (side))                  \
                    for (int64_t k = 0; k < COUNT && c + k < whole; k += (side))                   \
                        square_##width(x + (i * from_row + k) * width, from_row,                   \
                                       y + (k * to_row + i) * width, to_row);                      \
            }                                                                                      \
        }                                                                                          \
        strips_##width(rows - whole_rows, whole, from + whole_rows * from_row * width, from_row,   \
                       to + whole_rows * width, to_row);                                           \
        strips_##width(rows, columns - whole, from + whole * width, from_row,                      \
                       to + whole * to_row * width, to_row);                                       \
    }

STRIPS(1)
STRIPS(2)
STRIPS(4)
STRIPS(8)
STRIPS(16)

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
SQUARES(1, 16, 4, uint8_t)
SQUARES(2, 8, 3, uint16_t)
SQUARES(4, 4, 2, uint32_t)
SQUARES(8, 2, 1, uint64_t)
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
