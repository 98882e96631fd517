/* Packing, blocks and threads of matrix products.
 *
 * A block of the result is some rows by some columns. Its part of B, at most KEPT rows of it at a
 * time, stays in the second-level cache; a few rows of A, copied so that they do not evict each
 * other, stay in the first. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/sgemm.h"

#include "base/machine.h"
#include "base/number.h"
#include "base/parallel.h"
#include "kernels/target.h"

#include <string.h>

enum {
    PANEL = CM_SGEMM_PANEL,
    MOST_ROWS = 12, /* of a tile */
    MOST_VECTORS = 8,
    MOST_COLUMNS = 64,
    KEPT = 4608, /* elements of A at a time: 12 rows of 384, one row of all */
};

/* A tile of the result: rows x columns, of which `rows` are wanted. */
struct tile {
    int64_t k;
    const float *a; /* element (r, i) is a[r * a_row + i * a_step] */
    int64_t a_row, a_step;
    const cm_loose_float *b; /* element (i, j) is b[j / PANEL * b_panel + i * b_row + j % PANEL] */
    int64_t b_row, b_panel;
    int64_t b_column; /* of a turned matrix: element (i, j) is b[i + j * b_column] */
    float *c;
    int64_t c_row;
    const float *d; /* what is added */
    int64_t d_row;
    int rows;
    float alpha;
};

typedef void tile_fn(const struct tile *t);

/* One row of columns, all of them whole panels unless B is turned. */
typedef void row_fn(const struct tile *t, int64_t columns);

/* Tiles of one height: as wide as registers allow, and of one panel. */
struct tile_height {
    int rows, columns;
    tile_fn *wide, *narrow;
};

/* ---- panels ---- */

#define REAL           float
#define FOUR_ALIGNMENT 1
#define NAME(x)        x##_loose
#include "kernels/turn.inc"
#undef NAME

/* One panel: `columns` of B, zeros after them. */
static void pack_panel(int64_t k, int64_t columns, const cm_loose_float *b, int64_t row,
                       int64_t column, float *to)
{
    enum { FOUR = 4 };
    const bool whole = columns == PANEL;
    int64_t i = 0;
    if (whole && column == 1)
        for (; i < k; i++)
            memcpy(to + i * PANEL, b + i * row, PANEL * sizeof *to);
    if (whole && row == 1)
        for (; i + FOUR <= k; i += FOUR)
            for (int64_t j = 0; j < PANEL; j += FOUR)
                transpose_four_loose(b + j * column + i, column, to + i * PANEL + j, PANEL);
    for (; i < k; i++)
        for (int64_t j = 0; j < PANEL; j++)
            to[i * PANEL + j] = j < columns ? b[i * row + j * column] : 0;
}

/* ---- tiles ---- */

#define TILE         struct tile
#define TILE_B       cm_loose_float
#define TILE_AT_ONCE 4 /* what counts them takes the place of multiplications */
#define HEIGHT       struct tile_height

/* A narrow tile is as wide as a panel. */
#define NAME(x) x##_plain
#define TILE_TARGET
#define LANES 4
#if defined(__aarch64__) /* 32 registers */
#define TILE_HEIGHTS(X) X(6, 4, 4) X(4, 4, 4) X(2, 8, 4) X(1, 8, 4)
#else
#define TILE_HEIGHTS(X) X(4, 2, 2) X(2, 4, 4) X(1, 8, 4)
#endif
#include "backends/cpu/sgemm_tile.inc"

#ifdef CM_FOR_AVX2
#define NAME(x)         x##_avx2
#define TILE_TARGET     CM_FOR_AVX2
#define LANES           8
#define TILE_HEIGHTS(X) X(6, 2, 2) X(4, 2, 2) X(2, 4, 2) X(1, 8, 2)
#include "backends/cpu/sgemm_tile.inc"

#define NAME(x)         x##_avx512
#define TILE_TARGET     CM_FOR_AVX512
#define LANES           16
#define TILE_HEIGHTS(X) X(12, 2, 1) X(8, 2, 1) X(4, 2, 1) X(2, 4, 1) X(1, 4, 1)
#include "backends/cpu/sgemm_tile.inc"

#endif

static const struct tile_height *const heights[CM_MACHINES] = CM_BUILDS_OF(heights);
static row_fn *const rows_in_place[CM_MACHINES] = CM_BUILDS_OF(row_in_place);
static row_fn *const rows_turned[CM_MACHINES] = CM_BUILDS_OF(row_turned);

/* The height for so many rows: the least that has them all, else the highest. */
static const struct tile_height *height_for(int64_t rows)
{
    const struct tile_height *height = heights[cm_this_machine()];
    while (height->rows > 1 && height[1].rows >= rows)
        height++;
    return height;
}

/* ---- packing ---- */

static int64_t panels_of(int64_t n)
{
    return n / PANEL + (n % PANEL != 0);
}

bool cm_sgemm_packed_floats(int64_t k, int64_t n, int64_t *floats)
{
    int64_t columns;
    return cm_dim_add(n, PANEL - 1, &columns) && cm_dim_mul(columns / PANEL * PANEL, k, floats);
}

void cm_sgemm_pack_slice(int64_t k, int64_t n, const cm_loose_float *b, int64_t b_row,
                         int64_t b_column, float *packed, int64_t begin, int64_t end)
{
    for (int64_t j = begin; j < end; j += PANEL)
        pack_panel(k, n - j < PANEL ? n - j : PANEL, b + j * b_column, b_row, b_column,
                   packed + j * k);
}

struct packing {
    int64_t k, n, first, rows;
    const cm_loose_float *b; /* its first row that is packed */
    int64_t row, column;
    float *packed;
};

static void pack_panels(void *arg, int64_t begin, int64_t end)
{
    const struct packing *p = arg;
    for (int64_t j = begin * PANEL; j < p->n && j < end * PANEL; j += PANEL)
        pack_panel(p->rows, p->n - j < PANEL ? p->n - j : PANEL, p->b + j * p->column, p->row,
                   p->column, p->packed + j * p->k + p->first * PANEL);
}

/* Elements that one thread packs in the time it takes to wake the others. */
enum { WORTH_PACKING_TOGETHER = 1 << 15 };

void cm_sgemm_pack_rows(int64_t k, int64_t n, const cm_loose_float *b, int64_t b_row,
                        int64_t b_column, float *packed, int64_t begin, int64_t end)
{
    struct packing p = {k, n, begin, end - begin, b + begin * b_row, b_row, b_column, packed};
    const int64_t panels = panels_of(n), of_panel = p.rows * PANEL + 1;
    const int64_t grain = 1 + WORTH_PACKING_TOGETHER / of_panel;
    cm_parallel(panels, grain, pack_panels, &p);
}

void cm_sgemm_pack(int64_t k, int64_t n, const cm_loose_float *b, int64_t b_row, int64_t b_column,
                   float *packed)
{
    cm_sgemm_pack_rows(k, n, b, b_row, b_column, packed, 0, k);
}

/* ---- blocks ---- */

/* Rows of A for tiles: where they are, or a copy. */
struct rows_of_a {
    const float *a;
    int64_t row, step;
};

/* Fewer rows than a tile has: a copy, the last row repeated. */
static struct rows_of_a copy_rows(const struct cm_sgemm *p, const float *a, int64_t k, int rows,
                                  int height, float *copy)
{
    for (int r = 0; r < height; r++) {
        const float *from = a + (r < rows ? r : rows - 1) * p->a_row;
        for (int64_t i = 0; i < k; i++)
            copy[r * k + i] = from[i * p->a_column];
    }
    return (struct rows_of_a){copy, k, 1};
}

/* Rows of a transposed operand, one element of each beside the other: where they lie, every step of
 * the sum would touch a line or two of its own, and most of them would be evicted before the next
 * tile. */
static CM_ALWAYS_INLINE void gather(const float *a, int64_t a_column, int64_t k, const int rows,
                                    float *copy)
{
    enum { FOUR = 4 };
    for (int64_t i = 0; i < k; i++, a += a_column, copy += rows) {
        int r = 0;
        for (; r + FOUR <= rows; r += FOUR)
            *(four_loose *)(copy + r) = *(const four_loose *)(a + r);
        for (; r < rows; r++)
            copy[r] = a[r];
    }
}

static struct rows_of_a gather_rows(const struct cm_sgemm *p, const float *a, int64_t k, int rows,
                                    float *copy)
{
    if (rows == MOST_ROWS)
        gather(a, p->a_column, k, MOST_ROWS, copy); /* the loops unrolled */
    else
        gather(a, p->a_column, k, rows, copy);
    return (struct rows_of_a){copy, 1, rows};
}

/* Part of the columns of a tile: through a tile of whole panels. */
static void sum_part(const struct tile_height *height, const struct tile *whole, int64_t columns)
{
    float part[MOST_ROWS * PANEL];
    const size_t bytes = (size_t)columns * sizeof *part;
    struct tile t = *whole;
    for (int r = 0; r < t.rows; r++)
        memcpy(part + r * PANEL, whole->d + r * whole->d_row, bytes);
    t.c = part;
    t.d = part;
    t.c_row = t.d_row = PANEL;
    height->narrow(&t);
    for (int r = 0; r < t.rows; r++)
        memcpy(whole->c + r * whole->c_row, part + r * PANEL, bytes);
}

/* What is added where nothing is; d_row is 0 then. */
static const float no_floats[MOST_COLUMNS];

/* The only row of A and columns of B where they lie: returns how many are done. */
static int64_t sum_row(const struct cm_sgemm *p, const struct tile *like, const float *d,
                       int64_t begin, int64_t end, int64_t first)
{
    const bool turned = p->b_column > 1;
    const int64_t columns = turned ? end - begin : (end - begin) / PANEL * PANEL;
    struct tile t = *like;
    t.b = p->b + first * p->b_row + begin * (turned ? p->b_column : 1);
    t.b_column = p->b_column;
    t.c = p->c + begin;
    t.d = d ? d + begin : NULL;
    (turned ? rows_turned : rows_in_place)[cm_this_machine()](&t, columns);
    return columns;
}

/* Rows [row, row + rows) of one height, columns [begin, end), elements [first, first + k) of the
 * sum. */
static void sum_rows(const struct cm_sgemm *p, const struct tile_height *height, int64_t row,
                     int rows, int64_t begin, int64_t end, int64_t first, int64_t k)
{
    float copy[KEPT];
    const bool last = first + k == p->k;
    const float *from = p->a + row * p->a_row + first * p->a_column;
    const bool turned = p->a_row == 1 && p->a_column >= PANEL;
    const struct rows_of_a a = rows < height->rows ? copy_rows(p, from, k, rows, height->rows, copy)
                               : turned && end - begin > height->columns
                                   ? gather_rows(p, from, k, rows, copy)
                                   : (struct rows_of_a){from, p->a_row, p->a_column};
    struct tile t = {.k = k,
                     .a = a.a,
                     .a_row = a.row,
                     .a_step = a.step,
                     .b_row = p->b_row ? p->b_row : PANEL,
                     .b_panel = p->b_row ? PANEL : p->k * PANEL,
                     .c_row = p->c_row,
                     .d_row = first > 0 ? p->c_row
                              : p->d    ? p->d_row
                                        : 0,
                     .rows = rows,
                     .alpha = p->alpha};
    const float *const d = first > 0 ? p->c : p->d;
    const int64_t alone = p->b_row && p->m == 1 ? sum_row(p, &t, d, begin, end, first) : 0;
    for (int64_t j = begin + alone; j < end;) {
        t.b = p->b + j / PANEL * t.b_panel + first * t.b_row + j % PANEL;
        t.c = p->c + row * p->c_row + j;
        t.d = d ? d + row * t.d_row + j : no_floats;
        if (end - j >= height->columns) {
            height->wide(&t);
            j += height->columns;
        } else if (end - j >= PANEL) {
            height->narrow(&t);
            j += PANEL;
        } else {
            if (p->b_row) {
                t.b = p->b_last + first * PANEL + j % PANEL;
                t.b_row = PANEL;
            }
            sum_part(height, &t, end - j);
            j = end;
        }
    }
    if (last && p->finish)
        p->finish(p->finish_arg, row, rows, begin, end - begin, p->c + row * p->c_row + begin,
                  p->c_row);
}

/* Without a sum: k is 0. */
static void sum_nothing(const struct cm_sgemm *p, int64_t row, int64_t end_row, int64_t begin,
                        int64_t end)
{
    for (int64_t r = row; r < end_row; r++)
        for (int64_t j = begin; j < end; j++) {
            float *c = p->c + r * p->c_row + j;
            *c = p->d ? p->d[r * p->d_row + j] : 0;
        }
    if (p->finish)
        p->finish(p->finish_arg, row, end_row - row, begin, end - begin,
                  p->c + row * p->c_row + begin, p->c_row);
}

/* The sum in parts of one size as near as can be, so that rows of A fit in their copy. */
static int64_t part_of_sum(int64_t m, int64_t k)
{
    const int64_t most = KEPT / height_for(m)->rows, parts = (k + most - 1) / most;
    return parts > 0 ? (k + parts - 1) / parts : 0;
}

static void sum_block(const struct cm_sgemm *p, int64_t row, int64_t end_row, int64_t begin,
                      int64_t end)
{
    const int64_t part = part_of_sum(p->m, p->k);
    if (p->k == 0)
        sum_nothing(p, row, end_row, begin, end);
    for (int64_t first = 0; first < p->k; first += part) {
        const int64_t k = p->k - first < part ? p->k - first : part;
        for (int64_t r = row; r < end_row;) {
            const struct tile_height *height = height_for(end_row - r);
            const int rows = end_row - r < height->rows ? (int)(end_row - r) : height->rows;
            sum_rows(p, height, r, rows, begin, end, first, k);
            r += rows;
        }
    }
}

/* ---- the whole ---- */

enum {
    MOST_BLOCK_ROWS = 192,
    WHOLE_ROWS = 12, /* blocks have multiples of so many rows: whole tiles */
    LEAST_BLOCK_ROWS = 24,
    MOST_BLOCK_COLUMNS = CM_SGEMM_MOST_COLUMNS,
    LEAST_BLOCK_COLUMNS = 64,
    LEAST_FINISHED_ROWS =
        96, /* of all, from which wide blocks pay: their rows are finished singly */
    WHOLE_COLUMNS = 32,
    ENOUGH_BLOCKS = 48,      /* for any number of threads */
    WORTH_A_BLOCK = 1 << 18, /* multiplications */
    WORTH_A_TEAM = 1 << 20,  /* the same, of all: less is done before others are awake */
    WORTH_READING = 16,      /* multiplications in the time that an element of B takes */
};

struct blocks {
    const struct cm_sgemm *p;
    int64_t rows, columns; /* of a block */
    int64_t along_rows;    /* blocks one below the other */
    int64_t count;
};

/* Parts of one size, as near as can be, of at most `most`, which is a multiple of `whole`. */
static int64_t part_of(int64_t all, int64_t most, int64_t whole)
{
    const int64_t parts = (all + most - 1) / most, part = (all + parts - 1) / parts;
    return (part + whole - 1) / whole * whole;
}

static void set_blocks(struct blocks *blocks, int64_t most_rows, int64_t most_columns)
{
    const struct cm_sgemm *p = blocks->p;
    blocks->rows = part_of(p->m, most_rows, WHOLE_ROWS);
    blocks->columns = part_of(p->n, most_columns, WHOLE_COLUMNS);
    blocks->along_rows = (p->m + blocks->rows - 1) / blocks->rows;
    blocks->count = blocks->along_rows * ((p->n + blocks->columns - 1) / blocks->columns);
}

/* By the shape alone. Fewer columns rather than fewer rows: a thread reads its own part of B. */
static struct blocks blocks_of(const struct cm_sgemm *p)
{
    struct blocks blocks = {.p = p};
    int64_t rows = MOST_BLOCK_ROWS, columns = MOST_BLOCK_COLUMNS;
    const bool is_high = p->finish && p->m >= LEAST_FINISHED_ROWS;
    const int64_t least_columns = is_high ? MOST_BLOCK_COLUMNS : LEAST_BLOCK_COLUMNS;
    const double work =
        (double)p->k * (double)p->n * (double)(p->m > WORTH_READING ? p->m : WORTH_READING);
    set_blocks(&blocks, rows, columns);
    while (blocks.count < ENOUGH_BLOCKS && work / (double)blocks.count > 2 * WORTH_A_BLOCK &&
           (columns > least_columns || (rows > LEAST_BLOCK_ROWS && p->m > LEAST_BLOCK_ROWS))) {
        if (columns > least_columns)
            columns /= 2;
        else
            rows /= 2;
        set_blocks(&blocks, rows, columns);
    }
    return blocks;
}

static void sum_blocks(void *arg, int64_t begin, int64_t end)
{
    const struct blocks *blocks = arg;
    const struct cm_sgemm *p = blocks->p;
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i % blocks->along_rows * blocks->rows;
        const int64_t column = i / blocks->along_rows * blocks->columns;
        sum_block(p, row, row + blocks->rows < p->m ? row + blocks->rows : p->m, column,
                  column + blocks->columns < p->n ? column + blocks->columns : p->n);
    }
}

void cm_sgemm_run(const struct cm_sgemm *product)
{
    if (product->m <= 0 || product->n <= 0)
        return;
    struct blocks blocks = blocks_of(product);
    const double work = (double)product->k * (double)product->n *
                        (double)(product->m > WORTH_READING ? product->m : WORTH_READING);
    cm_parallel(blocks.count, work < WORTH_A_TEAM ? blocks.count : 1, sum_blocks, &blocks);
}

void cm_sgemm_block(const struct cm_sgemm *product, int64_t row, int64_t end_row, int64_t begin,
                    int64_t end)
{
    if (row < end_row && begin < end)
        sum_block(product, row, end_row, begin, end);
}

void cm_sgemm_slice(const struct cm_sgemm *product, int64_t begin, int64_t end)
{
    for (int64_t column = begin; column < end; column += MOST_BLOCK_COLUMNS) {
        const int64_t next = column + MOST_BLOCK_COLUMNS < end ? column + MOST_BLOCK_COLUMNS : end;
        if (product->m > 0)
            sum_block(product, 0, product->m, column, next);
    }
}
