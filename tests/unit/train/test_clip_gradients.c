/* Gradients that are clipped. */
// SPDX-License-Identifier: Apache-2.0
#include "plan_case.h"

/* By torch and Keras, with a rate of 0.1. */
static const struct {
    struct cm_plan_clip clip;
    double a0, a3, b0, b3;
} clip_cases[] = {
    {{CM_CLIP_GLOBAL, 1},
     0.9587977528572083,
     0.46466192603111267,
     0.07939891517162323,
     0.3823309540748596},
    {{CM_CLIP_GLOBAL_EXACT, 1},
     0.9587978720664978,
     0.46466198563575745,
     0.07939894497394562,
     0.382330983877182},
    {{CM_CLIP_EACH, 1},
     0.9501481652259827,
     0.46319541335105896,
     0.03161391243338585,
     0.3009556531906128},
    {{CM_CLIP_VALUE, 0.4},
     0.8999999761581421,
     0.45900002121925354,
     0.03500000014901161,
     0.37450000643730164},
};

static void clipping(struct cm_arena *arena)
{
    for (size_t i = 0; i < CM_COUNT(clip_cases); i++) {
        struct cm_plan_group settings[2] = {CM_PLAN_GROUP, CM_PLAN_GROUP};
        struct cm_plan plan = plan_of(settings, 2);

        settings[0].lr = settings[1].lr = 0.1;
        plan.clip = clip_cases[i].clip;
        struct plan_run run = plan_open(arena, &plan);
        for (int s = 0; s < 6; s++)
            plan_step(&run, "lr");
        CHECK_NEAR(train_value(run.trainer, "a", 0), clip_cases[i].a0);
        CHECK_NEAR(train_value(run.trainer, "a", 3), clip_cases[i].a3);
        CHECK_NEAR(train_value(run.trainer, "b", 0), clip_cases[i].b0);
        CHECK_NEAR(train_value(run.trainer, "b", 3), clip_cases[i].b3);
    }
}

void test_clip_gradients__clips_over_all_groups_or_each_weight(void)
{
    check_in_arena(clipping);
}
