/* A checkpoint of another framework brought into a model, by the public header. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api_case.h"
#include "onnx/model_case.h"

static const char line[] = "<ir_version: 10, opset_import: [\"\" : 17]>\n"
                           "line (float[n,2] x) => (float[n,3] y)\n"
                           "<float[2,3] w = {1, 2, 3, 4, 5, 6}, float[3] b = {0, 0, 0}>\n"
                           "{ h = MatMul (x, w)\n y = Add (h, b) }";

/* fc.weight, 3 by 2, and fc.bias as a framework would save them. */
static void save(const char *path)
{
    const char *const names[] = {"module.fc.weight", "module.fc.bias"};
    const int64_t dims[] = {3, 2};
    struct cameo_value *values[2];
    struct cameo_error err;

    for (int i = 0; i < 2; i++) {
        OK(cameo_value_new(CAMEO_FLOAT, 2 - i, dims, &values[i], &err));
        for (int k = 0; k < (i ? 3 : 6); k++)
            ((float *)cameo_value_mutable_data(values[i]))[k] = (float)(10 * (i + 1) + k);
    }
    OK(cameo_arrays_save(path, names, (const struct cameo_value *const *)values, 2, &err));
    cameo_value_free(values[0]);
    cameo_value_free(values[1]);
}

static void weights(struct cm_arena *arena)
{
    const char *path = case_path(arena, case_folder(arena), "net.safetensors");
    struct cameo_import_options options = CAMEO_IMPORT_OPTIONS_INIT;
    struct cameo_model *model = load_text(line);
    const struct cameo_import_report *report;
    struct cameo_error err;
    float got[6];

    save(path);
    options.weights_only = true;
    OK(cameo_model_import(model, path, &options, &report, &err));
    CHECK_INT(report->match_count, 2);
    CHECK_STRING(report->matches[0].initializer.data, "w");
    CHECK_STRING(report->matches[0].source.data, "module.fc.weight");
    CHECK(report->preparation == NULL);
    OK(cameo_model_read_initializer(model, 0, got, sizeof got, &err));
    for (int r = 0; r < 2; r++)
        for (int c = 0; c < 3; c++)
            CHECK(got[3 * r + c] == (float)(10 + 2 * c + r)); /* transposed */
    cameo_model_free(model);
}

void test_importing__weights_of_a_checkpoint_replace_those_of_the_model(void)
{
    check_in_arena(weights);
}

static void training(struct cm_arena *arena)
{
    const char *path = case_path(arena, case_folder(arena), "net.safetensors");
    struct cameo_prepare_options how = CAMEO_PREPARE_OPTIONS_INIT;
    struct cameo_import_options options = CAMEO_IMPORT_OPTIONS_INIT;
    struct cameo_model *model = load_text(line);
    const struct cameo_import_report *report;
    struct cameo_error err;

    save(path);
    how.loss = "mse";
    options.prepare = &how;
    REFUSED(cameo_model_import(model, path, &options, &report, &err), CAMEO_UNSUPPORTED,
            "does not say which optimizer");
    CHECK_INT(cameo_findings_violations(report->findings), 1);
    cameo_model_free(model);
    model = load_text(line);
    options.settings = "{\"optimizer\": \"sgd\", \"lr\": 0.5, \"rates\": [[0.5], [0.25]]}";
    OK(cameo_model_import(model, path, &options, &report, &err));
    CHECK_INT(report->preparation->choice_count, 2);
    CHECK(report->preparation->choices[0]->trained && report->preparation->choices[1]->trained);
    CHECK_INT(cameo_model_summary(model)->training_count, 1);
    cameo_model_free(model);
}

void test_importing__what_the_checkpoint_lacks_is_given_as_json(void)
{
    check_in_arena(training);
}
