/* CRC-32C, eight bytes at a time by tables. */
// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <pthread.h>

enum { LANES = 8 };
static uint32_t tables[LANES][256];

static void fill_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;

        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78U : 0);
        tables[0][i] = crc;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int lane = 1; lane < LANES; lane++)
            tables[lane][i] = tables[lane - 1][i] >> 8 ^ tables[0][tables[lane - 1][i] & 0xff];
}

uint32_t cm_crc32c(uint32_t crc, const void *bytes, size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const uint8_t *at = bytes;

    pthread_once(&once, fill_tables);
    crc = ~crc;
    for (; size >= LANES; size -= LANES, at += LANES) {
        uint64_t word;

        memcpy(&word, at, sizeof word);
        word ^= crc;
        crc = 0;
        for (int lane = 0; lane < LANES; lane++)
            crc ^= tables[LANES - 1 - lane][word >> 8 * lane & 0xff];
    }
    for (; size; size--, at++)
        crc = crc >> 8 ^ tables[0][(crc ^ *at) & 0xff];
    return ~crc;
}
