/* Steps by halves where training info has several entries. */
// SPDX-License-Identifier: Apache-2.0
#include "api_case.h"
#include "cameo.h"
#include "check.h"
#include "lend.h"

#include <math.h>

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

static struct cameo_trainer *open_trainer(struct cameo_model *model, bool gradients)
{
    struct cameo_trainer_options options = CAMEO_TRAINER_OPTIONS_INIT;
    struct cameo_trainer *trainer;
    struct cameo_error err;

    options.threads = 1;
    options.gradients = gradients;
    OK(cameo_trainer_new(model, &options, &trainer, &err));
    return trainer;
}

static void check_same_variables(const struct cameo_trainer *a, const struct cameo_trainer *b)
{
    struct cameo_error err;
    float x, y;

    CHECK_INT(cameo_trainer_variable_count(a), 3);
    for (size_t i = 0; i < 3; i++) {
        OK(cameo_trainer_read_variable(a, i, &x, sizeof x, &err));
        OK(cameo_trainer_read_variable(b, i, &y, sizeof y, &err));
        CHECK(memcmp(&x, &y, sizeof x) == 0);
    }
}

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

void test_training_entries__are_computed_and_applied_in_order(void)
{
    static const float xs[] = {1, 2}, ts[] = {3, 5};
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model;
    struct cameo_error err;
    double a[2], b[2];
    float weight, parameters[2];

    options.format = CAMEO_FORMAT_TEXT;
    OK(cameo_model_load_memory(adversaries, strlen(adversaries), &options, &model, &err));
    struct cameo_trainer *whole = open_trainer(model, false), *split = open_trainer(model, true);
    const size_t n_scalars = cameo_trainer_scalar_count(whole);
    CHECK_INT(cameo_trainer_entry_count(whole), 3);
    CHECK_INT(n_scalars, 2);
    CHECK_INT(cameo_trainer_parameter_count(split), 2);
    for (int i = 0; i < 5; i++) {
        const int64_t pair[] = {2, 1}, single[] = {1, 1};
        const struct cameo_feed feeds[] = {
            cameo_feed_tensor("x", lend(CAMEO_FLOAT, 2, pair, xs, sizeof xs)),
            cameo_feed_tensor("t", lend(CAMEO_FLOAT, 2, pair, ts, sizeof ts)),
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
