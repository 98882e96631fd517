/* Strided copies against the plainest loop there is. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "ops/common/move.h"
#include "tensor/bits.h"

enum { MOST = 4096 };

/* Element i of any type of at most a byte. */
static unsigned element(enum cm_dtype type, const void *data, int64_t i)
{
    const int bits = cm_dtype_info(type)->bits;
    return bits < 8 ? cm_packed_get(bits, data, i) : ((const uint8_t *)data)[i];
}

/* Numbers that differ among neighbours, in every bit. */
static void scramble(uint8_t *bytes, size_t size)
{
    uint32_t state = 1;
    for (size_t i = 0; i < size; i++) {
        state = state * 1664525U + 1013904223U;
        bytes[i] = (uint8_t)(state >> 24);
    }
}

static void check_transpose(enum cm_dtype type, int64_t rows, int64_t columns)
{
    static uint8_t from[MOST], to[MOST];
    const int64_t dims[] = {columns, rows}, from_strides[] = {1, columns}, to_strides[] = {rows, 1};
    struct cm_move move;

    scramble(from, sizeof from);
    memset(to, 0, sizeof to);
    cm_move_plan(&move, 2, dims, from_strides, to_strides);
    cm_move_run(&move, type, from, to);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < columns; column++)
            CHECK_INT(element(type, to, column * rows + row),
                      element(type, from, row * columns + column));
}

void test_move__transposes_in_tiles_of_any_fit(void)
{
    check_transpose(CM_UINT8, 32, 32);
    check_transpose(CM_UINT8, 33, 65);
    check_transpose(CM_UINT8, 1, 70);
    check_transpose(CM_UINT8, 70, 3);
}

void test_move__transposes_elements_below_a_byte(void)
{
    check_transpose(CM_INT4, 37, 41);
    check_transpose(CM_UINT2, 5, 9);
    check_transpose(CM_FLOAT6E2M3, 35, 34);
}

void test_move__every_width_moves_whole_elements(void)
{
    static const enum cm_dtype types[] = {CM_UINT8, CM_UINT16, CM_UINT32, CM_UINT64, CM_STRING};
    for (size_t t = 0; t < CM_COUNT(types); t++) {
        static uint8_t from[MOST], to[MOST];
        const size_t size = cm_dtype_size(types[t]);
        const int64_t dims[] = {3, 5}, from_strides[] = {1, 3}, to_strides[] = {5, 1};
        struct cm_move move;
        scramble(from, sizeof from);
        cm_move_plan(&move, 2, dims, from_strides, to_strides);
        cm_move_run(&move, types[t], from, to);
        for (size_t i = 0; i < 3; i++)
            for (size_t j = 0; j < 5; j++)
                CHECK(memcmp(to + (i * 5 + j) * size, from + (j * 3 + i) * size, size) == 0);
    }
}

void test_move__backward_and_repeated_axes(void)
{
    const uint8_t from[] = {1, 2, 3};
    uint8_t to[6] = {0};
    const int64_t dims[] = {2, 3}, from_strides[] = {0, -1}, to_strides[] = {3, 1};
    const uint8_t wanted[] = {3, 2, 1, 3, 2, 1};
    struct cm_move move;

    cm_move_plan(&move, 2, dims, from_strides, to_strides);
    move.from_at = 2;
    cm_move_run(&move, CM_UINT8, from, to);
    CHECK(memcmp(to, wanted, sizeof wanted) == 0);
}

void test_move__neighbouring_axes_become_one(void)
{
    const int64_t dims[] = {4, 1, 5, 6}, strides[] = {30, 30, 6, 1};
    struct cm_move move;

    cm_move_plan(&move, 4, dims, strides, strides);
    CHECK_INT(move.rank, 1);
    CHECK_INT(move.dims[0], 120);
}

void test_move__an_empty_axis_moves_nothing(void)
{
    const int64_t dims[] = {4, 0}, strides[] = {1, 1};
    uint8_t to = 7;
    struct cm_move move;

    cm_move_plan(&move, 2, dims, strides, strides);
    cm_move_run(&move, CM_UINT8, NULL, &to);
    CHECK_INT(to, 7);
}
