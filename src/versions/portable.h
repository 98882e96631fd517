/* Graphs that others can run: standard operators only, under the oldest opset in which every node
 * means what it means here. Working copies hold nodes in their newest version; most are legal in
 * older ones as they stand, and a runtime that does not know the newest opset can then take them.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_VERSIONS_PORTABLE_H
#define CM_VERSIONS_PORTABLE_H

#include "graph/graph.h"

/* What gradients and saved steps promise: nothing in them needs an opset above this one. */
enum { CM_PORTABLE_OPSET = 17 };

/* Puts the bodies of ai.cameo operators in their place, in nested graphs too. */
enum cm_status cm_portable_inline(struct cm_graph *graph, struct cm_error *err) CM_MUST_CHECK;

/* The lowest version of its domain, not below at_least, under which the node can be written down as
 * it stands. */
int64_t cm_portable_version(const struct cm_node *node, int64_t at_least);

/* Does an operator mean under `version` of its domain what it meant in its version `original`? */
bool cm_operator_means_same(const struct cm_registry *registry, struct cm_str domain,
                            struct cm_str op_type, int64_t original, int64_t version);

/* The lowest opset of ai.onnx, not below at_least, under which the graph can be written down. */
enum cm_status cm_portable_opset(const struct cm_graph *graph, int64_t at_least, int64_t *opset,
                                 struct cm_error *err) CM_MUST_CHECK;

/* Sets the import of ai.onnx to opset, adding it where it is not listed. For imports that
 * cm_graph_export filled. */
void cm_portable_label(struct cm_arena *arena, struct cm_opsets *imports, int64_t opset);

/* The node that keeps the graph from a lower opset: the first that needs the one found; NULL when
 * nothing does. For messages and tests. */
const struct cm_node *cm_portable_blocker(const struct cm_graph *graph, int64_t at_least);

/* The IR version that came with an opset of ai.onnx: readers refuse a newer opset in an older IR.
 */
int64_t cm_ir_of_opset(int64_t opset);

#endif
