/* The hash map. */
// SPDX-License-Identifier: Apache-2.0
#include "base/map.h"
#include "check.h"

static void put_and_find(struct cm_arena *arena)
{
    struct cm_map map = {0};
    bool added;

    CHECK(!cm_map_find(&map, CM_STR("x")));
    CHECK(!cm_map_remove(&map, CM_STR("x")));
    *cm_map_insert(&map, arena, CM_STR("x"), &added) = 7;
    CHECK(added);
    CHECK_INT(*cm_map_insert(&map, arena, CM_STR("x"), &added), 7);
    CHECK(!added);
    CHECK_INT(*cm_map_insert(&map, arena, CM_STR("new"), NULL), 0);
    CHECK_INT(cm_map_get(&map, CM_STR("x"), 99), 7);
    CHECK_INT(cm_map_get(&map, CM_STR("y"), 99), 99);
    CHECK_INT(map.count, 2);
}

void test_map__finds_what_was_put(void)
{
    check_in_arena(put_and_find);
}

static void odd_keys(struct cm_arena *arena)
{
    static const char bytes[] = "a\0b\0a";
    struct cm_map map = {0};

    *cm_map_insert(&map, arena, CM_STR_NONE, NULL) = 1;
    for (size_t size = 1; size <= 5; size++)
        *cm_map_insert(&map, arena, (struct cm_str){bytes, size}, NULL) = size + 1;
    CHECK_INT(map.count, 6);
    CHECK_INT(cm_map_get(&map, CM_STR(""), 0), 1);
    for (size_t size = 1; size <= 5; size++)
        CHECK_INT(cm_map_get(&map, (struct cm_str){bytes, size}, 0), size + 1);
}

void test_map__keys_may_be_empty_or_hold_zero_bytes(void)
{
    check_in_arena(odd_keys);
}

enum { MANY = 100000 };

static bool expect_every_third(const struct cm_map *map, const struct cm_str *keys)
{
    for (uint64_t i = 0; i < MANY; i++) {
        const uint64_t *value = cm_map_find(map, keys[i]);

        if (i % 3 == 0 ? !value || *value != i : value != NULL)
            return false;
    }
    return true;
}

static void many_keys(struct cm_arena *arena)
{
    struct cm_str *keys = CM_NEW_ARRAY(arena, struct cm_str, MANY);
    struct cm_map map = {0};

    for (uint64_t i = 0; i < MANY; i++) {
        keys[i] = cm_arena_printf(arena, "node_%llu/output", (unsigned long long)i);
        *cm_map_insert(&map, arena, keys[i], NULL) = i;
        /* The count is known at every size, so the load can be checked while it grows. */
        CHECK(map.count * 10 <= map.capacity * 7);
    }
    CHECK_INT(map.count, MANY);
    for (uint64_t i = 0; i < MANY; i++) {
        CHECK_INT(cm_map_get(&map, keys[i], MANY), i);
        if (i % 3 != 0)
            CHECK(cm_map_remove(&map, keys[i]));
    }
    CHECK(expect_every_third(&map, keys));
    CHECK(!cm_map_remove(&map, keys[1]));
    for (uint64_t i = 0; i < MANY; i++)
        cm_map_remove(&map, keys[i]);
    CHECK_INT(map.count, 0);
    for (size_t i = 0; i < map.capacity; i++)
        CHECK(map.entries[i].hash == 0);
}

void test_map__a_hundred_thousand_keys_come_and_go(void)
{
    check_in_arena(many_keys);
}

static void small_runs(struct cm_arena *arena)
{
    struct cm_str keys[11];
    struct cm_map map = {0};

    for (size_t i = 0; i < CM_COUNT(keys); i++)
        keys[i] = cm_arena_printf(arena, "k%zu", i);
    /* Sixteen entries hold eleven keys, so runs collide and wrap around the end. */
    for (unsigned round = 0; round < 2048; round++) {
        for (size_t i = 0; i < CM_COUNT(keys); i++)
            *cm_map_insert(&map, arena, keys[i], NULL) = i + 1;
        for (size_t i = 0; i < CM_COUNT(keys); i++)
            CHECK(!(round >> i & 1) || cm_map_remove(&map, keys[i]));
        for (size_t i = 0; i < CM_COUNT(keys); i++)
            CHECK_INT(cm_map_get(&map, keys[i], 0), round >> i & 1 ? 0 : i + 1);
    }
    CHECK_INT(map.capacity, 16);
}

static void reserved(struct cm_arena *arena)
{
    struct cm_map map = {0};

    *cm_map_insert(&map, arena, CM_STR("first"), NULL) = 7;
    cm_map_reserve(&map, arena, 1000);
    const size_t capacity = map.capacity;
    for (size_t i = 1; i < 1000; i++)
        *cm_map_insert(&map, arena, cm_arena_printf(arena, "k%zu", i), NULL) = i;
    CHECK_INT(map.capacity, capacity);
    CHECK_INT(cm_map_get(&map, CM_STR("first"), 0), 7);
    cm_map_reserve(&map, arena, 10);
    CHECK_INT(map.capacity, capacity);
}

void test_map__reserved_room_is_enough(void)
{
    check_in_arena(reserved);
}

void test_map__every_way_of_removing_leaves_the_rest(void)
{
    check_in_arena(small_runs);
}

void test_hash__depends_on_every_byte_and_on_the_length(void)
{
    char text[33] = {0};

    for (size_t size = 0; size < sizeof text; size++) {
        const uint64_t plain = cm_hash((struct cm_str){text, size});

        CHECK(plain == cm_hash((struct cm_str){text, size}));
        if (size > 0)
            CHECK(plain != cm_hash((struct cm_str){text, size - 1}));
        for (size_t i = 0; i < size; i++) {
            text[i] = 1;
            CHECK(plain != cm_hash((struct cm_str){text, size}));
            text[i] = 0;
        }
    }
}
