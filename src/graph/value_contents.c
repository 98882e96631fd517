/* The contents of initializers, loaded when somebody asks for them. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/graph.h"
#include "graph/module.h"
#include "onnx/tensor_data.h"
#include "tensor/layout.h"

static enum cm_status load_initializer(struct cm_module *module,
                                       const struct cm_tensor_proto *proto,
                                       const struct cm_tensor **out, struct cm_error *err)
{
    struct cm_tensor *tensor = CM_NEW(module->arena, struct cm_tensor);
    CM_TRY(cm_tensor_proto_load(proto, module->files, tensor, err));
    cm_tensor_defer(module->arena, tensor);
    *out = tensor;
    return CM_OK;
}

enum cm_status cm_value_constant(struct cm_module *module, cm_value value,
                                 const struct cm_tensor **out, struct cm_error *err)
{
    struct cm_value_def *def = cm_value_get(module, value);
    *out = def->is_state ? NULL : def->fact.constant;
    if (*out || !def->initializer || def->is_state || def->role != CM_ROLE_INITIALIZER)
        return CM_OK;
    CM_TRY(load_initializer(module, def->initializer, out, err));
    def->fact.constant = *out;
    return CM_OK;
}

enum { WORTH_LEAVING = 4096 }; /* bytes: less is copied sooner than thought about */

enum cm_status cm_value_constant_in_place(struct cm_module *module, cm_value value,
                                          const struct cm_tensor **out, struct cm_error *err)
{
    const struct cm_value_def *def = cm_value_get(module, value);
    uint64_t bytes;
    bool aligned;
    if (def->fact.constant || def->is_state || !def->initializer ||
        def->role != CM_ROLE_INITIALIZER || cm_tensor_proto_bytes(def->initializer, &bytes, NULL) ||
        bytes < WORTH_LEAVING)
        return cm_value_constant(module, value, out, err);
    struct cm_tensor *tensor = CM_NEW(module->arena, struct cm_tensor);
    CM_TRY(cm_tensor_proto_view(def->initializer, module->files, tensor, &aligned, err));
    if (aligned) {
        cm_tensor_drop(tensor);
        return cm_value_constant(module, value, out, err);
    }
    tensor->layout = &cm_unaligned;
    *out = tensor;
    return CM_OK;
}

enum cm_status cm_value_default(struct cm_module *module, cm_value value,
                                const struct cm_tensor **out, struct cm_error *err)
{
    const struct cm_value_def *def = cm_value_get(module, value);
    *out = NULL;
    return def->initializer ? load_initializer(module, def->initializer, out, err) : CM_OK;
}
