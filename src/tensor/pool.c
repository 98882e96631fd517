/* Pooled buffers, in lists by size class. */
// SPDX-License-Identifier: Apache-2.0
#include "tensor/pool.h"

#include "base/memory.h"
#include "base/number.h"
#include "tensor/buffer.h"

/* Classes double; a buffer is as large as its class, so any in a list fits any request of it. */
enum { CLASSES = 48, SMALLEST = 64 };

struct cm_pool {
    atomic_flag busy;                /* held for a few instructions at a time */
    struct cm_buffer *free[CLASSES]; /* linked through owner */
    size_t used, limit;
    size_t unused; /* bytes of those that lie in the lists */
    size_t out;    /* buffers handed out */
    bool orphaned; /* its owner is gone: freed with the last buffer */
};

static void lock(struct cm_pool *pool)
{
    while (atomic_flag_test_and_set_explicit(&pool->busy, memory_order_acquire))
        ;
}

static void unlock(struct cm_pool *pool)
{
    atomic_flag_clear_explicit(&pool->busy, memory_order_release);
}

/* The class of a size, and the bytes a buffer of that class has; CLASSES when it is too large for
 * one. */
static int class_of(size_t size, size_t *bytes)
{
    *bytes = SMALLEST;
    for (int class = 0; class < CLASSES; class ++, *bytes *= 2)
        if (size <= *bytes)
            return class;
    return CLASSES;
}

size_t cm_pool_size(size_t size)
{
    size_t bytes;
    return class_of(size, &bytes) == CLASSES ? 0 : bytes;
}

struct cm_pool *cm_pool_new(size_t limit)
{
    struct cm_pool *pool = cm_calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    atomic_flag_clear(&pool->busy);
    pool->limit = limit;
    return pool;
}

/* With the pool locked: all that lies unused, as one list. */
static struct cm_buffer *take_unused(struct cm_pool *pool)
{
    struct cm_buffer *all = NULL;
    for (int class = 0; class < CLASSES; class ++) {
        for (struct cm_buffer *buffer = pool->free[class], *next; buffer; buffer = next) {
            next = buffer->owner;
            buffer->owner = all;
            all = buffer;
        }
        pool->free[class] = NULL;
    }
    pool->unused = 0;
    return all;
}

static void free_list(struct cm_buffer *buffer)
{
    for (struct cm_buffer *next; buffer; buffer = next) {
        next = buffer->owner;
        cm_free(buffer);
    }
}

void cm_pool_trim(struct cm_pool *pool, size_t most)
{
    lock(pool);
    struct cm_buffer *unused =
        pool->used > most || pool->unused > most - pool->used ? take_unused(pool) : NULL;
    unlock(pool);
    free_list(unused);
}

void cm_pool_free(struct cm_pool *pool)
{
    if (!pool)
        return;
    lock(pool);
    struct cm_buffer *unused = take_unused(pool);
    pool->orphaned = true;
    const bool last = pool->out == 0;
    unlock(pool);
    free_list(unused);
    if (last)
        cm_free(pool);
}

void cm_pool_take_back(struct cm_pool *pool, struct cm_buffer *buffer)
{
    size_t bytes;
    const int class = class_of(buffer->size, &bytes);
    lock(pool);
    pool->used -= bytes;
    pool->out--;
    const bool orphaned = pool->orphaned, last = pool->out == 0;
    if (!orphaned) {
        buffer->owner = pool->free[class];
        pool->free[class] = buffer;
        pool->unused += bytes;
    }
    unlock(pool);
    if (orphaned) {
        cm_free(buffer);
        if (last)
            cm_free(pool);
    }
}

enum cm_status cm_pool_get(struct cm_pool *pool, size_t size, struct cm_buffer **out,
                           struct cm_error *err)
{
    size_t bytes;
    const int class = class_of(size, &bytes);
    if (class == CLASSES)
        return cm_fail(err, CM_NO_MEMORY, "no memory for %zu bytes of tensor data", size);
    lock(pool);
    struct cm_buffer *buffer = NULL;
    const bool fits = !pool->limit || (bytes <= pool->limit && pool->used <= pool->limit - bytes);
    if (fits) {
        buffer = pool->free[class];
        if (buffer) {
            pool->free[class] = buffer->owner;
            pool->unused -= bytes;
        }
        pool->used += bytes;
        pool->out++;
    }
    unlock(pool);
    if (fits && !buffer && pool->limit)
        cm_pool_trim(pool, pool->limit);
    if (!fits)
        return cm_fail(err, CM_LIMIT, "%zu more bytes would exceed the memory limit of %zu", bytes,
                       pool->limit);
    if (!buffer)
        buffer = cm_malloc_aligned(CM_TENSOR_ALIGNMENT, CM_BUFFER_HEADER + bytes);
    if (!buffer) {
        lock(pool);
        pool->used -= bytes;
        pool->out--;
        unlock(pool);
        return cm_fail(err, CM_NO_MEMORY, "no memory for %zu bytes of tensor data", size);
    }
    *buffer =
        (struct cm_buffer){.data = (char *)buffer + CM_BUFFER_HEADER, .size = bytes, .pool = pool};
    atomic_init(&buffer->references, 1);
    *out = buffer;
    return CM_OK;
}

enum cm_status cm_pool_tensor(struct cm_pool *pool, enum cm_dtype type,
                              const struct cm_shape *shape, struct cm_tensor *out,
                              struct cm_error *err)
{
    int64_t count;
    size_t bytes;
    if (!cm_shape_count(shape, &count) || !cm_dtype_bytes(type, count, &bytes))
        return cm_fail(err, CM_LIMIT, "the size of a result overflows");
    struct cm_buffer *buffer;
    CM_TRY(cm_pool_get(pool, bytes, &buffer, err));
    if (type == CM_STRING)
        memset(buffer->data, 0, bytes);
    out->type = type;
    out->shape = *shape;
    out->data = buffer->data;
    out->buffer = buffer;
    out->layout = NULL;
    cm_tensor_clear_padding(out);
    return CM_OK;
}

static enum cm_status get_from(void *pool, size_t size, struct cm_buffer **out,
                               struct cm_error *err)
{
    return cm_pool_get(pool, size, out, err);
}

struct cm_buffer_source cm_pool_source(struct cm_pool *pool)
{
    return (struct cm_buffer_source){get_from, pool};
}

size_t cm_pool_held(struct cm_pool *pool)
{
    lock(pool);
    const size_t held = pool->used + pool->unused;
    unlock(pool);
    return held;
}

size_t cm_pool_used(struct cm_pool *pool)
{
    lock(pool);
    const size_t used = pool->used;
    unlock(pool);
    return used;
}
