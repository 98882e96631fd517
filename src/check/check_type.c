/* Declared types: complete where they must be, made of known parts, and not in conflict with each
 * other. */
// SPDX-License-Identifier: Apache-2.0
#include "check/checker.h"
#include "tensor/dtype.h"

static void examine_tensor_type(struct cm_checker *c, enum cm_rule rule,
                                const struct cm_model_place *place,
                                const struct cm_tensor_type_proto *type, bool complete,
                                bool is_sparse)
{
    if (complete && !cm_msg_has(&type->msg, CM_TENSOR_TYPE_ELEM_TYPE))
        cm_report(c, rule, place, "its type has no element type");
    else if (!cm_dtype_is_valid(type->elem_type))
        cm_report(c, rule == CM_RULE_CK11 ? CM_RULE_ST9 : rule, place,
                  "its element type is %d, which is not known", (int)type->elem_type);
    if (complete && !type->shape)
        cm_report_accepted(c, rule, place, !is_sparse, "its type has no shape");
    cm_report_newer_dtype(c, place, type->elem_type);
}

static void examine_map_type(struct cm_checker *c, enum cm_rule rule,
                             const struct cm_model_place *place,
                             const struct cm_map_type_proto *type, bool complete)
{
    if (complete && !cm_msg_has(&type->msg, CM_MAP_TYPE_KEY_TYPE))
        cm_report(c, rule, place, "its map type has no key type");
    else if (!cm_dtype_is_valid(type->key_type))
        cm_report(c, CM_RULE_ST9, place, "its key type is %d, which is not known",
                  (int)type->key_type);
    if (complete && !type->value_type)
        cm_report(c, rule, place, "its map type has no value type");
    if (type->value_type)
        cm_examine_type(c, CM_RULE_ST9, place, type->value_type, false);
}

static void examine_wrapped(struct cm_checker *c, enum cm_rule rule,
                            const struct cm_model_place *place,
                            const struct cm_wrap_type_proto *type, bool complete)
{
    if (complete && !type->elem_type)
        cm_report(c, rule, place, "its type has no element type");
    if (type->elem_type)
        cm_examine_type(c, CM_RULE_ST9, place, type->elem_type, false);
}

void cm_examine_type(struct cm_checker *c, enum cm_rule rule, const struct cm_model_place *place,
                     const struct cm_type_proto *type, bool complete)
{
    if (type->tensor_type) {
        examine_tensor_type(c, rule, place, type->tensor_type, complete, false);
    } else if (type->sparse_tensor_type) {
        cm_report_newer(c, place, 8, "sparse tensor types");
        examine_tensor_type(c, rule, place, type->sparse_tensor_type, complete, true);
    } else if (type->sequence_type) {
        examine_wrapped(c, rule, place, type->sequence_type, complete);
    } else if (type->optional_type) {
        cm_report_newer(c, place, 8, "optional types");
        examine_wrapped(c, rule, place, type->optional_type, complete);
    } else if (type->map_type) {
        examine_map_type(c, rule, place, type->map_type, complete);
    } else if (type->opaque_type) {
        if (complete && !cm_msg_has(&type->opaque_type->msg, CM_OPAQUE_TYPE_NAME))
            cm_report(c, rule, place, "its opaque type has no name");
    } else if (complete) {
        cm_report(c, rule, place, "its type is neither a tensor nor any other kind");
    }
}

void cm_examine_value_info(struct cm_checker *c, const struct cm_model_place *place,
                           const struct cm_value_info_proto *value, bool complete)
{
    if (!value->name.size)
        cm_report(c, CM_RULE_CK11, place, "has no name");
    cm_report_repeated_keys(c, CM_RULE_ST5, place, &value->metadata_props);
    if (value->metadata_props.count)
        cm_report_newer(c, place, 10, "metadata of parts of a model");
    if (value->type)
        cm_examine_type(c, complete ? CM_RULE_CK11 : CM_RULE_ST9, place, value->type, complete);
    else if (complete)
        cm_report(c, CM_RULE_CK11, place, "has no type");
}

bool cm_type_conflicts_with_tensor(const struct cm_type_proto *type, int32_t elem_type,
                                   const struct cm_int64s *dims, bool sparse, const char **why)
{
    const struct cm_tensor_type_proto *tensor =
        sparse && type->sparse_tensor_type ? type->sparse_tensor_type : type->tensor_type;

    *why = "kind of type";
    if (!tensor)
        return type->sequence_type || type->map_type || type->optional_type || type->opaque_type ||
               type->sparse_tensor_type;
    *why = "element type";
    if (tensor->elem_type && tensor->elem_type != elem_type)
        return true;
    *why = "rank";
    if (!tensor->shape)
        return false;
    if (tensor->shape->dim.count != dims->count)
        return true;
    *why = "size";
    for (size_t i = 0; i < dims->count; i++) {
        const struct cm_dim_proto *dim = &tensor->shape->dim.items[i];

        if (cm_msg_has(&dim->msg, CM_DIM_VALUE) && dim->dim_value != dims->items[i])
            return true;
    }
    return false;
}

static bool tensor_types_conflict(const struct cm_tensor_type_proto *a,
                                  const struct cm_tensor_type_proto *b, const char **why)
{
    *why = "element type";
    if (a->elem_type && b->elem_type && a->elem_type != b->elem_type)
        return true;
    if (!a->shape || !b->shape)
        return false;
    *why = "rank";
    if (a->shape->dim.count != b->shape->dim.count)
        return true;
    *why = "size";
    for (size_t i = 0; i < a->shape->dim.count; i++) {
        const struct cm_dim_proto *x = &a->shape->dim.items[i];
        const struct cm_dim_proto *y = &b->shape->dim.items[i];

        if (cm_msg_has(&x->msg, CM_DIM_VALUE) && cm_msg_has(&y->msg, CM_DIM_VALUE) &&
            x->dim_value != y->dim_value)
            return true;
    }
    return false;
}

/* Looks at tensors; of the other kinds only whether they are the same kind. */
bool cm_types_conflict(const struct cm_type_proto *a, const struct cm_type_proto *b,
                       const char **why)
{
    if (!a || !b)
        return false;
    if (a->tensor_type && b->tensor_type)
        return tensor_types_conflict(a->tensor_type, b->tensor_type, why);
    if (a->sparse_tensor_type && b->sparse_tensor_type)
        return tensor_types_conflict(a->sparse_tensor_type, b->sparse_tensor_type, why);
    *why = "kind of type";
    const uint32_t kinds = ~(UINT32_C(1) << CM_TYPE_DENOTATION);
    return (a->msg.has & kinds) && (b->msg.has & kinds) &&
           (a->msg.has & kinds) != (b->msg.has & kinds);
}
