/* Strided copies by element width. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/common/move.h"

#include "tensor/bits.h"

/* ---- rows: to[i * to_step] = from[i * from_step] ---- */

/* A place in a tensor: where it starts, which element, how far to the next one. */
struct place {
    char *data;
    int64_t at, step;
};

typedef void row_fn(struct place from, struct place to, int64_t count, int bits);

/* Through memcpy, since the elements have types of their own; the compiler sees moves of one size.
 */
#define ROW(size)                                                                                  \
    static void row_##size(struct place from, struct place to, int64_t count, int bits)            \
    {                                                                                              \
        const char *x = from.data + from.at * size;                                                \
        char *y = to.data + to.at * size;                                                          \
        (void)bits;                                                                                \
        if (to.step != 1) {                                                                        \
            for (int64_t i = 0; i < count; i++)                                                    \
                memcpy(y + i * to.step * size, x + i * from.step * size, size);                    \
        } else if (from.step == 1) {                                                               \
            memcpy(y, x, (size_t)count *size);                                                     \
        } else {                                                                                   \
            for (int64_t i = 0; i < count; i++)                                                    \
                memcpy(y + i * size, x + i * from.step * size, size);                              \
        }                                                                                          \
    }

ROW(1)
ROW(2)
ROW(4)
ROW(8)
ROW(16)

/* ---- tiles: to[i * to_step + j * to_row] = from[i * from_step + j] ---- */

struct tile {
    int64_t columns, rows; /* ends of i and j */
    int64_t to_row;
};

typedef void tile_fn(struct place from, struct place to, const struct tile *tile, int bits);

#define TILE(size)                                                                                 \
    static void tile_##size(struct place from, struct place to, const struct tile *tile, int bits) \
    {                                                                                              \
        const char *x = from.data + from.at * size;                                                \
        char *y = to.data + to.at * size;                                                          \
        const int64_t x_step = from.step * size, y_step = to.step * size;                          \
        (void)bits;                                                                                \
        for (int64_t j = 0; j < tile->rows; j++, x += size, y += tile->to_row * size)              \
            for (int64_t i = 0; i < tile->columns; i++)                                            \
                memcpy(y + i * y_step, x + i * x_step, size);                                      \
    }

TILE(1)
TILE(2)
TILE(4)
TILE(8)
TILE(16)

/* Types below a byte, in their stream of bits. */
static void row_packed(struct place from, struct place to, int64_t count, int bits)
{
    for (int64_t i = 0; i < count; i++)
        cm_packed_set(bits, to.data, to.at + i * to.step,
                      cm_packed_get(bits, from.data, from.at + i * from.step));
}

static void tile_packed(struct place from, struct place to, const struct tile *tile, int bits)
{
    for (int64_t j = 0; j < tile->rows; j++, from.at++, to.at += tile->to_row)
        row_packed(from, to, tile->columns, bits);
}

/* How elements of one width move. */
struct mover {
    size_t size;
    row_fn *row;
    tile_fn *tile;
};

static const struct mover *mover_of(enum cm_dtype type)
{
    static const struct mover movers[] = {{1, row_1, tile_1},    {2, row_2, tile_2},
                                          {4, row_4, tile_4},    {8, row_8, tile_8},
                                          {16, row_16, tile_16}, {0, row_packed, tile_packed}};
    const size_t size = cm_dtype_size(type);
    const struct mover *mover = movers;
    while (mover->size != 0 && mover->size != size)
        mover++;
    return mover;
}

_Static_assert(sizeof(struct cm_str) == 16, "a string moves as sixteen bytes");

static char *bytes_of(const void *data)
{
    return (char *)(uintptr_t)data;
}

void cm_move_row(enum cm_dtype type, const void *from, int64_t from_at, int64_t step, void *to,
                 int64_t to_at, int64_t count)
{
    if (count <= 0)
        return;
    mover_of(type)->row((struct place){bytes_of(from), from_at, step}, (struct place){to, to_at, 1},
                        count, cm_dtype_info(type)->bits);
}

void cm_move_span(enum cm_dtype type, const void *from, int64_t from_at, void *to, int64_t to_at,
                  int64_t count)
{
    cm_move_row(type, from, from_at, 1, to, to_at, count);
}

void cm_move_fill(enum cm_dtype type, const void *from, int64_t from_at, void *to, int64_t to_at,
                  int64_t count)
{
    cm_move_row(type, from, from_at, 0, to, to_at, count);
}

void cm_move_zero(enum cm_dtype type, void *to, int64_t to_at, int64_t count)
{
    static const char zero[16];
    cm_move_fill(type, zero, 0, to, to_at, count);
}

enum cm_status cm_move_hold(struct cm_tensor *to, const struct cm_tensor *from,
                            struct cm_error *err)
{
    if (from->type != CM_STRING || !to->buffer)
        return CM_OK;
    return cm_buffer_hold(to->buffer, from->buffer, err);
}

/* ---- planning ---- */

static void swap(int64_t *list, int a, int b)
{
    const int64_t kept = list[a];
    list[a] = list[b];
    list[b] = kept;
}

/* A transposition reads far apart what it writes side by side. The axis that is read side by side
 * becomes the second one, so that both can be walked in tiles that stay in the cache. */
static void choose_second_axis(struct cm_move *move)
{
    if (move->rank < 2 || move->from_strides[0] == 1 || move->from_strides[0] == 0)
        return;
    for (int i = 1; i < move->rank; i++) {
        if (move->from_strides[i] != 1)
            continue;
        swap(move->dims, 1, i);
        swap(move->from_strides, 1, i);
        swap(move->to_strides, 1, i);
        return;
    }
}

void cm_move_plan(struct cm_move *move, int rank, const int64_t *dims, const int64_t *from_strides,
                  const int64_t *to_strides)
{
    int n = 0;
    *move = (struct cm_move){0};
    for (int i = 0; i < rank; i++)
        move->empty = move->empty || dims[i] == 0;
    if (move->empty)
        return;
    /* No more than 62 axes are longer than 1, or their product would not fit. */
    for (int i = rank - 1; i >= 0; i--) {
        if (dims[i] == 1)
            continue;
        if (n > 0 && from_strides[i] == move->from_strides[n - 1] * move->dims[n - 1] &&
            to_strides[i] == move->to_strides[n - 1] * move->dims[n - 1]) {
            move->dims[n - 1] *= dims[i];
            continue;
        }
        move->dims[n] = dims[i];
        move->from_strides[n] = from_strides[i];
        move->to_strides[n] = to_strides[i];
        n++;
    }
    move->rank = n;
    choose_second_axis(move);
}

/* ---- running ---- */

enum { SIDE = 16 };

/* The two innermost axes in tiles: rows of a tile are written whole, and its columns are read from
 * lines that are still in the cache. */
static void run_tiles(const struct cm_move *move, const struct mover *mover, struct place from,
                      struct place to, int bits)
{
    for (int64_t j = 0; j < move->dims[1]; j += SIDE) {
        for (int64_t i = 0; i < move->dims[0]; i += SIDE) {
            const struct tile tile = {.columns =
                                          move->dims[0] - i < SIDE ? move->dims[0] - i : SIDE,
                                      .rows = move->dims[1] - j < SIDE ? move->dims[1] - j : SIDE,
                                      .to_row = move->to_strides[1]};
            struct place a = from, b = to;
            a.at += i * a.step + j;
            b.at += i * b.step + j * move->to_strides[1];
            mover->tile(a, b, &tile, bits);
        }
    }
}

void cm_move_run(const struct cm_move *move, enum cm_dtype type, const void *from, void *to)
{
    if (move->empty)
        return;
    const struct mover *mover = mover_of(type);
    const int bits = cm_dtype_info(type)->bits;
    struct place a = {bytes_of(from), move->from_at, 1}, b = {to, move->to_at, 1};
    if (move->rank == 0) {
        mover->row(a, b, 1, bits);
        return;
    }
    a.step = move->from_strides[0];
    b.step = move->to_strides[0];
    const bool tiled = move->rank > 1 && a.step != 1 && a.step != 0 && move->from_strides[1] == 1;
    const int inner = tiled ? 2 : 1;
    int64_t index[CM_MAX_RANK] = {0};
    for (;;) {
        if (tiled)
            run_tiles(move, mover, a, b, bits);
        else
            mover->row(a, b, move->dims[0], bits);
        int i = inner;
        for (; i < move->rank; i++) {
            a.at += move->from_strides[i];
            b.at += move->to_strides[i];
            if (++index[i] < move->dims[i])
                break;
            a.at -= move->from_strides[i] * move->dims[i];
            b.at -= move->to_strides[i] * move->dims[i];
            index[i] = 0;
        }
        if (i == move->rank)
            return;
    }
}

/* ---- whole tensors ---- */

enum cm_status cm_run_copy(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0];
    struct cm_tensor *y = call->out[0];
    const size_t size = cm_tensor_bytes(x);
    if (size != cm_tensor_bytes(y))
        return cm_call_fail(call, CM_BAD_ARGUMENT, "%zu bytes do not fit a result of %zu", size,
                            cm_tensor_bytes(y));
    if (size && y->data != x->data)
        memcpy(y->data, x->data, size);
    return cm_move_hold(y, x, call->err);
}

enum cm_sharing cm_share_view(const struct cm_node *node, int output, int input)
{
    (void)node;
    return output == 0 && input == 0 ? CM_SHARE_VIEW : CM_SHARE_NOTHING;
}
