/* Checkpoints of PyTorch Lightning, written so that Trainer.fit(ckpt_path=..) goes on with them. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/torch/lightning.h"

#include "convert/transfer/hold.h"

#include "convert/frameworks/torch/torch_state.h"

static const char version[] = "2.4.0"; /* whose keys these are; newer releases read them too */

/* Counters of a loop: {"total": {..}, "current": {..}}, each with these words. */
static struct cm_item *progress(struct cm_arena *arena, const char *words, int64_t total,
                                int64_t current)
{
    struct cm_item *out = cm_item_new(arena, CM_ITEM_MAP);

    for (int i = 0; i < 2; i++) {
        struct cm_item *counts = cm_item_new(arena, CM_ITEM_MAP);
        for (const char *word = words; *word;) {
            const struct cm_str key = {word, strcspn(word, " ")};
            cm_item_set(arena, counts, cm_item_text(arena, key),
                        cm_item_int(arena, i ? current : total));
            word += key.size + (word[key.size] == ' ');
        }
        cm_item_put(arena, out, i ? "current" : "total", counts);
    }
    return out;
}

static struct cm_item *empty(struct cm_arena *arena)
{
    return cm_item_new(arena, CM_ITEM_MAP);
}

static struct cm_item *batches(struct cm_arena *arena, int64_t steps)
{
    struct cm_item *out = progress(arena, "ready completed started processed", steps, 0);

    cm_item_put(arena, out, "is_last_batch", cm_item_bool(arena, false));
    return out;
}

/* A loop that only evaluates, and has not. */
static struct cm_item *idle_loop(struct cm_arena *arena)
{
    struct cm_item *out = empty(arena);

    cm_item_put(arena, out, "state_dict", empty(arena));
    cm_item_put(arena, out, "batch_progress", batches(arena, 0));
    return out;
}

/* The trainer counts updates here. The position in the data is not kept: an epoch begins. */
static struct cm_item *fit_loop(struct cm_arena *arena, int64_t step, int64_t epoch)
{
    struct cm_item *out = empty(arena), *epoch_state = empty(arena), *optimizer = empty(arena);
    struct cm_item *steps = empty(arena);

    cm_item_put(arena, epoch_state, "_batches_that_stepped", cm_item_int(arena, step));
    cm_item_put(arena, optimizer, "step", progress(arena, "ready completed", step, 0));
    cm_item_put(arena, optimizer, "zero_grad", progress(arena, "ready completed started", step, 0));
    cm_item_put(arena, steps, "optimizer", optimizer);
    cm_item_put(arena, out, "state_dict", empty(arena));
    cm_item_put(arena, out, "epoch_loop.state_dict", epoch_state);
    cm_item_put(arena, out, "epoch_loop.batch_progress", batches(arena, step));
    cm_item_put(arena, out, "epoch_loop.scheduler_progress",
                progress(arena, "ready completed", step, 0));
    cm_item_put(arena, out, "epoch_loop.automatic_optimization.state_dict", empty(arena));
    cm_item_put(arena, out, "epoch_loop.automatic_optimization.optim_progress", steps);
    cm_item_put(arena, out, "epoch_loop.manual_optimization.state_dict", empty(arena));
    cm_item_put(arena, out, "epoch_loop.manual_optimization.optim_step_progress",
                progress(arena, "ready completed", 0, 0));
    cm_item_put(arena, out, "epoch_loop.val_loop.state_dict", empty(arena));
    cm_item_put(arena, out, "epoch_loop.val_loop.batch_progress", batches(arena, 0));
    cm_item_put(arena, out, "epoch_progress",
                progress(arena, "ready completed started processed", epoch, epoch));
    return out;
}

static const struct cm_item *loops(struct cm_arena *arena, int64_t step, int64_t epoch)
{
    struct cm_item *out = empty(arena);

    cm_item_put(arena, out, "fit_loop", fit_loop(arena, step, epoch));
    cm_item_put(arena, out, "validate_loop", idle_loop(arena));
    cm_item_put(arena, out, "test_loop", idle_loop(arena));
    cm_item_put(arena, out, "predict_loop", idle_loop(arena));
    return out;
}

enum cm_status cm_lightning_write(const struct cm_saved *saved, const char *path,
                                  struct cm_error *err)
{
    struct cm_arena *arena = saved->arena;
    struct cm_item *all = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_item *optimizers = cm_item_new(arena, CM_ITEM_LIST);
    struct cm_item *schedules = cm_item_new(arena, CM_ITEM_LIST);
    const struct cm_item *schedule = cm_torch_schedule_item(arena, saved);
    const struct cm_item *settings = cm_saved_fact(saved, "hyper_parameters");
    const int64_t step = saved->step < 0 ? 0 : saved->step;
    const int64_t epoch = saved->epoch < 0 ? 0 : saved->epoch;

    if (saved->has_optimizer)
        cm_item_append(arena, optimizers, cm_torch_optimizer_item(arena, saved, false));
    if (schedule)
        cm_item_append(arena, schedules, schedule);
    cm_item_put(arena, all, "epoch", cm_item_int(arena, epoch));
    cm_item_put(arena, all, "global_step", cm_item_int(arena, step));
    cm_item_put(arena, all, "pytorch-lightning_version", cm_item_text(arena, cm_str(version)));
    cm_item_put(arena, all, "state_dict", cm_torch_weights_item(arena, saved));
    cm_item_put(arena, all, "loops", loops(arena, step, epoch));
    cm_item_put(arena, all, "callbacks", empty(arena));
    cm_item_put(arena, all, "optimizer_states", optimizers);
    cm_item_put(arena, all, "lr_schedulers", schedules);
    if (settings && settings->kind == CM_ITEM_MAP) {
        const struct cm_item *name = cm_saved_fact(saved, "hparams_name");
        cm_item_put(arena, all, "hparams_name",
                    name ? name : cm_item_text(arena, CM_STR("kwargs")));
        cm_item_put(arena, all, "hyper_parameters", settings);
    }
    cm_item_put(arena, all, "cameo", cm_hold_text(arena, saved));
    return cm_torch_save_item(saved, path, "checkpoint", all, err);
}
