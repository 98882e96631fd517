/* Strided copies against the plainest loop there is. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "base/parallel.h"
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

/* Copies of dims elements of every width, by four threads, against one element after the other. */
static void check_copy(int rank, const int64_t *dims, const int64_t *from_strides,
                       const int64_t *to_strides, int64_t from_count, int64_t to_count)
{
    static const enum cm_dtype types[] = {CM_UINT8, CM_UINT16, CM_UINT32, CM_UINT64, CM_STRING};
    struct cm_team *team = cm_team_new(4), *before = cm_team_enter(team);
    for (size_t t = 0; t < CM_COUNT(types); t++) {
        const size_t size = cm_dtype_size(types[t]);
        uint8_t *from = malloc((size_t)from_count * size), *to = calloc((size_t)to_count, size);
        int64_t index[8] = {0};
        struct cm_move move;
        CHECK(from && to);
        scramble(from, (size_t)from_count * size);
        cm_move_plan(&move, rank, dims, from_strides, to_strides);
        cm_move_run(&move, types[t], from, to);
        for (bool more = true; more;) {
            int64_t x = 0, y = 0;
            for (int i = 0; i < rank; i++) {
                x += index[i] * from_strides[i];
                y += index[i] * to_strides[i];
            }
            if (memcmp(to + (size_t)y * size, from + (size_t)x * size, size) != 0)
                fail_msg("element %lld, %zu bytes wide", (long long)y, size);
            int i = rank - 1;
            while (i >= 0 && ++index[i] == dims[i])
                index[i--] = 0;
            more = i >= 0;
        }
        free(from);
        free(to);
    }
    cm_team_enter(before);
    cm_team_free(team);
}

void test_move__large_planes_are_cut_into_pieces(void)
{
    /* rows a power of two apart, rows that are not, and a side shorter than a vector */
    check_copy(2, (int64_t[]){515, 1024}, (int64_t[]){1, 515}, (int64_t[]){1024, 1}, 515 * 1024,
               515 * 1024);
    check_copy(2, (int64_t[]){333, 771}, (int64_t[]){1, 333}, (int64_t[]){771, 1}, 333 * 771,
               333 * 771);
    check_copy(2, (int64_t[]){3, 90001}, (int64_t[]){1, 3}, (int64_t[]){90001, 1}, 3 * 90001,
               3 * 90001);
    check_copy(2, (int64_t[]){90001, 3}, (int64_t[]){1, 90001}, (int64_t[]){3, 1}, 3 * 90001,
               3 * 90001);
}

void test_move__planes_inside_other_axes_are_cut_too(void)
{
    /* heads: (3, 70, 5, 37) to (3, 5, 70, 37) and (3, 5, 37, 70) */
    check_copy(4, (int64_t[]){3, 5, 70, 37}, (int64_t[]){12950, 37, 185, 1},
               (int64_t[]){12950, 2590, 37, 1}, 3 * 12950, 3 * 12950);
    check_copy(4, (int64_t[]){3, 5, 37, 70}, (int64_t[]){12950, 37, 1, 185},
               (int64_t[]){12950, 2590, 70, 1}, 3 * 12950, 3 * 12950);
    /* one element repeated, a row repeated, every other element, into a part of something longer */
    check_copy(2, (int64_t[]){300, 701}, (int64_t[]){1, 0}, (int64_t[]){701, 1}, 300, 300 * 701);
    check_copy(2, (int64_t[]){300, 701}, (int64_t[]){0, 1}, (int64_t[]){701, 1}, 701, 300 * 701);
    check_copy(2, (int64_t[]){400, 301}, (int64_t[]){602, 2}, (int64_t[]){301, 1}, 400 * 602,
               400 * 301);
    check_copy(2, (int64_t[]){60001, 4}, (int64_t[]){4, 1}, (int64_t[]){9, 1}, 240004, 540009);
    check_copy(1, (int64_t[]){300007}, (int64_t[]){1}, (int64_t[]){1}, 300007, 300007);
}
