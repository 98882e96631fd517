/* Messages to a module's graphs and back. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_IMPORT_H
#define CM_GRAPH_IMPORT_H

#include "graph/graph.h"

/* Brings a node of an older operator version up to date and adds it: spec is the node as the file
 * has it, its operands found and attribute references resolved, for the rule to change; from is its
 * version. Whatever it adds goes through builder, and outputs (spec->n_outputs, 0 where not wanted)
 * receives the values that take the node's place. Given by rewrite/; without one, older versions
 * are added as they are, which no kernel runs. from is NULL for an operator that a cm_adopts_fn
 * takes. */
struct cm_builder;
typedef enum cm_status cm_upgrade_fn(struct cm_builder *builder, struct cm_node_spec *spec,
                                     const struct cm_schema *from, cm_value *outputs);

/* Does the upgrade know what this operator means, though its domain has none of that name in the
 * opset at hand? So it is with what other runtimes put into ai.onnx. */
typedef bool cm_adopts_fn(struct cm_str domain, struct cm_str op_type);

/* Is this initializer of the main graph an input whose default it is, listed among the inputs or
 * not? So it is with what training changes, or what is differentiated by. */
typedef bool cm_opens_fn(void *arg, const struct cm_tensor_proto *initializer);

/* A name of a graph or function (owner is its message) has become this value: a result of a node,
 * an input of a body or an initializer. Bodies of functions are built once for each call, and again
 * when the types there change. */
typedef void cm_defines_fn(void *arg, const void *owner, struct cm_str name, cm_value value);

/* Is told of every node of the file that was built, those of model-local functions once for each
 * call (NULL: not in a function), those of bodies again whenever they are typed anew: its operands
 * and results, in the order of the message. */
typedef void cm_built_fn(void *arg, const struct cm_node_proto *proto, struct cm_graph *graph,
                         const struct cm_node *call, const cm_value *inputs,
                         const cm_value *outputs);

struct cm_findings;

struct cm_import_options {
    cm_upgrade_fn *upgrade;
    cm_adopts_fn *adopts;         /* NULL: none; needs upgrade */
    struct cm_findings *findings; /* receives everything that cannot be built, may hold more
                                     already; NULL: only the message tells */
    cm_opens_fn *opens;           /* NULL: none is */
    void *opens_arg;
    cm_defines_fn *defines; /* told of every name; NULL: nobody is */
    void *defines_arg;
    cm_built_fn *built; /* NULL: nobody is told */
    void *built_arg;
    /* Inputs that have an initializer are constants, unless it is opened. */
    bool constant_defaults;
    /* Of what results are declared to be, sizes are not believed: who compiles code for them must
     * know that they hold. */
    bool ranks_only;
    /* A graph whose inputs, initializers and nodes come behind the model's and read the names of
     * both, as an algorithm of training info does; NULL: none. Needs partial. */
    const struct cm_graph_proto *appended;
    /* Graphs whose initializers may be read where the model's graph defines no such name. */
    const struct cm_graph_proto *const *around;
    size_t n_around;
    /* What cannot be built is listed and left out, and that is no failure: the graph has no outputs
     * yet, and the caller looks for what it wants by name. */
    bool partial;
    /* The model is judged, not run. Only what is wrong with it is listed, not what nobody here can
     * run; a node must also be legal in the version that the file imports; declared types that
     * contradict what is inferred are listed, and where a node cannot be built, the declared types
     * of its results take their place. Needs partial. */
    bool judge;
    bool lists_unsupported; /* of a model that is judged: what nobody here can run is a warning */
    /* Graphs that each continue the model's, which do not see each other; what they became, in
     * order. */
    const struct cm_graph_proto *const *inner;
    size_t n_inner;
    struct cm_graph **inner_graphs;
};

/* The main graph of a model. Functions and imports come from the model too. A node that cannot be
 * built (its operator is not known, its types or attributes are refused) does not end the import:
 * what reads its results is left out and the rest is looked at, so that the message at the end, and
 * the list, name everything. model must outlive the module. options may be NULL. */
enum cm_status cm_module_import(struct cm_module *module, const struct cm_model_proto *model,
                                const struct cm_import_options *options, struct cm_graph **out,
                                struct cm_error *err) CM_MUST_CHECK;

/* cm_module_import with the upgrades that make nodes those whose rules are known: for engines that
 * may not include them. */
typedef enum cm_status cm_import_fn(struct cm_module *module, const struct cm_model_proto *model,
                                    const struct cm_import_options *options, struct cm_graph **out,
                                    struct cm_error *err);

/* How a node is written down: as it stands, unless a cm_form_fn changes it. */
struct cm_node_form {
    struct cm_str domain, op_type, overload;
    int64_t version; /* of the domain, that the form needs */
    const cm_value *inputs, *outputs;
    size_t n_inputs, n_outputs;
    const struct cm_attribute_proto *attributes;
    size_t n_attributes;
    bool without_bodies;                /* its graphs are left out */
    const struct cm_node_proto *origin; /* written as this but for names of values and graphs in
                                           attributes; what is above counts for nothing then, but
                                           for version, inputs and outputs */
    size_t n_nodes; /* that are written as the origin, this one the first; 0: it alone */
};
typedef enum cm_status cm_form_fn(void *arg, const struct cm_node *node, struct cm_node_form *form,
                                  struct cm_error *err);

struct cm_export_options {
    cm_form_fn *form; /* NULL: every node as it stands */
    void *form_arg;
    const struct cm_value_infos *reserved; /* names that none may be made equal to; may be NULL */
};

/* A graph as a message, in arena: names given to what has none, initializers that are read
 * included. Opset imports that its nodes need are added to imports. options may be NULL. */
enum cm_status cm_graph_export(const struct cm_graph *graph, struct cm_arena *arena,
                               const struct cm_export_options *options, struct cm_graph_proto *out,
                               struct cm_opsets *imports, struct cm_error *err) CM_MUST_CHECK;

/* A closed graph as a function, without name and domain: constants become Constant nodes, of
 * version `constant`, and every name is made here, so that graphs that are built alike give equal
 * messages. options may be NULL. */
enum cm_status cm_graph_export_function(const struct cm_graph *graph, struct cm_arena *arena,
                                        const struct cm_export_options *options, int64_t constant,
                                        struct cm_function_proto *out,
                                        struct cm_error *err) CM_MUST_CHECK;

#endif
