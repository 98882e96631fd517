/* Zip files: the central directory, members, and writing them. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/zip.h"

#include "bytes/inflate.h"

enum {
    END_SIZE = 22, /* of the record at the end of a zip file */
    END64_SIZE = 56,
    LOCATOR_SIZE = 20,
    CENTRAL_SIZE = 46,
    LOCAL_SIZE = 30,
    COMMENT_MAX = 0xffff,
    NAME_MAX_SIZE = 0xff00,
    METHOD_STORED = 0,
    METHOD_DEFLATED = 8,
    EXTRA_ZIP64 = 1,
    EXTRA_PADDING = 0x4246, /* "FB", as PyTorch has it */
    FLAG_ENCRYPTED = 1,
    FLAG_STREAMED = 8,    /* check sum and sizes follow the bytes */
    FLAG_UTF8 = 0x800,    /* names are UTF-8 */
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

static bool inside(const struct cm_zip *zip, uint64_t offset, uint64_t size)
{
    return offset <= zip->size && size <= zip->size - offset;
}

static enum cm_status broken(struct cm_error *err, const char *what)
{
    return cm_fail(err, CM_BAD_MODEL, "it is not a valid zip file: %s", what);
}

/* Sizes past 32 bits are in a second record, found through a locator before the end. */
static enum cm_status read_end64(struct cm_zip *zip, uint64_t end, struct cm_error *err)
{
    if (end < LOCATOR_SIZE || get32(zip->data + end - LOCATOR_SIZE) != 0x07064b50)
        return broken(err, "the record of its large sizes is missing");
    const uint64_t at = get64(zip->data + end - LOCATOR_SIZE + 8);
    if (!inside(zip, at, END64_SIZE) || get32(zip->data + at) != 0x06064b50)
        return broken(err, "the record of its large sizes is missing");
    zip->count = get64(zip->data + at + 32);
    zip->directory_size = get64(zip->data + at + 40);
    zip->directory = get64(zip->data + at + 48);
    return CM_OK;
}

enum cm_status cm_zip_open(struct cm_str bytes, size_t limit, struct cm_zip *out,
                           struct cm_error *err)
{
    struct cm_zip zip = {.data = (const uint8_t *)bytes.data, .size = bytes.size, .limit = limit};

    if (zip.size < END_SIZE)
        return broken(err, "it is too short");
    uint64_t end = zip.size - END_SIZE;
    const uint64_t last = end > COMMENT_MAX ? end - COMMENT_MAX : 0;
    while (get32(zip.data + end) != 0x06054b50 ||
           get16(zip.data + end + 20) + end + END_SIZE != zip.size) {
        if (end == last)
            return broken(err, "the record at its end is missing");
        end--;
    }
    zip.count = get16(zip.data + end + 10);
    zip.directory_size = get32(zip.data + end + 12);
    zip.directory = get32(zip.data + end + 16);
    if (zip.count == 0xffff || zip.directory_size == 0xffffffff || zip.directory == 0xffffffff)
        CM_TRY(read_end64(&zip, end, err));
    if (!inside(&zip, zip.directory, zip.directory_size) ||
        zip.count > zip.directory_size / CENTRAL_SIZE)
        return broken(err, "its directory does not fit into it");
    zip.at = zip.directory;
    *out = zip;
    return CM_OK;
}

/* Large numbers of a directory entry, in the order zip wants, each only if its field is full. */
static enum cm_status read_extra(const uint8_t *extra, size_t size, struct cm_zip_member *member,
                                 struct cm_error *err)
{
    uint64_t unpacked = member->size;

    while (size >= 4) {
        const uint32_t id = get16(extra), length = get16(extra + 2);
        const uint8_t *at = extra + 4;
        size_t left = length;

        if (length > size - 4)
            return broken(err, "an extra field is cut");
        uint64_t *const fields[] = {&unpacked, &member->packed_size, &member->local};
        for (size_t i = 0; id == EXTRA_ZIP64 && i < CM_COUNT(fields); i++) {
            if (*fields[i] != 0xffffffff)
                continue;
            if (left < 8)
                return broken(err, "a large size is missing");
            *fields[i] = get64(at);
            at += 8;
            left -= 8;
        }
        extra += 4 + length;
        size -= 4 + length;
    }
    member->size = (size_t)unpacked;
    return CM_OK;
}

enum cm_status cm_zip_next(struct cm_zip *zip, struct cm_zip_member *out, struct cm_error *err)
{
    const uint64_t left = zip->directory + zip->directory_size - zip->at;
    const uint8_t *entry = zip->data + zip->at;

    if (left < CENTRAL_SIZE || get32(entry) != 0x02014b50)
        return broken(err, "its directory is cut");
    const uint32_t name = get16(entry + 28), extra = get16(entry + 30), comment = get16(entry + 32);
    if (left - CENTRAL_SIZE < (uint64_t)name + extra + comment)
        return broken(err, "its directory is cut");
    *out = (struct cm_zip_member){
        .name = {(const char *)entry + CENTRAL_SIZE, name},
        .flags = get16(entry + 8),
        .method = get16(entry + 10),
        .crc = (uint32_t)get32(entry + 16),
        .packed_size = get32(entry + 20),
        .size = get32(entry + 24),
        .local = get32(entry + 42),
    };
    out->deflated = out->method == METHOD_DEFLATED;
    zip->at += CENTRAL_SIZE + (uint64_t)name + extra + comment;
    return read_extra(entry + CENTRAL_SIZE + name, extra, out, err);
}

static enum cm_status charge(struct cm_zip *zip, const struct cm_zip_member *member,
                             struct cm_error *err)
{
    if (!member->deflated ? member->size != member->packed_size
                          : member->size / DEFLATE_RATIO > member->packed_size)
        return broken(err, "a member cannot have the size that is said");
    if (zip->limit && member->size > zip->limit - zip->unpacked)
        return cm_fail(err, CM_LIMIT, "it unpacks to more than %llu bytes",
                       (unsigned long long)zip->limit);
    zip->unpacked += member->size;
    return CM_OK;
}

enum cm_status cm_zip_locate(struct cm_zip *zip, struct cm_zip_member *member, struct cm_error *err)
{
    if (member->flags & FLAG_ENCRYPTED)
        return cm_fail(err, CM_UNSUPPORTED, "it is encrypted");
    if (member->method != METHOD_STORED && member->method != METHOD_DEFLATED)
        return cm_fail(err, CM_UNSUPPORTED, "it is compressed by method %u, not by deflate",
                       (unsigned)member->method);
    CM_TRY(charge(zip, member, err));
    if (!inside(zip, member->local, LOCAL_SIZE) || get32(zip->data + member->local) != 0x04034b50)
        return broken(err, "a member is not where the directory says");
    const uint8_t *local = zip->data + member->local;
    const uint64_t begin = member->local + LOCAL_SIZE + get16(local + 26) + get16(local + 28);
    if (!inside(zip, begin, member->packed_size) || member->packed_size > zip->size - zip->packed)
        return broken(err, "its members are larger than the file");
    zip->packed += member->packed_size;
    member->packed = (struct cm_str){(const char *)zip->data + begin, (size_t)member->packed_size};
    return CM_OK;
}

enum cm_status cm_zip_contents(struct cm_arena *arena, const struct cm_zip_member *member,
                               struct cm_str *out, struct cm_error *err)
{
    *out = member->packed;
    if (member->deflated) {
        uint8_t *room = cm_arena_alloc(arena, member->size);

        CM_TRY(cm_inflate(member->packed, room, member->size, err));
        *out = (struct cm_str){(const char *)room, member->size};
    }
    if (cm_crc32(0, out->data, out->size) != member->crc)
        return cm_fail(err, CM_BAD_MODEL, "its check sum is wrong: the file is damaged");
    return CM_OK;
}

/* ---- writing ---- */

static uint8_t *put(uint8_t *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *to++ = (uint8_t)(value >> 8 * i);
    return to;
}

/* The part that local headers and directory entries share: versions to date. */
static uint8_t *put_common(uint8_t *to, const struct cm_zip_file *file, size_t extra_size)
{
    to = put(to, 45, 2); /* needed to read 64-bit sizes */
    to = put(to, FLAG_UTF8 | (file->streamed ? FLAG_STREAMED : 0), 2);
    to = put(to, METHOD_STORED, 2);
    to = put(to, 0x00210000, 4); /* the first day of 1980, as numpy writes */
    to = put(to, file->crc, 4);
    to = put(to, UINT64_MAX, 8); /* both sizes are in the extra field */
    to = put(to, file->name.size, 2);
    return put(to, extra_size, 2);
}

static struct cm_zip_file *current(struct cm_zip_writer *zip)
{
    return &zip->files.items[zip->files.count - 1];
}

enum cm_status cm_zip_begin_member(struct cm_zip_writer *zip, struct cm_str name, uint64_t size,
                                   const uint32_t *crc, struct cm_error *err)
{
    uint8_t local[LOCAL_SIZE], extra[24];
    size_t padding = 0;

    if (name.size > NAME_MAX_SIZE)
        return cm_fail(err, CM_LIMIT, "a name of %zu bytes is too long", name.size);
    struct cm_zip_file *file = CM_PUSH(zip->arena, &zip->files);
    *file = (struct cm_zip_file){.name = name,
                                 .offset = zip->save->written - zip->base,
                                 .size = size,
                                 .crc = crc ? *crc : 0,
                                 .streamed = !crc};
    if (zip->alignment) {
        const uint64_t bytes = zip->save->written + LOCAL_SIZE + name.size + sizeof extra;
        padding = 4 + (size_t)(-bytes % zip->alignment);
    }
    uint8_t *end = put_common(put(local, 0x04034b50, 4), file, sizeof extra - 4 + padding);
    CM_TRY(cm_save_write(zip->save, local, (size_t)(end - local), err));
    CM_TRY(cm_save_write(zip->save, name.data, name.size, err));
    end = put(put(put(put(extra, EXTRA_ZIP64, 2), 16, 2), size, 8), size, 8);
    if (padding)
        end = put(put(end, EXTRA_PADDING, 2), padding - 4, 2);
    CM_TRY(cm_save_write(zip->save, extra, (size_t)(end - extra), err));
    return zip->alignment ? cm_save_align(zip->save, zip->alignment, err) : CM_OK;
}

enum cm_status cm_zip_write(struct cm_zip_writer *zip, const void *bytes, size_t size,
                            struct cm_error *err)
{
    if (current(zip)->streamed)
        current(zip)->crc = cm_crc32(current(zip)->crc, bytes, size);
    return cm_save_write(zip->save, bytes, size, err);
}

enum cm_status cm_zip_end_member(struct cm_zip_writer *zip, struct cm_error *err)
{
    const struct cm_zip_file *file = current(zip);
    uint8_t room[24];

    if (!file->streamed)
        return CM_OK;
    uint8_t *end = put(put(room, 0x08074b50, 4), file->crc, 4);
    end = put(put(end, file->size, 8), file->size, 8);
    return cm_save_write(zip->save, room, (size_t)(end - room), err);
}

enum cm_status cm_zip_add(struct cm_zip_writer *zip, struct cm_str name, struct cm_str bytes,
                          struct cm_error *err)
{
    const uint32_t crc = cm_crc32(0, bytes.data, bytes.size);

    CM_TRY(cm_zip_begin_member(zip, name, bytes.size, &crc, err));
    CM_TRY(cm_zip_write(zip, bytes.data, bytes.size, err));
    return cm_zip_end_member(zip, err);
}

static enum cm_status write_entry(struct cm_save *save, const struct cm_zip_file *file,
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

enum cm_status cm_zip_finish(struct cm_zip_writer *zip, struct cm_error *err)
{
    const uint64_t directory = zip->save->written - zip->base, count = zip->files.count;
    uint8_t room[END64_SIZE + LOCATOR_SIZE + END_SIZE];

    for (size_t i = 0; i < count; i++)
        CM_TRY(write_entry(zip->save, &zip->files.items[i], err));
    const uint64_t at = zip->save->written - zip->base;
    uint8_t *to = put(put(room, 0x06064b50, 4), END64_SIZE - 12, 8);
    to = put(put(put(to, 45, 2), 45, 2), 0, 8);
    to = put(put(to, count, 8), count, 8);
    to = put(put(to, at - directory, 8), directory, 8);
    to = put(put(put(put(to, 0x07064b50, 4), 0, 4), at, 8), 1, 4);
    to = put(put(to, 0x06054b50, 4), 0, 4);
    to = put(put(to, 0xffffffff, 4), UINT64_MAX, 8);
    to = put(to, 0, 2);
    return cm_save_write(zip->save, room, (size_t)(to - room), err);
}
