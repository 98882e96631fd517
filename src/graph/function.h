/* Functions: a call becomes the nodes of its body, in place or as a closed graph of its own. Bodies
 * come from the model, from the operator (built for the case at hand), or as text from the
 * registry. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_FUNCTION_H
#define CM_GRAPH_FUNCTION_H

#include "graph/op.h"

enum { CM_CALL_DEPTH = 100 };

/* Can the node run as it stands? Else its function body must take its place. */
bool cm_node_has_kernel(const struct cm_node *node);
/* Could the node be expanded? A builder may still decline. */
bool cm_node_has_function(const struct cm_node *node);

/* Puts the body in place of the node: its values take over the uses and names of the node's
 * outputs, the node is gone. */
enum cm_status cm_graph_inline(struct cm_node *node, struct cm_error *err) CM_MUST_CHECK;
/* Does that for all nodes that `which` picks, in nested graphs and in what was inlined, until none
 * is left or the module's node budget is spent. */
typedef bool cm_pick_fn(const struct cm_node *node, void *arg);
enum cm_status cm_graph_inline_all(struct cm_graph *graph, cm_pick_fn *which, void *arg,
                                   struct cm_error *err) CM_MUST_CHECK;

/* The same for all calls of the model's functions. */
enum cm_status cm_graph_inline_calls(struct cm_graph *graph, struct cm_error *err) CM_MUST_CHECK;

/* Adds the nodes of a function, where build stands: actuals are its inputs, 0 where absent, results
 * receives its outputs. What refers to attributes means those of call. */
enum cm_status cm_function_apply(struct cm_builder *build, const struct cm_function_proto *function,
                                 const struct cm_node *call, const cm_value *actuals,
                                 cm_value *results) CM_MUST_CHECK;

/* The same for a function that was made of nodes of the model: it may call the model's functions
 * and refers to no attributes. */
enum cm_status cm_function_apply_alone(struct cm_builder *build,
                                       const struct cm_function_proto *function,
                                       const cm_value *actuals, cm_value *results) CM_MUST_CHECK;

/* node->instance: the body as a closed graph whose inputs are the node's (absent ones left out of
 * it, in order), made on first request for the types at hand. */
enum cm_status cm_node_instantiate(struct cm_node *node, struct cm_error *err) CM_MUST_CHECK;

#endif
