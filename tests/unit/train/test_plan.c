/* Trainings from a full plan: groups, schedules, clipping, and the rules of each framework. */
// SPDX-License-Identifier: Apache-2.0
#include "train_case.h"

#include <math.h>

/* The gradient of a is x / 4, that of b is z / 4: whatever is fed. */
static const char two[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                          "two (float[4] x, float[4] z) => (float[4] y)\n"
                          "<float[4] a = {1, -2, 3, 0.5}, float[4] b = {0.1, 0.2, -0.3, 0.4}, "
                          "float[4] c = {1, 1, 1, 1}>\n"
                          "{ ax = Mul (x, a) bz = Mul (z, b) bc = Mul (bz, c) y = Add (ax, bc) }";

static const float slopes[4][4] = {
    {0.5F, -1, 0.25F, 2}, {0.1F, 0.2F, -0.3F, -1}, {-0.7F, 0, 0.4F, 0.5F}, {1, 1, -1, 0.01F}};

struct run {
    struct cm_arena *arena;
    struct cm_trainer *trainer;
    struct cm_prepare_report report;
    size_t steps;
};

static void open_run(struct run *run, const char *text, const struct cm_plan *plan)
{
    struct cm_prepare_options options = CM_PREPARE_OPTIONS;
    struct cm_error err = {0};

    options.loss = "output:y";
    options.plan = plan;
    struct cm_model_file *file = train_model(run->arena, text);
    CHECK_OK(cm_prepare(run->arena, file, &options, &run->report, &err), &err);
    run->trainer = train_open(run->arena, file);
}

/* A step with the next gradients: of a as they are, of b the halves. The output called name. */
static double step(struct run *run, const char *name)
{
    struct cm_trainer_scalar scalars[8];
    struct cm_error err = {0};
    float x[4], z[4];
    const struct cm_shape shape = CM_SHAPE(4);
    const struct cm_tensor feeds[2] = {cm_tensor_borrow(CM_FLOAT, &shape, x),
                                       cm_tensor_borrow(CM_FLOAT, &shape, z)};
    const struct cm_tensor *in[2];
    const float *g = slopes[run->steps++ % 4];
    double found = NAN;

    for (size_t i = 0; i < 4; i++) {
        x[i] = 4 * g[i];
        z[i] = 2 * g[i];
    }
    for (size_t i = 0; i < 2; i++)
        in[i] = &feeds[cm_str_is(cm_trainer_input(run->trainer, i)->name, "z")];
    const size_t count = cm_trainer_scalar_count(run->trainer);
    CHECK(count <= CM_COUNT(scalars));
    CHECK_OK(cm_trainer_step(run->trainer, in, scalars, &err), &err);
    for (size_t i = 0; i < count; i++)
        if (cm_str_is(scalars[i].name, name))
            found = scalars[i].value;
    return found;
}

static bool is_near(double actual, double expected)
{
    return fabs(actual - expected) <= 2e-6 * fmax(1, fabs(expected));
}

#define CHECK_NEAR(actual, expected) CHECK(is_near(actual, expected))

/* ---- groups ---- */

static const struct cm_plan_weight a_then_b[] = {{CM_STR("a"), 0}, {CM_STR("b"), 1}};

static void groups(struct cm_arena *arena)
{
    struct run run = {.arena = arena};
    struct cm_plan_group settings[2] = {CM_PLAN_GROUP, CM_PLAN_GROUP};
    const struct cm_plan plan = {.rule = CM_RULE_SGD,
                                 .groups = settings,
                                 .n_groups = 2,
                                 .weights = a_then_b,
                                 .n_weights = 2,
                                 .step = 7};

    settings[0].lr = 0.5;
    settings[1].lr = 0.25;
    settings[1].momentum = 0.5;
    open_run(&run, two, &plan);
    CHECK_INT(run.report.n_states, 1);
    CHECK(cm_str_is(run.report.states[0].weight, "b"));
    CHECK(cm_str_is(run.report.states[0].state, "b.velocity"));
    CHECK(strcmp(run.report.states[0].slot, "momentum_buffer") == 0);
    CHECK(cm_str_is(run.report.step_name, "training.step"));
    CHECK_NEAR(step(&run, "lr"), 0.5);
    CHECK_NEAR(step(&run, "lr.1"), 0.25);
    CHECK_NEAR(train_value(run.trainer, "training.step", 0), 9);
    CHECK_NEAR(train_value(run.trainer, "a", 0), 1 - 0.5 * (0.5 + 0.1));
    /* velocities 0.25, then 0.125 + 0.05 */
    CHECK_NEAR(train_value(run.trainer, "b", 0), 0.1 - 0.25 * (0.25 + 0.175));
}

void test_plan__groups_have_their_own_settings(void)
{
    check_in_arena(groups);
}
