/* Training info of ONNX 1.7, whose algorithms call the inference graph: the same bits as in today's
 * form, and sentences for what makes no sense. */
// SPDX-License-Identifier: Apache-2.0
#include "cameo.h"
#include "check.h"

#define HEAD "<ir_version: 7, opset_import: [\"\" : 12, \"ai.onnx.preview.training\" : 1]>\n"
#define CALL "ai.onnx.preview.training.GraphCall"
#define GRAD "ai.onnx.preview.training.Gradient"
#define GRAPH                                                                                      \
    "net (float[N,2] x, float[2,2] w) => (float[N,2] y, float[N,2] h)\n"                           \
    "<float[2,2] w = {0.5, -1, 2, 0.25}, float[2] b = {0.125, 0.5}>\n"                             \
    "{ h = MatMul(x, w)\n s = Tanh(h)\n y = Add(s, b) }\n"
/* From a value p and the target t to new weights. */
#define UPDATE(zs)                                                                                 \
    " e = Sub(p, t)\n q = Mul(e, e)\n loss = ReduceMean<keepdims = 0>(q)\n"                        \
    " g, gb = " GRAD "<xs = [\"w\", \"b\"], zs = [" zs "\"t\"], y = \"loss\">"
#define STEP                                                                                       \
    " d = Mul(rate, g)\n w_new = Sub(w, d)\n db = Mul(rate, gb)\n b_new = Sub(b, db) },\n"         \
    "update_binding: [\"w\": \"w_new\", \"b\": \"b_new\"] }\n"
#define OUTPUTS " => (float loss, float[2,2] w_new, float[2] b_new) <float rate = {0.05}>\n{"

static struct cameo_model *load(const char *text)
{
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model = NULL;
    struct cameo_error err;

    options.format = CAMEO_FORMAT_TEXT;
    if (cameo_model_load_memory(text, strlen(text), &options, &model, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    return model;
}

enum { STEPS = 6, NUMBERS = STEPS + 6 };

/* Losses, then weights and biases. Every input of a step that is not t is fed x. */
static void train(struct cameo_model *model, double *out)
{
    static const float x[] = {1, -2, 0.5, 3, -1, 0.25}, t[] = {0, 1, 1, -1, 0.5, 0.75};
    static const int64_t dims[] = {3, 2};
    const struct cameo_tensor xs = cameo_tensor_of(CAMEO_FLOAT, 2, dims, x, sizeof x);
    const struct cameo_tensor ts = cameo_tensor_of(CAMEO_FLOAT, 2, dims, t, sizeof t);
    struct cameo_feed feeds[4];
    struct cameo_trainer *trainer = NULL;
    struct cameo_error err;
    double scalars[4] = {0};
    float w[4], b[2];

    if (cameo_trainer_new(model, NULL, &trainer, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    const size_t count = cameo_trainer_input_count(trainer);
    CHECK(count <= 4);
    for (size_t i = 0; i < count; i++) {
        const char *name = cameo_trainer_input(trainer, i)->name.data;

        feeds[i] = cameo_feed_tensor(name, strcmp(name, "t") == 0 ? &ts : &xs);
    }
    for (int i = 0; i < STEPS; i++) {
        if (cameo_trainer_step(trainer, feeds, count, scalars, &err) != CAMEO_OK)
            fail_msg("%s", err.message);
        out[i] = scalars[cameo_trainer_loss(trainer)];
    }
    cameo_trainer_read_variable(trainer, cameo_trainer_find_variable(trainer, "w"), w, sizeof w,
                                &err);
    cameo_trainer_read_variable(trainer, cameo_trainer_find_variable(trainer, "b"), b, sizeof b,
                                &err);
    for (int i = 0; i < 6; i++)
        out[STEPS + i] = i < 4 ? (double)w[i] : (double)b[i - 4];
    cameo_trainer_free(trainer);
}

static size_t violations(const struct cameo_model *model)
{
    struct cameo_findings *findings = NULL;
    struct cameo_error err;

    if (cameo_model_check(model, NULL, &findings, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    const size_t count = cameo_findings_violations(findings);
    for (size_t i = 0; i < cameo_findings_count(findings); i++)
        if (cameo_findings_at(findings, i)->severity == CAMEO_VIOLATION)
            print_message("%s: %s: %s\n", cameo_findings_at(findings, i)->rule.data,
                          cameo_findings_at(findings, i)->place.data,
                          cameo_findings_at(findings, i)->reason.data);
    cameo_findings_free(findings);
    return count;
}

/* Trained as it is, and once more after it was brought to today's form; both like the other. */
static void same(const char *old, const char *today)
{
    struct cameo_model *a = load(old), *b = load(today);
    double as_it_is[NUMBERS], upgraded[NUMBERS], wanted[NUMBERS];
    struct cameo_error err;
    size_t converted = 0;

    CHECK_INT(violations(a), 0);
    CHECK_INT(violations(b), 0);
    train(a, as_it_is);
    train(b, wanted);
    CHECK(wanted[STEPS - 1] != wanted[0]);
    CHECK(memcmp(as_it_is, wanted, sizeof wanted) == 0);
    CHECK_INT(cameo_model_upgrade_training(a, &converted, &err), CAMEO_OK);
    CHECK_INT(converted, 1);
    CHECK_INT(violations(a), 0);
    train(a, upgraded);
    CHECK(memcmp(upgraded, wanted, sizeof wanted) == 0);
    for (size_t i = 0; i < cameo_model_summary(a)->operator_count; i++)
        CHECK(strcmp(cameo_model_operator(a, i)->name.data, "GraphCall") != 0);
    cameo_model_free(a);
    cameo_model_free(b);
}

static const char plain[] = HEAD GRAPH "training { algorithm: step (float[N,2] t)" OUTPUTS
                                       " p = Identity(y)\n" UPDATE("\"x\", ") "(w, b, x, t)\n" STEP;

void test_graph_calls__one_call_becomes_the_graph_itself(void)
{
    same(HEAD GRAPH "training { algorithm: step (float[N,2] data, float[N,2] t)" OUTPUTS
                    " p = " CALL
                    "<graph_name = \"net\">(data)\n" UPDATE("\"data\", ") "(w, b, data, t)\n" STEP,
         plain);
}

void test_graph_calls__names_of_both_graphs_do_not_mix(void)
{
    /* x, y, h and s mean other things here */
    same(HEAD GRAPH "training { algorithm: step (float[N,2] h, float[N,2] t)" OUTPUTS
                    " y, x = " CALL "<graph_name = \"net\">(h, )\n p = Identity(y)\n"
                    " s = Neg(x)\n" UPDATE("\"h\", ") "(w, b, h, t)\n" STEP,
         plain);
}

void test_graph_calls__an_argument_that_is_computed_makes_a_copy(void)
{
    same(HEAD GRAPH "training { algorithm: step (float[N,2] x, float[N,2] t)" OUTPUTS
                    " n = Neg(x)\n p = " CALL
                    "<graph_name = \"net\">(n)\n" UPDATE("\"n\", ") "(w, b, n, t)\n" STEP,
         HEAD GRAPH "training { algorithm: step (float[N,2] in, float[N,2] t)" OUTPUTS
                    " n = Neg(in)\n h2 = MatMul(n, w)\n s2 = Tanh(h2)\n p = Add(s2, b)\n" UPDATE(
                        "\"n\", ") "(w, b, n, t)\n" STEP);
}

void test_graph_calls__inputs_with_an_initializer_may_be_given(void)
{
    same(HEAD GRAPH "training { algorithm: step (float[N,2] x, float[N,2] t)" OUTPUTS
                    " v = Neg(w)\n p = " CALL
                    "<graph_name = \"net\">(x, v)\n" UPDATE("\"x\", ") "(w, b, x, t)\n" STEP,
         HEAD GRAPH "training { algorithm: step (float[N,2] in, float[N,2] t)" OUTPUTS
                    " v = Neg(w)\n h2 = MatMul(in, v)\n s2 = Tanh(h2)\n p = Add(s2, b)\n" UPDATE(
                        "\"in\", ") "(w, b, in, t)\n" STEP);
}

void test_graph_calls__several_calls_share_their_weights(void)
{
    same(HEAD GRAPH "training { algorithm: step (float[N,2] x, float[N,2] t)" OUTPUTS
                    " n = Neg(x)\n y = " CALL "<graph_name = \"net\">(x)\n"
                    " z, k = " CALL "<graph_name = \"net\">(n)\n m = Add(k, z)\n"
                    " p = Mul(y, m)\n" UPDATE("\"x\", ") "(w, b, x, t)\n" STEP,
         HEAD GRAPH "training { algorithm: step (float[N,2] t)" OUTPUTS
                    " n = Neg(x)\n h2 = MatMul(n, w)\n s2 = Tanh(h2)\n z = Add(s2, b)\n"
                    " m = Add(h2, z)\n p = Mul(y, m)\n" UPDATE("\"x\", ") "(w, b, x, t)\n" STEP);
}

/* What a Gradient differentiates by inside the graph: dh has the shape of a row of w. */
#define INSIDE(h)                                                                                  \
    " e = Sub(p, t)\n q = Mul(e, e)\n loss = ReduceMean<keepdims = 0>(q)\n"                        \
    " dh = " GRAD "<xs = [\"" h "\"], zs = [\"b\", \"t\"], y = \"loss\">"
#define INSIDE_STEP " gb = ReduceSum<axes = [0], keepdims = 0>(dh)\n g = Mul(w, rate)\n" STEP

void test_graph_calls__a_gradient_reaches_into_the_graph(void)
{
    same(HEAD GRAPH "training { algorithm: step (float[N,2] data, float[N,2] t)" OUTPUTS
                    " p, hh = " CALL
                    "<graph_name = \"net\">(data)\n" INSIDE("s") "(hh, b, t)\n" INSIDE_STEP,
         HEAD GRAPH "training { algorithm: step (float[N,2] t)" OUTPUTS
                    " p = Identity(y)\n" INSIDE("s") "(h, b, t)\n" INSIDE_STEP);
    same(HEAD GRAPH "training { algorithm: step (float[N,2] data, float[N,2] t)" OUTPUTS
                    " n = Neg(data)\n p, hh = " CALL
                    "<graph_name = \"net\">(n)\n" INSIDE("s") "(hh, b, t)\n" INSIDE_STEP,
         HEAD GRAPH "training { algorithm: step (float[N,2] in, float[N,2] t)" OUTPUTS
                    " n = Neg(in)\n h2 = MatMul(n, w)\n s2 = Tanh(h2)\n p = Add(s2, b)\n" INSIDE(
                        "s2") "(h2, b, t)\n" INSIDE_STEP);
}

static void refused(const char *text, const char *part, size_t wanted)
{
    struct cameo_model *model = load(text);
    struct cameo_trainer *trainer = NULL;
    struct cameo_error err;

    CHECK(cameo_trainer_new(model, NULL, &trainer, &err) != CAMEO_OK);
    if (!strstr(err.message, part))
        fail_msg("'%s' is not in '%s'", part, err.message);
    CHECK(cameo_model_upgrade_training(model, NULL, &err) != CAMEO_OK);
    CHECK(strstr(err.message, part));
    CHECK_INT(violations(model), wanted);
    cameo_model_free(model);
}

#define TRIES(graph, nodes)                                                                        \
    HEAD graph "training { algorithm: step (float[N,2] x, float[N,2] t)" OUTPUTS nodes UPDATE(     \
        "\"x\", ") "(w, b, x, t)\n" STEP

void test_graph_calls__what_makes_no_sense_is_refused(void)
{
    refused(TRIES(GRAPH, " p = " CALL "<graph_name = \"other\">(x)\n"), "calls graph 'other'", 1);
    refused(TRIES(GRAPH, " p = " CALL "(x)\n"), "'graph_name' is missing", 1);
    refused(TRIES(GRAPH, " p = " CALL "<graph_name = \"net\">(x, w, b)\n"), "has 3 inputs", 1);
    refused(TRIES(GRAPH, " p, k, l = " CALL "<graph_name = \"net\">(x)\n"), "has 3 outputs", 1);
    refused(TRIES(GRAPH, " p = " CALL "<graph_name = \"net\">(, w)\n"), "leaves out input 'x'", 1);
    refused(TRIES(GRAPH, " k = " CALL "<graph_name = \"net\">(x)\n p = Identity(y)\n"),
            "reads 'y', which the algorithm does not define", 1);
    refused(TRIES("net (float[N,2] x) => (float[N,2] y)\n"
                  "<float[2,2] w = {1, 1, 1, 1}, float[2] b = {1, 1}>\n"
                  "{ h = " CALL "<graph_name = \"net\">(x)\n y = Add(h, b) }\n",
                  " p = " CALL "<graph_name = \"net\">(x)\n"),
            "calls itself", 1);
    refused(HEAD GRAPH "training { algorithm: step (float[N,2] x, float[N,2] t)" OUTPUTS
                       " p = " CALL "<graph_name = \"net\">(x)\n k = " CALL
                       "<graph_name = \"net\">(t)\n" INSIDE("h") "(x, b, t)\n" INSIDE_STEP,
            "called 2 times", 0);
    refused(HEAD GRAPH "training { algorithm: step (float[N,2] x, float[N,2] t)"
                       " => (float[N,2] y) <float[1] s = {1}> { y = " CALL
                       "<graph_name = \"net\">(x) }, update_binding: [\"w\": \"y\"] }\n",
            "has the name of something in the inference graph", 1);
}
