/* Copying nodes: into another graph, with some of what they read replaced. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_CLONE_H
#define CM_GRAPH_CLONE_H

#include "graph/builder.h"

/* What stands for what: a table of those values that were mapped, the others stay themselves. A
 * body costs what it holds, however large the module is. */
struct cm_clone_entry {
    cm_value old, replacement; /* old 0: free */
};

/* What copies are to be other than what they are copies of. */
struct cm_clone_changes {
    /* May change what the copy is made of; spec's lists are its own, attributes excepted. */
    enum cm_status (*node)(void *arg, const struct cm_node *node, struct cm_node_spec *spec,
                           struct cm_error *err);
    /* The type that the input of a body has in the copy. NULL: the same. */
    const struct cm_type *(*type)(void *arg, const struct cm_type *type);
    void *arg;
};

struct cm_clone {
    struct cm_arena *arena;
    struct cm_clone_entry *entries;
    size_t count, capacity; /* a power of two, or 0 */
    bool alike; /* names and declared types go along; what is known of results is taken over where
                   operands are known alike, rather than inferred again */
    const struct cm_clone_changes *changes; /* NULL: none */
};

void cm_clone_init(struct cm_clone *clone, struct cm_module *module);
void cm_clone_map(struct cm_clone *clone, cm_value old, cm_value replacement);
cm_value cm_clone_of(const struct cm_clone *clone,
                     cm_value old); /* itself when nothing stands for it */

/* Copies one node, or all nodes of a graph (whose inputs are mapped already), to where builder
 * stands; maps their results. Bodies are copied along; constants of the graph are defined again. */
enum cm_status cm_clone_node(struct cm_clone *clone, struct cm_builder *builder,
                             const struct cm_node *node) CM_MUST_CHECK;
enum cm_status cm_clone_graph(struct cm_clone *clone, struct cm_builder *builder,
                              const struct cm_graph *graph) CM_MUST_CHECK;

/* What stands for value in a copy of from, made in graph to: constants are defined again there. */
cm_value cm_clone_operand(struct cm_clone *clone, struct cm_graph *to, const struct cm_graph *from,
                          cm_value value);

/* Outer values that the bodies of a node read, each once; graphs nested in them counted in.
 * Constants are left out. */
size_t cm_node_captured(const struct cm_node *node, struct cm_arena *arena, cm_value **out);
/* Is there a node with this effect in the graph, or in a body in it? */
bool cm_graph_has_effect(const struct cm_graph *graph, unsigned effect);

#endif
