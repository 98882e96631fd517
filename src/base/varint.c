/* Writing variable-length numbers. */
// SPDX-License-Identifier: Apache-2.0
#include "base/varint.h"

size_t cm_varint_put(uint8_t *out, uint64_t value)
{
    size_t size = 0;

    while (value > 0x7f) {
        out[size++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    out[size++] = (uint8_t)value;
    return size;
}

size_t cm_varint_size(uint64_t value)
{
    size_t size = 1;

    while (value > 0x7f) {
        size++;
        value >>= 7;
    }
    return size;
}
