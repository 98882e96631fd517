/* Reading MessagePack as flax writes it. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/msgpack.h"

#include "base/number.h"
#include "bytes/numpy_types.h"

/* What the first byte of an item says: what follows and how many bytes tell its length or value. */
enum what { WRONG, NIL, TRUTH, UNSIGNED, SIGNED, REAL, TEXT, BYTES, LIST, MAP, EXT, FIXED_EXT };

struct head {
    enum what what;
    unsigned bytes;
};

static const struct head heads[32] = {
    {NIL, 0},        {WRONG, 0},    {TRUTH, 0},     {TRUTH, 1},     {BYTES, 1},     {BYTES, 2},
    {BYTES, 4},      {EXT, 1},      {EXT, 2},       {EXT, 4},       {REAL, 4},      {REAL, 8},
    {UNSIGNED, 1},   {UNSIGNED, 2}, {UNSIGNED, 4},  {UNSIGNED, 8},  {SIGNED, 1},    {SIGNED, 2},
    {SIGNED, 4},     {SIGNED, 8},   {FIXED_EXT, 1}, {FIXED_EXT, 2}, {FIXED_EXT, 4}, {FIXED_EXT, 8},
    {FIXED_EXT, 16}, {TEXT, 1},     {TEXT, 2},      {TEXT, 4},      {LIST, 2},      {LIST, 4},
    {MAP, 2},        {MAP, 4},
};

struct msgpack {
    struct cm_arena *arena;
    struct cm_str file;
    const uint8_t *bytes;
    size_t size, at;
    size_t items; /* made so far */
};

static enum cm_status bad(const struct msgpack *m, struct cm_error *err, const char *what)
{
    return cm_fail(err, CM_BAD_MODEL, "at byte %zu of the msgpack data: %s", m->at, what);
}

static enum cm_status take(struct msgpack *m, size_t size, struct cm_str *out, struct cm_error *err)
{
    if (size > m->size - m->at)
        return bad(m, err, "the data ends in the middle of an item");
    *out = (struct cm_str){(const char *)m->bytes + m->at, size};
    m->at += size;
    return CM_OK;
}

static enum cm_status take_number(struct msgpack *m, unsigned bytes, uint64_t *out,
                                  struct cm_error *err)
{
    struct cm_str text = CM_STR_NONE;

    CM_TRY(take(m, bytes, &text, err));
    *out = 0;
    for (size_t i = 0; i < bytes; i++)
        *out = *out << 8 | (uint8_t)text.data[i];
    return CM_OK;
}

static enum cm_status read_item(struct msgpack *m, int depth, struct cm_item **out,
                                struct cm_error *err);

static enum cm_status read_entries(struct msgpack *m, uint64_t count, int depth,
                                   struct cm_item *item, struct cm_error *err)
{
    for (uint64_t i = 0; i < count; i++) {
        struct cm_item *key = NULL, *value;

        if (item->kind == CM_ITEM_MAP)
            CM_TRY(read_item(m, depth + 1, &key, err));
        CM_TRY(read_item(m, depth + 1, &value, err));
        cm_item_set(m->arena, item, key, value);
    }
    return CM_OK;
}

/* [shape, "float32", bytes], itself msgpack. */
static enum cm_status read_array(struct msgpack *m, struct cm_str payload, int depth,
                                 struct cm_item *item, struct cm_error *err)
{
    struct msgpack inner = {.arena = m->arena,
                            .bytes = (const uint8_t *)payload.data,
                            .size = payload.size,
                            .items = m->items};
    struct cm_item *list;
    struct cm_shape shape;
    struct cm_str type;
    enum cm_dtype dtype;

    CM_TRY(read_item(&inner, depth + 1, &list, err));
    m->items = inner.items;
    const struct cm_item *bytes = cm_item_at(list, 2);
    if (cm_item_count(list) != 3 || list->kind != CM_ITEM_LIST ||
        !cm_item_is_shape(cm_item_at(list, 0), &shape) || bytes->kind != CM_ITEM_BYTES ||
        inner.at != inner.size)
        return bad(m, err, "an array is not a list of shape, type and bytes");
    if (!cm_item_is_text(cm_item_at(list, 1), &type) || !cm_numpy_dtype(type, &dtype))
        return bad(m, err, "an array is of a type that is not known");
    item->kind = CM_ITEM_TENSOR;
    return cm_error_context(
        err, cm_saved_tensor_new(m->arena, dtype, &shape, bytes->text, m->file, &item->tensor, err),
        "at byte %zu of the msgpack data", m->at);
}

static enum cm_status read_extension(struct msgpack *m, size_t size, int depth,
                                     struct cm_item *item, struct cm_error *err)
{
    struct cm_str payload;
    uint64_t type;

    CM_TRY(take_number(m, 1, &type, err));
    CM_TRY(take(m, size, &payload, err));
    if (type == CM_MSGPACK_ARRAY || type == CM_MSGPACK_SCALAR)
        return read_array(m, payload, depth, item, err);
    struct cm_item *bytes = cm_item_new(m->arena, CM_ITEM_BYTES);
    bytes->text = payload;
    item->kind = CM_ITEM_OBJECT;
    item->text = type == CM_MSGPACK_COMPLEX
                     ? CM_STR("complex")
                     : cm_arena_printf(m->arena, "msgpack extension %d", (int)type);
    cm_item_append(m->arena, item, bytes);
    return CM_OK;
}

enum { CHUNKS_MAX = 4096 }; /* of 1 GiB each */

/* An array of more than 1 GiB: its elements in a row, in chunks that are arrays. */
static enum cm_status join_chunks(struct msgpack *m, struct cm_item *item, struct cm_error *err)
{
    const struct cm_item *chunks = cm_item_get(item, "chunks");
    struct cm_saved_tensor *tensor = CM_NEW(m->arena, struct cm_saved_tensor);
    int64_t at = 0, sum;

    if (!cm_item_is_shape(cm_item_get(item, "shape"), &tensor->shape) || !cm_item_count(chunks) ||
        cm_item_count(chunks) > CHUNKS_MAX)
        return bad(m, err, "an array in chunks has no shape or no chunks");
    for (size_t i = 0; i < cm_item_count(chunks); i++) {
        const struct cm_item *chunk = cm_item_nth(chunks, i);

        if (!chunk || chunk->kind != CM_ITEM_TENSOR || chunk->tensor->pieces.count != 1 ||
            (i && chunk->tensor->dtype != tensor->dtype))
            return bad(m, err, "a chunk of an array is not an array of its type");
        struct cm_saved_piece *piece = cm_saved_piece_add(m->arena, tensor, false);
        tensor->dtype = chunk->tensor->dtype;
        piece->bytes = chunk->tensor->pieces.items[0].bytes;
        piece->file = m->file;
        piece->is_run = true;
        piece->first[0] = at;
        piece->size[0] = cm_shape_elements(&chunk->tensor->shape);
        if (!cm_dim_add(at, piece->size[0], &sum))
            return bad(m, err, "the chunks of an array are too large");
        at = sum;
    }
    CM_TRY(cm_error_context(err, cm_saved_tensor_check(m->arena, tensor, err),
                            "at byte %zu of the msgpack data: an array in chunks", m->at));
    *item = (struct cm_item){.kind = CM_ITEM_TENSOR, .tensor = tensor};
    return CM_OK;
}

static struct head head_of(uint8_t byte, uint64_t *value)
{
    static const struct {
        uint8_t mask, is;
        enum what what;
    } fixed[] = {{0x80, 0x00, UNSIGNED},
                 {0xf0, 0x80, MAP},
                 {0xf0, 0x90, LIST},
                 {0xe0, 0xa0, TEXT},
                 {0xe0, 0xe0, SIGNED}};

    for (size_t i = 0; i < CM_COUNT(fixed); i++)
        if ((byte & fixed[i].mask) == fixed[i].is) {
            *value = fixed[i].what == SIGNED ? byte : byte & (uint8_t)~fixed[i].mask;
            return (struct head){fixed[i].what, 0};
        }
    return heads[byte - 0xc0];
}

/* A number of so many bytes with its sign. */
static int64_t with_sign(uint64_t value, unsigned bytes)
{
    const unsigned shift = 64 - 8 * (bytes ? bytes : 1);

    return (int64_t)(value << shift) >> shift;
}

static double to_real(uint64_t value, unsigned bytes)
{
    const uint32_t half = (uint32_t)value;
    float single;
    double real;

    memcpy(&single, &half, sizeof single);
    memcpy(&real, &value, sizeof real);
    return bytes == 4 ? (double)single : real;
}

static enum cm_status read_item(struct msgpack *m, int depth, struct cm_item **out,
                                struct cm_error *err)
{
    static const enum cm_item_kind kinds[] = {
        [NIL] = CM_ITEM_NONE,    [TRUTH] = CM_ITEM_BOOL,       [UNSIGNED] = CM_ITEM_INT,
        [SIGNED] = CM_ITEM_INT,  [REAL] = CM_ITEM_REAL,        [TEXT] = CM_ITEM_TEXT,
        [BYTES] = CM_ITEM_BYTES, [LIST] = CM_ITEM_LIST,        [MAP] = CM_ITEM_MAP,
        [EXT] = CM_ITEM_OBJECT,  [FIXED_EXT] = CM_ITEM_OBJECT,
    };
    uint64_t value = 0;
    uint64_t byte;

    if (depth > CM_ITEM_DEPTH_MAX || ++m->items > CM_ITEM_WALK_MAX)
        return bad(m, err, depth > CM_ITEM_DEPTH_MAX ? "it is nested too deep" : "too many items");
    CM_TRY(take_number(m, 1, &byte, err));
    const struct head head = head_of((uint8_t)byte, &value);
    if (head.what == WRONG)
        return bad(m, err, "byte 0xc1 begins no item");
    if (head.what == FIXED_EXT || head.what == TRUTH)
        value = head.bytes;
    else if (head.bytes)
        CM_TRY(take_number(m, head.bytes, &value, err));
    struct cm_item *item = *out = cm_item_new(m->arena, kinds[head.what]);
    switch (head.what) {
    case TRUTH:
        item->truth = value;
        break;
    case UNSIGNED:
        item->number = (int64_t)value;
        if (value > INT64_MAX) {
            item->kind = CM_ITEM_TEXT;
            item->text = cm_arena_printf(m->arena, "%llu", (unsigned long long)value);
        }
        break;
    case SIGNED:
        item->number = with_sign(value, head.bytes);
        break;
    case REAL:
        item->real = to_real(value, head.bytes);
        break;
    case TEXT:
    case BYTES:
        return take(m, value, &item->text, err);
    case LIST:
    case MAP:
        if (value > m->size - m->at)
            return bad(m, err, "a list or map has more entries than there are bytes");
        CM_TRY(read_entries(m, value, depth, item, err));
        return cm_item_get(item, CM_MSGPACK_CHUNKED) ? join_chunks(m, item, err) : CM_OK;
    case EXT:
    case FIXED_EXT:
        return read_extension(m, value, depth, item, err);
    default:
        break;
    }
    return CM_OK;
}

enum cm_status cm_msgpack_read(struct cm_arena *arena, struct cm_str bytes, struct cm_str file,
                               struct cm_item **out, struct cm_error *err)
{
    struct msgpack m = {
        .arena = arena, .file = file, .bytes = (const uint8_t *)bytes.data, .size = bytes.size};

    CM_TRY(read_item(&m, 0, out, err));
    return m.at == m.size ? CM_OK : bad(&m, err, "there is more after its end");
}

bool cm_msgpack_is_map(struct cm_str head)
{
    const uint8_t *at = (const uint8_t *)head.data;
    size_t skip = 1;

    if (head.size < 4 || at[0] == 0x80 ||
        ((at[0] & 0xf0) != 0x80 && at[0] != 0xde && at[0] != 0xdf))
        return false;
    skip += at[0] == 0xde ? 2 : at[0] == 0xdf ? 4 : 0;
    if (skip + 2 > head.size || ((at[skip] & 0xe0) != 0xa0 && at[skip] != 0xd9))
        return false;
    const size_t size = at[skip] == 0xd9 ? at[skip + 1] : at[skip] & 31;
    skip += at[skip] == 0xd9 ? 2 : 1;
    if (size == 0)
        return false;
    for (size_t i = skip; i < head.size && i < skip + size; i++)
        if (at[i] < 0x20 || at[i] == 0x7f)
            return false;
    return true;
}
