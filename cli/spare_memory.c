/* The command's allocator: the system's, with a reserve for the libraries of others. oneDNN,
 * OpenMP, LLVM and the loader end the process when a small allocation fails: they throw out of C
 * functions, call exit or read a NULL pointer. Code of our own has an answer to a failed
 * allocation, so that code gets no reserve: it ends the run with a sentence, while the libraries
 * still get what they need until then.
 *
 * These functions replace those of the C library in the whole process, which the C library allows.
 * Sanitizers bring an allocator of their own; there this file is empty. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "short_of_memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

static atomic_bool refused, missed;

bool cli_memory_was_refused(void)
{
    return atomic_load_explicit(&refused, memory_order_relaxed);
}

bool cli_memory_was_missed(void)
{
    return atomic_load_explicit(&missed, memory_order_relaxed);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OTHER_ALLOCATOR 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define OTHER_ALLOCATOR 1
#endif
#endif

#if defined(__linux__) && defined(__ELF__) && !defined(OTHER_ALLOCATOR)

#define SHARED __attribute__((visibility("default")))

/* ---- the reserve: handed out once, never taken back ---- */

enum { RESERVE = 1 << 20, LARGEST = 1 << 16, ALIGNMENT = 16 };

static _Alignas(ALIGNMENT) char reserve[RESERVE]; /* its pages cost nothing until they are used */
static atomic_size_t used;

static bool is_reserve(const void *memory)
{
    return (uintptr_t)memory - (uintptr_t)reserve < sizeof reserve;
}

/* The size is kept before the block. */
static size_t *size_of(void *memory)
{
    return (size_t *)memory - 1;
}

static void *from_reserve(size_t alignment, size_t size)
{
    if (size > LARGEST || alignment > LARGEST)
        return NULL;
    const size_t least = alignment > ALIGNMENT ? alignment : ALIGNMENT;
    const size_t bytes = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + ALIGNMENT + least;
    const size_t at = atomic_fetch_add(&used, bytes);
    if (at > sizeof reserve - bytes) {
        atomic_fetch_sub(&used, bytes);
        return NULL;
    }
    const uintptr_t first = (uintptr_t)reserve + at + ALIGNMENT;
    void *memory = reserve + ((first + least - 1) / least * least - (uintptr_t)reserve);
    *size_of(memory) = size;
    return memory;
}

extern const char __executable_start[], etext[]; /* of the linker */

/* What stands in for an allocation of the system that failed: the caller's address says whether it
 * is ours. */
static void *instead(const void *caller, size_t alignment, size_t size)
{
    const uintptr_t from = (uintptr_t)caller - (uintptr_t)__executable_start;

    atomic_store_explicit(&refused, true, memory_order_relaxed);
    void *memory = from < (uintptr_t)etext - (uintptr_t)__executable_start
                       ? NULL
                       : from_reserve(alignment, size);
    if (!memory) {
        atomic_store_explicit(&missed, true, memory_order_relaxed);
        errno = ENOMEM;
    }
    return memory;
}

/* ---- the functions of the C library ---- */

typedef void *malloc_fn(size_t);
typedef void *two_sizes_fn(size_t, size_t);
typedef void *realloc_fn(void *, size_t);
typedef int posix_memalign_fn(void **, size_t, size_t);
typedef void free_fn(void *);
typedef size_t usable_fn(void *);

/* The functions of the libraries after this program, an allocator that the user preloads among
 * them. All are looked up by the first call, which the loader makes before main. A lookup must not
 * happen later: dlerror calls the allocator while it holds the text that a lookup would free. */
static struct {
    malloc_fn *malloc;
    two_sizes_fn *calloc, *memalign, *aligned_alloc;
    realloc_fn *realloc;
    posix_memalign_fn *posix_memalign;
    free_fn *free;
    usable_fn *malloc_usable_size;
} next;

#define LOOK_UP(type, name) next.name = (type *)(uintptr_t)dlsym(RTLD_NEXT, #name)

/* False while the lookup itself asks for memory. */
static bool is_ready(void)
{
    static enum { NEW, LOOKING, READY } state; /* no second thread exists before READY */

    if (state == NEW) {
        state = LOOKING;
        LOOK_UP(malloc_fn, malloc);
        LOOK_UP(two_sizes_fn, calloc);
        LOOK_UP(two_sizes_fn, memalign);
        LOOK_UP(two_sizes_fn, aligned_alloc);
        LOOK_UP(realloc_fn, realloc);
        LOOK_UP(posix_memalign_fn, posix_memalign);
        LOOK_UP(free_fn, free);
        LOOK_UP(usable_fn, malloc_usable_size);
        state = READY;
    }
    return state == READY;
}

void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *memory, size_t size);
void *memalign(size_t alignment, size_t size);
void *aligned_alloc(size_t alignment, size_t size);
int posix_memalign(void **out, size_t alignment, size_t size);
void free(void *memory);
size_t malloc_usable_size(void *memory);

SHARED void *malloc(size_t size)
{
    if (!is_ready())
        return from_reserve(ALIGNMENT, size);
    void *memory = next.malloc(size);
    return memory ? memory : instead(__builtin_return_address(0), ALIGNMENT, size);
}

SHARED void *calloc(size_t count, size_t size)
{
    const size_t bytes = size && count > SIZE_MAX / size ? SIZE_MAX : count * size;

    if (!is_ready())
        return from_reserve(ALIGNMENT, bytes);
    void *memory = next.calloc(count, size);
    if (memory)
        return memory;
    return instead(__builtin_return_address(0), ALIGNMENT, bytes); /* zero: nobody had it before */
}

SHARED void *realloc(void *memory, size_t size)
{
    const bool spare = is_reserve(memory);
    void *grown =
        is_ready() ? next.realloc(spare ? NULL : memory, size) : from_reserve(ALIGNMENT, size);

    if (!grown && size == 0)
        return NULL;
    if (!grown)
        grown = instead(__builtin_return_address(0), ALIGNMENT, size);
    if (grown && memory && (spare || is_reserve(grown))) {
        const size_t held = malloc_usable_size(memory);
        memcpy(grown, memory, held < size ? held : size);
        free(memory);
    }
    return grown;
}

SHARED void *memalign(size_t alignment, size_t size)
{
    if (!is_ready())
        return from_reserve(alignment, size);
    void *memory = next.memalign(alignment, size);
    return memory ? memory : instead(__builtin_return_address(0), alignment, size);
}

SHARED void *aligned_alloc(size_t alignment, size_t size)
{
    if (!is_ready())
        return from_reserve(alignment, size);
    void *memory = next.aligned_alloc(alignment, size);
    return memory ? memory : instead(__builtin_return_address(0), alignment, size);
}

SHARED int posix_memalign(void **out, size_t alignment, size_t size)
{
    const int status = is_ready() ? next.posix_memalign(out, alignment, size) : ENOMEM;

    if (status != ENOMEM)
        return status;
    void *memory = instead(__builtin_return_address(0), alignment, size);
    if (memory)
        *out = memory;
    return memory ? 0 : ENOMEM;
}

SHARED void free(void *memory)
{
    if (!is_reserve(memory) && is_ready())
        next.free(memory);
}

SHARED size_t malloc_usable_size(void *memory)
{
    if (is_reserve(memory))
        return *size_of(memory);
    return is_ready() ? next.malloc_usable_size(memory) : 0;
}

#endif
