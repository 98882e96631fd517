/* malloc behind a counter that can be told to fail. */
// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE /* madvise */
#include "base/memory.h"

#include "base/number.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#ifdef __linux__
#include <malloc.h>
#endif

static _Atomic uint64_t asked;   /* allocations so far, the failed ones included */
static _Atomic uint64_t fail_at; /* the first number that fails, 0 for none */

/* Counts one allocation and says whether it may go on. Sizes past PTRDIFF_MAX are refused here, as
 * no object can be that large and sanitizers end the process over them. */
static bool may_allocate(size_t size)
{
    const uint64_t number = atomic_fetch_add_explicit(&asked, 1, memory_order_relaxed) + 1;
    const uint64_t first_bad = atomic_load_explicit(&fail_at, memory_order_relaxed);

    return size <= PTRDIFF_MAX && (first_bad == 0 || number < first_bad);
}

/* C leaves the result for size 0 open; we want memory that can be told from a failure. */
static size_t at_least_one(size_t size)
{
    return size ? size : 1;
}

static _Thread_local uint64_t refused;

uint64_t cm_memory_refused(void)
{
    return refused;
}

void cm_memory_note_refused(void)
{
    refused++;
}

/* Every allocation ends here. */
static void *counted(void *memory, size_t size)
{
    refused += !memory && size <= PTRDIFF_MAX;
    return memory;
}

void *cm_malloc(size_t size)
{
    return counted(may_allocate(size) ? malloc(at_least_one(size)) : NULL, size);
}

void *cm_calloc(size_t count, size_t size)
{
    size_t total;

    if (!cm_size_mul(count, size, &total))
        total = SIZE_MAX;
    return counted(may_allocate(total) ? calloc(1, at_least_one(total)) : NULL, total);
}

void *cm_realloc(void *memory, size_t size)
{
    return counted(may_allocate(size) ? realloc(memory, at_least_one(size)) : NULL, size);
}

enum { LARGE_PAGE = 1 << 21 };

/* Whole pages of it: the last bytes stay in small ones, so that none are wasted. */
static void ask_for_large_pages(void *memory, size_t size)
{
#ifdef MADV_HUGEPAGE
    (void)madvise(memory, size / LARGE_PAGE * LARGE_PAGE, MADV_HUGEPAGE); /* as good without */
#else
    (void)memory;
    (void)size;
#endif
}

void *cm_malloc_on_pages(size_t alignment, size_t size)
{
    const size_t least = alignment < sizeof(void *) ? sizeof(void *) : alignment;
    const bool fits = size <= PTRDIFF_MAX && least <= PTRDIFF_MAX;
    void *memory;

    if (!may_allocate(fits ? size : SIZE_MAX) ||
        posix_memalign(&memory, least, cm_round_up(at_least_one(size), least)) != 0)
        memory = NULL;
    return counted(memory, fits ? size : SIZE_MAX);
}

void *cm_malloc_aligned(size_t alignment, size_t size)
{
    const bool large = size >= LARGE_PAGE && alignment <= LARGE_PAGE;
    void *memory = cm_malloc_on_pages(large ? LARGE_PAGE : alignment, size);

    if (memory && large)
        ask_for_large_pages(memory, size);
    return memory;
}

bool cm_memory_is_left(size_t size)
{
    void *probe = MAP_FAILED;

    if (may_allocate(size))
        probe = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (probe == MAP_FAILED) {
        cm_memory_note_refused();
        return false;
    }
    munmap(probe, size);
    return true;
}

void cm_memory_populate(void *memory, size_t size)
{
#ifdef MADV_POPULATE_WRITE
    const size_t page = 4096;
    const uintptr_t first = cm_round_up((size_t)(uintptr_t)memory, page);
    const uintptr_t end = ((uintptr_t)memory + size) / page * page;

    if (first < end)
        (void)madvise((void *)first, end - first, MADV_POPULATE_WRITE);
#else
    (void)memory;
    (void)size;
#endif
}

/* ---- memory that stays ---- */

static struct {
    pthread_mutex_t lock;
    const char **items;
    size_t count;
    bool unknown; /* one is not in the list: all memory may be it */
    atomic_bool any;
} pins = {.lock = PTHREAD_MUTEX_INITIALIZER};

void cm_memory_pin(const void *address)
{
    pthread_mutex_lock(&pins.lock);
    const char **grown = realloc(pins.items, (pins.count + 1) * sizeof *grown);
    if (grown) {
        pins.items = grown;
        pins.items[pins.count++] = address;
    }
    pins.unknown |= !grown;
    atomic_store(&pins.any, true);
    pthread_mutex_unlock(&pins.lock);
}

bool cm_memory_is_pinned(const void *memory, size_t size)
{
    bool found = false;

    if (!atomic_load_explicit(&pins.any, memory_order_acquire) || !memory)
        return false;
    pthread_mutex_lock(&pins.lock);
    found = pins.unknown;
    for (size_t i = 0; i < pins.count && !found; i++)
        found = (uintptr_t)pins.items[i] - (uintptr_t)memory < size;
    pthread_mutex_unlock(&pins.lock);
    return found;
}

/* Where the size of a block is not to be had, all of them may hold what is pinned. */
static size_t size_of(void *memory)
{
#ifdef __linux__
    return malloc_usable_size(memory);
#else
    (void)memory;
    return SIZE_MAX;
#endif
}

void cm_free(void *memory)
{
    if (!atomic_load_explicit(&pins.any, memory_order_relaxed) ||
        !cm_memory_is_pinned(memory, size_of(memory)))
        free(memory);
}

void cm_memory_fail_after(uint64_t n)
{
    static _Thread_local uint64_t before;

    if (n)
        before = refused;
    else if (atomic_load_explicit(&fail_at, memory_order_relaxed))
        refused = before;
    atomic_store_explicit(&fail_at, n ? cm_memory_count() + n : 0, memory_order_relaxed);
}

uint64_t cm_memory_count(void)
{
    return atomic_load_explicit(&asked, memory_order_relaxed);
}
