/* Between libFuzzer and a target: structural changes of inputs, and memory held against the size of
 * the input. CAMEO_FUZZ_BYTES=1 turns structural changes off, to compare. */
// SPDX-License-Identifier: Apache-2.0
#include "target.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define WITH_HOOKS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_HOOKS 1
#endif
#endif

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data, size_t size, const uint8_t *other,
                                 size_t other_size, uint8_t *out, size_t max_out, unsigned seed);

void fuzz_require(bool truth)
{
    if (!truth)
        abort();
}

/* ---- memory ---- */

#ifdef WITH_HOOKS

int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void *, size_t),
                                              void (*free_hook)(const volatile void *));
size_t __sanitizer_get_allocated_size(const volatile void *memory);

static atomic_size_t live, peak;
static struct {
    size_t peak, size; /* of the input that came nearest to its bound */
    double share;
} most;

static void on_malloc(const volatile void *memory, size_t size)
{
    (void)memory;
    const size_t now = atomic_fetch_add_explicit(&live, size, memory_order_relaxed) + size;
    size_t before = atomic_load_explicit(&peak, memory_order_relaxed);

    while (now > before && now < SIZE_MAX / 2 && !atomic_compare_exchange_weak(&peak, &before, now))
        continue;
}

static void on_free(const volatile void *memory)
{
    if (memory)
        atomic_fetch_sub_explicit(&live, __sanitizer_get_allocated_size(memory),
                                  memory_order_relaxed);
}

static void print_most(void)
{
    fprintf(stderr, "stat::memory_share: %.1f %% of the bound: %zu bytes for an input of %zu\n",
            most.share * 100, most.peak, most.size);
}

static void begin_memory(void)
{
    static bool ready;

    if (!ready) {
        ready = true;
        __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
        atexit(print_most);
    }
    atomic_store(&live, 0);
    atomic_store(&peak, 0);
}

static void end_memory(size_t size)
{
    const size_t held = atomic_load(&peak);
    const size_t bound = fuzz_target.memory_base + fuzz_target.memory_per_byte * size;
    const double share = (double)held / (double)bound;

    if (share > most.share) {
        most.peak = held;
        most.size = size;
        most.share = share;
    }
    if (held <= bound)
        return;
    fprintf(stderr,
            "ERROR: memory: %zu bytes held for an input of %zu, more than %zu + %zu * %zu\n", held,
            size, fuzz_target.memory_base, fuzz_target.memory_per_byte, size);
    abort();
}

#else

static void begin_memory(void)
{
}

static void end_memory(size_t size)
{
    (void)size;
}

#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    begin_memory();
    fuzz_target.run(data, size);
    end_memory(size);
    return 0;
}

/* ---- changes ---- */

struct change {
    struct cm_str bytes, other;
    unsigned seed;
    uint8_t *out;
    size_t room, made; /* made 0: none */
    struct cm_error err;
};

static enum cm_status change_guarded(struct cm_guard *guard, void *arg)
{
    struct change *change = arg;
    const size_t skip = fuzz_target.choice_bytes;
    struct cm_arena arena;
    struct chance c = {.arena = &arena,
                       .random = change->seed,
                       .other = str_part(change->other, skip, change->other.size)};

    cm_arena_init(&arena, guard);
    struct cm_str bytes = str_part(change->bytes, skip, change->bytes.size);
    size_t times = 1;
    while (times < 4 && chance_percent(&c, 30))
        times++;
    struct cm_str made = CM_STR_NONE;
    while (times-- > 0) {
        const struct cm_str now = fuzz_target.mutate(&c, made.data ? made : bytes);
        made = now.data ? now : made;
    }
    if (made.data && made.size && made.size + skip <= change->room) {
        if (skip)
            memmove(change->out, change->bytes.data, skip);
        memcpy(change->out + skip, made.data, made.size);
        change->made = made.size + skip;
    }
    cm_arena_release(&arena);
    return CM_OK;
}

static size_t change(const uint8_t *data, size_t size, const uint8_t *other, size_t other_size,
                     uint8_t *out, size_t room, unsigned seed)
{
    struct change job = {.other = {(const char *)other, other_size}, .seed = seed, .room = room};
    uint8_t *copy = malloc(size + 1); /* out may be data */

    job.out = out;
    if (!copy)
        return 0;
    if (size)
        memcpy(copy, data, size);
    job.bytes = (struct cm_str){(const char *)copy, size};
    (void)!cm_guarded((size_t)256 << 20, &job.err, change_guarded, &job);
    free(copy);
    return job.made;
}

static bool is_structural(unsigned seed, size_t size)
{
    static int bytes_only = -1;

    if (bytes_only < 0)
        bytes_only = getenv("CAMEO_FUZZ_BYTES") != NULL;
    return !bytes_only && fuzz_target.mutate && size > fuzz_target.choice_bytes && seed % 8;
}

/* A seed may be longer than most_bytes; it stays as long. */
static size_t room_of(size_t size, size_t max_size)
{
    const size_t most = size > fuzz_target.most_bytes ? size : fuzz_target.most_bytes;

    return fuzz_target.most_bytes && most < max_size ? most : max_size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    size_t made = 0;

    max_size = room_of(size, max_size);
    if (is_structural(seed, size))
        made = change(data, size, NULL, 0, data, max_size, seed);
    return made ? made : LLVMFuzzerMutate(data, size, max_size);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *data, size_t size, const uint8_t *other,
                                 size_t other_size, uint8_t *out, size_t max_out, unsigned seed)
{
    size_t made = 0;

    max_out = room_of(size, max_out);
    if (is_structural(seed, size))
        made = change(data, size, other, other_size, out, max_out, seed);
    if (made || !size || size > max_out)
        return made;
    memcpy(out, data, size);
    return LLVMFuzzerMutate(out, size, max_out);
}
