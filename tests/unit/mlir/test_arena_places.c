/* Places of buffers in the arena: a check walked over plans of random lifetimes. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "mlir/module/arena_places.h"

#include <stdlib.h>

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void check_apart(const struct cm_mlir_place *places, size_t count, int64_t total)
{
    for (size_t i = 0; i < count; i++) {
        const struct cm_mlir_place *a = &places[i];

        CHECK(a->offset >= 0 && a->offset % CM_MLIR_ALIGNMENT == 0);
        CHECK(a->offset + a->bytes <= total);
        for (size_t k = 0; k < i; k++) {
            const struct cm_mlir_place *b = &places[k];
            const bool together = a->first <= b->last && b->first <= a->last;

            CHECK(!together || a->offset + a->bytes <= b->offset ||
                  b->offset + b->bytes <= a->offset);
        }
    }
}

void test_arena_places__buffers_that_live_together_never_overlap(void)
{
    struct cm_mlir_place places[300];
    uint32_t state = 7;

    for (int round = 0; round < 50; round++) {
        const size_t count = 1 + next_random(&state) % 300;
        int64_t total, sum = 0;

        for (size_t i = 0; i < count; i++) {
            const int64_t first = next_random(&state) % 1000;

            places[i] = (struct cm_mlir_place){.first = first,
                                               .last = first + next_random(&state) % 60,
                                               .bytes = next_random(&state) % 5000};
            sum += places[i].bytes + CM_MLIR_ALIGNMENT;
        }
        CHECK(cm_mlir_place_all(places, count, INT64_MAX / 2, &total));
        check_apart(places, count, total);
        CHECK(total <= sum);
    }
}

void test_arena_places__memory_is_used_again(void)
{
    struct cm_mlir_place places[100];
    int64_t total;

    for (int i = 0; i < 100; i++) /* a chain: each lives with its two neighbours */
        places[i] = (struct cm_mlir_place){.first = i, .last = i + 1, .bytes = 1000 + i};
    CHECK(cm_mlir_place_all(places, 100, INT64_MAX / 2, &total));
    check_apart(places, 100, total);
    CHECK(total <= 3 * 1152);
}

void test_arena_places__a_total_beyond_the_limit_is_refused(void)
{
    struct cm_mlir_place places[2] = {{0, 5, INT64_MAX / 4, 0}, {1, 6, INT64_MAX / 4, 0}};
    int64_t total;

    CHECK(!cm_mlir_place_all(places, 2, INT64_MAX / 2, &total));
    CHECK(!cm_mlir_place_all(places, 1, 1000, &total));
    CHECK(cm_mlir_place_all(places, 0, 1000, &total));
    CHECK_INT(total, 0);
}
