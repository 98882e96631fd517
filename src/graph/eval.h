/* Running without an executor: one node, or a whole graph node by node, every result allocated as
 * it comes. Slow and clear; constant folding uses it, and faster engines are judged by it. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_EVAL_H
#define CM_GRAPH_EVAL_H

#include "graph/op.h"

struct cm_eval_options {
    uint64_t seed;       /* of random nodes that bring none */
    bool prefer_bodies;  /* run operators by their function body where they have one: the test of
                            bodies */
    uint64_t step_limit; /* nodes run, loops counted; 0: none */
};

/* Runs one node on values (NULL: absent); out (n_outputs of the node) receives new references where
 * wanted. Bodies read outer values that are constants only. */
enum cm_status cm_op_eval(struct cm_node *node, const struct cm_datum *const *in,
                          struct cm_datum *out, struct cm_error *err) CM_MUST_CHECK;

/* Runs a closed graph. in has one value per graph input; out one per graph output, new references.
 * options may be NULL. */
enum cm_status cm_graph_eval(struct cm_graph *graph, const struct cm_datum *const *in, size_t n_in,
                             struct cm_datum *out, const struct cm_eval_options *options,
                             struct cm_error *err) CM_MUST_CHECK;

#endif
