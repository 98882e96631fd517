/* Arrays of zarr as tensors in pieces. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/zarr.h"

#include "base/crc32c.h"
#include "bytes/item.h"
#include "bytes/numpy_types.h"
#include "bytes/zstd.h"

#include <math.h>

struct zarr {
    struct cm_arena *arena;
    struct cm_zarr_store *store;
    struct cm_saved_tensor *tensor;
    struct cm_shape chunk;
    bool columns_first; /* Fortran's order inside a chunk */
    enum cm_packing packing;
    char separator;
    bool has_prefix; /* keys of chunks begin with "c" */
    bool fills_zero; /* chunks that are not stored */
    /* Chunks may be shards: smaller chunks with an index before or after them. */
    bool sharded, index_first, index_has_sum;
    struct cm_shape inner;
};

/* ---- descriptions ---- */

/* The shape of chunks: as many axes as the array has, none of size 0. */
static bool is_chunk(const struct zarr *z, const struct cm_item *list, struct cm_shape *shape)
{
    bool fits = cm_item_is_shape(list, shape) && shape->rank == z->tensor->shape.rank;

    for (int d = 0; fits && d < shape->rank; d++)
        fits = shape->dims[d] > 0;
    return fits;
}

static enum cm_status set_packing(struct zarr *z, const struct cm_item *name, struct cm_error *err)
{
    static const struct {
        const char *name;
        enum cm_packing packing;
    } packings[] = {{"zstd", CM_PACKED_ZSTD}, {"zlib", CM_PACKED_ZLIB}, {"gzip", CM_PACKED_GZIP}};
    const struct cm_str text = cm_item_text_or_none(name);

    for (size_t i = 0; i < CM_COUNT(packings); i++)
        if (cm_str_is(text, packings[i].name)) {
            z->packing = packings[i].packing;
            return CM_OK;
        }
    return cm_fail(err, CM_UNSUPPORTED,
                   "arrays compressed or coded with '%.*s' are not read, only with zstd, zlib and "
                   "gzip",
                   CM_STR_FMT(text));
}

static enum cm_status set_common(struct zarr *z, const struct cm_item *description,
                                 const struct cm_item *type, const struct cm_item *chunk,
                                 struct cm_error *err)
{
    const struct cm_item *fill = cm_item_get(description, "fill_value");
    const struct cm_str name = cm_item_text_or_none(type);

    if (!cm_numpy_dtype(name, &z->tensor->dtype))
        return cm_fail(err, CM_UNSUPPORTED, "arrays of type '%.*s' are not read", CM_STR_FMT(name));
    if (!cm_item_is_shape(cm_item_get(description, "shape"), &z->tensor->shape) ||
        !is_chunk(z, chunk, &z->chunk))
        return cm_fail(err, CM_BAD_MODEL, "the shape of the array or of its chunks is wrong");
    z->fills_zero = !fill || fill->kind == CM_ITEM_NONE || cm_item_real_or(fill, NAN) == 0;
    return CM_OK;
}

static enum cm_status describe_2(struct zarr *z, const struct cm_item *description,
                                 struct cm_error *err)
{
    const struct cm_item *compressor = cm_item_get(description, "compressor");
    const struct cm_item *filters = cm_item_get(description, "filters");

    CM_TRY(set_common(z, description, cm_item_get(description, "dtype"),
                      cm_item_get(description, "chunks"), err));
    if (cm_item_count(filters))
        return cm_fail(err, CM_UNSUPPORTED, "arrays with filters are not read");
    z->columns_first = cm_str_is(cm_item_get_text(description, "order"), "F");
    z->separator = cm_str_is(cm_item_get_text(description, "dimension_separator"), "/") ? '/' : '.';
    return compressor && compressor->kind != CM_ITEM_NONE
               ? set_packing(z, cm_item_get(compressor, "id"), err)
               : CM_OK;
}

static bool is_named(const struct cm_item *codec, const char *name)
{
    struct cm_str text;

    return cm_item_is_text(cm_item_get(codec, "name"), &text) && cm_str_is(text, name);
}

static enum cm_status set_codecs(struct zarr *z, const struct cm_item *codecs, bool inside,
                                 struct cm_error *err)
{
    struct cm_str text;

    for (size_t i = 0; i < cm_item_count(codecs); i++) {
        const struct cm_item *codec = cm_item_at(codecs, i);
        const struct cm_item *is = cm_item_get(codec, "configuration");

        if (is_named(codec, "bytes")) {
            if (cm_item_is_text(cm_item_get(is, "endian"), &text) && cm_str_is(text, "big"))
                return cm_fail(err, CM_UNSUPPORTED, "big-endian arrays are not read");
        } else if (is_named(codec, "sharding_indexed") && !inside && i == 0 &&
                   cm_item_count(codecs) == 1) {
            const struct cm_item *index = cm_item_get(is, "index_codecs");

            if (!is_chunk(z, cm_item_get(is, "chunk_shape"), &z->inner))
                return cm_fail(err, CM_BAD_MODEL, "the shape of the chunks in a shard is wrong");
            z->sharded = true;
            z->index_first = cm_item_is_text(cm_item_get(is, "index_location"), &text) &&
                             cm_str_is(text, "start");
            if (cm_item_count(index) > 2 ||
                (cm_item_count(index) && !is_named(cm_item_at(index, 0), "bytes")) ||
                (cm_item_count(index) == 2 && !is_named(cm_item_at(index, 1), "crc32c")))
                return cm_fail(err, CM_UNSUPPORTED, "the index of a shard is coded unusually");
            z->index_has_sum = cm_item_count(index) == 2;
            CM_TRY(set_codecs(z, cm_item_get(is, "codecs"), true, err));
        } else
            CM_TRY(set_packing(z, cm_item_get(codec, "name"), err));
    }
    return CM_OK;
}

static enum cm_status describe_3(struct zarr *z, const struct cm_item *description,
                                 struct cm_error *err)
{
    const struct cm_item *grid = cm_item_get(description, "chunk_grid");
    const struct cm_item *keys = cm_item_get(description, "chunk_key_encoding");
    const struct cm_str separator =
        cm_item_text_or_none(cm_item_path(keys, "configuration.separator"));

    CM_TRY(set_common(z, description, cm_item_get(description, "data_type"),
                      cm_item_path(grid, "configuration.chunk_shape"), err));
    z->has_prefix = !is_named(keys, "v2");
    z->separator = separator.size == 1 ? separator.data[0] : z->has_prefix ? '/' : '.';
    return set_codecs(z, cm_item_get(description, "codecs"), false, err);
}

/* ---- chunks ---- */

/* The number of chunks along each axis, and in all; false: too many. */
static bool count_chunks(const struct cm_shape *shape, const struct cm_shape *chunk,
                         struct cm_shape *grid, size_t most, size_t *count)
{
    int64_t total;

    grid->rank = shape->rank;
    for (int d = 0; d < shape->rank; d++)
        grid->dims[d] = shape->dims[d] / chunk->dims[d] + (shape->dims[d] % chunk->dims[d] != 0);
    if (!cm_shape_count(grid, &total) || (uint64_t)total > most)
        return false;
    *count = (size_t)total;
    return true;
}

static void index_of(const struct cm_shape *grid, size_t number, int64_t *index)
{
    for (int d = grid->rank - 1; d >= 0; d--) {
        index[d] = (int64_t)(number % (uint64_t)grid->dims[d]);
        number /= (uint64_t)grid->dims[d];
    }
}

static enum cm_status too_many(struct cm_error *err)
{
    return cm_fail(err, CM_LIMIT, "arrays have more than %d chunks", CM_ZARR_PIECES_MAX);
}

/* A chunk that is not stored: the tensor is zero there, and no piece is needed. */
static enum cm_status leave_chunk(struct zarr *z, struct cm_error *err)
{
    z->tensor->zero_elsewhere = true;
    return z->fills_zero
               ? CM_OK
               : cm_fail(err, CM_UNSUPPORTED,
                         "a chunk is not stored, and arrays filled with another value than 0 are "
                         "not read");
}

/* A chunk with its first element at `origin`. One that sticks out of the array is stored whole.
 * bytes NULL: it is not stored. */
static enum cm_status add_chunk(struct zarr *z, const struct cm_shape *chunk, const int64_t *origin,
                                struct cm_str bytes, struct cm_str file, struct cm_error *err)
{
    const int rank = z->tensor->shape.rank;
    int64_t stride = 1;
    size_t need;

    for (int d = 0; d < rank; d++)
        if (origin[d] >= z->tensor->shape.dims[d])
            return CM_OK; /* in a shard that sticks out */
    if (z->store->pieces_left == 0)
        return too_many(err);
    z->store->pieces_left--;
    if (!bytes.data)
        return leave_chunk(z, err);
    struct cm_saved_piece *piece = cm_saved_piece_add(z->arena, z->tensor, true);
    for (int i = 0; i < rank; i++) {
        const int d = z->columns_first ? i : rank - 1 - i;
        const int64_t rest = z->tensor->shape.dims[d] - origin[d];

        piece->first[d] = origin[d];
        piece->size[d] = chunk->dims[d] < rest ? chunk->dims[d] : rest;
        piece->stride[d] = stride;
        stride *= chunk->dims[d];
    }
    piece->file = file;
    piece->bytes = bytes;
    if (!cm_dtype_bytes(z->tensor->dtype, cm_shape_elements(chunk), &need))
        return cm_fail(err, CM_BAD_MODEL, "a chunk is too large");
    piece->packing = z->packing;
    piece->unpacked_size = need;
    if (z->packing)
        return cm_packed_check(z->packing, bytes, need, err);
    return bytes.size == need
               ? CM_OK
               : cm_fail(err, CM_BAD_MODEL, "a chunk has %zu bytes, needs %zu", bytes.size, need);
}

/* The index of a shard: offset and size of each chunk in it, all ones where it is not stored. */
static enum cm_status add_shard(struct zarr *z, const int64_t *origin, struct cm_str bytes,
                                struct cm_str file, struct cm_error *err)
{
    struct cm_shape grid;
    size_t count;

    if (!count_chunks(&z->chunk, &z->inner, &grid, z->store->pieces_left, &count))
        return too_many(err);
    const size_t table = count * 16, size = table + (z->index_has_sum ? 4 : 0);
    if (bytes.data && size > bytes.size)
        return cm_fail(err, CM_BAD_MODEL, "a shard has %zu bytes, its index alone needs %zu",
                       bytes.size, size);
    const char *index = bytes.data ? bytes.data + (z->index_first ? 0 : bytes.size - size) : NULL;
    if (index && z->index_has_sum) {
        uint32_t sum;

        memcpy(&sum, index + table, sizeof sum);
        if (cm_crc32c(0, index, table) != sum)
            return cm_fail(err, CM_BAD_MODEL,
                           "the check sum of a shard's index is wrong: the file is damaged");
    }
    for (size_t i = 0; i < count; i++) {
        int64_t at[CM_MAX_RANK];
        struct cm_str inner = CM_STR_NONE;
        uint64_t place[2] = {UINT64_MAX, UINT64_MAX};

        index_of(&grid, i, at);
        for (int d = 0; d < grid.rank; d++)
            at[d] = origin[d] + at[d] * z->inner.dims[d];
        if (index)
            memcpy(place, index + 16 * i, sizeof place);
        if (place[0] != UINT64_MAX || place[1] != UINT64_MAX) {
            if (place[0] > bytes.size || place[1] > bytes.size - place[0])
                return cm_fail(err, CM_BAD_MODEL, "a chunk lies outside its shard");
            inner = (struct cm_str){bytes.data + place[0], place[1]};
        }
        CM_TRY(add_chunk(z, &z->inner, at, inner, file, err));
    }
    return CM_OK;
}

enum { INDEX_ROOM = CM_MAX_RANK * 16 + 8 }; /* of a chunk, as text */

/* The key of a chunk, in a buffer that begins with the array's name and a slash. */
static struct cm_str key_of(const struct zarr *z, char *buffer, size_t name, const int64_t *index)
{
    char *key = buffer + name + 1;
    const int rank = z->tensor->shape.rank;
    size_t at = 0;

    if (z->has_prefix || rank == 0)
        at = (size_t)snprintf(key, INDEX_ROOM, "%s", z->has_prefix ? "c" : "0");
    for (int d = 0; d < rank && at < INDEX_ROOM - 24; d++) {
        if (at)
            key[at++] = z->separator;
        at += (size_t)snprintf(key + at, INDEX_ROOM - at, "%lld", (long long)index[d]);
    }
    return (struct cm_str){buffer, name + 1 + at};
}

static enum cm_status add_chunks(struct zarr *z, struct cm_str name, struct cm_error *err)
{
    struct cm_shape grid;
    size_t count;

    if (!count_chunks(&z->tensor->shape, &z->chunk, &grid, z->store->pieces_left, &count))
        return too_many(err);
    /* One buffer for all keys: a small description may speak of millions that are not stored. */
    char *buffer = cm_arena_alloc(z->arena, name.size + 1 + INDEX_ROOM);
    memcpy(buffer, name.data, name.size);
    buffer[name.size] = '/';
    for (size_t i = 0; i < count; i++) {
        struct cm_str bytes = CM_STR_NONE, file = CM_STR_NONE;
        int64_t at[CM_MAX_RANK];
        bool found;

        index_of(&grid, i, at);
        CM_TRY(z->store->get(z->store->arg, key_of(z, buffer, name.size, at), &found, &bytes, &file,
                             err));
        if (found && !bytes.data)
            return cm_fail(err, CM_BAD_MODEL, "a chunk is empty");
        for (int d = 0; d < grid.rank; d++)
            at[d] *= z->chunk.dims[d];
        CM_TRY(z->sharded ? add_shard(z, at, bytes, file, err)
                          : add_chunk(z, &z->chunk, at, bytes, file, err));
    }
    return CM_OK;
}

enum cm_status cm_zarr_read(struct cm_arena *arena, struct cm_zarr_store *store, struct cm_str name,
                            struct cm_str description, int version, struct cm_saved_tensor **out,
                            struct cm_error *err)
{
    struct zarr z = {
        .arena = arena, .store = store, .tensor = CM_NEW(arena, struct cm_saved_tensor)};
    struct cm_item *item;
    enum cm_status status = description.size
                                ? cm_item_parse_json(arena, description, &item, err)
                                : cm_fail(err, CM_BAD_MODEL, "its description is empty");

    if (!status)
        status = version == 3 ? describe_3(&z, item, err) : describe_2(&z, item, err);
    if (!status)
        status = add_chunks(&z, name, err);
    *out = z.tensor;
    return cm_error_context(err, status, "array '%.*s'", CM_STR_FMT(name));
}
