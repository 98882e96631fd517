/* A call on a thread with little stack fails with a sentence before it could overflow. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "base/arena.h"
#include "base/stack.h"
#include "base/thread.h"
#include "check.h"

#include <pthread.h>

struct seen {
    size_t left;
    enum cm_status status;
    struct cm_error err;
    bool called;
};

static enum cm_status note_call(struct cm_guard *guard, void *arg)
{
    (void)guard;
    ((struct seen *)arg)->called = true;
    return CM_OK;
}

static void *call(void *arg)
{
    struct seen *seen = arg;

    seen->left = cm_stack_left();
    seen->status = cm_guarded(0, &seen->err, note_call, seen);
    return NULL;
}

static void call_with_stack(size_t size, struct seen *seen)
{
    pthread_attr_t attributes;
    pthread_t thread;

    *seen = (struct seen){0};
    CHECK_INT(pthread_attr_init(&attributes), 0);
    CHECK_INT(pthread_attr_setstacksize(&attributes, size), 0);
    CHECK_INT(pthread_create(&thread, &attributes, call, seen), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
}

void test_stack__a_call_on_a_thread_with_little_fails(void)
{
    struct seen seen;

    call_with_stack(128 << 10, &seen);
    CHECK(seen.left < 128 << 10);
    CHECK_FAILS(seen.status, CM_NO_MEMORY, &seen.err, "KiB of stack left, a call needs 640");
    CHECK(!seen.called);
    call_with_stack(1 << 20, &seen);
    CHECK(seen.left > 900 << 10 && seen.left < 1 << 20);
    CHECK_OK(seen.status, &seen.err);
    CHECK(seen.called);
}

void test_stack__our_own_threads_have_enough(void)
{
    struct seen seen = {0};
    pthread_attr_t before, small;
    pthread_t thread;

    /* What a program or 'ulimit -s' made usual. */
    CHECK_INT(pthread_getattr_default_np(&before), 0);
    CHECK_INT(pthread_attr_init(&small), 0);
    CHECK_INT(pthread_attr_setstacksize(&small, 64 << 10), 0);
    CHECK_INT(pthread_setattr_default_np(&small), 0);
    CHECK(cm_thread_start(&thread, call, &seen));
    pthread_join(thread, NULL);
    CHECK_INT(pthread_setattr_default_np(&before), 0);
    CHECK(seen.left > CM_STACK_OF_THREAD - (64 << 10));
    CHECK(seen.called);
    pthread_attr_destroy(&small);
    pthread_attr_destroy(&before);
}
