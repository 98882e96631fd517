/* Teams of threads: an OpenMP runtime's where a backend brought one, a small pool of our own
 * elsewhere and under the thread sanitizer, which cannot see into OpenMP. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "base/parallel.h"

#include "base/crowd.h"
#include "base/forks.h"
#include "base/memory.h"
#include "base/stack.h"
#include "base/thread.h"

#include <pthread.h>
#include <stdatomic.h>

#if defined(__SANITIZE_THREAD__)
#define ONLY_OWN_THREADS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ONLY_OWN_THREADS 1
#endif
#endif
#ifndef ONLY_OWN_THREADS
#define ONLY_OWN_THREADS 0
#endif

struct job {
    int64_t count, grain, chunks;
    cm_chunk_fn *fn;
    void *arg;
};

static _Thread_local struct cm_team *current;
static _Thread_local bool inside; /* a chunk is running: what it starts stays on its thread */

/* Thread `who` of `threads` takes a fixed, contiguous share of the chunks. */
static void do_share(const struct job *job, int who, int threads)
{
    const int64_t first = job->chunks * who / threads, end = job->chunks * (who + 1) / threads;
    const bool outer = inside;

    inside = true;
    for (int64_t chunk = first; chunk < end; chunk++) {
        const int64_t begin = chunk * job->grain;
        const int64_t stop = begin + job->grain < job->count ? begin + job->grain : job->count;
        job->fn(job->arg, begin, stop);
    }
    inside = outer;
}

enum { MOST_THREADS = 256 };

struct cm_team {
    int threads; /* the caller of cm_parallel counts as one */
    /* The pool: empty until the first job that no runtime takes. */
    pthread_t *workers;
    int n_workers;
    bool started;
    atomic_uint forks; /* of the process that the workers are in */
    pthread_mutex_t mutex;
    pthread_cond_t wake, done;
    pthread_mutex_t turn; /* one job at a time; whoever finds it taken works alone */
    const struct job *job;
    uint64_t generation;
    int unfinished;
    bool quit;
};

static void init_pool(struct cm_team *team)
{
    pthread_mutex_init(&team->mutex, NULL);
    pthread_mutex_init(&team->turn, NULL);
    pthread_cond_init(&team->wake, NULL);
    pthread_cond_init(&team->done, NULL);
    atomic_store(&team->forks, cm_forks());
}

/* In a child of fork the workers are not there. Several threads of it may find that out at once. */
static void forget_lost_workers(struct cm_team *team)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

    if (atomic_load(&team->forks) == cm_forks())
        return;
    pthread_mutex_lock(&mutex);
    if (atomic_load(&team->forks) != cm_forks()) {
        cm_free(team->workers);
        team->workers = NULL;
        team->n_workers = 0;
        team->started = false;
        team->generation = 0; /* with a job that is over */
        init_pool(team);
    }
    pthread_mutex_unlock(&mutex);
}

struct cm_team *cm_team_new(int threads)
{
    struct cm_team *team = cm_calloc(1, sizeof *team);

    if (!team)
        return NULL;
    team->threads = threads > MOST_THREADS ? MOST_THREADS : threads > 0 ? threads : cm_cores();
    init_pool(team);
    cm_crowd_join();
    return team;
}

void cm_team_free(struct cm_team *team)
{
    if (!team)
        return;
    cm_crowd_leave();
    forget_lost_workers(team);
    pthread_mutex_lock(&team->mutex);
    team->quit = true;
    pthread_cond_broadcast(&team->wake);
    pthread_mutex_unlock(&team->mutex);
    for (int i = 0; i < team->n_workers; i++)
        pthread_join(team->workers[i], NULL);
    pthread_cond_destroy(&team->wake);
    pthread_cond_destroy(&team->done);
    pthread_mutex_destroy(&team->mutex);
    pthread_mutex_destroy(&team->turn);
    cm_free(team->workers);
    cm_free(team);
}

int cm_team_threads(const struct cm_team *team)
{
    return team ? team->threads : 1;
}

/* ---- the pool ---- */

struct worker {
    struct cm_team *team;
    int number;
};

static void *work(void *arg)
{
    struct worker *me = arg;
    struct cm_team *team = me->team;
    const int number = me->number;
    uint64_t seen = 0;

    cm_free(me);
    pthread_mutex_lock(&team->mutex);
    for (;;) {
        while (!team->quit && team->generation == seen)
            pthread_cond_wait(&team->wake, &team->mutex);
        if (team->quit)
            break;
        seen = team->generation;
        const struct job *job = team->job;
        pthread_mutex_unlock(&team->mutex);
        do_share(job, number, team->n_workers + 1);
        pthread_mutex_lock(&team->mutex);
        if (--team->unfinished == 0)
            pthread_cond_signal(&team->done);
    }
    pthread_mutex_unlock(&team->mutex);
    return NULL;
}

/* A worker reads n_workers only after it was woken, by when all have started. */
static void start_workers(struct cm_team *team)
{
    team->started = true;
    team->workers = cm_calloc((size_t)team->threads, sizeof *team->workers);
    while (team->workers && team->n_workers < team->threads - 1) {
        struct worker *worker = cm_malloc(sizeof *worker);
        if (!worker)
            break;
        *worker = (struct worker){team, team->n_workers + 1};
        if (!cm_thread_start(&team->workers[team->n_workers], work, worker)) {
            cm_free(worker);
            break;
        }
        team->n_workers++;
    }
}

static void run_on_pool(struct cm_team *team, const struct job *job)
{
    forget_lost_workers(team);
    if (pthread_mutex_trylock(&team->turn) != 0) {
        do_share(job, 0, 1); /* another run of the session has the team: same chunks, same bits */
        return;
    }
    if (!team->started)
        start_workers(team);
    pthread_mutex_lock(&team->mutex);
    team->job = job;
    team->unfinished = team->n_workers;
    team->generation++;
    pthread_cond_broadcast(&team->wake);
    pthread_mutex_unlock(&team->mutex);
    do_share(job, 0, team->n_workers + 1);
    pthread_mutex_lock(&team->mutex);
    while (team->unfinished > 0)
        pthread_cond_wait(&team->done, &team->mutex);
    pthread_mutex_unlock(&team->mutex);
    pthread_mutex_unlock(&team->turn);
}

/* ---- an OpenMP runtime ---- */

static _Atomic(const struct cm_team_runtime *) the_runtime;

void cm_team_use_runtime(const struct cm_team_runtime *runtime)
{
    const struct cm_team_runtime *none = NULL;

    atomic_compare_exchange_strong(&the_runtime, &none, runtime);
}

static atomic_uint used_at; /* cm_forks() + 1 when the runtime first had a team; 0: never */

/* A thread of the runtime had too little stack for a chunk (OMP_STACKSIZE): our own threads have
 * enough. */
static atomic_bool stacks_are_small;

/* The runtime for a team; NULL where there is none or its threads are not fit, and in a child of
 * fork: GCC's would wait for the threads of the parent. */
static const struct cm_team_runtime *usable_runtime(void)
{
    const struct cm_team_runtime *runtime = ONLY_OWN_THREADS ? NULL : atomic_load(&the_runtime);
    const unsigned now = cm_forks() + 1;
    unsigned first = 0;

    if (!runtime || atomic_load_explicit(&stacks_are_small, memory_order_relaxed))
        return NULL;
    if (atomic_load_explicit(&used_at, memory_order_relaxed) == now)
        return runtime;
    return atomic_compare_exchange_strong(&used_at, &first, now) || first == now ? runtime : NULL;
}

struct members {
    const struct job *job;
    atomic_int threads;
    atomic_bool left_out[MOST_THREADS]; /* shares that the thread had too little stack for */
};

/* Inside a region of somebody else the runtime may give fewer threads than asked for. */
static void do_member(void *arg)
{
    const struct cm_team_runtime *runtime = atomic_load(&the_runtime);
    const int who = runtime->omp_get_thread_num(), threads = runtime->omp_get_num_threads();
    struct members *members = arg;

    if (who == 0) { /* the caller */
        atomic_store(&members->threads, threads);
    } else if (cm_stack_left() < CM_STACK_OF_CHUNK) {
        atomic_store(&members->left_out[who], true);
        atomic_store(&stacks_are_small, true);
        return;
    }
    do_share(members->job, who, threads);
}

static void run_on_runtime(const struct cm_team_runtime *runtime, const struct cm_team *team,
                           struct job *job)
{
    struct members members = {.job = job};

    cm_crowd_watch(runtime, team->threads);
    runtime->GOMP_parallel(do_member, &members, (unsigned)team->threads, 0);
    for (int who = 1; atomic_load(&stacks_are_small) && who < atomic_load(&members.threads); who++)
        if (atomic_load(&members.left_out[who]))
            do_share(job, who, members.threads);
}

/* What this thread told the runtime: 0 when nothing since it entered its team. */
static _Thread_local int told;
static _Thread_local int before_team; /* the caller's own number */

void cm_team_lend(bool whole)
{
    const struct cm_team_runtime *runtime = atomic_load(&the_runtime);
    int threads = whole && !inside ? cm_team_threads(current) : 1;

    if (!runtime || !current)
        return;
    if (threads > 1 && !usable_runtime())
        threads = 1;
    if (threads > 1)
        cm_crowd_watch(runtime, threads);
    if (told == threads)
        return;
    if (!told)
        before_team = runtime->omp_get_max_threads();
    runtime->omp_set_num_threads(threads);
    told = threads;
}

struct cm_team *cm_team_enter(struct cm_team *team)
{
    struct cm_team *before = current;

    if (cm_team_threads(team) > 1)
        cm_crowd_begin();
    else
        cm_crowd_end();
    if (told && !team)
        atomic_load(&the_runtime)->omp_set_num_threads(before_team);
    if (!team)
        told = 0;
    current = team;
    return before;
}

int cm_parallel_threads(void)
{
    return inside ? 1 : cm_team_threads(current);
}

void cm_parallel(int64_t count, int64_t grain, cm_chunk_fn *fn, void *arg)
{
    struct job job = {.count = count,
                      .grain = grain,
                      .chunks = count > 0 ? (count - 1) / grain + 1 : 0,
                      .fn = fn,
                      .arg = arg};
    const bool alone = job.chunks < 2 || !current || current->threads < 2 || inside;
    const struct cm_team_runtime *runtime = alone ? NULL : usable_runtime();

    if (alone)
        do_share(&job, 0, 1);
    else if (runtime)
        run_on_runtime(runtime, current, &job);
    else
        run_on_pool(current, &job);
}
