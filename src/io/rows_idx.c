/* IDX, the format of MNIST: type, rank, dimensions and elements, all big-endian. */
// SPDX-License-Identifier: Apache-2.0
#include "io/rows.h"

#include "base/number.h"

static const struct {
    uint8_t code;
    enum cm_dtype type;
} types[] = {
    {0x08, CM_UINT8}, {0x09, CM_INT8},  {0x0b, CM_INT16},
    {0x0c, CM_INT32}, {0x0d, CM_FLOAT}, {0x0e, CM_DOUBLE},
};

static uint32_t get32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static enum cm_status read_header(struct cm_str bytes, enum cm_dtype *type, struct cm_shape *shape,
                                  struct cm_error *err)
{
    const uint8_t *data = (const uint8_t *)bytes.data;

    if (bytes.size >= 2 && data[0] == 0x1f && data[1] == 0x8b)
        return cm_fail(err, CM_UNSUPPORTED, "it is compressed; unpack it with gunzip first");
    if (bytes.size < 4 || data[0] || data[1])
        return cm_fail(err, CM_BAD_MODEL, "it does not begin as an IDX file does");
    for (size_t i = 0; i < CM_COUNT(types); i++)
        if (types[i].code == data[2])
            *type = types[i].type;
    if (!*type)
        return cm_fail(err, CM_BAD_MODEL, "its element type 0x%02x is not defined for IDX files",
                       data[2]);
    if (data[3] > CM_MAX_RANK)
        return cm_fail(err, CM_LIMIT, "it has %d dimensions, more than %d", data[3], CM_MAX_RANK);
    shape->rank = data[3];
    if (bytes.size < 4 + 4 * (size_t)shape->rank)
        return cm_fail(err, CM_BAD_MODEL, "it ends inside its header");
    for (int i = 0; i < shape->rank; i++)
        shape->dims[i] = get32(data + 4 + 4 * i);
    return CM_OK;
}

enum cm_status cm_rows_idx(const struct cm_rows_file *file, struct cm_rows_list *out,
                           struct cm_error *err)
{
    const struct cm_str bytes = file->bytes;
    enum cm_dtype type = CM_UNDEFINED;
    struct cm_shape shape = {0};
    struct cm_rows *rows;
    int64_t count;
    size_t needed;

    CM_TRY(read_header(bytes, &type, &shape, err));
    const size_t begin = 4 + 4 * (size_t)shape.rank;
    if (!cm_shape_count(&shape, &count) || !cm_dtype_bytes(type, count, &needed))
        return cm_fail(err, CM_BAD_MODEL, "the size of its shape overflows");
    if (bytes.size - begin != needed)
        return cm_fail(err, CM_BAD_MODEL, "it has %zu bytes of elements, its shape needs %zu",
                       bytes.size - begin, needed);
    CM_TRY(cm_rows_add(file->arena, out, file->name, type, &shape,
                       (const uint8_t *)bytes.data + begin, &rows, err));
    rows->big_endian = cm_dtype_size(type) > 1;
    return CM_OK;
}
