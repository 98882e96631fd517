/* Folders of torch.distributed.checkpoint: what is written is read again. */
// SPDX-License-Identifier: Apache-2.0
#include "base/folder.h"
#include "check.h"
#include "convert/find_saved.h"
#include "convert/frameworks/torch/dcp.h"

static struct cm_saved *example(struct cm_arena *arena)
{
    static const float values[] = {0, 1, 2, 3, 4, 5};
    struct cm_saved *saved = cm_saved_new(arena, CM_STR("x"));
    struct cm_saved_group *group = cm_saved_add_group(saved);
    struct cm_saved_tensor *tensor;
    struct cm_error err;

    CHECK_OK(cm_saved_tensor_new(arena, CM_FLOAT, &CM_SHAPE(2, 3),
                                 (struct cm_str){(const char *)values, sizeof values}, CM_STR("x"),
                                 &tensor, &err),
             &err);
    cm_saved_add(saved, CM_SAVED_WEIGHT, CM_STR("fc.weight"), tensor);
    cm_saved_add_slot(saved, CM_STR("fc.weight"), CM_STR("momentum_buffer"), "momentum_buffer",
                      tensor);
    saved->has_optimizer = true;
    saved->rule = CM_RULE_SGD;
    saved->optimizer = CM_STR("SGD");
    group->settings.lr = 0.25;
    group->settings.momentum = 0.5;
    *CM_PUSH(arena, &group->names) = CM_STR("fc.weight");
    static const double from = 0.5, to = 0.125;
    static struct cm_phase linear = {
        .shape = CM_PHASE_LINEAR, .length = 14, .from = &from, .to = &to};
    saved->schedule = (struct cm_rate_schedule){.items = &linear, .count = 1};
    saved->schedule_known = CM_SCHEDULE_KNOWN;
    saved->schedule_name = CM_STR("WarmupDecayLR");
    saved->clip = (struct cm_plan_clip){CM_CLIP_VALUE, 2};
    saved->accumulate = 4;
    saved->step = 7;
    saved->epoch = 2;
    return saved;
}

static void round_trip(struct cm_arena *arena)
{
    char path[FOLDER_PATH_SIZE];
    struct cm_saved *saved;
    struct folder folder;
    struct cm_error err;
    float out[6];

    folder_make(&folder);
    folder_path(&folder, "checkpoint", path);
    CHECK_OK(cm_dcp_write(example(arena), path, &err), &err);
    CHECK_INT(folder_count(&folder), 1);
    CHECK_FAILS(cm_dcp_write(example(arena), path, &err), CM_BAD_ARGUMENT, &err, path);
    CHECK_OK(cm_saved_open(arena, path, 0, &saved, &err), &err);
    CHECK_INT(saved->entries.count, 2);
    CHECK_INT(saved->step, 7);
    CHECK_INT(saved->epoch, 2);
    CHECK_INT(saved->rule, CM_RULE_SGD);
    CHECK(saved->groups.items[0].settings.lr == 0.25 &&
          saved->groups.items[0].settings.momentum == 0.5);
    /* what PyTorch has no place for */
    CHECK_INT(saved->schedule_known, CM_SCHEDULE_KNOWN);
    CHECK_STR(saved->schedule_name, "WarmupDecayLR");
    CHECK_INT(saved->schedule.count, 1);
    CHECK(saved->schedule.items[0].length == 14 && saved->schedule.items[0].to[0] == 0.125);
    CHECK(saved->clip.kind == CM_CLIP_VALUE && saved->clip.limit == 2);
    CHECK_INT(saved->accumulate, 4);
    CHECK_INT(saved->missing.count, 0);
    struct cm_saved_reader reader = {0};
    const struct cm_saved_entry *slot =
        find_saved(saved, CM_SAVED_SLOT, CM_STR("fc.weight"), "momentum_buffer");
    CHECK_OK(cm_saved_tensor_read(&reader, slot->tensor, 0, 6, out, &err), &err);
    CHECK(out[0] == 0 && out[5] == 5);
    /* a file that is shorter than .metadata says */
    folder_write(&folder, "checkpoint/__0_0.distcp", "short");
    CHECK_FAILS(cm_saved_open(arena, path, 0, &saved, &err), CM_BAD_MODEL, &err,
                "__0_0.distcp has 5 bytes, expected an item at 0");
    folder_write(&folder, "checkpoint/.metadata", "N.");
    CHECK_FAILS(cm_saved_open(arena, path, 0, &saved, &err), CM_BAD_MODEL, &err,
                "is not that of torch.distributed.checkpoint");
    folder_remove(&folder);
}

void test_dcp__reads_what_it_wrote(void)
{
    check_in_arena(round_trip);
}
