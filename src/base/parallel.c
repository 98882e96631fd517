/* Teams of threads: OpenMP's where it is there (oneDNN works with the same ones, so cores are not
 * fought over), a small pool of our own elsewhere and under the thread sanitizer, which cannot see
 * into OpenMP. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "base/parallel.h"

#include "base/memory.h"

#ifdef _OPENMP
#include <omp.h>
#endif
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

struct job {
    int64_t count, grain, chunks;
    cm_chunk_fn *fn;
    void *arg;
};

/* Thread `who` of `threads` takes a fixed, contiguous share of the chunks. */
static void do_share(const struct job *job, int who, int threads)
{
    const int64_t first = job->chunks * who / threads, end = job->chunks * (who + 1) / threads;
    for (int64_t chunk = first; chunk < end; chunk++) {
        const int64_t begin = chunk * job->grain;
        const int64_t stop = begin + job->grain < job->count ? begin + job->grain : job->count;
        job->fn(job->arg, begin, stop);
    }
}

static int cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

static _Thread_local struct cm_team *current;
static _Thread_local bool inside; /* a chunk is running: what it starts stays on its thread */

enum { MOST_THREADS = 256 };

#ifdef _OPENMP

struct cm_team {
    int threads;
};

struct cm_team *cm_team_new(int threads)
{
    struct cm_team *team = cm_calloc(1, sizeof *team);
    if (team)
        team->threads = threads > MOST_THREADS ? MOST_THREADS : threads > 0 ? threads : cores();
    return team;
}

void cm_team_free(struct cm_team *team)
{
    cm_free(team);
}

static void run_job(struct cm_team *team, const struct job *job)
{
    const int threads = team->threads < job->chunks ? team->threads : (int)job->chunks;
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int who = 0; who < threads; who++) {
        inside = true;
        do_share(job, who, threads);
        inside = false;
    }
}

#else

struct cm_team {
    int threads; /* the caller of cm_parallel counts as one */
    pthread_t *workers;
    int n_workers;
    pthread_mutex_t mutex;
    pthread_cond_t wake, done;
    pthread_mutex_t turn; /* one job at a time; whoever finds it taken works alone */
    const struct job *job;
    uint64_t generation;
    int unfinished;
    bool quit;
};

struct worker {
    struct cm_team *team;
    int number;
};

static void *work(void *arg)
{
    struct worker *me = arg;
    struct cm_team *team = me->team;
    const int number = me->number;
    cm_free(me);
    uint64_t seen = 0;
    inside = true;
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

struct cm_team *cm_team_new(int threads)
{
    struct cm_team *team = cm_calloc(1, sizeof *team);
    if (!team)
        return NULL;
    team->threads = threads > MOST_THREADS ? MOST_THREADS : threads > 0 ? threads : cores();
    pthread_mutex_init(&team->mutex, NULL);
    pthread_mutex_init(&team->turn, NULL);
    pthread_cond_init(&team->wake, NULL);
    pthread_cond_init(&team->done, NULL);
    team->workers = cm_calloc((size_t)team->threads, sizeof *team->workers);
    /* A worker reads n_workers only after it was woken, by when all have started. */
    while (team->workers && team->n_workers < team->threads - 1) {
        struct worker *worker = cm_malloc(sizeof *worker);
        if (!worker)
            break;
        *worker = (struct worker){team, team->n_workers + 1};
        if (pthread_create(&team->workers[team->n_workers], NULL, work, worker)) {
            cm_free(worker);
            break;
        }
        team->n_workers++;
    }
    return team;
}

void cm_team_free(struct cm_team *team)
{
    if (!team)
        return;
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

static void run_job(struct cm_team *team, const struct job *job)
{
    inside = true;
    if (team->n_workers == 0 || pthread_mutex_trylock(&team->turn) != 0) {
        do_share(job, 0, 1); /* another run of the session has the team: same chunks, same bits */
        inside = false;
        return;
    }
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
    inside = false;
}

#endif

int cm_team_threads(const struct cm_team *team)
{
    return team ? team->threads : 1;
}

#ifdef _OPENMP

/* Whoever else uses OpenMP on this thread, oneDNN first of all, works with the team's number. */
static void tell_openmp(const struct cm_team *before, const struct cm_team *team)
{
    static _Thread_local int outside; /* the caller's own number */
    if (!before && team)
        outside = omp_get_max_threads();
    if (team)
        omp_set_num_threads(team->threads);
    else if (before)
        omp_set_num_threads(outside);
}

#else

static void tell_openmp(const struct cm_team *before, const struct cm_team *team)
{
    (void)before, (void)team;
}

#endif

struct cm_team *cm_team_enter(struct cm_team *team)
{
    struct cm_team *before = current;
    current = team;
    tell_openmp(before, team);
    return before;
}

void cm_parallel(int64_t count, int64_t grain, cm_chunk_fn *fn, void *arg)
{
    const struct job job = {.count = count,
                            .grain = grain,
                            .chunks = count > 0 ? (count - 1) / grain + 1 : 0,
                            .fn = fn,
                            .arg = arg};
    if (job.chunks < 2 || !current || current->threads < 2 || inside)
        do_share(&job, 0, 1);
    else
        run_job(current, &job);
}
