/* What tests of regions share: graphs with groups to find, and a graph's nodes as a line. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_REGION_CASE_H
#define CM_TESTS_REGION_CASE_H

#include "graph/graph_case.h"
#include "rewrite/pass.h"

#define MAIN(head, nodes)                                                                          \
    "<ir_version: 10, opset_import: [\"\" : 28, \"ai.onnx.preview.training\" : 1]>\n"              \
    "main " head " {\n" nodes "\n}"

/* The update of two parameters, x and y. */
extern const char region_adam[];

/* Runs the pass. */
void region_fuse(struct cm_graph *graph);
bool region_is(const struct cm_node *node);
/* A graph's nodes as a line: "Conv Elementwise(Mul Add) Loop[..]". */
void region_put_nodes(char *line, size_t room, const struct cm_graph *graph);
/* x -> Neg -> Neg -> .., every one of the first n_outputs results an output. */
struct cm_graph *region_negated(struct cm_arena *arena, size_t count, size_t n_outputs);

#endif
