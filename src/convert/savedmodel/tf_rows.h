/* How nodes of a graph become nodes of TensorFlow: rows of data/frameworks/tensorflow/, one file
 * for each operator, templates (template/template.h) whose lines are nodes:
 *
 *     %Y = Relu(%X)
 *     %sum = Sum(%data, i64 [${axes}]) {keep_dims: true}
 *     %a, %b = Unique(%flat) {out_idx: i64}
 *
 * Operands are tensors, lists of them, and literals, which have the type that the operator wants
 * there unless one stands before them. Types follow from operands; where the kernels of TensorFlow
 * lack one, operands are cast to a wider type and results back. docs/savedmodel.md has more. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_TF_ROWS_H
#define CM_CONVERT_TF_ROWS_H

#include "convert/savedmodel/tf_graph.h"
#include "graph/graph.h"

struct cm_findings;

/* A SavedModel under way. */
struct cm_tf_writer {
    struct cm_arena *arena;
    struct cm_findings *findings; /* receives all that cannot be expressed */
    struct cm_tf_functions functions;
    struct cm_map operators; /* of TensorFlow: lines of the table, later what they say */
    size_t n_uses;           /* of rows */
};

/* One graph under way, and what its values became. */
struct cm_tf_scope {
    struct cm_tf_writer *writer;
    struct cm_module *module; /* of the graph that is written */
    struct cm_tf_graph *graph;
    struct cm_str label; /* before names of nodes: "train_step/"; may be empty */
    struct cm_str at;    /* the name for the nodes of the node at hand */
    struct cm_map names; /* of lines: "%v7", "%n3_sum" */
    CM_ARRAY(struct cm_tf_tensor) tensors;
    struct cm_tf_node *control; /* runs before what has no operands; NULL: nothing does */
};

/* ---- operators of TensorFlow ---- */

/* NULL: the table has none of that name. */
const struct cm_tf_op *cm_tf_operator(struct cm_tf_writer *writer, struct cm_str name);

/* ---- lines ---- */

void cm_tf_define(struct cm_tf_scope *scope, struct cm_str name, struct cm_tf_tensor tensor);
/* What a name of lines stands for; node NULL: it is not defined. Constants of the graph are made
 * where they are first asked for. */
struct cm_tf_tensor cm_tf_find(struct cm_tf_scope *scope, struct cm_str name);
/* Adds what a line says. */
enum cm_status cm_tf_line(struct cm_tf_scope *scope, struct cm_str line,
                          struct cm_error *err) CM_MUST_CHECK;
/* The same; a failure is kept in *status, and nothing is done after one. */
void cm_tf_linef(struct cm_tf_scope *scope, enum cm_status *status, struct cm_error *err,
                 const char *format, ...) CM_PRINTF(4, 5);

/* ---- nodes and graphs ---- */

/* The name that lines have for a value: "%v7". */
struct cm_str cm_tf_value_name(struct cm_tf_scope *scope, cm_value value);
struct cm_tf_tensor cm_tf_value(struct cm_tf_scope *scope, cm_value value);
void cm_tf_set_value(struct cm_tf_scope *scope, cm_value value, struct cm_tf_tensor tensor);
/* Is there a row for the operator, or code? */
bool cm_tf_has_row(struct cm_str domain, struct cm_str op_type);
/* All nodes of a graph, whose inputs are defined. The findings receive what cannot be expressed. */
enum cm_status cm_tf_nodes(struct cm_tf_scope *scope, struct cm_graph *graph,
                           struct cm_error *err) CM_MUST_CHECK;

/* control_flow.c: If, Loop and Scan. */
bool cm_tf_is_control_flow(struct cm_str domain, struct cm_str op_type);
enum cm_status cm_tf_control_flow(struct cm_tf_scope *scope, const struct cm_node *node,
                                  struct cm_error *err) CM_MUST_CHECK;

#endif
