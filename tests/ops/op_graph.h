/* A case as a graph: the operator alone, its operands as inputs whose types are told fully, partly
 * or not at all. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_OP_GRAPH_H
#define CM_TESTS_OP_GRAPH_H

#include "graph/eval.h"
#include "op_case.h"

/* What the graph is told about its operands. */
enum telling {
    TELL_SHAPES,
    TELL_SYMBOLS, /* a dimension of size 3 is the symbol "size3" */
    TELL_RANKS,
    TELL_TYPES,    /* not even ranks */
    TELL_CONTENTS, /* tensors are initializers */
    TELL_WEIGHTS,  /* but for the first operand they are, as in a model; its shape is known */
    TELLINGS
};

extern const char *const telling_names[TELLINGS];

struct op_graph {
    const struct op_case *from;
    struct cm_graph *graph;
    struct cm_node *node;             /* the operator; the last node when several stand for it */
    const struct cm_datum **feeds;    /* one per graph input, with room for one more */
    const struct case_value **values; /* what each graph input is */
    size_t n_feeds;
};

/* Builds it in arena. */
enum cm_status op_graph_build(const struct op_case *from, enum telling telling,
                              struct cm_arena *arena, struct op_graph *out, struct cm_error *err);
/* Runs it; out has one value per result that is asked for and is dropped with arena. */
enum cm_status op_graph_run(const struct op_graph *graph, bool by_bodies, struct cm_arena *arena,
                            struct cm_datum **out, struct cm_error *err);

/* A tensor type as it is told. */
const struct cm_type *op_told_type(struct cm_arena *arena, struct cm_symbols *symbols,
                                   const struct cm_tensor *tensor, enum telling telling);

#endif
