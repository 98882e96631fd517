/* Attribute types by name, and the reserved words of the text form. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/syntax_names.h"

#include "base/number.h"
#include "onnx/syntax_lex.h"
#include "tensor/dtype.h"

static const char *const type_names[CM_ATTR_TYPE_COUNT] = {
    [CM_ATTR_UNDEFINED] = "undefined",
    [CM_ATTR_FLOAT] = "float",
    [CM_ATTR_INT] = "int",
    [CM_ATTR_STRING] = "string",
    [CM_ATTR_TENSOR] = "tensor",
    [CM_ATTR_GRAPH] = "graph",
    [CM_ATTR_FLOATS] = "floats",
    [CM_ATTR_INTS] = "ints",
    [CM_ATTR_STRINGS] = "strings",
    [CM_ATTR_TENSORS] = "tensors",
    [CM_ATTR_GRAPHS] = "graphs",
    [CM_ATTR_SPARSE_TENSOR] = "sparse_tensor",
    [CM_ATTR_SPARSE_TENSORS] = "sparse_tensors",
    [CM_ATTR_TYPE_PROTO] = "type_proto",
    [CM_ATTR_TYPE_PROTOS] = "type_protos",
};

static const enum cm_attribute_type list_types[CM_ATTR_TYPE_COUNT] = {
    [CM_ATTR_FLOAT] = CM_ATTR_FLOATS,           [CM_ATTR_INT] = CM_ATTR_INTS,
    [CM_ATTR_STRING] = CM_ATTR_STRINGS,         [CM_ATTR_TENSOR] = CM_ATTR_TENSORS,
    [CM_ATTR_GRAPH] = CM_ATTR_GRAPHS,           [CM_ATTR_SPARSE_TENSOR] = CM_ATTR_SPARSE_TENSORS,
    [CM_ATTR_TYPE_PROTO] = CM_ATTR_TYPE_PROTOS,
};

static const int value_fields[CM_ATTR_TYPE_COUNT] = {
    [CM_ATTR_UNDEFINED] = -1,
    [CM_ATTR_FLOAT] = CM_ATTRIBUTE_F,
    [CM_ATTR_INT] = CM_ATTRIBUTE_I,
    [CM_ATTR_STRING] = CM_ATTRIBUTE_S,
    [CM_ATTR_TENSOR] = CM_ATTRIBUTE_T,
    [CM_ATTR_GRAPH] = CM_ATTRIBUTE_G,
    [CM_ATTR_FLOATS] = CM_ATTRIBUTE_FLOATS,
    [CM_ATTR_INTS] = CM_ATTRIBUTE_INTS,
    [CM_ATTR_STRINGS] = CM_ATTRIBUTE_STRINGS,
    [CM_ATTR_TENSORS] = CM_ATTRIBUTE_TENSORS,
    [CM_ATTR_GRAPHS] = CM_ATTRIBUTE_GRAPHS,
    [CM_ATTR_SPARSE_TENSOR] = CM_ATTRIBUTE_SPARSE_TENSOR,
    [CM_ATTR_SPARSE_TENSORS] = CM_ATTRIBUTE_SPARSE_TENSORS,
    [CM_ATTR_TYPE_PROTO] = CM_ATTRIBUTE_TP,
    [CM_ATTR_TYPE_PROTOS] = CM_ATTRIBUTE_TYPE_PROTOS,
};

const char *cm_attribute_type_name(enum cm_attribute_type type)
{
    return type_names[(unsigned)type < CM_ATTR_TYPE_COUNT ? type : CM_ATTR_UNDEFINED];
}

enum cm_attribute_type cm_attribute_type_of_list(enum cm_attribute_type item)
{
    return (unsigned)item < CM_ATTR_TYPE_COUNT ? list_types[item] : CM_ATTR_UNDEFINED;
}

enum cm_attribute_type cm_attribute_type_of_items(enum cm_attribute_type list)
{
    for (int i = 1; i < CM_ATTR_TYPE_COUNT; i++)
        if (list != CM_ATTR_UNDEFINED && list_types[i] == list)
            return (enum cm_attribute_type)i;
    return CM_ATTR_UNDEFINED;
}

int cm_attribute_value_field(enum cm_attribute_type type)
{
    return value_fields[type];
}

bool cm_syntax_element_count(const struct cm_tensor_proto *tensor, int64_t *out)
{
    *out = 1;
    for (size_t i = 0; i < tensor->dims.count; i++)
        if (tensor->dims.items[i] < 0 || !cm_dim_mul(*out, tensor->dims.items[i], out))
            return false;
    return true;
}

bool cm_syntax_is_reserved(struct cm_str word)
{
    static const char *const words[] = {"seq",    "map",       "optional", "sparse_tensor",
                                        "opaque", "undefined", "untyped"};
    enum cm_dtype type;

    return cm_dtype_parse(word, &type) || CM_STR_AMONG(word, words) || cm_lex_is_number_word(word);
}
