/* Forests of decision trees, compiled: cm_forest_prepare turns the description of a forest into a
 * compact form, and cm_forest_run sends rows of features through that. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_CPU_FOREST_ENGINE_H
#define CM_BACKENDS_CPU_FOREST_ENGINE_H

#include "graph/forest.h"

struct cm_forest;

/* In prepare: makes *out, which lies in the state of the node, the forest that read describes, for
 * rows of as many features as input 0 has in its last axis (a vector is one row), and asks for the
 * scratch memory that cm_forest_run needs: all of call->scratch. The forest goes with the state. If
 * another state of the same node has it already, they share it: compiling a large one takes longer
 * than running it on a few rows. */
enum cm_status cm_forest_prepare(struct cm_call *call, cm_trees_read_fn *read, const void *arg,
                                 struct cm_forest **out) CM_MUST_CHECK;

/* In run: all rows of input 0. A row's scores are added up in the order of the trees, in double,
 * whatever the number of threads. */
void cm_forest_run(struct cm_call *call, const struct cm_forest *forest,
                   cm_forest_finish_fn *finish, void *arg);

#endif
