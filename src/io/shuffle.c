/* A Feistel network over the next even power of two, walked until it lands inside. */
// SPDX-License-Identifier: Apache-2.0
#include "io/shuffle.h"

#include "base/random.h"

/* Keeps these draws apart from all others made with the same seed. */
static const uint64_t purpose = UINT64_C(0x65706f6368730000);

void cm_shuffle_init(struct cm_shuffle *shuffle, int64_t count, uint64_t seed, uint64_t epoch)
{
    struct cm_random random;

    shuffle->count = (uint64_t)count;
    shuffle->half = 1;
    while (shuffle->half < 31 && shuffle->count > UINT64_C(1) << 2 * shuffle->half)
        shuffle->half++;
    if (shuffle->count > UINT64_C(1) << 2 * shuffle->half)
        shuffle->half = 32;
    cm_random_seed_philox(&random, seed, purpose ^ epoch);
    for (int i = 0; i < CM_SHUFFLE_ROUNDS; i++) {
        const uint64_t high = cm_random_bits(&random);
        shuffle->keys[i] = high << 32 | cm_random_bits(&random);
    }
}

/* Every bit of the result depends on every bit of value and key. */
static uint64_t mix(uint64_t value, uint64_t key)
{
    uint64_t x = (value + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ key;

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

int64_t cm_shuffle_at(const struct cm_shuffle *shuffle, int64_t position)
{
    const uint64_t mask = (UINT64_C(1) << shuffle->half) - 1;
    uint64_t at = (uint64_t)position;

    /* The network permutes at most four times count places, so few steps lead back inside. */
    do {
        uint64_t left = at >> shuffle->half, right = at & mask;

        for (int i = 0; i < CM_SHUFFLE_ROUNDS; i++) {
            const uint64_t next = left ^ (mix(right, shuffle->keys[i]) & mask);
            left = right;
            right = next;
        }
        at = left << shuffle->half | right;
    } while (at >= shuffle->count);
    return (int64_t)at;
}
