/* A graph in double precision: for judging gradients, where float has too few digits. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_WIDEN_H
#define CM_TRAIN_WIDEN_H

#include "graph/graph.h"

/* A copy of a closed graph, in its module (made with is_widened), whose floats of every width are
 * doubles: inputs, constants, what casts and fills name. Defaults of inputs are as they were. Calls
 * of functions must have been expanded. */
enum cm_status cm_graph_widen(const struct cm_graph *graph, struct cm_graph **out,
                              struct cm_error *err) CM_MUST_CHECK;
/* A copy of a tensor in doubles, for the caller to drop. */
enum cm_status cm_tensor_widen(const struct cm_tensor *narrow, struct cm_tensor *out,
                               struct cm_error *err) CM_MUST_CHECK;

#endif
