/* What both the parser and the printer of the text form know: words, and which fields stand in
 * notes and headers. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_ONNX_SYNTAX_NAMES_H
#define CM_ONNX_SYNTAX_NAMES_H

#include "onnx/messages.h"

/* Which fields a `<key: value, ..>` may name; bit f is field f of the message. */
#define CM_BIT(field) (UINT32_C(1) << (field))
enum {
    CM_NOTES_TENSOR = CM_BIT(CM_TENSOR_DOC_STRING) | CM_BIT(CM_TENSOR_METADATA_PROPS) |
                      CM_BIT(CM_TENSOR_SEGMENT) | CM_BIT(CM_TENSOR_EXTERNAL_DATA) |
                      CM_BIT(CM_TENSOR_DATA_LOCATION),
    CM_NOTES_VALUE = CM_BIT(CM_VALUE_INFO_DOC_STRING) | CM_BIT(CM_VALUE_INFO_METADATA_PROPS),
    CM_NOTES_ATTRIBUTE = CM_BIT(CM_ATTRIBUTE_DOC_STRING),
    CM_NOTES_NODE = CM_BIT(CM_NODE_DOC_STRING) | CM_BIT(CM_NODE_METADATA_PROPS) |
                    CM_BIT(CM_NODE_DEVICE_CONFIGURATIONS),
    CM_NOTES_GRAPH = CM_BIT(CM_GRAPH_DOC_STRING) | CM_BIT(CM_GRAPH_QUANTIZATION_ANNOTATION) |
                     CM_BIT(CM_GRAPH_METADATA_PROPS),
    CM_NOTES_FUNCTION = CM_BIT(CM_FUNCTION_DOMAIN) | CM_BIT(CM_FUNCTION_OVERLOAD) |
                        CM_BIT(CM_FUNCTION_OPSET_IMPORT) | CM_BIT(CM_FUNCTION_DOC_STRING) |
                        CM_BIT(CM_FUNCTION_METADATA_PROPS),
    CM_NOTES_MODEL = CM_BIT(CM_MODEL_IR_VERSION) | CM_BIT(CM_MODEL_OPSET_IMPORT) |
                     CM_BIT(CM_MODEL_PRODUCER_NAME) | CM_BIT(CM_MODEL_PRODUCER_VERSION) |
                     CM_BIT(CM_MODEL_DOMAIN) | CM_BIT(CM_MODEL_MODEL_VERSION) |
                     CM_BIT(CM_MODEL_DOC_STRING) | CM_BIT(CM_MODEL_METADATA_PROPS) |
                     CM_BIT(CM_MODEL_CONFIGURATION),
};

/* The fields of a tensor that may hold its values. */
enum {
    CM_TENSOR_VALUES = CM_BIT(CM_TENSOR_FLOAT_DATA) | CM_BIT(CM_TENSOR_INT32_DATA) |
                       CM_BIT(CM_TENSOR_STRING_DATA) | CM_BIT(CM_TENSOR_INT64_DATA) |
                       CM_BIT(CM_TENSOR_RAW_DATA) | CM_BIT(CM_TENSOR_DOUBLE_DATA) |
                       CM_BIT(CM_TENSOR_UINT64_DATA),
};

/* "float", "ints", ..; "undefined" for what is no type. */
const char *cm_attribute_type_name(enum cm_attribute_type type);
/* floats of float and so on, and back; undefined where there is none. */
enum cm_attribute_type cm_attribute_type_of_list(enum cm_attribute_type item);
enum cm_attribute_type cm_attribute_type_of_items(enum cm_attribute_type list);
/* The field of an attribute that holds a value of this type; -1 for undefined. */
int cm_attribute_value_field(enum cm_attribute_type type);
/* How many elements the dimensions of a tensor stand for; false: they are no shape. */
bool cm_syntax_element_count(const struct cm_tensor_proto *tensor, int64_t *out);
/* Does the text form read this identifier as a type or a number in some place? */
bool cm_syntax_is_reserved(struct cm_str word);

#endif
