/* States of schedulers: the rates that PyTorch and transformers give at the same positions. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "convert/frameworks/torch/torch_state.h"
#include "convert/schedule.h"

/* A training of one group with rate 0.1 now, and the scheduler that JSON says. */
static struct cm_saved *take(struct cm_arena *arena, double lr, int64_t step, const char *json)
{
    struct cm_saved *saved = cm_saved_new(arena, CM_STR("test"));
    struct cm_saved_group *group = cm_saved_add_group(saved);
    struct cm_item *state;
    struct cm_error err;

    group->settings.lr = lr;
    group->settings.initial_lr = 0.1;
    saved->step = step;
    CHECK_OK(cm_item_parse_json(arena, cm_str(json), &state, &err), &err);
    CHECK(cm_torch_is_schedule(state));
    cm_torch_take_schedule(saved, state);
    return saved;
}

static bool gives(const struct cm_saved *saved, int64_t position, double expected)
{
    const double rate = cm_schedule_rate(&saved->schedule, 1, 0, position);

    return saved->schedule_known == CM_SCHEDULE_KNOWN && fabs(rate - expected) < 1e-12;
}

#define COMMON(position) "\"base_lrs\": [0.1], \"last_epoch\": " position ", \"_last_lr\": [0]"

static void known_classes(struct cm_arena *arena)
{
    struct cm_saved *saved =
        take(arena, 0.05, 6, "{\"step_size\": 4, \"gamma\": 0.5, " COMMON("6") "}");
    CHECK_STR(saved->schedule_name, "StepLR");
    CHECK(gives(saved, 3, 0.1) && gives(saved, 4, 0.05) && gives(saved, 8, 0.025));

    saved = take(arena, 0.1, 0, "{\"milestones\": [7, 3, 7], \"gamma\": 0.1, " COMMON("0") "}");
    CHECK(gives(saved, 2, 0.1) && gives(saved, 3, 0.01) && gives(saved, 7, 0.0001));

    saved = take(arena, 0.1, 0, "{\"T_max\": 10, \"eta_min\": 0.02, " COMMON("0") "}");
    CHECK(gives(saved, 5, 0.06) && gives(saved, 10, 0.02) && gives(saved, 20, 0.1));

    saved = take(arena, 0.1, 0, "{\"T_0\": 2, \"T_mult\": 2, \"eta_min\": 0, " COMMON("0") "}");
    CHECK(gives(saved, 1, 0.05) && gives(saved, 2, 0.1) && gives(saved, 4, 0.05));

    saved = take(arena, 0.1, 0, "{\"total_iters\": 4, \"power\": 2, " COMMON("0") "}");
    CHECK(gives(saved, 2, 0.025) && gives(saved, 4, 0) && gives(saved, 9, 0));
}

void test_schedule_torch__classes_are_told_by_their_keys(void)
{
    check_in_arena(known_classes);
}

static void composed(struct cm_arena *arena)
{
    const struct cm_saved *saved =
        take(arena, 0.1, 5,
             "{\"_milestones\": [5], \"last_epoch\": 5, \"_last_lr\": [0.1], \"_schedulers\": [{"
             "\"start_factor\": 0.1, \"end_factor\": 1, \"total_iters\": 5, " COMMON(
                 "4") "},"
                      "{\"gamma\": 0.5, " COMMON("0") "}]}");
    CHECK(gives(saved, 0, 0.01) && gives(saved, 4, 0.082) && gives(saved, 7, 0.025));

    saved = take(
        arena, 0.01, 0,
        "{\"_last_lr\": [0.01], \"_schedulers\": [{\"factor\": 0.1, \"total_iters\": 2, " COMMON(
            "0") "}, {\"gamma\": 0.5, " COMMON("0") "}]}");
    CHECK_STR(saved->schedule_name, "ChainedScheduler");
    CHECK(gives(saved, 1, 0.005) && gives(saved, 2, 0.025) && gives(saved, 3, 0.0125));

    /* A line times a staircase: a table while both move, then the staircase. */
    saved = take(arena, 0.05, 0,
                 "{\"_last_lr\": [0.05], \"_schedulers\": [{\"start_factor\": 0.5, \"end_factor\": "
                 "1, \"total_iters\": 4, " COMMON(
                     "0") "}, {\"step_size\": 3, \"gamma\": 0.5, " COMMON("0") "}]}");
    CHECK(gives(saved, 2, 0.075) && gives(saved, 3, 0.04375) && gives(saved, 5, 0.05));
    CHECK(gives(saved, 6, 0.025) && gives(saved, 9, 0.0125));
}

void test_schedule_torch__sequences_and_chains_are_put_together(void)
{
    check_in_arena(composed);
}

static void once_per_epoch(struct cm_arena *arena)
{
    const struct cm_saved *saved =
        take(arena, 0.05, 20, "{\"gamma\": 0.5, \"step_size\": 2, " COMMON("2") "}");
    CHECK(gives(saved, 19, 0.1) && gives(saved, 20, 0.05) && gives(saved, 40, 0.025));

    saved = take(arena, 0.05, 10,
                 "{\"start_factor\": 1, \"end_factor\": 0, \"total_iters\": 4, " COMMON("2") "}");
    CHECK(gives(saved, 10, 0.05) && gives(saved, 14, 0.05) && gives(saved, 15, 0.025));

    saved = take(arena, 0.05, 7, "{\"gamma\": 0.5, \"step_size\": 2, " COMMON("2") "}");
    CHECK_INT(saved->schedule_known, CM_SCHEDULE_UNKNOWN);
    CHECK(strstr(saved->missing.items[0].data, "updates of an epoch are not known") != NULL);
}

void test_schedule_torch__a_step_per_epoch_is_many_updates(void)
{
    check_in_arena(once_per_epoch);
}

static void not_known(struct cm_arena *arena)
{
    const struct cm_saved *saved = take(arena, 0.1, 3, "{\"lr_lambdas\": [{}], " COMMON("3") "}");
    CHECK_INT(saved->schedule_known, CM_SCHEDULE_UNKNOWN);
    CHECK_STR(saved->missing.items[0],
              "how the learning rate goes on: LambdaLR: its function is not stored");

    /* A rate that the scheduler does not give: somebody changed it by hand. */
    saved = take(arena, 0.3, 3, "{\"gamma\": 1, " COMMON("3") "}");
    CHECK_INT(saved->schedule_known, CM_SCHEDULE_UNKNOWN);
    saved = take(arena, 0.1, 3, "{\"T_max\": 1e300, \"eta_min\": 0, " COMMON("3") "}");
    CHECK_INT(saved->schedule_known, CM_SCHEDULE_UNKNOWN);
}

void test_schedule_torch__what_cannot_be_known_is_said(void)
{
    check_in_arena(not_known);
}

/* Factors of transformers' get_scheduler with 4 steps of warmup of 24. */
static void by_name(struct cm_arena *arena)
{
    static const struct {
        const char *name, *more;
        int64_t position;
        double factor;
    } cases[] = {
        {"linear", "{}", 2, 0.5},
        {"linear", "{}", 14, 0.5},
        {"linear", "{}", 30, 0},
        {"cosine", "{}", 10, 0.79389262614623657},
        {"cosine_with_restarts", "{\"num_cycles\": 2}", 19, 0.5},
        {"cosine_with_restarts", "{\"num_cycles\": 3}", 24, 0},
        {"polynomial", "{\"power\": 2, \"lr_end\": 0}", 14, 0.25},
        {"constant", "{}", 0, 1},
        {"constant_with_warmup", "{}", 3, 0.75},
        {"inverse_sqrt", "{}", 16, 0.5},
        {"cosine_with_min_lr", "{\"min_lr_rate\": 0.5}", 14, 0.75},
        {"cosine_warmup_with_min_lr", "{\"min_lr_rate\": 0}", 1, 0.5},
        {"cosine_warmup_with_min_lr", "{\"min_lr_rate\": 0}", 13, 0.5},
        {"warmup_stable_decay", "{\"num_decay_steps\": 10}", 13, 1},
        {"warmup_stable_decay", "{\"num_decay_steps\": 10, \"decay_type\": \"linear\"}", 19, 0.5},
        {"warmup_stable_decay", "{\"num_decay_steps\": 8, \"decay_type\": \"1-sqrt\"}", 18, 0.5},
    };
    const double base = 0.1;

    for (size_t i = 0; i < CM_COUNT(cases); i++) {
        struct cm_rate_schedule schedule = {0};
        const struct cm_schedule_maker maker = {arena, &schedule, &base, 1};
        struct cm_item *more;
        struct cm_error err;

        CHECK_OK(cm_item_parse_json(arena, cm_str(cases[i].more), &more, &err), &err);
        CHECK(cm_schedule_transformers(&maker, cm_str(cases[i].name), 4, 24, more));
        const double rate = cm_schedule_rate(&schedule, 1, 0, cases[i].position);
        if (fabs(rate - base * cases[i].factor) > 1e-12)
            fail_msg("%s at %d: %g, expected %g", cases[i].name, (int)cases[i].position,
                     rate / base, cases[i].factor);
    }
    const struct cm_schedule_maker none = {arena, &(struct cm_rate_schedule){.count = 0}, &base, 1};
    CHECK(!cm_schedule_transformers(&none, CM_STR("reduce_lr_on_plateau"), 4, 24, NULL));
    CHECK(!cm_schedule_transformers(&none, CM_STR("cosine"), 4, NAN, NULL));
}

void test_schedule_torch__transformers_names_its_schedules(void)
{
    check_in_arena(by_name);
}
