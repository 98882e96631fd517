/* The cheapest way to put nodes of a graph on two sides: some are fixed, and every net (a set of
 * nodes) whose members are not all on one side costs its weight. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_REWRITE_MIN_CUT_H
#define CM_REWRITE_MIN_CUT_H

#include "base/arena.h"

#include <stdint.h>

struct cm_min_cut;

/* Members that stand for the two sides; those to be decided come after them. */
enum { CM_CUT_NEAR = 0, CM_CUT_FAR = 1, CM_CUT_FIRST = 2 };

/* Everything lives in arena. */
struct cm_min_cut *cm_min_cut_new(struct cm_arena *arena, size_t members);
/* Adds a net; what cm_min_cut_join adds belongs to the last one. */
void cm_min_cut_net(struct cm_min_cut *cut, int64_t weight);
void cm_min_cut_join(struct cm_min_cut *cut, size_t member);
/* The weight of all nets that are cut. *budget counts edges looked at; false when it was not
 * enough. Afterwards the members on the near side are as few as that weight allows. */
bool cm_min_cut_solve(struct cm_min_cut *cut, uint64_t *budget, int64_t *weight);
bool cm_min_cut_is_near(const struct cm_min_cut *cut, size_t member);

#endif
