/* Steps by halves, flat parameters and gradients, and whole runs with a caller who is told. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "api/lend.h"
#include "base/folder.h"
#include "cameo.h"
#include "check.h"

#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != CAMEO_OK)                                                                    \
            fail_msg("%s: %s", #call, err.message);                                                \
    } while (0)

static struct cameo_model *load(const char *text)
{
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model;
    struct cameo_error err;

    options.format = CAMEO_FORMAT_TEXT;
    OK(cameo_model_load_memory(text, strlen(text), &options, &model, &err));
    return model;
}

static struct cameo_trainer *open_trainer(struct cameo_model *model, bool gradients)
{
    struct cameo_trainer_options options = CAMEO_TRAINER_OPTIONS_INIT;
    struct cameo_trainer *trainer;
    struct cameo_error err;

    options.threads = 1;
    options.seed = 5;
    options.gradients = gradients;
    OK(cameo_trainer_new(model, &options, &trainer, &err));
    return trainer;
}

/* Two layers with a normalization whose statistics are bound too; one weight is frozen by name. */
static const char net[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"
    "net (float[N,3] x) => (float[N,2] y)\n"
    "<float[3,4] w1 = {0.1,-0.2,0.3,0.4,0.5,-0.6,0.7,0.8,-0.9,0.1,0.2,0.3},\n"
    " float[4] scale = {1,1,1,1}, float[4] shift = {0,0,0,0},\n"
    " float[4] mean = {0,0,0,0}, float[4] var = {1,1,1,1},\n"
    " float[4,2] w2 = {0.3,-0.1,0.2,0.5,-0.4,0.6,0.1,0.2}, float[2] b2 = {0.1,-0.1}>\n"
    "{ h = MatMul(x, w1)\n  n = BatchNormalization(h, scale, shift, mean, var)\n"
    "  a = Tanh(n)\n  z = MatMul(a, w2)\n  y = Add(z, b2) }\n";

static struct cameo_model *prepared(int64_t accumulate)
{
    struct cameo_prepare_options options = CAMEO_PREPARE_OPTIONS_INIT;
    struct cameo_model *model = load(net);
    struct cameo_error err;

    options.loss = "mse";
    options.optimizer = "adamw";
    options.lr = 0.05;
    options.clip_norm = 0.5;
    options.accumulate = accumulate;
    options.schedule = CAMEO_SCHEDULE_COSINE;
    options.schedule_steps = 20;
    OK(cameo_model_prepare(model, &options, NULL, &err));
    return model;
}

enum { ROWS = 5 };

struct batch {
    float x[ROWS][3], t[ROWS][2];
    struct cameo_feed feeds[2];
};

static void fill(struct batch *batch, int number)
{
    static const int64_t x_dims[] = {ROWS, 3}, t_dims[] = {ROWS, 2};

    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < 3; j++)
            batch->x[i][j] = (float)sin(number * 7.1 + i * 1.3 + j * 2.7);
        batch->t[i][0] = batch->x[i][0] - batch->x[i][2];
        batch->t[i][1] = batch->x[i][1] * batch->x[i][1];
    }
    batch->feeds[0] =
        cameo_feed_tensor("x", lend(CAMEO_FLOAT, 2, x_dims, batch->x, sizeof batch->x));
    batch->feeds[1] =
        cameo_feed_tensor("target", lend(CAMEO_FLOAT, 2, t_dims, batch->t, sizeof batch->t));
}

static void check_same_variables(const struct cameo_trainer *a, const struct cameo_trainer *b)
{
    struct cameo_error err;
    char x[256], y[256];

    CHECK_INT(cameo_trainer_variable_count(a), cameo_trainer_variable_count(b));
    for (size_t i = 0; i < cameo_trainer_variable_count(a); i++) {
        const size_t size = (size_t)cameo_trainer_variable(a, i)->bytes;

        CHECK(size <= sizeof x);
        OK(cameo_trainer_read_variable(a, i, x, size, &err));
        OK(cameo_trainer_read_variable(b, i, y, size, &err));
        CHECK(memcmp(x, y, size) == 0);
    }
}

void test_gradients__parameters_are_listed_with_their_places(void)
{
    static const char *const names[] = {"w1", "scale", "shift", "w2", "b2"};
    static const int64_t counts[] = {12, 4, 4, 8, 2};
    struct cameo_model *model = prepared(1);
    struct cameo_trainer *whole = open_trainer(model, false), *split = open_trainer(model, true);
    struct cameo_error err;
    float values[30], back[30];
    size_t offset = 0;

    for (int t = 0; t < 2; t++) {
        const struct cameo_trainer *trainer = t ? split : whole;

        CHECK_INT(cameo_trainer_parameter_count(trainer), 5);
        CHECK(cameo_trainer_parameter(trainer, 5) == NULL);
        offset = 0;
        for (size_t i = 0; i < 5; i++) {
            const struct cameo_parameter *row = cameo_trainer_parameter(trainer, i);

            CHECK_STRING(row->name.data, names[i]);
            CHECK_INT(row->elements, counts[i]);
            CHECK_INT(row->offset, offset);
            CHECK(row->variable == cameo_trainer_find_variable(trainer, names[i]));
            offset += row->bytes;
        }
        CHECK_INT(cameo_trainer_parameter_bytes(trainer), offset);
    }
    CHECK_INT(offset, sizeof values);
    OK(cameo_trainer_read_parameters(whole, values, sizeof values, &err));
    CHECK(values[0] == 0.1f && values[12] == 1 && values[28] == 0.1f);
    for (int i = 0; i < 30; i++)
        values[i] = (float)i;
    OK(cameo_trainer_set_parameters(whole, values, sizeof values, &err));
    OK(cameo_trainer_read_variable(whole, cameo_trainer_find_variable(whole, "b2"), back,
                                   2 * sizeof *back, &err));
    CHECK(back[0] == 28 && back[1] == 29);
    CHECK(cameo_trainer_read_parameters(whole, values, 4, &err) == CAMEO_BAD_ARGUMENT);
    CHECK_STRING(err.message, "the 5 parameters have 120 bytes, the call is for 4");
    CHECK(cameo_trainer_read_gradients(whole, values, sizeof values, &err) == CAMEO_BAD_ARGUMENT);
    CHECK_STRING(err.message, "the trainer was not made for gradients, its steps are whole");
    CHECK(cameo_trainer_read_gradients(split, values, sizeof values, &err) == CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "none have been computed"));
    CHECK(cameo_trainer_apply(split, NULL, &err) == CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "no gradients to apply"));
    cameo_trainer_free(whole);
    cameo_trainer_free(split);
    cameo_model_free(model);
}

/* Clipping, accumulation, schedule and statistics included. */
static void check_halves_make_a_whole(int64_t accumulate)
{
    struct cameo_model *model = prepared(accumulate);
    struct cameo_trainer *whole = open_trainer(model, false), *split = open_trainer(model, true);
    const size_t loss = cameo_trainer_loss(whole);
    struct cameo_error err;
    struct batch batch;
    double a[4], b[4];
    float values[30];

    CHECK_INT(cameo_trainer_scalar_count(whole), 3); /* loss, lr, grad_norm */
    CHECK_INT(cameo_trainer_scalar_count(split), 3);
    for (int i = 0; i < 6; i++) {
        fill(&batch, i);
        OK(cameo_trainer_step(whole, batch.feeds, 2, a, &err));
        if (i % 2) {
            OK(cameo_trainer_step(split, batch.feeds, 2, b, &err));
        } else {
            OK(cameo_trainer_compute(split, batch.feeds, 2, b, &err));
            OK(cameo_trainer_read_gradients(split, values, sizeof values, &err));
            OK(cameo_trainer_set_gradients(split, values, sizeof values, &err));
            memset(&batch, 0, sizeof batch); /* the batch is the caller's again */
            OK(cameo_trainer_apply(split, b, &err));
        }
        CHECK(a[loss] == b[cameo_trainer_loss(split)]);
        check_same_variables(whole, split);
        CHECK_INT(cameo_trainer_steps(split), i + 1);
    }
    cameo_trainer_free(whole);
    cameo_trainer_free(split);
    cameo_model_free(model);
}

void test_gradients__two_halves_are_a_step(void)
{
    check_halves_make_a_whole(1);
    check_halves_make_a_whole(3);
}

/* y = w x, loss (y - t)^2 / 2 summed, rate 1/10. */
#define LINE_BEFORE                                                                                \
    "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.preview.training\" : 1]>\n"               \
    "line (float[N,1] x) => (float[N,1] y) <float[1,1] w = {1}>\n"                                 \
    "{ y = MatMul(x, w) }\n"                                                                       \
    "training {\n"                                                                                 \
    "  algorithm: step (float[N,1] t) => (float loss, float[1,1] w_new)\n"                         \
    "  <float rate = {0.1}, float half = {0.5}>\n"                                                 \
    "  { d = Sub(y, t)\n    s = Mul(d, d)\n    h = Mul(s, half)\n"                                 \
    "    loss = ReduceSum<keepdims = 0>(h)\n"
#define LINE_GRADIENT(y)                                                                           \
    "ai.onnx.preview.training.Gradient<xs = [\"w\"], zs = [\"x\", \"t\"], y = \"" y "\">(w, x, "   \
    "t)\n"
#define LINE_AFTER "    w_new = Sub(w, m) },\n  update_binding: [\"w\": \"w_new\"]\n}\n"

static const char line[] =
    LINE_BEFORE "    g = " LINE_GRADIENT("loss") "    m = Mul(g, rate)\n" LINE_AFTER;

static const int64_t pair[] = {2, 1};

static struct cameo_feed feed(const char *name, const float *values)
{
    return cameo_feed_tensor(name, lend(CAMEO_FLOAT, 2, pair, values, 2 * sizeof *values));
}

void test_gradients__what_the_caller_makes_of_them_is_applied(void)
{
    static const float xs[] = {1, 2}, ts[] = {3, 6};
    const struct cameo_feed feeds[] = {feed("x", xs), feed("t", ts)};
    struct cameo_model *model = load(line);
    struct cameo_trainer *trainer = open_trainer(model, true);
    struct cameo_error err;
    double loss;
    float g, w, half;

    OK(cameo_trainer_compute(trainer, feeds, 2, &loss, &err));
    OK(cameo_trainer_read_gradients(trainer, &g, sizeof g, &err));
    /* w 1: loss ((1 - 3)^2 + (2 - 6)^2) / 2, gradient -2 * 1 - 4 * 2 */
    CHECK(loss == 10 && g == -10);
    OK(cameo_trainer_read_parameters(trainer, &w, sizeof w, &err));
    CHECK(w == 1);
    CHECK(cameo_checkpoint_save(trainer, "half.safetensors", NULL, 0, &err) == CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "a step is half done"));
    half = g / 2;
    OK(cameo_trainer_set_gradients(trainer, &half, sizeof half, &err));
    OK(cameo_trainer_apply(trainer, NULL, &err));
    OK(cameo_trainer_read_parameters(trainer, &w, sizeof w, &err));
    CHECK(fabsf(w - 1.5f) < 1e-6f);
    /* Computing again instead of applying begins anew. */
    OK(cameo_trainer_compute(trainer, feeds, 2, &loss, &err));
    OK(cameo_trainer_set_parameters(trainer, &half, sizeof half, &err));
    OK(cameo_trainer_compute(trainer, feeds, 2, &loss, &err));
    OK(cameo_trainer_read_gradients(trainer, &g, sizeof g, &err));
    CHECK(fabsf(g - (5 * half - 15)) < 1e-4f);
    half = (float)NAN;
    OK(cameo_trainer_set_gradients(trainer, &half, sizeof half, &err));
    CHECK(cameo_trainer_apply(trainer, NULL, &err) == CAMEO_BAD_MODEL);
    CHECK(strstr(err.message, "'w_new' is not finite"));
    OK(cameo_trainer_read_parameters(trainer, &w, sizeof w, &err));
    CHECK(w == -5);
    CHECK_INT(cameo_trainer_steps(trainer), 1);
    cameo_trainer_free(trainer);
    cameo_model_free(model);
}

void test_gradients__a_checkpoint_ends_a_step_that_is_half_done(void)
{
    static const float xs[] = {1, 2}, ts[] = {3, 6};
    const struct cameo_feed feeds[] = {feed("x", xs), feed("t", ts)};
    struct cameo_model *model = load(line);
    struct cameo_trainer *trainer = open_trainer(model, true);
    char path[FOLDER_PATH_SIZE];
    struct folder folder;
    struct cameo_error err;
    float g, w;

    folder_make(&folder);
    folder_path(&folder, "at.safetensors", path);
    OK(cameo_checkpoint_save(trainer, path, NULL, 0, &err));
    OK(cameo_trainer_compute(trainer, feeds, 2, NULL, &err));
    OK(cameo_checkpoint_resume(trainer, path, &err));
    CHECK(cameo_trainer_read_gradients(trainer, &g, sizeof g, &err) == CAMEO_BAD_ARGUMENT);
    CHECK(cameo_trainer_apply(trainer, NULL, &err) == CAMEO_BAD_ARGUMENT);
    OK(cameo_trainer_read_parameters(trainer, &w, sizeof w, &err));
    CHECK(w == 1);
    OK(cameo_trainer_compute(trainer, feeds, 2, NULL, &err));
    OK(cameo_trainer_initialize(trainer, &err));
    CHECK(cameo_trainer_apply(trainer, NULL, &err) == CAMEO_BAD_ARGUMENT);
    cameo_trainer_free(trainer);
    cameo_model_free(model);
    folder_remove(&folder);
}

/* The second derivative of the loss is infinite at 0, and no one asks for it. */
void test_gradients__a_gradient_that_is_made_finite_again_is_no_failure(void)
{
    static const char root[] =
        "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.preview.training\" : 1]>\n"
        "root (float[N,1] x) => (float[N,1] y) <float[1,1] w = {0}>\n"
        "{ y = MatMul(x, w) }\n"
        "training {\n"
        "  algorithm: step (float[N,1] t) => (float loss, float[1,1] w_new)\n"
        "  <float[1] low = {-1}, float[1] high = {1}>\n"
        "  { r = Sqrt(y)\n    loss = ReduceSum<keepdims = 0>(r)\n    g = " LINE_GRADIENT(
            "loss") "    c = Min(g, high)\n    w_new = Sub(w, c) },\n"
                    "  update_binding: [\"w\": \"w_new\"]\n}\n";
    static const float xs[] = {1, 2}, ts[] = {3, 6};
    const struct cameo_feed feeds[] = {feed("x", xs), feed("t", ts)};
    struct cameo_model *model = load(root);
    struct cameo_error err;

    for (int split = 0; split < 2; split++) {
        struct cameo_trainer *trainer = open_trainer(model, split);
        float w;

        OK(cameo_trainer_step(trainer, feeds, 2, NULL, &err));
        OK(cameo_trainer_read_parameters(trainer, &w, sizeof w, &err));
        CHECK(w == -1);
        cameo_trainer_free(trainer);
    }
    cameo_model_free(model);
}

/* A sequence goes from half to half as a reference. Where the heap is not counted, as under a
 * sanitizer, that one tells. */
void test_gradients__a_half_that_failed_keeps_no_memory(void)
{
    static const char carried[] = LINE_BEFORE
        "    q = SequenceConstruct(rate, half)\n    n = Constant<value_int = 0>()\n"
        "    g = " LINE_GRADIENT("loss") "    k = Mul(g, half)\n"
                                         "    u = SequenceInsert(q, k)\n    p = SequenceAt(u, n)\n"
                                         "    m = Mul(g, p)\n" LINE_AFTER;
    static const float xs[] = {1, 2}, ts[] = {3, 6}, far[] = {3, 3e38f};
    const struct cameo_feed feeds[] = {feed("x", xs), feed("t", ts)};
    const struct cameo_feed wrong[] = {feed("x", xs), feed("t", far)};
    struct cameo_model *model = load(carried);
    struct cameo_trainer *trainer = open_trainer(model, true);
    struct cameo_error err;
    size_t before = 0;

    for (int i = 0; i < 20; i++) {
        OK(cameo_trainer_step(trainer, feeds, 2, NULL, &err));
        CHECK(cameo_trainer_compute(trainer, wrong, 2, NULL, &err) == CAMEO_BAD_MODEL);
        if (i == 9)
            before = mallinfo2().uordblks;
    }
    CHECK_INT(mallinfo2().uordblks, before);
    cameo_trainer_free(trainer);
    cameo_model_free(model);
}

void test_gradients__each_half_fills_its_own_scalars_once(void)
{
    static const char twice[] =
        "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.preview.training\" : 1]>\n"
        "line (float[N,1] x) => (float[N,1] y) <float[1,1] w = {1}>\n"
        "{ y = MatMul(x, w) }\n"
        "training {\n"
        "  algorithm: step (float[N,1] t) => (float loss, float[1,1] g, float[1,1] m, float[1,1] "
        "w_new)\n"
        "  <float rate = {0.1}>\n"
        "  { d = Sub(y, t)\n    s = Mul(d, d)\n    loss = ReduceSum<keepdims = 0>(s)\n"
        "    g = " LINE_GRADIENT("loss") "    m = Mul(g, rate)\n" LINE_AFTER;
    static const float xs[] = {1, 2}, ts[] = {3, 6};
    const struct cameo_feed feeds[] = {feed("x", xs), feed("t", ts)};
    static const char *const names[] = {"loss", "g", "m"};
    struct cameo_model *model = load(twice);
    struct cameo_error err;

    for (int split = 0; split < 2; split++) {
        struct cameo_trainer *trainer = open_trainer(model, split);
        double scalars[3] = {-7, -7, -7};
        size_t at[3];

        CHECK_INT(cameo_trainer_scalar_count(trainer), 3);
        for (size_t i = 0; i < 3; i++)
            for (size_t n = 0; n < 3; n++)
                if (strcmp(cameo_trainer_scalar_name(trainer, i), names[n]) == 0)
                    at[n] = i;
        OK(cameo_trainer_step(trainer, feeds, 2, scalars, &err));
        CHECK(scalars[at[0]] == 20 && scalars[at[1]] == -20 && fabs(scalars[at[2]] + 2) < 1e-6);
        if (split) {
            scalars[at[0]] = scalars[at[1]] = scalars[at[2]] = -7;
            OK(cameo_trainer_compute(trainer, feeds, 2, scalars, &err));
            CHECK(scalars[at[0]] < 20 && scalars[at[0]] >= 0);
            CHECK(scalars[at[2]] == -7);
            OK(cameo_trainer_apply(trainer, scalars, &err));
            CHECK(scalars[at[2]] != -7);
        }
        cameo_trainer_free(trainer);
    }
    cameo_model_free(model);
}

/* A generator y = g x, and a critic d that tells y from t: first d learns, then g against the new
 * d, then an average of g follows it, for which there is no gradient. */
static const char adversaries[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.preview.training\" : 1]>\n"
    "net (float[N,1] x) => (float[N,1] y) <float[1,1] g = {0.3}>\n"
    "{ y = MatMul(x, g) }\n"
    "training { algorithm: critic (float[N,1] t) => (float d_loss, float[1,1] d_new)\n"
    "  <float[1,1] d = {0.7}, float rate_d = {0.1}, float one_d = {1}>\n"
    "  { real = MatMul(t, d)\n    fake = MatMul(y, d)\n    miss = Sub(real, one_d)\n"
    "    both = Concat<axis = 0>(miss, fake)\n    d_loss = ReduceSumSquare<keepdims = 0>(both)\n"
    "    dd = ai.onnx.preview.training.Gradient<xs = [\"d\"], zs = [\"x\", \"t\", \"g\"], "
    "y = \"d_loss\">(d, x, t, g)\n"
    "    d_step = Mul(dd, rate_d)\n    d_new = Sub(d, d_step) },\n"
    "  update_binding: [\"d\": \"d_new\"] }\n"
    "training { algorithm: generator (float[1,1] weight) => (float g_loss, float[1,1] g_new)\n"
    "  <float rate_g = {0.2}, float one_g = {1}>\n"
    "  { judged = MatMul(y, weight)\n    off = Sub(judged, one_g)\n"
    "    g_loss = ReduceSumSquare<keepdims = 0>(off)\n"
    "    dg = ai.onnx.preview.training.Gradient<xs = [\"g\"], zs = [\"x\", \"weight\"], "
    "y = \"g_loss\">(g, x, weight)\n"
    "    g_step = Mul(dg, rate_g)\n    g_new = Sub(g, g_step) },\n"
    "  update_binding: [\"g\": \"g_new\"] }\n"
    "training { algorithm: average () => (float[1,1] mean_new)\n"
    "  <float[1,1] mean = {0}, float part = {0.5}>\n"
    "  { apart = Sub(g, mean)\n    step = Mul(apart, part)\n    mean_new = Add(mean, step) },\n"
    "  update_binding: [\"mean\": \"mean_new\"] }\n";

static void check_gradients_of(struct cameo_trainer *split, size_t entry, const float *parameters)
{
    struct cameo_error err;
    float gradients[2], now[2];

    CHECK_INT(cameo_trainer_next_entry(split), entry);
    OK(cameo_trainer_read_gradients(split, gradients, sizeof gradients, &err));
    OK(cameo_trainer_set_gradients(split, gradients, sizeof gradients, &err));
    CHECK_STR(cm_str(cameo_trainer_parameter(split, 0)->name.data), "g");
    CHECK((gradients[0] != 0) == (entry == 1));
    CHECK((gradients[1] != 0) == (entry == 0));
    OK(cameo_trainer_read_parameters(split, now, sizeof now, &err));
    CHECK((now[0] != parameters[0]) == (entry > 1)); /* as those before it left them */
    CHECK((now[1] != parameters[1]) == (entry > 0));
    CHECK(cameo_checkpoint_save(split, "half.safetensors", NULL, 0, &err) == CAMEO_BAD_ARGUMENT);
}

void test_gradients__entries_are_computed_and_applied_in_order(void)
{
    static const float xs[] = {1, 2}, ts[] = {3, 5};
    struct cameo_model *model = load(adversaries);
    struct cameo_trainer *whole = open_trainer(model, false), *split = open_trainer(model, true);
    const size_t n_scalars = cameo_trainer_scalar_count(whole);
    double a[2], b[2];
    struct cameo_error err;
    float weight, parameters[2];

    CHECK_INT(cameo_trainer_entry_count(whole), 3);
    CHECK_INT(n_scalars, 2);
    CHECK_INT(cameo_trainer_parameter_count(split), 2);
    for (int i = 0; i < 5; i++) {
        const int64_t single[] = {1, 1};
        const struct cameo_feed feeds[] = {
            feed("x", xs), feed("t", ts),
            cameo_feed_tensor("weight", lend(CAMEO_FLOAT, 2, single, &weight, sizeof weight))};
        weight = 0.5f + 0.1f * (float)i;
        OK(cameo_trainer_step(whole, feeds, 3, a, &err));
        OK(cameo_trainer_read_parameters(split, parameters, sizeof parameters, &err));
        for (size_t k = 0; k < cameo_trainer_entry_count(split); k++) {
            OK(cameo_trainer_compute(split, feeds, 3, b, &err));
            if (i == 1) /* again, instead of applying */
                OK(cameo_trainer_compute(split, feeds, 3, b, &err));
            check_gradients_of(split, k, parameters);
            CHECK_INT(cameo_trainer_steps(split), i);
            OK(cameo_trainer_apply(split, b, &err));
        }
        CHECK_INT(cameo_trainer_next_entry(split), 0);
        CHECK_INT(cameo_trainer_steps(split), i + 1);
        CHECK(memcmp(a, b, n_scalars * sizeof *a) == 0);
        check_same_variables(whole, split);
        if (i == 2) { /* a failure gives up what the entries before it computed */
            OK(cameo_trainer_compute(split, feeds, 3, b, &err));
            OK(cameo_trainer_apply(split, b, &err));
            CHECK(cameo_trainer_compute(split, feeds, 2, b, &err) == CAMEO_BAD_ARGUMENT);
            CHECK_INT(cameo_trainer_next_entry(split), 1);
            weight = (float)NAN;
            CHECK(cameo_trainer_compute(split, feeds, 3, b, &err) != CAMEO_OK);
            CHECK(strstr(err.message, "'g_loss' is not finite"));
            CHECK_INT(cameo_trainer_next_entry(split), 0);
            check_same_variables(whole, split);
        }
        if (i == 3) { /* and so does a whole step */
            OK(cameo_trainer_compute(split, feeds, 3, b, &err));
            OK(cameo_trainer_apply(split, b, &err));
            OK(cameo_trainer_step(split, feeds, 3, b, &err));
            OK(cameo_trainer_step(whole, feeds, 3, a, &err));
            CHECK_INT(cameo_trainer_steps(split), i + 2);
            check_same_variables(whole, split);
            break;
        }
    }
    cameo_trainer_free(whole);
    cameo_trainer_free(split);
    cameo_model_free(model);
}

static void check_refused(const char *text, const char *sentence)
{
    struct cameo_trainer_options options = CAMEO_TRAINER_OPTIONS_INIT;
    struct cameo_model *model = load(text);
    struct cameo_trainer *trainer;
    struct cameo_error err;

    OK(cameo_trainer_new(model, &options, &trainer, &err)); /* whole, it can be trained */
    cameo_trainer_free(trainer);
    options.gradients = true;
    CHECK(cameo_trainer_new(model, &options, &trainer, &err) == CAMEO_UNSUPPORTED);
    CHECK(trainer == NULL);
    if (!strstr(err.message, sentence))
        fail_msg("%s", err.message);
    cameo_model_free(model);
}

void test_gradients__a_training_that_has_no_halves_is_refused_in_a_sentence(void)
{
    static const char by_hand[] =
        LINE_BEFORE "    xt = Transpose<perm = [1, 0]>(x)\n    g = MatMul(xt, d)\n"
                    "    m = Mul(g, rate)\n" LINE_AFTER;
    static const char twice[] = LINE_BEFORE "    g1 = " LINE_GRADIENT(
        "loss") "    g2 = " LINE_GRADIENT("s") "    g = Add(g1, g2)\n"
                                               "    m = Mul(g, rate)\n" LINE_AFTER;
    static const char unused[] =
        LINE_BEFORE "    g = " LINE_GRADIENT("loss") "    k = Mul(g, g)\n"
                                                     "    m = Mul(w, rate)\n" LINE_AFTER;
    static const char second[] = LINE_BEFORE "    g1 = " LINE_GRADIENT(
        "loss") "    p = ReduceSumSquare<keepdims = 0>(g1)\n"
                "    g = ai.onnx.preview.training.Gradient<xs = [\"x\"], zs = [\"w\", \"t\"], y = "
                "\"p\">"
                "(x, w, t)\n    r = ReduceMean<keepdims = 0>(g)\n    m = Mul(r, rate)\n" LINE_AFTER;

    check_refused(by_hand, "no Gradient node in it differentiates by a variable that it updates");
    check_refused(twice, "several Gradient nodes differentiate by 'w'");
    check_refused(unused, "nothing that it updates follows from a gradient");
    check_refused(second, "differentiates what gradients were used for");
}

/* Dropout draws in the first half; a half that fails has drawn nothing. */
void test_gradients__a_step_that_failed_has_drawn_no_random_numbers(void)
{
    static const char dropout[] =
        "<ir_version: 8, opset_import: [\"\" : 17]>\n"
        "net (float[N,1] x) => (float[N,1] y) <float[1,1] w = {1}, float[1,1] v = {1}>\n"
        "{ h = MatMul(x, w)\n  a = Dropout(h)\n  y = MatMul(a, v) }\n";
    static const float xs[] = {1, 2}, ts[] = {3, 6}, far[] = {3, 3e38f}, bad[] = {1, INFINITY};
    const struct cameo_feed feeds[] = {feed("x", xs), feed("target", ts)};
    const struct cameo_feed wrong[] = {feed("x", xs), feed("target", far)};
    const struct cameo_feed broken[] = {feed("x", bad), feed("target", ts)};
    struct cameo_prepare_options options = CAMEO_PREPARE_OPTIONS_INIT;
    struct cameo_model *model = load(dropout);
    struct cameo_error err;

    options.loss = "mse";
    options.optimizer = "sgd";
    OK(cameo_model_prepare(model, &options, NULL, &err));
    for (int split = 0; split < 2; split++) {
        struct cameo_trainer *a = open_trainer(model, split), *b = open_trainer(model, split);

        for (int i = 0; i < 8; i++) {
            OK(cameo_trainer_step(a, feeds, 2, NULL, &err));
            CHECK(cameo_trainer_step(b, wrong, 2, NULL, &err) == CAMEO_BAD_MODEL);
            CHECK(strstr(err.message, "is not finite, first made by"));
            CHECK(cameo_trainer_step(b, broken, 2, NULL, &err) == CAMEO_BAD_MODEL);
            CHECK(strstr(err.message, "is not finite, nor is what input 'x' is fed"));
            if (split) /* nor has a half that was not applied */
                OK(cameo_trainer_compute(b, feeds, 2, NULL, &err));
            OK(cameo_trainer_step(b, feeds, 2, NULL, &err));
            check_same_variables(a, b);
        }
        cameo_trainer_free(a);
        cameo_trainer_free(b);
    }
    cameo_model_free(model);
}

void test_gradients__memory_is_told_by_what_it_is_for(void)
{
    struct cameo_model *model = prepared(1);
    struct cameo_error err;
    struct batch batch;

    fill(&batch, 0);
    for (int split = 0; split < 2; split++) {
        struct cameo_trainer *trainer = open_trainer(model, split);
        struct cameo_memory memory = CAMEO_MEMORY_INIT;

        OK(cameo_trainer_memory(trainer, batch.feeds, 2, &memory, &err));
        /* What Tanh gave waits for the backward pass; every parameter has a gradient. */
        CHECK(memory.activations >= ROWS * 4 * sizeof(float));
        CHECK(memory.gradients >= 12 * sizeof(float));
        CHECK(memory.activations < memory.work && memory.gradients <= memory.work);
        CHECK(memory.activations + memory.gradients + memory.arithmetic + memory.scratch >=
              memory.limited);
        CHECK(memory.limited <= memory.work);
        OK(cameo_trainer_step(trainer, batch.feeds, 2, NULL, &err));
        cameo_trainer_free(trainer);
    }
    cameo_model_free(model);
}

/* ---- whole runs ---- */

struct seen {
    int steps, epochs, checkpoints, stop_at;
    double loss;
};

static bool watch(void *arg, const struct cameo_progress *progress)
{
    struct seen *seen = arg;

    seen->steps += progress->moment == CAMEO_AFTER_STEP;
    seen->checkpoints += progress->moment == CAMEO_AFTER_CHECKPOINT;
    if (progress->moment == CAMEO_AFTER_CHECKPOINT)
        CHECK(access(progress->checkpoint, R_OK) == 0);
    if (progress->moment == CAMEO_AFTER_EPOCH) {
        seen->epochs++;
        CHECK(progress->measure && progress->measure->compared == 24);
        CHECK_INT(progress->epoch, seen->epochs);
        CHECK_INT(progress->step, 4 * seen->epochs);
    }
    CHECK_INT(progress->steps, 12);
    seen->loss = progress->loss;
    return !seen->stop_at || seen->steps < seen->stop_at;
}

/* 24 rows of t = 2 x as CSV. */
static void write_data(const char *path)
{
    FILE *file = fopen(path, "w");

    CHECK(file != NULL);
    fputs("x,t\n", file);
    for (int i = 0; i < 24; i++)
        fprintf(file, "%.3f,%.3f\n", i * 0.01 - 0.1, i * 0.02 - 0.2);
    fclose(file);
}

struct run {
    struct cameo_model *model;
    struct cameo_trainer *trainer;
    struct cameo_dataset *data, *more;
    struct cameo_batches *batches, *validation;
};

static void open_run(struct run *run, const char *data)
{
    struct cameo_batches_options options = CAMEO_BATCHES_OPTIONS_INIT;
    struct cameo_dataset_options columns = CAMEO_DATASET_OPTIONS_INIT;
    struct cameo_error err;

    columns.columns = "x=x t:float=t";
    run->model = load(line);
    run->trainer = open_trainer(run->model, false);
    OK(cameo_dataset_open(data, &columns, &run->data, &err));
    OK(cameo_dataset_open(data, &columns, &run->more, &err));
    options.batch_size = 6;
    OK(cameo_batches_new(run->more, run->trainer, &options, &run->validation, &err));
    options.shuffle = true;
    options.seed = 3;
    OK(cameo_batches_new(run->data, run->trainer, &options, &run->batches, &err));
}

static float close_run(struct run *run)
{
    struct cameo_error err;
    float w;

    OK(cameo_trainer_read_parameters(run->trainer, &w, sizeof w, &err));
    cameo_batches_free(run->batches);
    cameo_batches_free(run->validation);
    cameo_dataset_free(run->data);
    cameo_dataset_free(run->more);
    cameo_trainer_free(run->trainer);
    cameo_model_free(run->model);
    return w;
}

void test_gradients__a_run_tells_what_happens_and_may_be_stopped_and_resumed(void)
{
    struct folder folder;
    char data[FOLDER_PATH_SIZE], checkpoint[FOLDER_PATH_SIZE];
    struct cameo_loop_options options = CAMEO_LOOP_OPTIONS_INIT;
    struct cameo_loop_result result = CAMEO_LOOP_RESULT_INIT;
    struct cameo_error err;
    struct seen seen = {0};
    struct run run;

    folder_make(&folder);
    folder_path(&folder, "data.csv", data);
    folder_path(&folder, "at.safetensors", checkpoint);
    write_data(data);
    open_run(&run, data);
    options.epochs = 3;
    options.validation = run.validation;
    options.progress = watch;
    options.progress_arg = &seen;
    OK(cameo_trainer_run(run.trainer, run.batches, &options, &result, &err));
    CHECK_INT(seen.steps, 12);
    CHECK_INT(seen.epochs, 3);
    CHECK(!result.stopped && !result.out_of_patience && result.loss == seen.loss);
    CHECK(result.best_loss < 1);
    const float never_stopped = close_run(&run);

    options.checkpoint = checkpoint;
    options.checkpoint_every = 2;
    options.resume = true;
    for (int stop = 5; stop >= 0; stop -= 5) {
        open_run(&run, data);
        seen = (struct seen){.stop_at = stop, .epochs = stop ? 0 : 1};
        options.validation = run.validation;
        OK(cameo_trainer_run(run.trainer, run.batches, &options, &result, &err));
        CHECK(result.stopped == (stop > 0));
        CHECK_INT(seen.steps, stop ? 5 : 7);
        CHECK_INT(seen.checkpoints, stop ? 3 : 4); /* the last one too, and once */
        CHECK_INT(cameo_trainer_steps(run.trainer), stop ? 5 : 12);
        const float w = close_run(&run);
        CHECK(stop || w == never_stopped);
    }
    options.steps = 4;
    open_run(&run, data);
    CHECK(cameo_trainer_run(run.trainer, run.batches, &options, NULL, &err) == CAMEO_BAD_ARGUMENT);
    CHECK_STRING(err.message, "epochs and steps both say when to stop");
    close_run(&run);
    folder_remove(&folder);
}

void test_gradients__what_a_run_cannot_do_is_refused_before_it_begins(void)
{
    struct cameo_batches_options endless = CAMEO_BATCHES_OPTIONS_INIT;
    struct cameo_loop_options options = CAMEO_LOOP_OPTIONS_INIT;
    struct cameo_loop_result unmade = {0};
    char data[FOLDER_PATH_SIZE], checkpoint[FOLDER_PATH_SIZE];
    struct cameo_batches *validation;
    struct folder folder;
    struct cameo_error err;
    struct run run;

    folder_make(&folder);
    folder_path(&folder, "data.csv", data);
    folder_path(&folder, "at.safetensors", checkpoint);
    write_data(data);
    open_run(&run, data);
    endless.endless = true;
    OK(cameo_batches_new(run.more, run.trainer, &endless, &validation, &err));
    options.validation = validation;
    CHECK(cameo_trainer_run(run.trainer, run.batches, &options, NULL, &err) == CAMEO_BAD_ARGUMENT);
    CHECK_STRING(err.message, "the validation batches are endless");
    options.validation = NULL;
    CHECK(cameo_trainer_run(run.trainer, run.batches, &options, &unmade, &err) ==
          CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "_INIT macro"));
    /* A checkpoint that is there but cannot be opened is not a first run. */
    CHECK(symlink(checkpoint, checkpoint) == 0);
    options.checkpoint = checkpoint;
    options.resume = true;
    CHECK(cameo_trainer_run(run.trainer, run.batches, &options, NULL, &err) == CAMEO_IO);
    CHECK(strstr(err.message, checkpoint));
    CHECK_INT(cameo_trainer_steps(run.trainer), 0);
    cameo_batches_free(validation);
    close_run(&run);
    folder_remove(&folder);
}

struct ends {
    uint64_t at[8], steps;
    size_t count;
    int64_t compared;
    struct cameo_cancel *cancel;
    uint64_t cancel_at;
    int checkpoints;
    bool only_one;
};

static bool note_ends(void *arg, const struct cameo_progress *progress)
{
    struct ends *ends = arg;

    ends->steps = progress->steps;
    ends->checkpoints += progress->moment == CAMEO_AFTER_CHECKPOINT;
    if (ends->cancel && progress->step == ends->cancel_at)
        cameo_cancel_set(ends->cancel);
    if (progress->moment == CAMEO_AFTER_EPOCH && ends->count < 8) {
        ends->at[ends->count++] = progress->step;
        ends->compared += progress->measure ? progress->measure->compared : 0;
    }
    return !ends->only_one;
}

/* Whatever came before the run: a step, a batch, half of the validation data. */
void test_gradients__epochs_end_where_the_data_does(void)
{
    struct cameo_loop_options options = CAMEO_LOOP_OPTIONS_INIT;
    static const float xs[] = {1, 2}, ts[] = {2, 4};
    const struct cameo_feed feeds[] = {feed("x", xs), feed("t", ts)};
    const struct cameo_feed *unused;
    char data[FOLDER_PATH_SIZE];
    struct ends ends = {0};
    struct folder folder;
    struct cameo_error err;
    struct run run;
    int64_t rows;

    folder_make(&folder);
    folder_path(&folder, "data.csv", data);
    write_data(data);
    open_run(&run, data);
    OK(cameo_trainer_step(run.trainer, feeds, 2, NULL, &err));
    OK(cameo_batches_next(run.validation, &unused, &rows, &err));
    options.epochs = 3;
    options.validation = run.validation;
    options.progress = note_ends;
    options.progress_arg = &ends;
    OK(cameo_trainer_run(run.trainer, run.batches, &options, NULL, &err));
    CHECK_INT(ends.count, 2);
    CHECK_INT(ends.at[0], 5);
    CHECK_INT(ends.at[1], 9);
    CHECK_INT(ends.compared, 2 * 24);
    close_run(&run);

    /* 2^62 epochs of 4 steps are not none. */
    open_run(&run, data);
    ends = (struct ends){.only_one = true};
    options.epochs = UINT64_C(1) << 62;
    options.validation = NULL;
    OK(cameo_trainer_run(run.trainer, run.batches, &options, NULL, &err));
    CHECK_INT(cameo_trainer_steps(run.trainer), 1);
    CHECK(ends.steps == UINT64_MAX);
    close_run(&run);
    folder_remove(&folder);
}

void test_gradients__a_run_that_is_cancelled_leaves_a_checkpoint_of_its_last_step(void)
{
    struct cameo_loop_options options = CAMEO_LOOP_OPTIONS_INIT;
    char data[FOLDER_PATH_SIZE], checkpoint[FOLDER_PATH_SIZE];
    struct cameo_cancel *cancel;
    struct ends ends = {0};
    struct folder folder;
    struct cameo_error err;
    struct run run;

    OK(cameo_cancel_new(&cancel, &err));
    folder_make(&folder);
    folder_path(&folder, "data.csv", data);
    folder_path(&folder, "at.safetensors", checkpoint);
    write_data(data);
    options.epochs = 2;
    options.progress = note_ends;
    options.progress_arg = &ends;
    open_run(&run, data);
    OK(cameo_trainer_run(run.trainer, run.batches, &options, NULL, &err));
    const float never_stopped = close_run(&run);

    options.checkpoint = checkpoint;
    options.resume = true;
    open_run(&run, data);
    ends = (struct ends){.cancel = cancel, .cancel_at = 3};
    cameo_trainer_set_cancel(run.trainer, cancel);
    CHECK(cameo_trainer_run(run.trainer, run.batches, &options, NULL, &err) == CAMEO_CANCELLED);
    CHECK(err.status == CAMEO_CANCELLED);
    CHECK_INT(ends.checkpoints, 1);
    CHECK_INT(cameo_trainer_steps(run.trainer), 3);
    close_run(&run);
    open_run(&run, data);
    ends = (struct ends){0};
    OK(cameo_trainer_run(run.trainer, run.batches, &options, NULL, &err));
    CHECK_INT(cameo_trainer_steps(run.trainer), 8);
    CHECK_INT(ends.checkpoints, 1);
    CHECK(close_run(&run) == never_stopped);
    cameo_cancel_free(cancel);
    folder_remove(&folder);
}
