/* Strided copies by element width. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/common/move.h"

#include "base/machine.h"
#include "base/parallel.h"
#include "base/tile.h"
#include "tensor/bits.h"

/* ---- rows: to[i * to_step] = from[i * from_step] ---- */

/* A place in a tensor: where it starts, which element, how far to the next one. */
struct place {
    char *data;
    int64_t at, step;
};

typedef void row_fn(struct place from, struct place to, int64_t count, int bits);

static CM_ALWAYS_INLINE void fill_words_on(enum cm_machine machine, int64_t count, uint64_t word,
                                           char *to)
{
    (void)machine;
    for (int64_t i = 0; i < count; i++)
        memcpy(to + i * 8, &word, 8);
}
CM_TWO_BUILDS(fill_words, (int64_t count, uint64_t word, char *to), (machine, count, word, to))

/* bytes / size copies of one element of 1, 2, 4 or 8 bytes. */
static void fill_bytes(char *to, const char *one, size_t size, size_t bytes)
{
    char word[8];
    uint64_t pattern;
    for (size_t i = 0; i < 8; i++)
        word[i] = one[i % size];
    memcpy(&pattern, word, 8);
    fill_words_builds[cm_this_machine()]((int64_t)(bytes / 8), pattern, to);
    memcpy(to + bytes - bytes % 8, word, bytes % 8);
}

#define SIZE      1
#define FOR(name) name##_1
#include "ops/common/move_row.inc"
#define SIZE      2
#define FOR(name) name##_2
#include "ops/common/move_row.inc"
#define SIZE      4
#define FOR(name) name##_4
#include "ops/common/move_row.inc"
#define SIZE      8
#define FOR(name) name##_8
#include "ops/common/move_row.inc"
#define SIZE      16
#define FOR(name) name##_16
#include "ops/common/move_row.inc"

/* Types below a byte, in their stream of bits. */
static void row_packed(struct place from, struct place to, int64_t count, int bits)
{
    for (int64_t i = 0; i < count; i++)
        cm_packed_set(bits, to.data, to.at + i * to.step,
                      cm_packed_get(bits, from.data, from.at + i * from.step));
}

/* How elements of one width move. */
struct mover {
    size_t size; /* bytes of an element; 0: packed */
    row_fn *row;
};

static const struct mover *mover_of(enum cm_dtype type)
{
    static const struct mover movers[] = {{1, row_1}, {2, row_2},   {4, row_4},
                                          {8, row_8}, {16, row_16}, {0, row_packed}};
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

/* The two innermost axes are a plane, in which elements are moved by one of these ways. */
enum way {
    BY_ROWS,     /* along the first axis, row after row */
    BY_SPANS,    /* the same, of elements that lie side by side on both sides */
    TRANSPOSING, /* read side by side along the second axis, written along the first */
};

enum {
    PIECE = 1 << 16, /* bytes worth a thread */
    LINE = 64,
};

/* A plane is cut into pieces, rows of pieces of rows; pieces are counted through all planes. */
struct run {
    const struct cm_move *move;
    const struct mover *mover;
    int bits;
    enum way way;
    const void *from;
    void *to;
    int64_t width, height;      /* of a plane */
    int64_t columns, rows;      /* of a piece */
    int64_t per_row, per_plane; /* pieces */
};

/* Copies of a known size need no call. */
#define SPANS(size)                                                                                \
    case size:                                                                                     \
        for (int64_t j = 0; j < rows; j++, x += from_row, y += to_row)                             \
            memcpy(y, x, size);                                                                    \
        break;

static void move_spans(size_t bytes, int64_t rows, const char *x, int64_t from_row, char *y,
                       int64_t to_row)
{
    switch (bytes) {
        SPANS(4)
        SPANS(8)
        SPANS(16)
        SPANS(32)
        SPANS(64)
    default:
        for (int64_t j = 0; j < rows; j++, x += from_row, y += to_row)
            memcpy(y, x, bytes);
    }
}

static void move_piece(const struct run *run, struct place from, struct place to, int64_t columns,
                       int64_t rows)
{
    const struct cm_move *move = run->move;
    const int64_t size = (int64_t)run->mover->size;
    const int64_t from_row = move->rank > 1 ? move->from_strides[1] : 0;
    const int64_t to_row = move->rank > 1 ? move->to_strides[1] : 0;
    const char *x = from.data + from.at * size;
    char *y = to.data + to.at * size;

    switch (run->way) {
    case TRANSPOSING:
        cm_tile_transpose((size_t)size, columns, rows, x, from.step, y, to_row);
        return;
    case BY_SPANS:
        move_spans((size_t)(columns * size), rows, x, from_row * size, y, to_row * size);
        return;
    case BY_ROWS:
        for (int64_t j = 0; j < rows; j++, from.at += from_row, to.at += to_row)
            run->mover->row(from, to, columns, run->bits);
    }
}

/* The place of plane number `plane`; index counts along the axes outside. */
static void seek_plane(const struct cm_move *move, int64_t plane, int64_t *index,
                       struct place *from, struct place *to)
{
    for (int i = 2; i < move->rank; i++) {
        index[i] = plane % move->dims[i];
        plane /= move->dims[i];
        from->at += index[i] * move->from_strides[i];
        to->at += index[i] * move->to_strides[i];
    }
}

static void next_plane(const struct cm_move *move, int64_t *index, struct place *from,
                       struct place *to)
{
    for (int i = 2; i < move->rank; i++) {
        from->at += move->from_strides[i];
        to->at += move->to_strides[i];
        if (++index[i] < move->dims[i])
            return;
        from->at -= move->from_strides[i] * move->dims[i];
        to->at -= move->to_strides[i] * move->dims[i];
        index[i] = 0;
    }
}

static void move_pieces(void *arg, int64_t begin, int64_t end)
{
    const struct run *run = arg;
    const struct cm_move *move = run->move;
    struct place from = {bytes_of(run->from), move->from_at, 1}, to = {run->to, move->to_at, 1};
    int64_t index[CM_MAX_RANK], piece = begin % run->per_plane;

    if (move->rank > 0) {
        from.step = move->from_strides[0];
        to.step = move->to_strides[0];
    }
    seek_plane(move, begin / run->per_plane, index, &from, &to);
    for (int64_t p = begin; p < end; p++) {
        const int64_t i = piece % run->per_row * run->columns;
        const int64_t j = piece / run->per_row * run->rows;
        struct place a = from, b = to;
        a.at += i * from.step + (j > 0 ? j * move->from_strides[1] : 0);
        b.at += i * to.step + (j > 0 ? j * move->to_strides[1] : 0);
        move_piece(run, a, b, run->width - i < run->columns ? run->width - i : run->columns,
                   run->height - j < run->rows ? run->height - j : run->rows);
        if (++piece == run->per_plane) {
            piece = 0;
            next_plane(move, index, &from, &to);
        }
    }
}

static enum way way_of(const struct cm_move *move, const struct mover *mover)
{
    if (mover->size == 0 || move->rank == 0 || move->to_strides[0] != 1)
        return BY_ROWS;
    if (move->from_strides[0] == 1)
        return BY_SPANS;
    return move->rank > 1 && move->from_strides[0] != 0 && move->from_strides[1] == 1 ? TRANSPOSING
                                                                                      : BY_ROWS;
}

/* How many of `count` parts of this many bytes make a piece; whole lines of tiles where it can. */
static int64_t parts_of_piece(int64_t count, int64_t bytes)
{
    const int64_t parts = bytes < PIECE ? PIECE / bytes : 1;
    const int64_t rounded = parts > LINE ? parts - parts % LINE : parts;
    return rounded < count ? rounded : count;
}

/* Pieces of a plane: as long as they can be, but some rows at least of what is transposed. */
static void cut_plane(struct run *run, int64_t size)
{
    const int64_t least = run->way != TRANSPOSING  ? 1
                          : run->height < 2 * LINE ? run->height
                                                   : 2 * LINE;
    run->columns = parts_of_piece(run->width, least * size);
    run->rows = parts_of_piece(run->height, run->columns * size);
    run->per_row = (run->width + run->columns - 1) / run->columns;
    run->per_plane = run->per_row * ((run->height + run->rows - 1) / run->rows);
}

void cm_move_run(const struct cm_move *move, enum cm_dtype type, const void *from, void *to)
{
    if (move->empty)
        return;
    const struct mover *mover = mover_of(type);
    const int64_t size = mover->size ? (int64_t)mover->size : 1;
    struct run run = {.move = move,
                      .mover = mover,
                      .bits = cm_dtype_info(type)->bits,
                      .way = way_of(move, mover),
                      .from = from,
                      .to = to,
                      .width = move->rank > 0 ? move->dims[0] : 1,
                      .height = move->rank > 1 ? move->dims[1] : 1};
    int64_t planes = 1;
    for (int i = 2; i < move->rank; i++)
        planes *= move->dims[i];
    cut_plane(&run, size);
    const int64_t pieces = planes * run.per_plane, bytes = run.columns * run.rows * size;
    int64_t grain = bytes < PIECE / 2 ? PIECE / bytes : 1;
    /* Little is moved by one thread. Two must not write into one byte, as packed elements share. */
    if (mover->size == 0 || pieces / 4 < grain)
        grain = pieces;
    cm_parallel(pieces, grain, move_pieces, &run);
}

/* ---- whole tensors ---- */

struct bytes {
    char *to;
    const char *from;
    size_t count;
};

enum { STRETCH = 1 << 18 }; /* bytes: long ones are copied past the cache */

static void move_stretches(void *arg, int64_t begin, int64_t end)
{
    const struct bytes *bytes = arg;
    const size_t first = (size_t)begin * STRETCH, last = (size_t)end * STRETCH;
    memcpy(bytes->to + first, bytes->from + first,
           (last < bytes->count ? last : bytes->count) - first);
}

void cm_move_bytes(void *to, const void *from, size_t bytes)
{
    struct bytes job = {to, from, bytes};
    if (bytes > 0)
        cm_parallel((int64_t)((bytes - 1) / STRETCH + 1), 4, move_stretches, &job);
}

enum cm_status cm_run_copy(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0];
    struct cm_tensor *y = call->out[0];
    const size_t size = cm_tensor_bytes(x);
    if (size != cm_tensor_bytes(y))
        return cm_call_fail(call, CM_BAD_ARGUMENT, "%zu bytes do not fit a result of %zu", size,
                            cm_tensor_bytes(y));
    if (y->data != x->data)
        cm_move_bytes(y->data, x->data, size);
    return cm_move_hold(y, x, call->err);
}

enum cm_sharing cm_share_first(const struct cm_node *node, int output, int input)
{
    (void)node;
    return output == 0 && input == 0 ? CM_SHARE_OVERWRITE : CM_SHARE_NOTHING;
}

enum cm_sharing cm_share_view(const struct cm_node *node, int output, int input)
{
    (void)node;
    return output == 0 && input == 0 ? CM_SHARE_VIEW : CM_SHARE_NOTHING;
}
