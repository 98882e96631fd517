/* A hash map from byte strings to numbers. Keys are borrowed and must outlive the map; the hash is
 * keyed per process, so that a file cannot be built to collide. The order of entries means nothing
 * and cannot be asked for. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_MAP_H
#define CM_BASE_MAP_H

#include "base/arena.h"

struct cm_map_entry {
    struct cm_str key;
    uint64_t hash;
    uint64_t value;
};

/* Zeroed is empty. */
struct cm_map {
    struct cm_map_entry *entries;
    size_t count, capacity; /* capacity is 0 or a power of two */
};

uint64_t cm_hash(struct cm_str bytes);

/* The value of key, or NULL. The pointer is good until the next insertion. */
uint64_t *cm_map_find(const struct cm_map *map, struct cm_str key);
uint64_t cm_map_get(const struct cm_map *map, struct cm_str key, uint64_t otherwise);
/* The entry of key, made with value 0 when absent; *added tells which (may be NULL). */
uint64_t *cm_map_insert(struct cm_map *map, struct cm_arena *arena, struct cm_str key, bool *added);
/* Puts key into the map if it is not there; false if it was. */
bool cm_map_add(struct cm_map *map, struct cm_arena *arena, struct cm_str key);
/* Makes room for count entries in all, so that the table need not grow on the way there. */
void cm_map_reserve(struct cm_map *map, struct cm_arena *arena, size_t count);
/* The same for keys that are numbers or addresses, which the map keeps in arena. */
uint64_t *cm_map_find_number(const struct cm_map *map, uint64_t key);
uint64_t *cm_map_insert_number(struct cm_map *map, struct cm_arena *arena, uint64_t key,
                               bool *added);
#define CM_ADDRESS(pointer) ((uint64_t)(uintptr_t)(pointer))
/* Removes key if it is there. */
bool cm_map_remove(struct cm_map *map, struct cm_str key);

#endif
