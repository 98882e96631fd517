/* Preloaded into a program: makes one allocation of the whole process fail, those of libraries
 * included, or that one and all after it.
 *
 * FAIL_FILE names a file of 8-byte numbers that this maps: the number of allocations so far, then a
 * hash of the call stack of each, as many as the file has room for. FAIL_AT is the allocation that
 * fails (1 is the first; 0 or absent: none), FAIL_ALL=1 has all after it fail too. Hashes are
 * computed only where nothing fails. Programs that the process starts are left alone. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static _Atomic uint64_t *counter; /* in the file */
static uint64_t *stacks;
static size_t n_stacks;
static uint64_t fail_at;
static bool fail_all, trace;
static _Thread_local bool inside;

enum { DEPTH = 24, WORDS = 512, CALLERS = 16 };

static struct {
    uintptr_t begin, end; /* of the program's code */
} code;
static const uintptr_t *stack_end; /* of the first thread */

static uint64_t mix(uint64_t hash, uintptr_t word)
{
    return (hash ^ word) * 1099511628211u;
}

/* Libraries can be unwound. The program has no tables for that, so words on the stack that point
 * into its code stand for its callers. */
static uint64_t stack_hash(void)
{
    void *frames[DEPTH];
    const int count = backtrace(frames, DEPTH);
    const uintptr_t *word = __builtin_frame_address(0);
    uint64_t hash = 14695981039346656037u;

    for (int i = 2; i < count; i++)
        hash = mix(hash, (uintptr_t)frames[i]);
    for (int i = 0, callers = 0; gettid() == getpid() && i < WORDS && callers < CALLERS; i++) {
        if (&word[i] >= stack_end)
            break;
        if (word[i] < code.begin || word[i] >= code.end)
            continue;
        hash = mix(hash, word[i]);
        callers++;
    }
    return hash;
}

static int find_code(struct dl_phdr_info *object, size_t size, void *arg)
{
    (void)size, (void)arg;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_LOAD && (object->dlpi_phdr[i].p_flags & PF_X)) {
            code.begin = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
            code.end = code.begin + object->dlpi_phdr[i].p_memsz;
        }
    return 1; /* the first object is the program */
}

/* To find a cause: FAIL_TRACE=1 writes the stack of the allocation that fails to stderr. */
static void show_stack(void)
{
    void *frames[64];

    backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
}

static bool fails(void)
{
    if (!counter || inside)
        return false;
    const uint64_t number = atomic_fetch_add(counter, 1) + 1;
    inside = true;
    if (!fail_at && number <= n_stacks)
        stacks[number - 1] = stack_hash();
    const bool now = fail_at && (number == fail_at || (fail_all && number > fail_at));
    if (now && trace && number == fail_at)
        show_stack();
    inside = false;
    if (now)
        errno = ENOMEM;
    return now;
}

/* The next library's function of this name; looked up at the first call, when it may not yet be
 * safe to allocate. */
#define NEXT(type, name)                                                                           \
    static type *next;                                                                             \
    if (!next)                                                                                     \
    next = (type *)(uintptr_t)dlsym(RTLD_NEXT, name)

typedef void *malloc_fn(size_t);
typedef void *two_sizes_fn(size_t, size_t);
typedef void *realloc_fn(void *, size_t);
typedef int posix_memalign_fn(void **, size_t, size_t);
typedef void *mmap_fn(void *, size_t, int, int, int, off_t);
typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

void *malloc(size_t size)
{
    NEXT(malloc_fn, "malloc");
    return fails() ? NULL : next(size);
}

void *calloc(size_t count, size_t size)
{
    NEXT(two_sizes_fn, "calloc");
    return fails() ? NULL : next(count, size);
}

void *realloc(void *memory, size_t size)
{
    NEXT(realloc_fn, "realloc");
    return fails() ? NULL : next(memory, size);
}

void *reallocarray(void *memory, size_t count, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(memory, bytes);
}

void *memalign(size_t alignment, size_t size)
{
    NEXT(two_sizes_fn, "memalign");
    return fails() ? NULL : next(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    NEXT(two_sizes_fn, "aligned_alloc");
    return fails() ? NULL : next(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    NEXT(posix_memalign_fn, "posix_memalign");
    return fails() ? ENOMEM : next(out, alignment, size);
}

void *mmap(void *address, size_t size, int rights, int flags, int fd, off_t offset)
{
    NEXT(mmap_fn, "mmap");
    return fails() ? MAP_FAILED : next(address, size, rights, flags, fd, offset);
}

void *mmap64(void *address, size_t size, int rights, int flags, int fd, off_t offset)
{
    return mmap(address, size, rights, flags, fd, offset);
}

/* A thread without a stack. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *arg)
{
    NEXT(create_fn, "pthread_create");
    return fails() ? EAGAIN : next(thread, attributes, run, arg);
}

/* A lookup must not happen inside dlerror, which allocates while it holds what a lookup frees. */
static void look_up_all(void)
{
    void *aligned = NULL;

    free(realloc(malloc(1), 2));
    free(calloc(1, 1));
    free(memalign(16, 16));
    free(aligned_alloc(16, 16));
    if (posix_memalign(&aligned, 16, 16) == 0)
        free(aligned);
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("FAIL_FILE"), *at = getenv("FAIL_AT"), *all = getenv("FAIL_ALL");
    struct stat file;
    void *frames[4];
    const int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;

    if (fd < 0 || fstat(fd, &file) != 0 || file.st_size < 8)
        return;
    (void)backtrace(frames, 4); /* loads what it needs */
    look_up_all();
    dl_iterate_phdr(find_code, NULL);
    stack_end = (const uintptr_t *)(const void *)environ;
    fail_at = at ? strtoull(at, NULL, 10) : 0;
    fail_all = all && *all == '1';
    trace = getenv("FAIL_TRACE") != NULL;
    unsetenv("LD_PRELOAD");
    void *memory = mmap(NULL, (size_t)file.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (memory == MAP_FAILED)
        return;
    stacks = (uint64_t *)memory + 1;
    n_stacks = (size_t)file.st_size / 8 - 1;
    counter = memory;
}
