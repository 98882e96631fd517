/* What tests of the passes simplify and merge share: a model from text goes through a pass, its
 * operators are compared with a list and its results, bit by bit, with those before. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_SIMPLIFY_CASE_H
#define CM_TESTS_SIMPLIFY_CASE_H

#include "graph/graph_case.h"
#include "rewrite/pass.h"

/* The operators of a graph in order, those of bodies in braces behind their node: "Relu If{Neg}{}".
 */
const char *graph_operators(struct cm_arena *arena, const struct cm_graph *graph);

/* Runs the pass on the model whose text is GRAPH_HEAD and this, and checks the operators left. The
 * model is evaluated before and after on inputs that hold zeros of both signs, NaN and infinities;
 * dimension N is 2, M is 3, other unknown ones are 4, and an unknown shape is (2, 3). Returns the
 * graph after the pass. */
struct cm_graph *check_pass(struct cm_arena *arena, cm_pass_fn *pass, const char *text,
                            const char *operators);

#endif
