/* What a model does that ONNX does not allow and we run all the same. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MODELS_MODEL_NOTES_H
#define CM_MODELS_MODEL_NOTES_H

#include "base/diagnostics.h"
#include "onnx/messages.h"

/* Adds notes, a few at most: lists of nodes that are not in topological order, channel blocks of
 * unknown size. */
void cm_model_notes(const struct cm_model_proto *model, struct cm_arena *scratch,
                    struct cm_findings *out);

#endif
