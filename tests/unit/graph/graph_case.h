/* What tests of graph/ share: models from text, graphs made by hand, evaluation of float rows. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_GRAPH_CASE_H
#define CM_TESTS_GRAPH_CASE_H

#include "check.h"
#include "graph/eval.h"
#include "graph/function.h"
#include "graph/import.h"

/* The start of a model in text form; 28 is the newest opset. */
#define GRAPH_HEAD  "<ir_version: 10, opset_import: [\"\" : 28, \"local\" : 1]>\n"
#define GRAPH_LOCAL "<domain: \"local\", opset_import: [\"\" : 28, \"local\" : 1]>\n"

/* A model from text in a new module; the test fails if that does. options may be NULL. */
struct cm_graph *graph_of(struct cm_arena *arena, const char *text,
                          const struct cm_module_options *options);
/* The status of importing text, for models that must be refused; the text must parse. */
enum cm_status graph_try(struct cm_arena *arena, const char *text,
                         const struct cm_module_options *options, struct cm_error *err);
/* An empty graph in a new module. */
struct cm_graph *graph_new(struct cm_arena *arena);
const struct cm_type *graph_float_type(struct cm_arena *arena, int64_t size); /* float[size] */

/* Adds a node and returns its first output; the test fails if that does. */
#define GRAPH_ADD(graph, op, ...)                                                                  \
    graph_add((graph), NULL, (op), (const cm_value[]){__VA_ARGS__},                                \
              sizeof((const cm_value[]){__VA_ARGS__}) / sizeof(cm_value))
cm_value graph_add(struct cm_graph *graph, struct cm_node *before, const char *op,
                   const cm_value *inputs, size_t count);

/* Data for inputs; they live in arena. */
struct cm_datum *graph_floats(struct cm_arena *arena, size_t count, const float *values);
struct cm_datum *graph_bool(struct cm_arena *arena, bool value);
struct cm_datum *graph_int(struct cm_arena *arena, int64_t value); /* rank 0 */
#define FLOATS(arena, ...)                                                                         \
    graph_floats((arena), sizeof((const float[]){__VA_ARGS__}) / sizeof(float),                    \
                 (const float[]){__VA_ARGS__})

/* Evaluates and checks that output 0 holds these floats. */
#define CHECK_GIVES(arena, graph, inputs, ...)                                                     \
    graph_check((arena), (graph), (inputs), NULL, (const float[]){__VA_ARGS__},                    \
                sizeof((const float[]){__VA_ARGS__}) / sizeof(float))
#define INPUTS(...) ((const struct cm_datum *const[]){__VA_ARGS__})
void graph_check(struct cm_arena *arena, struct cm_graph *graph, const struct cm_datum *const *in,
                 const struct cm_eval_options *options, const float *expected, size_t count);

#endif
