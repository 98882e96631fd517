/* Resize to the nearest: every element of the result is one of the input. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/nearest.h"

#include "base/parallel.h"
#include "ops/common/move.h"
#include "ops/common/reals.h"

/* to[i] = from[index[i]], or what is extrapolated. */
#define GATHER_ROW(Name, ctype)                                                                    \
    static void Name(int64_t count, const void *from, const int64_t *index, void *to,              \
                     const void *fill)                                                             \
    {                                                                                              \
        const ctype *xs = from, other = *(const ctype *)fill;                                      \
        ctype *ys = to;                                                                            \
        for (int64_t i = 0; i < count; i++)                                                        \
            ys[i] = index[i] < 0 ? other : xs[index[i]];                                           \
    }
struct wide {
    uint64_t half[2];
};
GATHER_ROW(gather_1, uint8_t)
GATHER_ROW(gather_2, uint16_t)
GATHER_ROW(gather_4, uint32_t)
GATHER_ROW(gather_8, uint64_t)
GATHER_ROW(gather_16, struct wide)

/* How often each element is taken, one after the other from the first; 0: in another way. */
static int64_t repeats(int64_t count, const int64_t *index)
{
    int64_t each = 1;
    while (each < count && index[each] == 0)
        each++;
    for (int64_t i = 0; i < count; i++)
        if (index[i] != i / each)
            return 0;
    return each;
}

/* Whole factors, 2 above all, need no table. */
static void repeat_4(int64_t count, int64_t each, const uint32_t *from, uint32_t *to)
{
    if (each == 2 && count % 2 == 0) {
        for (int64_t i = 0; i < count / 2; i++)
            to[2 * i] = to[2 * i + 1] = from[i];
        return;
    }
    for (int64_t i = 0; i < count; i += each)
        for (int64_t j = i; j < i + each && j < count; j++)
            to[j] = from[i / each];
}

static void gather(size_t width, int64_t count, const void *from, const int64_t *index, void *to,
                   const void *fill)
{
    switch (width) {
    case 1:
        gather_1(count, from, index, to, fill);
        break;
    case 2:
        gather_2(count, from, index, to, fill);
        break;
    case 4:
        gather_4(count, from, index, to, fill);
        break;
    case 8:
        gather_8(count, from, index, to, fill);
        break;
    default:
        gather_16(count, from, index, to, fill);
    }
}

/* One element holding the extrapolation value; strings are empty. */
static void make_fill(enum cm_dtype type, double value, void *fill)
{
    memset(fill, 0, 2 * sizeof(double));
    if (type == CM_COMPLEX64 || type == CM_COMPLEX128)
        cm_reals_store(type == CM_COMPLEX64 ? CM_FLOAT : CM_DOUBLE, fill, 0, 1, &value);
    else if (type != CM_STRING)
        cm_reals_store(type, fill, 0, 1, &value);
}

struct nearest_run {
    const struct cm_resize *resize;
    int first; /* axes before it are left alone */
    const struct cm_tensor *x, *y;
    int64_t *index[CM_MAX_RANK], strides[CM_MAX_RANK];
    int64_t rows; /* of a plane of the result, along the last axis */
    int64_t each; /* elements of 4 bytes along the last axis: how often each is taken; else 0 */
    size_t width;
    double fill[2];
};

static void nearest_tables(const struct nearest_run *run, const struct cm_resize_axis *axes,
                           int rank, int64_t *memory, int64_t **index)
{
    for (int i = run->first; i < rank; i++) {
        index[i] = memory;
        memory += axes[i].out;
        for (int64_t o = 0; o < axes[i].out; o++)
            index[i][o] = axes[i].identity ? o : cm_resize_nearest(run->resize, &axes[i], o);
    }
}

/* Where row `left` of a plane of the result begins in that of x, counted in elements; -1: it is
 * extrapolated. */
static int64_t row_begin(const struct nearest_run *run, int64_t left)
{
    const struct cm_shape *x = &run->x->shape, *y = &run->y->shape;
    const int first = run->first;
    int64_t begin = 0;
    for (int i = x->rank - 2; i >= first; i--) {
        const int64_t at = run->index[i][i > first ? left % y->dims[i] : left];
        left = i > first ? left / y->dims[i] : 0;
        if (at < 0)
            return -1;
        begin += at * run->strides[i];
    }
    return begin;
}

/* Rows that begin at the same place are copied. */
static void nearest_rows(void *arg, int64_t first, int64_t end)
{
    const struct nearest_run *run = arg;
    const int last = run->x->shape.rank - 1;
    const int64_t length = run->y->shape.dims[last];
    const size_t bytes = (size_t)length * run->width;
    char *to = (char *)run->y->data + (size_t)first * bytes;
    const int64_t plane = cm_shape_span(&run->x->shape, run->first, last + 1);
    int64_t before = -1, base = first / run->rows * plane, left = first % run->rows;
    for (int64_t row = first; row < end; row++, left++, to += bytes) {
        if (left == run->rows) {
            left = 0;
            base += plane;
        }
        const int64_t at = row_begin(run, left), begin = at < 0 ? at : base + at;
        if (begin >= 0 && begin == before)
            memcpy(to, to - bytes, bytes);
        else if (begin >= 0 && run->each)
            repeat_4(length, run->each, (const uint32_t *)run->x->data + begin,
                     (uint32_t *)(void *)to);
        else if (begin >= 0)
            gather(run->width, length, (const char *)run->x->data + (size_t)begin * run->width,
                   run->index[last], to, run->fill);
        for (int64_t o = 0; begin < 0 && o < length; o++)
            memcpy(to + (size_t)o * run->width, run->fill, run->width);
        before = begin;
    }
}

enum cm_status cm_resize_run_nearest(struct cm_call *call, const struct cm_resize *resize,
                                     const struct cm_resize_axis *axes, int first)
{
    const struct cm_tensor *x = call->in[0];
    struct cm_tensor *y = call->out[0];
    const int rank = x->shape.rank;
    struct nearest_run run = {.resize = resize,
                              .first = first,
                              .x = x,
                              .y = y,
                              .rows = cm_shape_span(&y->shape, first, rank - 1),
                              .width = cm_dtype_size(x->type)};
    const int64_t planes = cm_shape_span(&x->shape, 0, first);

    make_fill(x->type, resize->extrapolation, run.fill);
    nearest_tables(&run, axes, rank, call->scratch, run.index);
    if (run.width == sizeof(uint32_t))
        run.each = repeats(y->shape.dims[rank - 1], run.index[rank - 1]);
    cm_shape_strides(&x->shape, run.strides);
    cm_parallel(planes * run.rows, 1 + CM_RESIZE_GRAIN / y->shape.dims[rank - 1], nearest_rows,
                &run);
    return cm_move_hold(y, x, call->err);
}
