/* A model in double precision: for judging gradients, where float has too few digits. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_WIDEN_H
#define CM_TRAIN_WIDEN_H

#include "onnx/model_file.h"

/* A copy of the model whose floats of every width are doubles: weights, constants, inputs, what
 * casts and fills name. It lives in arena and shares the rest with file. */
enum cm_status cm_widen(struct cm_arena *arena, const struct cm_model_file *file,
                        struct cm_model_proto *out, struct cm_error *err) CM_MUST_CHECK;

#endif
