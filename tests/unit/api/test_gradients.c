/* Steps by halves, flat parameters and gradients. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "api/api_case.h"
#include "api/lend.h"
#include "base/folder.h"
#include "cameo.h"
#include "check.h"

#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

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
    struct cameo_model *model = load_text(net);
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
    CHECK_STRING(err.message, "the 5 parameters have 120 bytes, but 4 bytes were passed");
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
    struct cameo_model *model = load_text(line);
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
    CHECK(cameo_trainer_apply(trainer, NULL, &err) == CAMEO_DIVERGED);
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
    struct cameo_model *model = load_text(line);
    struct cameo_trainer *trainer = open_trainer(model, true);
    char path[FOLDER_PATH_SIZE];
    struct folder folder;
    struct cameo_error err;
    float g, w;

    folder_make(&folder);
    folder_path(&folder, "at.safetensors", path);
    OK(cameo_checkpoint_save(trainer, path, NULL, 0, &err));
    OK(cameo_trainer_compute(trainer, feeds, 2, NULL, &err));
    OK(cameo_checkpoint_resume(trainer, path, NULL, &err));
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
    struct cameo_model *model = load_text(root);
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
    struct cameo_model *model = load_text(carried);
    struct cameo_trainer *trainer = open_trainer(model, true);
    struct cameo_error err;
    size_t before = 0;

    for (int i = 0; i < 20; i++) {
        OK(cameo_trainer_step(trainer, feeds, 2, NULL, &err));
        CHECK(cameo_trainer_compute(trainer, wrong, 2, NULL, &err) == CAMEO_DIVERGED);
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
    struct cameo_model *model = load_text(twice);
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

static void check_refused(const char *text, const char *sentence)
{
    struct cameo_trainer_options options = CAMEO_TRAINER_OPTIONS_INIT;
    struct cameo_model *model = load_text(text);
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
    check_refused(unused, "no updated variable depends on a gradient");
    check_refused(second, "differentiates a value that depends on other gradients");
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
    struct cameo_model *model = load_text(dropout);
    struct cameo_error err;

    options.loss = "mse";
    options.optimizer = "sgd";
    OK(cameo_model_prepare(model, &options, NULL, &err));
    for (int split = 0; split < 2; split++) {
        struct cameo_trainer *a = open_trainer(model, split), *b = open_trainer(model, split);

        for (int i = 0; i < 8; i++) {
            OK(cameo_trainer_step(a, feeds, 2, NULL, &err));
            CHECK(cameo_trainer_step(b, wrong, 2, NULL, &err) == CAMEO_DIVERGED);
            CHECK(strstr(err.message, "is not finite, first made by"));
            CHECK(cameo_trainer_step(b, broken, 2, NULL, &err) == CAMEO_DIVERGED);
            CHECK(strstr(err.message, "is not finite, and neither is the value of input 'x'"));
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
