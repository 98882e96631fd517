/* What to do while other programs want the same cores.
 *
 * An OpenMP runtime lets threads wait for each other by spinning, for about a millisecond. On free
 * cores that is 30 to 100 times faster than sleeping. On contended ones it is ruinous: the spinning
 * thread uses up the time slice of the one it waits for, and a parallel region takes milliseconds
 * instead of microseconds. GCC's runtime has an answer of its own: with more threads than
 * processors they hardly spin (GOMP_SPINCOUNT in its manual). So when a thread of ours
 * is kept from working for a good part of a run, idle threads are added to the runtime until it
 * has more than there are processors. Some milliseconds later they are taken away to see whether
 * cores are free again; if not, they come back for twice as long, at last for seconds. Nothing but
 * the way of waiting changes: not the size of a team, not a bit of any result. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_CROWD_H
#define CM_BASE_CROWD_H

struct cm_team_runtime;

/* Processors this process may use; at least 1. */
int cm_cores(void);

/* The calling thread works from now on, and has done its work: what it does in between is looked
 * at, the time between two runs is not. */
void cm_crowd_begin(void);
void cm_crowd_end(void);

/* Before a parallel region of the runtime with this many threads. Costs some nanoseconds, and some
 * system calls every few milliseconds. */
void cm_crowd_watch(const struct cm_team_runtime *runtime, int threads);

/* Somebody may call cm_crowd_watch from now on; nobody does any more. When the last has left, the
 * idle threads are gone. */
void cm_crowd_join(void);
void cm_crowd_leave(void);

#endif
