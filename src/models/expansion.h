/* What the files that expand models share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MODELS_EXPANSION_H
#define CM_MODELS_EXPANSION_H

#include "base/array.h"
#include "graph/graph.h"
#include "models/expand_model.h"
#include "models/splice.h"

/* A name of --only or --except. */
struct cm_expand_name {
    struct cm_str domain, name; /* the name "*": all of the domain */
    bool any_domain;
    bool met; /* something has it */
};

struct cm_expand_names {
    CM_ARRAY(struct cm_expand_name);
};

struct cm_expansion {
    struct cm_arena *arena;
    const struct cm_expand_options *options;
    const struct cm_registry *registry;
    const struct cm_model_file *file;
    struct cm_model_proto *model; /* being changed */
    struct cm_splicer splicer;
    struct cm_expand_names only, except;
    struct cm_map functions; /* key to function of the model */
    struct cm_expand_report *report;
    struct cm_findings *findings;
    size_t room; /* nodes that may still be made */
    int depth;   /* replacements inside each other; a body inside a replacement is deeper, too */
    /* Of the opset being written, for operators. */
    int64_t opset, needed; /* of ai.onnx; needed is above opset where a node has no form there */
    struct cm_str needed_by;
    struct cm_map alike; /* what nodes of one kind, with operands of the same types, became */
    bool failed;         /* something that must go has to stay */
    struct cm_error *err;
};

/* Is an operator, or a function, of this name to be expanded as far as names decide? */
bool cm_expansion_picks(struct cm_expansion *x, struct cm_str domain, struct cm_str name,
                        bool is_function);
/* Was it named, or must it go because only core operators may stay? */
bool cm_expansion_must(const struct cm_expansion *x);
/* The function of the model that the node calls; NULL: none. */
const struct cm_function_proto *cm_expansion_function(const struct cm_expansion *x,
                                                      const struct cm_node_proto *node);
/* Counts nodes that are about to be made. */
enum cm_status cm_expansion_spend(struct cm_expansion *x, size_t nodes) CM_MUST_CHECK;

/* The typed form of a graph inside a node of graph, which may be NULL; NULL: there is none. */
const struct cm_graph *cm_expansion_body(const struct cm_graph *graph,
                                         const struct cm_node_proto *node,
                                         const struct cm_attribute_proto *attribute);

/* What takes the place of a node: a function and the call of it; function NULL: it stays. */
struct cm_replacement {
    const struct cm_function_proto *function;
    const struct cm_node_proto *call;
    bool again; /* what is put in is looked at in turn */
};
/* graph: the typed form of the graph that the node is in, or NULL. */
typedef enum cm_status cm_replace_fn(struct cm_expansion *x, const struct cm_graph *graph,
                                     const struct cm_node_proto *node, struct cm_replacement *out);
/* The nodes with replacements in their places, in the graphs inside them too. graph: the typed
 * graph, or NULL. */
enum cm_status cm_expansion_walk(struct cm_expansion *x, cm_replace_fn *replace,
                                 const struct cm_graph *graph, struct cm_nodes *nodes,
                                 bool *changed) CM_MUST_CHECK;
enum cm_status cm_expansion_walk_graph(struct cm_expansion *x, cm_replace_fn *replace,
                                       const struct cm_graph *typed,
                                       struct cm_graph_proto **graph) CM_MUST_CHECK;

/* Weights stay operands: only what may be shape arithmetic or a mode is known by its contents. */
bool cm_expansion_is_arithmetic(const struct cm_type *type);
/* Nodes of one key have one expansion: the operator, its attributes, and which of its operands, of
 * which types, and results it has. whole reads what the node does. "": the node is alone. */
enum cm_status cm_expansion_key(struct cm_expansion *x, const struct cm_graph *graph,
                                const struct cm_node_proto *node,
                                const struct cm_function_proto *whole,
                                struct cm_str *key) CM_MUST_CHECK;

/* Does any operator have to be looked at with types? */
bool cm_expansion_has_operators(struct cm_expansion *x);
/* Expands operators, under x->opset, or sets x->needed. */
enum cm_status cm_expansion_operators(struct cm_expansion *x) CM_MUST_CHECK;

#endif
