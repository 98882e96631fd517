/* Matrix products of floats: C = finish(alpha * A B + D). B is packed, once for weights that do not
 * change or per call; A is read by strides, so that either operand may be transposed. D is a bias,
 * one row that repeats, or a matrix. The same source is compiled for each instruction set
 * (base/machine.h).
 *
 * Results do not depend on the number of threads: work is cut by the shape alone, and the sum over
 * k is never divided among threads. Nothing here allocates.
 *
 *     once:  cm_sgemm_packed_floats(k, n, &floats); cm_sgemm_pack(k, n, w, n, 1, packed);
 *     often: cm_sgemm_run(&(struct cm_sgemm){.m = m, .n = n, .k = k, .alpha = 1,
 *                         .a = x, .a_row = k, .a_column = 1, .b = packed, .c = y, .c_row = n});
 *
 * Inside a parallel region of one's own, cm_sgemm_slice computes some of the columns on the calling
 * thread: each thread gives its columns, and the slices together are the product, bit for bit. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_CPU_SGEMM_H
#define CM_BACKENDS_CPU_SGEMM_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    CM_SGEMM_PANEL =
        16, /* columns of B lie in panels of so many: slices begin at multiples of it */
    CM_SGEMM_MOST_COLUMNS = 256, /* of a block that is to be finished */
};

/* Changes a finished block of the result where it lies, while it is in the first-level cache: rows
 * [row, row + rows), columns [column, column + columns); c is its first element. Called once for
 * every element, by several threads at a time. It may read other memory, but of the result no more
 * than its block: an activation, the addition of a residual, a gate. */
typedef void cm_sgemm_finish_fn(const void *arg, int64_t row, int64_t rows, int64_t column,
                                int64_t columns, float *c, int64_t c_row);

struct cm_sgemm {
    int64_t m, n, k; /* A is m x k, B is k x n, C is m x n; any may be 0 */
    float alpha;
    const float *a;
    int64_t a_row, a_column; /* from one row to the next, from one column to the next: in floats */
    const cm_loose_float
        *b;              /* packed; or, with b_row, as it is, wherever it begins. That pays where
                            there are few rows of A for the packing, and gives the same bits */
    int64_t b_row;       /* 0: packed */
    int64_t b_column;    /* with b_row: 0 or 1; or, if A has one row, whatever it is for b_row 1 */
    const float *b_last; /* with b_row, if n is no multiple of CM_SGEMM_PANEL: the columns of the
                            last panel, packed as a matrix of their own */
    float *c;
    int64_t c_row;  /* columns follow each other */
    const float *d; /* what is added: NULL, a bias (d_row 0), a matrix of m x n, or c itself */
    int64_t d_row;
    cm_sgemm_finish_fn *finish; /* NULL: none */
    const void *finish_arg;
};

/* How many floats a packed k x n matrix has; false when that is too large a number. The memory must
 * be aligned to 64 bytes (CM_TENSOR_ALIGNMENT). */
bool cm_sgemm_packed_floats(int64_t k, int64_t n, int64_t *floats);

/* Packs B, element (i, j) of which is b[i * b_row + j * b_column]; with threads where that pays. B
 * may lie anywhere. */
void cm_sgemm_pack(int64_t k, int64_t n, const cm_loose_float *b, int64_t b_row, int64_t b_column,
                   float *packed);
/* The same for rows [begin, end) alone. */
void cm_sgemm_pack_rows(int64_t k, int64_t n, const cm_loose_float *b, int64_t b_row,
                        int64_t b_column, float *packed, int64_t begin, int64_t end);
/* The same for columns [begin, end) alone, on the calling thread. begin is a multiple of
 * CM_SGEMM_PANEL, and so is end unless it is n. */
void cm_sgemm_pack_slice(int64_t k, int64_t n, const cm_loose_float *b, int64_t b_row,
                         int64_t b_column, float *packed, int64_t begin, int64_t end);

/* With the threads of the calling thread's team where that pays. */
void cm_sgemm_run(const struct cm_sgemm *product);

/* Columns [begin, end) of all rows on the calling thread; begin is a multiple of CM_SGEMM_PANEL,
 * and so is end unless it is n. */
void cm_sgemm_slice(const struct cm_sgemm *product, int64_t begin, int64_t end);
/* The same for rows [row, end_row), of at most CM_SGEMM_MOST_COLUMNS columns. Any blocks that make
 * up the product give its bits. */
void cm_sgemm_block(const struct cm_sgemm *product, int64_t row, int64_t end_row, int64_t begin,
                    int64_t end);

#endif
