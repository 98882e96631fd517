/* Chunks on the threads of an OpenMP runtime, here one that plays its threads one after the other
 * and writes down what it is asked for. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include "base/crowd.h"
#include "base/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#if defined(__SANITIZE_THREAD__)
#define ASKED_FOR 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ASKED_FOR 0
#endif
#endif
#ifndef ASKED_FOR
#define ASKED_FOR 1 /* the thread sanitizer has us use threads of our own */
#endif

static _Thread_local int who, members = 1;
static _Thread_local int max_threads = 6; /* what the program around us has set */
static atomic_uint asked, regions;
static unsigned granted; /* 0: as many as asked for */

static void play_parallel(void (*fn)(void *), void *arg, unsigned threads, unsigned flags)
{
    (void)flags;
    asked = threads;
    regions++;
    members = (int)(granted ? granted : threads);
    for (who = 0; who < members; who++)
        fn(arg);
    who = 0;
    members = 1;
}

static int thread_num(void)
{
    return who;
}

static int num_threads(void)
{
    return members;
}

static int get_max_threads(void)
{
    return max_threads;
}

static void set_num_threads(int threads)
{
    max_threads = threads;
}

static const struct cm_team_runtime runtime = {
    .GOMP_parallel = play_parallel,
    .omp_get_thread_num = thread_num,
    .omp_get_num_threads = num_threads,
    .omp_get_max_threads = get_max_threads,
    .omp_set_num_threads = set_num_threads,
};

static void add_up(void *arg, int64_t begin, int64_t end)
{
    atomic_fetch_add((atomic_long *)arg, (long)(end - begin));
}

static struct cm_team *enter_team(int threads)
{
    struct cm_team *team = cm_team_new(threads);
    CHECK(team != NULL);
    cm_team_use_runtime(&runtime);
    cm_team_enter(team);
    return team;
}

static void leave_team(struct cm_team *team)
{
    cm_team_enter(NULL);
    cm_team_free(team);
}

void test_runtime__a_team_works_whole_or_not_at_all(void)
{
    struct cm_team *team = enter_team(4);
    atomic_long sum = 0;

    asked = 0;
    cm_parallel(2, 1, add_up, &sum); /* fewer chunks than threads */
    CHECK_INT(asked, ASKED_FOR ? 4 : 0);
    asked = 0;
    cm_parallel(10, 10, add_up, &sum); /* one chunk */
    CHECK_INT(asked, 0);
    cm_parallel(1000, 1, add_up, &sum);
    CHECK_INT(asked, ASKED_FOR ? 4 : 0);
    CHECK_INT(sum, 1012);
    leave_team(team);
}

void test_runtime__fewer_threads_than_asked_for_do_all_of_it(void)
{
    struct cm_team *team = enter_team(4);
    atomic_long sum = 0;

    granted = 1;
    cm_parallel(1000, 1, add_up, &sum);
    granted = 0;
    CHECK_INT(sum, 1000);
    leave_team(team);
}

void test_runtime__what_the_program_set_is_given_back(void)
{
    struct cm_team *team = enter_team(4), *inner;

    CHECK_INT(max_threads, 6);
    cm_team_lend(true);
    CHECK_INT(max_threads, ASKED_FOR ? 4 : 1);
    cm_team_lend(false);
    CHECK_INT(max_threads, 1);
    inner = cm_team_new(2);
    CHECK(cm_team_enter(inner) == team);
    cm_team_lend(true);
    CHECK_INT(max_threads, ASKED_FOR ? 2 : 1);
    cm_team_enter(team);
    cm_team_lend(true);
    CHECK_INT(max_threads, ASKED_FOR ? 4 : 1);
    cm_team_free(inner);
    leave_team(team);
    CHECK_INT(max_threads, 6);
}

/* ---- contended cores ---- */

static atomic_bool stop;

static void *spin(void *arg)
{
    while (!atomic_load(&stop))
        ;
    return arg;
}

enum { MOST_SPINNERS = 64 };

void test_crowd__adds_idle_threads_while_cores_are_contended(void)
{
    pthread_t spinners[MOST_SPINNERS];
    const int wanted = 3 * cm_cores() < MOST_SPINNERS ? 3 * cm_cores() : MOST_SPINNERS;
    const struct timespec millisecond = {.tv_nsec = 1000000};
    int count = 0;

    if (cm_cores() * 2 > MOST_SPINNERS)
        return; /* too many cores to take them all */
    while (count < wanted && pthread_create(&spinners[count], NULL, spin, NULL) == 0)
        count++;
    cm_crowd_join();
    cm_crowd_begin();
    asked = 0;
    for (int i = 0; i < 60000 && !asked; i++) {
        cm_crowd_watch(&runtime, 2);
        nanosleep(&millisecond, NULL);
    }
    cm_crowd_end();
    atomic_store(&stop, true);
    for (int i = 0; i < count; i++)
        pthread_join(spinners[i], NULL);
    cm_crowd_leave(); /* ends the thread that holds them */
    CHECK_INT(asked, cm_cores() > 2 ? cm_cores() : 2);
}

static bool pauses_add_threads(void)
{
    const struct timespec pause = {.tv_nsec = 30000000};

    cm_crowd_join();
    asked = 0;
    for (int i = 0; i < 10; i++) {
        cm_crowd_begin();
        cm_crowd_watch(&runtime, 2);
        cm_crowd_end();
        nanosleep(&pause, NULL);
    }
    cm_crowd_leave();
    return asked != 0;
}

/* Tried again because cores may really be contended. */
void test_crowd__a_pause_between_runs_is_not_contention(void)
{
    int tries = 0;

    while (tries < 50 && pauses_add_threads())
        tries++;
    CHECK(tries < 50);
}
