/* One node of a file in the form that other opset versions have, as messages: it alone where the
 * operator has such a form, with nodes that compute its operands or results where it needs them, or
 * the nodes of its function body. Nodes that mean the same as they stand are left to the caller. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MODELS_OPSET_NODES_H
#define CM_MODELS_OPSET_NODES_H

#include "base/array.h"
#include "graph/graph.h"

/* Where a node of the file is in the typed working copy. */
struct cm_node_record {
    struct cm_graph *graph;
    const struct cm_node *call; /* of the function it is in; NULL: none */
    const cm_value *inputs, *outputs;
    struct cm_node_record *next; /* of another call */
};

struct cm_node_writer {
    struct cm_arena *arena;
    struct cm_module *module;
    const struct cm_opsets *targets;
    struct cm_map *taken;       /* names of values in the model */
    struct cm_map *file_graphs; /* addresses of the bodies that are the file's */
    bool in_function;
    CM_ARRAY(struct cm_node_proto) nodes;
    CM_ARRAY(struct cm_tensor_proto)
    initializers;                  /* constants that the opset has no Constant node for */
    CM_ARRAY(struct cm_str) fresh; /* names made here */
    struct cm_str how;             /* what was done, for people */
    struct cm_error *err;

    /* Of the node at work. */
    struct cm_str base;           /* what new names begin with */
    struct cm_map names;          /* of values, by their number */
    CM_ARRAY(cm_value) constants; /* those that were written down */
    int depth, in_bodies;         /* of nodes that helping nodes need; of graphs made here */
};

/* Appends what takes the place of the node, which is of schema `from`, to w->nodes; appends nothing
 * and sets *same where the node can stay. */
enum cm_status cm_write_converted(struct cm_node_writer *w, const struct cm_node_proto *proto,
                                  const struct cm_schema *from, const struct cm_node_record *record,
                                  bool *same) CM_MUST_CHECK;

/* The version to write a domain in; 0: it is not among the targets. */
int64_t cm_target_version(const struct cm_opsets *targets, struct cm_str domain);

#endif
