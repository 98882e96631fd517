/* Tensors whose bytes lie in pieces of files: checked, and read as if they were one row of
 * elements.
 */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/saved_tensor.h"

#include "base/memory.h"
#include "base/number.h"

/* ---- making ---- */

enum cm_status cm_saved_tensor_new(struct cm_arena *arena, enum cm_dtype dtype,
                                   const struct cm_shape *shape, struct cm_str bytes,
                                   struct cm_str file, struct cm_saved_tensor **out,
                                   struct cm_error *err)
{
    struct cm_saved_tensor *tensor = CM_NEW(arena, struct cm_saved_tensor);
    char text[200];
    int64_t count;
    size_t need;

    if (cm_dtype_size(dtype) == 0 || dtype == CM_STRING)
        return cm_fail(err, CM_UNSUPPORTED, "tensors of %s are not read", cm_dtype_name(dtype));
    if (!cm_shape_count(shape, &count) || !cm_dtype_bytes(dtype, count, &need))
        return cm_fail(err, CM_BAD_MODEL, "a tensor of shape %s is too large to be one",
                       cm_shape_print(shape, text, sizeof text));
    if (need != bytes.size)
        return cm_fail(err, CM_BAD_MODEL, "a tensor of %s %s needs %zu bytes, there are %zu",
                       cm_dtype_name(dtype), cm_shape_print(shape, text, sizeof text), need,
                       bytes.size);
    tensor->dtype = dtype;
    tensor->shape = *shape;
    struct cm_saved_piece *piece = cm_saved_piece_add(arena, tensor, false);
    piece->is_run = true;
    piece->bytes = bytes;
    piece->file = file;
    piece->size[0] = count;
    *out = tensor;
    return CM_OK;
}

struct cm_saved_piece *cm_saved_piece_add(struct cm_arena *arena, struct cm_saved_tensor *tensor,
                                          bool with_stride)
{
    const size_t rank = tensor->shape.rank ? (size_t)tensor->shape.rank : 1;
    struct cm_saved_piece *piece = CM_PUSH(arena, &tensor->pieces);

    *piece = (struct cm_saved_piece){.first = CM_NEW_ARRAY(arena, int64_t, 2 * rank)};
    piece->size = piece->first + rank;
    if (with_stride)
        piece->stride = CM_NEW_ARRAY(arena, int64_t, rank);
    return piece;
}

static struct cm_saved_tensor *scalar_of(struct cm_arena *arena, enum cm_dtype dtype,
                                         const void *bytes)
{
    struct cm_saved_tensor *tensor = CM_NEW(arena, struct cm_saved_tensor);

    tensor->dtype = dtype;
    struct cm_saved_piece *piece = cm_saved_piece_add(arena, tensor, false);
    piece->is_run = true;
    piece->size[0] = 1;
    piece->bytes = (struct cm_str){bytes, cm_dtype_size(dtype)};
    piece->file = CM_STR("memory");
    return tensor;
}

struct cm_saved_tensor *cm_saved_scalar(struct cm_arena *arena, enum cm_dtype dtype, double value)
{
    void *room = cm_arena_alloc(arena, 16);
    const struct cm_tensor scalar = cm_tensor_borrow(dtype, &CM_SCALAR, room);

    cm_tensor_set_real(&scalar, 0, value);
    return scalar_of(arena, dtype, room);
}

struct cm_saved_tensor *cm_saved_int(struct cm_arena *arena, int64_t value)
{
    int64_t *room = CM_NEW(arena, int64_t);

    *room = value;
    return scalar_of(arena, CM_INT64, room);
}

struct cm_saved_tensor *cm_saved_zeros(struct cm_arena *arena, const struct cm_saved_tensor *like)
{
    static const char zero[16];
    struct cm_saved_tensor *tensor = CM_NEW(arena, struct cm_saved_tensor);

    tensor->dtype = like->dtype;
    tensor->shape = like->shape;
    struct cm_saved_piece *piece = cm_saved_piece_add(arena, tensor, true); /* strides of 0 */
    piece->bytes = (struct cm_str){zero, sizeof zero};
    for (int d = 0; d < like->shape.rank; d++)
        piece->size[d] = like->shape.dims[d];
    return tensor;
}

/* ---- checking ---- */

/* Axes of a piece: those of its tensor, or the one of a run; a scalar's box has none. */
static int axes_of(const struct cm_saved_tensor *tensor, const struct cm_saved_piece *piece)
{
    return piece->is_run ? 1 : tensor->shape.rank;
}

static enum cm_status check_piece(const struct cm_saved_tensor *tensor,
                                  const struct cm_saved_piece *piece, int64_t *elements,
                                  struct cm_error *err)
{
    const int axes = axes_of(tensor, piece);
    const size_t width = cm_dtype_size(tensor->dtype);
    const size_t bytes = piece->packing ? piece->unpacked_size : piece->bytes.size;
    const int64_t room = width ? (int64_t)(bytes / width) : 0;
    int64_t last = 0, dense = 1; /* the last element in bytes, beyond offset */

    *elements = 1;
    for (int d = axes - 1; d >= 0; d--) {
        const int64_t whole =
            piece->is_run ? cm_shape_elements(&tensor->shape) : tensor->shape.dims[d];
        const int64_t first = piece->first[d], size = piece->size[d];
        const int64_t stride = piece->stride ? piece->stride[d] : dense;
        int64_t reach;

        if (first < 0 || size < 0 || first > whole || size > whole - first)
            return cm_fail(
                err, CM_BAD_MODEL,
                "a piece of it is at %lld with a size of %lld along axis %d, which has %lld",
                (long long)first, (long long)size, d, (long long)whole);
        if (stride < 0 || !cm_dim_mul(size ? size - 1 : 0, stride, &reach) ||
            !cm_dim_add(last, reach, &last) || !cm_dim_mul(dense, size, &dense))
            return cm_fail(err, CM_BAD_MODEL, "a piece of it reaches too far");
        *elements = dense;
    }
    if (piece->offset < 0 || (*elements && (piece->offset >= room || last >= room - piece->offset)))
        return cm_fail(err, CM_BAD_MODEL,
                       "a piece of it has %zu bytes, and needs element %lld of %zu bytes", bytes,
                       (long long)last + 1 + piece->offset, width);
    return CM_OK;
}

enum { COMPARED_MAX = 50000000 };

/* Boxes that do not overlap and have as many elements as the tensor cover it. */
static bool overlap(const struct cm_saved_tensor *tensor, const struct cm_saved_piece *a,
                    const struct cm_saved_piece *b)
{
    if (a->is_run != b->is_run)
        return false; /* nobody mixes them; the count would tell */
    for (int d = 0; d < axes_of(tensor, a); d++)
        if (a->first[d] >= b->first[d] + b->size[d] || b->first[d] >= a->first[d] + a->size[d])
            return false;
    return true;
}

static int by_place(const void *x, const void *y)
{
    const struct cm_saved_piece *a = *(const struct cm_saved_piece *const *)x;
    const struct cm_saved_piece *b = *(const struct cm_saved_piece *const *)y;

    return (a->first[0] > b->first[0]) - (a->first[0] < b->first[0]);
}

enum cm_status cm_saved_tensor_check(struct cm_arena *scratch, const struct cm_saved_tensor *tensor,
                                     struct cm_error *err)
{
    const size_t n = tensor->pieces.count;
    const struct cm_saved_piece **sorted =
        CM_NEW_ARRAY(scratch, const struct cm_saved_piece *, n ? n : 1);
    int64_t count, sum = 0, elements;

    if (cm_dtype_size(tensor->dtype) == 0 || tensor->dtype == CM_STRING)
        return cm_fail(err, CM_UNSUPPORTED, "tensors of %s are not read",
                       cm_dtype_name(tensor->dtype));
    if (!cm_shape_count(&tensor->shape, &count))
        return cm_fail(err, CM_BAD_MODEL, "it is too large to be a tensor");
    for (size_t i = 0; i < n; i++) {
        sorted[i] = &tensor->pieces.items[i];
        CM_TRY(check_piece(tensor, sorted[i], &elements, err));
        if (!cm_dim_add(sum, elements, &sum))
            return cm_fail(err, CM_BAD_MODEL, "its pieces are too large");
    }
    if (n)
        qsort(sorted, n, sizeof *sorted, by_place);
    if (sum < count)
        return cm_fail(err, CM_BAD_MODEL, "%lld of its %lld elements are in none of its %zu pieces",
                       (long long)(count - sum), (long long)count, n);
    size_t compared = 0;
    for (size_t i = 0; i < n && tensor->shape.rank > 0; i++)
        for (size_t j = i + 1;
             j < n && sorted[j]->first[0] < sorted[i]->first[0] + sorted[i]->size[0]; j++)
            if (++compared > COMPARED_MAX)
                return cm_fail(err, CM_LIMIT, "it is cut into too many pieces, %zu", n);
            else if (overlap(tensor, sorted[i], sorted[j]))
                return cm_fail(err, CM_BAD_MODEL, "two of its %zu pieces overlap", n);
    return CM_OK;
}

/* ---- reading ---- */

struct reading {
    struct cm_saved_reader *reader;
    const struct cm_saved_tensor *tensor;
    const struct cm_saved_piece *piece;
    const uint8_t *from; /* the piece's first element */
    size_t width;
    int64_t first, count; /* of the tensor, in a row */
    uint8_t *out;
};

/* So much of a mapped file may be in memory before it is given back. */
enum { IN_MEMORY_MAX = 16 << 20 };

static void copy_strided(uint8_t *to, const uint8_t *from, size_t width, int64_t stride,
                         int64_t count)
{
    const size_t step = (size_t)stride * width;

    if (stride == 1) {
        memcpy(to, from, (size_t)count * width);
        return;
    }
#define COPY_AS(type)                                                                              \
    for (int64_t i = 0; i < count; i++)                                                            \
    memcpy(to + (size_t)i * sizeof(type), from + (size_t)i * step, sizeof(type))
    switch (width) {
    case 1:
        COPY_AS(uint8_t);
        break;
    case 2:
        COPY_AS(uint16_t);
        break;
    case 4:
        COPY_AS(uint32_t);
        break;
    case 8:
        COPY_AS(uint64_t);
        break;
    default:
        for (int64_t i = 0; i < count; i++)
            memcpy(to + (size_t)i * width, from + (size_t)i * step, width);
    }
#undef COPY_AS
}

static void forget(const struct cm_saved_tensor *tensor, const void *bytes, size_t size)
{
    if (tensor->home)
        cm_mapped_forget(tensor->home->items, tensor->home->count, bytes, size);
}

/* Rows of a plane, one after the other along the last but one axis, wanted from element `begin` of
 * the first row to element `end` of the last. Where elements of a row lie far apart, the plane is
 * cut across its rows, so that little of the file is in memory at a time. */
struct plane {
    const uint8_t *from;
    int64_t at;           /* of the first row in what is wanted; it may begin before that */
    int64_t rows, length; /* of a row in the piece */
    int64_t row_stride, stride;
    int64_t row_gap; /* from a row to the next in out, in elements */
    int64_t begin, end;
};

static void copy_plane(struct reading *r, const struct plane *p)
{
    const size_t width = r->width;
    const int64_t span = p->stride > 1 ? IN_MEMORY_MAX / (int64_t)width / p->stride : p->length;
    const int64_t step = span < 1 ? 1 : span;

    for (int64_t at = 0; at < p->length; at += step) {
        const int64_t until = at + step < p->length ? at + step : p->length;

        for (int64_t row = 0; row < p->rows; row++) {
            const int64_t low = row == 0 && p->begin > at ? p->begin : at;
            const int64_t high = row == p->rows - 1 && p->end < until ? p->end : until;

            if (low >= high)
                continue;
            const uint8_t *from = p->from + (size_t)(row * p->row_stride + low * p->stride) * width;
            copy_strided(r->out + (size_t)(p->at + row * p->row_gap + low) * width, from, width,
                         p->stride, high - low);
            if (p->stride == 1)
                forget(r->tensor, from, (size_t)(high - low) * width);
        }
        if (p->stride > 1 && step < p->length)
            forget(r->tensor, p->from + (size_t)(at * p->stride) * width,
                   (size_t)((until - at) * p->stride) * width);
    }
}

/* The box that a piece is, its last axes joined where they are dense on both sides. */
struct box {
    int axes;
    int64_t first[CM_MAX_RANK], size[CM_MAX_RANK], stride[CM_MAX_RANK];
    int64_t whole[CM_MAX_RANK]; /* strides of the tensor */
};

static void set_box(const struct reading *r, struct box *box)
{
    const struct cm_saved_piece *piece = r->piece;
    const int axes = axes_of(r->tensor, piece);
    int64_t dims[CM_MAX_RANK], dense = 1;

    box->axes = 0;
    for (int d = 0; d < axes; d++)
        dims[d] = piece->is_run ? cm_shape_elements(&r->tensor->shape) : r->tensor->shape.dims[d];
    for (int d = axes - 1; d >= 0; d--) { /* from the last to the first; turned round below */
        const int64_t stride = piece->stride ? piece->stride[d] : dense;
        const int n = box->axes;

        dense *= piece->size[d];
        if (n && box->first[n - 1] == 0 && box->size[n - 1] == dims[d + 1] &&
            stride == box->stride[n - 1] * dims[d + 1]) {
            box->first[n - 1] = piece->first[d] * dims[d + 1];
            box->size[n - 1] *= piece->size[d];
            dims[d] *= dims[d + 1];
            continue;
        }
        box->first[n] = piece->first[d];
        box->size[n] = piece->size[d];
        box->stride[n] = stride;
        box->whole[n] = n ? box->whole[n - 1] * dims[d + 1] : 1;
        box->axes++;
    }
    if (box->axes == 0) { /* a scalar */
        box->first[0] = 0;
        box->size[0] = box->stride[0] = box->whole[0] = 1;
        box->axes = 1;
    }
    for (int i = 0, j = box->axes - 1; i < j; i++, j--) {
#define SWAP(field)                                                                                \
    do {                                                                                           \
        const int64_t kept = box->field[i];                                                        \
        box->field[i] = box->field[j];                                                             \
        box->field[j] = kept;                                                                      \
    } while (0)
        SWAP(first);
        SWAP(size);
        SWAP(stride);
        SWAP(whole);
#undef SWAP
    }
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* The plane of the last two axes at index; base is where its first element is in the tensor. */
static void read_plane(struct reading *r, const struct box *box, int64_t base, int64_t offset)
{
    const int last = box->axes - 1;
    const int64_t rows = last > 0 ? box->size[last - 1] : 1;
    const int64_t gap = last > 0 ? box->whole[last - 1] : box->size[last];
    const int64_t length = box->size[last], end = r->first + r->count;
    struct plane p = {.length = length,
                      .row_stride = last > 0 ? box->stride[last - 1] : 0,
                      .stride = box->stride[last],
                      .row_gap = gap};
    int64_t low = 0, high = rows;

    if (r->first > base + length - 1) /* the first row that ends behind first */
        low = (r->first - (base + length - 1) + gap - 1) / gap;
    if (end < base + (rows - 1) * gap + 1)
        high = end > base ? (end - base - 1) / gap + 1 : 0;
    if (low >= high)
        return;
    p.rows = high - low;
    const int64_t start = base + low * gap;
    p.begin = clamp(r->first - start, 0, length);
    p.end = clamp(end - (base + (high - 1) * gap), 0, length);
    p.from = r->from + (size_t)(offset + low * p.row_stride) * r->width;
    p.at = start - r->first;
    copy_plane(r, &p);
}

static void read_box(struct reading *r)
{
    struct box box;
    int64_t index[CM_MAX_RANK] = {0};

    set_box(r, &box);
    for (int d = 0; d < box.axes; d++)
        if (box.size[d] == 0)
            return;
    const int outer = box.axes > 2 ? box.axes - 2 : 0;
    const int64_t end = r->first + r->count;
    int64_t plane = 1; /* how far the plane's last element is from its first */
    for (int d = outer; d < box.axes; d++)
        plane += (box.size[d] - 1) * box.whole[d];
    for (;;) {
        int64_t base = 0, offset = 0;
        int d;

        for (d = 0; d < box.axes; d++) {
            base += (box.first[d] + index[d]) * box.whole[d];
            offset += index[d] * box.stride[d];
        }
        if (base >= end)
            return;
        if (base + plane > r->first)
            read_plane(r, &box, base, offset);
        else if (outer > 0) { /* goes on where the wanted ones may begin */
            const int64_t behind = (r->first - (base + plane)) / box.whole[outer - 1];
            index[outer - 1] += clamp(behind, 0, box.size[outer - 1] - 1 - index[outer - 1]);
        }
        for (d = outer - 1; d >= 0 && ++index[d] == box.size[d]; d--)
            index[d] = 0;
        if (d < 0)
            return;
    }
}

static enum cm_status unpack(struct cm_saved_reader *reader, const struct cm_saved_piece *piece,
                             struct cm_error *err)
{
    if (reader->unpacked == piece)
        return CM_OK;
    cm_saved_reader_release(reader);
    reader->bytes = cm_malloc(piece->unpacked_size ? piece->unpacked_size : 1);
    if (!reader->bytes)
        return cm_fail(err, CM_NO_MEMORY, "no memory for a piece of %zu bytes",
                       piece->unpacked_size);
    CM_TRY(cm_unpack(piece, reader->bytes, err));
    reader->unpacked = piece;
    return CM_OK;
}

void cm_saved_reader_release(struct cm_saved_reader *reader)
{
    cm_free(reader->bytes);
    reader->bytes = NULL;
    reader->unpacked = NULL;
}

static bool is_wanted(const struct reading *r)
{
    const struct cm_saved_piece *piece = r->piece;
    int64_t low = 0, high = 0, whole[CM_MAX_RANK];

    if (piece->is_run)
        return piece->first[0] < r->first + r->count && piece->first[0] + piece->size[0] > r->first;
    cm_shape_strides(&r->tensor->shape, whole);
    for (int d = 0; d < r->tensor->shape.rank; d++) {
        low += piece->first[d] * whole[d];
        high += (piece->first[d] + piece->size[d] - 1) * whole[d];
    }
    return low < r->first + r->count && high >= r->first;
}

enum cm_status cm_saved_tensor_read(struct cm_saved_reader *reader,
                                    const struct cm_saved_tensor *tensor, int64_t first,
                                    int64_t count, void *out, struct cm_error *err)
{
    struct reading r = {.reader = reader,
                        .tensor = tensor,
                        .width = cm_dtype_size(tensor->dtype),
                        .first = first,
                        .count = count,
                        .out = out};

    if (tensor->zero_elsewhere)
        memset(out, 0, (size_t)count * r.width);
    for (size_t i = 0; i < tensor->pieces.count; i++) {
        r.piece = &tensor->pieces.items[i];
        if (!is_wanted(&r))
            continue;
        if (r.piece->packing)
            CM_TRY(unpack(reader, r.piece, err));
        r.from = r.piece->packing ? reader->bytes : (const uint8_t *)r.piece->bytes.data;
        if (!r.from)
            continue;
        r.from += (size_t)r.piece->offset * r.width;
        read_box(&r);
    }
    return CM_OK;
}

void cm_saved_tensor_forget(const struct cm_saved_tensor *tensor)
{
    for (size_t i = 0; i < tensor->pieces.count; i++)
        forget(tensor, tensor->pieces.items[i].bytes.data, tensor->pieces.items[i].bytes.size);
}

bool cm_saved_tensor_number(const struct cm_saved_tensor *tensor, double *out)
{
    const enum cm_dtype dtype = tensor->dtype;
    struct cm_saved_reader reader = {0};
    union {
        uint64_t aligned;
        uint8_t bytes[16];
    } room = {0};

    if (cm_shape_elements(&tensor->shape) != 1 || cm_dtype_info(dtype)->kind == CM_CLASS_COMPLEX ||
        cm_dtype_size(dtype) == 0 || cm_dtype_size(dtype) > sizeof room.bytes || dtype == CM_STRING)
        return false;
    const enum cm_status status = cm_saved_tensor_read(&reader, tensor, 0, 1, room.bytes, NULL);
    cm_saved_reader_release(&reader);
    if (status)
        return false;
    const struct cm_tensor scalar = cm_tensor_borrow(dtype, &CM_SCALAR, room.bytes);
    *out = cm_tensor_real(&scalar, 0);
    return true;
}

/* ---- writing ---- */

enum { PART = 4 << 20, TURNED_PART = 64 << 20 };

/* Do elements that follow each other lie apart? */
static bool is_turned(const struct cm_saved_tensor *tensor)
{
    for (size_t i = 0; i < tensor->pieces.count; i++) {
        const struct cm_saved_piece *piece = &tensor->pieces.items[i];
        const int last = tensor->shape.rank - 1;

        if (piece->stride && !piece->is_run && last >= 0 && piece->size[last] > 1 &&
            piece->stride[last] != 1)
            return true;
    }
    return false;
}

size_t cm_saved_tensor_part(const struct cm_saved_tensor *tensor)
{
    return is_turned(tensor) ? TURNED_PART : PART;
}

enum cm_status cm_saved_elements_each(const struct cm_saved_tensor *tensor, int64_t first,
                                      int64_t count, cm_saved_sink_fn *sink, void *arg,
                                      struct cm_error *err)
{
    struct cm_saved_reader reader = {0};
    const size_t width = cm_dtype_size(tensor->dtype);
    const int64_t piece = (int64_t)(cm_saved_tensor_part(tensor) / width);
    const int64_t most = count < piece ? count : piece;
    uint8_t *room = cm_malloc((size_t)(most ? most : 1) * width);
    enum cm_status status =
        room ? CM_OK : cm_fail(err, CM_NO_MEMORY, "no memory to write a tensor");

    for (int64_t end = first + count; !status && first < end; first += most) {
        const int64_t now = end - first < most ? end - first : most;

        status = cm_saved_tensor_read(&reader, tensor, first, now, room, err);
        if (!status)
            status = sink(arg, room, (size_t)now * width, err);
    }
    cm_saved_tensor_forget(tensor);
    cm_saved_reader_release(&reader);
    cm_free(room);
    return status;
}

static enum cm_status put_into_save(void *save, const void *bytes, size_t size,
                                    struct cm_error *err)
{
    return cm_save_write(save, bytes, size, err);
}

enum cm_status cm_saved_elements_write(struct cm_save *save, const struct cm_saved_tensor *tensor,
                                       int64_t first, int64_t count, struct cm_error *err)
{
    return cm_saved_elements_each(tensor, first, count, put_into_save, save, err);
}

enum cm_status cm_saved_tensor_write(struct cm_save *save, const struct cm_saved_tensor *tensor,
                                     struct cm_error *err)
{
    return cm_saved_elements_write(save, tensor, 0, cm_shape_elements(&tensor->shape), err);
}
