/* What tests of the pass `patterns` share: a graph from text, before and after. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_PATTERN_CASE_H
#define CM_TESTS_PATTERN_CASE_H

#include "graph/graph_case.h"

/* Runs the pass on a graph with these inputs ("float[2,3] x") whose outputs are the comma-separated
 * values `out`; checks that its nodes are afterwards the operators listed, in order, and that it
 * gives what it gave. The graph is returned. */
struct cm_graph *patterns_make(struct cm_arena *arena, const char *inputs, const char *out,
                               const char *nodes, const char *operators);
/* The same where nothing may change. */
void patterns_keep(struct cm_arena *arena, const char *inputs, const char *out, const char *nodes);

#endif
