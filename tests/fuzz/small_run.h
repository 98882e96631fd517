/* Small inputs for whatever a fuzzed model asks for, and runs under limits. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_FUZZ_SMALL_RUN_H
#define CM_FUZZ_SMALL_RUN_H

#include "graph/graph.h"

/* A value of the type, in arena: sizes that are not known are 2 and elements are small numbers,
 * different ones for other seeds. False: there is none that is small. */
bool small_value(const struct cm_type *type, uint64_t seed, struct cm_arena *arena,
                 struct cm_datum *out);

/* Runs graph twice on small inputs, one thread, little memory, a few thousand steps. The graph is
 * used up. */
void small_run(struct cm_graph *graph, struct cm_arena *arena, uint64_t seed);

#endif
