/* What the files of whole-model inference share: what is known, and writing it into messages. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_INFER_INFER_WRITE_H
#define CM_INFER_INFER_WRITE_H

#include "base/array.h"
#include "infer/infer_model.h"

struct cm_noted_value {
    cm_value value;
    size_t next; /* one past the place of an earlier one of the same name; 0: none */
};

struct cm_inferring {
    struct cm_arena *arena, *scratch; /* of the messages; of all else */
    struct cm_model_file *file;
    const struct cm_infer_model_options *options;
    struct cm_infer_report *report;
    struct cm_module *module;
    struct cm_map variables; /* names that bindings of training info assign */
    struct cm_map names;     /* address of the graph's or function's message, then the name */
    struct cm_map live;      /* addresses of graphs */
    CM_ARRAY(struct cm_noted_value) noted;
};

/* What holds of a name wherever its graph or function was built; NULL: nothing. */
const struct cm_type *cm_inferring_type(struct cm_inferring *i, const void *owner,
                                        struct cm_str name);

/* Writes the types of a graph's values, and of bodies in it. */
void cm_infer_write_graph(struct cm_inferring *i, struct cm_graph_proto *graph, struct cm_str place,
                          int depth);
/* The same for a function; without types, only bodies in it are written. */
void cm_infer_write_function(struct cm_inferring *i, struct cm_function_proto *function,
                             bool types);

#endif
