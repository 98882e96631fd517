/* Changes of files by what they say that they are: archives by their members, headers apart from
 * data, lengths and check sums computed again. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "bytes/inflate.h"
#include "bytes/zip.h"
#include "mutate.h"

#include <ctype.h>
#include <string.h>

struct member {
    struct cm_str name, bytes;
};

struct members {
    CM_ARRAY(struct member);
};

enum { MOST_MEMBERS = 4096, MOST_UNPACKED = 1 << 20, TAR_BLOCK = 512 };

/* ---- members of archives ---- */

static struct cm_str change_inside(struct chance *c, struct cm_str bytes)
{
    const struct cm_str made = mutate_file(c, bytes);

    return made.data ? made : mutate_bytes(c, bytes);
}

/* Contents of one member, mostly; now and then which members there are, and their names. */
static bool change_members(struct chance *c, struct members *list)
{
    if (!list->count)
        return false;
    const size_t at = chance_draw(c, list->count), other = chance_draw(c, list->count);
    struct member *member = &list->items[at];

    if (chance_percent(c, 80)) {
        member->bytes = change_inside(c, member->bytes);
        return true;
    }
    switch (chance_draw(c, 5)) {
    case 0:
        *member = list->items[--list->count];
        break;
    case 1: {
        const struct member copy = *member;
        *CM_PUSH(c->arena, list) = copy;
        break;
    }
    case 2:
        member->name = chance_percent(c, 50) ? list->items[other].name : chance_word(c);
        break;
    case 3:
        member->name = mutate_bytes(c, member->name);
        break;
    default:
        member->bytes = list->items[other].bytes;
        break;
    }
    return true;
}

/* ---- zip ---- */

static bool read_zip(struct chance *c, struct cm_str bytes, struct members *out)
{
    struct cm_error err;
    struct cm_zip zip;

    if (cm_zip_open(bytes, MOST_UNPACKED, &zip, &err))
        return false;
    for (uint64_t i = 0; i < zip.count && i < MOST_MEMBERS; i++) {
        struct cm_zip_member member;
        struct member made = {0};

        if (cm_zip_next(&zip, &member, &err) || cm_zip_locate(&zip, &member, &err) ||
            cm_zip_contents(c->arena, &member, &made.bytes, &err))
            continue;
        made.name = member.name;
        *CM_PUSH(c->arena, out) = made;
    }
    return true;
}

/* A number of a header: now and then not what it should be. */
static void add_told(struct chance *c, struct sheet *sheet, uint64_t number, size_t size)
{
    sheet_add_number(sheet, chance_draw(c, 400) ? number : (uint64_t)chance_number(c), size);
}

static void add_zip_facts(struct chance *c, struct sheet *sheet, const struct member *member)
{
    add_told(c, sheet, 0, 2); /* flags */
    add_told(c, sheet, 0, 2); /* stored */
    sheet_add_number(sheet, 0, 4);
    add_told(c, sheet, cm_crc32(0, member->bytes.data, member->bytes.size), 4);
    add_told(c, sheet, member->bytes.size, 4);
    add_told(c, sheet, member->bytes.size, 4);
    add_told(c, sheet, member->name.size, 2);
}

static struct cm_str write_zip(struct chance *c, const struct members *list)
{
    struct sheet sheet = {.arena = c->arena};
    size_t *places = CM_NEW_ARRAY(c->arena, size_t, list->count + 1);

    for (size_t i = 0; i < list->count; i++) {
        places[i] = sheet.count;
        sheet_add(&sheet, CM_STR("PK\x03\x04"));
        sheet_add_number(&sheet, 20, 2);
        add_zip_facts(c, &sheet, &list->items[i]);
        /* torch.save has data begin at multiples of 64 */
        const size_t pad = 63 - (sheet.count + 2 + list->items[i].name.size + 4 + 63) % 64;
        sheet_add_number(&sheet, 4 + pad, 2);
        sheet_add(&sheet, list->items[i].name);
        sheet_add_number(&sheet, 'F' + 256 * 'B', 2);
        sheet_add_number(&sheet, pad, 2);
        for (size_t z = 0; z < pad; z++)
            sheet_add_number(&sheet, 'Z', 1);
        sheet_add(&sheet, list->items[i].bytes);
    }
    const size_t directory = sheet.count;
    for (size_t i = 0; i < list->count; i++) {
        sheet_add(&sheet, CM_STR("PK\x01\x02"));
        sheet_add_number(&sheet, 20 + 65536 * 20, 4);
        add_zip_facts(c, &sheet, &list->items[i]);
        sheet_add_number(&sheet, 0, 8); /* extra, comment, disk, attributes */
        sheet_add_number(&sheet, 0, 4);
        add_told(c, &sheet, places[i], 4);
        sheet_add(&sheet, list->items[i].name);
    }
    const size_t end = sheet.count;
    sheet_add(&sheet, CM_STR("PK\x05\x06"));
    sheet_add_number(&sheet, 0, 4);
    add_told(c, &sheet, list->count, 2);
    add_told(c, &sheet, list->count, 2);
    add_told(c, &sheet, end - directory, 4);
    add_told(c, &sheet, directory, 4);
    sheet_add_number(&sheet, 0, 2);
    return sheet_text(&sheet);
}

static struct cm_str mutate_zip(struct chance *c, struct cm_str bytes)
{
    struct members members = {0};

    if (!read_zip(c, bytes, &members) || !change_members(c, &members))
        return CM_STR_NONE;
    return write_zip(c, &members);
}

/* ---- tar ---- */

static uint64_t octal(struct cm_str text)
{
    uint64_t number = 0;

    for (size_t i = 0; i < text.size && text.data[i] >= '0' && text.data[i] < '8'; i++)
        number = number * 8 + (uint64_t)(text.data[i] - '0');
    return number;
}

static struct cm_str mutate_tar(struct chance *c, struct cm_str bytes)
{
    struct members members = {0};
    struct sheet sheet = {.arena = c->arena};

    for (size_t at = 0; bytes.size - at >= TAR_BLOCK && members.count < MOST_MEMBERS;) {
        const struct cm_str head = str_part(bytes, at, TAR_BLOCK);
        const uint64_t size = octal(str_part(head, 124, 12));
        if (!head.data[0] || size > bytes.size)
            break;
        *CM_PUSH(c->arena, &members) =
            (struct member){head, str_part(bytes, at + TAR_BLOCK, (size_t)size)};
        at += TAR_BLOCK + ((size_t)size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
        if (at > bytes.size)
            break;
    }
    if (!members.count)
        return CM_STR_NONE;
    struct member *member = &members.items[chance_draw(c, members.count)];
    if (chance_percent(c, 80))
        member->bytes = change_inside(c, member->bytes);
    for (size_t i = 0; i < members.count; i++) {
        unsigned char head[TAR_BLOCK] = {0};
        unsigned sum = 0;

        memcpy(head, members.items[i].name.data, members.items[i].name.size);
        if (chance_percent(c, 10))
            head[chance_draw(c, TAR_BLOCK)] = (unsigned char)("0/.57Lgx\0"[chance_draw(c, 9)]);
        if (chance_percent(c, 95))
            memcpy(head + 124,
                   cm_arena_printf(c->arena, "%011llo",
                                   (unsigned long long)members.items[i].bytes.size)
                       .data,
                   11);
        memset(head + 148, ' ', 8);
        for (size_t k = 0; k < TAR_BLOCK; k++)
            sum += head[k];
        memcpy(head + 148, cm_arena_printf(c->arena, "%06o", sum).data, 7);
        sheet_add(&sheet, (struct cm_str){(const char *)head, TAR_BLOCK});
        sheet_add(&sheet, members.items[i].bytes);
        while (sheet.count % TAR_BLOCK)
            sheet_add_number(&sheet, 0, 1);
    }
    for (int i = 0; i < 2 * TAR_BLOCK / 8; i++)
        sheet_add_number(&sheet, 0, 8);
    return sheet_text(&sheet);
}

/* ---- a header and data ---- */

/* A length of `size` bytes at `at`, a header of so many bytes, data. */
static struct cm_str change_headed(struct chance *c, struct cm_str bytes, size_t at, size_t size)
{
    struct sheet sheet = {.arena = c->arena};
    const uint64_t length = bytes.size >= at + size ? bytes_number(bytes.data + at, size) : 0;
    struct cm_str head = str_part(bytes, at + size, length < bytes.size ? (size_t)length : 0);
    struct cm_str data = str_part(bytes, at + size + head.size, bytes.size);

    if (!head.size)
        return CM_STR_NONE;
    if (chance_percent(c, 85)) {
        const struct cm_str outer = c->other;
        const uint64_t told = outer.size > at + size ? bytes_number(outer.data + at, size) : 0;
        c->other = str_part(outer, at + size, told < outer.size ? (size_t)told : 0);
        head = mutate_text(c, head);
        c->other = outer;
    } else {
        data = mutate_bytes(c, data);
    }
    if (!head.data)
        return CM_STR_NONE;
    sheet_add(&sheet, str_part(bytes, 0, at));
    sheet_add_number(&sheet, chance_percent(c, 98) ? head.size : (uint64_t)chance_number(c), size);
    sheet_add(&sheet, head);
    sheet_add(&sheet, data);
    return sheet_text(&sheet);
}

static struct cm_str mutate_safetensors(struct chance *c, struct cm_str bytes)
{
    return change_headed(c, bytes, 0, 8);
}

static struct cm_str mutate_npy(struct chance *c, struct cm_str bytes)
{
    return change_headed(c, bytes, 8, bytes.data[6] == 1 ? 2 : 4);
}

/* ---- inputs of targets that write a folder ---- */

/* Records of a number, a length in two bytes, so many bytes. */
struct cm_str mutate_records(struct chance *c, struct cm_str bytes)
{
    struct members members = {0};
    struct sheet sheet = {.arena = c->arena};

    for (size_t at = 0; bytes.size - at >= 3;) {
        const struct cm_str contents =
            str_part(bytes, at + 3, (size_t)bytes_number(bytes.data + at + 1, 2));
        *CM_PUSH(c->arena, &members) = (struct member){str_part(bytes, at, 1), contents};
        at += 3 + contents.size;
    }
    if (!change_members(c, &members))
        return CM_STR_NONE;
    for (size_t i = 0; i < members.count; i++) {
        const struct cm_str contents = str_part(members.items[i].bytes, 0, UINT16_MAX);
        sheet_add_number(
            &sheet, members.items[i].name.size ? (uint8_t)members.items[i].name.data[0] : 0, 1);
        sheet_add_number(&sheet, contents.size, 2);
        sheet_add(&sheet, contents);
    }
    return sheet_text(&sheet);
}

/* A count of entries, each with the length of its key, that of its value in two bytes, and both;
 * then what is left. */
struct cm_str mutate_entries(struct chance *c, struct cm_str bytes)
{
    struct members members = {0};
    struct sheet sheet = {.arena = c->arena};
    const size_t wanted = bytes.size ? (uint8_t)bytes.data[0] : 0;
    size_t at = 1;

    while (members.count < wanted && bytes.size - at >= 3) {
        const size_t key = (uint8_t)bytes.data[at];
        const size_t value = (size_t)bytes_number(bytes.data + at + 1, 2);
        if (key + value > bytes.size - at - 3)
            break;
        *CM_PUSH(c->arena, &members) =
            (struct member){str_part(bytes, at + 3, key), str_part(bytes, at + 3 + key, value)};
        at += 3 + key + value;
    }
    if (!change_members(c, &members))
        return CM_STR_NONE;
    const size_t count = members.count < 255 ? members.count : 255;
    sheet_add_number(&sheet, count, 1);
    for (size_t i = 0; i < count; i++) {
        const struct cm_str key = str_part(members.items[i].name, 0, 255);
        const struct cm_str value = str_part(members.items[i].bytes, 0, UINT16_MAX);
        sheet_add_number(&sheet, key.size, 1);
        sheet_add_number(&sheet, value.size, 2);
        sheet_add(&sheet, key);
        sheet_add(&sheet, value);
    }
    sheet_add(&sheet, str_part(bytes, at, bytes.size));
    return sheet_text(&sheet);
}

/* ---- what a file is ---- */

static bool starts_with(struct cm_str bytes, size_t at, const char *text, size_t size)
{
    return bytes.size >= at + size && !memcmp(bytes.data + at, text, size);
}

static bool is_zip(struct cm_str bytes)
{
    return starts_with(bytes, 0, "PK\x03\x04", 4);
}

static bool is_tar(struct cm_str bytes)
{
    return starts_with(bytes, 257, "ustar", 5);
}

static bool is_hdf5(struct cm_str bytes)
{
    return starts_with(bytes, 0, "\x89HDF", 4);
}

static bool is_npy(struct cm_str bytes)
{
    return bytes.size > 12 && starts_with(bytes, 0, "\x93NUMPY", 6);
}

static bool is_safetensors(struct cm_str bytes)
{
    return bytes.size > 9 && bytes.data[8] == '{' && bytes_number(bytes.data, 8) < bytes.size;
}

static bool is_pickle(struct cm_str bytes)
{
    return bytes.size > 2 && (bytes.data[bytes.size - 1] == '.' || !bytes.data[1]) &&
           ((uint8_t)bytes.data[0] == 0x80 || strchr("(]}cIKM", bytes.data[0]));
}

/* torch.save's legacy form: pickles one after the other, the first a number of ten bytes. */
static bool is_legacy(struct cm_str bytes)
{
    return starts_with(bytes, 0, "\x80\x02\x8a\x0a", 4);
}

static bool is_flatbuffer(struct cm_str bytes)
{
    return bytes.size > 8 && isupper((unsigned char)bytes.data[4]) &&
           isupper((unsigned char)bytes.data[5]) && isupper((unsigned char)bytes.data[6]);
}

static bool is_text(struct cm_str bytes)
{
    size_t printable = 0;

    for (size_t i = 0; i < bytes.size; i++)
        printable += isprint((unsigned char)bytes.data[i]) || isspace((unsigned char)bytes.data[i]);
    return bytes.size && printable * 20 >= bytes.size * 19;
}

static bool is_msgpack(struct cm_str bytes)
{
    const uint8_t first = bytes.size ? (uint8_t)bytes.data[0] : 0;

    return (first >= 0x80 && first < 0xa0) || first >= 0xdc;
}

static bool is_any(struct cm_str bytes)
{
    return bytes.size > 0;
}

static const struct {
    bool (*is)(struct cm_str bytes);
    mutate_fn *mutate;
} kinds[] = {
    {is_zip, mutate_zip},
    {is_tar, mutate_tar},
    {is_hdf5, mutate_offsets},
    {is_npy, mutate_npy},
    {is_safetensors, mutate_safetensors},
    {is_legacy, mutate_pickle},
    {is_pickle, mutate_pickle},
    {is_text, mutate_text},
    {is_flatbuffer, mutate_offsets},
    {is_msgpack, mutate_msgpack},
    {is_any, mutate_wire},
};

struct cm_str mutate_file(struct chance *c, struct cm_str bytes)
{
    for (size_t i = 0; i < CM_COUNT(kinds); i++)
        if (kinds[i].is(bytes)) {
            const struct cm_str made = kinds[i].mutate(c, bytes);
            if (made.data)
                return made;
        }
    return CM_STR_NONE;
}
