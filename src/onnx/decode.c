/* Decoding any message by its rows, in two passes: the first checks the bytes and counts each
 * field, so that the second can fill lists of exactly the right length. Both passes step over what
 * lies inside a child, which the child's own passes read, so the work is in proportion to the
 * bytes. The bytes may be a mapped file that another program changes between the passes, so the
 * second one trusts no count: it stores what there is room for and fails on anything else. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/decode.h"

#include "base/machine.h"
#include "base/number.h"
#include "onnx/wire.h"

struct decoder {
    struct cm_arena *arena;
    struct cm_error *err;
    size_t budget; /* bytes that structs and lists may still take */
};

/* What a message's bytes hold of one field. */
struct tally {
    size_t times;  /* it appears */
    size_t items;  /* in all appearances together */
    size_t bytes;  /* of numbers left as they are */
    size_t met;    /* by the second pass: appearances */
    size_t filled; /* by the second pass: items, or bytes */
};

enum { MAX_FIELDS = 32 }; /* struct cm_msg has that many bits */

/* struct cm_packed stands for a list of numbers, and costs nothing while it is a view. */
static bool is_packed(enum cm_field_kind kind)
{
    return kind == CM_FIELD_PACKED_VARINT || kind == CM_FIELD_PACKED_4 || kind == CM_FIELD_PACKED_8;
}

CM_PRINTF(4, 5)
static enum cm_status fail_at(const struct decoder *d, const struct cm_wire_place *place,
                              enum cm_status status, const char *format, ...)
{
    char path[512], why[256];
    va_list args;

    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    cm_wire_place_text(place, NULL, path, sizeof path);
    return cm_fail(d->err, status, "%s%s%s", path, path[0] ? ": " : "", why);
}

static enum cm_status fail_on_wire(const struct decoder *d, const struct cm_wire_place *place,
                                   enum cm_wire_fault fault, const struct cm_wire_field *at)
{
    switch (fault) {
    case CM_WIRE_OK:
        break;
    case CM_WIRE_CUT:
        return fail_at(d, place, CM_BAD_MODEL, "its bytes end inside a field");
    case CM_WIRE_LONG:
        return fail_at(d, place, CM_BAD_MODEL, "a number has more than 10 bytes");
    case CM_WIRE_BAD_NUMBER:
        return fail_at(d, place, CM_BAD_MODEL, "a field number is out of range");
    case CM_WIRE_BAD_TYPE:
        return fail_at(d, place, CM_BAD_MODEL, "field number %lu has wire type %u, which is %s",
                       (unsigned long)at->number, at->type,
                       at->type < CM_WIRE_FIXED32 ? "a group" : "unknown");
    case CM_WIRE_PAST_END:
        return fail_at(d, place, CM_BAD_MODEL,
                       "length %llu runs past the end, the file may be cut short",
                       (unsigned long long)at->value);
    }
    return CM_OK;
}

/* Counts the numbers packed into an appearance of field, and checks that they are whole. */
static enum cm_status count_packed(const struct decoder *d, const struct cm_wire_place *place,
                                   const struct cm_field_info *field,
                                   const struct cm_wire_field *at, size_t *items)
{
    const size_t width = cm_wire_kind(field->kind)->width;
    struct cm_wire rest = {at->data, at->data + at->size};
    uint64_t value;

    *items = width ? at->size / width : 0;
    if (width)
        return at->size % width == 0 ? CM_OK
                                     : fail_at(d, place, CM_BAD_MODEL,
                                               "field '%s' has %zu bytes, not a multiple of %zu",
                                               field->name, at->size, width);
    /* Contents of tensors are not read here, but where one part ends must be certain: parts are
     * joined. */
    if (at->size && at->data[at->size - 1] & 0x80)
        return fail_at(d, place, CM_BAD_MODEL, "field '%s' ends inside a number", field->name);
    if (is_packed(field->kind))
        return CM_OK;
    while (rest.at < rest.end) {
        if (cm_wire_varint(&rest, &value))
            return fail_at(d, place, CM_BAD_MODEL, "field '%s' has a number of more than 10 bytes",
                           field->name);
        ++*items;
    }
    return CM_OK;
}

static enum cm_status count_field(const struct decoder *d, const struct cm_wire_place *place,
                                  const struct cm_field_info *field, const struct cm_wire_field *at,
                                  struct tally *tally)
{
    const struct cm_wire_kind *const kind = cm_wire_kind(field->kind);
    const bool packed = kind->list && kind->number && at->type == CM_WIRE_BYTES;
    size_t items = 1;

    if (at->type != kind->type && !packed)
        return fail_at(d, place, CM_BAD_MODEL, "field '%s' has wire type %u, needs %u", field->name,
                       at->type, (unsigned)kind->type);
    if (tally->times && !kind->list)
        return fail_at(d, place, CM_BAD_MODEL, "field '%s' appears twice", field->name);
    if (packed)
        CM_TRY(count_packed(d, place, field, at, &items));
    tally->times++;
    tally->items += items;
    tally->bytes += at->size;
    return CM_OK;
}

static enum cm_status check_oneofs(const struct decoder *d, const struct cm_wire_place *place,
                                   const struct cm_message_info *info, const struct tally *tallies)
{
    for (int f = 0; f < info->n_fields; f++) {
        if (!info->fields[f].oneof || !tallies[f].times)
            continue;
        for (int other = 0; other < f; other++) {
            if (info->fields[other].oneof && tallies[other].times)
                return fail_at(d, place, CM_BAD_MODEL, "fields '%s' and '%s' exclude each other",
                               info->fields[other].name, info->fields[f].name);
        }
    }
    return CM_OK;
}

/* ---- long lists, written item by item ----
 *
 * A forest has millions of numbers, each behind a tag of its own. Those that follow another item of
 * the same list are read here; whatever is unusual about one is left to the general way. */

/* Behind a number of any length; NULL: it is broken. Without a branch that depends on the length
 * where eight bytes hold it: lengths vary at random. */
static CM_ALWAYS_INLINE const uint8_t *next_varint(const uint8_t *at, const uint8_t *end,
                                                   uint64_t *value)
{
    const uint64_t more = UINT64_C(0x8080808080808080), ones = UINT64_C(0x0101010101010101);
    uint64_t bytes = more;

    if (end - at >= 8)
        memcpy(&bytes, at, sizeof bytes);
    const uint64_t last = ~bytes & more;
    if (!last) {
        struct cm_wire rest = {at, end};
        return cm_wire_varint(&rest, value) == CM_WIRE_OK ? rest.at : NULL;
    }
    const uint64_t stop = (last & -last) - 1; /* the bits below the high one of the last byte */
    bytes &= stop & ~more;
    bytes = (bytes & 0x007f007f007f007f) | (bytes & 0x7f007f007f007f00) >> 1;
    bytes = (bytes & 0x00003fff00003fff) | (bytes & 0x3fff00003fff0000) >> 2;
    *value = (bytes & 0x000000000fffffff) | (bytes & 0x0fffffff00000000) >> 4;
    return at + ((stop & ones) * ones >> 56);
}

/* Behind the item at `at` if it has this tag of one byte and is whole; else NULL. */
static CM_ALWAYS_INLINE const uint8_t *next_alike(const uint8_t *at, const uint8_t *end,
                                                  uint8_t tag, uint64_t *value,
                                                  const uint8_t **data)
{
    const unsigned type = tag & 7;

    *value = sizeof(float);
    if (end - at < 2 || *at++ != tag)
        return NULL;
    if (type != CM_WIRE_FIXED32)
        at = next_varint(at, end, value);
    *data = at;
    if (!at || type == CM_WIRE_VARINT)
        return at;
    return *value <= (uint64_t)(end - at) ? at + *value : NULL;
}

/* The tag of such a list; 0: the field is none. */
static uint8_t tag_of_items(const struct cm_field_info *field, const struct cm_wire_field *at)
{
    const bool is_list = field->kind == CM_FIELD_INT64S || field->kind == CM_FIELD_FLOATS ||
                         field->kind == CM_FIELD_STRS;

    if (!is_list || field->number > 15 || at->type != cm_wire_kind(field->kind)->type)
        return 0;
    return (uint8_t)(field->number << 3 | at->type);
}

static void count_alike(struct cm_wire *wire, uint8_t tag, struct tally *tally)
{
    const uint8_t *at = wire->at, *data;
    uint64_t value;
    size_t count = 0;

    for (; tag && (at = next_alike(at, wire->end, tag, &value, &data)); count++)
        wire->at = at;
    tally->times += count;
    tally->items += count;
}

static enum cm_status count_fields(const struct decoder *d, const struct cm_wire_place *place,
                                   const struct cm_message_info *info, struct cm_str bytes,
                                   struct tally *tallies)
{
    struct cm_wire wire = cm_wire_over(bytes);

    while (wire.at < wire.end) {
        struct cm_wire_field at;

        CM_TRY(fail_on_wire(d, place, cm_wire_next(&wire, &at), &at));
        const int f = cm_message_field(info, at.number);
        if (f >= 0)
            CM_TRY(count_field(d, place, &info->fields[f], &at, &tallies[f]));
        if (f >= 0)
            count_alike(&wire, tag_of_items(&info->fields[f], &at), &tallies[f]);
    }
    return check_oneofs(d, place, info, tallies);
}

static enum cm_status take_memory(struct decoder *d, const struct cm_wire_place *place,
                                  size_t count, size_t size, void **out)
{
    size_t bytes;

    if (!cm_size_mul(count, size, &bytes) || bytes > d->budget)
        return fail_at(d, place, CM_LIMIT,
                       "its structure would take memory out of proportion to the file");
    d->budget -= bytes;
    *out = cm_arena_alloc(d->arena, bytes);
    return CM_OK;
}

/* Makes room in msg for what was counted of one field. */
static enum cm_status make_room(struct decoder *d, const struct cm_wire_place *place,
                                const struct cm_field_info *field, const struct tally *tally,
                                void *msg)
{
    struct cm_wire_list list = {NULL, is_packed(field->kind) ? tally->bytes : tally->items};

    if (field->kind == CM_FIELD_MESSAGE) {
        CM_TRY(take_memory(d, place, 1, field->message->size, &list.items));
        memcpy(cm_field_at(msg, field), &list.items, sizeof list.items);
        return CM_OK;
    }
    if (!cm_wire_kind(field->kind)->list)
        return CM_OK;
    if (is_packed(field->kind) && tally->times == 1)
        return CM_OK; /* usually a view; one number alone is one too */
    if (list.count)
        CM_TRY(take_memory(d, place, list.count, cm_field_item_size(field), &list.items));
    memcpy(cm_field_at(msg, field), &list, sizeof list);
    return CM_OK;
}

static enum cm_status decode_message(struct decoder *d, const struct cm_wire_place *place,
                                     const struct cm_message_info *info, struct cm_str bytes,
                                     void *out);

static enum cm_status fill_child(struct decoder *d, const struct cm_wire_place *place,
                                 const struct cm_field_info *field, size_t index,
                                 struct cm_str bytes, void *child)
{
    const struct cm_wire_place here = {place, field, index, place->depth + 1};

    return decode_message(d, &here, field->message, bytes, child);
}

static enum cm_status fail_changed(const struct decoder *d, const struct cm_wire_place *place,
                                   const struct cm_field_info *field)
{
    return fail_at(d, place, CM_IO, "field '%s' changed while it was read", field->name);
}

/* The next count places of a list with room for all; NULL when there are fewer left. */
static void *take_places(struct cm_wire_list list, struct tally *tally, size_t room, size_t count,
                         size_t size)
{
    if (count > room - tally->filled)
        return NULL;
    void *const place = (char *)list.items + tally->filled * size;
    tally->filled += count;
    return place;
}

static bool fill_int64s(struct cm_wire_list list, const struct cm_wire_field *at,
                        struct tally *tally)
{
    struct cm_wire rest = {at->data, at->data + at->size};
    uint64_t value = 0;

    while (rest.at < rest.end) {
        if (cm_wire_varint(&rest, &value) != CM_WIRE_OK)
            return false;
        int64_t *const place = take_places(list, tally, tally->items, 1, sizeof *place);
        if (!place)
            return false;
        *place = (int64_t)value;
    }
    return true;
}

/* Bytes that are as in memory; an empty list has no memory at all. */
static bool fill_bytes(struct cm_wire_list list, const struct cm_wire_field *at, size_t room,
                       struct tally *tally)
{
    if (at->size == 0)
        return true;
    void *const place = take_places(list, tally, room, at->size, 1);
    if (place)
        memcpy(place, at->data, at->size);
    return place != NULL;
}

static bool fill_packed(void *where, const struct cm_wire_field *at, struct tally *tally)
{
    const struct cm_packed view = {at->data, at->size};
    struct cm_wire_list joined;

    if (tally->times == 1) {
        memcpy(where, &view, sizeof view);
        tally->filled = at->size;
        return at->size == tally->bytes;
    }
    memcpy(&joined, where, sizeof joined);
    return fill_bytes(joined, at, tally->bytes, tally);
}

/* What the second pass must have filled of a field. */
static size_t filled_size(const struct cm_field_info *field, const struct tally *tally)
{
    if (is_packed(field->kind))
        return tally->bytes;
    if (field->kind == CM_FIELD_FLOATS)
        return tally->items * sizeof(float);
    return cm_wire_kind(field->kind)->list ? tally->items : 0;
}

/* Is this an appearance that was counted, of a wire type that the field may have? */
static bool was_counted(const struct cm_field_info *field, const struct cm_wire_field *at,
                        struct tally *tally)
{
    const struct cm_wire_kind *const kind = cm_wire_kind(field->kind);
    const bool packed = kind->list && kind->number && at->type == CM_WIRE_BYTES;

    return tally->met++ < tally->times && (at->type == kind->type || packed);
}

/* Stores one appearance of a field; what it holds was checked when it was counted. */
static enum cm_status fill_field(struct decoder *d, const struct cm_wire_place *place,
                                 const struct cm_field_info *field, const struct cm_wire_field *at,
                                 struct tally *tally, void *msg)
{
    if (!was_counted(field, at, tally))
        return fail_changed(d, place, field);
    void *const where = cm_field_at(msg, field);
    const struct cm_str text = {(const char *)at->data, at->size};
    const struct cm_wire_list list =
        cm_wire_kind(field->kind)->list ? cm_field_list(msg, field) : (struct cm_wire_list){0};
    /* As protobuf does: a number too wide for its field loses its upper bits. */
    const int32_t narrow = (int32_t)(uint32_t)at->value;
    bool fits = true;

    switch (field->kind) {
    case CM_FIELD_INT64:
        memcpy(where, &at->value, sizeof at->value);
        break;
    case CM_FIELD_INT32:
        memcpy(where, &narrow, sizeof narrow);
        break;
    case CM_FIELD_FLOAT:
        memcpy(where, at->data, sizeof(float));
        break;
    case CM_FIELD_STR:
        memcpy(where, &text, sizeof text);
        break;
    case CM_FIELD_MESSAGE:
        return fill_child(d, place, field, 0, text, cm_field_message(msg, field));
    case CM_FIELD_INT64S:
        fits = fill_int64s(list, at, tally);
        break;
    case CM_FIELD_FLOATS:
        fits = fill_bytes(list, at, tally->items * sizeof(float), tally);
        break;
    case CM_FIELD_STRS: {
        struct cm_str *const item = take_places(list, tally, tally->items, 1, sizeof *item);
        fits = item != NULL;
        if (fits)
            *item = text;
        break;
    }
    case CM_FIELD_MESSAGES: {
        const size_t k = tally->filled;
        void *const child = take_places(list, tally, tally->items, 1, field->message->size);
        fits = child != NULL;
        if (fits)
            return fill_child(d, place, field, k, text, child);
        break;
    }
    case CM_FIELD_PACKED_VARINT:
    case CM_FIELD_PACKED_4:
    case CM_FIELD_PACKED_8:
        fits = fill_packed(where, at, tally);
        break;
    }
    return fits ? CM_OK : fail_changed(d, place, field);
}

/* Stores the items that follow, as many as there is room for: who finds more says that the file
 * changed. */
static void fill_alike(struct cm_wire *wire, uint8_t tag, const struct cm_field_info *field,
                       struct tally *tally, void *msg)
{
    if (!tag)
        return;
    const struct cm_wire_list list = cm_field_list(msg, field);
    const size_t of_item = field->kind == CM_FIELD_FLOATS ? sizeof(float) : 1;
    const uint8_t *at = wire->at, *const end = wire->end, *data;
    size_t k = tally->filled / of_item, met = tally->met;
    uint64_t value;

    for (; k < tally->items && met < tally->times; k++, met++) {
        const uint8_t *next = next_alike(at, end, tag, &value, &data);
        if (!next)
            break;
        at = next;
        if (field->kind == CM_FIELD_INT64S)
            ((int64_t *)list.items)[k] = (int64_t)value;
        else if (field->kind == CM_FIELD_FLOATS)
            memcpy((float *)list.items + k, data, sizeof(float));
        else
            ((struct cm_str *)list.items)[k] = (struct cm_str){(const char *)data, (size_t)value};
    }
    wire->at = at;
    tally->filled = k * of_item;
    tally->met = met;
}

static enum cm_status decode_message(struct decoder *d, const struct cm_wire_place *place,
                                     const struct cm_message_info *info, struct cm_str bytes,
                                     void *out)
{
    struct tally tallies[MAX_FIELDS];
    struct cm_msg *const msg = out;
    struct cm_wire wire = cm_wire_over(bytes);

    if (place->depth > CM_DECODE_DEPTH)
        return fail_at(d, place, CM_LIMIT, "messages are nested more than %d deep",
                       CM_DECODE_DEPTH);
    /* Most messages are small: clearing what is not used would be most of the work. */
    memset(tallies, 0, (size_t)info->n_fields * sizeof *tallies);
    CM_TRY(count_fields(d, place, info, bytes, tallies));
    msg->source = bytes;
    for (int f = 0; f < info->n_fields; f++) {
        const enum cm_field_kind kind = info->fields[f].kind;

        if (!tallies[f].times)
            continue;
        CM_TRY(make_room(d, place, &info->fields[f], &tallies[f], out));
        if (is_packed(kind) || tallies[f].items)
            msg->has |= UINT32_C(1) << f;
    }
    while (wire.at < wire.end) {
        struct cm_wire_field at;

        CM_TRY(fail_on_wire(d, place, cm_wire_next(&wire, &at), &at));
        const int f = cm_message_field(info, at.number);
        if (f >= 0)
            CM_TRY(fill_field(d, place, &info->fields[f], &at, &tallies[f], out));
        if (f >= 0)
            fill_alike(&wire, tag_of_items(&info->fields[f], &at), &info->fields[f], &tallies[f],
                       out);
    }
    for (int f = 0; f < info->n_fields; f++) {
        if (tallies[f].met != tallies[f].times ||
            tallies[f].filled != filled_size(&info->fields[f], &tallies[f]))
            return fail_changed(d, place, &info->fields[f]);
    }
    return CM_OK;
}

enum cm_status cm_decode(const struct cm_message_info *info, struct cm_str bytes,
                         struct cm_arena *arena, void *out, struct cm_error *err)
{
    const size_t share = SIZE_MAX / CM_DECODE_GROWTH - CM_DECODE_MEMORY;
    struct decoder d = {arena, err,
                        CM_DECODE_MEMORY + CM_DECODE_GROWTH * cm_min_size(bytes.size, share)};
    const struct cm_wire_place place = {NULL, NULL, 0, 1};

    return decode_message(&d, &place, info, bytes, out);
}

bool cm_varint_next(struct cm_packed *rest, uint64_t *value, bool *broken)
{
    *broken = false;
    if (!rest->size)
        return false;
    struct cm_wire wire = {rest->data, rest->data + rest->size};
    *broken = cm_wire_varint(&wire, value) != CM_WIRE_OK;
    if (*broken)
        return false;
    rest->data = wire.at;
    rest->size = (size_t)(wire.end - wire.at);
    return true;
}
