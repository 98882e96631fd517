/* The IR version that goes with the opset versions of a model. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MODELS_IR_VERSION_H
#define CM_MODELS_IR_VERSION_H

#include "onnx/messages.h"

/* Raises the IR version to what the opset of ai.onnx needs, or lowers it to what readers of that
 * opset know, as far as what the model holds allows. before: the imports that were changed. Where
 * it passes 4, initializers are taken from the list of inputs: until then all had to be there. */
enum cm_status cm_fit_ir_version(struct cm_arena *arena, struct cm_model_proto *model,
                                 const struct cm_opsets *before,
                                 struct cm_error *err) CM_MUST_CHECK;

#endif
