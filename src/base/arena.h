/* Memory by lifetime. An arena hands out zeroed memory that is freed all at once; things that are
 * not memory (mapped files, tensor buffers) can be tied to its life with cm_arena_defer.
 *
 * An arena never returns NULL. When memory or the guard's limit is exhausted it unwinds to the
 * cm_guarded call above, which releases every arena made under it and returns CM_NO_MEMORY. So code
 * that allocates from arenas must own nothing that is not tied to an arena. Do not allocate from an
 * arena inside a parallel region. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_ARENA_H
#define CM_BASE_ARENA_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>

struct cm_guard;
struct cm_arena_block;
struct cm_cleanup;

typedef void cm_cleanup_fn(void *what);

struct cm_arena {
    struct cm_guard *guard;
    struct cm_arena_block *block; /* newest first */
    struct cm_cleanup *cleanups;  /* newest first */
    struct cm_arena *next;        /* among the arenas of one guard */
    size_t held;                  /* bytes of all blocks, charged to the guard */
    bool borrowed;                /* lives longer than the guard: not released when it unwinds */
};

typedef enum cm_status cm_guarded_fn(struct cm_guard *guard, void *arg);

/* Calls fn(guard, arg); if an arena is exhausted inside, releases all arenas made under the guard
 * and returns CM_NO_MEMORY (CM_LIMIT when it was the limit) with a sentence in err. limit is in
 * bytes, 0 for none. Calls may nest. Where any allocation of this thread failed inside,
 * CM_NO_MEMORY is returned whatever fn returned: code that went on without what it asked for gives
 * an answer that cannot be trusted. */
/* A thread with too little stack for what may come (base/stack.h) gets CM_NO_MEMORY at once. */
enum cm_status cm_guarded(size_t limit, struct cm_error *err, cm_guarded_fn *fn, void *arg);

/* Did an allocation fail since the outermost guarded call of this thread began? What that call made
 * may then lack a part, and must not replace a file. */
bool cm_guard_starved(void);

/* An arena must not move while a guard knows it. */
void cm_arena_init(struct cm_arena *arena, struct cm_guard *guard);
/* Lets an arena that outlived its first guard allocate under another, which will not release it. */
void cm_arena_lend(struct cm_arena *arena, struct cm_guard *guard);
/* Takes an arena from its guard to one further in, which will not release it; cm_arena_come_back
 * undoes that once the call of the inner one is over, however it ended. */
struct cm_arena_visit {
    struct cm_guard *home;
    bool borrowed;
};
struct cm_arena_visit cm_arena_visit(struct cm_arena *arena, struct cm_guard *inner);
void cm_arena_come_back(struct cm_arena *arena, struct cm_arena_visit visit);
/* Runs the deferred cleanups, newest first, then frees everything. A zeroed arena may be released.
 */
void cm_arena_release(struct cm_arena *arena);
void cm_arena_reset(struct cm_arena *arena);

void *cm_arena_alloc(struct cm_arena *arena, size_t size); /* zeroed, 16-aligned */
void *cm_arena_alloc_array(struct cm_arena *arena, size_t count, size_t size); /* checked product */
void cm_arena_defer(struct cm_arena *arena, cm_cleanup_fn *fn, void *what);
/* Forgets one deferred cleanup without running it; it must be there. */
void cm_arena_forget(struct cm_arena *arena, cm_cleanup_fn *fn, void *what);
/* Counts bytes that lie elsewhere against the limit, for as long as the guard lasts. */
enum cm_status cm_guard_charge(struct cm_guard *guard, size_t size,
                               struct cm_error *err) CM_MUST_CHECK;
/* Leaves the running call as if memory had run out, with this status and sentence. */
CM_NORETURN void cm_guard_unwind(struct cm_guard *guard, enum cm_status status, const char *why);

struct cm_str cm_arena_str(struct cm_arena *arena, struct cm_str text); /* copy, NUL-terminated */
/* Texts in the C locale, whatever the process's locale is. */
struct cm_str cm_arena_printf(struct cm_arena *arena, const char *format, ...) CM_PRINTF(2, 3);
struct cm_str cm_arena_vprintf(struct cm_arena *arena, const char *format, va_list args);

#define CM_NEW(arena, type) ((type *)cm_arena_alloc((arena), sizeof(type)))
#define CM_NEW_ARRAY(arena, type, count)                                                           \
    ((type *)cm_arena_alloc_array((arena), (count), sizeof(type)))

/* A growable array is any struct with the members items, count, capacity; pushing may move items.
 */
#define CM_PUSH(arena, list)                                                                       \
    ((list)->count == (list)->capacity                                                             \
         ? (void)((list)->items = cm_arena_grow((arena), (list)->items, &(list)->capacity,         \
                                                sizeof *(list)->items))                            \
         : (void)0,                                                                                \
     &(list)->items[(list)->count++])

/* Pushes copies of n items at once. */
#define CM_PUSH_ALL(arena, list, from, n)                                                          \
    do {                                                                                           \
        while ((list)->capacity - (list)->count < (n))                                             \
            (list)->items =                                                                        \
                cm_arena_grow((arena), (list)->items, &(list)->capacity, sizeof *(list)->items);   \
        if (n)                                                                                     \
            memcpy((list)->items + (list)->count, (from), (n) * sizeof *(list)->items);            \
        (list)->count += (n);                                                                      \
    } while (0)

void *cm_arena_grow(struct cm_arena *arena, const void *items, size_t *capacity, size_t size);

#endif
