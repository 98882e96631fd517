/* Arenas: chains of zeroed blocks, and the guard that an exhausted one unwinds to. */
// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include "base/memory.h"
#include "base/number.h"
#include "base/stack.h"

#include <assert.h>
#include <setjmp.h>

#if defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#endif

/* In sanitizer builds whatever was not handed out is poisoned, and a gap follows each allocation,
 * so that running over the end of one is caught as it would be with malloc. */
#ifdef UNDER_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(start, size)   ASAN_POISON_MEMORY_REGION((start), (size))
#define UNPOISON(start, size) ASAN_UNPOISON_MEMORY_REGION((start), (size))
enum { GAP = 16 };
#else
#define POISON(start, size)   ((void)(start), (void)(size))
#define UNPOISON(start, size) ((void)(start), (void)(size))
enum { GAP = 0 };
#endif

enum { ALIGNMENT = 16, BLOCK_MIN = 4096, BLOCK_MAX = 1 << 20, POPULATED_FROM = 8 << 20 };

struct cm_arena_block {
    struct cm_arena_block *next;
    size_t size; /* of bytes */
    size_t used; /* what lies past it is zero */
    _Alignas(ALIGNMENT) uint8_t bytes[];
};

struct cm_cleanup {
    struct cm_cleanup *next;
    cm_cleanup_fn *fn;
    void *what;
};

struct cm_guard {
    jmp_buf jump;
    struct cm_guard *outer;
    struct cm_arena *arenas; /* newest first */
    struct cm_error *err;
    size_t limit, held;
    enum cm_status status; /* why it was unwound */
    uint64_t refused;      /* allocations of this thread that failed before it began */
};

/* Unwinding to an outer guard must release what the guards inside it know, so each thread keeps its
 * guards as a list. Nothing older than the guard in question is ever followed. */
static _Thread_local struct cm_guard *innermost;

static void attach(struct cm_arena *arena, struct cm_guard *guard)
{
    arena->guard = guard;
    if (!guard)
        return;
    arena->next = guard->arenas;
    guard->arenas = arena;
    guard->held += arena->held;
}

static void detach(struct cm_arena *arena)
{
    struct cm_guard *guard = arena->guard;

    if (!guard)
        return;
    struct cm_arena **link = &guard->arenas;
    while (*link && *link != arena)
        link = &(*link)->next;
    assert(*link == arena);
    if (*link)
        *link = arena->next;
    guard->held -= arena->held;
    arena->guard = NULL;
    arena->next = NULL;
    arena->borrowed = false;
}

/* The guard is not a local of the function that calls setjmp: what changed in it meanwhile would be
 * indeterminate after the jump. */
static enum cm_status call_guarded(struct cm_guard *guard, cm_guarded_fn *fn, void *arg)
{
    if (setjmp(guard->jump))
        return guard->status;
    return fn(guard, arg);
}

bool cm_guard_starved(void)
{
    const struct cm_guard *guard = innermost;

    while (guard && guard->outer)
        guard = guard->outer;
    return guard && guard->refused != cm_memory_refused();
}

/* An allocation failed in the call. Whoever met that may have gone on with less, so its answer
 * counts for nothing. */
static enum cm_status blame_memory(enum cm_status status, struct cm_error *err)
{
    char reason[CM_ERROR_SIZE];

    if (status == CM_NO_MEMORY || status == CM_CANCELLED)
        return status;
    if (status == CM_OK || !err)
        return cm_fail(err, CM_NO_MEMORY, "no memory for a part of the call");
    snprintf(reason, sizeof reason, "%s", err->text);
    return cm_fail(err, CM_NO_MEMORY, "%s%s",
                   strstr(reason, "memory") ? "" : "no memory: ", reason);
}

enum cm_status cm_guarded(size_t limit, struct cm_error *err, cm_guarded_fn *fn, void *arg)
{
    struct cm_guard guard = {
        .outer = innermost, .err = err, .limit = limit, .refused = cm_memory_refused()};

    if (!innermost && cm_stack_left() < CM_STACK_OF_CALL)
        return cm_fail(err, CM_NO_MEMORY,
                       "the calling thread has %zu KiB of stack left, a call needs %d: start the "
                       "thread with a larger stack, or raise 'ulimit -s'",
                       cm_stack_left() >> 10, CM_STACK_OF_CALL >> 10);
    innermost = &guard;
    const enum cm_status status = call_guarded(&guard, fn, arg);
    innermost = guard.outer;
    while (guard.arenas)
        detach(guard.arenas);
    return guard.refused != cm_memory_refused() ? blame_memory(status, err) : status;
}

static void release_arenas(struct cm_guard *guard)
{
    while (guard->arenas) {
        if (guard->arenas->borrowed)
            detach(guard->arenas);
        else
            cm_arena_release(guard->arenas);
    }
}

/* Arenas are released before the jump: after it, those that live in the frames left behind would be
 * gone. The sentence is written first, as it may lie in one of them. */
CM_NORETURN void cm_guard_unwind(struct cm_guard *guard, enum cm_status status, const char *why)
{
    assert(guard && status != CM_OK);
    guard->status = cm_fail(guard->err, status, "%s", why);
    while (innermost && innermost != guard) {
        release_arenas(innermost);
        innermost = innermost->outer;
    }
    assert(innermost == guard); /* else it belongs to another thread, or its call is over */
    release_arenas(guard);
    longjmp(guard->jump, 1);
}

void cm_arena_init(struct cm_arena *arena, struct cm_guard *guard)
{
    *arena = (struct cm_arena){0};
    attach(arena, guard);
}

void cm_arena_lend(struct cm_arena *arena, struct cm_guard *guard)
{
    assert(!arena->guard);
    detach(arena);
    attach(arena, guard);
    arena->borrowed = true;
}

struct cm_arena_visit cm_arena_visit(struct cm_arena *arena, struct cm_guard *inner)
{
    const struct cm_arena_visit visit = {arena->guard, arena->borrowed};

    detach(arena);
    cm_arena_lend(arena, inner);
    return visit;
}

void cm_arena_come_back(struct cm_arena *arena, struct cm_arena_visit visit)
{
    detach(arena);
    attach(arena, visit.home);
    arena->borrowed = visit.borrowed;
}

static void run_cleanups(struct cm_arena *arena)
{
    while (arena->cleanups) {
        const struct cm_cleanup cleanup = *arena->cleanups;

        arena->cleanups = cleanup.next;
        cleanup.fn(cleanup.what);
    }
}

static void free_block(struct cm_arena_block *block)
{
    UNPOISON(block->bytes, block->size);
    cm_free(block);
}

void cm_arena_release(struct cm_arena *arena)
{
    run_cleanups(arena);
    detach(arena);
    struct cm_arena_block *block = arena->block;
    *arena = (struct cm_arena){0};
    while (block) {
        struct cm_arena_block *next = block->next;

        free_block(block);
        block = next;
    }
}

static size_t block_cost(const struct cm_arena_block *block)
{
    return sizeof *block + block->size;
}

/* Of the blocks of ordinary size, the largest is kept; one made for a huge request is not worth
 * clearing. */
void cm_arena_reset(struct cm_arena *arena)
{
    struct cm_arena_block *kept = NULL;
    const size_t held = arena->held;

    run_cleanups(arena);
    for (struct cm_arena_block *block = arena->block; block; block = block->next) {
        if (block_cost(block) <= BLOCK_MAX && (!kept || block->size > kept->size))
            kept = block;
    }
    struct cm_arena_block *block = arena->block;
    while (block) {
        struct cm_arena_block *next = block->next;

        if (block != kept)
            free_block(block);
        block = next;
    }
    arena->block = kept;
    arena->held = kept ? block_cost(kept) : 0;
    if (arena->guard)
        arena->guard->held -= held - arena->held;
    if (!kept)
        return;
    UNPOISON(kept->bytes, kept->used);
    memset(kept->bytes, 0, kept->used);
    POISON(kept->bytes, kept->size);
    kept->next = NULL;
    kept->used = 0;
}

/* Whether this many more bytes stay within the guard's limit. */
static bool within_limit(const struct cm_guard *guard, size_t size)
{
    return guard->limit == 0 || (guard->held <= guard->limit && size <= guard->limit - guard->held);
}

enum cm_status cm_guard_charge(struct cm_guard *guard, size_t size, struct cm_error *err)
{
    if (!within_limit(guard, size))
        return cm_fail(err, CM_LIMIT,
                       "%zu bytes beside the %zu in use would exceed the memory limit of %zu", size,
                       guard->held, guard->limit);
    guard->held += size;
    return CM_OK;
}

/* A block for need bytes. Its size follows what the arena already holds, so their number stays
 * logarithmic up to BLOCK_MAX. A request that would leave much of the current block unused gets a
 * block of its own, behind the current one, which is then still filled. */
static struct cm_arena_block *add_block(struct cm_arena *arena, size_t need, enum cm_status *why)
{
    size_t cost = arena->held < BLOCK_MIN ? BLOCK_MIN : cm_min_size(arena->held, BLOCK_MAX);
    const bool own = need > cost / 4 || !within_limit(arena->guard, cost);

    if (own)
        cost = need + sizeof(struct cm_arena_block);
    *why = CM_LIMIT;
    if (!within_limit(arena->guard, cost))
        return NULL;
    *why = CM_NO_MEMORY;
    struct cm_arena_block *block = cm_calloc(1, cost);
    if (!block)
        return NULL;
    /* An arena that grew so far fills its next block too. */
    if (!own && arena->held >= POPULATED_FROM)
        cm_memory_populate(block, cost);
    block->size = cost - sizeof *block;
    POISON(block->bytes, block->size);
    struct cm_arena_block **place = own && arena->block ? &arena->block->next : &arena->block;
    block->next = *place;
    *place = block;
    arena->held += cost;
    arena->guard->held += cost;
    return block;
}

static void *try_alloc(struct cm_arena *arena, size_t size, enum cm_status *why)
{
    assert(arena->guard);
    *why = CM_NO_MEMORY;
    if (size > PTRDIFF_MAX - BLOCK_MIN)
        return NULL;
    const size_t need = cm_round_up(size ? size : 1, ALIGNMENT) + GAP;
    struct cm_arena_block *block = arena->block;
    if (!block || need > block->size - block->used)
        block = add_block(arena, need, why);
    if (!block)
        return NULL;
    void *memory = block->bytes + block->used;
    block->used += need;
    UNPOISON(memory, size);
    return memory;
}

static CM_NORETURN void unwind_exhausted(struct cm_guard *guard, enum cm_status why, size_t size)
{
    char text[96];

    if (why == CM_LIMIT)
        snprintf(text, sizeof text, "the memory limit of %zu bytes is reached", guard->limit);
    else
        snprintf(text, sizeof text, "no memory for %zu more bytes", size);
    cm_guard_unwind(guard, why, text);
}

void *cm_arena_alloc(struct cm_arena *arena, size_t size)
{
    enum cm_status why;
    void *memory = try_alloc(arena, size, &why);

    if (!memory)
        unwind_exhausted(arena->guard, why, size);
    return memory;
}

void *cm_arena_alloc_array(struct cm_arena *arena, size_t count, size_t size)
{
    size_t total;

    return cm_arena_alloc(arena, cm_size_mul(count, size, &total) ? total : SIZE_MAX);
}

/* What could not be tied to the arena is cleaned up at once, as the caller is about to be left. */
void cm_arena_defer(struct cm_arena *arena, cm_cleanup_fn *fn, void *what)
{
    enum cm_status why;
    struct cm_cleanup *cleanup = try_alloc(arena, sizeof *cleanup, &why);

    if (!cleanup) {
        fn(what);
        unwind_exhausted(arena->guard, why, sizeof *cleanup);
    }
    *cleanup = (struct cm_cleanup){arena->cleanups, fn, what};
    arena->cleanups = cleanup;
}

void cm_arena_forget(struct cm_arena *arena, cm_cleanup_fn *fn, void *what)
{
    struct cm_cleanup **link = &arena->cleanups;

    while (*link && ((*link)->fn != fn || (*link)->what != what))
        link = &(*link)->next;
    assert(*link);
    if (*link)
        *link = (*link)->next;
}

struct cm_str cm_arena_str(struct cm_arena *arena, struct cm_str text)
{
    char *copy = cm_arena_alloc(arena, text.size < SIZE_MAX ? text.size + 1 : SIZE_MAX);

    if (text.size)
        memcpy(copy, text.data, text.size);
    return (struct cm_str){copy, text.size};
}

struct cm_str cm_arena_printf(struct cm_arena *arena, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const struct cm_str text = cm_arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}

struct cm_str cm_arena_vprintf(struct cm_arena *arena, const char *format, va_list args)
{
    char small[128]; /* most texts, names of values above all, are formatted once */
    va_list again;

    va_copy(again, args);
    const int size = cm_vformat(small, sizeof small, format, args);

    /* A negative size is an encoding error of a wide-character conversion; we use none. */
    struct cm_str text = {"", 0};
    enum cm_status why = CM_OK;
    char *copy = size < 0 ? NULL : try_alloc(arena, (size_t)size + 1, &why);
    if (copy) {
        if ((size_t)size < sizeof small)
            memcpy(copy, small, (size_t)size + 1);
        else
            cm_vformat(copy, (size_t)size + 1, format, again);
        text = (struct cm_str){copy, (size_t)size};
    }
    va_end(again);
    if (why != CM_OK && !copy)
        unwind_exhausted(arena->guard, why, (size_t)size + 1);
    return text;
}

void *cm_arena_grow(struct cm_arena *arena, const void *items, size_t *capacity, size_t size)
{
    const size_t wanted = *capacity ? *capacity * 2 : 8;
    void *grown = cm_arena_alloc_array(arena, wanted > *capacity ? wanted : SIZE_MAX, size);

    if (*capacity)
        memcpy(grown, items, *capacity * size);
    *capacity = wanted;
    return grown;
}
