/* Notices contended cores by time lost, and makes an OpenMP runtime wait without spinning. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "base/crowd.h"

#include "base/compiler.h"
#include "base/forks.h"
#include "base/parallel.h"
#include "base/thread.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOK_MS = 20,      /* of work between two looks at the time on a processor */
    LOST_PERCENT = 30, /* of that: cores are contended */
    CALM_MS = 25,      /* then spinning is tried again */
    LONGEST_CALM_MS = 8000,
};

int cm_cores(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

static int64_t clock_us(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

static int64_t now_ms(void)
{
    return clock_us(CLOCK_MONOTONIC_COARSE) / 1000;
}

/* ---- the idle threads ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static int users;
static bool is_idling;
static pthread_t keeper;
static unsigned keeper_forks; /* of the process that the keeper is in */

/* What the keeper waits for, under a mutex of its own: it is joined with the other one held. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_opens = PTHREAD_COND_INITIALIZER;
static bool gate_is_open;

struct idle_team {
    const struct cm_team_runtime *runtime;
    unsigned threads;
};

static void do_nothing(void *arg)
{
    (void)arg;
}

/* A team of its own, which stays with this thread as long as it lives. */
static void *keep_team(void *arg)
{
    const struct idle_team *team = arg;

    team->runtime->GOMP_parallel(do_nothing, NULL, team->threads, 0);
    pthread_mutex_lock(&gate);
    while (!gate_is_open)
        pthread_cond_wait(&gate_opens, &gate);
    pthread_mutex_unlock(&gate);
    return NULL;
}

static void add_idle_threads(const struct cm_team_runtime *runtime, int threads)
{
    static struct idle_team team;
    const int missing = cm_cores() + 1 - threads; /* beside the team of whoever asks */

    if (is_idling || users == 0)
        return;
    team = (struct idle_team){runtime, missing > 1 ? (unsigned)missing + 1 : 2};
    gate_is_open = false;
    keeper_forks = cm_forks();
    is_idling = cm_thread_start(&keeper, keep_team, &team);
}

static void end_idle_threads(void)
{
    if (keeper_forks != cm_forks())
        is_idling = false; /* in a child of fork: the keeper is not there */
    if (!is_idling)
        return;
    pthread_mutex_lock(&gate);
    gate_is_open = true;
    pthread_cond_signal(&gate_opens);
    pthread_mutex_unlock(&gate);
    pthread_join(keeper, NULL);
    is_idling = false;
}

/* ---- when ---- */

static atomic_int_fast64_t next_look;
static int64_t began,
    calm; /* when idle threads were added last, and for how long; under the mutex */

/* The work of this thread since its last look: finished stretches of it, and the one under way. A
 * pause between two runs is none, though the thread is on no processor then. A stretch is measured
 * from the first parallel region on: to ask for the thread's processor time is a system call, which
 * costs as much as a small run that has no such region. */
static _Thread_local struct {
    bool is_working, is_measured;
    int64_t since_us, since_on_us; /* when the stretch began; the thread's processor time by then */
    int64_t us, on_us;             /* of those before */
} work;

static void begin_stretch(void)
{
    work.since_us = clock_us(CLOCK_MONOTONIC);
    work.since_on_us = clock_us(CLOCK_THREAD_CPUTIME_ID);
}

static void end_stretch(void)
{
    work.us += clock_us(CLOCK_MONOTONIC) - work.since_us;
    work.on_us += clock_us(CLOCK_THREAD_CPUTIME_ID) - work.since_on_us;
}

static void forget_work(void)
{
    work.us = work.on_us = 0;
}

void cm_crowd_begin(void)
{
    work.is_working = true;
}

void cm_crowd_end(void)
{
    if (work.is_measured)
        end_stretch();
    work.is_working = work.is_measured = false;
}

/* Has the thread been kept from working since its last look? One that works or spins is on a
 * processor all the time; less means that others are, or that a member of its team it waits for was
 * kept from working. */
static bool is_contended(void)
{
    end_stretch();
    begin_stretch();
    if (work.us < LOOK_MS * 1000)
        return false;
    const bool contended = (work.us - work.on_us) * 100 >= work.us * LOST_PERCENT;
    forget_work();
    return contended;
}

/* For how long from now on: twice as long as before where that did not help. */
static int64_t next_calm(int64_t now)
{
    const bool again = calm && now - began < 2 * calm + 10 * LOOK_MS;

    return !again ? CALM_MS : calm * 2 < LONGEST_CALM_MS ? calm * 2 : LONGEST_CALM_MS;
}

static void look(const struct cm_team_runtime *runtime, int threads, int64_t now)
{
    if (is_idling) {
        if (now - began < calm)
            return;
        end_idle_threads();
        forget_work();
        begin_stretch();
    } else if (is_contended()) {
        calm = next_calm(now);
        began = now;
        add_idle_threads(runtime, threads);
    }
}

void cm_crowd_watch(const struct cm_team_runtime *runtime, int threads)
{
    const int64_t now = now_ms();

    if (!work.is_working)
        return;
    if (!work.is_measured)
        begin_stretch();
    work.is_measured = true;
    if (now < atomic_load_explicit(&next_look, memory_order_relaxed) ||
        pthread_mutex_trylock(&mutex) != 0)
        return;
    atomic_store_explicit(&next_look, now + LOOK_MS, memory_order_relaxed);
    look(runtime, threads, now);
    pthread_mutex_unlock(&mutex);
}

void cm_crowd_join(void)
{
    pthread_mutex_lock(&mutex);
    users++;
    pthread_mutex_unlock(&mutex);
}

void cm_crowd_leave(void)
{
    pthread_mutex_lock(&mutex);
    if (--users == 0)
        end_idle_threads();
    pthread_mutex_unlock(&mutex);
}
