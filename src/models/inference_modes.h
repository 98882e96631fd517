/* Nodes of an inference graph that are in training mode, as exports of a network in training mode
 * have them: Dropout draws masks, BatchNormalization normalizes with the statistics of the batch.
 * This module finds them and turns them off, in the file's own messages: the main graph, graphs
 * inside nodes, and functions. It knows a mode by the facts of the operator's version: an attribute
 * `training_mode` or `is_test`, an operand `training_mode`, or, in versions 7 and 9 of
 * BatchNormalization, results beside the first. A mode that the caller of the model feeds is left
 * to the caller. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MODELS_INFERENCE_MODES_H
#define CM_MODELS_INFERENCE_MODES_H

#include "base/array.h"
#include "onnx/model_file.h"

struct cm_modes {
    /* Nodes in training mode. */
    CM_ARRAY(const struct cm_node_proto *) nodes;
    /* What was changed, and what stays in training mode and why: sentences for the user. */
    CM_ARRAY(struct cm_str) changes;
};

/* Results live in arena. */
void cm_modes_find(struct cm_arena *arena, const struct cm_model_file *file, struct cm_modes *out);
/* Finds them and turns them off. Running statistics that somebody reads become the stored ones. A
 * model that carries its training is left as it is, since the training may compute with these
 * nodes. New messages live in arena. */
void cm_modes_turn_off(struct cm_arena *arena, struct cm_model_file *file, struct cm_modes *out);

#endif
