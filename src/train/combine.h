/* The graphs that training info stands for, put together from the parts the file has: a training
 * step, its evaluation without training, the initialization. State variables become inputs. The
 * file's messages are read, never changed; what is built shares their contents. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_COMBINE_H
#define CM_TRAIN_COMBINE_H

#include "base/map.h"
#include "onnx/messages.h"

/* A state variable, as far as graphs are concerned. */
struct cm_combine_variable {
    struct cm_str name;
    int64_t entry; /* whose algorithm declares it; -1: the inference graph */
    const struct cm_tensor_proto *proto;
};

/* What is combined, and for which outputs. */
struct cm_combine {
    struct cm_arena *arena;
    const struct cm_model_proto *model;
    size_t entry;
    const struct cm_combine_variable *variables;
    size_t n_variables;
    const struct cm_str *outputs; /* names, each once */
    size_t n_outputs;
    bool evaluate; /* operators that behave otherwise in training behave as in inference */
    const struct cm_value_info_proto *given; /* values that are fed instead of computed */
    size_t n_given;
};

/* The result: a graph whose inputs are the state variables it reads, then those of the given values
 * that it reads, then what must be fed. Nodes that no output needs are left out. */
struct cm_combined {
    struct cm_graph_proto graph;
    size_t *variables; /* the first inputs, by number */
    size_t n_variables;
    size_t *given; /* the next ones */
    size_t n_given;
};

/* Inference graph and algorithm, one after the other. */
void cm_combine_step(const struct cm_combine *what, struct cm_combined *out);
/* The inference graph alone, its weights as they are in training. */
void cm_combine_inference(const struct cm_combine *what, struct cm_combined *out);
/* The initialization graph, with the initializers that it reads of the other two. */
void cm_combine_initialization(const struct cm_combine *what, struct cm_combined *out);

/* Calls name for everything that a node reads: inputs, what its bodies use, what Gradient's
 * attributes name. Names that a body defines itself may be among them. */
typedef void cm_name_fn(void *arg, struct cm_str name);
void cm_node_reads(const struct cm_node_proto *node, cm_name_fn *name, void *arg);

/* The graph that an entry has, or an empty one. */
const struct cm_graph_proto *cm_training_algorithm(const struct cm_training_proto *entry);

#endif
