/* Variable-length numbers (LEB128): 7 bits in each byte, the lowest first; the highest bit of a
 * byte says that more follow. Protobuf, LevelDB, snappy and OCDBT store their numbers so. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_VARINT_H
#define CM_BASE_VARINT_H

#include "base/compiler.h"

enum { CM_VARINT_MAX = 10 }; /* bytes of a number of 64 bits */

enum cm_varint_fault {
    CM_VARINT_OK,
    CM_VARINT_CUT, /* the bytes end inside it */
    CM_VARINT_LONG /* it has more than CM_VARINT_MAX bytes */
};

/* Reads one from *at, which moves to the byte after it. Bits past the 64th are dropped, as protobuf
 * readers do. */
static inline enum cm_varint_fault cm_varint_get(const uint8_t **at, const uint8_t *end,
                                                 uint64_t *value)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < CM_VARINT_MAX; i++) {
        if (*at == end)
            return CM_VARINT_CUT;
        const uint8_t byte = *(*at)++;
        sum |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (!(byte & 0x80)) {
            *value = sum;
            return CM_VARINT_OK;
        }
    }
    return CM_VARINT_LONG;
}

/* Writes at most CM_VARINT_MAX bytes and returns their count. */
size_t cm_varint_put(uint8_t *out, uint64_t value);
size_t cm_varint_size(uint64_t value);

#endif
