/* Training and differentiation as plain models, for other runtimes: the whole step of a model that
 * carries its training, its state as inputs and outputs; the gradient of one value by others. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_STEP_H
#define CM_TRAIN_STEP_H

#include "onnx/model_file.h"

struct cm_graph;

struct cm_step_options {
    bool portable; /* neither ai.cameo nor ai.onnx.preview.* is left; what random nodes draw becomes
                      an input */
};

/* The step as a model, in arena: inputs are the state, then what is fed; outputs are the scalars of
 * the algorithm, then the new state, "W.next" for "W". */
enum cm_status cm_step_model(struct cm_arena *arena, const struct cm_model_file *file,
                             const struct cm_step_options *options, struct cm_model_file **out,
                             struct cm_error *err) CM_MUST_CHECK;

/* The graph of that model, in a module of its own in arena. */
enum cm_status cm_step_graph(struct cm_arena *arena, const struct cm_model_file *file,
                             struct cm_graph **out, struct cm_error *err) CM_MUST_CHECK;

/* The model with the derivatives of the sum of value `of` by values `wrt` as further outputs,
 * "gradient.<name>"; initializers among wrt become inputs. */
enum cm_status cm_grad_model(struct cm_arena *arena, const struct cm_model_file *file,
                             struct cm_str of, const struct cm_str *wrt, size_t n_wrt,
                             const struct cm_step_options *options, struct cm_model_file **out,
                             struct cm_error *err) CM_MUST_CHECK;

#endif
