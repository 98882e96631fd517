/* Writing MessagePack as flax reads it. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/msgpack.h"

#include "base/memory.h"
#include "bytes/numpy_types.h"

struct packer {
    struct cm_save *save; /* NULL: only counts */
    size_t size;
};

static enum cm_status put(struct packer *p, const void *bytes, size_t size, struct cm_error *err)
{
    p->size += size;
    return p->save ? cm_save_write(p->save, bytes, size, err) : CM_OK;
}

/* A first byte and a number behind it, the first byte being that of its smallest form. */
static enum cm_status put_number(struct packer *p, uint8_t first, unsigned bytes, uint64_t value,
                                 struct cm_error *err)
{
    uint8_t out[9] = {first};

    for (unsigned i = 0; i < bytes; i++)
        out[1 + i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
    return put(p, out, 1 + bytes, err);
}

/* The lengths of texts, lists, ..: rows of the first byte by the bytes of the length. */
struct lengths {
    unsigned small; /* lengths below this are in the first byte */
    uint8_t first, one, two, four;
};
static const struct lengths text_lengths = {32, 0xa0, 0xd9, 0xda, 0xdb};
static const struct lengths bytes_lengths = {0, 0, 0xc4, 0xc5, 0xc6};
static const struct lengths list_lengths = {16, 0x90, 0, 0xdc, 0xdd};
static const struct lengths map_lengths = {16, 0x80, 0, 0xde, 0xdf};
static const struct lengths ext_lengths = {0, 0, 0xc7, 0xc8, 0xc9};

static enum cm_status put_length(struct packer *p, const struct lengths *row, size_t size,
                                 struct cm_error *err)
{
    if (size < row->small)
        return put_number(p, (uint8_t)(row->first + size), 0, 0, err);
    if (size < 256 && row->one)
        return put_number(p, row->one, 1, size, err);
    if (size < 65536)
        return put_number(p, row->two, 2, size, err);
    if (size > UINT32_MAX)
        return cm_fail(err, CM_LIMIT, "msgpack has no place for %zu bytes in one item", size);
    return put_number(p, row->four, 4, size, err);
}

static enum cm_status put_text(struct packer *p, struct cm_str text, struct cm_error *err)
{
    CM_TRY(put_length(p, &text_lengths, text.size, err));
    return put(p, text.data, text.size, err);
}

static enum cm_status put_int(struct packer *p, int64_t value, struct cm_error *err)
{
    if (value >= -32 && value < 128)
        return put_number(p, (uint8_t)value, 0, 0, err);
    if (value >= 0)
        return value < 256                    ? put_number(p, 0xcc, 1, (uint64_t)value, err)
               : value < 65536                ? put_number(p, 0xcd, 2, (uint64_t)value, err)
               : value <= (int64_t)UINT32_MAX ? put_number(p, 0xce, 4, (uint64_t)value, err)
                                              : put_number(p, 0xcf, 8, (uint64_t)value, err);
    return value >= INT8_MIN    ? put_number(p, 0xd0, 1, (uint64_t)value, err)
           : value >= INT16_MIN ? put_number(p, 0xd1, 2, (uint64_t)value, err)
           : value >= INT32_MIN ? put_number(p, 0xd2, 4, (uint64_t)value, err)
                                : put_number(p, 0xd3, 8, (uint64_t)value, err);
}

/* [shape, type, bytes] without the bytes; of a chunk the shape is its number of elements. */
static enum cm_status put_array_head(struct packer *p, const struct cm_saved_tensor *tensor,
                                     const struct cm_shape *shape, size_t bytes,
                                     struct cm_error *err)
{
    CM_TRY(put_length(p, &list_lengths, 3, err));
    CM_TRY(put_length(p, &list_lengths, (size_t)shape->rank, err));
    for (int d = 0; d < shape->rank; d++)
        CM_TRY(put_int(p, shape->dims[d], err));
    CM_TRY(put_text(p, cm_str(cm_numpy_name(tensor->dtype)), err));
    return put_length(p, &bytes_lengths, bytes, err);
}

static enum cm_status put_array(struct packer *p, const struct cm_saved_tensor *tensor,
                                const struct cm_shape *shape, int64_t first, int64_t count,
                                struct cm_error *err)
{
    const size_t bytes = (size_t)count * cm_dtype_size(tensor->dtype);
    struct packer counted = {0};

    CM_TRY(put_array_head(&counted, tensor, shape, bytes, err));
    CM_TRY(put_length(p, &ext_lengths, counted.size + bytes, err));
    CM_TRY(put_number(p, CM_MSGPACK_ARRAY, 0, 0, err));
    CM_TRY(put_array_head(p, tensor, shape, bytes, err));
    return cm_saved_elements_write(p->save, tensor, first, count, err);
}

/* flax cuts what is larger than this. */
#define CHUNK_MAX ((size_t)1 << 30)

static enum cm_status put_index(struct packer *p, size_t index, struct cm_error *err)
{
    char text[24];

    snprintf(text, sizeof text, "%zu", index);
    return put_text(p, cm_str(text), err);
}

static enum cm_status put_tensor(struct packer *p, const struct cm_saved_tensor *tensor,
                                 struct cm_error *err)
{
    const int64_t count = cm_shape_elements(&tensor->shape);
    const int64_t most = (int64_t)(CHUNK_MAX / cm_dtype_size(tensor->dtype));

    if (!cm_numpy_name(tensor->dtype))
        return cm_fail(err, CM_UNSUPPORTED, "NumPy has no type for arrays of %s",
                       cm_dtype_name(tensor->dtype));
    if (count <= most)
        return put_array(p, tensor, &tensor->shape, 0, count, err);
    CM_TRY(put_length(p, &map_lengths, 3, err));
    CM_TRY(put_text(p, CM_STR(CM_MSGPACK_CHUNKED), err));
    CM_TRY(put_number(p, 0xc3, 0, 0, err)); /* true */
    CM_TRY(put_text(p, CM_STR("shape"), err));
    CM_TRY(put_length(p, &map_lengths, (size_t)tensor->shape.rank, err));
    for (int d = 0; d < tensor->shape.rank; d++) {
        CM_TRY(put_index(p, (size_t)d, err));
        CM_TRY(put_int(p, tensor->shape.dims[d], err));
    }
    CM_TRY(put_text(p, CM_STR("chunks"), err));
    CM_TRY(put_length(p, &map_lengths, (size_t)((count + most - 1) / most), err));
    for (int64_t at = 0; at < count; at += most) {
        const int64_t now = count - at < most ? count - at : most;

        CM_TRY(put_index(p, (size_t)(at / most), err));
        CM_TRY(put_array(p, tensor, &CM_SHAPE(now), at, now, err));
    }
    return CM_OK;
}

static enum cm_status put_item(struct packer *p, const struct cm_item *item, int depth,
                               struct cm_error *err)
{
    uint64_t bits;

    if (depth > CM_ITEM_DEPTH_MAX)
        return cm_fail(err, CM_LIMIT, "what is to be written is nested too deep");
    switch (item->kind) {
    case CM_ITEM_NONE:
        return put_number(p, 0xc0, 0, 0, err);
    case CM_ITEM_BOOL:
        return put_number(p, item->truth ? 0xc3 : 0xc2, 0, 0, err);
    case CM_ITEM_INT:
        return put_int(p, item->number, err);
    case CM_ITEM_REAL:
        memcpy(&bits, &item->real, sizeof bits);
        return put_number(p, 0xcb, 8, bits, err);
    case CM_ITEM_TEXT:
        return put_text(p, item->text, err);
    case CM_ITEM_BYTES:
        CM_TRY(put_length(p, &bytes_lengths, item->text.size, err));
        return put(p, item->text.data, item->text.size, err);
    case CM_ITEM_TENSOR:
        return put_tensor(p, item->tensor, err);
    case CM_ITEM_LIST:
    case CM_ITEM_MAP:
        CM_TRY(put_length(p, item->kind == CM_ITEM_MAP ? &map_lengths : &list_lengths,
                          item->entries.count, err));
        for (size_t i = 0; i < item->entries.count; i++) {
            if (item->kind == CM_ITEM_MAP)
                CM_TRY(put_item(p, item->entries.items[i].key, depth + 1, err));
            CM_TRY(put_item(p, item->entries.items[i].value, depth + 1, err));
        }
        return CM_OK;
    case CM_ITEM_OBJECT:
        break;
    }
    return cm_fail(err, CM_UNSUPPORTED, "an object of class '%.*s' cannot be written as msgpack",
                   CM_STR_FMT(item->text));
}

enum cm_status cm_msgpack_write(struct cm_save *save, const struct cm_item *item,
                                struct cm_error *err)
{
    struct packer p = {.save = save};

    return put_item(&p, item, 0, err);
}
