/* Models as the passes leave them, through the public API. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api_case.h"
#include "api/lend.h"
#include "base/memory.h"
#include "cameo.h"
#include "check.h"

#include <string.h>

/* A sum of constants, and one node that is left. */
static const char sums[] =
    "<ir_version: 8, opset_import: [\"\" : 17], producer_name: \"somebody\">\n"
    "sums (float[2] x) => (float[2] y) <float[2] a = {1, 2}, float[2] b = {10, 20}>\n"
    "{ c = Add(a, b)  d = Mul(c, c)  y = Sub(x, d) }";

void test_optimize__writes_what_passes_leave_and_tells_what_each_did(void)
{
    struct cameo_optimize_options options = CAMEO_OPTIMIZE_OPTIONS_INIT;
    const struct cameo_optimization *report;
    struct cameo_model *model = load_text(sums), *made;
    struct cameo_error err;
    size_t folded = 0;

    options.passes = "fold";
    OK(cameo_model_optimize(model, &options, &made, &report, &err));
    CHECK_INT(report->nodes_before, 3);
    CHECK_INT(report->nodes, 1);
    CHECK_INT(report->nodes_inlined, 1);
    CHECK_INT(report->change_count, 0);
    for (size_t i = 0; i < report->pass_count; i++) {
        if (strcmp(report->passes[i]->name, "fold") == 0 && !report->passes[i]->skipped)
            folded += report->passes[i]->nodes_before - report->passes[i]->nodes_after;
    }
    CHECK_INT(folded, 2);
    CHECK_INT(cameo_model_summary(made)->node_count, 1);
    CHECK_STRING(cameo_model_summary(made)->producer_name.data, "somebody");
    CHECK_STRING(cameo_model_input(made, 0)->name.data, "x");
    cameo_model_free(made);

    options.passes = NULL;
    options.without = "fold";
    options.until = "gradients";
    OK(cameo_model_optimize(model, &options, &made, &report, &err));
    CHECK_STRING(report->passes[report->pass_count - 1]->name, "gradients");
    cameo_model_free(made);
    OK(cameo_model_optimize(model, NULL, &made, NULL, &err));
    cameo_model_free(made);
    cameo_model_free(model);
}

void test_optimize__gives_the_same_results(void)
{
    struct cameo_model *model = load_text(sums), *made;
    struct cameo_session *session;
    struct cameo_error err;
    const float x[] = {1, 2};
    float y[2];
    const struct cameo_feed feed =
        cameo_feed_tensor("x", lend(CAMEO_FLOAT, 1, (const int64_t[]){2}, x, sizeof x));
    struct cameo_fetch fetch =
        cameo_fetch_tensor(NULL, lend(CAMEO_FLOAT, 1, (const int64_t[]){2}, y, sizeof y));

    OK(cameo_model_optimize(model, NULL, &made, NULL, &err));
    OK(cameo_session_new(made, NULL, &session, &err));
    OK(cameo_session_run(session, &feed, 1, &fetch, 1, NULL, &err));
    CHECK(y[0] == 1 - 121 && y[1] == 2 - 484);
    cameo_session_free(session);
    cameo_model_free(made);
    cameo_model_free(model);
}

void test_optimize__passes_are_listed_and_others_refused(void)
{
    struct cameo_optimize_options options = CAMEO_OPTIMIZE_OPTIONS_INIT;
    struct cameo_pass pass = CAMEO_PASS_INIT;
    struct cameo_model *model = load_text(sums), *made;
    struct cameo_error err;
    bool fold = false;
    size_t count = 0;

    for (; cameo_pass(count, &pass); count++) {
        CHECK(pass.name[0] && pass.summary[0]);
        fold = fold || (strcmp(pass.name, "fold") == 0 && !pass.required && !pass.on_request);
    }
    CHECK(fold && count >= 3);
    CHECK(!cameo_pass(0, NULL));
    CHECK(cameo_prepare_pass(0, &pass) && pass.required);
    CHECK(!cameo_prepare_pass(1000, &pass));
    options.passes = "fold,unfold";
    REFUSED(cameo_model_optimize(model, &options, &made, NULL, &err), CAMEO_BAD_ARGUMENT, "unfold");
    CHECK(!made);
    options.passes = NULL;
    options.without = "gradients";
    REFUSED(cameo_model_optimize(model, &options, &made, NULL, &err), CAMEO_BAD_ARGUMENT,
            "cannot be left out");
    options.without = NULL;
    options.until = "end";
    REFUSED(cameo_model_optimize(model, &options, &made, NULL, &err), CAMEO_BAD_ARGUMENT, "'end'");
    cameo_model_free(model);
}

void test_optimize__a_model_with_training_is_refused(void)
{
    struct cameo_model *model, *made;
    struct cameo_error err;

    OK(cameo_model_load(TESTS_DIR "/models/training_linreg_sgd.onnx", NULL, &model, &err));
    REFUSED(cameo_model_optimize(model, NULL, &made, NULL, &err), CAMEO_BAD_ARGUMENT,
            "carries its training");
    OK(cameo_model_strip(model, &err));
    OK(cameo_model_optimize(model, NULL, &made, NULL, &err));
    cameo_model_free(made);
    cameo_model_free(model);
}

void test_optimize__every_allocation_may_fail(void)
{
    struct cameo_model *model = load_text(sums), *made;
    struct cameo_error err;
    enum cameo_status status = CAMEO_NO_MEMORY;
    uint64_t n = 0;

    while (status != CAMEO_OK && n < 100000) {
        cm_memory_fail_after(++n);
        status = cameo_model_optimize(model, NULL, &made, NULL, &err);
        cm_memory_fail_after(0);
        if (status != CAMEO_OK && status != CAMEO_NO_MEMORY)
            fail_msg("allocation %llu: %s", (unsigned long long)n, err.message);
        CHECK((status == CAMEO_OK) == (made != NULL));
    }
    CHECK_INT(status, CAMEO_OK);
    CHECK(n > 3);
    cameo_model_free(made);
    cameo_model_free(model);
}
