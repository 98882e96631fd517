/* Arenas: what they hand out, how they end, and how running out unwinds. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "base/memory.h"
#include "check.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifdef SANITIZED
#include <sanitizer/asan_interface.h>
#define IS_POISONED(address) __asan_address_is_poisoned(address)
#else
#define SANITIZED            0
#define IS_POISONED(address) ((address) != NULL)
#endif

static bool is_zero(const void *memory, size_t size)
{
    const uint8_t *bytes = memory;

    for (size_t i = 0; i < size; i++) {
        if (bytes[i])
            return false;
    }
    return true;
}

static void many_sizes(struct cm_arena *arena)
{
    for (size_t size = 0; size < 3000; size += 7) {
        void *memory = cm_arena_alloc(arena, size);

        CHECK((uintptr_t)memory % 16 == 0);
        CHECK(is_zero(memory, size));
        memset(memory, 0xa5, size);
    }
    void *big = cm_arena_alloc(arena, 5 << 20);
    CHECK((uintptr_t)big % 16 == 0);
    CHECK(is_zero(big, 5 << 20));
}

void test_arena__memory_is_aligned_and_zeroed(void)
{
    check_in_arena(many_sizes);
}

static void overlap_body(struct cm_arena *arena)
{
    uint8_t *parts[500];

    for (size_t i = 0; i < CM_COUNT(parts); i++) {
        parts[i] = cm_arena_alloc(arena, 100);
        memset(parts[i], (int)(i % 251), 100);
    }
    for (size_t i = 0; i < CM_COUNT(parts); i++)
        CHECK(parts[i][0] == i % 251 && parts[i][99] == i % 251);
}

void test_arena__allocations_do_not_overlap(void)
{
    check_in_arena(overlap_body);
}

static void reuse_body(struct cm_arena *arena)
{
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 200; i++) {
            void *memory = cm_arena_alloc(arena, 333);

            CHECK(is_zero(memory, 333));
            memset(memory, 0xff, 333);
        }
        cm_arena_reset(arena);
    }
    cm_arena_alloc(arena, 100);
    const uint64_t before = cm_memory_count();
    const size_t held = arena->held;
    cm_arena_reset(arena);
    CHECK(is_zero(cm_arena_alloc(arena, 100), 100));
    CHECK_INT(cm_memory_count(), before);
    CHECK_INT(arena->held, held);
}

void test_arena__reset_memory_is_zeroed_and_reused(void)
{
    check_in_arena(reuse_body);
}

static void huge_reset_body(struct cm_arena *arena)
{
    cm_arena_alloc(arena, 8 << 20);
    CHECK(arena->held > 8 << 20);
    cm_arena_reset(arena);
    CHECK(arena->held <= 1 << 20);
}

void test_arena__reset_gives_huge_blocks_back(void)
{
    check_in_arena(huge_reset_body);
}

static void few_blocks_body(struct cm_arena *arena)
{
    const uint64_t before = cm_memory_count();

    for (int i = 0; i < 100000; i++)
        cm_arena_alloc(arena, 64);
    CHECK(cm_memory_count() - before < 40);
}

void test_arena__small_allocations_share_few_blocks(void)
{
    check_in_arena(few_blocks_body);
}

/* What was cleaned up, in order. */
static char trail[16];

static void note(void *what)
{
    const size_t size = strlen(trail);

    if (size + 1 < sizeof trail) {
        trail[size] = *(const char *)what;
        trail[size + 1] = 0;
    }
}

static char name_a = 'a', name_b = 'b', name_c = 'c';

static void defer_body(struct cm_arena *arena)
{
    cm_arena_defer(arena, note, &name_a);
    cm_arena_defer(arena, note, &name_b);
    cm_arena_defer(arena, note, &name_c);
    cm_arena_forget(arena, note, &name_b);
}

void test_arena__cleanups_run_newest_first_unless_forgotten(void)
{
    trail[0] = 0;
    check_in_arena(defer_body);
    CHECK_STRING(trail, "ca");
}

static void defer_reset_body(struct cm_arena *arena)
{
    cm_arena_defer(arena, note, &name_a);
    cm_arena_reset(arena);
    CHECK_STRING(trail, "a");
}

void test_arena__reset_runs_cleanups_once(void)
{
    trail[0] = 0;
    check_in_arena(defer_reset_body);
    CHECK_STRING(trail, "a");
}

static void without_end(struct cm_arena *arena)
{
    cm_arena_defer(arena, note, &name_a);
    for (;;)
        cm_arena_alloc(arena, 1000);
}

void test_guard__reaching_the_limit_unwinds_and_cleans_up(void)
{
    struct cm_error err = {0};

    trail[0] = 0;
    CHECK_FAILS(check_in_arena_limited(300000, &err, without_end), CM_LIMIT, &err,
                "memory limit of 300000 bytes");
    CHECK_STRING(trail, "a");
}

static void nearly_all(struct cm_arena *arena)
{
    cm_arena_alloc(arena, 20000);
    cm_arena_alloc(arena, 20000);
    cm_arena_alloc(arena, 20000);
}

void test_guard__a_limit_is_used_up_before_it_is_reached(void)
{
    struct cm_error err = {0};

    CHECK_OK(check_in_arena_limited(61000, &err, nearly_all), &err);
    CHECK_INT(check_in_arena_limited(59000, &err, nearly_all), CM_LIMIT);
}

static void release_then_more(struct cm_arena *arena)
{
    for (int i = 0; i < 100; i++) {
        cm_arena_alloc(arena, 40000);
        cm_arena_reset(arena);
    }
}

void test_guard__given_back_memory_does_not_count(void)
{
    struct cm_error err = {0};

    CHECK_OK(check_in_arena_limited(100000, &err, release_then_more), &err);
}

static void absurd_size(struct cm_arena *arena)
{
    cm_arena_alloc(arena, SIZE_MAX - 3);
}

static void absurd_product(struct cm_arena *arena)
{
    cm_arena_alloc_array(arena, SIZE_MAX / 2, 4);
}

void test_guard__sizes_that_overflow_unwind(void)
{
    struct cm_error err = {0};

    CHECK_INT(check_in_arena_limited(0, &err, absurd_size), CM_NO_MEMORY);
    CHECK_INT(check_in_arena_limited(0, &err, absurd_product), CM_NO_MEMORY);
    CHECK_INT(check_in_arena_limited(0, NULL, absurd_product), CM_NO_MEMORY);
}

static void several_blocks(struct cm_arena *arena)
{
    cm_arena_defer(arena, note, &name_a);
    for (int i = 0; i < 50; i++)
        cm_arena_printf(arena, "%0*d", 500, i);
    cm_arena_defer(arena, note, &name_b);
}

void test_guard__each_failing_allocation_unwinds(void)
{
    struct cm_error err = {0};
    enum cm_status status = CM_NO_MEMORY;
    uint64_t nth = 0;

    while (status != CM_OK && nth < 100) {
        trail[0] = 0;
        cm_memory_fail_after(++nth);
        status = check_in_arena_limited(0, &err, several_blocks);
        cm_memory_fail_after(0);
        if (status != CM_OK) {
            CHECK_FAILS(status, CM_NO_MEMORY, &err, "no memory for");
            CHECK_STRING(trail, "a");
        }
    }
    CHECK_INT(status, CM_OK);
    CHECK_STRING(trail, "ba");
    CHECK(nth > 2);
}

/* Two arenas in frames that unwinding leaves: both must be released while they exist. */
static void stop_below(struct cm_guard *guard)
{
    struct cm_arena arena;

    cm_arena_init(&arena, guard);
    cm_arena_defer(&arena, note, &name_b);
    cm_guard_unwind(guard, CM_CANCELLED, cm_arena_printf(&arena, "stopped at %d", 7).data);
}

static enum cm_status call_and_stop(struct cm_guard *guard, void *arg)
{
    struct cm_arena arena;

    (void)arg;
    cm_arena_init(&arena, guard);
    cm_arena_defer(&arena, note, &name_a);
    stop_below(guard);
    return CM_OK;
}

void test_guard__unwinding_releases_newest_arena_first_and_keeps_the_sentence(void)
{
    struct cm_error err = {0};

    trail[0] = 0;
    CHECK_INT(cm_guarded(0, &err, call_and_stop, NULL), CM_CANCELLED);
    CHECK_STRING(err.text, "stopped at 7");
    CHECK_STRING(trail, "ba");
}

static enum cm_status exhaust_given(struct cm_guard *guard, void *arg)
{
    struct cm_arena own;

    cm_arena_init(&own, guard);
    cm_arena_defer(&own, note, &name_b);
    cm_arena_alloc(arg ? arg : &own, SIZE_MAX / 2);
    return CM_OK;
}

static enum cm_status call_nested(struct cm_guard *guard, void *use_outer)
{
    struct cm_error inner_err = {0};
    struct cm_arena arena;

    cm_arena_init(&arena, guard);
    cm_arena_defer(&arena, note, &name_a);
    const enum cm_status inner =
        cm_guarded(0, &inner_err, exhaust_given, use_outer ? &arena : NULL);
    /* Still ours to use, as only the inner guard was unwound. */
    cm_arena_alloc(&arena, 10);
    cm_arena_release(&arena);
    return inner == CM_NO_MEMORY ? CM_CANCELLED : CM_OK;
}

void test_guard__an_inner_guard_unwinds_alone(void)
{
    struct cm_error err = {0};

    trail[0] = 0;
    CHECK_INT(cm_guarded(0, &err, call_nested, NULL), CM_CANCELLED);
    CHECK_STRING(trail, "ba");
}

void test_guard__exhausting_an_outer_arena_unwinds_the_inner_guard_too(void)
{
    struct cm_error err = {0};
    int yes = 1;

    trail[0] = 0;
    CHECK_INT(cm_guarded(0, &err, call_nested, &yes), CM_NO_MEMORY);
    CHECK_STRING(trail, "ba");
}

static enum cm_status keep_arena(struct cm_guard *guard, void *arg)
{
    cm_arena_init(arg, guard);
    cm_arena_defer(arg, note, &name_a);
    return CM_OK;
}

static enum cm_status exhaust_lent(struct cm_guard *guard, void *arg)
{
    cm_arena_lend(arg, guard);
    for (int i = 0; i < 1000; i++)
        cm_arena_alloc(arg, 500);
    return CM_OK;
}

void test_guard__a_lent_arena_survives_unwinding(void)
{
    struct cm_error err = {0};
    struct cm_arena arena;

    trail[0] = 0;
    CHECK_OK(cm_guarded(0, &err, keep_arena, &arena), &err);
    CHECK(arena.guard == NULL);
    CHECK_INT(cm_guarded(50000, &err, exhaust_lent, &arena), CM_LIMIT);
    CHECK(arena.guard == NULL);
    CHECK_STRING(trail, "");
    cm_arena_release(&arena);
    CHECK_STRING(trail, "a");
}

void test_arena__a_zeroed_arena_may_be_released(void)
{
    struct cm_arena arena = {0};

    cm_arena_release(&arena);
    CHECK(arena.block == NULL);
}

static enum cm_status defer_without_memory(struct cm_guard *guard, void *arg)
{
    struct cm_arena arena;

    (void)arg;
    cm_arena_init(&arena, guard);
    cm_memory_fail_after(1);
    cm_arena_defer(&arena, note, &name_c);
    return CM_OK;
}

void test_arena__what_cannot_be_deferred_is_cleaned_up_at_once(void)
{
    struct cm_error err = {0};

    trail[0] = 0;
    const enum cm_status status = cm_guarded(0, &err, defer_without_memory, NULL);
    cm_memory_fail_after(0);
    CHECK_INT(status, CM_NO_MEMORY);
    CHECK_STRING(trail, "c");
}

static void text_body(struct cm_arena *arena)
{
    const struct cm_str copy = cm_arena_str(arena, (struct cm_str){"abcdef", 3});

    CHECK_STR(copy, "abc");
    CHECK(copy.data[3] == 0);
    CHECK_STR(cm_arena_str(arena, CM_STR_NONE), "");
    CHECK_STR(cm_arena_printf(arena, "%s-%d", "x", 42), "x-42");
    CHECK_STR(cm_arena_printf(arena, "%s", ""), "");
    CHECK_INT(cm_arena_printf(arena, "%09000d", 1).size, 9000);
}

void test_arena__copies_and_formats_text(void)
{
    check_in_arena(text_body);
}

static void push_body(struct cm_arena *arena)
{
    struct {
        CM_ARRAY(int);
    } list = {0};

    for (int i = 0; i < 1000; i++)
        *CM_PUSH(arena, &list) = i;
    CHECK_INT(list.count, 1000);
    CHECK(list.capacity >= 1000);
    for (int i = 0; i < 1000; i++)
        CHECK_INT(list.items[i], i);
}

void test_arena__a_pushed_list_keeps_its_items(void)
{
    check_in_arena(push_body);
}

static void gap_body(struct cm_arena *arena)
{
    char *first = cm_arena_alloc(arena, 21);
    char *second = cm_arena_alloc(arena, 32);

    CHECK(!IS_POISONED(first + 20) && IS_POISONED(first + 21) && IS_POISONED(second - 1));
    CHECK(!IS_POISONED(second) && IS_POISONED(second + 32));
    cm_arena_reset(arena);
    CHECK(IS_POISONED(first) && IS_POISONED(second));
}

void test_arena__gaps_are_poisoned_in_sanitizer_builds(void)
{
    if (!SANITIZED)
        skip();
    check_in_arena(gap_body);
}
