/* OCDBT: manifest, nodes of the tree, and where values are.
 *
 * Manifests and nodes have the same envelope: a magic number, the length of all, a version, how the
 * body is compressed, the body, a check sum. Bodies are columns: all keys' lengths, then all
 * values' lengths, and so on. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/ocdbt.h"

#include "base/crc32c.h"
#include "base/varint.h"
#include "bytes/zstd.h"

enum {
    DEPTH_MAX = 32,
    NODES_MAX = 1000000,
    KEYS_MAX = 4000000,
    BODY_MAX = 1 << 30,
    HEAD_SIZE = 12, /* magic and length */
    SUM_SIZE = 4
};
static const uint32_t manifest_magic = 0x0cdb3a2a, node_magic = 0x0cdb20de;

/* ---- the bytes of a body ---- */

struct body {
    struct cm_arena *arena;
    const uint8_t *bytes;
    size_t size, at;
};

static enum cm_status ends(struct cm_error *err)
{
    return cm_fail(err, CM_BAD_MODEL, "it ends too early");
}

static enum cm_status get_bytes(struct body *b, size_t size, struct cm_str *out,
                                struct cm_error *err)
{
    if (size > b->size - b->at)
        return ends(err);
    *out = (struct cm_str){(const char *)b->bytes + b->at, size};
    b->at += size;
    return CM_OK;
}

static enum cm_status get_varint(struct body *b, uint64_t *out, struct cm_error *err)
{
    const uint8_t *at = b->bytes + b->at;

    *out = 0;
    const enum cm_varint_fault fault = cm_varint_get(&at, b->bytes + b->size, out);

    b->at = (size_t)(at - b->bytes);
    if (fault == CM_VARINT_LONG)
        return cm_fail(err, CM_BAD_MODEL, "a number in it is too long");
    return fault ? ends(err) : CM_OK;
}

static enum cm_status get_column(struct body *b, size_t count, uint64_t **out, struct cm_error *err)
{
    if (count > b->size - b->at)
        return ends(err);
    *out = CM_NEW_ARRAY(b->arena, uint64_t, count + 1);
    for (size_t i = 0; i < count; i++)
        CM_TRY(get_varint(b, &(*out)[i], err));
    return CM_OK;
}

static enum cm_status get_bytes_column(struct body *b, size_t count, const uint8_t **out,
                                       struct cm_error *err)
{
    struct cm_str bytes = CM_STR_NONE;

    CM_TRY(get_bytes(b, count, &bytes, err));
    *out = (const uint8_t *)bytes.data;
    return CM_OK;
}

/* Texts that share their beginnings with the one before. In nodes a column of theirs comes between
 * the lengths and the texts: then *extra has it. */
static enum cm_status get_texts(struct body *b, size_t count, uint64_t **extra, struct cm_str *out,
                                struct cm_error *err)
{
    uint64_t *shared, *own;
    size_t total = 0;

    CM_TRY(get_column(b, count ? count - 1 : 0, &shared, err));
    CM_TRY(get_column(b, count, &own, err));
    if (extra)
        CM_TRY(get_column(b, count, extra, err));
    for (size_t i = 0; i < count; i++) {
        const size_t same = i ? shared[i - 1] : 0;
        struct cm_str text = CM_STR_NONE;

        if (i && same > out[i - 1].size)
            return cm_fail(err, CM_BAD_MODEL, "a key shares more with the one before than it has");
        CM_TRY(get_bytes(b, own[i], &text, err));
        total += same + text.size;
        if (total > BODY_MAX)
            return cm_fail(err, CM_LIMIT, "its keys are too long");
        char *whole = cm_arena_alloc(b->arena, same + text.size + 1);
        if (same)
            memcpy(whole, out[i - 1].data, same);
        if (text.size)
            memcpy(whole + same, text.data, text.size);
        out[i] = (struct cm_str){whole, same + text.size};
    }
    return CM_OK;
}

/* Files that a body refers to by number; paths are relative to `base`, which a path may extend for
 * the nodes in that file. */
struct files {
    struct cm_str *paths, *bases;
    size_t count;
};

static enum cm_status get_files(struct body *b, struct cm_str base, struct files *out,
                                struct cm_error *err)
{
    uint64_t count, *base_sizes;

    CM_TRY(get_varint(b, &count, err));
    if (count > b->size - b->at)
        return ends(err);
    out->count = count;
    out->paths = CM_NEW_ARRAY(b->arena, struct cm_str, count + 1);
    out->bases = CM_NEW_ARRAY(b->arena, struct cm_str, count + 1);
    CM_TRY(get_texts(b, count, &base_sizes, out->paths, err));
    for (size_t i = 0; i < count; i++) {
        const struct cm_str path = out->paths[i];

        if (base_sizes[i] > path.size)
            return cm_fail(err, CM_BAD_MODEL, "the folder of a file is longer than its path");
        out->paths[i] = cm_arena_printf(b->arena, "%.*s%.*s", CM_STR_ALL(base), CM_STR_ALL(path));
        out->bases[i] = (struct cm_str){out->paths[i].data, base.size + base_sizes[i]};
    }
    return CM_OK;
}

/* The envelope: checks it and gives the body, unpacked. */
static enum cm_status open_body(struct cm_arena *arena, struct cm_str bytes, uint32_t magic,
                                struct body *out, struct cm_error *err)
{
    struct body b = {.arena = arena, .bytes = (const uint8_t *)bytes.data, .size = bytes.size};
    uint64_t length, version, packing;
    uint32_t sum;

    if (bytes.size < HEAD_SIZE + 2 + SUM_SIZE)
        return ends(err);
    const uint32_t found = (uint32_t)b.bytes[0] << 24 | (uint32_t)b.bytes[1] << 16 |
                           (uint32_t)b.bytes[2] << 8 | b.bytes[3];
    memcpy(&length, b.bytes + 4, sizeof length);
    if (found != magic)
        return cm_fail(err, CM_BAD_MODEL, "it begins with 0x%08x, expected 0x%08x", found, magic);
    if (length != bytes.size)
        return cm_fail(err, CM_BAD_MODEL, "it has %zu bytes, its head says %llu", bytes.size,
                       (unsigned long long)length);
    b.size -= SUM_SIZE;
    memcpy(&sum, b.bytes + b.size, sizeof sum);
    if (cm_crc32c(0, b.bytes, b.size) != sum)
        return cm_fail(err, CM_BAD_MODEL, "its check sum is wrong: the file is damaged");
    b.at = HEAD_SIZE;
    CM_TRY(get_varint(&b, &version, err));
    CM_TRY(get_varint(&b, &packing, err));
    if (version != 0 || packing > 1)
        return cm_fail(err, CM_UNSUPPORTED, "OCDBT version %llu with compression %llu is not read",
                       (unsigned long long)version, (unsigned long long)packing);
    struct cm_str body = {(const char *)b.bytes + b.at, b.size - b.at};
    if (packing == 1)
        CM_TRY(cm_zstd_read(arena, body, BODY_MAX, &body, err));
    *out = (struct body){.arena = arena, .bytes = (const uint8_t *)body.data, .size = body.size};
    return CM_OK;
}

/* ---- the tree ---- */

struct tree {
    const struct cm_ocdbt_files *files;
    struct cm_ocdbt *out;
    struct cm_arena *arena;
    size_t nodes;
};

/* Where something lies. */
struct lying {
    struct cm_str file, base;
    uint64_t offset, length;
};

static enum cm_status get_lying(struct tree *t, const struct lying *at, struct cm_str *out,
                                struct cm_error *err)
{
    struct cm_str bytes = CM_STR_NONE;

    CM_TRY(t->files->map(t->files->arg, at->file, &bytes, err));
    if (at->offset > bytes.size || at->length > bytes.size - at->offset)
        return cm_fail(err, CM_BAD_MODEL, "%.*s has %zu bytes, needs %llu at %llu",
                       CM_STR_FMT(at->file), bytes.size, (unsigned long long)at->length,
                       (unsigned long long)at->offset);
    *out = (struct cm_str){bytes.data + at->offset, at->length};
    return CM_OK;
}

/* One of a table of files; refuses numbers past it. */
static enum cm_status pick_file(const struct files *files, uint64_t number, struct lying *out,
                                struct cm_error *err)
{
    if (number >= files->count)
        return cm_fail(err, CM_BAD_MODEL, "file %llu is asked for, there are %zu",
                       (unsigned long long)number, files->count);
    out->file = files->paths[number];
    out->base = files->bases[number];
    return CM_OK;
}

static struct cm_str prefixed(struct tree *t, struct cm_str prefix, struct cm_str key)
{
    return prefix.size ? cm_arena_printf(t->arena, "%.*s%.*s", CM_STR_ALL(prefix), CM_STR_ALL(key))
                       : key;
}

static enum cm_status read_leaf(struct tree *t, struct body *b, const struct files *files,
                                const struct cm_str *keys, size_t count, struct cm_str prefix,
                                struct cm_str file, struct cm_error *err)
{
    uint64_t *sizes, *numbers, *offsets;
    const uint8_t *kinds;
    size_t outside = 0;

    CM_TRY(get_column(b, count, &sizes, err));
    CM_TRY(get_bytes_column(b, count, &kinds, err));
    for (size_t i = 0; i < count; i++) {
        if (kinds[i] > 1)
            return cm_fail(err, CM_BAD_MODEL, "a value is of kind %d", kinds[i]);
        outside += kinds[i];
    }
    CM_TRY(get_column(b, outside, &numbers, err));
    CM_TRY(get_column(b, outside, &offsets, err));
    if (count > KEYS_MAX - t->out->count)
        return cm_fail(err, CM_LIMIT, "it has more than %d keys", KEYS_MAX);
    outside = 0;
    for (size_t i = 0; i < count; i++) {
        struct cm_ocdbt_value *value = CM_PUSH(t->arena, t->out);
        struct lying at = {.length = sizes[i]};

        *value = (struct cm_ocdbt_value){.key = prefixed(t, prefix, keys[i]), .file = file};
        if (!kinds[i]) {
            CM_TRY(get_bytes(b, sizes[i], &value->bytes, err));
            continue;
        }
        CM_TRY(pick_file(files, numbers[outside], &at, err));
        at.offset = offsets[outside++];
        value->file = at.file;
        CM_TRY(cm_error_context(err, get_lying(t, &at, &value->bytes, err), "value of '%.*s'",
                                CM_STR_FMT(value->key)));
    }
    return CM_OK;
}

static enum cm_status read_node(struct tree *t, const struct lying *at, uint64_t height,
                                struct cm_str prefix, struct cm_error *err);

static enum cm_status read_inner(struct tree *t, struct body *b, const struct files *files,
                                 const struct cm_str *keys, const uint64_t *common, size_t count,
                                 uint64_t height, struct cm_str prefix, struct cm_error *err)
{
    uint64_t *numbers, *offsets, *lengths;

    CM_TRY(get_column(b, count, &numbers, err));
    CM_TRY(get_column(b, count, &offsets, err));
    CM_TRY(get_column(b, count, &lengths, err));
    for (size_t i = 0; i < count; i++) {
        struct lying at = {.offset = offsets[i], .length = lengths[i]};

        if (common[i] > keys[i].size)
            return cm_fail(err, CM_BAD_MODEL, "the common part of keys is longer than a key");
        CM_TRY(pick_file(files, numbers[i], &at, err));
        CM_TRY(read_node(t, &at, height - 1,
                         prefixed(t, prefix, (struct cm_str){keys[i].data, common[i]}), err));
    }
    return CM_OK;
}

static enum cm_status read_body(struct tree *t, struct body *b, const struct lying *at,
                                uint64_t height, struct cm_str prefix, struct cm_error *err)
{
    const uint8_t *said;
    struct files files;
    uint64_t count, *common = NULL;

    CM_TRY(get_bytes_column(b, 1, &said, err));
    if (*said != height)
        return cm_fail(err, CM_BAD_MODEL, "its height is %d, expected %llu", *said,
                       (unsigned long long)height);
    CM_TRY(get_files(b, at->base, &files, err));
    CM_TRY(get_varint(b, &count, err));
    if (count > b->size - b->at)
        return ends(err);
    struct cm_str *keys = CM_NEW_ARRAY(t->arena, struct cm_str, count + 1);
    CM_TRY(get_texts(b, count, height ? &common : NULL, keys, err));
    return height ? read_inner(t, b, &files, keys, common, count, height, prefix, err)
                  : read_leaf(t, b, &files, keys, count, prefix, at->file, err);
}

static enum cm_status read_node(struct tree *t, const struct lying *at, uint64_t height,
                                struct cm_str prefix, struct cm_error *err)
{
    struct cm_str bytes = CM_STR_NONE;
    struct body body;

    if (++t->nodes > NODES_MAX || prefix.size > 65536)
        return cm_fail(err, CM_LIMIT, "the tree of keys has too many nodes");
    CM_TRY(get_lying(t, at, &bytes, err));
    enum cm_status status = open_body(t->arena, bytes, node_magic, &body, err);
    if (!status)
        status = read_body(t, &body, at, height, prefix, err);
    return cm_error_context(err, status, "%.*s at %llu", CM_STR_FMT(at->file),
                            (unsigned long long)at->offset);
}

/* ---- the manifest ---- */

static enum cm_status skip_settings(struct body *b, struct cm_error *err)
{
    uint64_t kind, ignored, packing;
    struct cm_str bytes = CM_STR_NONE;

    CM_TRY(get_bytes(b, 16, &bytes, err)); /* the store's id */
    CM_TRY(get_varint(b, &kind, err));
    if (kind != 0)
        return cm_fail(err, CM_UNSUPPORTED, "numbered manifests are not read");
    CM_TRY(get_varint(b, &ignored, err)); /* the largest value inside a node */
    CM_TRY(get_varint(b, &ignored, err)); /* the largest node */
    CM_TRY(get_bytes(b, 1, &bytes, err)); /* arity of the tree of versions */
    CM_TRY(get_varint(b, &packing, err));
    return get_bytes(b, packing ? 4 : 0, &bytes, err); /* level */
}

/* The root of the newest version; *keys is 0 where the store is empty. */
static enum cm_status find_root(struct body *b, struct lying *root, uint64_t *height,
                                uint64_t *keys, struct cm_error *err)
{
    enum { GENERATION, FILE_NUMBER, OFFSET, LENGTH, KEYS, COLUMNS };
    uint64_t count, *columns[COLUMNS];
    const uint8_t *heights;
    struct files files;

    CM_TRY(skip_settings(b, err));
    CM_TRY(get_files(b, CM_STR_NONE, &files, err));
    CM_TRY(get_varint(b, &count, err));
    if (count == 0)
        return cm_fail(err, CM_BAD_MODEL, "it lists no version");
    CM_TRY(get_column(b, count, &columns[GENERATION], err));
    CM_TRY(get_bytes_column(b, count, &heights, err));
    for (int c = FILE_NUMBER; c < COLUMNS; c++)
        CM_TRY(get_column(b, count, &columns[c], err));
    *keys = columns[KEYS][count - 1];
    *height = heights[count - 1];
    root->offset = columns[OFFSET][count - 1];
    root->length = columns[LENGTH][count - 1];
    if (*height > DEPTH_MAX)
        return cm_fail(err, CM_BAD_MODEL, "its tree has a height of %llu",
                       (unsigned long long)*height);
    return *keys ? pick_file(&files, columns[FILE_NUMBER][count - 1], root, err) : CM_OK;
}

enum cm_status cm_ocdbt_read(struct cm_arena *arena, const struct cm_ocdbt_files *files,
                             struct cm_ocdbt *out, struct cm_error *err)
{
    static const char name[] = "manifest.ocdbt";
    struct tree t = {.files = files, .out = out, .arena = arena};
    struct lying root = {0};
    uint64_t height = 0, keys = 0;
    struct cm_str bytes = CM_STR_NONE;
    struct body body;

    *out = (struct cm_ocdbt){0};
    CM_TRY(files->map(files->arg, cm_str(name), &bytes, err));
    enum cm_status status = open_body(t.arena, bytes, manifest_magic, &body, err);
    if (!status)
        status = find_root(&body, &root, &height, &keys, err);
    CM_TRY(cm_error_context(err, status, name));
    return keys ? read_node(&t, &root, height, CM_STR_NONE, err) : CM_OK;
}
