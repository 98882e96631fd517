/* Edits of a model through the public API: what they change, what they refuse, what they leave. */
// SPDX-License-Identifier: Apache-2.0
#include "cameo.h"
#include "check.h"
#include "findings.h"

#include <stdlib.h>
#include <string.h>

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != CAMEO_OK)                                                                    \
            fail_msg("%s: %s", #call, err.message);                                                \
    } while (0)

/* A value that only a body reads, an initializer that only training reads, a value with an
 * annotation's worth of names. */
static const char net[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.preview.training\" : 1]>\n"
    "net (float[N,2] x, bool b) => (float[N,2] y, float[N,2] other)\n"
    "<float[2] w = {1, 2}, float[2] v = {3, 4}, float rate = {0.5}, float[N,2] h>\n"
    "{\n"
    "  h = Mul(x, w)\n"
    "  [choice] c = If(b) <then_branch = yes () => (float[N,2] t) { t = Add(h, x) },\n"
    "                      else_branch = no () => (float[N,2] e) { e = Identity(x) }>\n"
    "  y = Mul(c, v)\n"
    "  other = Neg(x)\n"
    "}\n"
    "training {\n"
    "  algorithm: alg (float[N,2] target) => (float loss, float[2] v_new)\n"
    "  {\n"
    "    d = Sub(y, target)\n"
    "    loss = ReduceSumSquare<keepdims = 0>(d)\n"
    "    g = ai.onnx.preview.training.Gradient<xs = [\"v\"], y = \"loss\">(v)\n"
    "    s = Mul(rate, g)\n"
    "    v_new = Sub(v, s)\n"
    "  },\n"
    "  update_binding: [\"v\": \"v_new\"]\n"
    "}\n";

static struct cameo_model *load(const char *text)
{
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model;
    struct cameo_error err;

    options.format = CAMEO_FORMAT_TEXT;
    OK(cameo_model_load_memory(text, strlen(text), &options, &model, &err));
    return model;
}

struct printed {
    char text[1 << 14];
    size_t size;
};

static int keep(void *to, const void *bytes, size_t size)
{
    struct printed *out = to;

    if (size >= sizeof out->text - out->size)
        return 1;
    memcpy(out->text + out->size, bytes, size);
    out->size += size;
    out->text[out->size] = 0;
    return 0;
}

static void print(const struct cameo_model *model, struct printed *out)
{
    struct cameo_write_options options = CAMEO_WRITE_OPTIONS_INIT;
    struct cameo_error err;

    options.format = CAMEO_FORMAT_TEXT;
    out->size = 0;
    OK(cameo_model_write(model, &options, keep, out, &err));
}

static void holds(const struct cameo_model *model, const char *part)
{
    struct printed now;

    print(model, &now);
    if (!strstr(now.text, part))
        fail_msg("'%s' is not in\n%s", part, now.text);
}

static void lacks(const struct cameo_model *model, const char *part)
{
    struct printed now;

    print(model, &now);
    if (strstr(now.text, part))
        fail_msg("'%s' is in\n%s", part, now.text);
}

static void is_legal(const struct cameo_model *model)
{
    struct cameo_findings *findings;
    struct cameo_error err;

    OK(cameo_model_check(model, NULL, &findings, &err));
    if (cameo_findings_count(findings))
        fail_msg("%s", cameo_findings_at(findings, 0)->reason.data);
    cameo_findings_free(findings);
}

static bool told(const struct cameo_text *list, size_t count, const char *part)
{
    for (size_t i = 0; i < count; i++)
        if (strstr(list[i].data, part))
            return true;
    return false;
}

void test_extract__follows_what_bodies_read_and_keeps_training_that_applies(void)
{
    const char *const outputs[] = {"y"};
    const struct cameo_edit *report;
    struct cameo_model *model = load(net);
    struct cameo_error err;

    OK(cameo_model_extract(model, NULL, 0, outputs, 1, &report, &err));
    CHECK_INT(report->change_count, 0);
    CHECK_INT(cameo_model_summary(model)->node_count, 3); /* h is read by a body only */
    CHECK_INT(cameo_model_summary(model)->input_count, 2);
    CHECK_INT(cameo_model_summary(model)->output_count, 1);
    CHECK_INT(cameo_model_summary(model)->initializer_count, 3); /* rate: training alone reads it */
    CHECK_INT(cameo_model_summary(model)->training_count, 1);
    is_legal(model);
    cameo_model_free(model);
}

void test_extract__drops_training_that_reads_what_is_gone_and_says_so(void)
{
    const char *const inputs[] = {"x"}, *const outputs[] = {"h"};
    const struct cameo_edit *report;
    struct cameo_model *model = load(net);
    struct cameo_error err;

    OK(cameo_model_extract(model, inputs, 1, outputs, 1, &report, &err));
    CHECK(told(report->changes, report->change_count, "needs 'y'"));
    CHECK_INT(cameo_model_summary(model)->training_count, 0);
    CHECK_INT(cameo_model_summary(model)->initializer_count, 1);
    is_legal(model);
    cameo_model_free(model);
}

void test_extract__infers_the_types_of_new_ends(void)
{
    const char *const inputs[] = {"c"}, *const outputs[] = {"y"};
    struct cameo_model *model = load(net);
    struct cameo_error err;

    OK(cameo_model_extract(model, inputs, 1, outputs, 1, NULL, &err));
    CHECK_STRING(cameo_model_input(model, 0)->type.data, "float[N,2]");
    CHECK_INT(cameo_model_summary(model)->training_count, 1); /* y and v are still there */
    is_legal(model);
    cameo_model_free(model);
}

void test_extract__lists_all_problems_and_changes_nothing(void)
{
    const char *const inputs[] = {"h", "nothing", "other"}, *const outputs[] = {"y", "yy"};
    const struct cameo_edit *report;
    struct cameo_model *model = load(net);
    struct printed before, after;
    struct cameo_error err;

    print(model, &before);
    CHECK_INT(cameo_model_extract(model, inputs, 3, outputs, 2, &report, &err), CAMEO_BAD_ARGUMENT);
    CHECK(is_told(report->findings, "'nothing' is not a value"));
    CHECK(is_told(report->findings, "'yy' is not a value"));
    CHECK(is_told(report->findings, "input 'x' of the model is needed"));
    CHECK(is_told(report->findings, "'other' leads to none"));
    CHECK_INT(cameo_findings_violations(report->findings), 5);
    print(model, &after);
    CHECK_STRING(after.text, before.text);
    cameo_model_free(model);
}

void test_expose__makes_values_outputs_of_a_session(void)
{
    const char *const names[] = {"h"};
    struct cameo_model *model = load(net);
    struct cameo_session *session;
    struct cameo_error err;

    OK(cameo_model_expose(model, names, 1, NULL, &err));
    CHECK_INT(cameo_model_summary(model)->output_count, 3);
    OK(cameo_model_expose(model, NULL, 0, NULL, &err));
    CHECK_INT(cameo_model_summary(model)->output_count, 4); /* and c; the others were given */
    OK(cameo_session_new(model, NULL, &session, &err));
    CHECK_STRING(cameo_session_output(session, 3)->name.data, "c");
    cameo_session_free(session);
    cameo_model_free(model);
}

static struct cameo_renaming renaming(enum cameo_renaming_kind kind, const char *from,
                                      const char *to)
{
    struct cameo_renaming row = CAMEO_RENAMING_INIT;

    row.kind = kind;
    row.from = from;
    row.to = to;
    return row;
}

void test_rename__reaches_bodies_training_bindings_and_gradients(void)
{
    const struct cameo_renaming rows[] = {
        renaming(CAMEO_RENAME_VALUE, "v", "weight"), renaming(CAMEO_RENAME_VALUE, "h", "hidden"),
        renaming(CAMEO_RENAME_NODE, "choi*", "*!"), renaming(CAMEO_RENAME_DIM, "N", "batch")};
    struct cameo_model *model = load(net);
    struct cameo_error err;

    OK(cameo_model_rename(model, rows, 4, NULL, &err));
    holds(model, "Add (hidden, x)");
    holds(model, "float[batch,2] hidden");
    holds(model, "xs: strings = [\"weight\"]");
    holds(model, "update_binding: [\"weight\": \"v_new\"]");
    holds(model, "[\"ce!\"]");
    lacks(model, "[N,2]");
    is_legal(model);
    cameo_model_free(model);
}

void test_rename__swaps_but_never_joins_two_names(void)
{
    const struct cameo_renaming swap[] = {renaming(CAMEO_RENAME_VALUE, "w", "v"),
                                          renaming(CAMEO_RENAME_VALUE, "v", "w")};
    const struct cameo_renaming join[] = {renaming(CAMEO_RENAME_VALUE, "w", "t"),
                                          renaming(CAMEO_RENAME_VALUE, "*e", "*")};
    const struct cameo_edit *report;
    struct cameo_model *model = load(net);
    struct cameo_error err;

    OK(cameo_model_rename(model, swap, 2, NULL, &err));
    holds(model, "h = Mul (x, v)");
    CHECK_INT(cameo_model_rename(model, join, 2, &report, &err), CAMEO_BAD_ARGUMENT);
    CHECK(is_told(report->findings, "would both be called 't'"));
    CHECK(is_told(report->findings, "empty name")); /* e itself */
    cameo_model_free(model);
}

static const char tail[] =
    "<ir_version: 9, opset_import: [\"\" : 17], metadata_props: [\"from\": \"tail\"]>\n"
    "tail (float[M,2] a, float[2] k) => (float[M,2] y)\n"
    "<float[2] w = {5, 6}>\n"
    "{ s = Add(a, k)  y = Mul(s, w) }\n";

void test_merge__joins_under_prefixes(void)
{
    struct cameo_merge_options options = CAMEO_MERGE_OPTIONS_INIT;
    struct cameo_merge_pair pair = CAMEO_MERGE_PAIR_INIT;
    const struct cameo_edit *report;
    struct cameo_model *model = load(net), *second = load(tail);
    struct cameo_error err;

    pair.output = "y";
    pair.input = "a";
    options.pairs = &pair;
    options.pair_count = 1;
    CHECK_INT(cameo_model_merge(model, second, &options, &report, &err), CAMEO_BAD_ARGUMENT);
    CHECK(is_told(report->findings, "values called 'w', 's', 'y'"));
    options.prefix2 = "t/";
    OK(cameo_model_merge(model, second, &options, &report, &err));
    CHECK(told(report->changes, report->change_count, "IR version is 9"));
    holds(model, "\"t/s\" = Add (y, \"t/k\")");
    holds(model, "net_tail (float[N,2] x, bool b, float[2] \"t/k\") => (float[N,2] other, "
                 "float[M,2] \"t/y\")");
    holds(model, "metadata_props: [\"from\": \"tail\"]");
    CHECK_INT(cameo_model_summary(model)->training_count, 1);
    is_legal(model);
    cameo_model_free(model);
    cameo_model_free(second);
}

void test_merge__refuses_types_and_opsets_that_do_not_match(void)
{
    static const char other[] = "<ir_version: 8, opset_import: [\"\" : 13]>\n"
                                "t (float[M,3] a) => (float[M,3] r) { r = Neg(a) }\n";
    struct cameo_merge_options options = CAMEO_MERGE_OPTIONS_INIT;
    struct cameo_merge_pair pair = CAMEO_MERGE_PAIR_INIT;
    const struct cameo_edit *report;
    struct cameo_model *model = load(net), *second = load(other);
    struct cameo_error err;

    pair.output = "y";
    pair.input = "a";
    options.pairs = &pair;
    options.pair_count = 1;
    CHECK_INT(cameo_model_merge(model, second, &options, &report, &err), CAMEO_BAD_ARGUMENT);
    CHECK(is_told(report->findings, "is float[N,2], but input 'a' is"));
    CHECK(is_told(report->findings, "17 and 13: bring the second"));
    CHECK_INT(cameo_model_merge(model, model, &options, &report, &err), CAMEO_BAD_ARGUMENT);
    cameo_model_free(model);
    cameo_model_free(second);
}

static struct cameo_reshaping reshaping(const char *name, const char *dims)
{
    struct cameo_reshaping row = CAMEO_RESHAPING_INIT;

    row.name = name;
    row.dims = dims;
    return row;
}

void test_set_shapes__infers_again_what_follows(void)
{
    const struct cameo_reshaping fixed[] = {reshaping("x", "4,2")};
    const struct cameo_reshaping open[] = {reshaping("x", "?, 2")};
    const struct cameo_reshaping all[] = {reshaping("N", "8")};
    struct cameo_model *model = load(net);
    struct cameo_error err;

    OK(cameo_model_set_shapes(model, fixed, 1, NULL, &err));
    CHECK_STRING(cameo_model_output(model, 0)->type.data, "float[4,2]");
    holds(model, "float[4,2] h");
    OK(cameo_model_set_shapes(model, open, 1, NULL, &err));
    CHECK_STRING(cameo_model_input(model, 0)->type.data, "float[?,2]");
    is_legal(model);
    cameo_model_free(model);
    model = load(net);
    OK(cameo_model_set_shapes(model, all, 1, NULL, &err));
    holds(model, "(float[8,2] target)");
    holds(model, "(float[8,2] t)");
    lacks(model, "[N,2]");
    cameo_model_free(model);
}

void test_set_shapes__takes_back_what_does_not_fit(void)
{
    const struct cameo_reshaping rows[] = {reshaping("N", "6"), reshaping("x", "6,3")};
    const struct cameo_edit *report;
    struct cameo_model *model = load(net);
    struct printed before, after;
    struct cameo_error err;

    print(model, &before);
    CHECK_INT(cameo_model_set_shapes(model, rows, 2, &report, &err), CAMEO_BAD_ARGUMENT);
    CHECK(is_told(report->findings, "(Mul)"));
    print(model, &after);
    CHECK_STRING(after.text, before.text);
    cameo_model_free(model);
}
