/* CRC-32C (Castagnoli), the check sum of many stores of data. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_CRC32C_H
#define CM_BASE_CRC32C_H

#include "base/compiler.h"

/* Begin with 0; goes on from what came before. */
uint32_t cm_crc32c(uint32_t crc, const void *bytes, size_t size);

/* The form in which check sums are stored next to what they cover. */
static inline uint32_t cm_crc32c_masked(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
}

#endif
