/* Tar: blocks of 512 bytes, a header before each file. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/tar.h"

enum { BLOCK = 512, FILES_MAX = 100000 };

/* Where the members of a header are. */
enum {
    NAME = 0,
    NAME_SIZE = 100,
    SIZE = 124,
    SUM = 148,
    KIND = 156,
    MAGIC = 257,
    PREFIX = 345,
    PREFIX_SIZE = 155
};

bool cm_tar_is_file(struct cm_str bytes)
{
    return bytes.size >= BLOCK && memcmp(bytes.data + MAGIC, "ustar", 5) == 0;
}

static struct cm_str text(const char *from, size_t most)
{
    const char *end = memchr(from, 0, most);

    return (struct cm_str){from, end ? (size_t)(end - from) : most};
}

/* Octal digits, or (large ones) a binary number with its highest bit set. */
static bool number(const char *from, size_t size, uint64_t *out)
{
    const uint8_t *bytes = (const uint8_t *)from;
    uint64_t value = 0;
    size_t i = 0;

    if (bytes[0] & 0x80) {
        for (i = 1; i < size; i++) {
            if (value >> 56)
                return false;
            value = value << 8 | bytes[i];
        }
        *out = value;
        return bytes[0] == 0x80;
    }
    while (i < size && bytes[i] == ' ')
        i++;
    for (; i < size && bytes[i] >= '0' && bytes[i] <= '7'; i++)
        value = value << 3 | (uint64_t)(bytes[i] - '0');
    *out = value;
    return i == size || bytes[i] == ' ' || bytes[i] == 0;
}

/* The sum of all bytes of the header, its own counting as spaces. */
static bool sum_is_right(const char *header)
{
    uint64_t said, sum = 0;

    for (int i = 0; i < BLOCK; i++)
        sum += i >= SUM && i < SUM + 8 ? ' ' : (uint8_t)header[i];
    return number(header + SUM, 8, &said) && said == sum;
}

/* Records of a pax header: "LENGTH key=value\n". */
static void take_pax(struct cm_str records, struct cm_str *name, uint64_t *size, bool *has_size)
{
    while (records.size) {
        size_t digits = 0, length = 0;

        while (digits < records.size && digits < 9 && records.data[digits] >= '0' &&
               records.data[digits] <= '9')
            length = length * 10 + (size_t)(records.data[digits++] - '0');
        if (length <= digits + 1 || length > records.size)
            return;
        const struct cm_str record = {records.data + digits + 1, length - digits - 2};
        int64_t value;
        if (cm_str_starts(record, "path="))
            *name = cm_str_from(record, 5);
        if (cm_str_starts(record, "size=") && cm_str_to_int64(cm_str_from(record, 5), &value) &&
            value >= 0) {
            *size = (uint64_t)value;
            *has_size = true;
        }
        records.data += length;
        records.size -= length;
    }
}

enum cm_status cm_tar_list(struct cm_arena *arena, struct cm_str bytes, struct cm_tar *out,
                           struct cm_error *err)
{
    struct cm_str long_name = CM_STR_NONE;
    uint64_t long_size = 0;
    bool has_size = false;

    for (size_t at = 0; at + BLOCK <= bytes.size;) {
        const char *header = bytes.data + at;
        struct cm_str name = text(header + NAME, NAME_SIZE);
        const struct cm_str prefix = text(header + PREFIX, PREFIX_SIZE);
        const char kind = header[KIND];
        uint64_t size;

        if (header[0] == 0)
            break; /* blocks of zeros are the end */
        if (!sum_is_right(header) || !number(header + SIZE, 12, &size))
            return cm_fail(err, CM_BAD_MODEL, "the header at byte %zu of the archive is broken",
                           at);
        if (has_size && kind != 'x' && kind != 'g')
            size = long_size;
        at += BLOCK;
        if (size > bytes.size - at)
            return cm_fail(err, CM_BAD_MODEL,
                           "the file '%.*s' of %llu bytes is larger than the archive",
                           CM_STR_FMT(name), (unsigned long long)size);
        const struct cm_str contents = {bytes.data + at, (size_t)size};
        at += contents.size;
        at += (BLOCK - at % BLOCK) % BLOCK;
        if (kind == 'x') {
            take_pax(contents, &long_name, &long_size, &has_size);
            continue;
        }
        if (kind == 'L') {
            long_name = text(contents.data, contents.size);
            continue;
        }
        if (long_name.size)
            name = long_name;
        else if (prefix.size && header[MAGIC + 5] == 0)
            name = cm_arena_printf(arena, "%.*s/%.*s", CM_STR_FMT(prefix), CM_STR_FMT(name));
        if (kind == '0' || kind == 0) {
            if (cm_str_starts(name, "./"))
                name = cm_str_from(name, 2);
            if (out->count >= FILES_MAX)
                return cm_fail(err, CM_LIMIT, "the archive has more than %d files", FILES_MAX);
            *CM_PUSH(arena, out) = (struct cm_tar_file){name, contents};
        }
        long_name = CM_STR_NONE;
        has_size = false;
    }
    return CM_OK;
}
