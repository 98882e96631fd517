/* `cameo train --tensorboard`: the curves of a run for TensorBoard. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "train.h"
#include "training_flags.h"

#include <stdlib.h>
#include <string.h>

static void add(struct train_run *run, const char *group, const char *name, uint64_t step,
                double value)
{
    struct cameo_error err;
    char tag[512];

    snprintf(tag, sizeof tag, "%s/%s", group, name);
    if (cameo_events_add_scalar(run->events, tag, (int64_t)step, 0, value, &err) != CAMEO_OK)
        train_note_unwritten(run, TRAIN_EVENTS, err.message);
}

static int add_settings(struct train_run *run)
{
    const struct train_settings *s = run->settings;
    struct cameo_error err;
    char *text = NULL;
    size_t size = 0;
    FILE *table = cli_open_text(&text, &size);

    fprintf(table, "| setting | value |\n| --- | --- |\n| model | %s |\n", s->model);
    for (size_t i = 0; i < s->data.count; i++)
        fprintf(table, "| --data | %s |\n", s->data.items[i]);
    fprintf(table, "| batch size | %lld |\n| --seed | %zu |\n",
            (long long)cameo_batches_size(run->batches), s->seed);
    for (size_t i = 0; i < cli_training_flag_count(); i++) {
        const char *name, *given = cli_training_flag(i, &name);

        if (given)
            fprintf(table, "| %s | %s |\n", name, given);
    }
    int code = CLI_YES;

    cli_close_text(table);
    /* A path may hold bytes that are no text: then the curves stand alone. */
    if (cameo_events_add_text(run->events, "settings", (int64_t)run->began_at, 0, text, &err) !=
            CAMEO_OK &&
        err.status != CAMEO_BAD_ARGUMENT)
        code = cli_fail(&err);
    free(text);
    return code;
}

int train_events_open(struct train_run *run)
{
    struct cameo_error err;

    if (!run->settings->tensorboard)
        return CLI_YES;
    if (cameo_events_new(run->settings->tensorboard, &run->events, &err) != CAMEO_OK ||
        (run->began_at &&
         cameo_events_resume(run->events, (int64_t)run->began_at + 1, 0, &err) != CAMEO_OK))
        return cli_fail(&err);
    return add_settings(run);
}

void train_events_close(struct train_run *run)
{
    struct cameo_error err;

    if (run->events && cameo_events_finish(run->events, &err) != CAMEO_OK)
        train_note_incomplete(run, TRAIN_EVENTS, err.message);
    cameo_events_free(run->events);
}

void train_events_step(struct train_run *run, const struct cameo_progress *at)
{
    const size_t every = run->settings->tensorboard_every;
    const size_t count = cameo_trainer_scalar_count(run->trainer);
    const size_t loss = cameo_trainer_loss(run->trainer);

    if (!run->events || (every > 1 && at->step % every != 0 && at->step != at->steps))
        return;
    for (size_t i = 0; i < count; i++)
        add(run, "train", i == loss ? "loss" : cameo_trainer_scalar_name(run->trainer, i), at->step,
            at->scalars[i]);
}

void train_events_epoch(struct train_run *run, const struct cameo_progress *at)
{
    const struct cameo_measure *m = at->measure;
    const size_t loss = cameo_trainer_loss(run->trainer);

    if (!run->events)
        return;
    if (loss < cameo_trainer_scalar_count(run->trainer) && at->moment == CAMEO_AFTER_EPOCH)
        add(run, "epoch", "loss", at->step, at->means[loss]);
    if (m)
        add(run, "val", "loss", at->step, m->loss);
    if (m && m->judged)
        add(run, "val", "accuracy", at->step, m->accuracy);
    if (m && m->compared) {
        add(run, "val", "mae", at->step, m->mae);
        add(run, "val", "r2", at->step, m->r2);
    }
}
