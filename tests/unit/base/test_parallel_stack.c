/* An OpenMP runtime whose threads have too little stack: what they leave out is done all the same,
 * and later work goes to threads of our own. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include "base/parallel.h"
#include "base/stack.h"

#include <pthread.h>
#include <stdatomic.h>

#if defined(__SANITIZE_THREAD__)
#define REGIONS 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define REGIONS 0
#endif
#endif
#ifndef REGIONS
#define REGIONS 1 /* the thread sanitizer has us use threads of our own */
#endif

enum { COUNT = 1000, THREADS = 4 };

struct member {
    void (*fn)(void *);
    void *arg;
    int number;
};

static _Thread_local int who;
static atomic_int regions, chunks_on_small_stacks, done[COUNT];

static void *member_main(void *arg)
{
    const struct member *member = arg;

    who = member->number;
    member->fn(member->arg);
    return NULL;
}

/* As with OMP_STACKSIZE=64k. */
static void play_parallel(void (*fn)(void *), void *arg, unsigned threads, unsigned flags)
{
    (void)flags;
    regions++;
    CHECK_INT(threads, THREADS);
    fn(arg);
    for (int i = 1; i < THREADS; i++) {
        struct member member = {fn, arg, i};
        pthread_attr_t attributes;
        pthread_t thread;

        CHECK_INT(pthread_attr_init(&attributes), 0);
        CHECK_INT(pthread_attr_setstacksize(&attributes, 64 << 10), 0);
        CHECK_INT(pthread_create(&thread, &attributes, member_main, &member), 0);
        pthread_join(thread, NULL);
        pthread_attr_destroy(&attributes);
    }
}

static int thread_num(void)
{
    return who;
}

static int num_threads(void)
{
    return THREADS;
}

static void set_num_threads(int threads)
{
    (void)threads;
}

static const struct cm_team_runtime runtime = {
    .GOMP_parallel = play_parallel,
    .omp_get_thread_num = thread_num,
    .omp_get_num_threads = num_threads,
    .omp_get_max_threads = num_threads,
    .omp_set_num_threads = set_num_threads,
};

static void count_chunk(void *arg, int64_t begin, int64_t end)
{
    (void)arg;
    if (cm_stack_left() < CM_STACK_OF_CHUNK)
        chunks_on_small_stacks++;
    for (int64_t i = begin; i < end; i++)
        done[i]++;
}

void test_parallel__does_what_threads_with_little_stack_leave_out(void)
{
    struct cm_team *team = cm_team_new(THREADS);

    CHECK(team != NULL);
    cm_team_use_runtime(&runtime);
    cm_team_enter(team);
    for (int i = 0; i < 3; i++)
        cm_parallel(COUNT, 7, count_chunk, NULL);
    cm_team_enter(NULL);
    cm_team_free(team);
    for (int i = 0; i < COUNT; i++)
        CHECK_INT(done[i], 3);
    CHECK_INT(chunks_on_small_stacks, 0);
    CHECK_INT(regions, REGIONS);
}
