/* Attributes: one value, of the type they say, and what that value holds. */
// SPDX-License-Identifier: Apache-2.0
#include "check/checker.h"

/* Which field of the message holds a value of which type. Lists count when they are not empty, the
 * others when present. */
static const struct value_field {
    int field;
    int32_t type;
    const char *name;
} value_fields[] = {
    {CM_ATTRIBUTE_F, CM_ATTR_FLOAT, "f"},
    {CM_ATTRIBUTE_I, CM_ATTR_INT, "i"},
    {CM_ATTRIBUTE_S, CM_ATTR_STRING, "s"},
    {CM_ATTRIBUTE_T, CM_ATTR_TENSOR, "t"},
    {CM_ATTRIBUTE_G, CM_ATTR_GRAPH, "g"},
    {CM_ATTRIBUTE_TP, CM_ATTR_TYPE_PROTO, "tp"},
    {CM_ATTRIBUTE_SPARSE_TENSOR, CM_ATTR_SPARSE_TENSOR, "sparse_tensor"},
    {CM_ATTRIBUTE_FLOATS, CM_ATTR_FLOATS, "floats"},
    {CM_ATTRIBUTE_INTS, CM_ATTR_INTS, "ints"},
    {CM_ATTRIBUTE_STRINGS, CM_ATTR_STRINGS, "strings"},
    {CM_ATTRIBUTE_TENSORS, CM_ATTR_TENSORS, "tensors"},
    {CM_ATTRIBUTE_GRAPHS, CM_ATTR_GRAPHS, "graphs"},
    {CM_ATTRIBUTE_TYPE_PROTOS, CM_ATTR_TYPE_PROTOS, "type_protos"},
    {CM_ATTRIBUTE_SPARSE_TENSORS, CM_ATTR_SPARSE_TENSORS, "sparse_tensors"},
};

static bool is_used(const struct cm_attribute_proto *attribute, int field)
{
    switch (field) {
    case CM_ATTRIBUTE_FLOATS:
        return attribute->floats.count > 0;
    case CM_ATTRIBUTE_INTS:
        return attribute->ints.count > 0;
    case CM_ATTRIBUTE_STRINGS:
        return attribute->strings.count > 0;
    case CM_ATTRIBUTE_TENSORS:
        return attribute->tensors.count > 0;
    case CM_ATTRIBUTE_GRAPHS:
        return attribute->graphs.count > 0;
    case CM_ATTRIBUTE_TYPE_PROTOS:
        return attribute->type_protos.count > 0;
    case CM_ATTRIBUTE_SPARSE_TENSORS:
        return attribute->sparse_tensors.count > 0;
    default:
        return cm_msg_has(&attribute->msg, field);
    }
}

/* Returns how many value fields are set. */
static int examine_fields(struct cm_checker *c, const struct cm_model_place *here,
                          const struct cm_attribute_proto *attribute)
{
    const bool typed = cm_msg_has(&attribute->msg, CM_ATTRIBUTE_TYPE);
    int used = 0;

    for (size_t i = 0; i < CM_COUNT(value_fields); i++) {
        if (!is_used(attribute, value_fields[i].field))
            continue;
        used++;
        if (typed && attribute->type != value_fields[i].type)
            cm_report(c, CM_RULE_CK41, here, "its type is %d, but it has a value in field '%s'",
                      (int)attribute->type, value_fields[i].name);
    }
    if (used > 1)
        cm_report(c, CM_RULE_CK41, here, "has values in %d fields", used);
    return used;
}

static void examine_reference(struct cm_checker *c, const struct cm_model_place *here,
                              const struct cm_attribute_proto *attribute)
{
    if (!c->function) {
        cm_report(c, CM_RULE_ST11, here, "refers to '%.*s', but is not inside a function",
                  CM_STR_FMT(attribute->ref_attr_name));
        return;
    }
    const uint64_t found = cm_map_get(c->attributes, attribute->ref_attr_name, 0);
    if (found >= 2 && c->function->attribute_proto.items[found - 2].type != attribute->type)
        cm_report(c, CM_RULE_ST11, here, "refers to '%.*s', which has another type",
                  CM_STR_FMT(attribute->ref_attr_name));
    else if (!found)
        cm_report(c, CM_RULE_ST11, here, "refers to '%.*s', which the function does not declare",
                  CM_STR_FMT(attribute->ref_attr_name));
}

static void examine_texts(struct cm_checker *c, const struct cm_model_place *here,
                          const struct cm_attribute_proto *attribute)
{
    bool good = cm_str_is_utf8(attribute->s);

    for (size_t i = 0; i < attribute->strings.count; i++)
        good = good && cm_str_is_utf8(attribute->strings.items[i]);
    if (!good)
        cm_report(c, CM_RULE_ST12, here, "its text is not UTF-8");
    if (attribute->type <= CM_ATTR_UNDEFINED || attribute->type >= CM_ATTR_TYPE_COUNT) {
        if (cm_msg_has(&attribute->msg, CM_ATTRIBUTE_TYPE))
            cm_report(c, CM_RULE_ST12, here, "its type is %d, which is not known",
                      (int)attribute->type);
    }
}

static void examine_parts(struct cm_checker *c, const struct cm_model_place *here,
                          const struct cm_attribute_proto *attribute)
{
    if (attribute->t)
        cm_examine_tensor(c, here, attribute->t);
    if (attribute->sparse_tensor)
        cm_examine_sparse(c, here, attribute->sparse_tensor);
    if (attribute->g)
        cm_examine_graph(c, here, CM_NESTED_GRAPH, attribute->g);
    if (attribute->tp)
        cm_examine_type(c, CM_RULE_ST12, here, attribute->tp, false);
    for (size_t i = 0; i < attribute->type_protos.count; i++) {
        const struct cm_model_place part = CM_PLACE(here, ".type_protos", CM_STR_NONE, i);
        cm_examine_type(c, CM_RULE_ST12, &part, &attribute->type_protos.items[i], false);
    }
    for (size_t i = 0; i < attribute->tensors.count; i++) {
        const struct cm_model_place part = CM_PLACE(here, ".tensors", CM_STR_NONE, i);
        cm_examine_tensor(c, &part, &attribute->tensors.items[i]);
    }
    for (size_t i = 0; i < attribute->sparse_tensors.count; i++) {
        const struct cm_model_place part = CM_PLACE(here, ".sparse_tensors", CM_STR_NONE, i);
        cm_examine_sparse(c, &part, &attribute->sparse_tensors.items[i]);
    }
    for (size_t i = 0; i < attribute->graphs.count; i++) {
        const struct cm_model_place part = CM_PLACE(here, ".graphs", CM_STR_NONE, i);
        cm_examine_graph(c, &part, CM_NESTED_GRAPH, &attribute->graphs.items[i]);
    }
}

void cm_examine_attribute(struct cm_checker *c, const struct cm_model_place *up, size_t index,
                          const struct cm_attribute_proto *attribute)
{
    const struct cm_model_place here = CM_PLACE(up, "attribute", attribute->name, index);

    if (!attribute->name.size)
        cm_report(c, CM_RULE_CK40, &here, "has no name");
    if (c->ir_version >= 2 && !cm_msg_has(&attribute->msg, CM_ATTRIBUTE_TYPE))
        cm_report(c, CM_RULE_CK40, &here, "has no type");
    const int used = examine_fields(c, &here, attribute);
    /* ONNX's checker does not look at references in the main graph; ST11 does. */
    const bool nested = c->function || c->scope->depth > 1;
    if (nested && cm_msg_has(&attribute->msg, CM_ATTRIBUTE_REF_ATTR_NAME) && used)
        cm_report(c, CM_RULE_CK42, &here, "refers to '%.*s' and has a value as well",
                  CM_STR_FMT(attribute->ref_attr_name));
    if (attribute->ref_attr_name.size)
        examine_reference(c, &here, attribute);
    examine_texts(c, &here, attribute);
    examine_parts(c, &here, attribute);
}
