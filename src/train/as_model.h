/* A working graph as a model file again, for other runtimes. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_AS_MODEL_H
#define CM_TRAIN_AS_MODEL_H

#include "graph/graph.h"
#include "onnx/model_file.h"

/* The model holds graph, which is changed, and what else file has; it lives in arena and reads the
 * bytes of file. portable: operators of ai.cameo and ai.onnx.preview.* are replaced by their
 * bodies, what random nodes draw becomes an input; what cannot be is refused by name, all at once.
 */
enum cm_status cm_graph_as_model(struct cm_graph *graph, const struct cm_model_file *file,
                                 bool portable, struct cm_arena *arena, struct cm_model_file **out,
                                 struct cm_error *err) CM_MUST_CHECK;

#endif
