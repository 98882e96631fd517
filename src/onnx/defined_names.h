/* Names that a graph of a file defines: inputs, initializers, results of nodes. The names that
 * graphs inside its nodes define are their own. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_ONNX_DEFINED_NAMES_H
#define CM_ONNX_DEFINED_NAMES_H

#include "base/array.h"
#include "base/map.h"
#include "onnx/messages.h"

/* Calls fn for each, in this order. */
typedef void cm_define_fn(void *arg, struct cm_str name);
void cm_graph_each_defined(const struct cm_graph_proto *graph, cm_define_fn *fn, void *arg);

/* Names, each once. */
struct cm_name_set {
    struct cm_arena *arena;
    struct cm_map map;
    CM_ARRAY(struct cm_str); /* in the order they came */
};
/* A define function; arg is a struct cm_name_set. */
cm_define_fn cm_name_set_add;
bool cm_name_set_has(const struct cm_name_set *set, struct cm_str name);

/* The names as keys of a map. */
struct cm_map cm_graph_defined(struct cm_arena *arena, const struct cm_graph_proto *graph);
/* Those of its initializers alone, dense and sparse. */
void cm_graph_add_initializers(struct cm_arena *arena, const struct cm_graph_proto *graph,
                               struct cm_map *names);

/* Names that training assigns, by the bindings of all training info. */
struct cm_map cm_training_variables(struct cm_arena *arena, const struct cm_model_proto *model);
/* Is the tensor's name a key of the struct cm_map that arg is? */
bool cm_tensor_is_named(void *arg, const struct cm_tensor_proto *tensor);

#endif
