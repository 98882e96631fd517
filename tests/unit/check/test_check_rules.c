/* Each rule of the checker, broken on purpose: one row breaks the sample model in one way and names
 * the finding. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "check/check.h"
#include "check/sample_model.h"
#include "onnx/external.h"
#include "tensor/dtype.h"

/* What a row may reach for. */
struct parts {
    struct cm_arena *arena;
    struct cm_model_proto *model;
    struct cm_graph_proto *graph, *then, *step, *start;
    struct cm_node_proto *add, *constant, *branch, *call, *sum, *gradient;
    struct cm_tensor_proto *w;
    struct cm_sparse_proto *sparse;
    struct cm_function_proto *function;
    struct cm_training_proto *training;
};

static struct parts parts_of(struct cm_arena *arena)
{
    struct parts p = {.arena = arena, .model = sample_model(arena)};

    p.graph = p.model->graph;
    p.add = &p.graph->node.items[0];
    p.constant = &p.graph->node.items[1];
    p.branch = &p.graph->node.items[2];
    p.call = &p.graph->node.items[3];
    p.sum = &p.graph->node.items[4];
    p.then = p.branch->attribute.items[0].g;
    p.w = &p.graph->initializer.items[0];
    p.sparse = &p.graph->sparse_initializer.items[0];
    p.function = &p.model->functions.items[0];
    p.training = &p.model->training_info.items[0];
    p.step = p.training->algorithm;
    p.start = p.training->initialization;
    p.gradient = &p.step->node.items[0];
    return p;
}

typedef void break_fn(struct parts *p);

struct row {
    const char *rule;
    break_fn *breaks;
    const char *place, *reason; /* parts of what is said */
};

#define BREAK(name, ...)                                                                           \
    static void name(struct parts *p)                                                              \
    {                                                                                              \
        __VA_ARGS__;                                                                               \
    }

/* clang-format off */
BREAK(no_ir, p->model->ir_version = 0)
BREAK(late_ir, p->model->ir_version = 15)
BREAK(same_keys, sample_entry(p->arena, &p->model->metadata_props, "k", "1"); sample_entry(p->arena, &p->model->metadata_props, "k", "2"))
BREAK(wide_opset, p->model->opset_import.items[2].version = INT64_C(1) << 40)
BREAK(no_imports, p->model->opset_import.count = 0)
BREAK(no_graph, p->model->graph = NULL)
BREAK(no_graph_name, p->graph->name = CM_STR(""))
BREAK(no_input_type, p->graph->input.items[0].type = NULL)
BREAK(no_output_name, p->graph->output.items[0].name = CM_STR(""))
BREAK(same_inputs, p->graph->input.items[1].name = CM_STR("x"))
BREAK(no_initializer_name, p->w->name = CM_STR(""))
BREAK(same_initializers, p->sparse->values->name = CM_STR("w"))
BREAK(old_initializer, p->model->ir_version = 3)
BREAK(undefined_read, p->add->input.items[0] = CM_STR("q"))
BREAK(late_read, p->add->input.items[0] = CM_STR("k"))
BREAK(nested_read, p->then->node.items[0].input.items[0] = CM_STR("y"))
BREAK(second_write, p->constant->output.items[0] = CM_STR("h"))
BREAK(outer_write, p->then->node.items[0].output.items[0] = CM_STR("k"))
BREAK(undefined_output, p->sum->output.items[0] = CM_STR("z"))
BREAK(outer_output, p->then->output.items[0].name = CM_STR("h"))
BREAK(no_operator, p->add->op_type = CM_STR(""))
BREAK(call_elsewhere, p->add->op_type = CM_STR("GraphCall"); p->add->domain = CM_STR("ai.onnx.preview.training"))
BREAK(no_operands, p->constant->output.count = 0)
BREAK(no_domain, p->add->domain = CM_STR("elsewhere"))
BREAK(same_attributes, p->branch->attribute.items[1].name = CM_STR("then_branch"))
BREAK(unknown_operator, p->add->op_type = CM_STR("Addd"))
BREAK(late_operator, p->add->op_type = CM_STR("RMSNormalization"))
BREAK(deprecated, p->add->op_type = CM_STR("Upsample"))
BREAK(three_inputs, p->add->input = sample_words(p->arena, "x w x"))
BREAK(absent_input, p->add->input = sample_words(p->arena, "x -"))
BREAK(foreign_attribute, sample_attribute(p->arena, p->add, "axis", CM_ATTR_INT))
BREAK(attribute_kind, struct cm_attribute_proto *a = p->constant->attribute.items; a->type = CM_ATTR_INT; a->t = NULL; a->msg.has = UINT32_C(1) << CM_ATTRIBUTE_TYPE)
BREAK(no_value, struct cm_attribute_proto *a = p->constant->attribute.items; a->t = NULL; a->msg.has = UINT32_C(1) << CM_ATTRIBUTE_TYPE)
BREAK(no_attribute, p->branch->attribute.count = 1)
BREAK(no_attribute_name, p->constant->attribute.items[0].name = CM_STR(""))
BREAK(no_attribute_type, p->constant->attribute.items[0].msg.has = UINT32_C(1) << CM_ATTRIBUTE_T)
BREAK(two_values, cm_msg_set(&p->constant->attribute.items[0].msg, CM_ATTRIBUTE_I))
BREAK(value_and_reference, struct cm_attribute_proto *a = sample_attribute(p->arena, &p->then->node.items[0], "q", CM_ATTR_INT); cm_msg_set(&a->msg, CM_ATTRIBUTE_I); a->ref_attr_name = CM_STR("r"); cm_msg_set(&a->msg, CM_ATTRIBUTE_REF_ATTR_NAME))
BREAK(no_tensor_type, p->w->data_type = CM_UNDEFINED)
BREAK(external_and_data, p->w->data_location = CM_LOCATION_EXTERNAL; sample_entry(p->arena, &p->w->external_data, "location", "w.bin"))
static void make_external(struct parts *p, const char *location)
{
    p->w->raw_data = CM_STR_NONE;
    p->w->data_location = CM_LOCATION_EXTERNAL;
    sample_entry(p->arena, &p->w->external_data, "location", location);
}
BREAK(outside, make_external(p, "../w.bin"))
BREAK(missing_file, make_external(p, "nowhere.bin"))
BREAK(folder_as_file, make_external(p, "unit"))
BREAK(short_file, make_external(p, "known_failures.txt"); sample_entry(p->arena, &p->w->external_data, "offset", "99999999"))
BREAK(absolute, make_external(p, "/etc/passwd"))
BREAK(nowhere, make_external(p, "w.bin"); p->w->external_data.count = 0)
BREAK(negative_dim, p->w->dims.items[0] = -2)
BREAK(huge, p->w->dims.items[0] = INT64_MAX; *CM_LIST_ADD(p->arena, &p->w->dims) = 3)
BREAK(two_fields, p->w->float_data = (struct cm_packed){(const uint8_t *)"\0\0\0\0", 4})
BREAK(raw_strings, p->w->data_type = CM_STRING)
BREAK(short_raw, p->w->raw_data.size = 7)
BREAK(wrong_field, p->w->raw_data = CM_STR_NONE; p->w->int32_data = (struct cm_packed){(const uint8_t *)"\1\2", 2})
BREAK(six_padding, p->w->data_type = CM_FLOAT6E2M3; p->w->raw_data = (struct cm_str){"\377\37", 2})
BREAK(six_padding_long, p->w->data_type = CM_FLOAT6E3M2; p->w->raw_data = (struct cm_str){"\377\37\0", 3})
BREAK(six_short, p->w->data_type = CM_FLOAT6E3M2; p->w->raw_data = (struct cm_str){"\377", 1})
BREAK(six_few, p->w->raw_data = CM_STR_NONE; p->w->data_type = CM_FLOAT6E3M2; p->w->int32_data = (struct cm_packed){(const uint8_t *)"\1", 1})
BREAK(six_wide, p->w->raw_data = CM_STR_NONE; p->w->data_type = CM_FLOAT6E2M3; p->w->int32_data = (struct cm_packed){(const uint8_t *)"\77\100", 2})
BREAK(six_many, p->w->raw_data = CM_STR_NONE; p->w->data_type = CM_FLOAT6E2M3; p->w->int32_data = (struct cm_packed){(const uint8_t *)"\1\2\3", 3})
BREAK(four_padding, *p->w->dims.items = 1; p->w->data_type = CM_INT4; p->w->raw_data = (struct cm_str){"\377", 1})
BREAK(too_few, p->w->raw_data = CM_STR_NONE; p->w->data_type = CM_INT32; p->w->int32_data = (struct cm_packed){(const uint8_t *)"\1", 1})
BREAK(index_outside, p->sparse->indices->raw_data = (struct cm_str){"\4\0\0\0\0\0\0\0", 8})
BREAK(sparse_scalar, p->sparse->dims.count = 0)
BREAK(same_functions, *CM_LIST_ADD(p->arena, &p->model->functions) = *p->function)
BREAK(circle, p->function->node.items[0].op_type = CM_STR("F"); p->function->node.items[0].domain = CM_STR("local"))
BREAK(no_function_name, p->function->name = CM_STR(""))
BREAK(same_parameters, p->function->input = sample_words(p->arena, "a a"))
BREAK(function_reads_outside, p->function->node.items[0].input.items[0] = CM_STR("w"))
BREAK(function_imports_other, p->function->opset_import.items[0].version = 13; p->function->node.items[0].op_type = CM_STR("Relu"))
BREAK(function_imports_not, p->function->opset_import.count = 0)
BREAK(init_key, p->training->initialization_binding.items[0].key = CM_STR("h"))
BREAK(init_value, p->training->initialization_binding.items[0].value = CM_STR("w_next"))
BREAK(init_twice, sample_entry(p->arena, &p->training->initialization_binding, "w", "w_first"))
BREAK(update_key, p->training->update_binding.items[0].key = CM_STR("x"))
BREAK(update_value, p->training->update_binding.items[0].value = CM_STR("dw"))
BREAK(update_twice, sample_entry(p->arena, &p->training->update_binding, "w", "w_next"))
BREAK(no_initialization, p->training->initialization = NULL)
BREAK(init_inputs, sample_value(p->arena, &p->start->input, "i", CM_FLOAT, 1, 2))
BREAK(reads_algorithm, p->sum->input.items[0] = CM_STR("dw"))
BREAK(same_in_both, p->step->initializer.items[0].name = CM_STR("w"))
BREAK(early_training, p->model->ir_version = 6)
BREAK(other_shape, p->step->output.items[0].type->tensor_type->shape->dim.items[0].dim_value = 3)
BREAK(other_type, p->step->output.items[0].type->tensor_type->elem_type = CM_DOUBLE)
BREAK(sparse_key, p->training->update_binding.items[0].key = CM_STR("s"))
BREAK(empty_key, p->training->update_binding.items[0].key = CM_STR(""))
BREAK(fed_key, sample_value(p->arena, &p->graph->input, "w", CM_FLOAT, 1, 2))
static struct cm_training_proto *second_entry(struct parts *p)
{
    struct cm_training_proto *entry = CM_LIST_ADD(p->arena, &p->model->training_info);

    entry->algorithm = CM_NEW(p->arena, struct cm_graph_proto);
    entry->algorithm->name = CM_STR("more");
    cm_msg_set(&entry->algorithm->msg, CM_GRAPH_NAME);
    sample_tensor(p->arena, CM_LIST_ADD(p->arena, &entry->algorithm->initializer), "rate", 2);
    return entry;
}
BREAK(same_state, sample_entry(p->arena, &second_entry(p)->initialization_binding, "rate", "w_first"))
BREAK(same_constant, second_entry(p))
BREAK(no_xs, p->gradient->attribute.items[0].strings.count = 0)
BREAK(no_y, p->gradient->attribute.items[2].s = CM_STR(""))
BREAK(x_twice, p->gradient->attribute.items[1].strings = sample_words(p->arena, "w"))
BREAK(x_unknown, p->gradient->attribute.items[0].strings = sample_words(p->arena, "nobody"))
BREAK(y_unknown, p->gradient->attribute.items[2].s = CM_STR("w_next"))
BREAK(missing_input, p->gradient->input = sample_words(p->arena, "w"))
BREAK(spare_output, p->gradient->output = sample_words(p->arena, "dw dx"))
BREAK(empty_input, p->gradient->input = sample_words(p->arena, "w -"))
BREAK(no_path, p->gradient->attribute.items[0].strings = sample_words(p->arena, "w k"); p->gradient->input = sample_words(p->arena, "w k x"))
BREAK(dependent, p->gradient->attribute.items[0].strings = sample_words(p->arena, "w h"); p->gradient->input = sample_words(p->arena, "w h x"); p->gradient->attribute.items[2].s = CM_STR("y"))
BREAK(no_path_at_all, p->gradient->attribute.items[2].s = CM_STR("k"))
BREAK(import_twice, sample_opset(p->arena, &p->model->opset_import, "ai.onnx", 21))
BREAK(import_zero, p->model->opset_import.items[2].version = 0)
BREAK(import_late, p->model->opset_import.items[0].version = 99)
BREAK(long_domain, p->add->domain = CM_STR("ai.onnx"))
BREAK(new_type, p->model->ir_version = 10; sample_tensor(p->arena, CM_LIST_ADD(p->arena, &p->graph->initializer), "e", 2); p->graph->initializer.items[1].data_type = CM_FLOAT4E2M1; p->graph->initializer.items[1].raw_data.size = 1)
BREAK(same_node_keys, sample_entry(p->arena, &p->add->metadata_props, "k", "1"); sample_entry(p->arena, &p->add->metadata_props, "k", "2"))
BREAK(hiding, sample_value(p->arena, &p->then->input, "x", CM_FLOAT, 1, 2))
BREAK(nested_default, sample_value(p->arena, &p->then->input, "d", CM_FLOAT, 1, 2); sample_tensor(p->arena, CM_LIST_ADD(p->arena, &p->then->initializer), "d", 2))
BREAK(info_of_nothing, p->graph->value_info.items[0].name = CM_STR("nothing"))
BREAK(info_contradicts, sample_value(p->arena, &p->graph->value_info, "x", CM_FLOAT, 1, 7))
BREAK(output_twice, sample_value(p->arena, &p->graph->output, "y", CM_FLOAT, 1, 2))
BREAK(unknown_elem, p->graph->input.items[1].type->tensor_type->elem_type = 77)
BREAK(same_nodes, p->constant->name = CM_STR("add"))
BREAK(silent_node, p->constant->output = sample_words(p->arena, "-"))
BREAK(reference_outside, p->constant->attribute.items[0].ref_attr_name = CM_STR("r"))
BREAK(unknown_kind, struct cm_attribute_proto *a = sample_attribute(p->arena, p->call, "q", 99); a->doc_string = CM_STR(""))
BREAK(function_output, p->function->output = sample_words(p->arena, "b b2"))
BREAK(call_inputs, p->call->input = sample_words(p->arena, "h h"))
BREAK(call_overload, p->call->overload = CM_STR("fast"))
BREAK(call_attribute, p->function->attribute = sample_words(p->arena, "alpha"))
BREAK(long_raw, p->w->raw_data = (struct cm_str){"\0\0\0\0\0\0\0\0\0\0\0\0", 12})
BREAK(bad_bool, p->w->data_type = CM_BOOL; p->w->raw_data = (struct cm_str){"\1\2", 2})
BREAK(bad_byte, p->w->raw_data = CM_STR_NONE; p->w->data_type = CM_UINT8; p->w->int32_data = (struct cm_packed){(const uint8_t *)"\1\254\2", 3})
BREAK(external_length, make_external(p, "w.bin"); sample_entry(p->arena, &p->w->external_data, "length", "9"))
BREAK(external_offset, make_external(p, "w.bin"); sample_entry(p->arena, &p->w->external_data, "offset", "0x10"))
BREAK(sparse_huge, *CM_LIST_ADD(p->arena, &p->sparse->dims) = INT64_MAX)
BREAK(default_differs, sample_value(p->arena, &p->graph->input, "w", CM_FLOAT, 1, 3))
BREAK(annotation_of_nothing, p->graph->quantization_annotation.items[0].tensor_name = CM_STR("nothing"))
BREAK(no_configuration, p->add->device_configurations.items[0].configuration_id = CM_STR("triple"))
BREAK(no_device, *CM_LIST_ADD(p->arena, &p->add->device_configurations.items[0].sharding_spec.items[0].device) = 2)
BREAK(preview_unknown, p->gradient->op_type = CM_STR("Gradiant"))
BREAK(norm_attribute, p->add->op_type = CM_STR("LayerNormalization"); sample_attribute(p->arena, p->add, "own", CM_ATTR_INT))

static const struct row rows[] = {
    {"CK2", no_ir, "model", "has no IR version"},
    {"CK2", late_ir, "model", "IR version is 15, the newest known is 14"},
    {"CK3", same_keys, "model", "the key 'k' occurs twice"},
    {"CK4", wide_opset, "opset_import 'local'", "1099511627776 does not fit"},
    {"CK5", no_imports, "model", "imports no operator set"},
    {"CK6", no_graph, "model", "has no graph"},
    {"CK10", no_graph_name, "graph", "has no name"},
    {"CK11", no_input_type, "graph 'g', input 'x'", "has no type"},
    {"CK11", no_output_name, "graph 'g', output[0]", "has no name"},
    {"CK12", same_inputs, "graph 'g', input 'x'", "same name"},
    {"CK13", no_initializer_name, "graph 'g', initializer[0]", "has no name"},
    {"CK13", same_initializers, "graph 'g', sparse_initializer 'w'", "same name"},
    {"CK14", old_initializer, "graph 'g', initializer 'w'", "IR version 3"},
    {"CK15", undefined_read, "graph 'g', node 'add' (Add)", "reads 'q', which nothing before it defines"},
    {"CK15", late_read, "graph 'g', node 'add' (Add)", "reads 'k'"},
    {"CK15", nested_read, "graph 'g', node 'if' (If), attribute 'then_branch', graph 'then_branch', node 0 (Relu)", "reads 'y'"},
    {"CK16", second_write, "graph 'g', node 'const' (Constant)", "writes 'h', which is already defined"},
    {"CK16", outer_write, "graph 'then_branch', node 0 (Relu)", "writes 'k'"},
    {"CK17", undefined_output, "graph 'g', output 'y'", "nothing in this graph defines it"},
    {"CK17", outer_output, "graph 'then_branch', output 'h'", "nothing in this graph"},
    {"CK20", no_operator, "node 'add'", "names no operator"},
    {"CK21", no_operands, "node 'const' (Constant)", "neither inputs nor outputs"},
    {"CK22", no_domain, "node 'add' (Add)", "'elsewhere' is not imported"},
    {"CK23", same_attributes, "node 'if' (If)", "two attributes 'then_branch'"},
    {"CK24", unknown_operator, "node 'add' (Addd)", "no operator 'Addd' in domain 'ai.onnx'; did you mean 'Add'?"},
    {"CK24", late_operator, "node 'add' (RMSNormalization)", "no 'RMSNormalization' in version 21"},
    {"CK25", deprecated, "node 'add' (Upsample)", "deprecated since version 10"},
    {"CK26", three_inputs, "node 'add' (Add)", "has 3 inputs, needs 2"},
    {"CK27", absent_input, "node 'add' (Add)", "input 1 'B' must be present"},
    {"CK28", foreign_attribute, "node 'add' (Add)", "no attribute 'axis'"},
    {"CK29", attribute_kind, "node 'const' (Constant)", "'value' is int, needs tensor"},
    {"CK30", no_value, "node 'const' (Constant)", "'value' has no value"},
    {"CK31", no_attribute, "node 'if' (If)", "required attribute 'else_branch' is missing"},
    {"CK40", no_attribute_name, "node 'const' (Constant), attribute[0]", "has no name"},
    {"CK40", no_attribute_type, "attribute 'value'", "has no type"},
    {"CK41", two_values, "attribute 'value'", "in 2 fields"},
    {"CK42", value_and_reference, "attribute 'q'", "refers to 'r' and has a value"},
    {"CK50", no_tensor_type, "initializer 'w'", "no element type"},
    {"CK51", external_and_data, "initializer 'w'", "holds values too"},
    {"CK51", outside, "initializer 'w'", "location is refused: file name '../w.bin'"},
    {"CK51", absolute, "initializer 'w'", "location is refused: file name '/etc/passwd'"},
    {"CK51", nowhere, "initializer 'w'", "has no location"},
    {"CK52", negative_dim, "initializer 'w'", "dimension 0 is -2"},
    {"CK52", huge, "initializer 'w'", "more elements than 63 bits"},
    {"CK53", two_fields, "initializer 'w'", "in 2 fields"},
    {"CK54", raw_strings, "initializer 'w'", "strings cannot be in raw_data"},
    {"CK55", short_raw, "initializer 'w'", "has 7 bytes, type and shape need 8"},
    {"CK55", six_short, "initializer 'w'", "has 1 bytes, type and shape need 2"},
    {"CK55", six_padding, "initializer 'w'", "bits after the last element"},
    {"CK55", six_padding_long, "initializer 'w'", "bits after the last element"},
    {"CK56", six_few, "initializer 'w'", "int32_data has 1 values, type and shape need 2"},
    {"CK56", six_wide, "initializer 'w'", "value 1 is 64, not between 0 and 63"},
    {"CK56", wrong_field, "initializer 'w'", "type float belong in float_data"},
    {"CK56", too_few, "initializer 'w'", "int32_data has 1 values, type and shape need 2"},
    {"CK57", missing_file, "initializer 'w'", "there is no file 'nowhere.bin'"},
    {"CK57", folder_as_file, "initializer 'w'", "'unit' is a folder"},
    {"CK57", short_file, "initializer 'w'", "the tensor needs 8 from offset 99999999"},
    {"CK60", index_outside, "sparse_initializer 's'", "index 0 is 4, out of range"},
    {"CK60", sparse_scalar, "sparse_initializer 's'", "no dense dimensions"},
    {"CK70", same_functions, "function 'F'", "same domain, name and overload"},
    {"CK70", circle, "function 'F'", "calls 'F', which calls it again, directly or through others"},
    {"CK71", no_function_name, "function[0]", "has no name"},
    {"CK72", same_parameters, "function 'F'", "two inputs 'a'"},
    {"CK73", function_reads_outside, "function 'F', node 'relu' (Relu)", "reads 'w'"},
    {"CK74", function_imports_other, "function 'F', node 'relu' (Relu)", "version 13"},
    {"CK74", function_imports_not, "function 'F', node 'relu' (Relu)", "is not imported"},
    {"TR1", init_key, "training_info[0].initialization_binding[0]", "'h' is not an initializer"},
    {"TR2", init_value, "training_info[0].initialization_binding[0]", "'w_next' is not an output"},
    {"TR3", init_twice, "training_info[0].initialization_binding", "'w' occurs twice"},
    {"TR4", update_key, "training_info[0].update_binding[0]", "'x' is not an initializer"},
    {"TR5", update_value, "training_info[0].update_binding[0]", "'dw' is not an output"},
    {"TR6", update_twice, "training_info[0].update_binding[1]", "'w' is already assigned"},
    {"TR7", no_initialization, "training_info[0]", "no initialization graph"},
    {"TR8", init_inputs, "training_info[0].initialization", "has 1 inputs"},
    {"TR9", reads_algorithm, "training_info[0].algorithm", "an inference node reads its value 'dw'"},
    {"TR10", same_in_both, "training_info[0].algorithm, graph 'step', initializer 'w'", "inference graph defines"},
    {"TR11", early_training, "model", "IR version is 6"},
    {"TR12", other_shape, "training_info[0].update_binding[0]", "another size"},
    {"TR12", other_type, "training_info[0].update_binding[0]", "another element type"},
    {"TR14", sparse_key, "training_info[0].update_binding[0]", "'s' is a sparse initializer"},
    {"TR15", empty_key, "training_info[0].update_binding[0]", "key is empty"},
    {"TR16", fed_key, "training_info[0].update_binding[0]", "also a graph input"},
    {"TR17", same_state, "training_info[1].algorithm, initializer 'rate'", "state variable"},
    {"TR19", call_elsewhere, "node", "stands elsewhere than in an algorithm"},
    {"TR18", same_constant, "training_info[1].algorithm, initializer 'rate'", "initializer of this name"},
    {"GR1", no_xs, "node 'grad' (Gradient)", "names no xs"},
    {"GR1", no_y, "node 'grad' (Gradient)", "names no y"},
    {"GR2", x_twice, "node 'grad' (Gradient)", "names 'w' twice"},
    {"GR3", x_unknown, "node 'grad' (Gradient)", "names 'nobody'"},
    {"GR3", y_unknown, "node 'grad' (Gradient)", "'w_next', which nothing before it defines"},
    {"GR4", missing_input, "node 'grad' (Gradient)", "has 1 inputs for 2 names"},
    {"GR5", spare_output, "node 'grad' (Gradient)", "has 2 outputs for 1 xs"},
    {"GR6", empty_input, "node 'grad' (Gradient)", "input 1 has an empty name"},
    {"GR7", no_path, "node 'grad' (Gradient)", "'h' does not depend on 'k'"},
    {"GR8", dependent, "node 'grad' (Gradient)", "'h' is computed from"},
    {"GR9", no_path_at_all, "node 'grad' (Gradient)", "depends on none"},
    {"ST2", import_twice, "opset_import", "imported twice"},
    {"ST2", import_zero, "opset_import 'local'", "version 0 is below 1"},
    {"ST2", import_late, "opset_import", "99 is newer than"},
    {"ST3", long_domain, "node 'add' (Add)", "'ai.onnx'"},
    {"ST4", new_type, "initializer 'e'", "float4e2m1 needs IR version 11, the model says 10"},
    {"ST5", same_node_keys, "node 'add' (Add)", "'k' occurs twice"},
    {"ST6", hiding, "graph 'then_branch', input 'x'", "hides"},
    {"ST7", nested_default, "graph 'then_branch', initializer 'd'", "also an input"},
    {"ST8", info_of_nothing, "graph 'g', value_info 'nothing'", "no such value"},
    {"ST8", info_contradicts, "graph 'g', value_info 'x'", "another size"},
    {"ST9", output_twice, "graph 'g', output 'y'", "same name"},
    {"ST9", unknown_elem, "graph 'g', input 'c'", "element type is 77"},
    {"ST10", same_nodes, "node 'add' (Constant)", "same name"},
    {"ST10", silent_node, "node 'const' (Constant)", "no output with a name"},
    {"ST11", reference_outside, "attribute 'value'", "not inside a function"},
    {"ST12", unknown_kind, "attribute 'q'", "type is 99"},
    {"ST13", function_output, "function 'F'", "'b2' nowhere"},
    {"ST13", call_inputs, "node 'call' (F)", "has 2 inputs, the function it calls takes 1"},
    {"ST13", call_overload, "node 'call' (F)", "no function of the model has the overload 'fast'"},
    {"ST13", call_attribute, "node 'call' (F)", "no value to the function's attribute 'alpha'"},
    {"ST15", long_raw, "initializer 'w'", "has 12 bytes, type and shape need only 8"},
    {"ST15", six_many, "initializer 'w'", "has 3 values, type and shape need exactly 2"},
    {"ST15", four_padding, "initializer 'w'", "bits after the last element"},
    {"ST15", bad_bool, "initializer 'w'", "boolean 1 is 2"},
    {"ST15", bad_byte, "initializer 'w'", "value 1 is 300, not between 0 and 255"},
    {"ST16", external_length, "initializer 'w'", "length is 9, type and shape need 8"},
    {"ST16", external_offset, "initializer 'w'", "'0x10' is not a plain number"},
    {"ST17", sparse_huge, "sparse_initializer 's'", "63 bits"},
    {"ST18", default_differs, "initializer 'w'", "another size"},
    {"ST19", annotation_of_nothing, "quantization_annotation 'nothing'", "no such tensor"},
    {"ST21", no_configuration, "node 'add' (Add)", "no configuration 'triple'"},
    {"ST21", no_device, "node 'add' (Add)", "device 2, there are 2"},
    {"ST24", preview_unknown, "node 'grad' (Gradiant)", "did you mean 'ai.onnx.preview.training.Gradient'?"},
    {"ST26", norm_attribute, "node 'add' (LayerNormalization)", "no attribute 'own'"},
};
/* clang-format on */

static struct cm_findings findings_of(struct cm_arena *arena, const struct cm_model_proto *model,
                                      unsigned flags)
{
    struct cm_findings findings = {0};
    struct cm_error err = {0};

    struct cm_external_files *files = cm_external_files_new(arena, cm_str(TESTS_DIR), 0, false);
    CHECK_OK(cm_check_model(model, files, flags, arena, &findings, &err), &err);
    return findings;
}

static const struct cm_finding *find(const struct cm_findings *findings, const struct row *row)
{
    for (size_t i = 0; i < findings->count; i++) {
        const struct cm_finding *finding = &findings->items[i];

        if (strcmp(finding->rule, row->rule) == 0 && strstr(finding->place.data, row->place) &&
            strstr(finding->reason.data, row->reason))
            return finding;
    }
    return NULL;
}

static const struct cm_check_rule *rule_of(const char *id)
{
    for (size_t i = 0; i < cm_check_rule_count(); i++) {
        if (strcmp(cm_check_rule_at(i)->id, id) == 0)
            return cm_check_rule_at(i);
    }
    return NULL;
}

static void print_findings(const struct row *row, const struct cm_findings *findings)
{
    print_message("%s '%s' '%s' was not found among\n", row->rule, row->place, row->reason);
    for (size_t i = 0; i < findings->count; i++)
        print_message("  %s %s: %s\n", findings->items[i].rule, findings->items[i].place.data,
                      findings->items[i].reason.data);
}

static void check_sample(struct cm_arena *arena)
{
    const struct cm_findings findings = findings_of(arena, sample_model(arena), CM_CHECK_STRICT);

    for (size_t i = 0; i < findings.count; i++)
        print_message("%s %s: %s\n", findings.items[i].rule, findings.items[i].place.data,
                      findings.items[i].reason.data);
    CHECK_INT(findings.count, 0);
}

void test_check_rules__a_good_model_has_no_findings(void)
{
    check_in_arena(check_sample);
}

static void check_rows(struct cm_arena *arena)
{
    int missing = 0;

    for (size_t i = 0; i < CM_COUNT(rows); i++) {
        struct parts p = parts_of(arena);

        rows[i].breaks(&p);
        for (unsigned flags = 0; flags <= CM_CHECK_STRICT; flags++) {
            const struct cm_findings findings = findings_of(arena, p.model, flags);
            const struct cm_finding *finding = find(&findings, &rows[i]);
            const struct cm_check_rule *rule = rule_of(rows[i].rule);

            if (!finding) {
                print_findings(&rows[i], &findings);
                missing++;
                continue;
            }
            CHECK_INT(finding->severity, flags ? rule->strict_severity : rule->severity);
        }
    }
    CHECK_INT(missing, 0);
}

void test_check_rules__each_broken_rule_is_found_and_told_with_its_place(void)
{
    check_in_arena(check_rows);
}

void test_check_rules__every_rule_of_the_table_is_broken_here(void)
{
    for (size_t i = 0; i < cm_check_rule_count(); i++) {
        bool covered = false;

        for (size_t k = 0; k < CM_COUNT(rows); k++)
            covered = covered || strcmp(rows[k].rule, cm_check_rule_at(i)->id) == 0;
        /* those of types are broken in tests/unit/api/test_check_types.c, what a model holds of a
         * training in tests/unit/convert/test_hold.c and tests/cli/modes.sh */
        if (!covered && strncmp(cm_check_rule_at(i)->id, "TY", 2) != 0 &&
            strcmp(cm_check_rule_at(i)->id, "TR20") != 0 &&
            strcmp(cm_check_rule_at(i)->id, "ST30") != 0)
            fail_msg("no row breaks %s", cm_check_rule_at(i)->id);
    }
}
