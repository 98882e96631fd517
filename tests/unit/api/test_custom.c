/* Operators of one's own whose body and gradient are texts, through the public API alone. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api_case.h"
#include "api/lend.h"
#include "base/memory.h"
#include "cameo.h"
#include "check.h"

#include <math.h>

#define HEAD                                                                                       \
    "<ir_version: 8, opset_import: [\"\" : 17, \"ex\" : 1, \"ai.onnx.preview.training\" : 1]>\n"
#define OPSETS "opset_import: [\"\" : 17]"

static const uint64_t floats = CAMEO_TYPE_BIT(CAMEO_FLOAT) | CAMEO_TYPE_BIT(CAMEO_DOUBLE);

/* ---- y = x / (1 + |x| / limit), with a gradient that is a text ---- */

static enum cameo_status limit_run(struct cameo_call *call, void *arg)
{
    const float limit = cameo_call_float(call, "limit");
    struct cameo_tensor x = CAMEO_TENSOR_INIT, y = CAMEO_TENSOR_INIT;

    (void)arg;
    if (!cameo_call_input(call, 0, &x) || !cameo_call_output(call, 0, &y))
        return CAMEO_OK;
    for (int64_t i = 0; i < cameo_tensor_count(&x); i++)
        ((float *)y.data)[i] =
            ((const float *)x.data)[i] / (1 + fabsf(((const float *)x.data)[i]) / limit);
    return CAMEO_OK;
}

static const char limit_gradient[] = "<domain: \"ex\", " OPSETS ">\n"
                                     "SoftLimitGradient <limit> (x, d_y) => (d_x) {\n"
                                     "  l = Constant <value_float: float = @limit> ()\n"
                                     "  size = Abs(x)\n"
                                     "  part = Div(size, l)\n"
                                     "  one = Constant <value_float = 1.0> ()\n"
                                     "  sum = Add(one, part)\n"
                                     "  square = Mul(sum, sum)\n"
                                     "  d_x = Div(d_y, square)\n"
                                     "}";

static struct cameo_custom_operator limit_operator(void)
{
    static const struct cameo_operand x = {sizeof(struct cameo_operand), "x", "T",
                                           CAMEO_TYPE_BIT(CAMEO_FLOAT), CAMEO_OPERAND_SINGLE};
    static const struct cameo_operand y = {sizeof(struct cameo_operand), "y", "T",
                                           CAMEO_TYPE_BIT(CAMEO_FLOAT), CAMEO_OPERAND_SINGLE};
    static const struct cameo_attribute limit = {
        sizeof(struct cameo_attribute), "limit", CAMEO_ATTRIBUTE_FLOAT, false, true, 2, 0, NULL};
    struct cameo_custom_operator op = CAMEO_CUSTOM_OPERATOR_INIT;

    op.domain = "ex";
    op.name = "SoftLimit";
    op.inputs = &x;
    op.outputs = &y;
    op.input_count = op.output_count = 1;
    op.attributes = &limit;
    op.attribute_count = 1;
    op.run = limit_run;
    op.gradient = limit_gradient;
    return op;
}

/* ---- a sum or a product, of one operand or two: a body made for each use ---- */

static enum cameo_status blend_body(struct cameo_use *use, void *arg)
{
    const struct cameo_text mode = cameo_use_string(use, "mode");
    char text[400];
    size_t count;

    (void)arg;
    CHECK(cameo_use_input_count(use) >= 1 && cameo_use_input_count(use) <= 2);
    CHECK_INT(cameo_use_output_count(use), 1);
    CHECK(cameo_use_wants(use, 0) && !cameo_use_wants(use, 1));
    CHECK_INT(cameo_use_rank(use, 0), 1);
    CHECK_INT(cameo_use_dim(use, 0, 0), 2);
    CHECK_INT(cameo_use_dim(use, 0, 1), -1);
    (void)cameo_use_floats(use, "weights", &count);
    CHECK_INT(count, 0);
    const int64_t *repeat = cameo_use_ints(use, "repeat", &count);
    const bool twice = count == 1 && repeat[0] == 2;
    if (strcmp(mode.data, "sum") != 0 && strcmp(mode.data, "product") != 0)
        return cameo_use_fail(use, CAMEO_UNSUPPORTED, "the mode is neither sum nor product");
    const char *op = cameo_use_dtype(use, 1) == CAMEO_UNDEFINED ? "Identity(a)"
                     : mode.data[0] == 's'                      ? "Add(a, b)"
                                                                : "Mul(a, b)";
    snprintf(text, sizeof text, "<domain: \"ex\", %s> Blend (a, b) => (y) { z = %s y = %s }",
             OPSETS, op, twice ? "Add(z, z)" : "Identity(z)");
    return cameo_use_give(use, text);
}

/* Of the first operand alone, and only of products. */
static enum cameo_status blend_gradient(struct cameo_use *use, void *arg)
{
    if (cameo_use_int(use, "blocked"))
        return cameo_use_fail(use, CAMEO_UNSUPPORTED, "its gradient is blocked");
    ++*(int *)arg;
    return cameo_use_give(use,
                          "<domain: \"ex\", " OPSETS "> G (b, d_y) => (d_a) { d_a = Mul(b, d_y) }");
}

static struct cameo_custom_operator blend_operator(int *counter)
{
    static struct cameo_operand inputs[] = {
        {sizeof(struct cameo_operand), "a", "T", 0, CAMEO_OPERAND_SINGLE},
        {sizeof(struct cameo_operand), "b", "T", 0, CAMEO_OPERAND_OPTIONAL}};
    static struct cameo_operand y = {sizeof(struct cameo_operand), "y", "T", 0,
                                     CAMEO_OPERAND_SINGLE};
    static const struct cameo_attribute attributes[] = {
        {sizeof(struct cameo_attribute), "mode", CAMEO_ATTRIBUTE_STRING, false, true, 0, 0, "sum"},
        {sizeof(struct cameo_attribute), "repeat", CAMEO_ATTRIBUTE_INTS, false, false, 0, 0, NULL},
        {sizeof(struct cameo_attribute), "weights", CAMEO_ATTRIBUTE_FLOATS, false, false, 0, 0,
         NULL},
        {sizeof(struct cameo_attribute), "blocked", CAMEO_ATTRIBUTE_INT, false, true, 0, 0, NULL},
    };
    struct cameo_custom_operator op = CAMEO_CUSTOM_OPERATOR_INIT;

    inputs[0].types = inputs[1].types = y.types = floats;
    op.domain = "ex";
    op.name = "Blend";
    op.inputs = inputs;
    op.input_count = 2;
    op.outputs = &y;
    op.output_count = 1;
    op.attributes = attributes;
    op.attribute_count = 4;
    op.make_body = blend_body;
    op.arg = counter;
    return op;
}

/* ---- running ---- */

static struct cameo_registry *registry_of(const struct cameo_custom_operator *op)
{
    struct cameo_registry *registry;
    struct cameo_error err;

    OK(cameo_registry_new(&registry, &err));
    OK(cameo_registry_add(registry, op, &err));
    return registry;
}

/* Runs a model of float[2] inputs a and b on these, with and without a plan; y has two elements. */
static enum cameo_status run(const struct cameo_registry *registry, const char *text, float y[2],
                             struct cameo_error *err)
{
    static const float a[] = {3, -5}, b[] = {7, 11};
    static const int64_t dims[] = {2};
    const struct cameo_feed feeds[] = {
        cameo_feed_tensor("a", lend(CAMEO_FLOAT, 1, dims, a, sizeof a)),
        cameo_feed_tensor("b", lend(CAMEO_FLOAT, 1, dims, b, sizeof b))};
    struct cameo_fetch fetch = cameo_fetch_tensor("y", lend(CAMEO_FLOAT, 1, dims, y, 8));
    struct cameo_session_options options = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_model *model = load_text(text);
    enum cameo_status status = CAMEO_OK;

    options.registry = registry;
    for (int plain = 0; plain < 2 && status == CAMEO_OK; plain++) {
        struct cameo_session *session = NULL;

        options.backend = plain ? "plain" : NULL;
        status = cameo_session_new(model, &options, &session, err);
        if (status == CAMEO_OK)
            status = cameo_session_run(session, feeds, 2, &fetch, 1, NULL, err);
        cameo_session_free(session);
    }
    cameo_model_free(model);
    return status;
}

static void check_run(const struct cameo_registry *registry, const char *text, double first,
                      double second)
{
    struct cameo_error err;
    float y[2];

    OK(run(registry, text, y, &err));
    if (fabs((double)y[0] - first) > 1e-6 || fabs((double)y[1] - second) > 1e-6)
        fail_msg("%s gives %g %g, not %g %g", text, (double)y[0], (double)y[1], first, second);
}

#define GRADIENT(call, by)                                                                         \
    HEAD "g (float[2] a, float[2] b) => (float[2] y) {\n  v = " call "\n"                          \
         "  s = ReduceSum<keepdims = 0>(v)\n"                                                      \
         "  y = ai.onnx.preview.training.Gradient<xs = [\"" by "\"], y = \"s\">(" by ")\n}"
#define PLAIN(call) HEAD "g (float[2] a, float[2] b) => (float[2] y) {\n  y = " call "\n}"

void test_custom__a_gradient_as_text_is_used(void)
{
    const struct cameo_custom_operator op = limit_operator();
    struct cameo_registry *registry = registry_of(&op);

    check_run(registry, PLAIN("ex.SoftLimit(a)"), 3 / 2.5, -5 / 3.5);
    check_run(registry, GRADIENT("ex.SoftLimit(a)", "a"), 1 / (2.5 * 2.5), 1 / (3.5 * 3.5));
    check_run(registry, GRADIENT("ex.SoftLimit<limit = 1.0>(a)", "a"), 1 / 16.0, 1 / 36.0);
    cameo_registry_free(registry);
}

/* Without options: a gradient, a preparation, and a trainer of what it gives. */
void test_custom__a_model_knows_the_registry_it_was_given(void)
{
    static const char text[] = HEAD "g (float[2] a) => (float[2] y) <float[2] w = {1, 1}> {\n"
                                    "  p = Mul(a, w)\n  y = ex.SoftLimit(p)\n}";
    const struct cameo_custom_operator op = limit_operator();
    struct cameo_registry *registry = registry_of(&op);
    struct cameo_prepare_options options = CAMEO_PREPARE_OPTIONS_INIT;
    struct cameo_model *model = load_text(text), *made, *copy;
    struct cameo_session *session;
    struct cameo_trainer *trainer;
    struct cameo_error err;
    const char *wrt = "a";

    REFUSED(cameo_model_gradient(model, "y", &wrt, 1, false, &made, &err), CAMEO_UNSUPPORTED,
            "SoftLimit");
    cameo_model_set_registry(model, registry);
    OK(cameo_model_gradient(model, "y", &wrt, 1, false, &made, &err));
    OK(cameo_session_new(made, NULL, &session, &err));
    cameo_session_free(session);
    cameo_model_free(made);

    OK(cameo_model_copy(model, &copy, &err));
    options.loss = "mse";
    options.optimizer = "sgd";
    OK(cameo_model_prepare(copy, &options, NULL, &err));
    OK(cameo_trainer_new(copy, NULL, &trainer, &err));
    cameo_trainer_free(trainer);
    OK(cameo_model_step(copy, false, &made, &err));
    cameo_model_free(made);
    cameo_model_free(copy);
    cameo_model_set_registry(model, NULL);
    REFUSED(cameo_session_new(model, NULL, &session, &err), CAMEO_UNSUPPORTED, "SoftLimit");
    cameo_model_free(model);
    cameo_registry_free(registry);
}

/* ---- attributes of every kind, for both functions ---- */

static bool is_text(struct cameo_text text, const char *wanted)
{
    return text.size == strlen(wanted) && memcmp(text.data, wanted, text.size) == 0;
}

static enum cameo_status kinds_infer(struct cameo_infer *in, void *arg)
{
    struct cameo_text text;
    size_t count;

    (void)arg;
    CHECK(cameo_infer_has(in, "s") && cameo_infer_has(in, "d") && !cameo_infer_has(in, "none"));
    CHECK(is_text(cameo_infer_string(in, "s"), "word"));
    CHECK(is_text(cameo_infer_string(in, "d"), "default"));
    CHECK_INT(cameo_infer_floats(in, "fs", &count)[1] * 10, 25);
    CHECK_INT(count, 2);
    CHECK(cameo_infer_string_at(in, "ss", 1, &text) && !cameo_infer_string_at(in, "ss", 2, &text));
    CHECK(is_text(text, "bc"));
    return cameo_infer_set_like(in, 0, 0);
}

static enum cameo_status kinds_run(struct cameo_call *call, void *arg)
{
    struct cameo_tensor y = CAMEO_TENSOR_INIT;
    struct cameo_text text;

    (void)arg;
    CHECK(cameo_call_has(call, "s") && cameo_call_has(call, "d") && !cameo_call_has(call, "none"));
    CHECK(cameo_call_string_at(call, "ss", 0, &text) &&
          !cameo_call_string_at(call, "ss", 2, &text));
    CHECK_INT(text.size, 1);
    CHECK(cameo_call_output(call, 0, &y));
    ((float *)y.data)[0] = ((float *)y.data)[1] = 1;
    return CAMEO_OK;
}

void test_custom__attributes_of_every_kind(void)
{
    static const struct cameo_attribute attributes[] = {
        {sizeof(struct cameo_attribute), "s", CAMEO_ATTRIBUTE_STRING, true, false, 0, 0, NULL},
        {sizeof(struct cameo_attribute), "d", CAMEO_ATTRIBUTE_STRING, false, true, 0, 0, "default"},
        {sizeof(struct cameo_attribute), "none", CAMEO_ATTRIBUTE_INT, false, false, 0, 0, NULL},
        {sizeof(struct cameo_attribute), "fs", CAMEO_ATTRIBUTE_FLOATS, true, false, 0, 0, NULL},
        {sizeof(struct cameo_attribute), "ss", CAMEO_ATTRIBUTE_STRINGS, true, false, 0, 0, NULL},
    };
    struct cameo_custom_operator op = limit_operator();

    op.name = "Kinds";
    op.attributes = attributes;
    op.attribute_count = sizeof attributes / sizeof *attributes;
    op.infer = kinds_infer;
    op.run = kinds_run;
    op.gradient = NULL;
    struct cameo_registry *registry = registry_of(&op);
    check_run(registry, PLAIN("ex.Kinds<s = \"word\", fs = [1.0, 2.5], ss = [\"a\", \"bc\"]>(a)"),
              1, 1);
    cameo_registry_free(registry);
}

void test_custom__a_body_depends_on_attributes_and_operands(void)
{
    const struct cameo_custom_operator op = blend_operator(NULL);
    struct cameo_registry *registry = registry_of(&op);
    struct cameo_error err;
    float y[2];

    check_run(registry, PLAIN("ex.Blend(a, b)"), 10, 6);
    check_run(registry, PLAIN("ex.Blend<mode = \"product\">(a, b)"), 21, -55);
    check_run(registry, PLAIN("ex.Blend<repeat = [2]>(a)"), 6, -10);
    REFUSED(run(registry, PLAIN("ex.Blend<mode = \"odd\">(a, b)"), y, &err), CAMEO_UNSUPPORTED,
            "the mode is neither sum nor product");

    /* Through the body, as there is no gradient. */
    check_run(registry, GRADIENT("ex.Blend<mode = \"product\">(a, b)", "b"), 3, -5);
    cameo_registry_free(registry);
}

void test_custom__a_gradient_is_made_for_each_use(void)
{
    int asked = 0;
    struct cameo_custom_operator op = blend_operator(&asked);
    struct cameo_error err;
    float y[2];

    op.make_gradient = blend_gradient;
    struct cameo_registry *registry = registry_of(&op);
    check_run(registry, GRADIENT("ex.Blend<mode = \"product\">(a, b)", "a"), 7, 11);
    CHECK(asked > 0);
    REFUSED(run(registry, GRADIENT("ex.Blend<blocked = 1>(a, b)", "a"), y, &err), CAMEO_UNSUPPORTED,
            "its gradient is blocked");
    cameo_registry_free(registry);
}

static enum cameo_status silent(struct cameo_use *use, void *arg)
{
    (void)use, (void)arg;
    return CAMEO_OK;
}

static enum cameo_status nonsense(struct cameo_use *use, void *arg)
{
    (void)arg;
    return cameo_use_give(use, "this is no function");
}

static enum cameo_status narrow(struct cameo_use *use, void *arg)
{
    (void)arg;
    return cameo_use_give(use, "<domain: \"ex\", " OPSETS "> Blend (a) => (y) { y = Neg(a) }");
}

void test_custom__makers_that_misbehave_are_told(void)
{
    static const struct {
        cameo_use_fn *maker;
        const char *part;
    } rows[] = {{silent, "gave no text"}, {nonsense, "line 1"}, {narrow, "1 inputs, the node 2"}};
    struct cameo_error err;
    float y[2];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cameo_custom_operator op = blend_operator(NULL);

        op.make_body = rows[i].maker;
        struct cameo_registry *registry = registry_of(&op);
        REFUSED(run(registry, PLAIN("ex.Blend(a, b)"), y, &err), CAMEO_BAD_MODEL, rows[i].part);
        cameo_registry_free(registry);
    }
}

void test_custom__gradients_that_fit_no_operator_are_refused(void)
{
    static const struct {
        const char *gradient, *part;
    } rows[] = {
        {"nothing", "line 1"},
        {"<domain: \"ex\", " OPSETS "> G (q, d_y) => (d_x) { d_x = Mul(q, d_y) }", "takes 'q'"},
        {"<domain: \"ex\", " OPSETS "> G (x, d_x) => (d_x) { d_x = Mul(x, d_x) }", "takes 'd_x'"},
        {"<domain: \"ex\", " OPSETS "> G (x, d_y) => (z) { z = Mul(x, d_y) }", "gives 'z'"},
    };
    struct cameo_custom_operator op = limit_operator();
    struct cameo_registry *registry;
    struct cameo_error err;

    OK(cameo_registry_new(&registry, &err));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        op.gradient = rows[i].gradient;
        CHECK(cameo_registry_add(registry, &op, &err) != CAMEO_OK);
        if (!strstr(err.message, rows[i].part))
            fail_msg("'%s' is not in '%s'", rows[i].part, err.message);
    }
    op.make_gradient = blend_gradient;
    REFUSED(cameo_registry_add(registry, &op, &err), CAMEO_BAD_ARGUMENT, "a gradient and");
    op = blend_operator(NULL);
    op.body = limit_gradient;
    REFUSED(cameo_registry_add(registry, &op, &err), CAMEO_BAD_ARGUMENT, "a body and");
    op.body = NULL;
    op.make_body = NULL;
    REFUSED(cameo_registry_add(registry, &op, &err), CAMEO_BAD_ARGUMENT, "neither");
    cameo_registry_free(registry);
}

/* ---- memory that gives out while a function of the user's is running ---- */

enum { PADDING = 1 << 21 }; /* more than a block of an arena has to spare */

struct frames {
    int entered, left;
    int infer_refused, give_refused, string_refused;
    char *padding;
};

static enum cameo_status wide_infer(struct cameo_infer *in, void *arg)
{
    struct frames *frames = arg;
    int64_t dims[64];
    enum cameo_status status = CAMEO_OK;

    frames->entered++;
    for (int i = 0; i < 64; i++)
        dims[i] = 1;
    for (int i = 0; i < 4000 && status == CAMEO_OK; i++)
        status = cameo_infer_set(in, 0, CAMEO_FLOAT, 64, dims);
    frames->infer_refused += status == CAMEO_NO_MEMORY;
    (void)cameo_infer_set_like(in, 0, 0);
    frames->left++;
    return CAMEO_OK; /* whatever it was told */
}

static enum cameo_status long_body(struct cameo_use *use, void *arg)
{
    struct frames *frames = arg;

    frames->entered++;
    frames->string_refused += cameo_use_string(use, "mode").size != PADDING;
    const enum cameo_status status = cameo_use_give(use, frames->padding);
    frames->give_refused += status == CAMEO_NO_MEMORY;
    frames->left++;
    return status;
}

/* Its text, and the default of its mode, are long. */
static void exhaust(struct frames *frames, char *mode)
{
    static const char body[] = "<domain: \"ex\", " OPSETS "> Blend (a, b) => (y) { y = Add(a, b) }";
    static struct cameo_attribute attribute = {
        sizeof(struct cameo_attribute), "mode", CAMEO_ATTRIBUTE_STRING, false, true, 0, 0, NULL};
    struct cameo_custom_operator op = blend_operator(NULL);
    enum cameo_status status = CAMEO_NO_MEMORY;
    struct cameo_error err;
    float y[2];

    memset(mode, 'm', PADDING);
    mode[PADDING] = 0;
    memset(frames->padding, ' ', PADDING);
    memcpy(frames->padding + PADDING, body, sizeof body);
    attribute.s = mode;
    op.attributes = &attribute;
    op.attribute_count = 1;
    op.infer = wide_infer;
    op.make_body = long_body;
    op.arg = frames;
    struct cameo_registry *registry = registry_of(&op);
    struct cameo_session_options options = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_model *model = load_text(PLAIN("ex.Blend(a, b)"));
    options.registry = registry;
    options.threads = 1;
    for (uint64_t n = 1; status != CAMEO_OK && n < 100000; n++) {
        struct cameo_session *session = NULL;

        cm_memory_fail_after(n);
        status = cameo_session_new(model, &options, &session, &err);
        cm_memory_fail_after(0);
        cameo_session_free(session);
        if (status != CAMEO_OK && status != CAMEO_NO_MEMORY)
            fail_msg("allocation %llu: %s", (unsigned long long)n, err.message);
        CHECK_INT(frames->left, frames->entered);
    }
    cameo_model_free(model);
    OK(run(registry, PLAIN("ex.Blend(a, b)"), y, &err));
    CHECK(y[0] == 10 && y[1] == 6);
    cameo_registry_free(registry);
}

void test_custom__functions_of_the_user_return_when_memory_gives_out(void)
{
    struct frames frames = {.padding = test_malloc(PADDING + 1000)};
    char *mode = test_malloc(PADDING + 1);

    exhaust(&frames, mode);
    CHECK(frames.infer_refused > 0);
    CHECK(frames.string_refused > 0);
    CHECK(frames.give_refused > 0);
    test_free(mode);
    test_free(frames.padding);
}

/* One step of 1/10 along the gradient of the sum of SoftLimit(x w). */
void test_custom__a_model_is_trained_through_it(void)
{
    static const char text[] =
        HEAD "line (float[1] x) => (float[1] y) <float[1] w = {1}>\n"
             "{ v = Mul(x, w) y = ex.SoftLimit(v) }\n"
             "training { algorithm: step () => (float loss, float[1] w_new) <float rate = {0.1}>\n"
             "  { loss = ReduceSum<keepdims = 0>(y)\n"
             "    g = ai.onnx.preview.training.Gradient<xs = [\"w\"], y = \"loss\">(w)\n"
             "    m = Mul(g, rate)\n    w_new = Sub(w, m) },\n"
             "  update_binding: [\"w\": \"w_new\"]\n}\n";
    static const float x = 3;
    static const int64_t dims[] = {1};
    const struct cameo_feed feed = cameo_feed_tensor("x", lend(CAMEO_FLOAT, 1, dims, &x, sizeof x));
    const struct cameo_custom_operator op = limit_operator();
    struct cameo_registry *registry = registry_of(&op);
    struct cameo_trainer_options options = CAMEO_TRAINER_OPTIONS_INIT;
    struct cameo_model *model = load_text(text);
    struct cameo_trainer *trainer;
    struct cameo_error err;
    double loss;
    float w;

    options.registry = registry;
    OK(cameo_trainer_new(model, &options, &trainer, &err));
    OK(cameo_trainer_step(trainer, &feed, 1, &loss, &err));
    OK(cameo_trainer_read_variable(trainer, cameo_trainer_find_variable(trainer, "w"), &w, sizeof w,
                                   &err));
    CHECK(fabs(loss - 3 / 2.5) < 1e-6);
    CHECK(fabs((double)w - (1 - 0.1 * 3 / (2.5 * 2.5))) < 1e-6);
    cameo_trainer_free(trainer);
    cameo_model_free(model);
    cameo_registry_free(registry);
}
