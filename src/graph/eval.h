/* Running without an executor: one node, or a whole graph node by node, every result allocated as
 * it comes. Slow and clear; constant folding uses it, and faster engines are judged by it. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_EVAL_H
#define CM_GRAPH_EVAL_H

#include "graph/op.h"

#include <stdatomic.h>

/* Called after each node; those of bodies and functions before the node they belong to. */
struct cm_eval_report {
    const struct cm_node *node;
    bool by_body;              /* it ran as the graph it stands for */
    int depth;                 /* 0: the graph itself */
    uint64_t begin_ns, end_ns; /* since the evaluation began */
    size_t live_bytes;         /* of all results so far: none is dropped before the end */
};
typedef void cm_eval_step_fn(void *arg, const struct cm_eval_report *report);

struct cm_eval_options {
    uint64_t seed;       /* of random nodes that bring none */
    bool prefer_bodies;  /* run operators by their function body where they have one: the test of
                            bodies */
    uint64_t step_limit; /* nodes run, loops counted; 0: none */
    size_t memory_limit; /* bytes of results; 0: none */
    const atomic_bool *cancel; /* may be set by another thread; looked at between nodes */
    cm_eval_step_fn *step;     /* may be NULL */
    void *step_arg;
    struct cm_guard *guard; /* of the evaluation's memory; NULL: the one the graph was made under,
                               which must last */
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
