/* Bytes that grow in an arena: what files of containers are written with. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BYTES_BYTE_BUFFER_H
#define CM_BYTES_BYTE_BUFFER_H

#include "base/arena.h"
#include "base/array.h"

struct cm_bytes {
    CM_ARRAY(char);
    struct cm_arena *arena;
};

void cm_bytes_put(struct cm_bytes *to, const void *bytes, size_t size); /* bytes NULL: zeros */
void cm_bytes_text(struct cm_bytes *to, struct cm_str text);
void cm_bytes_number(struct cm_bytes *to, uint64_t value, size_t size); /* the lowest byte first */
void cm_bytes_varint(struct cm_bytes *to, uint64_t value);
/* Zeros until `size` bytes follow `begin`. */
void cm_bytes_pad(struct cm_bytes *to, size_t begin, size_t size);
/* Fields of a protobuf message. */
void cm_bytes_field(struct cm_bytes *to, unsigned field, uint64_t value);
void cm_bytes_field_text(struct cm_bytes *to, unsigned field, struct cm_str text);
static inline struct cm_str cm_bytes_str(const struct cm_bytes *bytes)
{
    return (struct cm_str){bytes->items, bytes->count};
}

#endif
