/* Training and differentiation as plain models, for other runtimes: the whole step of a model that
 * carries its training, its state as inputs and outputs; the gradient of one value by others. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_STEP_H
#define CM_TRAIN_STEP_H

#include "graph/graph.h"
#include "onnx/model_file.h"
#include "train/combine.h"

/* The state variables of a model: initializers that a binding names. */
enum cm_status cm_state_variables(struct cm_arena *arena, const struct cm_model_proto *model,
                                  struct cm_combine_variable **out, size_t *count,
                                  struct cm_error *err) CM_MUST_CHECK;

/* The graph of one entry, Gradient nodes replaced by what they stand for. Its outputs are the
 * entry's own, then the bound values. */
struct cm_step_graph {
    struct cm_graph *graph;
    cm_value *inputs; /* those that it reads: variables, then what is fed */
    size_t n_inputs;
    size_t *read; /* numbers of these variables */
    size_t n_read;
    size_t n_own;    /* outputs that are not bound */
    size_t *written; /* numbers of variables, one per further output */
    size_t n_written;
};

enum cm_status cm_step_graph(struct cm_arena *arena, struct cm_module *module,
                             const struct cm_model_proto *model, size_t entry,
                             const struct cm_combine_variable *variables, size_t n_variables,
                             struct cm_step_graph *out, struct cm_error *err) CM_MUST_CHECK;

struct cm_step_options {
    bool portable; /* neither ai.cameo nor ai.onnx.preview.* is left; what random nodes draw becomes
                      an input */
};

/* The step as a model, in arena: inputs are the state, then what is fed; outputs are the scalars of
 * the algorithm, then the new state, "W.next" for "W". */
enum cm_status cm_step_model(struct cm_arena *arena, const struct cm_model_file *file,
                             const struct cm_step_options *options, struct cm_model_file **out,
                             struct cm_error *err) CM_MUST_CHECK;

/* The model with the derivatives of the sum of value `of` by values `wrt` as further outputs,
 * "gradient.<name>"; initializers among wrt become inputs. */
enum cm_status cm_grad_model(struct cm_arena *arena, const struct cm_model_file *file,
                             struct cm_str of, const struct cm_str *wrt, size_t n_wrt,
                             const struct cm_step_options *options, struct cm_model_file **out,
                             struct cm_error *err) CM_MUST_CHECK;

#endif
