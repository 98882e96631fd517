/* Encoding any message by its rows. One traversal serves two passes: planning counts bytes and
 * notes, for each child in the order of writing, its size and whether it is clean; writing reads
 * those notes back, because a length goes before what it measures. The structs are only read, so
 * one model may be saved by several threads. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/encode.h"

#include "base/array.h"
#include "onnx/decode.h"
#include "onnx/tensor_data.h"
#include "onnx/wire.h"

struct note {
    uint64_t size;
    bool clean; /* its source says all: copy that */
};

struct cm_encoding {
    const struct cm_message_info *info;
    const struct cm_msg *msg;
    struct cm_arena *scratch;
    CM_ARRAY(struct note); /* children as they are written; of clean ones nothing inside */
    uint64_t size;
    bool clean;
};

enum { MANY = 64, PENDING = 512 };

struct writer {
    struct cm_encoding *plan;        /* NULL while writing */
    const struct cm_encoding *notes; /* NULL while planning */
    size_t next;                     /* note to read */
    uint64_t size;                   /* bytes planned */
    struct cm_error *err;
    cm_write_fn *write;
    void *to;
    size_t n_pending;
    uint8_t pending[PENDING]; /* small pieces waiting to be written together */
};

static enum cm_status flush(struct writer *w)
{
    const size_t size = w->n_pending;

    w->n_pending = 0;
    return size ? w->write(w->to, w->pending, size, w->err) : CM_OK;
}

static enum cm_status put(struct writer *w, const void *bytes, size_t size)
{
    if (w->plan) {
        w->size += size;
        return CM_OK;
    }
    if (size == 0)
        return CM_OK;
    if (size > PENDING - w->n_pending || size >= MANY)
        CM_TRY(flush(w));
    if (size >= MANY)
        return w->write(w->to, bytes, size, w->err);
    memcpy(w->pending + w->n_pending, bytes, size);
    w->n_pending += size;
    return CM_OK;
}

static enum cm_status put_varint(struct writer *w, uint64_t value)
{
    uint8_t bytes[10];

    return put(w, bytes, cm_varint_put(bytes, value));
}

static enum cm_status put_tag(struct writer *w, const struct cm_field_info *field, unsigned type)
{
    return put_varint(w, (uint64_t)field->number << 3 | type);
}

/* Tag and length of a field of this size. old is the appearance it replaces, or NULL: its tag, and
 * its length where that still holds, stay as they were written. */
static enum cm_status put_head(struct writer *w, const struct cm_field_info *field,
                               const struct cm_wire_field *old, uint64_t size)
{
    if (!old || old->type != CM_WIRE_BYTES) {
        CM_TRY(put_tag(w, field, CM_WIRE_BYTES));
        return put_varint(w, size);
    }
    if (old->size == size)
        return put(w, old->start, (size_t)(old->data - old->start));
    const size_t head = (size_t)(old->data - old->start);
    size_t tag = 1;
    while (tag < head && old->start[tag - 1] & 0x80)
        tag++;
    CM_TRY(put(w, old->start, tag));
    return put_varint(w, size);
}

static enum cm_status put_str(struct writer *w, const struct cm_field_info *field,
                              const struct cm_wire_field *old, const void *bytes, size_t size)
{
    CM_TRY(put_head(w, field, old, size));
    return put(w, bytes, size);
}

static enum cm_status put_contents(struct writer *w, const struct cm_field_info *field,
                                   const struct cm_wire_field *old,
                                   const struct cm_tensor_proto *tensor)
{
    const struct cm_str raw = tensor->raw_data;

    if (w->plan || !tensor->later)
        return put_str(w, field, old, raw.data, raw.size);
    CM_TRY(put_head(w, field, old, raw.size));
    CM_TRY(flush(w));
    return cm_contents_write(tensor->later, raw.size, w->write, w->to, w->err);
}

static enum cm_status put_int64s(struct writer *w, const struct cm_field_info *field, bool packed,
                                 const int64_t *items, size_t count)
{
    uint64_t size = 0;

    if (packed) {
        for (size_t i = 0; i < count; i++)
            size += cm_varint_size((uint64_t)items[i]);
        CM_TRY(put_head(w, field, NULL, size));
    }
    for (size_t i = 0; i < count; i++) {
        if (!packed)
            CM_TRY(put_tag(w, field, CM_WIRE_VARINT));
        CM_TRY(put_varint(w, (uint64_t)items[i]));
    }
    return CM_OK;
}

static enum cm_status put_floats(struct writer *w, const struct cm_field_info *field, bool packed,
                                 const float *items, size_t count)
{
    if (packed)
        return put_str(w, field, NULL, items, count * sizeof *items);
    for (size_t i = 0; i < count; i++) {
        CM_TRY(put_tag(w, field, CM_WIRE_FIXED32));
        CM_TRY(put(w, &items[i], sizeof *items));
    }
    return CM_OK;
}

static enum cm_status put_message(struct writer *w, const struct cm_message_info *info,
                                  const struct cm_msg *msg, int depth, bool *clean);

static enum cm_status fail_moved(struct cm_error *err)
{
    return cm_fail(err, CM_BAD_ARGUMENT, "the message changed while it was written");
}

/* Size and state of the next child: worked out while planning, read back while writing. What a
 * clean child noted about its own children is dropped, since it will be copied whole. */
static enum cm_status note_child(struct writer *w, const struct cm_message_info *info,
                                 const struct cm_msg *child, int depth, struct note *out)
{
    struct cm_encoding *const plan = w->plan;

    if (!plan) {
        if (w->next == w->notes->count)
            return fail_moved(w->err);
        *out = w->notes->items[w->next++];
        return CM_OK;
    }
    const size_t at = plan->count;
    const uint64_t before = w->size;
    (void)CM_PUSH(plan->scratch, plan);
    CM_TRY(put_message(w, info, child, depth + 1, &out->clean));
    out->size = w->size - before;
    w->size = before;
    plan->items[at] = *out;
    if (out->clean)
        plan->count = at + 1;
    return CM_OK;
}

/* A child that has its note, with tag and length. */
static enum cm_status put_child(struct writer *w, const struct cm_field_info *field,
                                const struct cm_wire_field *old, const struct cm_msg *child,
                                int depth, struct note note)
{
    bool clean;

    CM_TRY(put_head(w, field, old, note.size));
    if (w->plan) {
        w->size += note.size;
        return CM_OK;
    }
    if (note.clean)
        return put(w, child->source.data, child->source.size);
    return put_message(w, field->message, child, depth + 1, &clean);
}

static enum cm_status put_new_child(struct writer *w, const struct cm_field_info *field,
                                    const struct cm_wire_field *old, const struct cm_msg *child,
                                    int depth)
{
    struct note note = {0};

    CM_TRY(note_child(w, field->message, child, depth, &note));
    return put_child(w, field, old, child, depth, note);
}

static const struct cm_msg *item_of(struct cm_wire_list list, const struct cm_field_info *field,
                                    size_t index)
{
    return (const void *)((const char *)list.items + index * field->message->size);
}

/* All of a changed field. old is its first appearance in the source, or NULL. */
static enum cm_status put_field(struct writer *w, const struct cm_field_info *field,
                                const struct cm_wire_field *old, const struct cm_msg *msg,
                                int depth)
{
    const void *const at = cm_field_of(msg, field);
    /* A list of numbers stays packed if its writer packed it. */
    const bool packed = old && old->type == CM_WIRE_BYTES;
    struct cm_wire_list list = {NULL, 0};
    struct cm_str text;
    int64_t wide;
    int32_t narrow;

    if (cm_wire_kind(field->kind)->list) {
        list = cm_field_list(msg, field);
        if (!list.count)
            return CM_OK;
    }
    switch (field->kind) {
    case CM_FIELD_INT64:
        memcpy(&wide, at, sizeof wide);
        return put_int64s(w, field, false, &wide, 1);
    case CM_FIELD_INT32:
        memcpy(&narrow, at, sizeof narrow);
        wide = narrow;
        return put_int64s(w, field, false, &wide, 1);
    case CM_FIELD_FLOAT:
        return put_floats(w, field, false, at, 1);
    case CM_FIELD_STR:
        memcpy(&text, at, sizeof text);
        if (field == &cm_tensor_info.fields[CM_TENSOR_RAW_DATA])
            return put_contents(w, field, old, (const struct cm_tensor_proto *)(const void *)msg);
        return put_str(w, field, old, text.data, text.size);
    case CM_FIELD_MESSAGE: {
        const struct cm_msg *const child = cm_field_message(msg, field);
        return child ? put_new_child(w, field, old, child, depth) : CM_OK;
    }
    case CM_FIELD_INT64S:
        return put_int64s(w, field, packed, list.items, list.count);
    case CM_FIELD_FLOATS:
        return put_floats(w, field, packed, list.items, list.count);
    case CM_FIELD_STRS:
        for (size_t i = 0; i < list.count; i++) {
            text = ((const struct cm_str *)list.items)[i];
            CM_TRY(put_str(w, field, NULL, text.data, text.size));
        }
        return CM_OK;
    case CM_FIELD_MESSAGES:
        for (size_t i = 0; i < list.count; i++) {
            CM_TRY(put_new_child(w, field, NULL, item_of(list, field, i), depth));
        }
        return CM_OK;
    case CM_FIELD_PACKED_VARINT:
    case CM_FIELD_PACKED_4:
    case CM_FIELD_PACKED_8:
        return put_str(w, field, old, list.items, list.count);
    }
    return CM_OK;
}

/* The children that an unmarked field holds now. */
static size_t count_children(const struct cm_msg *msg, const struct cm_field_info *field)
{
    if (field->kind == CM_FIELD_MESSAGE)
        return cm_field_message(msg, field) != NULL;
    return cm_field_list(msg, field).count;
}

static const struct cm_msg *child_of(const struct cm_msg *msg, const struct cm_field_info *field,
                                     size_t index)
{
    if (field->kind == CM_FIELD_MESSAGE)
        return cm_field_message(msg, field);
    return item_of(cm_field_list(msg, field), field, index);
}

static enum cm_status fail_unmarked(const struct writer *w, const struct cm_field_info *field)
{
    return cm_fail(w->err, CM_BAD_ARGUMENT, "field '%s' was changed without being marked",
                   field->name);
}

/* A message on its way out. */
struct passage {
    const struct cm_message_info *info;
    const struct cm_msg *msg;
    int depth;
    uint32_t changed;      /* fields whose old bytes count for nothing */
    uint32_t written;      /* of those, the ones met in the source */
    bool clean;            /* so far */
    const uint8_t *copied; /* the source before this is dealt with */
    size_t met[32];        /* appearances of each field that holds messages */
};

/* False for a child that was put in the place of the one read there. */
static bool came_from(const struct cm_msg *child, const struct cm_wire_field *at)
{
    return child->source.size == at->size &&
           (!at->size || (const uint8_t *)child->source.data == at->data);
}

/* An appearance in the source of an unchanged field that holds messages. */
static enum cm_status put_old_child(struct writer *w, struct passage *p, int f,
                                    const struct cm_wire_field *at)
{
    const struct cm_field_info *const field = &p->info->fields[f];
    const size_t index = p->met[f]++;
    struct note note = {0};

    if (index >= count_children(p->msg, field))
        return fail_unmarked(w, field);
    const struct cm_msg *const child = child_of(p->msg, field, index);
    CM_TRY(note_child(w, field->message, child, p->depth, &note));
    if (note.clean && came_from(child, at))
        return CM_OK;
    p->clean = false;
    CM_TRY(put(w, p->copied, (size_t)(at->start - p->copied)));
    p->copied = at->data + at->size;
    return put_child(w, field, at, child, p->depth, note);
}

/* An appearance in the source of a changed field: the first gives its place, the others vanish. */
static enum cm_status put_replaced(struct writer *w, struct passage *p, int f,
                                   const struct cm_wire_field *at)
{
    const bool first = !(p->written >> f & 1);

    CM_TRY(put(w, p->copied, (size_t)(at->start - p->copied)));
    p->copied = at->data + at->size;
    p->written |= UINT32_C(1) << f;
    if (!first || !cm_msg_has(p->msg, f))
        return CM_OK;
    return put_field(w, &p->info->fields[f], at, p->msg, p->depth);
}

/* Goes through the source in its order: changed fields are replaced, children follow their structs,
 * all else is copied in runs as long as they come. */
static enum cm_status put_source(struct writer *w, struct passage *p)
{
    struct cm_wire wire = cm_wire_over(p->msg->source);

    p->copied = wire.at;
    while (wire.at < wire.end) {
        struct cm_wire_field at;

        if (cm_wire_next(&wire, &at))
            return cm_fail(w->err, CM_BAD_ARGUMENT, "the source of a message was overwritten");
        const int f = cm_message_field(p->info, at.number);
        if (f < 0)
            continue;
        if (p->changed >> f & 1)
            CM_TRY(put_replaced(w, p, f, &at));
        else if (cm_field_holds_messages(&p->info->fields[f]))
            CM_TRY(put_old_child(w, p, f, &at));
    }
    for (int f = 0; f < p->info->n_fields; f++) {
        const struct cm_field_info *const field = &p->info->fields[f];

        if (!(p->changed >> f & 1) && cm_field_holds_messages(field) &&
            p->met[f] != count_children(p->msg, field))
            return fail_unmarked(w, field);
    }
    return put(w, p->copied, (size_t)(wire.end - p->copied));
}

static enum cm_status put_message(struct writer *w, const struct cm_message_info *info,
                                  const struct cm_msg *msg, int depth, bool *clean)
{
    /* What has no source was made by us: all that it has is new. */
    const uint32_t changed = msg->changed | (msg->source.size ? 0 : msg->has);
    struct passage p = {.info = info, .msg = msg, .depth = depth, .changed = changed};

    if (depth > CM_DECODE_DEPTH)
        return cm_fail(w->err, CM_LIMIT, "messages are nested more than %d deep", CM_DECODE_DEPTH);
    p.clean = changed == 0;
    CM_TRY(put_source(w, &p));
    for (int f = 0; f < info->n_fields; f++) {
        if (changed >> f & 1 && !(p.written >> f & 1) && cm_msg_has(msg, f))
            CM_TRY(put_field(w, &info->fields[f], NULL, msg, depth));
    }
    *clean = p.clean;
    return CM_OK;
}

enum cm_status cm_encode_plan(const struct cm_message_info *info, const void *msg,
                              struct cm_arena *scratch, struct cm_encoding **out,
                              struct cm_error *err)
{
    struct cm_encoding *const plan = CM_NEW(scratch, struct cm_encoding);
    struct writer w = {.plan = plan, .err = err};

    plan->info = info;
    plan->msg = msg;
    plan->scratch = scratch;
    CM_TRY(put_message(&w, info, msg, 1, &plan->clean));
    plan->size = w.size;
    *out = plan;
    return CM_OK;
}

uint64_t cm_encoding_size(const struct cm_encoding *encoding)
{
    return encoding->size;
}

enum cm_status cm_encode_write(const struct cm_encoding *encoding, cm_write_fn *write, void *to,
                               struct cm_error *err)
{
    struct writer w = {.notes = encoding, .err = err, .write = write, .to = to};
    bool clean;

    if (encoding->clean)
        CM_TRY(put(&w, encoding->msg->source.data, encoding->msg->source.size));
    else
        CM_TRY(put_message(&w, encoding->info, encoding->msg, 1, &clean));
    return flush(&w);
}

struct memory {
    char *at;
    size_t left;
};

static enum cm_status write_to_memory(void *to, const void *bytes, size_t size,
                                      struct cm_error *err)
{
    struct memory *const memory = to;

    if (size > memory->left)
        return fail_moved(err);
    memcpy(memory->at, bytes, size);
    memory->at += size;
    memory->left -= size;
    return CM_OK;
}

enum cm_status cm_encode(const struct cm_message_info *info, const void *msg,
                         struct cm_arena *arena, struct cm_str *out, struct cm_error *err)
{
    struct cm_encoding *plan;

    CM_TRY(cm_encode_plan(info, msg, arena, &plan, err));
    if (plan->size > SIZE_MAX)
        return cm_fail(err, CM_LIMIT, "the message does not fit into memory");
    const size_t size = (size_t)plan->size;
    char *const bytes = cm_arena_alloc(arena, size);
    struct memory memory = {bytes, size};
    CM_TRY(cm_encode_write(plan, write_to_memory, &memory, err));
    *out = (struct cm_str){bytes, size};
    return CM_OK;
}
