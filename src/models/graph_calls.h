/* Training info of ONNX 1.7, where an algorithm is complete and calls the inference graph by name
 * (GraphCall), brought to the form of 1.8 and later, where it is a part that the inference graph
 * completes.
 *
 * A call whose arguments are inputs of the algorithm becomes the inference graph itself, whose
 * inputs are then fed in their place. Every other call becomes a copy of its nodes. Names that
 * mean one thing in the algorithm and another in the inference graph are changed; those of
 * initializers, which are what is trained, never are. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MODELS_GRAPH_CALLS_H
#define CM_MODELS_GRAPH_CALLS_H

#include "onnx/messages.h"

/* Does the algorithm of an entry call the inference graph? */
bool cm_calls_graph(const struct cm_model_proto *model);

/* *out, which may be *model, is the model with such entries in today's form, the rest shared:
 * initializers of algorithms are those of model, so that values which are trained go there.
 * converted, unless NULL, receives how many entries there were. Everything lives in arena, and in
 * model. */
enum cm_status cm_edit_graph_calls(const struct cm_model_proto *model, struct cm_arena *arena,
                                   struct cm_model_proto *out, size_t *converted,
                                   struct cm_error *err) CM_MUST_CHECK;

#endif
