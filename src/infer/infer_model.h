/* Types and shapes of all values of a model, written into the model: value_info of the graph, of
 * bodies of control flow, of functions and of training info. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_INFER_INFER_MODEL_H
#define CM_INFER_INFER_MODEL_H

#include "base/array.h"
#include "base/diagnostics.h"
#include "graph/import.h"
#include "onnx/model_file.h"

struct cm_infer_model_options {
    cm_import_fn *import;
    const struct cm_registry *registry;
    bool strict;      /* an operator that is not supported is a problem too */
    bool list_values; /* in the report */
    bool partial;     /* what could be inferred is written although there are problems */
    bool open_inputs; /* inputs with an initializer may have other values, from IR version 4 on */
};

struct cm_inferred_value {
    struct cm_str place; /* "" in the main graph */
    struct cm_str name, type;
    size_t unknown; /* dimensions; an unknown rank counts as one */
};

/* Values are results of nodes that have a name. */
struct cm_infer_report {
    size_t n_values, n_typed, n_complete; /* all; with a type; with no unknown dimension */
    size_t n_declared;                    /* whose type the file said whole */
    size_t dims, numbers, symbolic, unknown;
    CM_ARRAY(struct cm_inferred_value) values;
    struct cm_findings findings; /* problems, and as warnings what is merely not supported */
};

/* Changes the messages of file, or nothing where there are problems and partial is not set: then it
 * fails. The report lists all problems. report lives in arena. */
enum cm_status cm_infer_model(struct cm_arena *arena, struct cm_model_file *file,
                              const struct cm_infer_model_options *options,
                              struct cm_infer_report *report, struct cm_error *err) CM_MUST_CHECK;

#endif
