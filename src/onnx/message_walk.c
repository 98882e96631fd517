/* Walking all messages alike: finding fields, visiting every message, comparing two. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/decode.h"
#include "onnx/wire.h"

int cm_message_field(const struct cm_message_info *info, uint32_t number)
{
    for (int f = 0; f < info->n_fields; f++) {
        if (info->fields[f].number == number)
            return f;
    }
    return -1;
}

int cm_message_field_named(const struct cm_message_info *info, struct cm_str name)
{
    for (int i = 0; i < info->n_fields; i++)
        if (cm_str_is(name, info->fields[i].name))
            return i;
    return -1;
}

/* A singular child as a list of none or one, so that both kinds are walked alike. A field that was
 * cleared holds nothing, whatever its member still says. */
static struct cm_wire_list children(const void *msg, const struct cm_message_info *info, int f)
{
    const struct cm_field_info *const field = &info->fields[f];

    if (!cm_msg_has(msg, f))
        return (struct cm_wire_list){0};
    if (field->kind == CM_FIELD_MESSAGES)
        return cm_field_list(msg, field);
    void *const child = cm_field_message(msg, field);
    return (struct cm_wire_list){child, child != NULL};
}

static enum cm_status walk(const struct cm_message_info *info, void *msg, cm_visit_fn *visit,
                           void *arg, int depth)
{
    if (depth > CM_DECODE_DEPTH)
        return CM_LIMIT;
    CM_TRY(visit(arg, info, msg));
    for (int f = 0; f < info->n_fields; f++) {
        const struct cm_field_info *const field = &info->fields[f];

        if (!cm_field_holds_messages(field))
            continue;
        const struct cm_wire_list list = children(msg, info, f);
        for (size_t i = 0; i < list.count; i++)
            CM_TRY(walk(field->message, (char *)list.items + i * field->message->size, visit, arg,
                        depth + 1));
    }
    return CM_OK;
}

enum cm_status cm_message_walk(const struct cm_message_info *info, void *msg, cm_visit_fn *visit,
                               void *arg)
{
    return walk(info, msg, visit, arg, 1);
}

/* What two messages under comparison differ in. */
struct difference {
    char *text;
    size_t size;
};

static bool differ(struct difference *out, const struct cm_wire_place *place, const char *field)
{
    cm_wire_place_text(place, field, out->text, out->size);
    return false;
}

static bool same_bytes(const void *a, const void *b, size_t size)
{
    return size == 0 || memcmp(a, b, size) == 0;
}

static bool same_str(struct cm_str a, struct cm_str b)
{
    return a.size == b.size && same_bytes(a.data, b.data, a.size);
}

/* Equal numbers, whatever the length of their varints. */
static bool same_varints(struct cm_packed a, struct cm_packed b)
{
    uint64_t x, y;
    bool broken_x, broken_y;

    if (a.size == b.size && same_bytes(a.data, b.data, a.size))
        return true;
    for (;;) {
        const bool more_x = cm_varint_next(&a, &x, &broken_x);
        const bool more_y = cm_varint_next(&b, &y, &broken_y);

        if (broken_x || broken_y || more_x != more_y)
            return false;
        if (!more_x)
            return true;
        if (x != y)
            return false;
    }
}

static bool same_strs(struct cm_wire_list a, struct cm_wire_list b)
{
    const struct cm_str *const x = a.items, *const y = b.items;

    if (a.count != b.count)
        return false;
    for (size_t i = 0; i < a.count; i++) {
        if (!same_str(x[i], y[i]))
            return false;
    }
    return true;
}

static bool same_list(struct cm_wire_list a, struct cm_wire_list b, size_t size)
{
    return a.count == b.count && same_bytes(a.items, b.items, a.count * size);
}

/* Fields that hold no messages. Floats are the same when their bits are. */
static bool same_value(const struct cm_message_info *info, int f, const void *a, const void *b)
{
    const struct cm_field_info *const field = &info->fields[f];
    const struct cm_wire_kind *const kind = cm_wire_kind(field->kind);
    const void *const at_a = cm_field_of(a, field), *const at_b = cm_field_of(b, field);
    struct cm_wire_list list_a = {0}, list_b = {0};
    struct cm_str x, y;

    if (kind->list && cm_msg_has(a, f))
        list_a = cm_field_list(a, field);
    if (kind->list && cm_msg_has(b, f))
        list_b = cm_field_list(b, field);
    switch (field->kind) {
    case CM_FIELD_INT64:
    case CM_FIELD_INT32:
    case CM_FIELD_FLOAT:
        return same_bytes(at_a, at_b, kind->size);
    case CM_FIELD_STR:
        memcpy(&x, at_a, sizeof x);
        memcpy(&y, at_b, sizeof y);
        return same_str(x, y);
    case CM_FIELD_INT64S:
    case CM_FIELD_FLOATS:
    case CM_FIELD_PACKED_4:
    case CM_FIELD_PACKED_8:
        return same_list(list_a, list_b, kind->size);
    case CM_FIELD_STRS:
        return same_strs(list_a, list_b);
    case CM_FIELD_PACKED_VARINT:
        return same_varints((struct cm_packed){list_a.items, list_a.count},
                            (struct cm_packed){list_b.items, list_b.count});
    case CM_FIELD_MESSAGE:
    case CM_FIELD_MESSAGES:
        break;
    }
    return true;
}

/* The next field in the source that info does not know; false at the end. */
static bool next_unknown(const struct cm_message_info *info, struct cm_wire *wire,
                         struct cm_str *out)
{
    struct cm_wire_field at;

    while (wire->at < wire->end) {
        if (cm_wire_next(wire, &at))
            return false;
        if (cm_message_field(info, at.number) < 0) {
            *out = (struct cm_str){(const char *)at.start, (size_t)(wire->at - at.start)};
            return true;
        }
    }
    return false;
}

static bool same_unknowns(const struct cm_message_info *info, const struct cm_msg *a,
                          const struct cm_msg *b)
{
    struct cm_wire x = cm_wire_over(a->source), y = cm_wire_over(b->source);
    struct cm_str field_x, field_y;

    for (;;) {
        const bool more_x = next_unknown(info, &x, &field_x);
        const bool more_y = next_unknown(info, &y, &field_y);

        if (more_x != more_y)
            return false;
        if (!more_x)
            return true;
        if (!same_str(field_x, field_y))
            return false;
    }
}

static bool same(const struct cm_message_info *info, const void *a, const void *b,
                 const struct cm_wire_place *place, struct difference *out);

static bool same_children(const struct cm_message_info *info, int f, const void *a, const void *b,
                          const struct cm_wire_place *place, struct difference *out)
{
    const struct cm_field_info *const field = &info->fields[f];
    const struct cm_wire_list list_a = children(a, info, f), list_b = children(b, info, f);
    const char *const x = list_a.items, *const y = list_b.items;

    if (list_a.count != list_b.count)
        return differ(out, place, field->name);
    for (size_t i = 0; i < list_a.count; i++) {
        const struct cm_wire_place here = {place, field, i, place->depth + 1};
        const size_t at = i * field->message->size;

        if (!same(field->message, x + at, y + at, &here, out))
            return false;
    }
    return true;
}

static bool same(const struct cm_message_info *info, const void *a, const void *b,
                 const struct cm_wire_place *place, struct difference *out)
{
    if (place->depth > CM_DECODE_DEPTH)
        return differ(out, place, NULL);
    for (int f = 0; f < info->n_fields; f++) {
        const struct cm_field_info *const field = &info->fields[f];

        if (cm_field_holds_messages(field)) {
            if (!same_children(info, f, a, b, place, out))
                return false;
            continue;
        }
        /* An empty list and one that is not there are the same; a zero and an absent number are
         * not. */
        const bool list = cm_wire_kind(field->kind)->list;
        if (!list && cm_msg_has(a, f) != cm_msg_has(b, f))
            return differ(out, place, field->name);
        if ((list || cm_msg_has(a, f)) && !same_value(info, f, a, b))
            return differ(out, place, field->name);
    }
    return same_unknowns(info, a, b) || differ(out, place, "(unknown field)");
}

bool cm_message_equal(const struct cm_message_info *info, const void *a, const void *b,
                      struct cm_arena *arena, struct cm_str *where)
{
    char text[512] = "";
    struct difference difference = {text, sizeof text};
    const struct cm_wire_place place = {NULL, NULL, 0, 1};
    const bool equal = same(info, a, b, &place, &difference);

    if (where)
        *where = equal ? CM_STR_NONE : cm_arena_str(arena, cm_str(text));
    return equal;
}
