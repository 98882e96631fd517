/* Moving elements. */
// SPDX-License-Identifier: Apache-2.0
#include "tensor/bits.h"

uint8_t cm_packed_get(int bits, const void *data, int64_t i)
{
    const uint8_t *bytes = data;
    const uint64_t at = (uint64_t)i * (uint64_t)bits;
    const unsigned shift = at % 8;
    unsigned pair = bytes[at / 8];
    if (shift + (unsigned)bits > 8) /* six-bit elements may lie across two bytes */
        pair |= (unsigned)bytes[at / 8 + 1] << 8;
    return (uint8_t)(pair >> shift & ((1u << bits) - 1));
}

void cm_packed_set(int bits, void *data, int64_t i, uint8_t value)
{
    uint8_t *bytes = data;
    const uint64_t at = (uint64_t)i * (uint64_t)bits;
    const unsigned shift = at % 8, mask = (1u << bits) - 1, wanted = value & mask;
    bytes[at / 8] = (uint8_t)((bytes[at / 8] & ~(mask << shift)) | wanted << shift);
    if (shift + (unsigned)bits > 8) {
        const unsigned rest = 8 - shift;
        bytes[at / 8 + 1] = (uint8_t)((bytes[at / 8 + 1] & ~(mask >> rest)) | wanted >> rest);
    }
}

void cm_elements_copy(enum cm_dtype type, void *to, int64_t to_first, const void *from,
                      int64_t from_first, int64_t count)
{
    const int bits = cm_dtype_info(type)->bits;
    if (count <= 0)
        return;
    if (bits == 0 || bits >= 8) {
        const size_t size = cm_dtype_size(type);
        memcpy((char *)to + (size_t)to_first * size, (const char *)from + (size_t)from_first * size,
               (size_t)count * size);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        cm_packed_set(bits, to, to_first + i, cm_packed_get(bits, from, from_first + i));
}
