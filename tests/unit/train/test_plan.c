/* Trainings from a full plan: groups, and what cannot be. */
// SPDX-License-Identifier: Apache-2.0
#include "findings.h"
#include "plan_case.h"

/* ---- groups ---- */

static void groups(struct cm_arena *arena)
{
    struct cm_plan_group settings[2] = {CM_PLAN_GROUP, CM_PLAN_GROUP};
    struct cm_plan plan = plan_of(settings, 2);

    plan.step = 7;
    settings[0].lr = 0.5;
    settings[1].lr = 0.25;
    settings[1].momentum = 0.5;
    struct plan_run run = plan_open(arena, &plan);
    CHECK_INT(run.report.n_states, 1);
    CHECK_STR(run.report.states[0].weight, "b");
    CHECK_STR(run.report.states[0].state, "b.velocity");
    CHECK_STRING(run.report.states[0].slot, "momentum_buffer");
    CHECK_STR(run.report.step_name, "training.step");
    CHECK_NEAR(plan_step(&run, "lr"), 0.5);
    CHECK_NEAR(plan_step(&run, "lr.1"), 0.25);
    CHECK_NEAR(train_value(run.trainer, "training.step", 0), 9);
    CHECK_NEAR(train_value(run.trainer, "a", 0), 1 - 0.5 * (0.5 + 0.1));
    /* velocities 0.25, then 0.125 + 0.05 */
    CHECK_NEAR(train_value(run.trainer, "b", 0), 0.1 - 0.25 * (0.25 + 0.175));
}

void test_plan__groups_have_their_own_settings(void)
{
    check_in_arena(groups);
}

/* b came ten steps after a: its corrections are those of a first step. */
static void offsets(struct cm_arena *arena)
{
    struct cm_plan_group settings[2] = {CM_PLAN_GROUP, CM_PLAN_GROUP};
    struct cm_plan plan = plan_of(settings, 2);

    plan.rule = CM_RULE_ADAM;
    plan.step = 10;
    settings[0].lr = settings[1].lr = 0.01;
    settings[1].step_offset = -10;
    struct plan_run run = plan_open(arena, &plan);
    plan_step(&run, "lr");
    CHECK_NEAR(train_value(run.trainer, "b", 0), 0.1 - 0.01);
    const double rate = 0.01 * sqrt(1 - pow(0.999, 11)) / (1 - pow(0.9, 11));
    CHECK_NEAR(train_value(run.trainer, "a", 0), 1 - rate * 0.05 / (sqrt(0.001) * 0.5));
}

void test_plan__a_group_counts_its_own_steps(void)
{
    check_in_arena(offsets);
}

/* ---- what cannot be ---- */

static enum cm_status refuse(struct cm_arena *arena, const struct cm_plan *plan,
                             struct cm_prepare_report *report)
{
    struct cm_prepare_options options = CM_PREPARE_OPTIONS;
    struct cm_error err = {0};

    options.loss = "output:y";
    options.plan = plan;
    return cm_prepare(arena, train_model(arena, plan_model), &options, report, &err);
}

static void strangers(struct cm_arena *arena)
{
    const struct cm_plan_weight weights[] = {
        {CM_STR("a"), 0}, {CM_STR("missing"), 0}, {CM_STR("b"), 3}};
    struct cm_plan_group group = CM_PLAN_GROUP;
    struct cm_plan plan = plan_of(&group, 1);
    struct cm_prepare_report report;

    plan.weights = weights;
    plan.n_weights = 3;
    CHECK(refuse(arena, &plan, &report));
    CHECK_INT(report.findings.violations, 3);
    CHECK(strstr(nth_reason(&report.findings, CM_VIOLATION, 0), "the learning rate is nan"));
    CHECK(strstr(nth_reason(&report.findings, CM_VIOLATION, 1), "'b' is of optimizer group 3"));
    CHECK(strstr(nth_reason(&report.findings, CM_VIOLATION, 2),
                 "'missing', which the model does not have"));
}

void test_plan__what_the_model_lacks_stands_in_the_way(void)
{
    check_in_arena(strangers);
}

/* PyTorch leaves a parameter without gradient alone, momentum, decay and all. */
static void unreached(struct cm_arena *arena)
{
    static const char with_spare[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                     "spare (float[4] x) => (float[4] y, float[4] other)\n"
                                     "<float[4] a = {1, -2, 3, 0.5}, float[4] b = {1, 1, 1, 1}>\n"
                                     "{ y = Mul (x, a) other = Mul (y, b) }";
    struct cm_plan_group group = CM_PLAN_GROUP;
    const struct cm_plan plan = plan_of(&group, 1);
    struct cm_prepare_options options = CM_PREPARE_OPTIONS;
    struct cm_prepare_report report;
    struct cm_error err = {0};

    group.lr = 0.1;
    options.loss = "output:y";
    options.plan = &plan;
    CHECK_OK(cm_prepare(arena, train_model(arena, with_spare), &options, &report, &err), &err);
    CHECK_INT(count_reasons(&report.findings, CM_NOTE), 1);
    CHECK(strstr(nth_reason(&report.findings, CM_NOTE, 0), "'b' stays as it is"));
}

void test_plan__a_weight_without_gradient_is_left_and_told(void)
{
    check_in_arena(unreached);
}

/* ---- 16 bits ---- */

/* The bits 16384 are 2 in both types. A move of 0.001 * 0.25: neither has a number so near to 2. A
 * body reads it too. */
static const char in_16_bits[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"
    "m (float[4] x) => (float[4] y) <%s[4] w = {16384, 16384, 16384, 16384}, bool c = {1}>\n"
    "{ h = Cast <to = %d> (x) p = Mul (h, w)\n"
    "  q = If (c) <then_branch = t () => (%s[4] u) { u = Add (p, w) },\n"
    "              else_branch = e () => (%s[4] v) { v = Sub (p, w) }>\n"
    "  y = Cast <to = 1> (q) }";

static void check_16_bits(struct cm_arena *arena, const char *name, enum cm_dtype dtype)
{
    const struct cm_plan_weight weight = {CM_STR("w"), 0};
    struct cm_plan_group group = CM_PLAN_GROUP;
    struct cm_prepare_options options = CM_PREPARE_OPTIONS;
    struct cm_plan plan = plan_of(&group, 1);
    struct cm_prepare_report report;
    struct cm_trainer_scalar scalars[4];
    struct cm_error err = {0};
    float x[4] = {0};
    const struct cm_shape shape = CM_SHAPE(4);
    const struct cm_tensor fed = cm_tensor_borrow(CM_FLOAT, &shape, x), *in = &fed;
    const char *text = cm_arena_printf(arena, in_16_bits, name, (int)dtype, name, name).data;

    group.lr = 1e-3;
    group.momentum = 0.9;
    plan.weights = &weight;
    plan.n_weights = 1;
    options.loss = "output:y";
    options.plan = &plan;
    struct cm_model_file *file = train_model(arena, text);
    CHECK_OK(cm_prepare(arena, file, &options, &report, &err), &err);
    CHECK_STRING(nth_reason(&report.findings, CM_NOTE, 0),
                 "1 weight of 16 bits is trained as a float, which the graph casts");
    CHECK_INT(file->model.graph->initializer.items[0].data_type, CM_FLOAT);
    struct cm_trainer *trainer = train_open(arena, file);
    CHECK_NEAR(train_value(trainer, "w", 3), 2);
    CHECK_OK(cm_trainer_step(trainer, &in, scalars, &err), &err);
    CHECK_NEAR(train_value(trainer, "w", 0), 2 - 1e-3 * 0.25);
    CHECK_NEAR(train_value(trainer, "w.velocity", 0), 0.25);
}

static void masters(struct cm_arena *arena)
{
    check_16_bits(arena, "bfloat16", CM_BFLOAT16);
    check_16_bits(arena, "float16", CM_FLOAT16);
}

void test_plan__weights_of_16_bits_are_trained_as_floats(void)
{
    check_in_arena(masters);
}

/* Nothing is computed: the output is the weight. */
static void weight_alone(struct cm_arena *arena)
{
    struct cm_model_file *file =
        train_model(arena, "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                           "m (float[2] x) => (bfloat16[2] w) <bfloat16[2] w = {16384, 16384}> {}");
    const struct cm_prepare_options options = train_with("output:w", "sgd", 0.1);
    struct cm_prepare_report report;
    struct cm_error err = {0};

    CHECK(cm_prepare(arena, file, &options, &report, &err) != CM_OK);
    CHECK_STRING(nth_reason(&report.findings, CM_VIOLATION, 0),
                 "'w' cannot be trained as float: it is an output of the model");
}

void test_plan__a_weight_of_16_bits_in_a_graph_without_nodes_is_refused(void)
{
    check_in_arena(weight_alone);
}
