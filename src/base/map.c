/* The hash map: open addressing with linear probing, SipHash-1-3 under a random key. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "base/map.h"

#include <stdatomic.h>
#include <sys/random.h>
#include <time.h>

enum { FIRST_CAPACITY = 16 };

/* 0 is "not drawn yet". Threads that race for a word all end up with the same one. */
static _Atomic uint64_t key_words[2];

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t draw_word(size_t which)
{
    uint64_t word = 0;

    if (getrandom(&word, sizeof word, GRND_NONBLOCK) != (ssize_t)sizeof word) {
        struct timespec now = {0};
        /* Early in boot, or forbidden: the clock and where we were loaded are the next best. */
        timespec_get(&now, TIME_UTC);
        word = mix((uint64_t)now.tv_sec * 1000000007u + (uint64_t)now.tv_nsec) ^
               mix((uint64_t)(uintptr_t)&now + which) ^ mix((uint64_t)(uintptr_t)key_words);
    }
    return word ? word : 1;
}

static uint64_t key_word(size_t which)
{
    uint64_t word = atomic_load_explicit(&key_words[which], memory_order_relaxed);

    if (CM_LIKELY(word))
        return word;
    const uint64_t fresh = draw_word(which);
    return atomic_compare_exchange_strong(&key_words[which], &word, fresh) ? fresh : word;
}

static uint64_t rotate(uint64_t x, int by)
{
    return (x << by) | (x >> (64 - by));
}

static inline void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

/* SipHash with one round a word and three at the end: enough against chosen collisions in a table
 * that nobody can look into, and short names dominate here. */
uint64_t cm_hash(struct cm_str bytes)
{
    const uint64_t k0 = key_word(0);
    const uint64_t k1 = key_word(1);
    uint64_t v[4] = {k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du, k0 ^ 0x6c7967656e657261u,
                     k1 ^ 0x7465646279746573u};
    const size_t whole = bytes.size & ~(size_t)7;

    for (size_t i = 0; i < whole; i += 8) {
        uint64_t word;

        memcpy(&word, bytes.data + i, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    uint64_t last = 0;
    if (bytes.size != whole)
        memcpy(&last, bytes.data + whole, bytes.size - whole);
    last |= (uint64_t)bytes.size << 56;
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* In the table a hash of 0 marks a free entry. */
static uint64_t hash_in_table(struct cm_str key)
{
    const uint64_t hash = cm_hash(key);

    return hash ? hash : 1;
}

/* The entry that holds key, or the free one where it belongs. There always is a free one. */
static struct cm_map_entry *probe(const struct cm_map *map, struct cm_str key, uint64_t hash)
{
    const size_t mask = map->capacity - 1;
    size_t at = (size_t)hash & mask;

    while (map->entries[at].hash) {
        struct cm_map_entry *entry = &map->entries[at];

        if (entry->hash == hash && cm_str_equal(entry->key, key))
            return entry;
        at = (at + 1) & mask;
    }
    return &map->entries[at];
}

uint64_t *cm_map_find(const struct cm_map *map, struct cm_str key)
{
    if (map->count == 0)
        return NULL;
    struct cm_map_entry *entry = probe(map, key, hash_in_table(key));
    return entry->hash ? &entry->value : NULL;
}

uint64_t cm_map_get(const struct cm_map *map, struct cm_str key, uint64_t otherwise)
{
    const uint64_t *value = cm_map_find(map, key);

    return value ? *value : otherwise;
}

static void resize(struct cm_map *map, struct cm_arena *arena, size_t capacity)
{
    const struct cm_map old = *map;

    map->entries = CM_NEW_ARRAY(arena, struct cm_map_entry, capacity);
    map->capacity = capacity;
    for (size_t i = 0; i < old.capacity; i++) {
        const struct cm_map_entry *entry = &old.entries[i];

        if (!entry->hash)
            continue;
        size_t at = (size_t)entry->hash & (capacity - 1);
        while (map->entries[at].hash)
            at = (at + 1) & (capacity - 1);
        map->entries[at] = *entry;
    }
}

/* At most seven in ten entries are taken. */
static size_t most_entries(size_t capacity)
{
    return capacity / 10 * 7 + capacity % 10 * 7 / 10;
}

static size_t next_capacity(size_t capacity)
{
    return capacity ? capacity * 2 : FIRST_CAPACITY;
}

bool cm_map_add(struct cm_map *map, struct cm_arena *arena, struct cm_str key)
{
    bool added;

    (void)cm_map_insert(map, arena, key, &added);
    return added;
}

void cm_map_reserve(struct cm_map *map, struct cm_arena *arena, size_t count)
{
    size_t capacity = map->capacity;
    while (most_entries(capacity) < count && capacity <= SIZE_MAX / 4)
        capacity = next_capacity(capacity);
    if (capacity > map->capacity)
        resize(map, arena, capacity);
}

uint64_t *cm_map_insert(struct cm_map *map, struct cm_arena *arena, struct cm_str key, bool *added)
{
    const uint64_t hash = hash_in_table(key);
    struct cm_map_entry *entry = map->capacity ? probe(map, key, hash) : NULL;
    const bool is_new = !entry || !entry->hash;

    if (added)
        *added = is_new;
    if (!is_new)
        return &entry->value;
    if (map->count >= most_entries(map->capacity)) {
        resize(map, arena, next_capacity(map->capacity));
        entry = probe(map, key, hash);
    }
    *entry = (struct cm_map_entry){.key = key, .hash = hash};
    map->count++;
    return &entry->value;
}

uint64_t *cm_map_find_number(const struct cm_map *map, uint64_t key)
{
    return cm_map_find(map, (struct cm_str){(const char *)&key, sizeof key});
}

uint64_t *cm_map_insert_number(struct cm_map *map, struct cm_arena *arena, uint64_t key,
                               bool *added)
{
    const struct cm_str bytes = {(const char *)&key, sizeof key};
    uint64_t *found = cm_map_find(map, bytes);

    if (added)
        *added = !found;
    return found ? found : cm_map_insert(map, arena, cm_arena_str(arena, bytes), NULL);
}

/* Later entries of the same run move back into the hole when their home is not past it, so a search
 * never has to step over what was removed. */
bool cm_map_remove(struct cm_map *map, struct cm_str key)
{
    if (map->count == 0)
        return false;
    const size_t mask = map->capacity - 1;
    const struct cm_map_entry *found = probe(map, key, hash_in_table(key));
    if (!found->hash)
        return false;
    size_t hole = (size_t)(found - map->entries);
    for (size_t at = (hole + 1) & mask; map->entries[at].hash; at = (at + 1) & mask) {
        const size_t home = (size_t)map->entries[at].hash & mask;

        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        map->entries[hole] = map->entries[at];
        hole = at;
    }
    map->entries[hole] = (struct cm_map_entry){0};
    map->count--;
    return true;
}
