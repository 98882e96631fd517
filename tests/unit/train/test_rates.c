/* Rates that schedules of several frameworks give. */
// SPDX-License-Identifier: Apache-2.0
#include "plan_case.h"

struct schedule_case {
    const char *name;
    struct cm_phase phases[2];
    size_t count;
    int64_t offset;
    double expected[10];
};

static const double none[1], tenth[1] = {0.1}, hundredth[1] = {0.01}, fiftieth[1] = {0.02};
static const double table[3] = {0.5, 0.25, 0.125};

/* clang-format off */
static const struct schedule_case schedule_cases[] = {
    {"torch SequentialLR of LinearLR and CosineAnnealingLR",
     {{CM_PHASE_LINEAR, .length = 3, .from = hundredth, .to = tenth},
      {CM_PHASE_COSINE, .first = 3, .length = 4, .swings_back = true, .from = tenth, .to = hundredth}}, 2, 0,
     {0.01, 0.04, 0.07, 0.1, 0.0868198052, 0.055, 0.0231801948, 0.01, 0.0231801948, 0.055}},
    {"torch PolynomialLR", {{CM_PHASE_POLYNOMIAL, .length = 5, .factor = 2, .from = tenth, .to = none}}, 1, 0,
     {0.1, 0.064, 0.036, 0.016, 0.004, 0, 0, 0, 0, 0}},
    {"torch StepLR", {{CM_PHASE_EXPONENTIAL, .length = 3, .factor = 0.5, .is_stepped = true, .from = tenth}}, 1, 0,
     {0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.025, 0.025, 0.025, 0.0125}},
    {"torch StepLR two steps on", {{CM_PHASE_EXPONENTIAL, .length = 3, .factor = 0.5, .is_stepped = true, .from = tenth}}, 1, 2,
     {0.1, 0.05, 0.05, 0.05, 0.025, 0.025, 0.025, 0.0125, 0.0125, 0.0125}},
    {"transformers inverse_sqrt",
     {{CM_PHASE_LINEAR, .length = 2, .from = none, .to = tenth}, {CM_PHASE_ROOT, .first = 2, .length = 4, .from = tenth}}, 2, 0,
     {0, 0.05, 0.1, 0.0894427191, 0.0816496581, 0.0755928946, 0.0707106781, 0.0666666667, 0.0632455532, 0.0603022689}},
    {"DeepSpeed WarmupLR", {{CM_PHASE_LOG, .length = 5, .from = none, .to = tenth}}, 1, 0,
     {0, 0.0430676558, 0.0682606194, 0.0861353116, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}},
    {"Keras ExponentialDecay", {{CM_PHASE_EXPONENTIAL, .length = 4, .factor = 0.5, .from = tenth}}, 1, 0,
     {0.1, 0.0840896443, 0.0707106814, 0.0594603531, 0.05, 0.0420448221, 0.0353553407, 0.0297301766, 0.025, 0.0210224111}},
    {"Keras InverseTimeDecay", {{CM_PHASE_INVERSE, .length = 3, .factor = 0.5, .is_stepped = true, .from = tenth}}, 1, 0,
     {0.1, 0.1, 0.1, 0.0666666701, 0.0666666701, 0.0666666701, 0.05, 0.05, 0.05, 0.04}},
    {"Keras PolynomialDecay", {{CM_PHASE_POLYNOMIAL, .length = 5, .factor = 1.5, .from = tenth, .to = fiftieth}}, 1, 0,
     {0.1, 0.077243343, 0.0571806431, 0.0402385741, 0.0271554161, 0.02, 0.02, 0.02, 0.02, 0.02}},
    {"optax warmup_cosine_decay_schedule",
     {{CM_PHASE_LINEAR, .length = 3, .from = none, .to = tenth},
      {CM_PHASE_COSINE, .first = 3, .length = 5, .from = tenth, .to = fiftieth}}, 2, 0,
     {0, 0.0333333388, 0.0666666701, 0.1, 0.0923606753, 0.0723606795, 0.0476393178, 0.0276393183, 0.02, 0.02}},
    {"a table", {{CM_PHASE_CONSTANT, .from = tenth}, {CM_PHASE_TABLE, .first = 2, .rates = table, .n_rates = 3}}, 2, 0,
     {0.1, 0.1, 0.5, 0.25, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125}},
    {"a table of one", {{CM_PHASE_TABLE, .rates = tenth, .n_rates = 1}}, 1, 0,
     {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}},
};
/* clang-format on */

/* With one group, and with two: the second's rates are ten times as high. */
static void check_schedule(struct cm_arena *arena, const struct schedule_case *c, size_t n_groups)
{
    const struct cm_plan_group settings[2] = {CM_PLAN_GROUP, CM_PLAN_GROUP};
    struct cm_plan plan = plan_of(settings, n_groups);
    struct cm_phase phases[2];
    double from[2][2], to[2][2], rates[2][6];

    for (size_t i = 0; i < c->count; i++) {
        phases[i] = c->phases[i];
        for (size_t g = 0; g < n_groups; g++) {
            const double more = g ? 10 : 1;
            from[i][g] = phases[i].from ? more * phases[i].from[0] : 0;
            to[i][g] = phases[i].to ? more * phases[i].to[0] : 0;
            for (size_t r = 0; r < phases[i].n_rates; r++)
                rates[i][r * n_groups + g] = more * c->phases[i].rates[r];
        }
        phases[i].from = from[i];
        phases[i].to = to[i];
        phases[i].rates = rates[i];
    }
    plan.schedule = (struct cm_rate_schedule){
        .items = phases, .count = c->count, .capacity = c->count, .offset = c->offset};
    struct plan_run run = plan_open(arena, &plan);
    for (size_t i = 0; i < 10; i++) {
        const double rate = plan_step(&run, n_groups > 1 ? "lr.1" : "lr");
        const double expected = c->expected[i] * (n_groups > 1 ? 10 : 1);

        if (fabs(rate - expected) > 2e-8 * (double)n_groups * 10)
            fail_msg("%s: the rate of step %zu is %.9g, expected %.9g", c->name, i, rate, expected);
    }
}

static void all_schedules(struct cm_arena *arena)
{
    for (size_t i = 0; i < CM_COUNT(schedule_cases); i++)
        for (size_t groups = 1; groups <= 2; groups++)
            check_schedule(arena, &schedule_cases[i], groups);
}

void test_rates__schedules_give_the_rates_of_their_framework(void)
{
    check_in_arena(all_schedules);
}

/* ---- lengths ---- */

struct run_case {
    int64_t samples, batch, epochs, steps, accumulate;
    enum cm_schedule schedule;
    double updates_per_epoch, schedule_epochs; /* expected */
    int64_t schedule_steps;
};

/* clang-format off */
static const struct run_case run_cases[] = {
    {10, 0, 3, 0, 1, CM_SCHEDULE_LINEAR, 3, 3, 0}, /* the model fixes batches of 4 */
    {10, 5, 3, 0, 1, CM_SCHEDULE_COSINE, 2, 3, 0},
    {10, 5, 3, 7, 1, CM_SCHEDULE_COSINE, 2, 0, 7},
    {10, 5, 0, 7, 3, CM_SCHEDULE_LINEAR, 2.0 / 3, 0, 3},
    {10, 5, 3, 0, 1, CM_SCHEDULE_STEP, 2, 0, 0}, /* has a period, not an end */
    {10, 5, 3, 0, 1, CM_SCHEDULE_CONSTANT, 2, 0, 0},
    {0, 0, 0, 0, 1, CM_SCHEDULE_LINEAR, 0, 0, 0},
};
/* clang-format on */

static void run_lengths(struct cm_arena *arena)
{
    const struct cm_model_file *file = train_model(
        arena, "<ir_version: 8, opset_import: [\"\" : 17]> fixed (float[1] w, float[4,1] x) => "
               "(float[4,1] y) <float[1] w = {1}> { y = Mul (x, w) }");

    for (size_t i = 0; i < CM_COUNT(run_cases); i++) {
        const struct run_case *c = &run_cases[i];
        struct cm_prepare_options options = CM_PREPARE_OPTIONS;

        options.schedule = c->schedule;
        options.accumulate = c->accumulate;
        options.run_samples = c->samples;
        options.run_batch_size = c->batch;
        options.run_epochs = c->epochs;
        options.run_steps = c->steps;
        cm_schedule_fit_run(arena, file->model.graph, &options);
        CHECK(options.updates_per_epoch == c->updates_per_epoch);
        CHECK(options.schedule_epochs == c->schedule_epochs);
        CHECK_INT(options.schedule_steps, c->schedule_steps);
    }
}

void test_rates__lengths_follow_from_the_run(void)
{
    check_in_arena(run_lengths);
}
