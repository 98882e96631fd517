/* .npz: a zip file whose members are .npy files, stored or deflated. */
// SPDX-License-Identifier: Apache-2.0
#include "io/array_formats.h"

#include "base/map.h"
#include "base/number.h"

enum {
    END_SIZE = 22, /* of the record at the end of a zip file */
    END64_SIZE = 56,
    LOCATOR_SIZE = 20,
    CENTRAL_SIZE = 46,
    LOCAL_SIZE = 30,
    COMMENT_MAX = 0xffff,
    METHOD_STORED = 0,
    METHOD_DEFLATED = 8,
    EXTRA_ZIP64 = 1,
    FLAG_ENCRYPTED = 1,
    DEFLATE_RATIO = 1032, /* the most that one byte can become */
};

static uint32_t get16(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8;
}

static uint64_t get32(const uint8_t *at)
{
    return get16(at) | (uint64_t)get16(at + 2) << 16;
}

static uint64_t get64(const uint8_t *at)
{
    return get32(at) | get32(at + 4) << 32;
}

/* The zip file and what unpacking has cost so far. */
struct zip {
    const uint8_t *data;
    uint64_t size;
    uint64_t directory, directory_size, count; /* the central directory */
    uint64_t packed, unpacked, limit;
    struct cm_map names;
    cm_npz_visit_fn *visit;
    void *arg;
    struct cm_error *err;
};

struct member {
    struct cm_str name;
    uint32_t flags, method, crc;
    uint64_t packed, unpacked, local; /* sizes, and where its local header is */
};

static bool inside(const struct zip *zip, uint64_t offset, uint64_t size)
{
    return offset <= zip->size && size <= zip->size - offset;
}

static enum cm_status broken(const struct zip *zip, const char *what)
{
    return cm_fail(zip->err, CM_BAD_MODEL, "it is not a valid zip file: %s", what);
}

/* Sizes past 32 bits are in a second record, found through a locator before the end. */
static enum cm_status read_end64(struct zip *zip, uint64_t end)
{
    if (end < LOCATOR_SIZE || get32(zip->data + end - LOCATOR_SIZE) != 0x07064b50)
        return broken(zip, "the record of its large sizes is missing");
    const uint64_t at = get64(zip->data + end - LOCATOR_SIZE + 8);
    if (!inside(zip, at, END64_SIZE) || get32(zip->data + at) != 0x06064b50)
        return broken(zip, "the record of its large sizes is missing");
    zip->count = get64(zip->data + at + 32);
    zip->directory_size = get64(zip->data + at + 40);
    zip->directory = get64(zip->data + at + 48);
    return CM_OK;
}

static enum cm_status read_end(struct zip *zip)
{
    if (zip->size < END_SIZE)
        return broken(zip, "it is too short");
    uint64_t end = zip->size - END_SIZE;
    const uint64_t last = end > COMMENT_MAX ? end - COMMENT_MAX : 0;
    while (get32(zip->data + end) != 0x06054b50 ||
           get16(zip->data + end + 20) + end + END_SIZE != zip->size) {
        if (end == last)
            return broken(zip, "the record at its end is missing");
        end--;
    }
    zip->count = get16(zip->data + end + 10);
    zip->directory_size = get32(zip->data + end + 12);
    zip->directory = get32(zip->data + end + 16);
    if (zip->count == 0xffff || zip->directory_size == 0xffffffff || zip->directory == 0xffffffff)
        CM_TRY(read_end64(zip, end));
    if (!inside(zip, zip->directory, zip->directory_size) ||
        zip->count > zip->directory_size / CENTRAL_SIZE)
        return broken(zip, "its directory does not fit into it");
    return CM_OK;
}

/* Large numbers of a directory entry, in the order zip wants, each only if its field is full. */
static enum cm_status read_extra(const struct zip *zip, const uint8_t *extra, size_t size,
                                 struct member *member)
{
    while (size >= 4) {
        const uint32_t id = get16(extra), length = get16(extra + 2);
        const uint8_t *at = extra + 4;
        size_t left = length;

        if (length > size - 4)
            return broken(zip, "an extra field is cut");
        uint64_t *const fields[] = {&member->unpacked, &member->packed, &member->local};
        for (size_t i = 0; id == EXTRA_ZIP64 && i < CM_COUNT(fields); i++) {
            if (*fields[i] != 0xffffffff)
                continue;
            if (left < 8)
                return broken(zip, "a large size is missing");
            *fields[i] = get64(at);
            at += 8;
            left -= 8;
        }
        extra += 4 + length;
        size -= 4 + length;
    }
    return CM_OK;
}

static enum cm_status read_member(const struct zip *zip, uint64_t *at, struct member *out)
{
    const uint64_t end = zip->directory + zip->directory_size;
    const uint8_t *entry = zip->data + *at;

    if (end - *at < CENTRAL_SIZE || get32(entry) != 0x02014b50)
        return broken(zip, "its directory is cut");
    const uint32_t name = get16(entry + 28), extra = get16(entry + 30), comment = get16(entry + 32);
    if (end - *at - CENTRAL_SIZE < (uint64_t)name + extra + comment)
        return broken(zip, "its directory is cut");
    *out = (struct member){
        .name = {(const char *)entry + CENTRAL_SIZE, name},
        .flags = get16(entry + 8),
        .method = get16(entry + 10),
        .crc = (uint32_t)get32(entry + 16),
        .packed = get32(entry + 20),
        .unpacked = get32(entry + 24),
        .local = get32(entry + 42),
    };
    *at += CENTRAL_SIZE + (uint64_t)name + extra + comment;
    return read_extra(zip, entry + CENTRAL_SIZE + name, extra, out);
}

/* Where the bytes of a member are. All members together are no larger than the file, so entries
 * that share bytes, of which bombs are made, are refused. */
static enum cm_status find_bytes(struct zip *zip, const struct member *member, struct cm_str *out)
{
    if (!inside(zip, member->local, LOCAL_SIZE) || get32(zip->data + member->local) != 0x04034b50)
        return broken(zip, "a member is not where the directory says");
    const uint8_t *local = zip->data + member->local;
    const uint64_t begin = member->local + LOCAL_SIZE + get16(local + 26) + get16(local + 28);
    if (!inside(zip, begin, member->packed) || member->packed > zip->size - zip->packed)
        return broken(zip, "its members are larger than the file");
    zip->packed += member->packed;
    *out = (struct cm_str){(const char *)zip->data + begin, (size_t)member->packed};
    return CM_OK;
}

static enum cm_status charge(struct zip *zip, const struct member *member)
{
    const bool stored = member->method == METHOD_STORED;

    if (stored ? member->unpacked != member->packed
               : member->unpacked / DEFLATE_RATIO > member->packed)
        return broken(zip, "a member cannot have the size that is said");
    if (zip->limit && member->unpacked > zip->limit - zip->unpacked)
        return cm_fail(zip->err, CM_LIMIT, "it unpacks to more than %llu bytes",
                       (unsigned long long)zip->limit);
    zip->unpacked += member->unpacked;
    return CM_OK;
}

static enum cm_status visit_member(struct zip *zip, const struct member *member, struct cm_str name)
{
    struct cm_npz_member found = {.count = (size_t)zip->count,
                                  .name = name,
                                  .deflated = member->method == METHOD_DEFLATED,
                                  .size = (size_t)member->unpacked,
                                  .crc = member->crc};

    if (member->flags & FLAG_ENCRYPTED)
        return cm_fail(zip->err, CM_UNSUPPORTED, "it is encrypted");
    if (member->method != METHOD_STORED && member->method != METHOD_DEFLATED)
        return cm_fail(zip->err, CM_UNSUPPORTED, "it is compressed by method %u, not by deflate",
                       (unsigned)member->method);
    CM_TRY(charge(zip, member));
    CM_TRY(find_bytes(zip, member, &found.packed));
    return zip->visit(zip->arg, &found, zip->err);
}

enum cm_status cm_npz_walk(struct cm_arena *arena, struct cm_str bytes, size_t limit,
                           cm_npz_visit_fn *visit, void *arg, struct cm_error *err)
{
    struct zip zip = {.data = (const uint8_t *)bytes.data,
                      .size = bytes.size,
                      .limit = limit,
                      .visit = visit,
                      .arg = arg,
                      .err = err};

    CM_TRY(read_end(&zip));
    uint64_t at = zip.directory;
    for (uint64_t i = 0; i < zip.count; i++) {
        struct member member;
        bool added;

        CM_TRY(read_member(&zip, &at, &member));
        struct cm_str name = member.name;
        if (!cm_str_ends(name, ".npy"))
            return cm_fail(err, CM_BAD_MODEL, "its member '%.*s' is not a .npy file",
                           CM_STR_FMT(name));
        name.size -= 4;
        cm_map_insert(&zip.names, arena, name, &added);
        if (!added)
            return cm_fail(err, CM_BAD_MODEL, "it has two arrays '%.*s'", CM_STR_FMT(name));
        CM_TRY(cm_error_context(err, visit_member(&zip, &member, name), "array '%.*s'",
                                CM_STR_FMT(name)));
    }
    return CM_OK;
}

enum cm_status cm_npz_header(struct cm_arena *scratch, const struct cm_npz_member *member,
                             struct cm_npy_header *out, struct cm_error *err)
{
    if (!member->deflated)
        return cm_npy_read_header(member->packed, member->size, out, err);
    const size_t room = cm_min_size(CM_NPY_HEADER_MAX, member->size);
    uint8_t *head = cm_arena_alloc(scratch, room);
    size_t got = 0;

    CM_TRY(cm_inflate_head(member->packed, head, room, &got, err));
    return cm_npy_read_header((struct cm_str){(const char *)head, got}, member->size, out, err);
}

/* What parsing into memory needs to know at each member. */
struct parse {
    struct cm_arena *arena;
    const struct cm_arrays_options *options;
    struct cm_arrays *out;
};

static enum cm_status load_member(void *arg, const struct cm_npz_member *member,
                                  struct cm_error *err)
{
    const struct parse *parse = arg;
    struct cm_str bytes = member->packed;
    struct cm_npy_header header;
    struct cm_tensor tensor;

    if (!cm_arrays_wants(parse->arena, parse->options, member->name, member->count, parse->out))
        return CM_OK;
    CM_TRY(cm_npz_header(parse->arena, member, &header, err));
    if (member->deflated) {
        struct cm_tensor room;

        CM_TRY(
            cm_arrays_tensor(parse->arena, CM_UINT8, &CM_SHAPE((int64_t)member->size), &room, err));
        CM_TRY(cm_inflate(member->packed, room.data, member->size, err));
        bytes = (struct cm_str){room.data, member->size};
    }
    if (cm_crc32(0, bytes.data, bytes.size) != member->crc)
        return cm_fail(err, CM_BAD_MODEL, "its check sum is wrong: the file is damaged");
    CM_TRY(cm_npy_read_header(bytes, bytes.size, &header, err));
    CM_TRY(cm_npy_read_data(parse->arena, &header, (const uint8_t *)bytes.data + header.data_offset,
                            &tensor, err));
    cm_arrays_add(parse->arena, parse->out, member->name, &tensor);
    return CM_OK;
}

enum cm_status cm_npz_parse(struct cm_arena *arena, struct cm_str bytes,
                            const struct cm_arrays_options *options, struct cm_arrays *out,
                            struct cm_error *err)
{
    struct parse parse = {arena, options, out};

    return cm_npz_walk(arena, bytes, options->limit, load_member, &parse, err);
}

/* ---- writing: stored, with 64-bit sizes throughout ---- */

static uint8_t *put(uint8_t *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *to++ = (uint8_t)(value >> 8 * i);
    return to;
}

struct written {
    struct cm_str name; /* with its ending */
    uint64_t offset, size;
    uint32_t crc;
};

/* The part that local headers and directory entries share: versions to date. */
static uint8_t *put_common(uint8_t *to, const struct written *file, int extra_size)
{
    to = put(to, 45, 2);    /* needed to read 64-bit sizes */
    to = put(to, 0x800, 2); /* names are UTF-8 */
    to = put(to, METHOD_STORED, 2);
    to = put(to, 0x00210000, 4); /* the first day of 1980, as numpy writes */
    to = put(to, file->crc, 4);
    to = put(to, UINT64_MAX, 8); /* both sizes are in the extra field */
    to = put(to, file->name.size, 2);
    return put(to, (uint64_t)extra_size, 2);
}

static enum cm_status write_local(struct cm_save *save, const struct written *file,
                                  struct cm_error *err)
{
    uint8_t local[LOCAL_SIZE], extra[20];
    uint8_t *end = put_common(put(local, 0x04034b50, 4), file, sizeof extra);

    CM_TRY(cm_save_write(save, local, (size_t)(end - local), err));
    CM_TRY(cm_save_write(save, file->name.data, file->name.size, err));
    put(put(put(put(extra, EXTRA_ZIP64, 2), 16, 2), file->size, 8), file->size, 8);
    return cm_save_write(save, extra, sizeof extra, err);
}

static enum cm_status write_entry(struct cm_save *save, const struct written *file,
                                  struct cm_error *err)
{
    uint8_t entry[CENTRAL_SIZE], extra[28];
    uint8_t *end = put_common(put(put(entry, 0x02014b50, 4), 45, 2), file, sizeof extra);

    end = put(end, 0, 6); /* comment, disk, internal attributes */
    end = put(end, UINT64_C(0600) << 16, 4);
    end = put(end, 0xffffffff, 4); /* where it is: in the extra field */
    CM_TRY(cm_save_write(save, entry, (size_t)(end - entry), err));
    CM_TRY(cm_save_write(save, file->name.data, file->name.size, err));
    end = put(put(put(put(extra, EXTRA_ZIP64, 2), 24, 2), file->size, 8), file->size, 8);
    put(end, file->offset, 8);
    return cm_save_write(save, extra, sizeof extra, err);
}

static enum cm_status write_end(struct cm_save *save, uint64_t directory, size_t count,
                                struct cm_error *err)
{
    const uint64_t at = save->written;
    uint8_t room[END64_SIZE + LOCATOR_SIZE + END_SIZE];
    uint8_t *to = put(put(room, 0x06064b50, 4), END64_SIZE - 12, 8);

    to = put(put(put(to, 45, 2), 45, 2), 0, 8);
    to = put(put(to, count, 8), count, 8);
    to = put(put(to, at - directory, 8), directory, 8);
    to = put(put(put(put(to, 0x07064b50, 4), 0, 4), at, 8), 1, 4);
    to = put(put(to, 0x06054b50, 4), 0, 4);
    to = put(put(to, 0xffffffff, 4), UINT64_MAX, 8);
    to = put(to, 0, 2);
    return cm_save_write(save, room, (size_t)(to - room), err);
}

static enum cm_status write_member(struct cm_arena *scratch, struct cm_save *save,
                                   const struct cm_array *item, struct written *file,
                                   struct cm_error *err)
{
    struct cm_npy_image image;

    if (item->name.size > 0xff00)
        return cm_fail(err, CM_LIMIT, "a name of %zu bytes is too long", item->name.size);
    CM_TRY(cm_npy_image(scratch, &item->value.tensor, &image, err));
    char *name = cm_arena_alloc(scratch, item->name.size + 5);
    if (item->name.size)
        memcpy(name, item->name.data, item->name.size);
    memcpy(name + item->name.size, ".npy", 4);
    file->name = (struct cm_str){name, item->name.size + 4};
    file->offset = save->written;
    file->size = image.header.size + image.data.size;
    file->crc = cm_crc32(cm_crc32(0, image.header.data, image.header.size), image.data.data,
                         image.data.size);
    CM_TRY(write_local(save, file, err));
    CM_TRY(cm_save_write(save, image.header.data, image.header.size, err));
    return cm_save_write(save, image.data.data, image.data.size, err);
}

enum cm_status cm_npz_write(struct cm_arena *scratch, struct cm_save *save,
                            const struct cm_array *items, size_t count, struct cm_error *err)
{
    struct written *files = CM_NEW_ARRAY(scratch, struct written, count);

    for (size_t i = 0; i < count; i++)
        CM_TRY(write_member(scratch, save, &items[i], &files[i], err));
    const uint64_t directory = save->written;
    for (size_t i = 0; i < count; i++)
        CM_TRY(write_entry(save, &files[i], err));
    return write_end(save, directory, count, err);
}
