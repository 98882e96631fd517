/* The elements of .npy files: as tensors, and from tensors. */
// SPDX-License-Identifier: Apache-2.0
#include "io/array_formats.h"

#include "base/number.h"
#include "bytes/numpy_types.h"
#include "tensor/bits.h"
#include "tensor/half.h"

/* ---- reading ---- */

/* Steps index through shape in row-major order; offset follows with the strides given. */
static void advance(const struct cm_shape *shape, const int64_t *strides, int64_t *index,
                    int64_t *offset)
{
    for (int axis = shape->rank - 1; axis >= 0; axis--) {
        *offset += strides[axis];
        if (++index[axis] < shape->dims[axis])
            return;
        *offset -= strides[axis] * shape->dims[axis];
        index[axis] = 0;
    }
}

/* Column-major elements in row-major order. */
static void reorder(const struct cm_npy_header *header, const uint8_t *from, uint8_t *to)
{
    const struct cm_shape *shape = &header->shape;
    const int64_t count = cm_shape_elements(shape);
    int64_t strides[CM_MAX_RANK], index[CM_MAX_RANK] = {0}, offset = 0, step = 1;

    for (int axis = 0; axis < shape->rank; axis++) {
        strides[axis] = step;
        step *= shape->dims[axis];
    }
    for (int64_t i = 0; i < count; i++) {
        memcpy(to + (size_t)i * header->width, from + (size_t)offset * header->width,
               header->width);
        advance(shape, strides, index, &offset);
    }
}

/* Strings are padded with NUL up to the width; UTF-8 takes no more room than UTF-32. */
static enum cm_status wide_string(const uint8_t *from, size_t width, char *to, struct cm_str *out,
                                  struct cm_error *err)
{
    size_t size = 0, text = 0;

    for (size_t at = 0; at < width; at += 4) {
        uint32_t code;

        memcpy(&code, from + at, 4);
        if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
            return cm_fail(err, CM_BAD_MODEL, "a string holds %#x, which is not a character", code);
        size += cm_utf8_put(to + size, code);
        if (code)
            text = size;
    }
    *out = (struct cm_str){to, text};
    return CM_OK;
}

static enum cm_status read_strings(struct cm_arena *arena, const struct cm_npy_header *header,
                                   const uint8_t *data, struct cm_tensor *out, struct cm_error *err)
{
    const size_t count = (size_t)cm_shape_elements(&header->shape), width = header->width;

    /* Empty strings take no room in the file, so the file does not bound their number. */
    if (width == 0 && count > (size_t)1 << 24)
        return cm_fail(err, CM_LIMIT, "%zu strings of no length are too many", count);
    CM_TRY(cm_arrays_tensor(arena, CM_STRING, &header->shape, out, err));
    struct cm_str *texts = out->data;
    char *room = header->wide_text ? cm_arena_alloc(arena, header->data_size) : NULL;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *from = data + i * width;

        if (room) {
            CM_TRY(wide_string(from, width, room + i * width, &texts[i], err));
            continue;
        }
        size_t size = width;
        while (size > 0 && from[size - 1] == 0)
            size--;
        texts[i] = (struct cm_str){(const char *)from, size};
    }
    return CM_OK;
}

enum cm_status cm_npy_read_data(struct cm_arena *arena, const struct cm_npy_header *header,
                                const uint8_t *data, struct cm_tensor *out, struct cm_error *err)
{
    const size_t size = header->data_size;
    const bool reordered = header->column_major && header->shape.rank > 1 && size > 0;
    const uint8_t *from = data;

    if (reordered) {
        uint8_t *room;
        if (header->type == CM_STRING) {
            room = cm_arena_alloc(arena, size);
        } else {
            CM_TRY(cm_arrays_tensor(arena, header->type, &header->shape, out, err));
            room = out->data;
        }
        reorder(header, data, room);
        from = room;
    }
    if (header->type == CM_STRING)
        return read_strings(arena, header, from, out, err);
    if (header->type == CM_BOOL)
        for (size_t i = 0; i < size; i++)
            if (from[i] > 1)
                return cm_fail(err, CM_BAD_MODEL, "element %zu is %d, which is not a boolean", i,
                               from[i]);
    if (reordered)
        return CM_OK;
    if (size > 0 && (uintptr_t)from % cm_min_size(header->width, 16) == 0) {
        /* Nobody writes to an input, so casting const away is sound. */
        *out = cm_tensor_borrow(header->type, &header->shape, (void *)(uintptr_t)from);
        return CM_OK;
    }
    CM_TRY(cm_arrays_tensor(arena, header->type, &header->shape, out, err));
    if (size)
        memcpy(out->data, from, size);
    return CM_OK;
}

/* ---- writing ---- */

/* Code points of UTF-8 text, which the caller has checked. */
static size_t code_points(struct cm_str text)
{
    size_t count = 0;

    for (size_t i = 0; i < text.size; i++)
        count += ((uint8_t)text.data[i] & 0xc0) != 0x80;
    return count;
}

static void put_utf32(uint8_t *to, struct cm_str text)
{
    for (size_t at = 0; at < text.size;) {
        const uint8_t first = (uint8_t)text.data[at++];
        const int more = first < 0x80 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
        uint32_t code = more == 0 ? first : first & (0x3fu >> more);

        for (int i = 0; i < more; i++)
            code = code << 6 | ((uint8_t)text.data[at++] & 0x3fu);
        memcpy(to, &code, 4);
        to += 4;
    }
}

/* As NumPy's text, or as its bytes when some string is no UTF-8. */
static enum cm_status string_image(struct cm_arena *scratch, const struct cm_tensor *tensor,
                                   char descr[24], struct cm_str *data, struct cm_error *err)
{
    const size_t count = (size_t)cm_tensor_count(tensor);
    const struct cm_str *texts = tensor->data;
    size_t longest = 1, size;
    bool utf8 = true;

    for (size_t i = 0; i < count; i++)
        utf8 = utf8 && cm_str_is_utf8(texts[i]);
    for (size_t i = 0; i < count; i++) {
        const size_t length = utf8 ? code_points(texts[i]) : texts[i].size;
        longest = length > longest ? length : longest;
    }
    const size_t width = utf8 ? longest * 4 : longest;
    if (!cm_size_mul(count, width, &size))
        return cm_fail(err, CM_LIMIT, "%zu strings of %zu characters are too many", count, longest);
    uint8_t *room = cm_arena_alloc(scratch, size);
    for (size_t i = 0; i < count; i++) {
        if (utf8)
            put_utf32(room + i * width, texts[i]);
        else if (texts[i].size)
            memcpy(room + i * width, texts[i].data, texts[i].size);
    }
    snprintf(descr, 24, "%c%c%zu", utf8 ? '<' : '|', utf8 ? 'U' : 'S', longest);
    *data = (struct cm_str){(const char *)room, size};
    return CM_OK;
}

/* Types that NumPy has not, as the nearest it has. */
static enum cm_status wide_image(struct cm_arena *scratch, const struct cm_tensor *tensor,
                                 const char **descr, struct cm_str *data, struct cm_error *err)
{
    const struct cm_dtype_info *info = cm_dtype_info(tensor->type);
    const int64_t count = cm_tensor_count(tensor);
    const bool is_float = info->kind == CM_CLASS_FLOAT;
    size_t size;

    if (!cm_size_mul((size_t)count, is_float ? 4 : 1, &size))
        return cm_fail(err, CM_LIMIT, "%lld elements are too many", (long long)count);
    uint8_t *room = cm_arena_alloc(scratch, size);
    if (is_float)
        cm_narrow_load(tensor->type, tensor->data, 0, count, (float *)(void *)room);
    else
        for (int64_t i = 0; i < count; i++)
            room[i] = (uint8_t)cm_tensor_int(tensor, i);
    *descr = is_float ? "<f4" : info->kind == CM_CLASS_SIGNED ? "|i1" : "|u1";
    *data = (struct cm_str){(const char *)room, size};
    return CM_OK;
}

static struct cm_str header_text(struct cm_arena *scratch, const char *descr,
                                 const struct cm_shape *shape)
{
    char dims[CM_MAX_RANK * 21 + 8] = "";
    size_t used = 0;

    for (int i = 0; i < shape->rank; i++)
        used += (size_t)snprintf(dims + used, sizeof dims - used, "%s%lld", i ? ", " : "",
                                 (long long)shape->dims[i]);
    const struct cm_str text =
        cm_arena_printf(scratch, "{'descr': '%s', 'fortran_order': False, 'shape': (%s%s), }",
                        descr, dims, shape->rank == 1 ? "," : "");
    /* Elements begin at a multiple of 64. */
    const size_t size = cm_round_up(10 + text.size + 1, 64);
    char *room = cm_arena_alloc(scratch, size);
    memcpy(room, "\x93NUMPY\x01\x00", 8);
    room[8] = (char)((size - 10) & 0xff);
    room[9] = (char)((size - 10) >> 8);
    memcpy(room + 10, text.data, text.size);
    memset(room + 10 + text.size, ' ', size - 11 - text.size);
    room[size - 1] = '\n';
    return (struct cm_str){room, size};
}

enum cm_status cm_npy_image(struct cm_arena *scratch, const struct cm_tensor *tensor,
                            struct cm_npy_image *out, struct cm_error *err)
{
    char text_descr[24];
    const char *descr = tensor->type < CM_DTYPE_COUNT ? cm_numpy_own_code(tensor->type) : NULL;

    if (tensor->type == CM_STRING) {
        CM_TRY(string_image(scratch, tensor, text_descr, &out->data, err));
        descr = text_descr;
    } else if (descr) {
        out->data = (struct cm_str){tensor->data, cm_tensor_bytes(tensor)};
    } else {
        CM_TRY(wide_image(scratch, tensor, &descr, &out->data, err));
    }
    out->header = header_text(scratch, descr, &tensor->shape);
    return CM_OK;
}
