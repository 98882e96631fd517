/* The rows of every ONNX message: numbers, names and kinds as in the proto schema, in the order of
 * the numbers, which is also the order in which the official writers put fields. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/descriptor.h"

static const struct cm_message_info segment_info, dim_info, shape_info, tensor_type_info,
    sparse_tensor_type_info, sequence_type_info, optional_type_info, map_type_info,
    opaque_type_info, simple_sharded_dim_info, sharded_dim_info, int_ints_info, sharding_spec_info,
    node_device_info, annotation_info, device_info, operator_info;

/* clang-format off */
#define OFFSET(type, member) #member, offsetof(struct cm_##type##_proto, member)
#define VALUE(type, member, number, kind) \
    {number, CM_FIELD_##kind, OFFSET(type, member), NULL, false, 0}
#define PACKED(type, member, number, kind) \
    {number, CM_FIELD_PACKED_##kind, OFFSET(type, member), NULL, true, 0}
#define CHILD(type, member, number, info) \
    {number, CM_FIELD_MESSAGE, OFFSET(type, member), info, false, 0}
#define CHILDREN(type, member, number, info) \
    {number, CM_FIELD_MESSAGES, OFFSET(type, member), info, false, 0}
/* Members of the one oneof of their message. */
#define CHOICE(type, member, number, kind) \
    {number, CM_FIELD_##kind, OFFSET(type, member), NULL, false, 1}
#define CHOICE_CHILD(type, member, number, info) \
    {number, CM_FIELD_MESSAGE, OFFSET(type, member), info, false, 1}
#define INFO(name, type, rows) {name, sizeof(struct cm_##type##_proto), rows, (int)CM_COUNT(rows)}
/* clang-format on */

static const struct cm_field_info entry_fields[] = {
    [CM_ENTRY_KEY] = VALUE(entry, key, 1, STR),
    [CM_ENTRY_VALUE] = VALUE(entry, value, 2, STR),
};
const struct cm_message_info cm_entry_info = INFO("StringStringEntryProto", entry, entry_fields);

static const struct cm_field_info opset_fields[] = {
    [CM_OPSET_DOMAIN] = VALUE(opset, domain, 1, STR),
    [CM_OPSET_VERSION] = VALUE(opset, version, 2, INT64),
};
const struct cm_message_info cm_opset_info = INFO("OperatorSetIdProto", opset, opset_fields);

static const struct cm_field_info segment_fields[] = {
    [CM_SEGMENT_BEGIN] = VALUE(segment, begin, 1, INT64),
    [CM_SEGMENT_END] = VALUE(segment, end, 2, INT64),
};
static const struct cm_message_info segment_info =
    INFO("TensorProto.Segment", segment, segment_fields);

static const struct cm_field_info tensor_fields[] = {
    [CM_TENSOR_DIMS] = VALUE(tensor, dims, 1, INT64S),
    [CM_TENSOR_DATA_TYPE] = VALUE(tensor, data_type, 2, INT32),
    [CM_TENSOR_SEGMENT] = CHILD(tensor, segment, 3, &segment_info),
    [CM_TENSOR_FLOAT_DATA] = PACKED(tensor, float_data, 4, 4),
    [CM_TENSOR_INT32_DATA] = PACKED(tensor, int32_data, 5, VARINT),
    [CM_TENSOR_STRING_DATA] = VALUE(tensor, string_data, 6, STRS),
    [CM_TENSOR_INT64_DATA] = PACKED(tensor, int64_data, 7, VARINT),
    [CM_TENSOR_NAME] = VALUE(tensor, name, 8, STR),
    [CM_TENSOR_RAW_DATA] = VALUE(tensor, raw_data, 9, STR),
    [CM_TENSOR_DOUBLE_DATA] = PACKED(tensor, double_data, 10, 8),
    [CM_TENSOR_UINT64_DATA] = PACKED(tensor, uint64_data, 11, VARINT),
    [CM_TENSOR_DOC_STRING] = VALUE(tensor, doc_string, 12, STR),
    [CM_TENSOR_EXTERNAL_DATA] = CHILDREN(tensor, external_data, 13, &cm_entry_info),
    [CM_TENSOR_DATA_LOCATION] = VALUE(tensor, data_location, 14, INT32),
    [CM_TENSOR_METADATA_PROPS] = CHILDREN(tensor, metadata_props, 16, &cm_entry_info),
};
const struct cm_message_info cm_tensor_info = INFO("TensorProto", tensor, tensor_fields);

static const struct cm_field_info sparse_fields[] = {
    [CM_SPARSE_VALUES] = CHILD(sparse, values, 1, &cm_tensor_info),
    [CM_SPARSE_INDICES] = CHILD(sparse, indices, 2, &cm_tensor_info),
    [CM_SPARSE_DIMS] = VALUE(sparse, dims, 3, INT64S),
};
const struct cm_message_info cm_sparse_info = INFO("SparseTensorProto", sparse, sparse_fields);

static const struct cm_field_info dim_fields[] = {
    [CM_DIM_VALUE] = CHOICE(dim, dim_value, 1, INT64),
    [CM_DIM_PARAM] = CHOICE(dim, dim_param, 2, STR),
    [CM_DIM_DENOTATION] = VALUE(dim, denotation, 3, STR),
};
static const struct cm_message_info dim_info = INFO("TensorShapeProto.Dimension", dim, dim_fields);

static const struct cm_field_info shape_fields[] = {
    [CM_SHAPE_DIM] = CHILDREN(shape, dim, 1, &dim_info),
};
static const struct cm_message_info shape_info = INFO("TensorShapeProto", shape, shape_fields);

static const struct cm_field_info tensor_type_fields[] = {
    [CM_TENSOR_TYPE_ELEM_TYPE] = VALUE(tensor_type, elem_type, 1, INT32),
    [CM_TENSOR_TYPE_SHAPE] = CHILD(tensor_type, shape, 2, &shape_info),
};
static const struct cm_message_info tensor_type_info =
    INFO("TypeProto.Tensor", tensor_type, tensor_type_fields);
static const struct cm_message_info sparse_tensor_type_info =
    INFO("TypeProto.SparseTensor", tensor_type, tensor_type_fields);

static const struct cm_field_info wrap_type_fields[] = {
    [CM_WRAP_TYPE_ELEM_TYPE] = CHILD(wrap_type, elem_type, 1, &cm_type_info),
};
static const struct cm_message_info sequence_type_info =
    INFO("TypeProto.Sequence", wrap_type, wrap_type_fields);
static const struct cm_message_info optional_type_info =
    INFO("TypeProto.Optional", wrap_type, wrap_type_fields);

static const struct cm_field_info map_type_fields[] = {
    [CM_MAP_TYPE_KEY_TYPE] = VALUE(map_type, key_type, 1, INT32),
    [CM_MAP_TYPE_VALUE_TYPE] = CHILD(map_type, value_type, 2, &cm_type_info),
};
static const struct cm_message_info map_type_info =
    INFO("TypeProto.Map", map_type, map_type_fields);

static const struct cm_field_info opaque_type_fields[] = {
    [CM_OPAQUE_TYPE_DOMAIN] = VALUE(opaque_type, domain, 1, STR),
    [CM_OPAQUE_TYPE_NAME] = VALUE(opaque_type, name, 2, STR),
};
static const struct cm_message_info opaque_type_info =
    INFO("TypeProto.Opaque", opaque_type, opaque_type_fields);

static const struct cm_field_info type_fields[] = {
    [CM_TYPE_TENSOR_TYPE] = CHOICE_CHILD(type, tensor_type, 1, &tensor_type_info),
    [CM_TYPE_SEQUENCE_TYPE] = CHOICE_CHILD(type, sequence_type, 4, &sequence_type_info),
    [CM_TYPE_MAP_TYPE] = CHOICE_CHILD(type, map_type, 5, &map_type_info),
    [CM_TYPE_DENOTATION] = VALUE(type, denotation, 6, STR),
    [CM_TYPE_OPAQUE_TYPE] = CHOICE_CHILD(type, opaque_type, 7, &opaque_type_info),
    [CM_TYPE_SPARSE_TENSOR_TYPE] =
        CHOICE_CHILD(type, sparse_tensor_type, 8, &sparse_tensor_type_info),
    [CM_TYPE_OPTIONAL_TYPE] = CHOICE_CHILD(type, optional_type, 9, &optional_type_info),
};
const struct cm_message_info cm_type_info = INFO("TypeProto", type, type_fields);

static const struct cm_field_info value_info_fields[] = {
    [CM_VALUE_INFO_NAME] = VALUE(value_info, name, 1, STR),
    [CM_VALUE_INFO_TYPE] = CHILD(value_info, type, 2, &cm_type_info),
    [CM_VALUE_INFO_DOC_STRING] = VALUE(value_info, doc_string, 3, STR),
    [CM_VALUE_INFO_METADATA_PROPS] = CHILDREN(value_info, metadata_props, 4, &cm_entry_info),
};
const struct cm_message_info cm_value_info_info =
    INFO("ValueInfoProto", value_info, value_info_fields);

static const struct cm_field_info attribute_fields[] = {
    [CM_ATTRIBUTE_NAME] = VALUE(attribute, name, 1, STR),
    [CM_ATTRIBUTE_F] = VALUE(attribute, f, 2, FLOAT),
    [CM_ATTRIBUTE_I] = VALUE(attribute, i, 3, INT64),
    [CM_ATTRIBUTE_S] = VALUE(attribute, s, 4, STR),
    [CM_ATTRIBUTE_T] = CHILD(attribute, t, 5, &cm_tensor_info),
    [CM_ATTRIBUTE_G] = CHILD(attribute, g, 6, &cm_graph_info),
    [CM_ATTRIBUTE_FLOATS] = VALUE(attribute, floats, 7, FLOATS),
    [CM_ATTRIBUTE_INTS] = VALUE(attribute, ints, 8, INT64S),
    [CM_ATTRIBUTE_STRINGS] = VALUE(attribute, strings, 9, STRS),
    [CM_ATTRIBUTE_TENSORS] = CHILDREN(attribute, tensors, 10, &cm_tensor_info),
    [CM_ATTRIBUTE_GRAPHS] = CHILDREN(attribute, graphs, 11, &cm_graph_info),
    [CM_ATTRIBUTE_DOC_STRING] = VALUE(attribute, doc_string, 13, STR),
    [CM_ATTRIBUTE_TP] = CHILD(attribute, tp, 14, &cm_type_info),
    [CM_ATTRIBUTE_TYPE_PROTOS] = CHILDREN(attribute, type_protos, 15, &cm_type_info),
    [CM_ATTRIBUTE_TYPE] = VALUE(attribute, type, 20, INT32),
    [CM_ATTRIBUTE_REF_ATTR_NAME] = VALUE(attribute, ref_attr_name, 21, STR),
    [CM_ATTRIBUTE_SPARSE_TENSOR] = CHILD(attribute, sparse_tensor, 22, &cm_sparse_info),
    [CM_ATTRIBUTE_SPARSE_TENSORS] = CHILDREN(attribute, sparse_tensors, 23, &cm_sparse_info),
};
const struct cm_message_info cm_attribute_info =
    INFO("AttributeProto", attribute, attribute_fields);

static const struct cm_field_info simple_sharded_dim_fields[] = {
    [CM_SIMPLE_SHARDED_DIM_VALUE] = CHOICE(simple_sharded_dim, dim_value, 1, INT64),
    [CM_SIMPLE_SHARDED_DIM_PARAM] = CHOICE(simple_sharded_dim, dim_param, 2, STR),
    [CM_SIMPLE_SHARDED_NUM_SHARDS] = VALUE(simple_sharded_dim, num_shards, 3, INT64),
};
static const struct cm_message_info simple_sharded_dim_info =
    INFO("SimpleShardedDimProto", simple_sharded_dim, simple_sharded_dim_fields);

static const struct cm_field_info sharded_dim_fields[] = {
    [CM_SHARDED_DIM_AXIS] = VALUE(sharded_dim, axis, 1, INT64),
    [CM_SHARDED_DIM_SIMPLE_SHARDING] =
        CHILDREN(sharded_dim, simple_sharding, 2, &simple_sharded_dim_info),
};
static const struct cm_message_info sharded_dim_info =
    INFO("ShardedDimProto", sharded_dim, sharded_dim_fields);

static const struct cm_field_info int_ints_fields[] = {
    [CM_INT_INTS_KEY] = VALUE(int_ints, key, 1, INT64),
    [CM_INT_INTS_VALUE] = VALUE(int_ints, value, 2, INT64S),
};
static const struct cm_message_info int_ints_info =
    INFO("IntIntListEntryProto", int_ints, int_ints_fields);

static const struct cm_field_info sharding_spec_fields[] = {
    [CM_SHARDING_SPEC_TENSOR_NAME] = VALUE(sharding_spec, tensor_name, 1, STR),
    [CM_SHARDING_SPEC_DEVICE] = VALUE(sharding_spec, device, 2, INT64S),
    [CM_SHARDING_SPEC_INDEX_TO_DEVICE_GROUP_MAP] =
        CHILDREN(sharding_spec, index_to_device_group_map, 3, &int_ints_info),
    [CM_SHARDING_SPEC_SHARDED_DIM] = CHILDREN(sharding_spec, sharded_dim, 4, &sharded_dim_info),
};
static const struct cm_message_info sharding_spec_info =
    INFO("ShardingSpecProto", sharding_spec, sharding_spec_fields);

static const struct cm_field_info node_device_fields[] = {
    [CM_NODE_DEVICE_CONFIGURATION_ID] = VALUE(node_device, configuration_id, 1, STR),
    [CM_NODE_DEVICE_SHARDING_SPEC] = CHILDREN(node_device, sharding_spec, 2, &sharding_spec_info),
    [CM_NODE_DEVICE_PIPELINE_STAGE] = VALUE(node_device, pipeline_stage, 3, INT32),
};
static const struct cm_message_info node_device_info =
    INFO("NodeDeviceConfigurationProto", node_device, node_device_fields);

static const struct cm_field_info node_fields[] = {
    [CM_NODE_INPUT] = VALUE(node, input, 1, STRS),
    [CM_NODE_OUTPUT] = VALUE(node, output, 2, STRS),
    [CM_NODE_NAME] = VALUE(node, name, 3, STR),
    [CM_NODE_OP_TYPE] = VALUE(node, op_type, 4, STR),
    [CM_NODE_ATTRIBUTE] = CHILDREN(node, attribute, 5, &cm_attribute_info),
    [CM_NODE_DOC_STRING] = VALUE(node, doc_string, 6, STR),
    [CM_NODE_DOMAIN] = VALUE(node, domain, 7, STR),
    [CM_NODE_OVERLOAD] = VALUE(node, overload, 8, STR),
    [CM_NODE_METADATA_PROPS] = CHILDREN(node, metadata_props, 9, &cm_entry_info),
    [CM_NODE_DEVICE_CONFIGURATIONS] = CHILDREN(node, device_configurations, 10, &node_device_info),
};
const struct cm_message_info cm_node_info = INFO("NodeProto", node, node_fields);

static const struct cm_field_info annotation_fields[] = {
    [CM_ANNOTATION_TENSOR_NAME] = VALUE(annotation, tensor_name, 1, STR),
    [CM_ANNOTATION_QUANT_PARAMETER_TENSOR_NAMES] =
        CHILDREN(annotation, quant_parameter_tensor_names, 2, &cm_entry_info),
};
static const struct cm_message_info annotation_info =
    INFO("TensorAnnotation", annotation, annotation_fields);

static const struct cm_field_info graph_fields[] = {
    [CM_GRAPH_NODE] = CHILDREN(graph, node, 1, &cm_node_info),
    [CM_GRAPH_NAME] = VALUE(graph, name, 2, STR),
    [CM_GRAPH_INITIALIZER] = CHILDREN(graph, initializer, 5, &cm_tensor_info),
    [CM_GRAPH_DOC_STRING] = VALUE(graph, doc_string, 10, STR),
    [CM_GRAPH_INPUT] = CHILDREN(graph, input, 11, &cm_value_info_info),
    [CM_GRAPH_OUTPUT] = CHILDREN(graph, output, 12, &cm_value_info_info),
    [CM_GRAPH_VALUE_INFO] = CHILDREN(graph, value_info, 13, &cm_value_info_info),
    [CM_GRAPH_QUANTIZATION_ANNOTATION] =
        CHILDREN(graph, quantization_annotation, 14, &annotation_info),
    [CM_GRAPH_SPARSE_INITIALIZER] = CHILDREN(graph, sparse_initializer, 15, &cm_sparse_info),
    [CM_GRAPH_METADATA_PROPS] = CHILDREN(graph, metadata_props, 16, &cm_entry_info),
};
const struct cm_message_info cm_graph_info = INFO("GraphProto", graph, graph_fields);

static const struct cm_field_info function_fields[] = {
    [CM_FUNCTION_NAME] = VALUE(function, name, 1, STR),
    [CM_FUNCTION_INPUT] = VALUE(function, input, 4, STRS),
    [CM_FUNCTION_OUTPUT] = VALUE(function, output, 5, STRS),
    [CM_FUNCTION_ATTRIBUTE] = VALUE(function, attribute, 6, STRS),
    [CM_FUNCTION_NODE] = CHILDREN(function, node, 7, &cm_node_info),
    [CM_FUNCTION_DOC_STRING] = VALUE(function, doc_string, 8, STR),
    [CM_FUNCTION_OPSET_IMPORT] = CHILDREN(function, opset_import, 9, &cm_opset_info),
    [CM_FUNCTION_DOMAIN] = VALUE(function, domain, 10, STR),
    [CM_FUNCTION_ATTRIBUTE_PROTO] = CHILDREN(function, attribute_proto, 11, &cm_attribute_info),
    [CM_FUNCTION_VALUE_INFO] = CHILDREN(function, value_info, 12, &cm_value_info_info),
    [CM_FUNCTION_OVERLOAD] = VALUE(function, overload, 13, STR),
    [CM_FUNCTION_METADATA_PROPS] = CHILDREN(function, metadata_props, 14, &cm_entry_info),
};
const struct cm_message_info cm_function_info = INFO("FunctionProto", function, function_fields);

static const struct cm_field_info training_fields[] = {
    [CM_TRAINING_INITIALIZATION] = CHILD(training, initialization, 1, &cm_graph_info),
    [CM_TRAINING_ALGORITHM] = CHILD(training, algorithm, 2, &cm_graph_info),
    [CM_TRAINING_INITIALIZATION_BINDING] =
        CHILDREN(training, initialization_binding, 3, &cm_entry_info),
    [CM_TRAINING_UPDATE_BINDING] = CHILDREN(training, update_binding, 4, &cm_entry_info),
};
const struct cm_message_info cm_training_info =
    INFO("TrainingInfoProto", training, training_fields);

static const struct cm_field_info device_fields[] = {
    [CM_DEVICE_NAME] = VALUE(device, name, 1, STR),
    [CM_DEVICE_NUM_DEVICES] = VALUE(device, num_devices, 2, INT32),
    [CM_DEVICE_DEVICE] = VALUE(device, device, 3, STRS),
};
static const struct cm_message_info device_info =
    INFO("DeviceConfigurationProto", device, device_fields);

static const struct cm_field_info model_fields[] = {
    [CM_MODEL_IR_VERSION] = VALUE(model, ir_version, 1, INT64),
    [CM_MODEL_PRODUCER_NAME] = VALUE(model, producer_name, 2, STR),
    [CM_MODEL_PRODUCER_VERSION] = VALUE(model, producer_version, 3, STR),
    [CM_MODEL_DOMAIN] = VALUE(model, domain, 4, STR),
    [CM_MODEL_MODEL_VERSION] = VALUE(model, model_version, 5, INT64),
    [CM_MODEL_DOC_STRING] = VALUE(model, doc_string, 6, STR),
    [CM_MODEL_GRAPH] = CHILD(model, graph, 7, &cm_graph_info),
    [CM_MODEL_OPSET_IMPORT] = CHILDREN(model, opset_import, 8, &cm_opset_info),
    [CM_MODEL_METADATA_PROPS] = CHILDREN(model, metadata_props, 14, &cm_entry_info),
    [CM_MODEL_TRAINING_INFO] = CHILDREN(model, training_info, 20, &cm_training_info),
    [CM_MODEL_FUNCTIONS] = CHILDREN(model, functions, 25, &cm_function_info),
    [CM_MODEL_CONFIGURATION] = CHILDREN(model, configuration, 26, &device_info),
};
const struct cm_message_info cm_model_info = INFO("ModelProto", model, model_fields);

static const struct cm_field_info sequence_fields[] = {
    [CM_SEQUENCE_NAME] = VALUE(sequence, name, 1, STR),
    [CM_SEQUENCE_ELEM_TYPE] = VALUE(sequence, elem_type, 2, INT32),
    [CM_SEQUENCE_TENSOR_VALUES] = CHILDREN(sequence, tensor_values, 3, &cm_tensor_info),
    [CM_SEQUENCE_SPARSE_TENSOR_VALUES] =
        CHILDREN(sequence, sparse_tensor_values, 4, &cm_sparse_info),
    [CM_SEQUENCE_SEQUENCE_VALUES] = CHILDREN(sequence, sequence_values, 5, &cm_sequence_info),
    [CM_SEQUENCE_MAP_VALUES] = CHILDREN(sequence, map_values, 6, &cm_map_info),
    [CM_SEQUENCE_OPTIONAL_VALUES] = CHILDREN(sequence, optional_values, 7, &cm_optional_info),
};
const struct cm_message_info cm_sequence_info = INFO("SequenceProto", sequence, sequence_fields);

static const struct cm_field_info map_fields[] = {
    [CM_MAP_NAME] = VALUE(map, name, 1, STR),
    [CM_MAP_KEY_TYPE] = VALUE(map, key_type, 2, INT32),
    [CM_MAP_KEYS] = VALUE(map, keys, 3, INT64S),
    [CM_MAP_STRING_KEYS] = VALUE(map, string_keys, 4, STRS),
    [CM_MAP_VALUES] = CHILD(map, values, 5, &cm_sequence_info),
};
const struct cm_message_info cm_map_info = INFO("MapProto", map, map_fields);

static const struct cm_field_info optional_fields[] = {
    [CM_OPTIONAL_NAME] = VALUE(optional, name, 1, STR),
    [CM_OPTIONAL_ELEM_TYPE] = VALUE(optional, elem_type, 2, INT32),
    [CM_OPTIONAL_TENSOR_VALUE] = CHILD(optional, tensor_value, 3, &cm_tensor_info),
    [CM_OPTIONAL_SPARSE_TENSOR_VALUE] = CHILD(optional, sparse_tensor_value, 4, &cm_sparse_info),
    [CM_OPTIONAL_SEQUENCE_VALUE] = CHILD(optional, sequence_value, 5, &cm_sequence_info),
    [CM_OPTIONAL_MAP_VALUE] = CHILD(optional, map_value, 6, &cm_map_info),
    [CM_OPTIONAL_OPTIONAL_VALUE] = CHILD(optional, optional_value, 7, &cm_optional_info),
};
const struct cm_message_info cm_optional_info = INFO("OptionalProto", optional, optional_fields);

static const struct cm_field_info operator_fields[] = {
    [CM_OPERATOR_OP_TYPE] = VALUE(operator, op_type, 1, STR),
    [CM_OPERATOR_SINCE_VERSION] = VALUE(operator, since_version, 2, INT64),
    [CM_OPERATOR_STATUS] = VALUE(operator, status, 3, INT32),
    [CM_OPERATOR_DOC_STRING] = VALUE(operator, doc_string, 10, STR),
};
static const struct cm_message_info operator_info =
    INFO("OperatorProto", operator, operator_fields);

static const struct cm_field_info operator_set_fields[] = {
    [CM_OPERATOR_SET_MAGIC] = VALUE(operator_set, magic, 1, STR),
    [CM_OPERATOR_SET_IR_VERSION] = VALUE(operator_set, ir_version, 2, INT64),
    [CM_OPERATOR_SET_IR_VERSION_PRERELEASE] = VALUE(operator_set, ir_version_prerelease, 3, STR),
    [CM_OPERATOR_SET_DOMAIN] = VALUE(operator_set, domain, 4, STR),
    [CM_OPERATOR_SET_OPSET_VERSION] = VALUE(operator_set, opset_version, 5, INT64),
    [CM_OPERATOR_SET_DOC_STRING] = VALUE(operator_set, doc_string, 6, STR),
    [CM_OPERATOR_SET_IR_BUILD_METADATA] = VALUE(operator_set, ir_build_metadata, 7, STR),
    [CM_OPERATOR_SET_OPERATOR] = {8, CM_FIELD_MESSAGES, "operator",
                                  offsetof(struct cm_operator_set_proto, operator_), &operator_info,
                                  false, 0},
    [CM_OPERATOR_SET_FUNCTIONS] = CHILDREN(operator_set, functions, 9, &cm_function_info),
};
const struct cm_message_info cm_operator_set_info =
    INFO("OperatorSetProto", operator_set, operator_set_fields);

int cm_message_field(const struct cm_message_info *info, uint32_t number)
{
    for (int f = 0; f < info->n_fields; f++) {
        if (info->fields[f].number == number)
            return f;
    }
    return -1;
}
