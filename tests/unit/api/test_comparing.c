/* What two models differ in. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api_case.h"
#include "cameo.h"
#include "check.h"

#include <math.h>

#define MODEL(operator, weight, end)                                                               \
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"                                                 \
    "net (float[N,2] x) => (float[N,2] " end ")\n"                                                 \
    "<float[2,2] W = {1, 2, 3, " weight "}>\n"                                                     \
    "{\n"                                                                                          \
    "    [product] h = MatMul(x, W)\n"                                                             \
    "    [last] " end " = "                                                                        \
    operator"(h)\n"                                                                                \
            "}\n"

static void check_row(const struct cameo_comparison *c, size_t index, enum cameo_compare_part part,
                      enum cameo_compare_kind kind, const char *name, const char *text)
{
    const struct cameo_compare_row *row = cameo_comparison_row(c, index);

    CHECK(row != NULL);
    CHECK_INT(row->part, part);
    CHECK_INT(row->kind, kind);
    CHECK_STRING(row->name.data, name);
    CHECK_STRING(row->text.data, text);
}

void test_comparing__equal_models_have_no_rows(void)
{
    struct cameo_model *a = load_text(MODEL("Relu", "4", "y"));
    struct cameo_comparison *c;
    struct cameo_error err;

    OK(cameo_model_compare(a, a, NULL, &c, &err));
    CHECK(cameo_comparison_same(c) && cameo_comparison_made_inputs(c));
    CHECK_INT(cameo_comparison_compared(c, CAMEO_COMPARE_STRUCTURE), 2);
    CHECK_INT(cameo_comparison_compared(c, CAMEO_COMPARE_WEIGHTS), 1);
    CHECK_INT(cameo_comparison_compared(c, CAMEO_COMPARE_RESULTS), 1);
    CHECK(cameo_comparison_row(c, 0) == NULL);
    cameo_comparison_free(c);
    cameo_model_free(a);
}

void test_comparing__nodes_weights_and_results_that_differ_are_rows(void)
{
    struct cameo_compare_options options = CAMEO_COMPARE_OPTIONS_INIT;
    struct cameo_model *a = load_text(MODEL("Relu", "4", "y"));
    struct cameo_model *b = load_text(MODEL("Neg", "5", "y"));
    const int64_t dims[] = {1, 2};
    struct cameo_feed feed;
    struct cameo_value *x;
    struct cameo_comparison *c;
    struct cameo_error err;

    OK(cameo_value_new(CAMEO_FLOAT, 2, dims, &x, &err));
    memcpy(cameo_value_mutable_data(x), (float[]){0, 1}, 8);
    feed = cameo_feed_value("x", x);
    options.feeds = &feed;
    options.feed_count = 1;
    OK(cameo_model_compare(a, b, &options, &c, &err));
    CHECK(!cameo_comparison_same(c) && !cameo_comparison_made_inputs(c));
    check_row(c, 0, CAMEO_COMPARE_STRUCTURE, CAMEO_COMPARE_CHANGED, "node 'last' (Relu)",
              "operator is Neg, was Relu");
    check_row(c, 1, CAMEO_COMPARE_WEIGHTS, CAMEO_COMPARE_CHANGED, "W", "");
    CHECK_INT(cameo_comparison_row(c, 1)->difference->first, 3);
    check_row(c, 2, CAMEO_COMPARE_RESULTS, CAMEO_COMPARE_VALUE, "y", "");
    check_row(c, 3, CAMEO_COMPARE_RESULTS, CAMEO_COMPARE_FIRST, "h", "node 'product' (MatMul)");
    CHECK_INT(cameo_comparison_row(c, 3)->difference->differing, 1);
    CHECK(cameo_comparison_row(c, 4) == NULL);
    CHECK_INT(cameo_comparison_differing(c, CAMEO_COMPARE_STRUCTURE), 1);
    cameo_comparison_free(c);

    options.parts = 1u << CAMEO_COMPARE_WEIGHTS;
    options.absolute = 1;
    OK(cameo_model_compare(a, b, &options, &c, &err));
    CHECK(cameo_comparison_same(c));
    CHECK_INT(cameo_comparison_compared(c, CAMEO_COMPARE_STRUCTURE), 0);
    cameo_comparison_free(c);
    cameo_value_free(x);
    cameo_model_free(a);
    cameo_model_free(b);
}

void test_comparing__outputs_of_other_names_are_paired_by_position(void)
{
    struct cameo_compare_options options = CAMEO_COMPARE_OPTIONS_INIT;
    struct cameo_model *a = load_text(MODEL("Relu", "4", "y"));
    struct cameo_model *b = load_text(MODEL("Relu", "4", "z"));
    struct cameo_comparison *c;
    struct cameo_error err;

    options.parts = 1u << CAMEO_COMPARE_RESULTS;
    OK(cameo_model_compare(a, b, &options, &c, &err));
    CHECK(cameo_comparison_same(c));
    CHECK_INT(cameo_comparison_compared(c, CAMEO_COMPARE_RESULTS), 1);
    cameo_comparison_free(c);
    cameo_model_free(a);
    cameo_model_free(b);
}

void test_comparing__a_second_model_that_does_not_run_is_a_row(void)
{
    struct cameo_model *a = load_text(MODEL("Relu", "4", "y"));
    struct cameo_model *b = load_text(MODEL("NoSuchOperator", "4", "y"));
    struct cameo_compare_options options = CAMEO_COMPARE_OPTIONS_INIT;
    struct cameo_comparison *c;
    struct cameo_error err;

    options.parts = 1u << CAMEO_COMPARE_RESULTS;
    OK(cameo_model_compare(a, b, &options, &c, &err));
    CHECK(!cameo_comparison_same(c));
    CHECK_STRING(cameo_comparison_row(c, 0)->name.data, "second model");
    CHECK(strstr(cameo_comparison_row(c, 0)->text.data, "NoSuchOperator") != NULL);
    cameo_comparison_free(c);
    REFUSED(cameo_model_compare(b, a, &options, &c, &err), CAMEO_UNSUPPORTED, "NoSuchOperator");
    cameo_model_free(a);
    cameo_model_free(b);
}

void test_comparing__recorded_values_are_judged_in_the_order_of_the_nodes(void)
{
    struct cameo_model *a = load_text(MODEL("Relu", "4", "y"));
    struct cameo_compare_options options = CAMEO_COMPARE_OPTIONS_INIT;
    const int64_t dims[] = {1, 2};
    struct cameo_value *x, *wrong;
    struct cameo_feed feed, recorded[3];
    struct cameo_comparison *c;
    struct cameo_error err;

    OK(cameo_value_new(CAMEO_FLOAT, 2, dims, &x, &err));
    OK(cameo_value_new(CAMEO_FLOAT, 1, dims + 1, &wrong, &err));
    memset(cameo_value_mutable_data(x), 0, 8);
    memset(cameo_value_mutable_data(wrong), 0, 8);
    feed = cameo_feed_value("x", x);
    options.feeds = &feed;
    options.feed_count = 1;
    recorded[0] = cameo_feed_value("y", wrong);
    recorded[1] = cameo_feed_value("h", x); /* of zeros, the product is x */
    recorded[2] = cameo_feed_value("nosuch", x);
    OK(cameo_model_compare_values(a, recorded, 3, &options, &c, &err));
    CHECK_INT(cameo_comparison_compared(c, CAMEO_COMPARE_RESULTS), 2);
    CHECK_INT(cameo_comparison_differing(c, CAMEO_COMPARE_RESULTS), 1);
    check_row(c, 0, CAMEO_COMPARE_RESULTS, CAMEO_COMPARE_NOTE, "nosuch",
              "is not a value of the model");
    check_row(c, 1, CAMEO_COMPARE_RESULTS, CAMEO_COMPARE_FIRST, "y",
              "node 'last' (Relu), is float[1,2], expected float[2]");
    cameo_comparison_free(c);
    REFUSED(cameo_model_compare_values(a, recorded + 2, 1, &options, &c, &err), CAMEO_NOT_FOUND,
            "nothing recorded");
    cameo_value_free(x);
    cameo_value_free(wrong);
    cameo_model_free(a);
}

void test_comparing__wrong_options_are_refused(void)
{
    struct cameo_compare_options options = CAMEO_COMPARE_OPTIONS_INIT;
    struct cameo_model *a = load_text(MODEL("Relu", "4", "y"));
    struct cameo_comparison *c;
    struct cameo_error err;

    options.parts = 8;
    REFUSED(cameo_model_compare(a, a, &options, &c, &err), CAMEO_BAD_ARGUMENT, "parts is 0x8");
    CHECK(c == NULL);
    options.parts = 0;
    options.absolute = (double)NAN;
    REFUSED(cameo_model_compare(a, a, &options, &c, &err), CAMEO_BAD_ARGUMENT, "not a number");
    options.absolute = 0;
    options.feed_count = 1;
    REFUSED(cameo_model_compare(a, a, &options, &c, &err), CAMEO_BAD_ARGUMENT, "feeds is NULL");
    CHECK_INT(cameo_model_compare(NULL, a, NULL, &c, &err), CAMEO_BAD_ARGUMENT);
    CHECK_INT(cameo_model_compare(a, NULL, NULL, &c, &err), CAMEO_BAD_ARGUMENT);
    CHECK_INT(cameo_model_compare_values(a, NULL, 0, NULL, &c, &err), CAMEO_BAD_ARGUMENT);
    cameo_comparison_free(NULL);
    cameo_model_free(a);
}
