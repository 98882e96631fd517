/* Types as people write them. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/type_text.h"

#include "base/array.h"
#include "tensor/dtype.h"

/* Files nest types less deep than their readers allow; this bounds structs made otherwise. */
enum { DEPTH_MAX = 64 };

struct text {
    struct cm_arena *arena;
    struct cm_str comma; /* between the parts of a map */
    CM_ARRAY(char);
};

static void add(struct text *text, struct cm_str piece)
{
    CM_PUSH_ALL(text->arena, text, piece.data, piece.size);
}

static void add_dtype(struct text *text, int32_t code)
{
    if (cm_dtype_is_valid(code)) {
        add(text, cm_str(cm_dtype_name((enum cm_dtype)code)));
        return;
    }
    char number[32];
    snprintf(number, sizeof number, "type%d", code);
    add(text, cm_str(code ? number : "?"));
}

static void add_dim(struct text *text, const struct cm_dim_proto *dim)
{
    char number[32];

    if (cm_msg_has(&dim->msg, CM_DIM_VALUE) && dim->dim_value < 0) {
        add(text, CM_STR("?"));
    } else if (cm_msg_has(&dim->msg, CM_DIM_VALUE)) {
        snprintf(number, sizeof number, "%lld", (long long)dim->dim_value);
        add(text, cm_str(number));
    } else {
        add(text, dim->dim_param.size ? dim->dim_param : CM_STR("?"));
    }
}

static void add_tensor(struct text *text, const struct cm_tensor_type_proto *type)
{
    add_dtype(text, type->elem_type);
    if (type->shape && type->shape->dim.count == 0)
        return;
    add(text, CM_STR("["));
    for (size_t i = 0; type->shape && i < type->shape->dim.count; i++) {
        if (i > 0)
            add(text, CM_STR(","));
        add_dim(text, &type->shape->dim.items[i]);
    }
    add(text, CM_STR("]"));
}

static void add_type(struct text *text, const struct cm_type_proto *type, int depth)
{
    if (!type || depth == DEPTH_MAX) {
        add(text, CM_STR("?"));
    } else if (type->tensor_type) {
        add_tensor(text, type->tensor_type);
    } else if (type->sparse_tensor_type) {
        add(text, CM_STR("sparse_tensor("));
        add_tensor(text, type->sparse_tensor_type);
        add(text, CM_STR(")"));
    } else if (type->sequence_type || type->optional_type) {
        add(text, type->sequence_type ? CM_STR("seq(") : CM_STR("optional("));
        add_type(text, (type->sequence_type ? type->sequence_type : type->optional_type)->elem_type,
                 depth + 1);
        add(text, CM_STR(")"));
    } else if (type->map_type) {
        add(text, CM_STR("map("));
        add_dtype(text, type->map_type->key_type);
        add(text, text->comma);
        add_type(text, type->map_type->value_type, depth + 1);
        add(text, CM_STR(")"));
    } else if (type->opaque_type) {
        add(text, CM_STR("opaque("));
        add(text, type->opaque_type->domain);
        add(text, CM_STR(","));
        add(text, type->opaque_type->name);
        add(text, CM_STR(")"));
    } else {
        add(text, CM_STR("?"));
    }
}

struct cm_str cm_type_text(struct cm_arena *arena, const struct cm_type_proto *type,
                           const char *comma)
{
    struct text text = {.arena = arena, .comma = cm_str(comma)};

    add_type(&text, type, 0);
    *CM_PUSH(arena, &text) = 0;
    return (struct cm_str){text.items, text.count - 1};
}
