/* Places in a block's memory: what is alive at the same time never overlaps, what is dead is used
 * again. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "exec/storage.h"
#include "random_graph.h"

static void reuse(struct cm_arena *arena)
{
    struct cm_storages storages = {.arena = arena};
    const int a = cm_storage_new(&storages, 100), b = cm_storage_new(&storages, 100);
    CHECK_INT(storages.all.items[a].offset, 0);
    CHECK_INT(storages.all.items[b].offset, 128);
    cm_storage_leave(&storages, a);
    CHECK_INT(cm_storage_take(&storages, 40), 0);
    CHECK_INT(cm_storage_take(&storages, 60), 64);
    cm_storage_leave(&storages, b);
    CHECK_INT(cm_storage_take(&storages, 1000), 128); /* a gap at the end grows */
    CHECK_INT(storages.peak, 128 + 1024);
    CHECK_INT(cm_storage_take(&storages, 0), 0);
    CHECK_INT(storages.peak, 128 + 1024);
}

void test_storage__what_is_dead_is_used_again(void)
{
    check_in_arena(reuse);
}

static void shared(struct cm_arena *arena)
{
    struct cm_storages storages = {.arena = arena};
    const int a = cm_storage_new(&storages, 64);
    storages.all.items[a].live++; /* a view of it */
    cm_storage_leave(&storages, a);
    CHECK_INT(cm_storage_take(&storages, 64), 64);
    cm_storage_leave(&storages, a);
    CHECK_INT(cm_storage_take(&storages, 64), 0);
}

void test_storage__bytes_come_back_with_the_last_that_lies_in_them(void)
{
    check_in_arena(shared);
}

static void never_overlap(struct cm_arena *arena)
{
    enum { MOST = 40 };
    struct cm_storages storages = {.arena = arena};
    int live[MOST], n_live = 0;
    uint64_t state = 12345;
    size_t most = 0;
    for (int step = 0; step < 20000; step++) {
        if (n_live < MOST && random_below(&state, 2)) {
            live[n_live++] = cm_storage_new(&storages, (size_t)random_below(&state, 1000));
        } else if (n_live > 0) {
            const int at = (int)random_below(&state, (uint64_t)n_live);
            cm_storage_leave(&storages, live[at]);
            live[at] = live[--n_live];
        }
        size_t held = 0;
        for (int i = 0; i < n_live; i++) {
            const struct cm_storage *a = &storages.all.items[live[i]];
            held += (a->size + 63) / 64 * 64;
            CHECK(a->offset + a->size <= storages.peak);
            for (int j = 0; j < i; j++) {
                const struct cm_storage *b = &storages.all.items[live[j]];
                CHECK(a->offset + a->size <= b->offset || b->offset + b->size <= a->offset);
            }
        }
        for (size_t g = 1; g < storages.gaps.count; g++)
            CHECK(storages.gaps.items[g - 1].offset + storages.gaps.items[g - 1].size <
                  storages.gaps.items[g].offset);
        most = held > most ? held : most;
    }
    CHECK(storages.peak < 2 * most); /* little is lost between */
}

void test_storage__what_lives_at_the_same_time_never_overlaps(void)
{
    check_in_arena(never_overlap);
}

static void too_large(struct cm_arena *arena)
{
    struct cm_storages storages = {.arena = arena};
    for (int i = 0; i < 4 && !storages.too_large; i++)
        (void)cm_storage_new(&storages, SIZE_MAX / 8);
    CHECK(storages.too_large);
    storages = (struct cm_storages){.arena = arena};
    (void)cm_storage_take(&storages, SIZE_MAX - 3);
    CHECK(storages.too_large);
}

void test_storage__sizes_that_cannot_be_counted_are_noticed(void)
{
    check_in_arena(too_large);
}
