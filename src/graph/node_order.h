/* The order of nodes in files. ONNX asks that each node stands behind those whose results it reads;
 * not every producer does that, and what such a graph means is clear all the same. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_NODE_ORDER_H
#define CM_GRAPH_NODE_ORDER_H

#include "base/status.h"
#include "onnx/messages.h"

struct cm_node_order {
    const size_t *items; /* indices of all nodes, in arena; NULL: they are in order as they stand */
    /* Where they are not: the first node that reads a name which a later one makes, and that name.
     */
    const struct cm_node_proto *reader;
    struct cm_str name;
};

/* An order in which each node comes after what it reads, bodies inside it included. A node moves
 * forward only where an earlier one needs it; all others keep the order they have. Nodes that read
 * each other's results in a circle are refused by name. Takes time linear in the nodes and
 * their operands; scratch is free for reuse on return. */
enum cm_status cm_node_order(struct cm_arena *arena, struct cm_arena *scratch,
                             const struct cm_nodes *nodes, struct cm_node_order *out,
                             struct cm_error *err) CM_MUST_CHECK;

/* The nodes in such an order, for whoever walks messages: the list itself where it is in order or
 * cannot be brought into one, else a copy of it in arena. */
struct cm_nodes cm_nodes_sorted(struct cm_arena *arena, const struct cm_nodes *nodes);

/* Calls read for each name that a node reads of the graph it is in: operands, what attributes name,
 * and what the bodies inside it do not define themselves. Ends when read returns false. */
typedef bool cm_read_name_fn(void *arg, struct cm_str name);
void cm_node_each_read(struct cm_arena *scratch, const struct cm_node_proto *node,
                       cm_read_name_fn *read, void *arg);

/* Attributes of an operator that name values: what they name is read. NULL: it has none; else the
 * list ends with NULL. */
const char *const *cm_naming_attributes(struct cm_str domain, struct cm_str op_type);

/* GraphCall of ONNX 1.7: the node calls the inference graph. */
bool cm_is_graph_call(const struct cm_node_proto *node);
bool cm_has_graph_call(const struct cm_graph_proto *graph); /* NULL: no */

#endif
