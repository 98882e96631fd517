/* What the flags of a preparation do, worked out by hand on models of a few weights; and how it
 * refuses. */
// SPDX-License-Identifier: Apache-2.0
#include "train_case.h"

#include "findings.h"
#include "onnx/tensor_data.h"
#include "train/prepare/prepare.h"

#include <math.h>

/* y = w * x: with mse and target t the gradient of w is the mean of 2 x (w x - t). */
static const char line[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                           "line (float[n] x) => (float[n] y)\n"
                           "<float[1] w = {2}>\n"
                           "{ y = Mul (x, w) }";

enum { IN_MAX = 4, OUT_MAX = 8 };

struct run {
    struct cm_arena *arena;
    struct cm_prepare_options options;
    struct cm_prepare_report report;
    struct cm_model_file *file;
    struct cm_trainer *trainer;
    struct cm_trainer_scalar scalars[OUT_MAX];
};

static void begin(struct run *run, struct cm_arena *arena, const char *text)
{
    struct cm_error err = {0};

    run->arena = arena;
    run->file = train_model(arena, text);
    CHECK_OK(cm_prepare(arena, run->file, &run->options, &run->report, &err), &err);
    run->trainer = train_open(arena, run->file);
    CHECK(cm_trainer_scalar_count(run->trainer) <= OUT_MAX);
}

static double scalar(const struct run *run, const char *name)
{
    for (size_t i = 0; i < cm_trainer_scalar_count(run->trainer); i++)
        if (cm_str_is(run->scalars[i].name, name))
            return run->scalars[i].value;
    fail_msg("the step has no %s", name);
    return NAN;
}

/* One step on vectors x and target of count numbers. Returns the loss. */
static double step(struct run *run, int64_t count, float *x, float *target)
{
    struct cm_error err = {0};
    const struct cm_shape shape = CM_SHAPE(count);
    const struct cm_tensor feeds[2] = {cm_tensor_borrow(CM_FLOAT, &shape, x),
                                       cm_tensor_borrow(CM_FLOAT, &shape, target)};
    const struct cm_tensor *in[IN_MAX];

    for (size_t i = 0; i < cm_trainer_input_count(run->trainer); i++)
        in[i] = &feeds[cm_str_is(cm_trainer_input(run->trainer, i)->name, "target")];
    CHECK_OK(cm_trainer_step(run->trainer, in, run->scalars, &err), &err);
    return scalar(run, "loss");
}

static void check_near(double actual, double expected)
{
    if (!(fabs(actual - expected) <= 1e-5 * fmax(1, fabs(expected))))
        fail_msg("%.9g is not %.9g", actual, expected);
}

/* ---- losses ---- */

/* The loss at x = 0.25 and -0.5 with w = 2, so at predictions 0.5 and -1, and w after a step of
 * rate 1. */
static void check_loss(struct cm_arena *arena, const char *name, float t0, float t1, double loss,
                       double gradient)
{
    struct run run = {.options = train_with(name, "sgd", 1)};
    float x[] = {0.25F, -0.5F}, t[] = {t0, t1};

    begin(&run, arena, line);
    check_near(step(&run, 2, x, t), loss);
    check_near(train_value(run.trainer, "w", 0), 2 - gradient);
}

static void losses(struct cm_arena *arena)
{
    /* Errors: 0.5 - 1 = -0.5 and -1 - 2 = -3. */
    check_loss(arena, "mse", 1, 2, (0.25 + 9) / 2, (-0.5 * 0.25 + -3 * -0.5));
    check_loss(arena, "l1", 1, 2, (0.5 + 3) / 2, (-0.25 + 0.5) / 2);
    check_loss(arena, "huber", 1, 2, (0.125 + 2.5) / 2, (-0.5 * 0.25 + 0.5) / 2);
    /* Softplus(p) - p t, whose slope is sigmoid(p) - t. */
    const double s0 = 1 / (1 + exp(-0.5)), s1 = 1 / (1 + exp(1));
    check_loss(arena, "bce-logits", 1, 0, (-log(s0) - log(1 - s1)) / 2,
               ((s0 - 1) * 0.25 + s1 * -0.5) / 2);
}

void test_prepare_flags__losses_and_their_slopes(void)
{
    check_in_arena(losses);
}

/* Two words of three classes each, scores 0 but for one of 1: axis 1 has the words, axis 2 the
 * classes. The target 'y' meets an output of that name. */
static void classes_last(struct cm_arena *arena)
{
    struct run run = {.options = train_with("cross-entropy", "sgd", 1)};
    struct cm_error err = {0};
    float x[] = {1, 0, 0, 0, 1, 0};
    int64_t labels[] = {0, 2};

    run.options.class_axis = -1;
    run.options.target = "y";
    begin(&run, arena,
          "<ir_version: 8, opset_import: [\"\" : 17]>\n"
          "words (float[n,2,3] x) => (float[n,2,3] y)\n"
          "<float[1] w = {1}>\n"
          "{ y = Mul (x, w) }");
    CHECK(cm_str_is(run.report.target_name, "target"));
    CHECK(cm_str_is(cm_str(nth_reason(&run.report.findings, CM_NOTE, 0)),
                    "labels are fed as 'target': the model has a 'y' of its "
                    "own"));
    const struct cm_tensor in_x = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(1, 2, 3), x),
                           in_y = cm_tensor_borrow(CM_INT64, &CM_SHAPE(1, 2), labels);
    const struct cm_tensor *in[IN_MAX];
    for (size_t i = 0; i < cm_trainer_input_count(run.trainer); i++)
        in[i] = cm_str_is(cm_trainer_input(run.trainer, i)->name, "target") ? &in_y : &in_x;
    CHECK_OK(cm_trainer_step(run.trainer, in, run.scalars, &err), &err);
    const double sum = exp(1) + 2; /* softmax: e / sum for the 1, 1 / sum for a 0 */
    check_near(scalar(&run, "loss"), (log(sum) - 1 + log(sum)) / 2);
    check_near(train_value(run.trainer, "w", 0), 1 - ((exp(1) / sum - 1) + exp(1) / sum) / 2);
}

void test_prepare_flags__classes_may_be_in_any_axis(void)
{
    check_in_arena(classes_last);
}

/* Probabilities 0.5 and 1: the second is sure, where a logarithm of 0 counts as -100. */
static void sure(struct cm_arena *arena)
{
    struct run run = {.options = train_with("bce", "sgd", 1)};
    float x[] = {0.25F, 0.5F}, t[] = {1, 0};

    begin(&run, arena, line);
    check_near(step(&run, 2, x, t), (log(2) + 100) / 2);
    check_near(train_value(run.trainer, "w", 0), 2 + 2 * 0.25 / 2);
}

void test_prepare_flags__a_sure_and_wrong_probability_costs_a_hundred(void)
{
    check_in_arena(sure);
}

static void own_output(struct cm_arena *arena)
{
    struct run run = {.options = train_with("output:y", "sgd", 1)};
    float x[] = {1, 3};

    begin(&run, arena, line);
    CHECK_INT(run.report.target_name.size, 0);
    check_near(step(&run, 2, x, x), 4);
    check_near(train_value(run.trainer, "w", 0), 0);
}

void test_prepare_flags__the_model_may_compute_its_loss_itself(void)
{
    check_in_arena(own_output);
}

static void softmax(struct cm_arena *arena)
{
    struct cm_error err = {0};
    struct cm_prepare_report report;
    const struct cm_prepare_options options = train_with("cross-entropy", "sgd", 1);
    struct cm_model_file *file =
        train_model(arena, "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                           "m (float[n,2] x) => (float[n,2] p)\n"
                           "<float[2,2] w = {1,2,3,4}>\n"
                           "{ z = MatMul (x, w) p = Softmax <axis = -1> (z) }");

    CHECK_OK(cm_prepare(arena, file, &options, &report, &err), &err);
    CHECK(report.classifies);
    CHECK_INT(count_reasons(&report.findings, CM_NOTE), 1);
    CHECK(strstr(nth_reason(&report.findings, CM_NOTE, 0), "before the final Softmax") != NULL);
    CHECK_STR(file->model.training_info.items[0].algorithm->node.items[0].input.items[0], "z");
}

void test_prepare_flags__cross_entropy_reads_before_a_final_softmax(void)
{
    check_in_arena(softmax);
}

/* ---- schedules, clipping, accumulation ---- */

static void rates(struct cm_arena *arena, struct cm_prepare_options options, const double *expected,
                  size_t count)
{
    struct run run = {.options = options};
    float x[] = {1}, t[] = {2}; /* no error: only the rate matters */

    begin(&run, arena, line);
    for (size_t i = 0; i < count; i++) {
        step(&run, 1, x, t);
        check_near(scalar(&run, "lr"), expected[i]);
    }
}

static void schedules(struct cm_arena *arena)
{
    struct cm_prepare_options o = train_with("mse", "sgd", 0.5);
    o.schedule = CM_SCHEDULE_LINEAR;
    o.schedule_steps = 4;
    rates(arena, o, (const double[]){0.5, 0.375, 0.25, 0.125, 0, 0}, 6);
    o.schedule = CM_SCHEDULE_COSINE;
    rates(arena, o, (const double[]){0.5, 0.25 + sqrt(0.5) / 4, 0.25, 0.25 - sqrt(0.5) / 4, 0}, 5);
    o.warmup = 2;
    rates(arena, o, (const double[]){0.25, 0.5, 0.5, 0.25, 0}, 5);
    o.schedule = CM_SCHEDULE_STEP;
    o.warmup = 0;
    o.schedule_steps = 2;
    rates(arena, o, (const double[]){0.5, 0.5, 0.05, 0.05, 0.005}, 5);
    o.schedule = CM_SCHEDULE_CONSTANT;
    o.warmup = 4;
    rates(arena, o, (const double[]){0.125, 0.25, 0.375, 0.5, 0.5}, 5);
}

void test_prepare_flags__schedules_and_warmup_set_the_rate(void)
{
    check_in_arena(schedules);
}

static void clipping(struct cm_arena *arena)
{
    struct run run = {.options = train_with("mse", "sgd", 1)};
    float x[] = {1}, t[] = {-1}, near[] = {1.75F};

    run.options.clip_norm = 1;
    begin(&run, arena, line);
    step(&run, 1, x, t); /* the gradient is 6 */
    check_near(scalar(&run, "grad_norm"), 6);
    check_near(train_value(run.trainer, "w", 0), 1);
    near[0] = 0.75F;
    step(&run, 1, x, near); /* 0.5: short enough */
    check_near(scalar(&run, "grad_norm"), 0.5);
    check_near(train_value(run.trainer, "w", 0), 0.5);
}

void test_prepare_flags__long_gradients_are_cut_to_the_norm(void)
{
    check_in_arena(clipping);
}

static void accumulation(struct cm_arena *arena)
{
    struct run run = {.options = train_with("mse", "momentum", 1)};
    float x[] = {1}, a[] = {1}, b[] = {0};

    run.options.accumulate = 2;
    begin(&run, arena, line);
    step(&run, 1, x, a); /* gradient 2 */
    check_near(train_value(run.trainer, "w", 0), 2);
    check_near(train_value(run.trainer, "w.velocity", 0), 0);
    CHECK_INT(train_value(run.trainer, "training.step", 0), 0);
    step(&run, 1, x, b); /* gradient 4: their mean is 3 */
    check_near(train_value(run.trainer, "w", 0), -1);
    check_near(train_value(run.trainer, "w.velocity", 0), 3);
    CHECK_INT(train_value(run.trainer, "training.step", 0), 1);
    step(&run, 1, x, a); /* gradient -4, not applied yet */
    check_near(train_value(run.trainer, "w", 0), -1);
    check_near(train_value(run.trainer, "w.gradient_sum", 0), -2);
}

void test_prepare_flags__accumulated_gradients_are_averaged(void)
{
    check_in_arena(accumulation);
}

static void decay(struct cm_arena *arena)
{
    struct run coupled = {.options = train_with("mse", "sgd", 0.5)};
    struct run apart = {.options = train_with("mse", "adamw", 0.5)};
    float x[] = {1}, t[] = {2}; /* no gradient but the decay's */

    coupled.options.weight_decay = apart.options.weight_decay = 0.1;
    begin(&coupled, arena, line);
    step(&coupled, 1, x, t);
    check_near(train_value(coupled.trainer, "w", 0), 2 - 0.5 * 0.1 * 2);
    begin(&apart, arena, line);
    step(&apart, 1, x, t);
    check_near(train_value(apart.trainer, "w", 0), 2 * (1 - 0.05));
    check_near(train_value(apart.trainer, "w.exp_avg", 0), 0);
}

void test_prepare_flags__weight_decay_is_coupled_or_apart(void)
{
    check_in_arena(decay);
}

/* Two steps by hand: square_avg = 0.99 s + 0.01 g g, buffer = 0.5 b + g / (sqrt(square_avg) + e).
 */
static void rmsprop(struct cm_arena *arena)
{
    struct run run = {.options = train_with("mse", "rmsprop", 0.1)};
    float x[] = {1}, t[] = {0};
    double w = 2, average = 0, buffer = 0;

    run.options.momentum = 0.5;
    begin(&run, arena, line);
    for (int i = 0; i < 2; i++) {
        const double g = 2 * w;
        average = 0.99 * average + 0.01 * g * g;
        buffer = 0.5 * buffer + g / (sqrt(average) + 1e-8);
        w -= 0.1 * buffer;
        step(&run, 1, x, t);
        check_near(train_value(run.trainer, "w", 0), w);
    }
}

void test_prepare_flags__rmsprop_takes_a_momentum(void)
{
    check_in_arena(rmsprop);
}

static void reset(struct cm_arena *arena)
{
    struct run run = {.options = train_with("mse", "adam", 0.1)};
    struct cm_error err = {0};
    float x[] = {1}, t[] = {0};

    begin(&run, arena, line);
    step(&run, 1, x, t);
    CHECK(train_value(run.trainer, "w.exp_avg_sq", 0) > 0);
    CHECK_INT(train_value(run.trainer, "training.step", 0), 1);
    CHECK_OK(cm_trainer_initialize(run.trainer, &err), &err);
    check_near(train_value(run.trainer, "w.exp_avg_sq", 0), 0);
    CHECK_INT(train_value(run.trainer, "training.step", 0), 0);
    CHECK_INT(run.file->model.training_info.items[0].initialization_binding.count, 3);
}

void test_prepare_flags__initialization_resets_the_optimizer(void)
{
    check_in_arena(reset);
}

/* ---- which weights ---- */

static const char several[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                              "several (float[n,2] x) => (float[n,2] y)\n"
                              "<float[2,2] head_w = {1,2,3,4}, float[2] body_b = {1,2}, float "
                              "scale = {2}, int64[2] shape = {-1, 2},\n"
                              " float[2] unused = {0,0}, float[2] limit = {9,9}, float[2] mean = "
                              "{1,1}>\n"
                              "{ c = Constant <value = float[2] {3, 4}> ()\n"
                              "  far = Greater (x, limit) q = Sub (x, mean) m = MatMul (q, head_w) "
                              "a = Add (m, body_b) d = Add (a, c) s = Mul (d, scale)\n"
                              "  z = Where (far, x, s) y = Reshape (z, shape) }";

static const struct cm_prepare_choice *choice_of(const struct cm_prepare_report *report,
                                                 const char *name)
{
    for (size_t i = 0; i < report->n_choices; i++)
        if (cm_str_is(report->choices[i].name, name))
            return &report->choices[i];
    fail_msg("nothing is said of %s", name);
    return NULL;
}

static void check_choice(const struct cm_prepare_report *report, const char *name, bool trained,
                         const char *reason)
{
    const struct cm_prepare_choice *choice = choice_of(report, name);
    CHECK_INT(choice->trained, trained);
    CHECK_STR(choice->reason, reason);
}

static void choices(struct cm_arena *arena)
{
    struct cm_error err = {0};
    struct cm_prepare_report report;
    struct cm_prepare_options options = train_with("mse", "sgd", 1);
    struct cm_model_file *file = train_model(arena, several);

    CHECK_OK(cm_prepare(arena, file, &options, &report, &err), &err);
    check_choice(&report, "head_w", true, "a weight or bias by its place");
    check_choice(&report, "body_b", true, "a bias or shift");
    check_choice(&report, "mean", false,
                 "it is applied to an input of the model, as a normalization is");
    check_choice(&report, "scale", false, "a scalar constant");
    check_choice(&report, "shape", false, "it holds no floats");
    check_choice(&report, "unused", false, "nothing reads it");
    check_choice(&report, "limit", false,
                 "Greater reads it, not as a weight, bias, scale, shift or table");
    CHECK_INT(count_reasons(&report.findings, CM_NOTE), 0);
    CHECK_INT(file->model.graph->initializer.count, 7);
    options.freeze = "body";
    CHECK_OK(cm_prepare(arena, train_model(arena, several), &options, &report, &err), &err);
    check_choice(&report, "head_w", true, "a weight or bias by its place");
    check_choice(&report, "body_b", false, "freeze matches it");
    options.freeze = NULL;
    options.train = "scale|^c$|unused";
    file = train_model(arena, several);
    CHECK_OK(cm_prepare(arena, file, &options, &report, &err), &err);
    check_choice(&report, "scale", true, "train matches it");
    check_choice(&report, "c", true, "train matches it");
    check_choice(&report, "unused", false, "the loss does not depend on it");
    check_choice(&report, "head_w", false, "train does not match it");
    CHECK(strstr(nth_reason(&report.findings, CM_NOTE, 0), "'c', held in a Constant node") != NULL);
    CHECK_INT(file->model.graph->initializer.count, 8);
}

void test_prepare_flags__weights_are_chosen_and_the_choice_explained(void)
{
    check_in_arena(choices);
}

/* ---- training mode ---- */

static const char normed[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                             "normed (float[n,1] x) => (float[n,1] y)\n"
                             "<float[1] scale = {1}, float[1] bias = {0}, float[1] mean = {10}, "
                             "float[1] var = {4}, float[1] w = {1}>\n"
                             "{ h = Mul (x, w) b = BatchNormalization <momentum = 0.5, epsilon = "
                             "0.0> (h, scale, bias, mean, var) y = Neg (b) }";

static double column_step(struct run *run, float *x, float *target, int64_t count)
{
    struct cm_error err = {0};
    const struct cm_shape shape = CM_SHAPE(count, 1);
    const struct cm_tensor feeds[2] = {cm_tensor_borrow(CM_FLOAT, &shape, x),
                                       cm_tensor_borrow(CM_FLOAT, &shape, target)};
    const struct cm_tensor *in[IN_MAX];

    for (size_t i = 0; i < cm_trainer_input_count(run->trainer); i++)
        in[i] = &feeds[cm_str_is(cm_trainer_input(run->trainer, i)->name, "target")];
    CHECK_OK(cm_trainer_step(run->trainer, in, run->scalars, &err), &err);
    return scalar(run, "loss");
}

/* The batch 1, 3 has mean 2 and variance 1, so it becomes -1, 1 and y is 1, -1. */
static void batch_norm(struct cm_arena *arena)
{
    struct run run = {.options = train_with("mse", "sgd", 0.25)};
    float x[] = {1, 3}, t[] = {0, 0};

    begin(&run, arena, normed);
    check_choice(&run.report, "mean", false, "running statistics");
    check_choice(&run.report, "var", false, "running statistics");
    check_choice(&run.report, "scale", true, "scale or shift of a normalization");
    CHECK_INT(run.file->model.graph->node.items[1].output.count, 1); /* inference stays */
    check_near(column_step(&run, x, t, 2), 1);
    check_near(train_value(run.trainer, "mean", 0), 6);
    check_near(train_value(run.trainer, "var", 0), 2.5);
    check_near(train_value(run.trainer, "scale", 0), 1 - 0.25 * 2);
}

void test_prepare_flags__batch_normalization_trains_and_keeps_its_statistics(void)
{
    check_in_arena(batch_norm);
}

static void dropout(struct cm_arena *arena)
{
    struct run run = {.options = train_with("mse", "sgd", 0)};
    static float x[1000], t[1000];

    for (size_t i = 0; i < 1000; i++)
        x[i] = 1;
    begin(&run, arena,
          "<ir_version: 8, opset_import: [\"\" : 17]>\n"
          "d (float[n] x) => (float[n] y)\n"
          "<float[1] w = {1}, float ratio = {0.75}>\n"
          "{ h = Mul (x, w) k = Dropout (h, ratio) y = Identity (k) }");
    /* A quarter of the elements is 4, the rest 0: the mean square is about 4. */
    const double first = step(&run, 1000, x, t), second = step(&run, 1000, x, t);
    CHECK(first > 3 && first < 5);
    CHECK(second > 3 && second < 5);
    CHECK(first != second);
}

void test_prepare_flags__dropout_drops(void)
{
    check_in_arena(dropout);
}

/* ---- old models ---- */

static const char old[] =
    "<ir_version: 3, opset_import: [\"\" : 9]>\n"
    "old (float[n,2] x, float[2,2] w) => (float[n,2] y)\n"
    "<float[2,2] w = {1,2,3,4}>\n"
    "{ h = MatMul (x, w) d = Dropout <ratio = 0.0> (h) y = Softmax <axis = 1> (d) }";

static void raised(struct cm_arena *arena)
{
    struct cm_error err = {0};
    struct cm_prepare_report report;
    struct cm_prepare_options options = train_with("mse", "sgd", 1);
    struct cm_model_file *file = train_model(arena, old);

    CHECK_OK(cm_prepare(arena, file, &options, &report, &err), &err);
    CHECK(file->model.opset_import.items[0].version >= 17);
    CHECK(file->model.ir_version >= 8);
    CHECK_INT(file->model.graph->input.count, 1);
    size_t said = 0;
    for (size_t i = 0; i < count_reasons(&report.findings, CM_NOTE); i++)
        said += strstr(nth_reason(&report.findings, CM_NOTE, i), "raised from 9") ||
                strstr(nth_reason(&report.findings, CM_NOTE, i), "IR version raised from 3") ||
                strstr(nth_reason(&report.findings, CM_NOTE, i), "no longer listed as input");
    CHECK_INT(said, 3);
    cm_trainer_free(train_open(arena, file));
    options.keep_opset = true;
    CHECK_FAILS(cm_prepare(arena, train_model(arena, old), &options, &report, &err), CM_UNSUPPORTED,
                &err, "opset 9");
    CHECK_INT(report.findings.violations, 2);
}

void test_prepare_flags__an_old_model_is_raised_or_refused(void)
{
    check_in_arena(raised);
}

/* ---- refusals ---- */

static void refusals(struct cm_arena *arena)
{
    struct cm_error err = {0};
    struct cm_prepare_report report;
    struct cm_prepare_options options = train_with("mse", "sgd", 1);

    options.beta1 = 0.5;
    options.clip_norm = -1;
    options.schedule = CM_SCHEDULE_COSINE;
    options.train = "(";
    CHECK_FAILS(cm_prepare(arena, train_model(arena, line), &options, &report, &err),
                CM_BAD_ARGUMENT, &err, "the model cannot be prepared, for 4 reasons: ");
    CHECK_INT(report.findings.violations, 4);
    options = train_with("best", "fast", 1);
    CHECK_FAILS(cm_prepare(arena, train_model(arena, line), &options, &report, &err),
                CM_BAD_ARGUMENT, &err, "there is no loss 'best'");
    CHECK_INT(report.findings.violations, 2);
    options = train_with("mse", "sgd", 1);
    options.train = "shape";
    CHECK_FAILS(cm_prepare(arena, train_model(arena, several), &options, &report, &err),
                CM_UNSUPPORTED, &err, "'shape' cannot be trained: it holds integers");
    options = train_with("cross-entropy", "sgd", 1);
    CHECK_FAILS(cm_prepare(arena, train_model(arena, line), &options, &report, &err),
                CM_UNSUPPORTED, &err, "classes in axis 1, this one has rank 1");
    options.class_axis = 0;
    CHECK_FAILS(cm_prepare(arena, train_model(arena, several), &options, &report, &err),
                CM_UNSUPPORTED, &err, "class axis 0 must be from 1 to 1");
    options = train_with("mse", "sgd", 1);
    options.class_axis = 2;
    CHECK_FAILS(cm_prepare(arena, train_model(arena, line), &options, &report, &err),
                CM_UNSUPPORTED, &err, "mse does not use classes: class_axis does not apply");
    options = train_with("mse", "sgd", 1);
    CHECK_FAILS(cm_prepare(arena,
                           train_model(arena, "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                              "m (float[2] x) => (float[2] y, float[2] z)\n"
                                              "<float[2] w = {1,2}>\n"
                                              "{ y = Mul (x, w) z = Add (x, w) }"),
                           &options, &report, &err),
                CM_UNSUPPORTED, &err, "several outputs, say which the loss reads: 'y', 'z'");
    CHECK_OK(cm_prepare(arena, train_model(arena, line), &options, &report, &err), &err);
}

void test_prepare_flags__all_that_stands_in_the_way_is_said_at_once(void)
{
    check_in_arena(refusals);
}

/* A model of this opset with as many operators that nobody knows. */
static const char *unknown_operators(struct cm_arena *arena, int opset, int count)
{
    struct cm_str nodes = CM_STR(""), reads = CM_STR("p");

    for (int i = 0; i < count; i++) {
        nodes = cm_arena_printf(arena, "%s a%d = my.Thing%d (x)", nodes.data, i, i);
        reads = cm_arena_printf(arena, "%s, a%d", reads.data, i);
    }
    return cm_arena_printf(arena,
                           "<ir_version: 8, opset_import: [\"\" : %d, \"my\" : 1]>\n"
                           "m (float[2] x) => (float[2] y) <float[2] w = {1, 2}>\n"
                           "{ p = Mul (x, w)%s y = Sum (%s) }",
                           opset, nodes.data, reads.data)
        .data;
}

static void old_refusals(struct cm_arena *arena)
{
    struct cm_error err = {0};
    struct cm_prepare_report now, before;
    const struct cm_prepare_options options = train_with("mse", "fast", 1);

    CHECK_FAILS(cm_prepare(arena, train_model(arena, unknown_operators(arena, 17, 40)), &options,
                           &now, &err),
                CM_BAD_ARGUMENT, &err, "no optimizer 'fast'");
    CHECK_INT(now.findings.violations, 41);
    CHECK_FAILS(cm_prepare(arena, train_model(arena, unknown_operators(arena, 11, 40)), &options,
                           &before, &err),
                CM_BAD_ARGUMENT, &err, "no optimizer 'fast'");
    CHECK_INT(before.findings.violations, 41);
    for (size_t i = 0; i < 41; i++)
        CHECK_STRING(nth_reason(&before.findings, CM_VIOLATION, i),
                     nth_reason(&now.findings, CM_VIOLATION, i));
}

void test_prepare_flags__an_old_model_is_refused_for_as_many_reasons_as_a_new_one(void)
{
    check_in_arena(old_refusals);
}

/* A user of the library knows no flags of the command. */
static void no_flags(struct cm_arena *arena)
{
    struct cm_error err = {0};
    struct cm_prepare_report report;
    struct cm_prepare_options options = train_with("output:y", "sgd", 1);

    options.output = "y";
    options.schedule = CM_SCHEDULE_COSINE;
    options.train = "zzz";
    options.freeze = "zzz";
    options.weight_decay = -1;
    CHECK_FAILS(cm_prepare(arena, train_model(arena, several), &options, &report, &err),
                CM_BAD_ARGUMENT, &err, "train 'zzz' matches no initializer");
    CHECK(report.findings.violations >= 6);
    for (size_t i = 0; i < report.findings.violations; i++)
        CHECK(!strstr(nth_reason(&report.findings, CM_VIOLATION, i), "--"));
    for (size_t i = 0; i < report.n_choices; i++)
        CHECK(!strstr(report.choices[i].reason.data, "--"));
    options = train_with("cross-entropy", "sgd", 1);
    CHECK_OK(cm_prepare(arena,
                        train_model(arena, "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                           "m (float[n,2,3] x) => (float[n,2,3] y)\n"
                                           "<float[1] w = {1}> { y = Mul (x, w) }"),
                        &options, &report, &err),
             &err);
    CHECK_STRING(nth_reason(&report.findings, CM_NOTE, 0),
                 "axis 1 of 'y' is over classes; class_axis names another");
}

void test_prepare_flags__options_are_called_by_their_names(void)
{
    check_in_arena(no_flags);
}

static void twice(struct cm_arena *arena)
{
    struct cm_error err = {0};
    struct cm_prepare_report report;
    const struct cm_prepare_options options = train_with("mse", "adam", 1);
    struct cm_model_file *file = train_model(arena, line);
    struct cm_modes modes;

    CHECK_OK(cm_prepare(arena, file, &options, &report, &err), &err);
    CHECK_INT(file->model.opset_import.count, 2);
    CHECK_FAILS(cm_prepare(arena, file, &options, &report, &err), CM_BAD_ARGUMENT, &err,
                "carries its training already");
    cm_strip(arena, file, &modes);
    CHECK_INT(file->model.training_info.count, 0);
    CHECK_INT(file->model.opset_import.count, 1);
    CHECK_OK(cm_prepare(arena, file, &options, &report, &err), &err);
}

void test_prepare_flags__a_trained_model_is_stripped_before_it_is_prepared_again(void)
{
    check_in_arena(twice);
}

/* ---- weights in bodies, losses of one's own ---- */

static void bodies(struct cm_arena *arena)
{
    struct run run = {.options = train_with("mse", "sgd", 0.25)};
    float x[] = {1}, t[] = {0};

    begin(&run, arena,
          "<ir_version: 8, opset_import: [\"\" : 17]>\n"
          "b (float[n] x) => (float[n] y)\n"
          "<bool yes = {1}>\n"
          "{ y = If (yes) <then_branch = one () => (float[n] p) <float[1] inner = {2}> { p = Mul "
          "(x, inner) },"
          " else_branch = two () => (float[n] q) { q = Neg (x) }> }");
    check_choice(&run.report, "inner", true, "a gradient reaches it");
    step(&run, 1, x, t);
    check_near(train_value(run.trainer, "inner", 0), 1);
}

void test_prepare_flags__weights_in_bodies_are_lifted_out(void)
{
    check_in_arena(bodies);
}
