/* The protobuf wire format, one field at a time, for the files of onnx/ that walk encoded messages.
 * Nothing is copied and nothing outside the given bytes is read; groups are refused. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_ONNX_WIRE_H
#define CM_ONNX_WIRE_H

#include "base/varint.h"
#include "onnx/descriptor.h"

enum cm_wire_type {
    CM_WIRE_VARINT = 0,
    CM_WIRE_FIXED64 = 1,
    CM_WIRE_BYTES = 2,
    CM_WIRE_FIXED32 = 5,
};

struct cm_wire {
    const uint8_t *at, *end;
};

struct cm_wire_field {
    uint32_t number;
    unsigned type;
    uint64_t value;       /* of a varint; the length of bytes */
    const uint8_t *start; /* of the tag */
    const uint8_t *data;  /* the contents; a varint's bytes for a varint */
    size_t size;
};

enum cm_wire_fault {
    CM_WIRE_OK,
    CM_WIRE_CUT,        /* the bytes end inside a field */
    CM_WIRE_LONG,       /* a varint of more than 10 bytes */
    CM_WIRE_BAD_NUMBER, /* a field number that is 0 or does not fit */
    CM_WIRE_BAD_TYPE,   /* a group, or a wire type that does not exist */
    CM_WIRE_PAST_END,   /* a length that runs past the end */
};

struct cm_wire cm_wire_over(struct cm_str bytes);
/* A number as base/varint.h reads it. */
enum cm_wire_fault cm_wire_varint(struct cm_wire *wire, uint64_t *value);
/* The next field; there must be bytes left. */
enum cm_wire_fault cm_wire_next(struct cm_wire *wire, struct cm_wire_field *out);

/* Where a field of this kind lives on the wire. */
struct cm_wire_kind {
    uint8_t type;  /* enum cm_wire_type of one item */
    uint8_t width; /* of a fixed item, else 0 */
    bool list;     /* may appear more than once */
    bool number;   /* an item is a number: a list of them may be packed into bytes */
    uint8_t size;  /* of an item in memory; 0: an item is a message */
};

const struct cm_wire_kind *cm_wire_kind(enum cm_field_kind kind);

/* Members of message structs, reached by offset. Pointers are copied, not aliased: a list of nodes
 * and a list of tensors are different types of one layout. */
struct cm_wire_list {
    void *items;
    size_t count;
};

static inline bool cm_field_holds_messages(const struct cm_field_info *field)
{
    return field->kind == CM_FIELD_MESSAGE || field->kind == CM_FIELD_MESSAGES;
}

/* The size of one item of a list in memory. */
static inline size_t cm_field_item_size(const struct cm_field_info *field)
{
    const size_t size = cm_wire_kind(field->kind)->size;

    return size ? size : field->message->size;
}

static inline void *cm_field_at(void *msg, const struct cm_field_info *field)
{
    return (char *)msg + field->offset;
}

static inline const void *cm_field_of(const void *msg, const struct cm_field_info *field)
{
    return (const char *)msg + field->offset;
}

static inline struct cm_wire_list cm_field_list(const void *msg, const struct cm_field_info *field)
{
    struct cm_wire_list list;

    memcpy(&list, cm_field_of(msg, field), sizeof list);
    return list;
}

static inline void *cm_field_message(const void *msg, const struct cm_field_info *field)
{
    void *child;

    memcpy(&child, cm_field_of(msg, field), sizeof child);
    return child;
}

/* The way to a message from the outermost one; frames live on the stack of whoever descends. */
struct cm_wire_place {
    const struct cm_wire_place *up; /* NULL: the outermost message */
    const struct cm_field_info *field;
    size_t index;
    int depth; /* 1 for the outermost */
};

/* Writes "graph.node[3].attribute[0]", followed by last (may be NULL) as one more step. Cut at its
 * start with "..." when too long. */
void cm_wire_place_text(const struct cm_wire_place *place, const char *last, char *out,
                        size_t size);

#endif
