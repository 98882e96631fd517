/* The index of a TensorFlow checkpoint, and where the tensors that it names lie. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/keras/bundle.h"

#include "base/array.h"
#include "base/crc32c.h"
#include "base/number.h"
#include "bytes/byte_buffer.h"
#include "bytes/leveldb.h"

enum {
    SHARDS_MAX = 1 << 16,
    CHECKED_MAX = 64, /* bytes of a tensor whose check sum is looked at */
    TYPE_STRING = 7
};

static const struct {
    uint64_t type;
    enum cm_dtype dtype;
} types[] = {{1, CM_FLOAT},       {2, CM_DOUBLE},       {3, CM_INT32},     {4, CM_UINT8},
             {5, CM_INT16},       {6, CM_INT8},         {7, CM_STRING},    {8, CM_COMPLEX64},
             {9, CM_INT64},       {10, CM_BOOL},        {14, CM_BFLOAT16}, {17, CM_UINT16},
             {18, CM_COMPLEX128}, {19, CM_FLOAT16},     {22, CM_UINT32},   {23, CM_UINT64},
             {24, CM_FLOAT8E5M2}, {25, CM_FLOAT8E4M3FN}};

static enum cm_dtype dtype_of(uint64_t type)
{
    for (size_t i = 0; i < CM_COUNT(types); i++)
        if (types[i].type == type)
            return types[i].dtype;
    return CM_UNDEFINED;
}

uint64_t cm_bundle_type(enum cm_dtype dtype)
{
    for (size_t i = 0; i < CM_COUNT(types); i++)
        if (types[i].dtype == dtype)
            return types[i].type;
    return 0;
}

/* A row of the index, as it is stored. */
struct row {
    struct cm_str key;
    uint64_t type, shard, offset, size;
    uint32_t crc;
    bool has_crc;
    struct cm_shape shape;
    CM_ARRAY(struct cm_str) slices; /* encoded */
};

struct shard {
    struct cm_str bytes, file;
};

struct reading {
    struct cm_arena *arena;
    struct cm_saved_place *place;
    struct cm_str prefix;
    struct cm_bundle *bundle;
    CM_ARRAY(struct row) rows;
    struct cm_map keys;
    CM_ARRAY(struct shard) shards; /* those that a row lies in: the header may say any number */
    struct cm_map shard_of;        /* number to place in shards */
    bool has_header;
};

/* ---- messages ---- */

static bool read_shape(struct cm_str message, struct cm_shape *out)
{
    struct cm_wire at = cm_wire_over(message);
    struct cm_wire_field field;
    struct cm_bundle_fields dim;

    *out = CM_SCALAR;
    while (at.at < at.end) {
        if (cm_wire_next(&at, &field))
            return false;
        if (field.number != 2 || field.type != CM_WIRE_BYTES)
            continue;
        if (!cm_bundle_read_fields(cm_bundle_field_text(&field), &dim) ||
            dim.numbers[1] > (uint64_t)CM_MAX_DIM ||
            !cm_shape_insert(out, out->rank, (int64_t)dim.numbers[1]))
            return false;
    }
    return true;
}

static enum cm_status read_header(struct reading *r, struct cm_str value, struct cm_error *err)
{
    struct cm_bundle_fields header;

    if (!cm_bundle_read_fields(value, &header))
        return cm_fail(err, CM_BAD_MODEL, "its header is broken");
    r->bundle->shards = header.numbers[1];
    if (header.numbers[2] != 0)
        return cm_fail(err, CM_UNSUPPORTED, "its numbers are big-endian");
    if (r->bundle->shards < 1 || r->bundle->shards > SHARDS_MAX)
        return cm_fail(err, CM_BAD_MODEL, "it says that it has %llu files of data",
                       (unsigned long long)r->bundle->shards);
    r->has_header = true;
    return CM_OK;
}

static bool read_row(struct reading *r, struct cm_str value, struct row *row)
{
    struct cm_wire at = cm_wire_over(value);
    struct cm_wire_field field;
    uint64_t *const numbers[] = {
        [1] = &row->type, [3] = &row->shard, [4] = &row->offset, [5] = &row->size};

    while (at.at < at.end) {
        if (cm_wire_next(&at, &field))
            return false;
        if (field.type == CM_WIRE_VARINT && field.number < CM_COUNT(numbers) &&
            numbers[field.number])
            *numbers[field.number] = field.value;
        else if (field.type == CM_WIRE_BYTES && field.number == 2) {
            if (!read_shape(cm_bundle_field_text(&field), &row->shape))
                return false;
        } else if (field.type == CM_WIRE_FIXED32 && field.number == 6) {
            memcpy(&row->crc, field.data, sizeof row->crc);
            row->has_crc = true;
        } else if (field.type == CM_WIRE_BYTES && field.number == 7)
            *CM_PUSH(r->arena, &row->slices) = cm_bundle_field_text(&field);
    }
    return true;
}

static enum cm_status visit(void *arg, struct cm_str key, struct cm_str value, struct cm_error *err)
{
    struct reading *r = arg;

    if (key.size == 0)
        return read_header(r, value, err);
    if (!r->has_header)
        return cm_fail(err, CM_BAD_MODEL, "it has no header: it is not an index of TensorFlow");
    struct row *row = CM_PUSH(r->arena, &r->rows);
    *row = (struct row){.key = cm_arena_str(r->arena, key)};
    if (!read_row(r, value, row))
        return cm_fail(err, CM_BAD_MODEL, "the entry of '%.*s' is broken", CM_STR_FMT(key));
    *cm_map_insert(&r->keys, r->arena, row->key, NULL) = r->rows.count - 1;
    return CM_OK;
}

/* ---- data ---- */

static enum cm_status map_shard(struct reading *r, uint64_t number, struct shard *out,
                                struct cm_error *err)
{
    out->file = cm_arena_printf(r->arena, "%.*s.data-%05llu-of-%05llu", CM_STR_ALL(r->prefix),
                                (unsigned long long)number, (unsigned long long)r->bundle->shards);
    return cm_place_map(r->place, out->file, &out->bytes, err);
}

/* *out stays until the next call. */
static enum cm_status shard_bytes(struct reading *r, const struct row *row,
                                  const struct shard **out, struct cm_error *err)
{
    if (row->shard >= r->bundle->shards)
        return cm_fail(err, CM_BAD_MODEL, "it lies in file %llu of %llu",
                       (unsigned long long)row->shard, (unsigned long long)r->bundle->shards);
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)row->shard);
    const struct cm_str key = {digits, (size_t)length};
    uint64_t *at = cm_map_find(&r->shard_of, key);
    if (!at) {
        struct shard made;
        CM_TRY(map_shard(r, row->shard, &made, err));
        at = cm_map_insert(&r->shard_of, r->arena, cm_arena_str(r->arena, key), NULL);
        *at = r->shards.count;
        *CM_PUSH(r->arena, &r->shards) = made;
    }
    const struct shard *shard = &r->shards.items[*at];
    if (row->offset > shard->bytes.size || row->size > shard->bytes.size - row->offset)
        return cm_fail(err, CM_BAD_MODEL,
                       "it needs bytes %llu to %llu of '%.*s', which has %zu: the file is cut",
                       (unsigned long long)row->offset,
                       (unsigned long long)(row->offset + row->size), CM_STR_FMT(shard->file),
                       shard->bytes.size);
    *out = shard;
    return CM_OK;
}

static struct cm_str row_bytes(const struct row *row, const struct shard *shard)
{
    return (struct cm_str){shard->bytes.data + row->offset, (size_t)row->size};
}

static enum cm_status wrong_sum(struct cm_error *err)
{
    return cm_fail(err, CM_BAD_MODEL, "its check sum is wrong: the file is damaged");
}

/* A single text: its length, the check sum of that, and its bytes. The sum of all has the length in
 * four bytes (eight past 2^32). */
static enum cm_status read_text(const struct row *row, struct cm_str bytes, struct cm_str *out,
                                struct cm_error *err)
{
    struct cm_wire at = cm_wire_over(bytes);
    uint64_t size;

    if (row->shape.rank != 0)
        return CM_OK;
    if (cm_wire_varint(&at, &size) || (size_t)(at.end - at.at) < 4 ||
        (size_t)(at.end - at.at) - 4 != size)
        return cm_fail(err, CM_BAD_MODEL, "its length is wrong");
    uint32_t crc = cm_crc32c(0, &size, size > UINT32_MAX ? 8 : 4);
    crc = cm_crc32c(crc, at.at, 4 + (size_t)size);
    if (row->has_crc && cm_crc32c_masked(crc) != row->crc)
        return wrong_sum(err);
    *out = (struct cm_str){(const char *)at.at + 4, (size_t)size};
    return CM_OK;
}

static enum cm_status read_whole(struct reading *r, const struct row *row,
                                 struct cm_bundle_entry *entry, struct cm_error *err)
{
    const enum cm_dtype dtype = dtype_of(row->type);
    const struct shard *shard;

    CM_TRY(shard_bytes(r, row, &shard, err));
    const struct cm_str bytes = row_bytes(row, shard);
    if (dtype == CM_STRING)
        return read_text(row, bytes, &entry->text, err);
    if (row->has_crc && bytes.size <= CHECKED_MAX &&
        cm_crc32c_masked(cm_crc32c(0, bytes.data, bytes.size)) != row->crc)
        return wrong_sum(err);
    return cm_saved_tensor_new(r->arena, dtype, &row->shape, bytes, shard->file, &entry->tensor,
                               err);
}

/* ---- slices ---- */

static void put(struct cm_bytes *key, unsigned byte)
{
    cm_bytes_number(key, byte, 1);
}

/* Numbers whose bytes sort as they do: 7 bits less one for each byte, the length in leading ones.
 */
static void put_number(struct cm_bytes *key, int64_t value)
{
    int length = 1;
    uint8_t bytes[10] = {0};

    while (length < 10 && (uint64_t)value >> (7 * length - 1 < 63 ? 7 * length - 1 : 63))
        length++;
    for (int i = 0; i < 8; i++)
        bytes[9 - i] = (uint8_t)((uint64_t)value >> 8 * i);
    for (int bit = 0; bit < length; bit++)
        bytes[10 - length + bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
    cm_bytes_put(key, bytes + 10 - length, (size_t)length);
}

static void begin_key(struct cm_bytes *key, struct cm_str name, int rank)
{
    put(key, 0);
    for (size_t i = 0; i < name.size; i++) {
        const unsigned byte = (uint8_t)name.data[i];
        put(key, byte);
        if (byte == 0 || byte == 0xff)
            put(key, ~byte & 0xff);
    }
    put(key, 0);
    put(key, 1);
    if (rank > 0) {
        put(key, 1);
        put(key, (unsigned)rank);
    } else
        put(key, 0);
}

/* The box that a slice is, and the key that its own entry has. */
static bool read_slice(const struct row *row, struct cm_str slice, struct cm_saved_piece *piece,
                       struct cm_bytes *key)
{
    struct cm_wire at = cm_wire_over(slice);
    struct cm_wire_field field;
    int axis = 0;

    begin_key(key, row->key, row->shape.rank);
    while (at.at < at.end) {
        struct cm_bundle_fields extent;

        if (cm_wire_next(&at, &field))
            return false;
        if (field.number != 1 || field.type != CM_WIRE_BYTES)
            continue;
        if (axis == row->shape.rank ||
            !cm_bundle_read_fields(cm_bundle_field_text(&field), &extent))
            return false;
        const uint64_t start = extent.numbers[1], length = extent.numbers[2];
        const int64_t dim = row->shape.dims[axis];
        const bool is_whole = length == 0; /* absent, and so the start is 0 */
        if (start > (uint64_t)dim || length > (uint64_t)dim - start)
            return false;
        piece->first[axis] = (int64_t)start;
        piece->size[axis] = is_whole ? dim : (int64_t)length;
        put_number(key, (int64_t)start);
        if (is_whole) /* -1 */
            put(key, 0x7f);
        else
            put_number(key, (int64_t)length);
        axis++;
    }
    return axis == row->shape.rank;
}

static enum cm_status read_sliced(struct reading *r, const struct row *row,
                                  struct cm_bundle_entry *entry, struct cm_error *err)
{
    struct cm_saved_tensor *tensor = CM_NEW(r->arena, struct cm_saved_tensor);
    const struct shard *shard;
    size_t need;

    tensor->dtype = dtype_of(row->type);
    tensor->shape = row->shape;
    for (size_t i = 0; i < row->slices.count; i++) {
        struct cm_saved_piece *piece = cm_saved_piece_add(r->arena, tensor, false);
        struct cm_bytes key = {.arena = r->arena};
        int64_t count = 1;

        if (!read_slice(row, row->slices.items[i], piece, &key))
            return cm_fail(err, CM_BAD_MODEL, "its slice %zu is broken", i);
        const struct cm_str name = cm_bytes_str(&key);
        const uint64_t *found = cm_map_find(&r->keys, name);
        if (!found)
            return cm_fail(err, CM_BAD_MODEL, "its slice %zu has no entry of its own", i);
        const struct row *part = &r->rows.items[*found];
        CM_TRY(shard_bytes(r, part, &shard, err));
        for (int d = 0; d < row->shape.rank; d++)
            if (!cm_dim_mul(count, piece->size[d], &count))
                count = INT64_MAX;
        if (part->type != row->type || !cm_dtype_bytes(tensor->dtype, count, &need) ||
            need != part->size)
            return cm_fail(err, CM_BAD_MODEL, "its slice %zu has the wrong size", i);
        piece->bytes = row_bytes(part, shard);
        piece->file = shard->file;
    }
    entry->tensor = tensor;
    return cm_saved_tensor_check(r->arena, tensor, err);
}

static enum cm_status read_entries(struct reading *r, struct cm_error *err)
{
    for (size_t i = 0; i < r->rows.count; i++) {
        const struct row *row = &r->rows.items[i];
        struct cm_bundle_entry entry = {.key = row->key, .type = row->type};
        const enum cm_dtype dtype = dtype_of(row->type);

        if (row->key.data[0] == 0) /* a slice: its tensor has an entry that names it */
            continue;
        if (dtype != CM_UNDEFINED)
            CM_TRY(cm_error_context(err,
                                    row->slices.count && dtype != CM_STRING
                                        ? read_sliced(r, row, &entry, err)
                                        : read_whole(r, row, &entry, err),
                                    "tensor '%.*s'", CM_STR_FMT(row->key)));
        *cm_map_insert(&r->bundle->keys, r->arena, row->key, NULL) = r->bundle->entries.count;
        *CM_PUSH(r->arena, &r->bundle->entries) = entry;
    }
    return CM_OK;
}

enum cm_status cm_bundle_read(struct cm_saved_place *place, struct cm_str prefix,
                              struct cm_bundle *out, struct cm_error *err)
{
    struct reading r = {.arena = place->arena, .place = place, .prefix = prefix, .bundle = out};
    const struct cm_str name = cm_arena_printf(place->arena, "%.*s.index", CM_STR_ALL(prefix));
    struct cm_str index;

    *out = (struct cm_bundle){0};
    CM_TRY(cm_place_map(place, name, &index, err));
    CM_TRY(cm_error_context(err, cm_table_read(place->arena, index, visit, &r, err), "'%.*s'",
                            CM_STR_FMT(name)));
    if (!r.has_header)
        return cm_fail(err, CM_BAD_MODEL, "'%.*s' is empty", CM_STR_FMT(name));
    return read_entries(&r, err);
}

const struct cm_bundle_entry *cm_bundle_find(const struct cm_bundle *bundle, struct cm_str key)
{
    const uint64_t *found = cm_map_find(&bundle->keys, key);

    return found ? &bundle->entries.items[*found] : NULL;
}
