/* The one way to go parallel. Work is cut into chunks that do not depend on the number of threads,
 * each thread takes a fixed share of them, and results that must be joined are joined by the caller
 * in chunk order: so every thread count gives the same bits.
 *
 * A team belongs to whoever runs (a session); cm_team_enter makes it the calling thread's team, and
 * cm_parallel uses that. Without one, and inside a chunk, work stays on the calling thread. A team
 * works whole or not at all: members that find nothing to do return at once.
 *
 * The threads are those of an OpenMP runtime where a backend brought one (cm_team_use_runtime), so
 * that its regions and ours share one set of threads; else they are a small pool of the team. How
 * the runtime's threads wait for each other is its own affair, except while other programs take the
 * cores from us: see base/crowd.h. In a child of fork, whose parent's threads are not there, teams
 * are pools, and what opens regions of the runtime itself gets one thread. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_PARALLEL_H
#define CM_BASE_PARALLEL_H

#include "base/compiler.h"

#include <stdbool.h>

struct cm_team;

/* threads 0: one per core. NULL when there is no memory; a team that cannot start its threads works
 * with fewer. */
struct cm_team *cm_team_new(int threads);
void cm_team_free(struct cm_team *team);
int cm_team_threads(const struct cm_team *team);

/* The calling thread's team from here on; returns the one before, to be entered again afterwards.
 */
struct cm_team *cm_team_enter(struct cm_team *team);

typedef void cm_chunk_fn(void *arg, int64_t begin, int64_t end);

/* Calls fn for all of [0, count) in pieces of `grain`, the last one shorter. Returns when all are
 * done. A count up to grain stays on this thread. */
void cm_parallel(int64_t count, int64_t grain, cm_chunk_fn *fn, void *arg);

/* How many threads cm_parallel has for its pieces here: so many contiguous shares it makes of them.
 */
int cm_parallel_threads(void);

/* ---- an OpenMP runtime ---- */

/* Its functions, under their names in the C interface of OpenMP and of GCC's runtime. */
struct cm_team_runtime {
    void (*GOMP_parallel)(void (*fn)(void *), void *arg, unsigned threads, unsigned flags);
    int (*omp_get_thread_num)(void), (*omp_get_num_threads)(void), (*omp_get_max_threads)(void);
    void (*omp_set_num_threads)(int threads);
};

/* From now on, until the process ends, all teams use this runtime's threads. The first call wins.
 */
void cm_team_use_runtime(const struct cm_team_runtime *runtime);

/* Before code of others runs on this thread that opens regions of the runtime itself: they get the
 * whole team, or one thread. Leaving the team gives back the number from before. */
void cm_team_lend(bool whole);

#endif
