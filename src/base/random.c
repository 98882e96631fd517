/* MT19937 and Philox 4x32-10. */
// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include <math.h>

void cm_random_seed_numpy(struct cm_random *random, uint32_t seed)
{
    memset(random, 0, sizeof *random);
    random->kind = CM_RANDOM_MT19937;
    random->mt[0] = seed;
    for (uint32_t i = 1; i < CM_MT_WORDS; i++) {
        const uint32_t last = random->mt[i - 1];
        random->mt[i] = UINT32_C(1812433253) * (last ^ (last >> 30)) + i;
    }
    random->mt_next = CM_MT_WORDS;
}

void cm_random_seed_philox(struct cm_random *random, uint64_t seed, uint64_t stream)
{
    memset(random, 0, sizeof *random);
    random->kind = CM_RANDOM_PHILOX;
    random->key = seed;
    random->stream = stream;
    random->block_next = 4;
}

static void mt_refill(struct cm_random *random)
{
    enum { HALF = 397 };
    uint32_t *mt = random->mt;
    for (int i = 0; i < CM_MT_WORDS; i++) {
        const uint32_t y =
            (mt[i] & UINT32_C(0x80000000)) | (mt[(i + 1) % CM_MT_WORDS] & UINT32_C(0x7fffffff));
        mt[i] = mt[(i + HALF) % CM_MT_WORDS] ^ (y >> 1) ^ (y & 1 ? UINT32_C(0x9908b0df) : 0);
    }
    random->mt_next = 0;
}

static uint32_t mt_bits(struct cm_random *random)
{
    if (random->mt_next >= CM_MT_WORDS)
        mt_refill(random);
    uint32_t y = random->mt[random->mt_next++];
    y ^= y >> 11;
    y ^= (y << 7) & UINT32_C(0x9d2c5680);
    y ^= (y << 15) & UINT32_C(0xefc60000);
    return y ^ (y >> 18);
}

static void philox_refill(struct cm_random *random)
{
    uint32_t c[4] = {(uint32_t)random->counter, (uint32_t)(random->counter >> 32),
                     (uint32_t)random->stream, (uint32_t)(random->stream >> 32)};
    uint32_t k0 = (uint32_t)random->key, k1 = (uint32_t)(random->key >> 32);

    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = UINT64_C(0xd2511f53) * c[0], p1 = UINT64_C(0xcd9e8d57) * c[2];
        const uint32_t next[4] = {(uint32_t)(p1 >> 32) ^ c[1] ^ k0, (uint32_t)p1,
                                  (uint32_t)(p0 >> 32) ^ c[3] ^ k1, (uint32_t)p0};
        memcpy(c, next, sizeof c);
        k0 += UINT32_C(0x9e3779b9);
        k1 += UINT32_C(0xbb67ae85);
    }
    memcpy(random->block, c, sizeof c);
    random->block_next = 0;
    random->counter++;
}

uint32_t cm_random_bits(struct cm_random *random)
{
    if (random->kind == CM_RANDOM_MT19937)
        return mt_bits(random);
    if (random->block_next >= 4)
        philox_refill(random);
    return random->block[random->block_next++];
}

double cm_random_uniform(struct cm_random *random)
{
    const uint32_t high = cm_random_bits(random) >> 5, low = cm_random_bits(random) >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
}

double cm_random_normal(struct cm_random *random)
{
    if (random->has_gauss) {
        random->has_gauss = false;
        return random->gauss;
    }
    double x, y, r2;
    do { /* a point in the unit disc, not its centre */
        x = 2.0 * cm_random_uniform(random) - 1.0;
        y = 2.0 * cm_random_uniform(random) - 1.0;
        r2 = x * x + y * y;
    } while (r2 >= 1.0 || r2 == 0.0);
    const double scale = sqrt(-2.0 * log(r2) / r2);
    random->gauss = scale * x;
    random->has_gauss = true;
    return scale * y;
}
