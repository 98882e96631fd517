/* Element types, shapes and the values of attributes of HDF5 files. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "bytes/hdf5_parts.h"

#include "base/number.h"
#include "tensor/tensor.h"

enum { TEXTS_MAX = 1 << 20 };

enum cm_status cm_hdf5_broken(const struct cm_hdf5 *h, const char *what)
{
    return cm_fail(h->err, CM_BAD_MODEL, "it is not a valid HDF5 file: %s", what);
}

enum cm_status cm_hdf5_at(struct cm_hdf5 *h, uint64_t address, uint64_t size,
                          struct cm_hdf5_cursor *out)
{
    if (address > h->bytes.size || size > h->bytes.size - address)
        return cm_hdf5_broken(h, "an address leads out of it");
    h->spent += size + 8;
    if (h->spent > h->budget)
        return cm_hdf5_broken(h, "its parts overlap");
    *out = (struct cm_hdf5_cursor){h->bytes.data + address, h->bytes.data + address + size, false};
    return CM_OK;
}

struct cm_str cm_hdf5_take(struct cm_hdf5_cursor *c, uint64_t size)
{
    const struct cm_str out = {c->at, (size_t)size};

    if (size > (size_t)(c->end - c->at)) {
        c->cut = true;
        c->at = c->end;
        return CM_STR_NONE;
    }
    c->at += size;
    return out;
}

uint64_t cm_hdf5_get(struct cm_hdf5_cursor *c, int size)
{
    const struct cm_str bytes = cm_hdf5_take(c, (uint64_t)size);
    uint64_t value = 0;

    if (bytes.data)
        memcpy(&value, bytes.data, (size_t)size);
    return value;
}

/* ---- types and shapes ---- */

enum type_class {
    CLASS_INTEGER = 0,
    CLASS_FLOAT = 1,
    CLASS_TEXT = 3,
    CLASS_OPAQUE = 5,
    CLASS_ENUM = 8,
    CLASS_LONG = 9
};

static enum cm_dtype integer(uint64_t size, bool is_signed)
{
    static const enum cm_dtype types[2][4] = {{CM_UINT8, CM_UINT16, CM_UINT32, CM_UINT64},
                                              {CM_INT8, CM_INT16, CM_INT32, CM_INT64}};

    for (int i = 0; i < 4; i++)
        if (size == (uint64_t)1 << i)
            return types[is_signed][i];
    return CM_UNDEFINED;
}

static enum cm_dtype floating(struct cm_hdf5_cursor *c, uint64_t size)
{
    cm_hdf5_get(c, 4); /* where its bits begin, and how many */
    cm_hdf5_get(c, 1);
    const uint64_t exponent = cm_hdf5_get(c, 1);

    cm_hdf5_get(c, 6);
    return size == 4                    ? CM_FLOAT
           : size == 8                  ? CM_DOUBLE
           : size == 2 && exponent == 5 ? CM_FLOAT16
           : size == 2 && exponent == 8 ? CM_BFLOAT16
                                        : CM_UNDEFINED;
}

void cm_hdf5_read_type(struct cm_hdf5_cursor *c, struct cm_hdf5_type *out)
{
    const unsigned kind = (unsigned)cm_hdf5_get(c, 1) & 15;
    const uint64_t bits = cm_hdf5_get(c, 3);
    const bool is_big = bits & 1;

    *out = (struct cm_hdf5_type){.size = cm_hdf5_get(c, 4)};
    if (kind == CLASS_INTEGER && !is_big)
        out->dtype = integer(out->size, bits >> 3 & 1);
    else if (kind == CLASS_FLOAT && !is_big)
        out->dtype = floating(c, out->size);
    else if (kind == CLASS_TEXT)
        out->dtype = CM_STRING;
    else if (kind == CLASS_LONG && (bits & 15) == 1 && out->size == 16) {
        out->dtype = CM_STRING;
        out->is_long = true;
    } else if (kind == CLASS_ENUM && out->size == 1)
        out->dtype = CM_BOOL; /* h5py's FALSE and TRUE */
    else if (kind == CLASS_OPAQUE)
        out->is_opaque = true;
}

bool cm_hdf5_read_space(struct cm_hdf5_cursor *c, struct cm_shape *out)
{
    const uint64_t version = cm_hdf5_get(c, 1), rank = cm_hdf5_get(c, 1);
    uint64_t kind = 1;
    int64_t count;

    cm_hdf5_get(c, 1); /* flags */
    if (version == 1)
        cm_hdf5_get(c, 5);
    else
        kind = cm_hdf5_get(c, 1);
    if (version < 1 || version > 2 || rank > CM_MAX_RANK || kind == 2) /* 2: no elements at all */
        return false;
    *out = CM_SCALAR;
    out->rank = (int)rank;
    for (int i = 0; i < out->rank; i++) {
        const uint64_t dim = cm_hdf5_get(c, 8);
        if (dim > (uint64_t)CM_MAX_DIM)
            return false;
        out->dims[i] = (int64_t)dim;
    }
    return !c->cut && cm_shape_count(out, &count);
}

/* ---- texts that are stored apart ---- */

struct cm_hdf5_heap {
    CM_ARRAY(struct cm_str) objects; /* by number */
};

static enum cm_status read_heap(struct cm_hdf5 *h, uint64_t address, struct cm_hdf5_heap *heap)
{
    struct cm_hdf5_cursor c;

    CM_TRY(cm_hdf5_at(h, address, 16, &c));
    if (!cm_str_is(cm_hdf5_take(&c, 4), "GCOL"))
        return cm_hdf5_broken(h, "a heap of texts is missing");
    cm_hdf5_get(&c, 4);
    const uint64_t size = cm_hdf5_get(&c, 8);
    if (size < 16)
        return cm_hdf5_broken(h, "a heap of texts is too small");
    CM_TRY(cm_hdf5_at(h, address, size, &c));
    cm_hdf5_take(&c, 16);
    while (c.end - c.at >= 16) {
        const uint64_t number = cm_hdf5_get(&c, 2);
        cm_hdf5_get(&c, 6);
        const uint64_t length = cm_hdf5_get(&c, 8);
        if (number == 0) /* what is free */
            break;
        const struct cm_str text = cm_hdf5_take(&c, length);
        if (c.cut)
            return cm_hdf5_broken(h, "a text leads out of its heap");
        cm_hdf5_take(&c, (8 - length % 8) % 8);
        if (number > heap->objects.count)
            h->spent += (number - heap->objects.count) * sizeof(struct cm_str);
        if (h->spent > h->budget)
            return cm_hdf5_broken(h, "a heap of texts counts too far");
        while (heap->objects.count <= number)
            *CM_PUSH(h->arena, &heap->objects) = CM_STR_NONE;
        heap->objects.items[number] = text;
    }
    return CM_OK;
}

static enum cm_status long_text(struct cm_hdf5 *h, struct cm_hdf5_cursor *c, struct cm_str *out,
                                uint64_t *written)
{
    const uint64_t length = cm_hdf5_get(c, 4);
    const struct cm_str key = {c->at, 8};
    const uint64_t address = cm_hdf5_get(c, 8), number = cm_hdf5_get(c, 4);
    bool added;

    *out = CM_STR("");
    if (c->cut)
        return cm_hdf5_broken(h, "a text is cut");
    if (length == 0 && (address == 0 || address == CM_HDF5_NONE))
        return CM_OK;
    uint64_t *found = cm_map_insert(&h->heaps, h->arena, key, &added);
    if (added) {
        struct cm_hdf5_heap *heap = CM_PUSH(h->arena, &h->heap_list);

        *heap = (struct cm_hdf5_heap){0};
        *found = h->heap_list.count - 1;
        CM_TRY(read_heap(h, address, heap));
    }
    const struct cm_hdf5_heap *heap = &h->heap_list.items[*found];
    if (number >= heap->objects.count || heap->objects.items[number].size < length)
        return cm_hdf5_broken(h, "a text is not where it should be");
    *out = (struct cm_str){heap->objects.items[number].data, (size_t)length};
    *written = address + number;
    return CM_OK;
}

/* ---- values ---- */

static enum cm_status one_value(struct cm_hdf5 *h, const struct cm_hdf5_type *type,
                                struct cm_hdf5_cursor *c, const struct cm_item **out,
                                uint64_t *written)
{
    struct cm_str text;
    union {
        uint64_t aligned;
        uint8_t bytes[8];
    } room = {0};

    if (type->is_long) {
        CM_TRY(long_text(h, c, &text, written));
        *out = cm_item_text(h->arena, text);
        return CM_OK;
    }
    const struct cm_str bytes = cm_hdf5_take(c, type->size);
    if (c->cut)
        return cm_hdf5_broken(h, "an attribute is cut");
    if (type->dtype == CM_STRING) {
        const char *end = bytes.size ? memchr(bytes.data, 0, bytes.size) : NULL;
        *out = cm_item_text(
            h->arena, (struct cm_str){bytes.data, end ? (size_t)(end - bytes.data) : bytes.size});
        return CM_OK;
    }
    memcpy(room.bytes, bytes.data, bytes.size);
    const struct cm_tensor scalar = cm_tensor_borrow(type->dtype, &CM_SCALAR, room.bytes);
    const double real = cm_tensor_real(&scalar, 0);
    int64_t whole;

    if (type->dtype == CM_BOOL)
        *out = cm_item_bool(h->arena, real != 0);
    else if (!cm_dtype_is_float((int)type->dtype) && cm_int64_from(real, &whole))
        *out = cm_item_int(h->arena, whole);
    else
        *out = cm_item_real(h->arena, real);
    return CM_OK;
}

enum cm_status cm_hdf5_value(struct cm_hdf5 *h, const struct cm_hdf5_type *type,
                             const struct cm_shape *shape, struct cm_str data,
                             const struct cm_item **out, uint64_t *written)
{
    struct cm_hdf5_cursor c = cm_hdf5_over(data);
    const int64_t count = cm_shape_elements(shape);
    size_t need;

    *out = &cm_item_none;
    *written = 0;
    if (type->dtype == CM_UNDEFINED || (type->dtype != CM_STRING && type->size > 8) ||
        type->size == 0)
        return CM_OK;
    if (!cm_size_mul((size_t)count, (size_t)type->size, &need) || need > data.size ||
        count > TEXTS_MAX)
        return cm_hdf5_broken(h, "an attribute is cut");
    if (shape->rank == 0)
        return one_value(h, type, &c, out, written);
    struct cm_item *list = cm_item_new(h->arena, CM_ITEM_LIST);
    for (int64_t i = 0; i < count; i++) {
        const struct cm_item *item;

        CM_TRY(one_value(h, type, &c, &item, written));
        cm_item_append(h->arena, list, item);
    }
    *out = list;
    return CM_OK;
}
