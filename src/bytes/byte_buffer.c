/* Bytes that grow in an arena. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/byte_buffer.h"

#include "base/varint.h"

enum { FIELD_VARINT = 0, FIELD_BYTES = 2 }; /* types of fields */

void cm_bytes_put(struct cm_bytes *to, const void *bytes, size_t size)
{
    if (bytes)
        CM_PUSH_ALL(to->arena, to, bytes, size);
    else
        for (size_t i = 0; i < size; i++)
            *CM_PUSH(to->arena, to) = 0;
}

void cm_bytes_text(struct cm_bytes *to, struct cm_str text)
{
    cm_bytes_put(to, text.data, text.size);
}

void cm_bytes_number(struct cm_bytes *to, uint64_t value, size_t size)
{
    const size_t own = size < sizeof value ? size : sizeof value;

    cm_bytes_put(to, &value, own); /* little-endian, as every host of ours */
    cm_bytes_put(to, NULL, size - own);
}

void cm_bytes_varint(struct cm_bytes *to, uint64_t value)
{
    uint8_t bytes[CM_VARINT_MAX];

    cm_bytes_put(to, bytes, cm_varint_put(bytes, value));
}

void cm_bytes_pad(struct cm_bytes *to, size_t begin, size_t size)
{
    if (to->count < begin + size)
        cm_bytes_put(to, NULL, begin + size - to->count);
}

void cm_bytes_field(struct cm_bytes *to, unsigned field, uint64_t value)
{
    cm_bytes_varint(to, field << 3 | FIELD_VARINT);
    cm_bytes_varint(to, value);
}

void cm_bytes_field_text(struct cm_bytes *to, unsigned field, struct cm_str text)
{
    cm_bytes_varint(to, field << 3 | FIELD_BYTES);
    cm_bytes_varint(to, text.size);
    cm_bytes_text(to, text);
}
