/* Folders of DeepSpeed: real ones of two ranks, and its schedules. */
// SPDX-License-Identifier: Apache-2.0
#include "base/folder.h"
#include "check.h"
#include "convert/find_saved.h"
#include "convert/frameworks/torch/deepspeed.h"
#include "convert/schedule.h"

#include <math.h>

#define CHECKPOINTS TESTS_DIR "/checkpoints/"

/* The first and the last element of a weight, or of a slot. */
static void check_ends(const struct cm_saved *saved, const char *name, const char *slot,
                       float first, float last)
{
    const struct cm_saved_entry *entry =
        find_saved(saved, slot ? CM_SAVED_SLOT : CM_SAVED_WEIGHT, cm_str(name), slot);
    struct cm_saved_reader reader = {0};
    struct cm_error err;
    float out;

    CHECK(entry);
    const int64_t count = cm_shape_elements(&entry->tensor->shape);
    CHECK_OK(cm_saved_tensor_read(&reader, entry->tensor, 0, 1, &out, &err), &err);
    CHECK(out == first);
    CHECK_OK(cm_saved_tensor_read(&reader, entry->tensor, count - 1, 1, &out, &err), &err);
    CHECK(out == last);
}

static void reads(struct cm_arena *arena)
{
    struct cm_saved *saved;
    struct cm_error err;

    CHECK_OK(cm_saved_open(arena, CHECKPOINTS "deepspeed-zero2", 0, &saved, &err), &err);
    CHECK_STRING(saved->system, "DeepSpeed");
    CHECK_INT(saved->entries.count, 18);
    CHECK_INT(saved->groups.count, 2);
    CHECK_INT(saved->step, 9);
    CHECK_INT(saved->ranks, 2);
    CHECK(saved->clip.limit == 1 && saved->groups.items[0].settings.weight_decay == 0.1);
    CHECK_STR(saved->groups.items[1].names.items[0], "fc1.bias");
    CHECK_INT(saved->schedule_known, CM_SCHEDULE_KNOWN);
    CHECK(fabs(cm_schedule_rate(&saved->schedule, 2, 1, 8) - 0.02 * 22 / 26) < 1e-15);
    check_ends(saved, "fc2.weight", NULL, -0.2525048553943634F, 0.0929129421710968F);
    check_ends(saved, "fc2.weight", "exp_avg_sq", 7.620914402650669e-05F, 8.349424751941115e-05F);
    check_ends(saved, "head.bias", "exp_avg_sq", 0.01072626281529665F, 0.004956797696650028F);

    CHECK_OK(cm_saved_open(arena, CHECKPOINTS "deepspeed-zero3/global_step8", 0, &saved, &err),
             &err);
    CHECK_INT(saved->entries.count, 18);
    CHECK_INT(saved->schedule_known, CM_SCHEDULE_NONE);
    CHECK(saved->clip.limit == 1);
    check_ends(saved, "fc1.weight", NULL, -0.1078466847538948F, 0.119450643658638F);
    check_ends(saved, "head.bias", NULL, -0.007993658073246479F, -0.14657047390937805F);
    check_ends(saved, "head.bias", "exp_avg_sq", 0.002848823321983218F, 0.00500692892819643F);
}

void test_deepspeed__puts_parts_of_ranks_together(void)
{
    check_in_arena(reads);
}

static void misses(struct cm_arena *arena)
{
    static const char name[] = "mp_rank_00_model_states.pt";
    char path[FOLDER_PATH_SIZE];
    struct cm_saved *saved;
    struct folder folder;
    struct cm_error err;

    folder_make(&folder);
    folder_write(&folder, name, "x");
    folder_path(&folder, "", path);
    CHECK_FAILS(cm_saved_open(arena, path, 0, &saved, &err), CM_BAD_MODEL, &err,
                "it is not a file of torch.save");
    folder_write(&folder, "zero_pp_rank_1_mp_rank_00_optim_states.pt", "x");
    CHECK_FAILS(cm_saved_open(arena, path, 0, &saved, &err), CM_BAD_MODEL, &err,
                "the optimizer's file of rank 0 is missing");
    folder_write(&folder, "zero_pp_rank_0_mp_rank_01_optim_states.pt", "x");
    CHECK_FAILS(cm_saved_open(arena, path, 0, &saved, &err), CM_UNSUPPORTED, &err,
                "tensor parallelism");
    folder_write(&folder, "latest", "elsewhere\n");
    CHECK_FAILS(cm_saved_open(arena, path, 0, &saved, &err), CM_BAD_MODEL, &err,
                "'elsewhere/' holds no file of weights");
    folder_remove(&folder);
}

void test_deepspeed__says_which_file_is_missing(void)
{
    check_in_arena(misses);
}

/* A schedule whose state is at `position` with this rate, after 10 updates. */
static struct cm_saved *scheduled(struct cm_arena *arena, const char *config, int position,
                                  double lr)
{
    struct cm_saved *saved = cm_saved_new(arena, CM_STR("x"));
    struct cm_item *item, *state = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_error err;

    cm_saved_add_group(saved)->settings.lr = lr;
    saved->step = 10;
    CHECK_OK(cm_item_parse_json(arena, cm_str(config), &item, &err), &err);
    cm_item_put(arena, state, "last_batch_iteration", cm_item_int(arena, position));
    cm_deepspeed_take_schedule(saved, item, state);
    return saved;
}

/* The rate of position p, which is update 10 + p - position. */
static void check_rate(const struct cm_saved *saved, int64_t p, double wanted)
{
    const double rate = cm_schedule_rate(&saved->schedule, 1, 0, p);

    CHECK_INT(saved->schedule_known, CM_SCHEDULE_KNOWN);
    CHECK(fabs(rate - wanted) <= 1e-12 * fabs(wanted));
}

/* Wanted rates are those of deepspeed.runtime.lr_schedules, version 0.19.8. */
static void schedules(struct cm_arena *arena)
{
    const struct cm_saved *saved = scheduled(arena,
                                             "{\"type\": \"WarmupLR\", \"params\": "
                                             "{\"warmup_max_lr\": 0.1, \"warmup_num_steps\": 20}}",
                                             9, 0.1 * log(10) / log(20));
    CHECK_INT(saved->schedule.offset, -1);
    check_rate(saved, 14, 0.1 * log(15) / log(20));
    check_rate(saved, 20, 0.1);
    check_rate(saved, 99, 0.1);

    /* the rate of the optimizer, which is told by the rate of now */
    saved = scheduled(arena, "{\"type\": \"WarmupLR\", \"params\": {\"warmup_type\": \"linear\"}}",
                      250, 0.5);
    check_rate(saved, 500, 1);

    const char *cosine = "{\"type\": \"WarmupCosineLR\", \"params\": {\"total_num_steps\": 30, "
                         "\"warmup_num_steps\": 10, \"warmup_type\": \"linear\", "
                         "\"cos_min_ratio\": 0.1}}";
    for (int at = 5; at <= 15; at += 10) { /* before the cosine, and in it */
        const double ratio = at < 10 ? 0.5 : 0.1 + 0.9 * (1 + cos(acos(-1) * 6 / 20)) / 2;
        saved = scheduled(arena, cosine, at, 2 * ratio);
        check_rate(saved, 20, 2 * (0.1 + 0.9 * (1 + cos(acos(-1) * 11 / 20)) / 2));
        check_rate(saved, 29, 2 * 0.1);
        check_rate(saved, 100, 2 * 0.1);
    }

    saved = scheduled(arena,
                      "{\"type\": \"OneCycle\", \"params\": {\"cycle_min_lr\": 1, "
                      "\"cycle_max_lr\": 3, \"cycle_first_step_size\": 10, \"cycle_momentum\": "
                      "false, \"decay_lr_rate\": 0.5, \"decay_step_size\": 4}}",
                      4, 2);
    CHECK_INT(saved->schedule.offset, -5);
    check_rate(saved, 10, 3);
    check_rate(saved, 15, 2);
    check_rate(saved, 20, 1);
    check_rate(saved, 24, 1 / 1.5);
}

void test_deepspeed__schedules_go_on_as_its_own(void)
{
    check_in_arena(schedules);
}

static void unknown_schedules(struct cm_arena *arena)
{
    const struct cm_saved *saved =
        scheduled(arena, "{\"type\": \"LRRangeTest\", \"params\": {}}", 9, 0.1);

    CHECK_INT(saved->schedule_known, CM_SCHEDULE_UNKNOWN);
    CHECK(strstr(saved->missing.items[0].data, "'LRRangeTest' with these settings is not supp"));
    saved = scheduled(arena, "{\"type\": \"WarmupLR\", \"params\": {\"warmup_max_lr\": 0.1}}", 5000,
                      0.2);
    CHECK_INT(saved->schedule_known, CM_SCHEDULE_UNKNOWN);
    CHECK(strstr(saved->missing.items[0].data, "does not give the present rate"));
}

void test_deepspeed__schedules_that_are_not_known_are_missing(void)
{
    check_in_arena(unknown_schedules);
}
