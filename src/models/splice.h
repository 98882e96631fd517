/* The body of a function in the place of a call, in messages: no types are needed, so a model whose
 * operators nobody knows can be worked on too. Names of the body are made unique in the whole
 * model, graphs inside the body included; attributes that refer to the function's are those of the
 * call, or their defaults; what is absent in the call is absent in the body. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MODELS_SPLICE_H
#define CM_MODELS_SPLICE_H

#include "base/array.h"
#include "base/map.h"
#include "base/status.h"
#include "onnx/messages.h"

/* A list of nodes that grows. */
struct cm_node_list {
    CM_ARRAY(struct cm_node_proto);
};

struct cm_splicer {
    struct cm_arena *arena;
    struct cm_map values, nodes; /* names that are taken, each with the number to try next */
};

/* Takes the names of a whole model. */
void cm_splice_take_model(struct cm_splicer *s, const struct cm_model_proto *model);

/* Adds the nodes that the call stands for. */
enum cm_status cm_splice(struct cm_splicer *s, const struct cm_function_proto *function,
                         const struct cm_node_proto *call, struct cm_node_list *out,
                         struct cm_error *err) CM_MUST_CHECK;

#endif
