/* Models under other opset versions, through the public API. */
// SPDX-License-Identifier: Apache-2.0
#include "cameo.h"
#include "check.h"

#include <string.h>

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != CAMEO_OK)                                                                    \
            fail_msg("%s: %s", #call, err.message);                                                \
    } while (0)
#define REFUSED(call, wanted, part)                                                                \
    do {                                                                                           \
        if ((call) != (wanted) || !strstr(err.message, (part)))                                    \
            fail_msg("%s: %s", #call, err.message);                                                \
    } while (0)

static const char squeezed[] = "<ir_version: 7, opset_import: [\"\" : 12]>\n"
                               "g (float[2,1] x) => (float[2] y) { [s] r = Relu(x)"
                               " [q] y = Squeeze<axes = [1]>(r) }";

static struct cameo_model *load(const char *text)
{
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model;
    struct cameo_error err;

    options.format = CAMEO_FORMAT_TEXT;
    OK(cameo_model_load_memory(text, strlen(text), &options, &model, &err));
    return model;
}

static enum cameo_status convert(struct cameo_model *model, int64_t version,
                                 const struct cameo_conversion **report, struct cameo_error *err)
{
    struct cameo_convert_options options = CAMEO_CONVERT_OPTIONS_INIT;
    struct cameo_target_opset target = CAMEO_TARGET_OPSET_INIT;

    target.version = version;
    options.opsets = &target;
    options.opset_count = 1;
    return cameo_model_convert(model, &options, report, err);
}

void test_convert__tells_which_operators_changed_and_how(void)
{
    struct cameo_model *model = load(squeezed);
    const struct cameo_conversion *report;
    struct cameo_error err;

    OK(convert(model, 18, &report, &err));
    CHECK_INT(report->change_count, 1);
    CHECK_STRING(report->changes[0]->op.data, "Squeeze");
    CHECK_INT(report->changes[0]->from, 11);
    CHECK_INT(report->changes[0]->to, 13);
    CHECK_INT(report->changes[0]->nodes, 1);
    CHECK_STRING(report->changes[0]->how.data, "axes are an input");
    CHECK_INT(report->nodes_changed, 1);
    CHECK_INT(report->nodes_kept, 1);
    CHECK_INT(cameo_findings_violations(report->findings), 0);
    CHECK_INT(cameo_model_opset(model, 0)->version, 18);
    CHECK_INT(cameo_model_summary(model)->ir_version, 8);
    CHECK_INT(cameo_model_summary(model)->node_count, 3); /* and a Constant */
    OK(convert(model, 12, &report, &err));
    CHECK_INT(cameo_model_opset(model, 0)->version, 12);
    CHECK_INT(cameo_model_summary(model)->ir_version, 7);
    CHECK_INT(cameo_model_summary(model)->node_count, 2);
    cameo_model_free(model);
}

void test_convert__goes_to_the_newest_opset_when_none_is_named(void)
{
    struct cameo_model *model = load(squeezed);
    struct cameo_error err;

    OK(cameo_model_convert(model, NULL, NULL, &err));
    CHECK_INT(cameo_model_opset(model, 0)->version, cameo_newest_opset(""));
    cameo_model_free(model);
}

void test_convert__changes_nothing_where_a_node_has_no_form(void)
{
    struct cameo_model *model = load("<ir_version: 8, opset_import: [\"\" : 18]>\n"
                                     "g (float[2,2] x, int64[1] axes) => (float y, float[2,1] z) {"
                                     " [u] y = Det(x)  [r] z = ReduceSum(x, axes) }");
    const struct cameo_conversion *report;
    struct cameo_error err;

    REFUSED(convert(model, 10, &report, &err), CAMEO_UNSUPPORTED, "Det");
    CHECK_INT(cameo_findings_violations(report->findings), 2);
    CHECK_STRING(cameo_findings_at(report->findings, 0)->rule.data, "convert");
    CHECK_STRING(cameo_findings_at(report->findings, 0)->place.data, "node 'u' (Det)");
    CHECK_STRING(cameo_findings_at(report->findings, 0)->reason.data,
                 "Det is an operator since opset 11");
    CHECK_STRING(cameo_findings_at(report->findings, 1)->place.data, "node 'r' (ReduceSum)");
    CHECK_STRING(cameo_findings_at(report->findings, 1)->reason.data,
                 "ReduceSum version 11 needs 'axes' to be constant, which it is not here");
    CHECK_STRING(cameo_findings_headline(report->findings).data,
                 "the model cannot be converted, for 2 reasons");
    CHECK_INT(cameo_model_opset(model, 0)->version, 18);
    OK(convert(model, 13, &report, &err));
    CHECK_INT(report->nodes_changed, 0);
    cameo_model_free(model);
}

void test_convert__refuses_versions_that_do_not_exist(void)
{
    struct cameo_model *model = load(squeezed);
    struct cameo_convert_options options = CAMEO_CONVERT_OPTIONS_INIT;
    struct cameo_target_opset target = CAMEO_TARGET_OPSET_INIT;
    struct cameo_error err;

    REFUSED(convert(model, 0, NULL, &err), CAMEO_BAD_ARGUMENT, "no opset 0");
    REFUSED(convert(model, 1000, NULL, &err), CAMEO_BAD_ARGUMENT, "no opset 1000");
    target.domain = "ai.onnx.ml";
    target.version = 1;
    options.opsets = &target;
    options.opset_count = 1;
    REFUSED(cameo_model_convert(model, &options, NULL, &err), CAMEO_BAD_ARGUMENT,
            "does not import domain 'ai.onnx.ml'");
    options.opsets = NULL;
    REFUSED(cameo_model_convert(model, &options, NULL, &err), CAMEO_BAD_ARGUMENT, "'opsets'");
    cameo_model_free(model);
}
