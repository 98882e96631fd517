/* Functions inlined, through the public API. */
// SPDX-License-Identifier: Apache-2.0
#include "cameo.h"
#include "check.h"

#include <string.h>

static const char twice[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"local\" : 1]>\n"
    "twice (float[2] x) => (float[2] y) { t = local.f(x)  y = Softsign(t) }\n"
    "<domain: \"local\", opset_import: [\"\" : 17]>\n"
    "f (x) => (y) { t = Add(x, x)  y = Relu(t) }";

static struct cameo_model *load(const char *text)
{
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model;
    struct cameo_error err;

    options.format = CAMEO_FORMAT_TEXT;
    if (cameo_model_load_memory(text, strlen(text), &options, &model, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    return model;
}

static size_t count(const struct cameo_model *model, const char *name)
{
    size_t n = 0;

    for (size_t i = 0; i < cameo_model_summary(model)->operator_count; i++)
        if (strcmp(cameo_model_operator(model, i)->name.data, name) == 0)
            n += cameo_model_operator(model, i)->count;
    return n;
}

void test_expand_api__inlines_functions_and_tells_what_it_did(void)
{
    const struct cameo_expansion *report;
    struct cameo_model *model = load(twice), *made;
    struct cameo_error err;

    CHECK_INT(cameo_model_expand(model, NULL, &made, &report, &err), CAMEO_OK);
    CHECK_INT(report->call_count, 1);
    CHECK_INT(report->function_count, 1);
    CHECK_INT(report->operator_count, 0);
    CHECK_INT(report->nodes_before, 2);
    CHECK_INT(report->nodes, 3);
    CHECK_INT(cameo_model_summary(made)->function_count, 0);
    CHECK_INT(count(made, "Relu"), 1);
    cameo_model_free(made);
    cameo_model_free(model);
}

void test_expand_api__core_leaves_core_operators_that_a_session_runs_alone(void)
{
    struct cameo_expand_options options = CAMEO_EXPAND_OPTIONS_INIT;
    struct cameo_session_options how = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_model *model = load(twice), *made;
    struct cameo_session *session;
    struct cameo_error err;

    options.core = how.core_only = true;
    CHECK_INT(cameo_model_expand(model, &options, &made, NULL, &err), CAMEO_OK);
    for (size_t i = 0; i < cameo_model_summary(made)->operator_count; i++)
        CHECK_INT(cameo_operator_level("", cameo_model_operator(made, i)->name.data),
                  CAMEO_LEVEL_CORE);
    CHECK_INT(cameo_session_new(model, &how, &session, &err), CAMEO_UNSUPPORTED);
    CHECK(strstr(err.message, "Softsign") && strstr(err.message, "not a core operator"));
    CHECK_INT(cameo_session_new(made, &how, &session, &err), CAMEO_OK);
    cameo_session_free(session);
    cameo_model_free(made);
    cameo_model_free(model);
}

void test_expand_api__only_what_is_named_goes_and_unknown_names_are_refused(void)
{
    struct cameo_expand_options options = CAMEO_EXPAND_OPTIONS_INIT;
    struct cameo_model *model = load(twice), *made;
    struct cameo_error err;

    options.only = "ai.onnx::Softsign";
    CHECK_INT(cameo_model_expand(model, &options, &made, NULL, &err), CAMEO_OK);
    CHECK_INT(count(made, "Softsign"), 0);
    CHECK_INT(cameo_model_summary(made)->function_count, 1);
    cameo_model_free(made);
    options.only = "Softplus";
    CHECK_INT(cameo_model_expand(model, &options, &made, NULL, &err), CAMEO_BAD_ARGUMENT);
    CHECK(!made && strstr(err.message, "Softplus"));
    CHECK_INT(cameo_operator_level("ai.cameo", "ConvGrad"), CAMEO_LEVEL_FUSED);
    CHECK_INT(cameo_operator_level("nobody", "ConvGrad"), CAMEO_LEVEL_NONE);
    cameo_model_free(model);
}
