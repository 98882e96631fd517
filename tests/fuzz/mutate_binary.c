/* Changes of binary formats by their elements: opcodes of pickles, values of msgpack, fields of
 * protobuf, numbers and addresses of HDF5 and flatbuffers. */
// SPDX-License-Identifier: Apache-2.0
#include "mutate.h"

#include <string.h>

enum { MOST_ELEMENTS = 1 << 15 };

/* ---- pickles ---- */

enum argument { NONE, FIXED, LINE, LINES, LENGTH };

struct opcode_form {
    uint8_t code;
    uint8_t argument; /* enum argument */
    uint8_t size;     /* of the argument, or of its length */
};

/* What is not listed has no argument. */
static const struct opcode_form forms[] = {
    {'q', FIXED, 1},  {'r', FIXED, 4},  {'h', FIXED, 1},   {'j', FIXED, 4},   {'K', FIXED, 1},
    {'M', FIXED, 2},  {'J', FIXED, 4},  {'G', FIXED, 8},   {0x80, FIXED, 1},  {0x95, FIXED, 8},
    {0x82, FIXED, 1}, {0x83, FIXED, 2}, {0x84, FIXED, 4},  {'X', LENGTH, 4},  {0x8c, LENGTH, 1},
    {'C', LENGTH, 1}, {'B', LENGTH, 4}, {0x8e, LENGTH, 8}, {0x96, LENGTH, 8}, {0x8d, LENGTH, 8},
    {'U', LENGTH, 1}, {'T', LENGTH, 4}, {0x8a, LENGTH, 1}, {0x8b, LENGTH, 4}, {'c', LINES, 0},
    {'i', LINES, 0},  {'I', LINE, 0},   {'L', LINE, 0},    {'F', LINE, 0},    {'V', LINE, 0},
    {'S', LINE, 0},   {'g', LINE, 0},   {'p', LINE, 0},    {'P', LINE, 0},
};

static struct opcode_form form_of(uint8_t code)
{
    for (size_t i = 0; i < CM_COUNT(forms); i++)
        if (forms[i].code == code)
            return forms[i];
    return (struct opcode_form){code, NONE, 0};
}

static size_t line_size(struct cm_str bytes, size_t at)
{
    const char *end = at < bytes.size ? memchr(bytes.data + at, '\n', bytes.size - at) : NULL;

    return end ? (size_t)(end + 1 - bytes.data) - at : bytes.size - at;
}

static size_t opcode_size(struct cm_str bytes, size_t at)
{
    const struct opcode_form form = form_of((uint8_t)bytes.data[at]);
    size_t size = 1;

    if (form.argument == FIXED)
        size += form.size;
    if (form.argument == LINE || form.argument == LINES)
        size += line_size(bytes, at + 1);
    if (form.argument == LINES)
        size += line_size(bytes, at + size);
    if (form.argument == LENGTH && bytes.size - at > form.size) {
        const uint64_t length = bytes_number(bytes.data + at + 1, form.size);
        size += form.size + (length < bytes.size ? (size_t)length : bytes.size);
    }
    return size < bytes.size - at ? size : bytes.size - at;
}

static void change_opcode(struct chance *c, struct cm_str *op)
{
    static const uint8_t plain[] = "NRQ()]}tusea0123lbd.\x81\x85\x86\x87\x88\x89\x8f\x90\x93\x94";
    const struct opcode_form form = form_of((uint8_t)op->data[0]);
    struct sheet made = {.arena = c->arena};

    if (form.argument == NONE || chance_percent(c, 10)) {
        sheet_add_number(&made, plain[chance_draw(c, sizeof plain - 1)], 1);
    } else if (form.argument == FIXED) {
        sheet_add_number(&made, form.code, 1);
        sheet_add_number(&made, (uint64_t)chance_number(c), form.size);
    } else if (form.argument == LENGTH) {
        struct cm_str text = str_part(*op, 1 + form.size, op->size);
        text = chance_percent(c, 60) ? chance_word(c) : mutate_bytes(c, text);
        sheet_add_number(&made, form.code, 1);
        sheet_add_number(&made, chance_percent(c, 95) ? text.size : (uint64_t)chance_number(c),
                         form.size);
        sheet_add(&made, text);
    } else {
        sheet_add_number(&made, form.code, 1);
        for (int i = 0; i <= (form.argument == LINES); i++) {
            const struct cm_str line =
                chance_percent(c, 50)
                    ? chance_word(c)
                    : cm_arena_printf(c->arena, "%lld", (long long)chance_number(c));
            sheet_add(&made, line);
            sheet_add(&made, CM_STR("\n"));
        }
    }
    *op = sheet_text(&made);
}

static void read_opcodes(struct chance *c, struct cm_str bytes, struct pieces *ops)
{
    for (size_t at = 0; at < bytes.size && ops->count < MOST_ELEMENTS;) {
        const size_t size = ops->count + 1 < MOST_ELEMENTS ? opcode_size(bytes, at) : bytes.size;

        *CM_PUSH(c->arena, ops) = str_part(bytes, at, size);
        at += size;
    }
}

struct cm_str mutate_pickle(struct chance *c, struct cm_str bytes)
{
    struct pieces ops = {0}, others = {0};

    read_opcodes(c, bytes, &ops);
    if (!ops.count)
        return CM_STR_NONE;
    for (size_t times = 1 + chance_draw(c, 3); times > 0 && ops.count; times--) {
        if (chance_percent(c, 60))
            change_opcode(c, pieces_some(c, &ops));
        else
            pieces_change(c, &ops);
    }
    if (c->other.size && ops.count) { /* a run of the other one */
        read_opcodes(c, c->other, &others);
        const size_t from = chance_draw(c, others.count), at = chance_draw(c, ops.count);
        for (size_t i = 0; i < 8 && from + i < others.count && at + i < ops.count; i++)
            ops.items[at + i] = others.items[from + i];
    }
    return pieces_join(c, &ops);
}

/* ---- msgpack ---- */

enum { MOST_DEPTH = 64 };

/* The value at `at`: where it ends, values inside it included; 0: it does not end. Each value is a
 * piece of *list. */
static size_t value_end(struct chance *c, struct cm_str bytes, size_t at, int depth,
                        struct pieces *list)
{
    static const uint8_t sizes[32] = {
        /* c0 */ 0, 0, 0, 0, 1, 2, 4, 1, 2,  4, 4, 8, 1, 2, 4, 8,
        /* d0 */ 1, 2, 4, 8, 2, 3, 5, 9, 17, 1, 2, 4, 2, 4, 2, 4};
    size_t inside = 0, end = at + 1;

    if (at >= bytes.size || depth > MOST_DEPTH || list->count >= MOST_ELEMENTS)
        return 0;
    const uint8_t code = (uint8_t)bytes.data[at];
    if (code < 0x80 || code >= 0xe0) {
        inside = 0;
    } else if (code < 0xa0) {
        inside = (size_t)(code & 15) << (code < 0x90);
    } else if (code < 0xc0) {
        end += code & 31;
    } else {
        const size_t size = sizes[code - 0xc0];
        const uint64_t swapped =
            size <= 4 && end + size <= bytes.size && size
                ? __builtin_bswap64(bytes_number(bytes.data + end, size)) >> (64 - 8 * size)
                : 0;
        end += size;
        if ((code >= 0xc4 && code <= 0xc6) || (code >= 0xd9 && code <= 0xdb))
            end += (size_t)swapped;
        else if (code >= 0xc7 && code <= 0xc9)
            end += (size_t)swapped + 1;
        else if (code >= 0xdc)
            inside = (size_t)swapped << (code >= 0xde);
    }
    for (size_t i = 0; i < inside && end; i++)
        end = value_end(c, bytes, end, depth + 1, list);
    if (!end || end > bytes.size)
        return 0;
    *CM_PUSH(c->arena, list) = str_part(bytes, at, end - at);
    return end;
}

static struct cm_str new_value(struct chance *c)
{
    struct sheet made = {.arena = c->arena};
    const uint64_t number = (uint64_t)chance_number(c);

    switch (chance_draw(c, 5)) {
    case 0: { /* text */
        const struct cm_str word = chance_word(c);
        sheet_add_number(&made, 0xd9, 1);
        sheet_add_number(&made, word.size, 1);
        sheet_add(&made, word);
        break;
    }
    case 1: /* any head, with a number after it */
        sheet_add_number(&made, 0xc0 + chance_draw(c, 32), 1);
        sheet_add_number(&made, __builtin_bswap64(number), chance_draw(c, 9));
        break;
    case 2:
        sheet_add_number(&made, 0xd3, 1);
        sheet_add_number(&made, __builtin_bswap64(number), 8);
        break;
    case 3: /* a small one, or an empty list, map or text */
        sheet_add_number(
            &made,
            (uint64_t[]){0, 1, 0x7f, 0x80, 0x90, 0xa0, 0xc0, 0xc2, 0xc3, 0xff}[chance_draw(c, 10)],
            1);
        break;
    default: { /* Flax writes arrays as extensions */
        sheet_add_number(&made, 0xc7, 1);
        sheet_add_number(&made, 4, 1);
        sheet_add_number(&made, 1 + chance_draw(c, 3), 1);
        sheet_add_number(&made, number, 4);
        break;
    }
    }
    return sheet_text(&made);
}

/* One self-delimiting piece of bytes in the place of another, so that counts around it still fit.
 */
static struct cm_str put_piece(struct chance *c, struct cm_str bytes, struct cm_str old,
                               struct cm_str by)
{
    struct sheet made = {.arena = c->arena};
    const size_t at = (size_t)(old.data - bytes.data);

    sheet_add(&made, str_part(bytes, 0, at));
    sheet_add(&made, by);
    sheet_add(&made, str_part(bytes, at + old.size, bytes.size));
    return sheet_text(&made);
}

struct cm_str mutate_msgpack(struct chance *c, struct cm_str bytes)
{
    struct pieces values = {0}, others = {0};

    for (size_t at = 0, end; (end = value_end(c, bytes, at, 0, &values)) > at; at = end)
        continue;
    for (size_t at = 0, end; (end = value_end(c, c->other, at, 0, &others)) > at; at = end)
        continue;
    const struct cm_str *old = pieces_some(c, &values);
    if (!old)
        return CM_STR_NONE;
    struct cm_str by = new_value(c);
    if (chance_percent(c, 40))
        by = *pieces_some(c, others.count && chance_percent(c, 60) ? &others : &values);
    else if (chance_percent(c, 30))
        by = mutate_bytes(c, *old);
    return put_piece(c, bytes, *old, by);
}

/* ---- protobuf ---- */

static size_t varint_size(struct cm_str bytes, size_t at, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < 10 && at + i < bytes.size; i++) {
        *out |= (uint64_t)(bytes.data[at + i] & 127) << 7 * i;
        if (!(bytes.data[at + i] & 128))
            return i + 1;
    }
    return 0;
}

static void add_varint(struct sheet *sheet, uint64_t number)
{
    for (; number > 127; number >>= 7)
        sheet_add_number(sheet, (number & 127) | 128, 1);
    sheet_add_number(sheet, number, 1);
}

struct wire_field {
    struct cm_str whole, contents; /* contents: of a field of bytes */
    uint64_t tag;
};

static size_t read_field(struct cm_str bytes, size_t at, struct wire_field *out)
{
    uint64_t number;
    size_t size = varint_size(bytes, at, &out->tag), more = 0;

    out->contents = CM_STR_NONE;
    if (!size || out->tag < 8)
        return 0;
    switch (out->tag & 7) {
    case 0:
        more = varint_size(bytes, at + size, &number);
        break;
    case 1:
        more = 8;
        break;
    case 2:
        more = varint_size(bytes, at + size, &number);
        if (!more || number > bytes.size - at - size - more)
            return 0;
        out->contents = str_part(bytes, at + size + more, (size_t)number);
        more += (size_t)number;
        break;
    case 5:
        more = 4;
        break;
    default:
        break;
    }
    if (!more || more > bytes.size - at - size)
        return 0;
    out->whole = str_part(bytes, at, size + more);
    return size + more;
}

static struct cm_str new_field(struct chance *c, const struct wire_field *old, int depth);

static struct cm_str change_message(struct chance *c, struct cm_str bytes, int depth)
{
    struct pieces fields = {0};
    struct wire_field field;
    size_t at = 0, size;

    while (at < bytes.size && fields.count < MOST_ELEMENTS &&
           (size = read_field(bytes, at, &field)) > 0) {
        *CM_PUSH(c->arena, &fields) = field.whole;
        at += size;
    }
    if (at < bytes.size || !fields.count)
        return CM_STR_NONE;
    if (chance_percent(c, 25)) {
        pieces_change(c, &fields);
    } else {
        struct cm_str *some = pieces_some(c, &fields);
        read_field(*some, 0, &field);
        *some = new_field(c, &field, depth);
    }
    return pieces_join(c, &fields);
}

static struct cm_str new_field(struct chance *c, const struct wire_field *old, int depth)
{
    struct sheet made = {.arena = c->arena};
    const uint64_t tag =
        chance_percent(c, 92) ? old->tag : (1 + chance_draw(c, 20)) << 3 | (old->tag & 7);

    add_varint(&made, tag);
    if ((tag & 7) == 2) {
        struct cm_str inside = CM_STR_NONE;
        if (old->contents.size && depth < 8 && chance_percent(c, 80))
            inside = change_message(c, old->contents, depth + 1);
        if (!inside.data)
            inside = chance_percent(c, 50) ? chance_word(c) : mutate_bytes(c, old->contents);
        add_varint(&made, chance_percent(c, 98) ? inside.size : (uint64_t)chance_number(c));
        sheet_add(&made, inside);
    } else if ((tag & 7) == 0) {
        add_varint(&made, (uint64_t)chance_number(c));
    } else {
        sheet_add_number(&made, (uint64_t)chance_number(c), (tag & 7) == 1 ? 8 : 4);
    }
    return sheet_text(&made);
}

struct cm_str mutate_wire(struct chance *c, struct cm_str bytes)
{
    return change_message(c, bytes, 0);
}

/* ---- numbers in place ---- */

/* A number becomes an edge, another number of the file, or the place of something in the file. */
static uint64_t new_offset(struct chance *c, struct cm_str bytes, size_t size, uint64_t now)
{
    switch (chance_draw(c, 5)) {
    case 0:
        return (uint64_t)chance_number(c);
    case 1:
        return now + chance_draw(c, 17) - 8;
    case 2:
        return chance_draw(c, bytes.size + 8);
    case 3:
        return bytes_number(bytes.data + chance_draw(c, bytes.size - size + 1), size);
    default: /* where objects of HDF5 begin */
        for (size_t at = chance_draw(c, bytes.size); at + 4 < bytes.size; at++)
            if (!memcmp(bytes.data + at, "TREE", 4) || !memcmp(bytes.data + at, "SNOD", 4) ||
                !memcmp(bytes.data + at, "HEAP", 4) || !memcmp(bytes.data + at, "OHDR", 4))
                return at;
        return bytes.size;
    }
}

struct cm_str mutate_offsets(struct chance *c, struct cm_str bytes)
{
    if (bytes.size < 16)
        return CM_STR_NONE;
    char *copy = cm_arena_alloc(c->arena, bytes.size);
    memcpy(copy, bytes.data, bytes.size);
    for (size_t times = 1 + chance_draw(c, 4); times > 0; times--) {
        const size_t size = (size_t)1 << chance_draw(c, 4);
        size_t at = chance_draw(c, bytes.size - size + 1);

        if (chance_percent(c, 80))
            at = at / size * size;
        while (chance_percent(c, 97) && at + 2 * size < bytes.size && !copy[at])
            at += size; /* zeros are mostly empty room */
        const uint64_t number = new_offset(c, bytes, size, bytes_number(copy + at, size));
        for (size_t i = 0; i < size; i++)
            copy[at + i] = (char)(number >> 8 * i & 255);
    }
    return (struct cm_str){copy, bytes.size};
}
