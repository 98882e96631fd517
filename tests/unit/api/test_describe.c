/* Loading models and asking what they are made of. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api_case.h"
#include "cameo.h"
#include "check.h"

#define MODELS TESTS_DIR "/models/"

static struct cameo_model *load(const char *path)
{
    struct cameo_error err;
    struct cameo_model *model;

    if (cameo_model_load(path, NULL, &model, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    CHECK_INT(err.status, CAMEO_OK);
    CHECK_STRING(err.message, "");
    return model;
}

void test_version__header_library_and_build_agree(void)
{
    char text[32];

    snprintf(text, sizeof text, "%d.%d.%d", CAMEO_VERSION_MAJOR, CAMEO_VERSION_MINOR,
             CAMEO_VERSION_PATCH);
    CHECK_STRING(cameo_version_string(), text);
    CHECK_INT(cameo_version_number(), CAMEO_VERSION_NUMBER);
}

void test_names__are_there_for_every_number(void)
{
    CHECK_STRING(cameo_status_name(CAMEO_BAD_MODEL), "bad model");
    CHECK_STRING(cameo_status_name((enum cameo_status)77), "unknown status");
    CHECK_STRING(cameo_dtype_name(CAMEO_FLOAT8E4M3FN), "float8e4m3fn");
    CHECK_STRING(cameo_dtype_name((enum cameo_dtype)99), cameo_dtype_name(CAMEO_UNDEFINED));
}

void test_describe__a_linear_model(void)
{
    struct cameo_model *model = load(MODELS "linear.onnx");
    const struct cameo_summary *summary = cameo_model_summary(model);

    CHECK_STRING(summary->graph_name.data, "linear");
    CHECK_STRING(summary->producer_name.data, "cameo-tests");
    CHECK_INT(summary->opset_count, 1);
    CHECK_INT(cameo_model_opset(model, 0)->version, 21);
    CHECK_INT(summary->node_count, 1);
    CHECK_INT(summary->parameter_count, 9);
    CHECK_INT(summary->parameter_bytes, 36);

    const struct cameo_value_info *input = cameo_model_input(model, 0);
    CHECK_STRING(input->name.data, "X");
    CHECK_STRING(input->type.data, "float[n,2]");
    CHECK_INT(input->dtype, CAMEO_FLOAT);
    CHECK_INT(input->rank, 2);
    CHECK_INT(input->dims[0].size, -1);
    CHECK_STRING(input->dims[0].symbol.data, "n");
    CHECK_INT(input->dims[1].size, 2);
    CHECK(!input->has_default);
    CHECK_STRING(cameo_model_output(model, 0)->type.data, "float[n,3]");
    CHECK_STRING(cameo_model_operator(model, 0)->name.data, "Gemm");
    CHECK_INT(cameo_model_operator(model, 0)->in_graph, 1);
    cameo_model_free(model);
}

void test_describe__indices_past_the_count_give_null(void)
{
    struct cameo_model *model = load(MODELS "linear.onnx");

    CHECK(cameo_model_opset(model, 1) == NULL);
    CHECK(cameo_model_metadata(model, 0) == NULL);
    CHECK(cameo_model_input(model, 1) == NULL);
    CHECK(cameo_model_output(model, SIZE_MAX) == NULL);
    CHECK(cameo_model_initializer(model, 2) == NULL);
    CHECK(cameo_model_operator(model, 1) == NULL);
    CHECK(cameo_model_function(model, 0) == NULL);
    CHECK(cameo_model_training(model, 0) == NULL);
    CHECK(cameo_model_external_file(model, 0) == NULL);
    CHECK(cameo_model_note(model, 0) == NULL);
    cameo_model_free(model);
}

void test_describe__notes_say_which_rules_a_model_breaks_without_harm(void)
{
    static const char text[] =
        "<ir_version: 8, opset_import: [\"\" : 17, \"l\" : 1]>\n"
        "main (float[2] x, bool c) => (float[2] y) {\n"
        "  y = Add(z, x)\n"
        "  z = If (c) <then_branch = yes () => (float[2] r) { [late] r = Neg(s) s = Abs(x) },\n"
        "              else_branch = no () => (float[2] r) { r = Neg(x) }>\n"
        "}\n";
    struct cameo_model *model = load_text(text);

    CHECK_STRING(cameo_model_note(model, 0)->data,
                 "the nodes of graph 'main' are not in topological order: node making 'y' (Add) "
                 "reads 'z', which a later node makes; they are sorted in memory");
    CHECK_STRING(cameo_model_note(model, 1)->data,
                 "the nodes of graph 'yes' are not in topological order: node 'late' (Neg) reads "
                 "'s', which a later node makes; they are sorted in memory");
    CHECK(cameo_model_note(model, 2) == NULL);
    cameo_model_free(model);
}

void test_describe__initializers_are_found_by_name(void)
{
    struct cameo_model *model = load(MODELS "linear.onnx");
    size_t index = 77;

    CHECK(cameo_model_find_initializer(model, "B", &index));
    const struct cameo_initializer *bias = cameo_model_initializer(model, index);
    CHECK_STRING(bias->name.data, "B");
    CHECK_INT(bias->dtype, CAMEO_FLOAT);
    CHECK_INT(bias->rank, 1);
    CHECK_INT(bias->dims[0], 3);
    CHECK_INT(bias->elements, 3);
    CHECK_INT(bias->bytes, 12);
    CHECK_INT(bias->training, -1);
    CHECK(!bias->is_external && !bias->sparse && !bias->is_state);
    index = 77;
    CHECK(!cameo_model_find_initializer(model, "C", &index));
    CHECK_INT(index, 77);
    cameo_model_free(model);
}

void test_describe__says_which_operators_draw(void)
{
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model;
    struct cameo_error err;
    const char text[] = "<ir_version: 10, opset_import: [\"\": 21]>\n"
                        "g (float[2] x) => (float[2] z) {\n"
                        "  y = Dropout (x)\n  w = RandomNormalLike (y)\n  z = Add (y, w)\n}\n";

    options.format = CAMEO_FORMAT_TEXT;
    CHECK_INT(cameo_model_load_memory(text, sizeof text - 1, &options, &model, &err), CAMEO_OK);
    for (size_t i = 0; i < 3; i++) {
        const struct cameo_operator *op = cameo_model_operator(model, i);
        CHECK_INT(op->is_random, strcmp(op->name.data, "RandomNormalLike") == 0);
    }
    cameo_model_free(model);
}

void test_describe__nested_graphs_and_functions_count_apart(void)
{
    struct cameo_model *model = load(MODELS "branches.onnx");

    CHECK_INT(cameo_model_summary(model)->node_count, 1);
    CHECK_INT(cameo_model_summary(model)->nested_node_count, 2);
    CHECK_INT(cameo_model_operator(model, 0)->in_nested + cameo_model_operator(model, 1)->in_nested,
              1); /* Abs, If, Neg, in this order: one use each */
    cameo_model_free(model);

    model = load(MODELS "functions.onnx");
    const struct cameo_function *function = cameo_model_function(model, 0);
    CHECK_INT(cameo_model_summary(model)->function_node_count, 3);
    CHECK_STRING(function->domain.data, "local");
    CHECK_STRING(function->name.data, "Leaky");
    CHECK_STRING(function->overload.data, "");
    CHECK_INT(function->input_count, 1);
    CHECK_INT(function->output_count, 1);
    CHECK_INT(function->attribute_count, 2);
    CHECK_INT(function->node_count, 3);
    cameo_model_free(model);
}

void test_describe__training_says_what_a_step_needs_and_writes(void)
{
    struct cameo_model *model = load(MODELS "training_mlp_adam_initialized.onnx");
    const struct cameo_training *training = cameo_model_training(model, 0);
    size_t index;

    CHECK_INT(cameo_model_summary(model)->training_count, 1);
    CHECK_INT(training->initialization_node_count, 5);
    CHECK_INT(training->algorithm_node_count, 4);
    CHECK_INT(training->input_count, 1);
    CHECK_STRING(training->inputs[0]->name.data, "label");
    CHECK_STRING(training->inputs[0]->type.data, "int64[N]");
    CHECK_INT(training->initialization_binding_count, 5);
    CHECK_STRING(training->initialization_bindings[0].key.data, "W1");
    CHECK_STRING(training->initialization_bindings[0].value.data, "iW1");
    CHECK_INT(training->update_binding_count, 13);
    CHECK_INT(training->state_count, 13);
    CHECK_STRING(training->states[0].data, "W1");
    CHECK_INT(cameo_model_summary(model)->training_node_count, 9);
    CHECK(cameo_model_find_initializer(model, "T", &index));
    CHECK(cameo_model_initializer(model, index)->is_state);
    CHECK_INT(cameo_model_initializer(model, index)->training, 0);
    CHECK(cameo_model_summary(model)->training_parameter_bytes > 0);
    cameo_model_free(model);
}

void test_describe__external_files_are_listed(void)
{
    struct cameo_model *model = load(MODELS "external.onnx");
    const struct cameo_external_file *file = cameo_model_external_file(model, 0);

    CHECK_INT(cameo_model_summary(model)->external_file_count, 1);
    CHECK_STRING(file->location.data, "weights.bin");
    CHECK_INT(file->tensor_count, 1);
    CHECK_INT(file->bytes, 16);
    CHECK(cameo_model_initializer(model, 0)->is_external);
    CHECK_STRING(cameo_model_initializer(model, 0)->location.data, "weights.bin");
    cameo_model_free(model);
}

void test_describe__types_read_as_people_write_them(void)
{
    struct cameo_model *model =
        load_text("<ir_version: 10, opset_import: [\"\" : 21]>\n"
                  "g (float scalar, float[] any, int64[?,3] open, seq(float[N]) list,\n"
                  "   optional(seq(bool[])) maybe, map(int64, string[2]) table) => (float y) {\n"
                  "  y = Identity(scalar)\n"
                  "}");
    static const char *const types[] = {
        "float",
        "float[]",
        "int64[?,3]",
        "seq(float[N])",
        "optional(seq(bool[]))",
        "map(int64,string[2])",
    };

    for (size_t i = 0; i < 6; i++)
        CHECK_STRING(cameo_model_input(model, i)->type.data, types[i]);
    CHECK_INT(cameo_model_input(model, 0)->rank, 0);
    CHECK_INT(cameo_model_input(model, 1)->rank, -1);
    CHECK_INT(cameo_model_input(model, 3)->dtype, CAMEO_UNDEFINED);
    CHECK_INT(cameo_model_input(model, 3)->rank, -1);
    cameo_model_free(model);
}

void test_describe__defaults_and_metadata_are_seen(void)
{
    struct cameo_model *model =
        load_text("<ir_version: 10, opset_import: [\"\" : 21, \"ai.onnx.ml\" : 3],\n"
                  " metadata_props: [\"who\": \"me\", \"why\": \"test\"], model_version: 4>\n"
                  "g (float[2] x, float[2] w = {1, 2}) => (float[2] y) { y = Add(x, w) }");

    CHECK(!cameo_model_input(model, 0)->has_default);
    CHECK(cameo_model_input(model, 1)->has_default);
    CHECK_INT(cameo_model_summary(model)->model_version, 4);
    CHECK_INT(cameo_model_summary(model)->metadata_count, 2);
    CHECK_STRING(cameo_model_metadata(model, 1)->key.data, "why");
    CHECK_STRING(cameo_model_metadata(model, 1)->value.data, "test");
    CHECK_STRING(cameo_model_opset(model, 1)->domain.data, "ai.onnx.ml");
    cameo_model_free(model);
}

void test_load__failures_say_what_and_where(void)
{
    static const char broken[] = {0x08, 0x08, 0x3a, 0x50, 0x0a};
    struct cameo_model *model = (struct cameo_model *)&model;
    struct cameo_error err;

    CHECK_INT(cameo_model_load(MODELS "none.onnx", NULL, &model, &err), CAMEO_NOT_FOUND);
    CHECK(strstr(err.message, "none.onnx") != NULL);
    CHECK(model == NULL);
    CHECK_INT(cameo_model_load_memory(broken, sizeof broken, NULL, &model, &err), CAMEO_BAD_MODEL);
    CHECK_INT(err.status, CAMEO_BAD_MODEL);
    CHECK(err.message[0] != 0);
    CHECK_INT(cameo_model_load(NULL, NULL, &model, NULL), CAMEO_BAD_ARGUMENT);
    CHECK_INT(cameo_model_load_memory(NULL, 1, NULL, &model, NULL), CAMEO_BAD_ARGUMENT);
    cameo_model_free(NULL);
}

void test_load__options_without_their_size_are_refused(void)
{
    struct cameo_load_options options = {0};
    struct cameo_model *model;
    struct cameo_error err;

    CHECK_INT(cameo_model_load(MODELS "linear.onnx", &options, &model, &err), CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "_INIT") != NULL);
    options.struct_size = sizeof options;
    options.format = (enum cameo_format)9;
    CHECK_INT(cameo_model_load(MODELS "linear.onnx", &options, &model, &err), CAMEO_BAD_ARGUMENT);
}

void test_load__a_shorter_option_struct_of_an_older_program_is_accepted(void)
{
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model;

    options.memory_limit = 1; /* past what struct_size covers, so not looked at */
    options.struct_size = offsetof(struct cameo_load_options, memory_limit);
    CHECK_INT(cameo_model_load(MODELS "linear.onnx", &options, &model, NULL), CAMEO_OK);
    cameo_model_free(model);
}

void test_load__a_memory_limit_is_honoured(void)
{
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model;
    struct cameo_error err;

    options.memory_limit = 2000;
    CHECK_INT(cameo_model_load(MODELS "linear.onnx", &options, &model, &err), CAMEO_LIMIT);
    CHECK(strstr(err.message, "2000") != NULL);
    options.memory_limit = 1 << 20;
    options.copy_files = true;
    CHECK_INT(cameo_model_load(MODELS "linear.onnx", &options, &model, &err), CAMEO_OK);
    cameo_model_free(model);
}

void test_describe__weights_outside_initializers_are_counted(void)
{
    static const char text[] =
        "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.ml\" : 3]>\n"
        "g (float[N,2] x, bool c) => (float[N,1] y, float[3] z) {\n"
        "  w = Constant<value = float[2,2] {1, 2, 3, 4}>() h = MatMul(x, w)\n"
        "  y = ai.onnx.ml.LinearRegressor<coefficients = [1.0, 2.0], intercepts = [0.5]>(h)\n"
        "  z = If(c) <then_branch = a () => (float[3] p) <float[3] p = {1, 2, 3}> { },\n"
        "             else_branch = b () => (float[3] q) { q = Constant<value_floats = [1.0]>() "
        "}>\n"
        "}";
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model;
    struct cameo_error err;

    options.format = CAMEO_FORMAT_TEXT;
    if (cameo_model_load_memory(text, strlen(text), &options, &model, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    const struct cameo_summary *summary = cameo_model_summary(model);
    CHECK_INT(summary->parameter_count, 0);
    CHECK_INT(summary->constant_weights.tensor_count, 2);
    CHECK_INT(summary->constant_weights.count, 5);
    CHECK_INT(summary->constant_weights.bytes, 20);
    CHECK_INT(summary->attribute_weights.count, 3);
    CHECK_INT(summary->nested_weights.count, 3);
    cameo_model_free(model);
}
