/* The typed graphs that training info stands for, and parts of them as graphs of their own: a
 * step, half of one, an evaluation, a prediction.
 *
 * An entry is imported once, inference graph and algorithm into one graph. State variables are its
 * inputs that have a default; its other inputs must be fed. What cannot be built is not in the
 * graph: that is no failure until somebody wants it. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_TRAINING_GRAPH_H
#define CM_TRAIN_TRAINING_GRAPH_H

#include "base/array.h"
#include "graph/graph.h"

struct cm_findings;

/* Names, each once, in the order they came. */
struct cm_distinct_names {
    struct cm_arena *arena;
    struct cm_map places;
    CM_ARRAY(struct cm_str) names;
};
size_t cm_distinct_names_add(struct cm_distinct_names *list, struct cm_str name); /* its place */

struct cm_training_source {
    struct cm_module *module;
    const struct cm_model_proto *model; /* must outlive the module */
    size_t entry;
    const struct cm_map *variables; /* by name: initializers that are state variables */
    struct cm_findings *findings;   /* receives what cannot be built */
};

/* Inference graph and algorithm. */
enum cm_status cm_training_import(const struct cm_training_source *source, struct cm_graph **out,
                                  struct cm_error *err) CM_MUST_CHECK;
struct cm_prepared_step; /* prepare/prepared_step.c */
/* The same of a training that was prepared and not read from a file: graphs of one module. */
struct cm_prepared_training {
    const struct cm_graph *inference, *algorithm; /* NULL: there is none yet */
    const struct cm_graph *reset;                 /* its initialization */
    struct cm_prepared_step *step;
};
/* The graph of a step with its gradients, as it is after the pass `patterns`; NULL: the algorithm
 * is differentiated when a step is made. */
enum cm_status cm_prepared_step_graph(struct cm_prepared_step *step, const struct cm_graph **out,
                                      struct cm_error *err) CM_MUST_CHECK;
/* Both as one graph. variables: names of initializers that become inputs with a default; NULL:
 * none. clone, which is set here, knows what stands for what. */
struct cm_clone;
enum cm_status cm_training_join(const struct cm_prepared_training *from,
                                const struct cm_map *variables, struct cm_clone *clone,
                                struct cm_graph **out, struct cm_error *err) CM_MUST_CHECK;
/* The initialization graph, with the initializers of the other two. */
enum cm_status cm_training_import_initialization(const struct cm_training_source *source,
                                                 struct cm_graph **out,
                                                 struct cm_error *err) CM_MUST_CHECK;

/* Values of a graph by name. Where one is missing the failure tells what could not be built. */
enum cm_status cm_training_find(const struct cm_graph *graph, const struct cm_findings *findings,
                                const struct cm_str *names, size_t count, cm_value *out,
                                struct cm_error *err) CM_MUST_CHECK;

static inline bool cm_value_is_variable(const struct cm_module *module, cm_value value)
{
    const struct cm_value_def *def = cm_value_get(module, value);

    return def->role == CM_ROLE_INPUT && def->initializer;
}

/* By value number: what outputs of graph are computed from, themselves included, back to values of
 * `given` (the same list, of what is not computed; NULL: nothing). What bodies read is listed too.
 * evaluate: as in struct cm_cut. Lives in arena. */
bool *cm_training_needed(const struct cm_graph *graph, struct cm_arena *arena,
                         const cm_value *outputs, size_t n_outputs, const bool *given,
                         bool evaluate);

/* The same for what is on such a list already. */
void cm_training_need(const struct cm_graph *graph, const bool *given, bool evaluate, bool *needed);
/* Does a node compute something on the list that is not given? */
bool cm_node_is_needed(const struct cm_node *node, const bool *needed, const bool *given);

/* A value that is fed instead of computed, and its type then. */
struct cm_given_value {
    cm_value value;
    const struct cm_type *type;
};

/* What is copied: all that leads to outputs, up to what is given. */
struct cm_cut {
    const struct cm_graph *graph;
    const cm_value *outputs;
    size_t n_outputs;
    const struct cm_given_value *given;
    size_t n_given;
    bool evaluate;     /* operators that behave otherwise in training behave as in inference */
    const char *after; /* the pass that the graph has been through; NULL: none */
};

/* The copy is a graph of the same module. Its inputs are the variables that it reads, then the
 * given values that it reads, then what must be fed, each in the order they have; sources says of
 * each which value of the graph it stands for. */
enum cm_status cm_cut_copy(const struct cm_cut *cut, struct cm_graph **out, cm_value **sources,
                           struct cm_error *err) CM_MUST_CHECK;

/* The value that output o of a Gradient node is the derivative by, where it is taken at the point
 * where that value stands; 0: at another point. */
cm_value cm_gradient_of(const struct cm_node *node, int o);

#endif
