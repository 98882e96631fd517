/* What tests of plans share. */
// SPDX-License-Identifier: Apache-2.0
#include "plan_case.h"

/* The gradient of a is x / 4, that of b is z / 4: whatever is fed. */
const char plan_model[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                          "two (float[4] x, float[4] z) => (float[4] y)\n"
                          "<float[4] a = {1, -2, 3, 0.5}, float[4] b = {0.1, 0.2, -0.3, 0.4}, "
                          "float[4] c = {1, 1, 1, 1}>\n"
                          "{ ax = Mul (x, a) bz = Mul (z, b) bc = Mul (bz, c) y = Add (ax, bc) }";

const struct cm_plan_weight plan_apart[2] = {{{"a", 1}, 0}, {{"b", 1}, 1}};
const struct cm_plan_weight plan_together[2] = {{{"a", 1}, 0}, {{"b", 1}, 0}};

static const float slopes[4][4] = {
    {0.5F, -1, 0.25F, 2}, {0.1F, 0.2F, -0.3F, -1}, {-0.7F, 0, 0.4F, 0.5F}, {1, 1, -1, 0.01F}};

struct cm_plan plan_of(const struct cm_plan_group *groups, size_t n_groups)
{
    return (struct cm_plan){.rule = CM_RULE_SGD,
                            .groups = groups,
                            .n_groups = n_groups,
                            .weights = n_groups > 1 ? plan_apart : plan_together,
                            .n_weights = 2};
}

struct plan_run plan_open(struct cm_arena *arena, const struct cm_plan *plan)
{
    struct plan_run run = {.arena = arena};
    struct cm_prepare_options options = CM_PREPARE_OPTIONS;
    struct cm_error err = {0};

    options.loss = "output:y";
    options.plan = plan;
    struct cm_model_file *file = train_model(arena, plan_model);
    CHECK_OK(cm_prepare(arena, file, &options, &run.report, &err), &err);
    run.trainer = train_open(arena, file);
    return run;
}

double plan_step(struct plan_run *run, const char *name)
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
