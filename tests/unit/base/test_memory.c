/* The door to malloc: counting, failing on demand, absurd sizes. */
// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "check.h"

void test_memory__counts_each_allocation(void)
{
    const uint64_t before = cm_memory_count();
    void *a = cm_malloc(10);
    void *b = cm_calloc(3, 5);

    a = cm_realloc(a, 1000);
    CHECK_INT(cm_memory_count() - before, 3);
    CHECK(a && b);
    cm_free(a);
    cm_free(b);
}

void test_memory__fails_from_the_nth_allocation_on(void)
{
    cm_memory_fail_after(2);
    void *first = cm_malloc(1);
    void *second = cm_malloc(1);
    void *third = cm_calloc(1, 1);
    void *fourth = cm_malloc_aligned(64, 64);
    void *moved = cm_realloc(first, 100);
    cm_memory_fail_after(0);
    void *after = cm_malloc(1);

    CHECK(first && !second && !third && !fourth && !moved && after);
    cm_free(first);
    cm_free(after);
}

void test_memory__absurd_sizes_give_none(void)
{
    CHECK(!cm_malloc(SIZE_MAX));
    CHECK(!cm_calloc(SIZE_MAX / 2, 3));
    CHECK(!cm_malloc_aligned(64, SIZE_MAX - 5));
    void *kept = cm_malloc(8);
    CHECK(!cm_realloc(kept, SIZE_MAX));
    cm_free(kept);
}

void test_memory__size_zero_is_not_a_failure(void)
{
    void *a = cm_malloc(0);
    void *b = cm_calloc(0, 8);
    void *c = cm_malloc_aligned(64, 0);

    CHECK(a && b && c);
    cm_free(a);
    cm_free(b);
    cm_free(c);
}

void test_memory__alignment_is_kept(void)
{
    for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
        void *memory = cm_malloc_aligned(alignment, 100);

        CHECK(memory && (uintptr_t)memory % alignment == 0);
        memset(memory, 1, 100);
        cm_free(memory);
    }
}

void test_memory__what_is_pinned_stays(void)
{
    char *memory = cm_malloc(1000), *other = cm_malloc(1000);

    memory[500] = 7;
    CHECK(!cm_memory_is_pinned(memory, 1000));
    cm_memory_pin(memory + 500);
    CHECK(cm_memory_is_pinned(memory, 1000));
    CHECK(cm_memory_is_pinned(memory + 500, 1));
    CHECK(!cm_memory_is_pinned(memory, 500));
    CHECK(!cm_memory_is_pinned(memory + 501, 499));
    cm_free(memory);
    cm_free(other);
    cm_free(NULL);
    CHECK_INT(memory[500], 7);
}
