/* Declared shapes out of messages. */
// SPDX-License-Identifier: Apache-2.0
#include "infer/erase.h"

#include "onnx/descriptor.h"

static void erase_tensor(struct cm_tensor_type_proto *tensor, bool ranks)
{
    if (!tensor || !tensor->shape)
        return;
    if (ranks) {
        tensor->shape = NULL;
        cm_msg_clear(&tensor->msg, CM_TENSOR_TYPE_SHAPE);
        return;
    }
    for (size_t d = 0; d < tensor->shape->dim.count; d++) {
        struct cm_dim_proto *dim = &tensor->shape->dim.items[d];
        dim->dim_value = 0;
        dim->dim_param = CM_STR_NONE;
        cm_msg_clear(&dim->msg, CM_DIM_VALUE);
        cm_msg_clear(&dim->msg, CM_DIM_PARAM);
    }
}

static enum cm_status erase_type(void *ranks, const struct cm_message_info *info,
                                 struct cm_msg *msg)
{
    void *any = msg;
    struct cm_type_proto *type = any;

    if (info == &cm_type_info) {
        erase_tensor(type->tensor_type, *(const bool *)ranks);
        erase_tensor(type->sparse_tensor_type, *(const bool *)ranks);
    }
    return CM_OK;
}

/* Types that attributes hold are no declarations. */
static enum cm_status erase_info(void *ranks, const struct cm_message_info *info,
                                 struct cm_msg *msg)
{
    void *any = msg;
    struct cm_value_info_proto *value = any;

    return info == &cm_value_info_info && value->type
               ? cm_message_walk(&cm_type_info, value->type, erase_type, ranks)
               : CM_OK;
}

void cm_erase_shapes(struct cm_model_proto *model, bool ranks)
{
    (void)!cm_message_walk(&cm_model_info, model, erase_info,
                           &ranks); /* ends at the depth of files */
}
