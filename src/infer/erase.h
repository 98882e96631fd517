/* Forgetting what a model declares of shapes, so that only what is computed counts. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_INFER_ERASE_H
#define CM_INFER_ERASE_H

#include "onnx/messages.h"

/* Of inputs, outputs and value_info of every graph and function: their dimensions become unknown,
 * or their ranks too. Element types stay. */
void cm_erase_shapes(struct cm_model_proto *model, bool ranks);

#endif
