/* Sessions through the public API: feeding, fetching, wrong uses, operators of one's own. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api_case.h"
#include "api/lend.h"
#include "base/folder.h"
#include "cameo.h"
#include "check.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

static const char line[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                           "line (float[N,2] x, float[2] shift) => (float[N,2] y, float[N,2] z)\n"
                           "<float two = {2}>\n"
                           "{ y = Mul(x, two)\n  z = Add(y, shift) }\n";

static struct cameo_session *open_session(const struct cameo_model *model, const char *backend)
{
    struct cameo_session_options options = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_session *session;
    struct cameo_error err;

    options.backend = backend;
    options.threads = 1;
    if (cameo_session_new(model, &options, &session, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    return session;
}

static const float x_values[] = {1, 2, 3, 4}, shift_values[] = {10, 20};
static const int64_t x_dims[] = {2, 2}, shift_dims[] = {2};

static struct cameo_feed feed_x(void)
{
    return cameo_feed_tensor("x", lend(CAMEO_FLOAT, 2, x_dims, x_values, sizeof x_values));
}

static struct cameo_feed feed_shift(void)
{
    return cameo_feed_tensor("shift",
                             lend(CAMEO_FLOAT, 1, shift_dims, shift_values, sizeof shift_values));
}

static void check_run(struct cameo_session *session)
{
    const struct cameo_feed feeds[] = {feed_shift(), feed_x()};
    float mine[4] = {0};
    struct cameo_fetch fetches[] = {
        cameo_fetch_value("z"),
        cameo_fetch_tensor(NULL, lend(CAMEO_FLOAT, 2, x_dims, mine, sizeof mine)),
    };
    struct cameo_error err;

    if (cameo_session_run(session, feeds, 2, fetches, 2, NULL, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    CHECK(mine[0] == 2 && mine[3] == 8);
    CHECK(fetches[1].value == NULL);
    CHECK_INT(cameo_value_kind(fetches[0].value), CAMEO_KIND_TENSOR);
    CHECK_INT(cameo_value_dtype(fetches[0].value), CAMEO_FLOAT);
    CHECK_INT(cameo_value_rank(fetches[0].value), 2);
    CHECK_INT(cameo_value_dims(fetches[0].value)[0], 2);
    CHECK_INT(cameo_value_bytes(fetches[0].value), 16);
    CHECK(((const float *)cameo_value_data(fetches[0].value))[3] == 28);
    CHECK(cameo_value_real(fetches[0].value, 0) == 12);
    CHECK(cameo_value_real(fetches[0].value, 4) == 0);
    cameo_value_free(fetches[0].value);
}

void test_session__runs_with_every_engine(void)
{
    static const char *const backends[] = {NULL, "reference", "plain"};
    struct cameo_model *model = load_text(line);

    for (size_t i = 0; i < CM_COUNT(backends); i++) {
        struct cameo_session *session = open_session(model, backends[i]);

        CHECK_INT(cameo_session_input_count(session), 2);
        CHECK_INT(cameo_session_output_count(session), 2);
        CHECK_STRING(cameo_session_input(session, 0)->type.data, "float[N,2]");
        CHECK_INT(cameo_session_input(session, 0)->kind, CAMEO_KIND_TENSOR);
        CHECK_STRING(cameo_session_output(session, 1)->name.data, "z");
        CHECK_INT(cameo_session_output(session, 1)->dims[1].size, 2);
        CHECK(cameo_session_output(session, 2) == NULL);
        check_run(session);
        check_run(session);
        cameo_session_free(session);
    }
    cameo_model_free(model);
}

/* One wrong feed after another; then a right one, on the same session. */
void test_session__wrong_inputs_are_one_sentence_and_the_session_lives_on(void)
{
    static const int64_t three[] = {2, 3}, cube[] = {2, 2, 1}, negative[] = {-1, 2};
    struct cameo_feed wrong[9];
    static const char *const parts[] = {
        "there is no input 'X'; the model has 'x', 'shift'",
        "there is no input 7",
        "input 'x' is of type double, needs float",
        "input 'x' has rank 3, needs 2 (float[N,2])",
        "input 'x' has shape 2x3, needs float[N,2]",
        "input 'x': its memory has 15 bytes, its shape 2x2 needs 16",
        "input 'x': dimension 0 is -1",
        "input 'shift' is fed twice",
        "input 'x': 99 is not an element type",
    };
    struct cameo_model *model = load_text(line);
    struct cameo_session *session = open_session(model, NULL);

    for (size_t i = 0; i < CM_COUNT(wrong); i++)
        wrong[i] = feed_x();
    wrong[0].name = "X";
    wrong[1].name = NULL;
    wrong[1].index = 7;
    wrong[2].tensor = lend(CAMEO_DOUBLE, 2, x_dims, x_values, sizeof x_values);
    wrong[3].tensor = lend(CAMEO_FLOAT, 3, cube, x_values, sizeof x_values);
    wrong[4].tensor = lend(CAMEO_FLOAT, 2, three, x_values, 24);
    wrong[5].tensor = lend(CAMEO_FLOAT, 2, x_dims, x_values, 15);
    wrong[6].tensor = lend(CAMEO_FLOAT, 2, negative, x_values, sizeof x_values);
    wrong[7] = feed_shift();
    wrong[8].tensor = lend((enum cameo_dtype)99, 2, x_dims, x_values, sizeof x_values);
    for (size_t i = 0; i < CM_COUNT(wrong); i++) {
        const struct cameo_feed feeds[] = {feed_shift(), wrong[i]};
        struct cameo_fetch fetch = fetch_index(0);
        struct cameo_error err;

        CHECK_INT(cameo_session_run(session, feeds, 2, &fetch, 1, NULL, &err), CAMEO_BAD_ARGUMENT);
        if (!strstr(err.message, parts[i]))
            fail_msg("row %zu: %s", i, err.message);
        CHECK(fetch.value == NULL);
    }
    check_run(session);
    cameo_session_free(session);
    cameo_model_free(model);
}

void test_session__says_what_is_missing_and_what_was_asked_wrongly(void)
{
    struct cameo_model *model = load_text(line);
    struct cameo_session *session = open_session(model, NULL);
    const struct cameo_feed feeds[] = {feed_x(), feed_shift()};
    struct cameo_fetch fetch = cameo_fetch_value("w");
    struct cameo_error err;
    float small[3];

    CHECK_INT(cameo_session_run(session, NULL, 0, NULL, 0, NULL, &err), CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "the run cannot begin, for 2 reasons: input 'x' is missing, needs "
                              "float[N,2]; input 'shift' is missing, needs float[2]"));
    CHECK_INT(cameo_session_run(session, feeds, 2, &fetch, 1, NULL, &err), CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "there is no output 'w'; the model has 'y', 'z'"));
    fetch = cameo_fetch_tensor("y", lend(CAMEO_FLOAT, 2, x_dims, small, sizeof small));
    CHECK_INT(cameo_session_run(session, feeds, 2, &fetch, 1, NULL, &err), CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "has 12 bytes, its shape needs 16"));
    fetch.tensor = lend(CAMEO_FLOAT, 1, (const int64_t[]){3}, small,
                        sizeof small); /* as many bytes as it says, but not the output's shape */
    CHECK_INT(cameo_session_run(session, feeds, 2, &fetch, 1, NULL, &err), CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message,
                 "output 'y' is float[N,2], the memory for it has another type or shape"));
    check_run(session);
    cameo_session_free(session);
    cameo_model_free(model);
}

static void *run_many(void *arg)
{
    for (int i = 0; i < 50; i++)
        check_run(arg);
    return NULL;
}

void test_session__several_threads_run_it_at_once(void)
{
    static const char *const backends[] = {NULL, "plain"};
    struct cameo_model *model = load_text(line);

    for (size_t b = 0; b < CM_COUNT(backends); b++) {
        struct cameo_session *session = open_session(model, backends[b]);
        pthread_t threads[3];

        for (size_t i = 0; i < CM_COUNT(threads); i++)
            CHECK_INT(pthread_create(&threads[i], NULL, run_many, session), 0);
        for (size_t i = 0; i < CM_COUNT(threads); i++)
            pthread_join(threads[i], NULL);
        cameo_session_free(session);
    }
    cameo_model_free(model);
}

void test_session__a_set_flag_cancels_runs_until_it_is_cleared(void)
{
    struct cameo_model *model = load_text(line);
    struct cameo_session *session = open_session(model, NULL);
    const struct cameo_feed feeds[] = {feed_x(), feed_shift()};
    struct cameo_run_options options = CAMEO_RUN_OPTIONS_INIT;
    struct cameo_error err;

    CHECK_INT(cameo_cancel_new(&options.cancel, NULL), CAMEO_OK);
    cameo_cancel_set(options.cancel);
    CHECK_INT(cameo_session_run(session, feeds, 2, NULL, 0, &options, &err), CAMEO_CANCELLED);
    cameo_cancel_clear(options.cancel);
    CHECK_INT(cameo_session_run(session, feeds, 2, NULL, 0, &options, &err), CAMEO_OK);
    cameo_cancel_free(options.cancel);
    cameo_session_free(session);
    cameo_model_free(model);
}

struct seen {
    int count;
    bool wrong;
};

static void see(void *arg, const struct cameo_step *step)
{
    static const char *const ops[] = {"Mul", "Add"};
    struct seen *seen = arg;

    seen->wrong = seen->wrong || seen->count >= 2 || strcmp(step->op.data, ops[seen->count]) != 0 ||
                  step->end_ns < step->begin_ns || !step->kernel || !step->declined;
    seen->count++;
}

void test_session__steps_are_reported_in_order(void)
{
    struct cameo_model *model = load_text(line);
    struct cameo_session *session = open_session(model, "reference");
    const struct cameo_feed feeds[] = {feed_x(), feed_shift()};
    struct cameo_run_options options = CAMEO_RUN_OPTIONS_INIT;
    struct seen seen = {0};

    options.step = see;
    options.step_arg = &seen;
    CHECK_INT(cameo_session_run(session, feeds, 2, NULL, 0, &options, NULL), CAMEO_OK);
    CHECK_INT(seen.count, 2);
    CHECK(!seen.wrong);
    cameo_session_free(session);
    cameo_model_free(model);
}

void test_session__all_that_cannot_run_is_named_at_once(void)
{
    struct cameo_model *model = load_text(
        "<ir_version: 8, opset_import: [\"\" : 17, \"my\" : 1]>\n"
        "g (float[2] x) => (float[2] y)\n"
        "{ [first] a = my.Frob(x)\n  [second] b = Relu(a)\n  [third] y = Frobnicate(b) }\n");
    struct cameo_session *session;
    struct cameo_error err;

    CHECK_INT(cameo_session_new(model, NULL, &session, &err), CAMEO_UNSUPPORTED);
    CHECK(session == NULL);
    CHECK(strstr(err.message, "for 2 reasons"));
    CHECK(strstr(err.message, "node 'first' (my.Frob): operator 'Frob' of domain 'my' is not "));
    CHECK(strstr(err.message, "node 'third' (Frobnicate)"));
    cameo_model_free(model);
}

void test_blockers__the_list_is_longer_than_a_message(void)
{
    enum { NODES = 300 };
    char text[NODES * 60 + 400];
    size_t used = (size_t)snprintf(text, sizeof text,
                                   "<ir_version: 8, opset_import: [\"\" : 17, \"my\" : 1]>\n"
                                   "g (bool[2] x) => (float[2] y)\n{\n");
    struct cameo_findings *findings;
    struct cameo_error err;

    for (int i = 0; i < NODES; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "[n%d] a%d = %s(x)\n", i, i,
                                 i % 2 ? "my.Frobnicate" : "Sqrt");
    snprintf(text + used, sizeof text - used, "y = Identity(a0) }\n");
    struct cameo_model *model = load_text(text);
    CHECK_INT(cameo_model_blockers(model, NULL, &findings, &err), CAMEO_OK);
    CHECK_INT(cameo_findings_count(findings), NODES);
    CHECK_INT(cameo_findings_violations(findings), NODES);
    CHECK(!cameo_findings_cut(findings));
    size_t unknown = 0, types = 0;
    for (size_t i = 0; i < NODES; i++) {
        const struct cameo_finding *finding = cameo_findings_at(findings, i);
        const bool is_unknown = strstr(finding->reason.data, "domain 'my' is not supported");
        CHECK_STRING(finding->rule.data, is_unknown ? "run" : "TY2");
        unknown += is_unknown;
        types += strstr(finding->reason.data, "is bool[2], must be one of") != NULL;
    }
    CHECK_INT(unknown, NODES / 2);
    CHECK_INT(types, NODES / 2);
    cameo_findings_free(findings);

    struct cameo_session_options options = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_session *session;
    options.findings = &findings;
    CHECK_INT(cameo_session_new(model, &options, &session, &err), CAMEO_UNSUPPORTED);
    CHECK_INT(cameo_findings_count(findings), NODES);
    CHECK(strstr(err.message, "for 300 reasons"));
    cameo_findings_free(findings);
    cameo_model_free(model);
}

void test_blockers__a_model_that_runs_has_none(void)
{
    struct cameo_model *model = load_text(line);
    struct cameo_findings *findings;
    struct cameo_error err;

    CHECK_INT(cameo_model_blockers(model, NULL, &findings, &err), CAMEO_OK);
    CHECK_INT(cameo_findings_count(findings), 0);
    cameo_findings_free(findings);
    struct cameo_session_options options = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_session *session;
    options.findings = &findings;
    CHECK_INT(cameo_session_new(model, &options, &session, &err), CAMEO_OK);
    CHECK(findings == NULL);
    cameo_session_free(session);
    options.backend = "abacus";
    CHECK_INT(cameo_model_blockers(model, &options, &findings, &err), CAMEO_BAD_ARGUMENT);
    CHECK(findings == NULL);
    cameo_model_free(model);
}

void test_session__says_how_many_nodes_were_expanded(void)
{
    struct cameo_model *model = load_text("<ir_version: 8, opset_import: [\"\" : 18]>\n"
                                          "g (float[2] x) => (float[2] y)\n"
                                          "{ a = Mish(x)\n  b = Neg(a)\n  y = Relu(b) }\n");

    for (int expand = 0; expand < 2; expand++) {
        struct cameo_session_options options = CAMEO_SESSION_OPTIONS_INIT;
        struct cameo_session *session;
        struct cameo_error err;

        options.expand = expand;
        if (cameo_session_new(model, &options, &session, &err) != CAMEO_OK)
            fail_msg("%s", err.message);
        /* Relu, Mish, the Softplus in it, and a CastLike for each constant. */
        CHECK(expand ? cameo_session_expanded(session) >= 3 : cameo_session_expanded(session) == 0);
        cameo_session_free(session);
    }
    cameo_model_free(model);
}

void test_version__the_newest_opset_is_known(void)
{
    CHECK(cameo_newest_opset("") >= 28);
    CHECK_INT(cameo_newest_opset("ai.onnx"), cameo_newest_opset(""));
    CHECK_INT(cameo_newest_opset("somebody.else"), 0);
}

void test_session__an_input_handed_through_is_the_callers_own_copy(void)
{
    static const char *const backends[] = {NULL, "plain"};
    struct cameo_model *model =
        load_text("<ir_version: 8, opset_import: [\"\" : 17]>\n"
                  "g (float[2] x, string[1] s) => (float[2] y, string[1] t)\n"
                  "{ y = Identity(x)\n  t = Identity(s) }\n");

    for (size_t b = 0; b < CM_COUNT(backends); b++) {
        struct cameo_session *session = open_session(model, backends[b]);
        float *values = malloc(8);
        char *bytes = malloc(3);
        struct cameo_text text = {bytes, 3};
        const int64_t two = 2, one = 1;
        struct cameo_error err;

        memcpy(values, shift_values, 8);
        memcpy(bytes, "abc", 3);
        const struct cameo_feed feeds[] = {
            feed_index(0, lend(CAMEO_FLOAT, 1, &two, values, 8)),
            feed_index(1, lend(CAMEO_STRING, 1, &one, &text, sizeof text))};
        struct cameo_fetch fetches[] = {fetch_index(0), fetch_index(1)};
        if (cameo_session_run(session, feeds, 2, fetches, 2, NULL, &err) != CAMEO_OK)
            fail_msg("%s", err.message);
        free(values);
        free(bytes);
        CHECK(cameo_value_real(fetches[0].value, 1) == 20);
        CHECK_STRING(cameo_value_string(fetches[1].value, 0).data, "abc");
        CHECK_STRING(cameo_value_string(fetches[1].value, 1).data, "");
        cameo_value_free(fetches[0].value);
        cameo_value_free(fetches[1].value);
        cameo_session_free(session);
    }
    cameo_model_free(model);
}

void test_session__wrong_options_are_refused(void)
{
    struct cameo_model *model = load_text(line);
    struct cameo_session_options options = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_session *session;
    struct cameo_error err;

    options.threads = -1;
    CHECK_INT(cameo_session_new(model, &options, &session, &err), CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "-1 threads"));
    options.threads = 0;
    options.struct_size = 0;
    CHECK_INT(cameo_session_new(model, &options, &session, &err), CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "_INIT macro"));
    cameo_model_free(model);
}

void test_datum__set_real_rounds_to_each_type(void)
{
    static const struct {
        enum cameo_dtype dtype;
        double value, expected;
    } rows[] = {
        {CAMEO_FLOAT, 0.1, (double)0.1f},
        {CAMEO_DOUBLE, 0.1, 0.1},
        {CAMEO_FLOAT16, 2049, 2048},
        {CAMEO_BFLOAT16, 1.001, 1},
        {CAMEO_INT8, 200, 127},
        {CAMEO_INT8, -200, -128},
        {CAMEO_UINT8, -5, 0},
        {CAMEO_INT32, 2.5, 2},
        {CAMEO_BOOL, 7, 1},
        {CAMEO_UINT4, 9, 9},
        {CAMEO_INT4, -9, -8},
        {CAMEO_INT2, 1, 1},
        {CAMEO_INT64, 9e18, 9e18},
        {CAMEO_UINT64, 1.5e19, 1.5e19},
    };
    const int64_t dims[] = {3};

    for (size_t i = 0; i < CM_COUNT(rows); i++) {
        struct cameo_value *value;

        CHECK_INT(cameo_value_new(rows[i].dtype, 1, dims, &value, NULL), CAMEO_OK);
        cameo_value_set_real(value, 1, rows[i].value);
        cameo_value_set_real(value, 3, rows[i].value); /* past the end: nothing */
        CHECK(cameo_value_real(value, 0) == 0 && cameo_value_real(value, 2) == 0);
        if (cameo_value_real(value, 1) != rows[i].expected)
            fail_msg("row %zu: %g", i, cameo_value_real(value, 1));
        cameo_value_free(value);
    }
}

/* ---- operators of one's own ---- */

static int scale_tag; /* its address is what the functions are handed */

static enum cameo_status scale_infer(struct cameo_infer *in, void *arg)
{
    CHECK(arg == &scale_tag);
    if (cameo_infer_rank(in, 0) == 0)
        return cameo_infer_fail(in, "scalars are too small");
    return cameo_infer_set_like(in, 0, 0);
}

static enum cameo_status scale_run(struct cameo_call *call, void *arg)
{
    struct cameo_tensor x = CAMEO_TENSOR_INIT, y = CAMEO_TENSOR_INIT;

    CHECK(arg == &scale_tag);
    if (!cameo_call_input(call, 0, &x) || !cameo_call_output(call, 0, &y))
        return cameo_call_fail(call, CAMEO_BAD_ARGUMENT, "an operand is missing");
    for (int64_t i = 0; i < cameo_tensor_count(&x); i++)
        ((float *)y.data)[i] = ((const float *)x.data)[i] * cameo_call_float(call, "by");
    return CAMEO_OK;
}

static const struct cameo_operand floats[] = {{.struct_size = sizeof(struct cameo_operand),
                                               .name = "x",
                                               .variable = "T",
                                               .types = CAMEO_TYPE_BIT(CAMEO_FLOAT)}};
static const struct cameo_attribute by[] = {{.struct_size = sizeof(struct cameo_attribute),
                                             .name = "by",
                                             .kind = CAMEO_ATTRIBUTE_FLOAT,
                                             .has_default = true,
                                             .f = 3}};

static struct cameo_custom_operator scale_operator(void)
{
    struct cameo_custom_operator op = CAMEO_CUSTOM_OPERATOR_INIT;

    op.domain = "my";
    op.name = "Scale";
    op.inputs = op.outputs = floats;
    op.input_count = op.output_count = 1;
    op.attributes = by;
    op.attribute_count = 1;
    op.infer = scale_infer;
    op.run = scale_run;
    op.arg = &scale_tag;
    return op;
}

static const char scaled[] = "<ir_version: 8, opset_import: [\"\" : 17, \"my\" : 1]>\n"
                             "g (float[N] x) => (float[N] y)\n"
                             "{ a = my.Scale(x)\n  y = my.Scale<by: float = 0.5>(a) }\n";

static double run_scaled(const struct cameo_registry *registry, const char *backend, bool expand)
{
    struct cameo_session_options options = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_model *model = load_text(scaled);
    struct cameo_session *session;
    struct cameo_error err;
    const int64_t two = 2;
    const struct cameo_feed feed =
        cameo_feed_tensor("x", lend(CAMEO_FLOAT, 1, &two, shift_values, 8));
    struct cameo_fetch fetch = fetch_index(0);

    options.registry = registry;
    options.backend = backend;
    options.expand = expand;
    if (cameo_session_new(model, &options, &session, &err) != CAMEO_OK ||
        cameo_session_run(session, &feed, 1, &fetch, 1, NULL, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    const double result = cameo_value_real(fetch.value, 1);
    cameo_value_free(fetch.value);
    cameo_session_free(session);
    cameo_model_free(model);
    return result;
}

void test_registry__an_operator_of_ones_own_runs(void)
{
    const struct cameo_custom_operator op = scale_operator();
    struct cameo_registry *registry;
    struct cameo_error err;

    CHECK_INT(cameo_registry_new(&registry, NULL), CAMEO_OK);
    if (cameo_registry_add(registry, &op, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    CHECK_INT(cameo_registry_add(registry, &op, &err), CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "operator 'Scale': Scale version 1 is registered already"));
    CHECK(run_scaled(registry, NULL, false) == 30);
    CHECK(run_scaled(registry, "plain", false) == 30);
    CHECK_INT(cameo_registry_add(registry, &op, &err), CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "frozen"));
    cameo_registry_free(registry);
}

void test_registry__a_body_runs_where_there_is_no_function(void)
{
    struct cameo_custom_operator op = scale_operator();
    struct cameo_registry *registry;
    struct cameo_error err;

    op.run = NULL;
    op.infer = NULL;
    op.body = "<domain: \"my\", opset_import: [\"\" : 17]>\n"
              "Scale <by: float = 3.0>(x) => (y)\n"
              "{ f = Constant<value_float: float = @by>()\n  y = Mul(x, f) }\n";
    CHECK_INT(cameo_registry_new(&registry, NULL), CAMEO_OK);
    if (cameo_registry_add(registry, &op, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    CHECK(run_scaled(registry, NULL, false) == 30);
    CHECK(run_scaled(registry, "plain", false) == 30);
    CHECK(run_scaled(registry, NULL, true) == 30);
    cameo_registry_free(registry);
}

void test_registry__refuses_operators_that_make_no_sense(void)
{
    struct cameo_custom_operator ops[8];
    static const char *const parts[] = {
        "has no name",
        "a domain of its own",
        "neither a run function nor a body",
        "no outputs",
        "allow different types",
        "its body",
        "of another operator",
        "is a list",
    };
    static const struct cameo_operand doubles[] = {{.struct_size = sizeof(struct cameo_operand),
                                                    .name = "y",
                                                    .variable = "T",
                                                    .types = CAMEO_TYPE_BIT(CAMEO_DOUBLE)}};
    static const struct cameo_attribute list[] = {{.struct_size = sizeof(struct cameo_attribute),
                                                   .name = "l",
                                                   .kind = CAMEO_ATTRIBUTE_INTS,
                                                   .has_default = true}};

    for (size_t i = 0; i < CM_COUNT(ops); i++)
        ops[i] = scale_operator();
    ops[0].name = "";
    ops[1].domain = "ai.onnx";
    ops[2].run = NULL;
    ops[3].output_count = 0;
    ops[4].outputs = doubles;
    ops[5].body = "Scale (x) = ";
    ops[6].body = "<domain: \"my\", opset_import: [\"\" : 17]> Other (x) => (y) { y = Neg(x) }";
    ops[7].attributes = list;
    for (size_t i = 0; i < CM_COUNT(ops); i++) {
        struct cameo_registry *registry;
        struct cameo_error err;

        CHECK_INT(cameo_registry_new(&registry, NULL), CAMEO_OK);
        CHECK(cameo_registry_add(registry, &ops[i], &err) != CAMEO_OK);
        if (!strstr(err.message, parts[i]))
            fail_msg("row %zu: %s", i, err.message);
        cameo_registry_free(registry);
    }
}

static enum cameo_status evens_infer(struct cameo_infer *in, void *arg)
{
    const int64_t any = -1;

    (void)arg;
    return cameo_infer_set(in, 0, cameo_infer_dtype(in, 0), 1, &any);
}

/* Every second element: the size is known only now. */
static enum cameo_status evens_run(struct cameo_call *call, void *arg)
{
    struct cameo_tensor x = CAMEO_TENSOR_INIT, y = CAMEO_TENSOR_INIT;

    (void)arg;
    if (!cameo_call_input(call, 0, &x))
        return CAMEO_BAD_ARGUMENT;
    const int64_t count = (cameo_tensor_count(&x) + 1) / 2;
    const enum cameo_status status = cameo_call_allocate(call, 0, x.dtype, 1, &count);
    if (status != CAMEO_OK || !cameo_call_output(call, 0, &y))
        return status;
    for (int64_t i = 0; i < count; i++)
        ((float *)y.data)[i] = ((const float *)x.data)[2 * i];
    return CAMEO_OK;
}

void test_registry__sizes_may_be_known_only_at_the_run(void)
{
    struct cameo_custom_operator op = scale_operator();
    struct cameo_session_options options = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_model *model = load_text("<ir_version: 8, opset_import: [\"\" : 17, \"my\" : 1]>\n"
                                          "g (float[N] x) => (float[M] y) { y = my.Evens(x) }\n");
    struct cameo_fetch fetch = fetch_index(0);
    const int64_t four = 4;
    const struct cameo_feed feed =
        cameo_feed_tensor("x", lend(CAMEO_FLOAT, 1, &four, x_values, 16));
    struct cameo_session *session;
    struct cameo_registry *registry;
    struct cameo_error err;

    op.name = "Evens";
    op.infer = evens_infer;
    op.run = evens_run;
    op.sizes_at_run = true;
    CHECK_INT(cameo_registry_new(&registry, NULL), CAMEO_OK);
    CHECK_INT(cameo_registry_add(registry, &op, NULL), CAMEO_OK);
    options.registry = registry;
    if (cameo_session_new(model, &options, &session, &err) != CAMEO_OK ||
        cameo_session_run(session, &feed, 1, &fetch, 1, NULL, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    CHECK_INT(cameo_value_count(fetch.value), 2);
    CHECK(cameo_value_real(fetch.value, 1) == 3);
    cameo_value_free(fetch.value);
    cameo_session_free(session);
    cameo_registry_free(registry);
    cameo_model_free(model);
}

/* ---- attributes, sequences, files ---- */

static enum cameo_status attributes_infer(struct cameo_infer *in, void *arg)
{
    size_t count;
    const int64_t *ints = cameo_infer_ints(in, "ints", &count);

    (void)arg;
    CHECK_INT(cameo_infer_input_count(in), 1);
    CHECK_INT(cameo_infer_int(in, "i"), 5);
    CHECK(cameo_infer_float(in, "f") == 1.5f);
    CHECK(count == 2 && ints[0] == 3 && ints[1] == -4);
    CHECK_INT(cameo_infer_dim(in, 0, 7), -1);
    CHECK_INT(cameo_infer_dtype(in, 9), CAMEO_UNDEFINED);
    return cameo_infer_set(in, 0, CAMEO_FLOAT, 1, (const int64_t[]){1});
}

static enum cameo_status attributes_run(struct cameo_call *call, void *arg)
{
    size_t n_ints, n_floats;
    const int64_t *ints = cameo_call_ints(call, "ints", &n_ints);
    const float *list = cameo_call_floats(call, "floats", &n_floats);
    const struct cameo_text text = cameo_call_string(call, "s");
    struct cameo_tensor y = CAMEO_TENSOR_INIT;

    (void)arg;
    CHECK_INT(cameo_call_input_count(call), 1);
    CHECK_INT(cameo_call_output_count(call), 1);
    CHECK(n_ints == 2 && ints[1] == -4);
    CHECK(n_floats == 1 && list[0] == 0.25f);
    CHECK(text.size == 3 && memcmp(text.data, "two", 3) == 0);
    if (cameo_call_output(call, 0, &y))
        *(float *)y.data = (float)cameo_call_int(call, "i") + cameo_call_float(call, "f");
    return CAMEO_OK;
}

void test_registry__functions_see_attributes_of_every_kind(void)
{
    static const struct cameo_attribute kinds[] = {
        {.struct_size = sizeof(struct cameo_attribute),
         .name = "i",
         .kind = CAMEO_ATTRIBUTE_INT,
         .has_default = true,
         .i = 5},
        {.struct_size = sizeof(struct cameo_attribute),
         .name = "f",
         .kind = CAMEO_ATTRIBUTE_FLOAT,
         .required = true},
        {.struct_size = sizeof(struct cameo_attribute),
         .name = "s",
         .kind = CAMEO_ATTRIBUTE_STRING,
         .has_default = true,
         .s = "two"},
        {.struct_size = sizeof(struct cameo_attribute),
         .name = "ints",
         .kind = CAMEO_ATTRIBUTE_INTS},
        {.struct_size = sizeof(struct cameo_attribute),
         .name = "floats",
         .kind = CAMEO_ATTRIBUTE_FLOATS},
    };
    struct cameo_custom_operator op = scale_operator();
    struct cameo_session_options options = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_model *model = load_text(
        "<ir_version: 8, opset_import: [\"\" : 17, \"my\" : 1]>\n"
        "g (float[N] x) => (float[1] y)\n"
        "{ y = my.Kinds<f: float = 1.5, ints: ints = [3, -4], floats: floats = [0.25]>(x) }\n");
    struct cameo_model *lacking =
        load_text("<ir_version: 8, opset_import: [\"\" : 17, \"my\" : 1]>\n"
                  "g (float[N] x) => (float[1] y) { y = my.Kinds(x) }\n");
    const int64_t two = 2;
    const struct cameo_feed feed =
        cameo_feed_tensor("x", lend(CAMEO_FLOAT, 1, &two, shift_values, 8));
    struct cameo_fetch fetch = fetch_index(0);
    struct cameo_registry *registry;
    struct cameo_session *session;
    struct cameo_error err;

    op.name = "Kinds";
    op.infer = attributes_infer;
    op.run = attributes_run;
    op.attributes = kinds;
    op.attribute_count = CM_COUNT(kinds);
    CHECK_INT(cameo_registry_new(&registry, NULL), CAMEO_OK);
    CHECK_INT(cameo_registry_add(registry, &op, NULL), CAMEO_OK);
    options.registry = registry;
    CHECK(cameo_session_new(lacking, &options, &session, &err) != CAMEO_OK);
    CHECK(strstr(err.message, "Kinds") && strstr(err.message, "'f'"));
    if (cameo_session_new(model, &options, &session, &err) != CAMEO_OK ||
        cameo_session_run(session, &feed, 1, &fetch, 1, NULL, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    CHECK(cameo_value_real(fetch.value, 0) == 6.5);
    cameo_value_free(fetch.value);
    cameo_session_free(session);
    cameo_registry_free(registry);
    cameo_model_free(model);
    cameo_model_free(lacking);
}

void test_session__sequences_come_out_and_go_through_files(void)
{
    struct cameo_model *model =
        load_text("<ir_version: 8, opset_import: [\"\" : 17]>\n"
                  "g (float[N,2] x) => (seq(float[N,2]) s) { s = SequenceConstruct(x, x) }\n");
    struct cameo_model *other =
        load_text("<ir_version: 8, opset_import: [\"\" : 17]>\n"
                  "g (seq(float[N,2]) s) => (int64 n) { n = SequenceLength(s) }\n");
    struct cameo_session *first = open_session(model, NULL), *second = open_session(other, NULL);
    struct cameo_fetch fetch = cameo_fetch_value("s"), length = cameo_fetch_value("n");
    struct cameo_feed feed = feed_x(), wrong;
    struct cameo_arrays *arrays;
    struct cameo_error err;
    struct folder folder;
    char path[FOLDER_PATH_SIZE];

    folder_make(&folder);
    folder_path(&folder, "s.pb", path);
    if (cameo_session_run(first, &feed, 1, &fetch, 1, NULL, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    CHECK_INT(cameo_value_kind(fetch.value), CAMEO_KIND_SEQUENCE);
    CHECK_INT(cameo_value_item_count(fetch.value), 2);
    CHECK(cameo_value_item(fetch.value, 2) == NULL);
    CHECK(cameo_value_real(cameo_value_item(fetch.value, 1), 3) == 4);

    const struct cameo_value *values[] = {fetch.value};
    const char *const names[] = {"s"};
    CHECK_INT(cameo_arrays_save(path, names, values, 1, NULL), CAMEO_OK);
    CHECK_INT(cameo_arrays_open(path, cameo_session_input(second, 0)->kind, &arrays, NULL),
              CAMEO_OK);
    CHECK_INT(cameo_arrays_count(arrays), 1);
    feed = cameo_feed_value("s", cameo_arrays_at(arrays, 0));
    if (cameo_session_run(second, &feed, 1, &length, 1, NULL, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    CHECK_INT(cameo_value_integer(length.value, 0), 2);
    wrong = feed_x();
    wrong.name = "s";
    CHECK_INT(cameo_session_run(second, &wrong, 1, NULL, 0, NULL, &err), CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "input 's' is a tensor, needs a sequence"));
    cameo_value_free(length.value);
    cameo_value_free(fetch.value);
    cameo_arrays_free(arrays);
    folder_remove(&folder);
    cameo_session_free(first);
    cameo_session_free(second);
    cameo_model_free(model);
    cameo_model_free(other);
}
