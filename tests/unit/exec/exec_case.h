/* What tests of exec/ share: sessions from text, inputs of any shape, results compared bit by bit.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_EXEC_CASE_H
#define CM_TESTS_EXEC_CASE_H

#include "exec/session.h"
#include "graph/graph_case.h"

/* A session over a graph, freed with arena; the test fails if it cannot be made. */
struct cm_session *exec_open(struct cm_arena *arena, struct cm_graph *graph,
                             const struct cm_session_options *options);
/* The same after these passes (NULL: all of them); exec_open folds only. */
struct cm_session *exec_open_after(struct cm_arena *arena, struct cm_graph *graph,
                                   const char *passes, const struct cm_session_options *options);
/* exec_open from text. */
struct cm_session *exec_of(struct cm_arena *arena, const char *text,
                           const struct cm_session_options *options);

/* A float tensor of this shape in arena, its elements count up from `first` in steps of 1/4. */
struct cm_datum *exec_ramp(struct cm_arena *arena, const struct cm_shape *shape, double first);

/* Same kind, type, shape and bytes, items included. */
bool exec_same(const struct cm_datum *a, const struct cm_datum *b);

/* Runs and checks that output 0 holds these numbers; further outputs are dropped. */
#define CHECK_RUNS(session, inputs, n_out, ...)                                                    \
    exec_check((session), (inputs), sizeof(inputs) / sizeof((inputs)[0]), (n_out),                 \
               (const double[]){__VA_ARGS__},                                                      \
               sizeof((const double[]){__VA_ARGS__}) / sizeof(double))
void exec_check(struct cm_session *session, const struct cm_datum *const *in, size_t n_in,
                size_t n_out, const double *expected, size_t count);

#endif
