/* Pools: buffers used again, counted, and not kept past a limit. */
// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "check.h"
#include "tensor/pool.h"

void test_pool__a_buffer_of_the_size_of_the_last_costs_nothing(void)
{
    struct cm_pool *pool = cm_pool_new(0);
    struct cm_buffer *buffer;
    struct cm_error err = {0};
    uint64_t before = 0;
    for (int i = 0; i < 5; i++) {
        before = cm_memory_count();
        CHECK_OK(cm_pool_get(pool, 1000, &buffer, &err), &err);
        CHECK(cm_pool_used(pool) >= 1000);
        cm_buffer_drop(buffer);
    }
    CHECK_INT(cm_memory_count() - before, 0);
    CHECK_INT(cm_pool_used(pool), 0);
    cm_pool_free(pool);
}

/* As much as the limit in one size, then in the next: what is kept of the first must not add up. */
void test_pool__a_limit_holds_for_what_is_kept_too(void)
{
    enum { LIMIT = 1 << 20 };
    struct cm_pool *pool = cm_pool_new(LIMIT);
    struct cm_buffer *buffers[LIMIT / 1024];
    struct cm_error err = {0};
    for (size_t size = 1024; size <= LIMIT; size *= 2) {
        const size_t count = LIMIT / size;
        for (size_t i = 0; i < count; i++)
            CHECK_OK(cm_pool_get(pool, size, &buffers[i], &err), &err);
        CHECK(cm_pool_held(pool) <= LIMIT);
        CHECK_FAILS(cm_pool_get(pool, size, &buffers[count - 1], &err), CM_LIMIT, &err,
                    "memory limit");
        for (size_t i = 0; i < count; i++)
            cm_buffer_drop(buffers[i]);
    }
    cm_pool_free(pool);
}

void test_pool__the_size_told_is_what_a_request_takes(void)
{
    static const size_t sizes[] = {0, 1, 64, 65, 68000, 1 << 20};
    struct cm_pool *pool = cm_pool_new(0);
    struct cm_buffer *buffer;
    struct cm_error err = {0};
    for (size_t i = 0; i < CM_COUNT(sizes); i++) {
        CHECK_OK(cm_pool_get(pool, sizes[i], &buffer, &err), &err);
        CHECK_INT(cm_pool_used(pool), cm_pool_size(sizes[i]));
        cm_buffer_drop(buffer);
    }
    CHECK_INT(cm_pool_size(SIZE_MAX), 0);
    cm_pool_free(pool);
}

void test_pool__a_thread_may_make_its_buffers_there(void)
{
    struct cm_pool *pool = cm_pool_new(1 << 16);
    const struct cm_buffer_source source = cm_pool_source(pool);
    struct cm_tensor tensor = {0};
    struct cm_error err = {0};
    CHECK(cm_buffer_enter(&source) == NULL);
    CHECK_OK(cm_tensor_new(CM_FLOAT, &CM_SHAPE(1000), &tensor, &err), &err);
    CHECK(cm_pool_used(pool) >= 4000);
    struct cm_tensor large = {0};
    CHECK_FAILS(cm_tensor_new(CM_FLOAT, &CM_SHAPE(100000), &large, &err), CM_LIMIT, &err,
                "memory limit");
    CHECK(cm_buffer_enter(NULL) == &source);
    CHECK_OK(cm_tensor_new(CM_FLOAT, &CM_SHAPE(100000), &large, &err), &err);
    cm_pool_free(pool); /* the tensor outlives it */
    cm_tensor_drop(&tensor);
    cm_tensor_drop(&large);
}
