/* ONNX messages as plain structs, one per message of the proto schema, with ONNX's own field names.
 *
 * Strings and bytes are views into the file (or into the arena for what we made); tensor contents
 * stay where they are in the file until somebody asks (onnx/tensor_data.h). Every struct begins
 * with a struct cm_msg that remembers its bytes in the file, which fields are present, and which
 * were changed since: what is clean is written back byte for byte, unknown fields included
 * (onnx/encode.h).
 *
 * To change a message, set the member and call cm_msg_set (or cm_msg_clear) with the field; to add
 * to a list use CM_LIST_ADD and then cm_msg_set for the list. What is inside a changed child needs
 * no mark on its parents. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_ONNX_MESSAGES_H
#define CM_ONNX_MESSAGES_H

#include "base/arena.h"
#include "base/text.h"

struct cm_msg {
    struct cm_str
        source;   /* the message's bytes, without its own tag and length; empty when made by us */
    uint32_t has; /* bit f: field f (an index of the enums below) is present */
    uint32_t changed; /* bit f: field f no longer is what source says */
};

static inline bool cm_msg_has(const struct cm_msg *msg, int field)
{
    return msg->has >> field & 1;
}

static inline void cm_msg_set(struct cm_msg *msg, int field)
{
    msg->has |= UINT32_C(1) << field;
    msg->changed |= UINT32_C(1) << field;
}

static inline void cm_msg_clear(struct cm_msg *msg, int field)
{
    msg->has &= ~(UINT32_C(1) << field);
    msg->changed |= UINT32_C(1) << field;
}

/* Lists are exact: count items, no spare room. Adding copies the list, so it moves. */
#define CM_LIST(type)                                                                              \
    struct {                                                                                       \
        type *items;                                                                               \
        size_t count;                                                                              \
    }

/* A pointer to a new zeroed item at the end of list. */
#define CM_LIST_ADD(arena, list)                                                                   \
    ((list)->items =                                                                               \
         cm_list_extended((arena), (list)->items, (list)->count, sizeof *(list)->items),           \
     &(list)->items[(list)->count++])

void *cm_list_extended(struct cm_arena *arena, const void *items, size_t count, size_t size);
/* The same with room for more zeroed items at once; for lists that grow by many. The caller sets
 * the count. */
void *cm_list_extended_by(struct cm_arena *arena, const void *items, size_t count, size_t more,
                          size_t size);

struct cm_int64s {
    int64_t *items;
    size_t count;
};

struct cm_floats {
    float *items;
    size_t count;
};

struct cm_strs {
    struct cm_str *items;
    size_t count;
};

/* A repeated number field left as it is on the wire, packed: 4 or 8 bytes each, or varints. */
struct cm_packed {
    const uint8_t *data;
    size_t size;
};

struct cm_graph_proto;
struct cm_type_proto;

struct cm_entry_proto { /* StringStringEntryProto */
    struct cm_msg msg;
    struct cm_str key, value;
};
enum { CM_ENTRY_KEY, CM_ENTRY_VALUE };

struct cm_entries {
    struct cm_entry_proto *items;
    size_t count;
};

struct cm_opset_proto { /* OperatorSetIdProto */
    struct cm_msg msg;
    struct cm_str domain;
    int64_t version;
};
enum { CM_OPSET_DOMAIN, CM_OPSET_VERSION };

struct cm_opsets {
    struct cm_opset_proto *items;
    size_t count;
};

struct cm_segment_proto { /* TensorProto.Segment */
    struct cm_msg msg;
    int64_t begin, end;
};
enum { CM_SEGMENT_BEGIN, CM_SEGMENT_END };

struct cm_tensor_proto {
    struct cm_msg msg;
    struct cm_int64s dims;
    int32_t data_type;
    struct cm_segment_proto *segment;
    struct cm_packed float_data, int32_data;
    struct cm_strs string_data;
    struct cm_packed int64_data;
    struct cm_str name;
    struct cm_str raw_data;
    struct cm_packed double_data, uint64_data;
    struct cm_str doc_string;
    struct cm_entries external_data;
    int32_t data_location; /* 1: external */
    struct cm_entries metadata_props;
    const struct cm_contents *later; /* no field of the file: what raw_data will hold, of which only
                                        the size is there; see onnx/tensor_data.h */
};
enum {
    CM_TENSOR_DIMS,
    CM_TENSOR_DATA_TYPE,
    CM_TENSOR_SEGMENT,
    CM_TENSOR_FLOAT_DATA,
    CM_TENSOR_INT32_DATA,
    CM_TENSOR_STRING_DATA,
    CM_TENSOR_INT64_DATA,
    CM_TENSOR_NAME,
    CM_TENSOR_RAW_DATA,
    CM_TENSOR_DOUBLE_DATA,
    CM_TENSOR_UINT64_DATA,
    CM_TENSOR_DOC_STRING,
    CM_TENSOR_EXTERNAL_DATA,
    CM_TENSOR_DATA_LOCATION,
    CM_TENSOR_METADATA_PROPS,
};
enum { CM_LOCATION_DEFAULT = 0, CM_LOCATION_EXTERNAL = 1 };

struct cm_sparse_proto { /* SparseTensorProto */
    struct cm_msg msg;
    struct cm_tensor_proto *values, *indices;
    struct cm_int64s dims;
};
enum { CM_SPARSE_VALUES, CM_SPARSE_INDICES, CM_SPARSE_DIMS };

struct cm_dim_proto { /* TensorShapeProto.Dimension */
    struct cm_msg msg;
    int64_t dim_value;
    struct cm_str dim_param;
    struct cm_str denotation;
};
enum { CM_DIM_VALUE, CM_DIM_PARAM, CM_DIM_DENOTATION };

struct cm_shape_proto { /* TensorShapeProto */
    struct cm_msg msg;
    CM_LIST(struct cm_dim_proto) dim;
};
enum { CM_SHAPE_DIM };

struct cm_tensor_type_proto { /* TypeProto.Tensor and TypeProto.SparseTensor */
    struct cm_msg msg;
    int32_t elem_type;
    struct cm_shape_proto *shape;
};
enum { CM_TENSOR_TYPE_ELEM_TYPE, CM_TENSOR_TYPE_SHAPE };

struct cm_wrap_type_proto { /* TypeProto.Sequence and TypeProto.Optional */
    struct cm_msg msg;
    struct cm_type_proto *elem_type;
};
enum { CM_WRAP_TYPE_ELEM_TYPE };

struct cm_map_type_proto { /* TypeProto.Map */
    struct cm_msg msg;
    int32_t key_type;
    struct cm_type_proto *value_type;
};
enum { CM_MAP_TYPE_KEY_TYPE, CM_MAP_TYPE_VALUE_TYPE };

struct cm_opaque_type_proto { /* TypeProto.Opaque */
    struct cm_msg msg;
    struct cm_str domain, name;
};
enum { CM_OPAQUE_TYPE_DOMAIN, CM_OPAQUE_TYPE_NAME };

struct cm_type_proto { /* at most one of the kinds is present */
    struct cm_msg msg;
    struct cm_tensor_type_proto *tensor_type;
    struct cm_wrap_type_proto *sequence_type;
    struct cm_map_type_proto *map_type;
    struct cm_str denotation;
    struct cm_opaque_type_proto *opaque_type;
    struct cm_tensor_type_proto *sparse_tensor_type;
    struct cm_wrap_type_proto *optional_type;
};
enum {
    CM_TYPE_TENSOR_TYPE,
    CM_TYPE_SEQUENCE_TYPE,
    CM_TYPE_MAP_TYPE,
    CM_TYPE_DENOTATION,
    CM_TYPE_OPAQUE_TYPE,
    CM_TYPE_SPARSE_TENSOR_TYPE,
    CM_TYPE_OPTIONAL_TYPE,
};

struct cm_value_info_proto {
    struct cm_msg msg;
    struct cm_str name;
    struct cm_type_proto *type;
    struct cm_str doc_string;
    struct cm_entries metadata_props;
};
enum {
    CM_VALUE_INFO_NAME,
    CM_VALUE_INFO_TYPE,
    CM_VALUE_INFO_DOC_STRING,
    CM_VALUE_INFO_METADATA_PROPS
};

struct cm_value_infos {
    struct cm_value_info_proto *items;
    size_t count;
};

/* AttributeProto.AttributeType */
enum cm_attribute_type {
    CM_ATTR_UNDEFINED = 0,
    CM_ATTR_FLOAT = 1,
    CM_ATTR_INT = 2,
    CM_ATTR_STRING = 3,
    CM_ATTR_TENSOR = 4,
    CM_ATTR_GRAPH = 5,
    CM_ATTR_FLOATS = 6,
    CM_ATTR_INTS = 7,
    CM_ATTR_STRINGS = 8,
    CM_ATTR_TENSORS = 9,
    CM_ATTR_GRAPHS = 10,
    CM_ATTR_SPARSE_TENSOR = 11,
    CM_ATTR_SPARSE_TENSORS = 12,
    CM_ATTR_TYPE_PROTO = 13,
    CM_ATTR_TYPE_PROTOS = 14,
    CM_ATTR_TYPE_COUNT
};

struct cm_attribute_proto {
    struct cm_msg msg;
    struct cm_str name;
    float f;
    int32_t type; /* enum cm_attribute_type, but from the file: any number */
    int64_t i;
    struct cm_str s;
    struct cm_tensor_proto *t;
    struct cm_graph_proto *g;
    struct cm_floats floats;
    struct cm_int64s ints;
    struct cm_strs strings;
    CM_LIST(struct cm_tensor_proto) tensors;
    CM_LIST(struct cm_graph_proto) graphs;
    struct cm_str doc_string;
    struct cm_type_proto *tp;
    CM_LIST(struct cm_type_proto) type_protos;
    struct cm_str ref_attr_name;
    struct cm_sparse_proto *sparse_tensor;
    CM_LIST(struct cm_sparse_proto) sparse_tensors;
};
enum {
    CM_ATTRIBUTE_NAME,
    CM_ATTRIBUTE_F,
    CM_ATTRIBUTE_I,
    CM_ATTRIBUTE_S,
    CM_ATTRIBUTE_T,
    CM_ATTRIBUTE_G,
    CM_ATTRIBUTE_FLOATS,
    CM_ATTRIBUTE_INTS,
    CM_ATTRIBUTE_STRINGS,
    CM_ATTRIBUTE_TENSORS,
    CM_ATTRIBUTE_GRAPHS,
    CM_ATTRIBUTE_DOC_STRING,
    CM_ATTRIBUTE_TP,
    CM_ATTRIBUTE_TYPE_PROTOS,
    CM_ATTRIBUTE_TYPE,
    CM_ATTRIBUTE_REF_ATTR_NAME,
    CM_ATTRIBUTE_SPARSE_TENSOR,
    CM_ATTRIBUTE_SPARSE_TENSORS,
};

struct cm_simple_sharded_dim_proto {
    struct cm_msg msg;
    int64_t dim_value;
    struct cm_str dim_param;
    int64_t num_shards;
};
enum { CM_SIMPLE_SHARDED_DIM_VALUE, CM_SIMPLE_SHARDED_DIM_PARAM, CM_SIMPLE_SHARDED_NUM_SHARDS };

struct cm_sharded_dim_proto {
    struct cm_msg msg;
    int64_t axis;
    CM_LIST(struct cm_simple_sharded_dim_proto) simple_sharding;
};
enum { CM_SHARDED_DIM_AXIS, CM_SHARDED_DIM_SIMPLE_SHARDING };

struct cm_int_ints_proto { /* IntIntListEntryProto */
    struct cm_msg msg;
    int64_t key;
    struct cm_int64s value;
};
enum { CM_INT_INTS_KEY, CM_INT_INTS_VALUE };

struct cm_sharding_spec_proto {
    struct cm_msg msg;
    struct cm_str tensor_name;
    struct cm_int64s device;
    CM_LIST(struct cm_int_ints_proto) index_to_device_group_map;
    CM_LIST(struct cm_sharded_dim_proto) sharded_dim;
};
enum {
    CM_SHARDING_SPEC_TENSOR_NAME,
    CM_SHARDING_SPEC_DEVICE,
    CM_SHARDING_SPEC_INDEX_TO_DEVICE_GROUP_MAP,
    CM_SHARDING_SPEC_SHARDED_DIM,
};

struct cm_node_device_proto { /* NodeDeviceConfigurationProto */
    struct cm_msg msg;
    struct cm_str configuration_id;
    CM_LIST(struct cm_sharding_spec_proto) sharding_spec;
    int32_t pipeline_stage;
};
enum {
    CM_NODE_DEVICE_CONFIGURATION_ID,
    CM_NODE_DEVICE_SHARDING_SPEC,
    CM_NODE_DEVICE_PIPELINE_STAGE
};

struct cm_node_proto {
    struct cm_msg msg;
    struct cm_strs input, output;
    struct cm_str name, op_type;
    CM_LIST(struct cm_attribute_proto) attribute;
    struct cm_str doc_string, domain, overload;
    struct cm_entries metadata_props;
    CM_LIST(struct cm_node_device_proto) device_configurations;
};
enum {
    CM_NODE_INPUT,
    CM_NODE_OUTPUT,
    CM_NODE_NAME,
    CM_NODE_OP_TYPE,
    CM_NODE_ATTRIBUTE,
    CM_NODE_DOC_STRING,
    CM_NODE_DOMAIN,
    CM_NODE_OVERLOAD,
    CM_NODE_METADATA_PROPS,
    CM_NODE_DEVICE_CONFIGURATIONS,
};

struct cm_nodes {
    struct cm_node_proto *items;
    size_t count;
};

struct cm_annotation_proto { /* TensorAnnotation */
    struct cm_msg msg;
    struct cm_str tensor_name;
    struct cm_entries quant_parameter_tensor_names;
};
enum { CM_ANNOTATION_TENSOR_NAME, CM_ANNOTATION_QUANT_PARAMETER_TENSOR_NAMES };

struct cm_graph_proto {
    struct cm_msg msg;
    struct cm_nodes node;
    struct cm_str name;
    CM_LIST(struct cm_tensor_proto) initializer;
    struct cm_str doc_string;
    struct cm_value_infos input, output, value_info;
    CM_LIST(struct cm_annotation_proto) quantization_annotation;
    CM_LIST(struct cm_sparse_proto) sparse_initializer;
    struct cm_entries metadata_props;
};
enum {
    CM_GRAPH_NODE,
    CM_GRAPH_NAME,
    CM_GRAPH_INITIALIZER,
    CM_GRAPH_DOC_STRING,
    CM_GRAPH_INPUT,
    CM_GRAPH_OUTPUT,
    CM_GRAPH_VALUE_INFO,
    CM_GRAPH_QUANTIZATION_ANNOTATION,
    CM_GRAPH_SPARSE_INITIALIZER,
    CM_GRAPH_METADATA_PROPS,
};

struct cm_function_proto {
    struct cm_msg msg;
    struct cm_str name;
    struct cm_strs input, output, attribute;
    struct cm_nodes node;
    struct cm_str doc_string;
    struct cm_opsets opset_import;
    struct cm_str domain;
    CM_LIST(struct cm_attribute_proto) attribute_proto;
    struct cm_value_infos value_info;
    struct cm_str overload;
    struct cm_entries metadata_props;
};
enum {
    CM_FUNCTION_NAME,
    CM_FUNCTION_INPUT,
    CM_FUNCTION_OUTPUT,
    CM_FUNCTION_ATTRIBUTE,
    CM_FUNCTION_NODE,
    CM_FUNCTION_DOC_STRING,
    CM_FUNCTION_OPSET_IMPORT,
    CM_FUNCTION_DOMAIN,
    CM_FUNCTION_ATTRIBUTE_PROTO,
    CM_FUNCTION_VALUE_INFO,
    CM_FUNCTION_OVERLOAD,
    CM_FUNCTION_METADATA_PROPS,
};

struct cm_training_proto { /* TrainingInfoProto */
    struct cm_msg msg;
    struct cm_graph_proto *initialization, *algorithm;
    struct cm_entries initialization_binding, update_binding;
};
enum {
    CM_TRAINING_INITIALIZATION,
    CM_TRAINING_ALGORITHM,
    CM_TRAINING_INITIALIZATION_BINDING,
    CM_TRAINING_UPDATE_BINDING,
};

struct cm_device_proto { /* DeviceConfigurationProto */
    struct cm_msg msg;
    struct cm_str name;
    int32_t num_devices;
    struct cm_strs device;
};
enum { CM_DEVICE_NAME, CM_DEVICE_NUM_DEVICES, CM_DEVICE_DEVICE };

struct cm_model_proto {
    struct cm_msg msg;
    int64_t ir_version;
    struct cm_str producer_name, producer_version, domain;
    int64_t model_version;
    struct cm_str doc_string;
    struct cm_graph_proto *graph;
    struct cm_opsets opset_import;
    struct cm_entries metadata_props;
    CM_LIST(struct cm_training_proto) training_info;
    CM_LIST(struct cm_function_proto) functions;
    CM_LIST(struct cm_device_proto) configuration;
};
enum {
    CM_MODEL_IR_VERSION,
    CM_MODEL_PRODUCER_NAME,
    CM_MODEL_PRODUCER_VERSION,
    CM_MODEL_DOMAIN,
    CM_MODEL_MODEL_VERSION,
    CM_MODEL_DOC_STRING,
    CM_MODEL_GRAPH,
    CM_MODEL_OPSET_IMPORT,
    CM_MODEL_METADATA_PROPS,
    CM_MODEL_TRAINING_INFO,
    CM_MODEL_FUNCTIONS,
    CM_MODEL_CONFIGURATION,
};

/* Values in files of their own, beside tensors: test data, stored inputs. */
struct cm_map_proto;
struct cm_optional_proto;

struct cm_sequence_proto {
    struct cm_msg msg;
    struct cm_str name;
    int32_t elem_type;
    CM_LIST(struct cm_tensor_proto) tensor_values;
    CM_LIST(struct cm_sparse_proto) sparse_tensor_values;
    CM_LIST(struct cm_sequence_proto) sequence_values;
    CM_LIST(struct cm_map_proto) map_values;
    CM_LIST(struct cm_optional_proto) optional_values;
};
enum {
    CM_SEQUENCE_NAME,
    CM_SEQUENCE_ELEM_TYPE,
    CM_SEQUENCE_TENSOR_VALUES,
    CM_SEQUENCE_SPARSE_TENSOR_VALUES,
    CM_SEQUENCE_SEQUENCE_VALUES,
    CM_SEQUENCE_MAP_VALUES,
    CM_SEQUENCE_OPTIONAL_VALUES,
};

struct cm_map_proto {
    struct cm_msg msg;
    struct cm_str name;
    int32_t key_type;
    struct cm_int64s keys;
    struct cm_strs string_keys;
    struct cm_sequence_proto *values;
};
enum { CM_MAP_NAME, CM_MAP_KEY_TYPE, CM_MAP_KEYS, CM_MAP_STRING_KEYS, CM_MAP_VALUES };

struct cm_optional_proto {
    struct cm_msg msg;
    struct cm_str name;
    int32_t elem_type;
    struct cm_tensor_proto *tensor_value;
    struct cm_sparse_proto *sparse_tensor_value;
    struct cm_sequence_proto *sequence_value;
    struct cm_map_proto *map_value;
    struct cm_optional_proto *optional_value;
};
enum {
    CM_OPTIONAL_NAME,
    CM_OPTIONAL_ELEM_TYPE,
    CM_OPTIONAL_TENSOR_VALUE,
    CM_OPTIONAL_SPARSE_TENSOR_VALUE,
    CM_OPTIONAL_SEQUENCE_VALUE,
    CM_OPTIONAL_MAP_VALUE,
    CM_OPTIONAL_OPTIONAL_VALUE,
};

/* SequenceProto.DataType and OptionalProto.DataType */
enum {
    CM_ELEM_UNDEFINED = 0,
    CM_ELEM_TENSOR = 1,
    CM_ELEM_SPARSE_TENSOR = 2,
    CM_ELEM_SEQUENCE = 3,
    CM_ELEM_MAP = 4,
    CM_ELEM_OPTIONAL = 5,
};

/* What the operator set files hold; read for completeness, never written by us. */
struct cm_operator_proto {
    struct cm_msg msg;
    struct cm_str op_type;
    int64_t since_version;
    int32_t status;
    struct cm_str doc_string;
};
enum { CM_OPERATOR_OP_TYPE, CM_OPERATOR_SINCE_VERSION, CM_OPERATOR_STATUS, CM_OPERATOR_DOC_STRING };

struct cm_operator_set_proto {
    struct cm_msg msg;
    struct cm_str magic;
    int64_t ir_version;
    struct cm_str ir_version_prerelease, domain;
    int64_t opset_version;
    struct cm_str doc_string, ir_build_metadata;
    CM_LIST(struct cm_operator_proto) operator_;
    CM_LIST(struct cm_function_proto) functions;
};
enum {
    CM_OPERATOR_SET_MAGIC,
    CM_OPERATOR_SET_IR_VERSION,
    CM_OPERATOR_SET_IR_VERSION_PRERELEASE,
    CM_OPERATOR_SET_DOMAIN,
    CM_OPERATOR_SET_OPSET_VERSION,
    CM_OPERATOR_SET_DOC_STRING,
    CM_OPERATOR_SET_IR_BUILD_METADATA,
    CM_OPERATOR_SET_OPERATOR,
    CM_OPERATOR_SET_FUNCTIONS,
};

/* The value of a key, such as one of metadata_props; empty: there is no such key. */
struct cm_str cm_entries_find(const struct cm_entries *entries, const char *key);
/* Graphs in a node's attributes, one after the other; NULL after the last. */
struct cm_graph_proto *cm_node_subgraph(const struct cm_node_proto *node, size_t index);

#endif
