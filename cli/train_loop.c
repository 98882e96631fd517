/* The loop of `cameo train`: batches, steps, validation, checkpoints, Ctrl-C. */
// SPDX-License-Identifier: Apache-2.0
#include "train.h"

#include <math.h>
#include <string.h>

static volatile sig_atomic_t interrupted;

/* The step under way is finished; a second Ctrl-C ends the program at once. */
static void note_interrupt(int number)
{
    interrupted = 1;
    signal(number, SIG_DFL);
}

/* ---- validation ---- */

static int measure_all(struct train_run *run, struct cameo_measure *out)
{
    const struct cameo_batches_position beginning = {0};
    struct cameo_error err;
    double sum = 0;

    *out = (struct cameo_measure)CAMEO_MEASURE_INIT;
    if (cameo_batches_seek(run->validation_batches, beginning, &err) != CAMEO_OK)
        return cli_fail(&err);
    for (;;) {
        const struct cameo_feed *feeds;
        struct cameo_measure measure = CAMEO_MEASURE_INIT;
        int64_t rows;

        if (cameo_batches_next(run->validation_batches, &feeds, &rows, &err) != CAMEO_OK)
            return cli_fail(&err);
        if (!rows)
            break;
        if (cameo_trainer_evaluate(run->trainer, feeds, cameo_trainer_input_count(run->trainer),
                                   &measure, &err) != CAMEO_OK)
            return cli_fail(&err);
        sum += measure.loss * (double)rows;
        out->samples += rows;
        out->judged += measure.judged;
        out->correct += measure.correct;
        out->compared += measure.compared;
        out->absolute += measure.absolute;
        out->squared += measure.squared;
        out->targets += measure.targets;
        out->target_squares += measure.target_squares;
    }
    out->loss = out->samples ? sum / (double)out->samples : (double)NAN;
    return CLI_YES;
}

static int save_best(struct train_run *run)
{
    struct cameo_error err;

    if (!run->settings->best)
        return CLI_YES;
    if (cameo_trainer_save(run->trainer, run->settings->best, NULL, NULL, &err) != CAMEO_OK)
        return cli_fail(&err);
    return CLI_YES;
}

static int validate(struct train_run *run)
{
    int code;

    if (!run->validation_batches) {
        train_show_epoch(run);
        return CLI_YES;
    }
    code = measure_all(run, &run->measured);
    if (code != CLI_YES)
        return code;
    code = train_log_validation(run);
    train_show_epoch(run);
    if (run->measured.loss < run->best_loss) {
        run->best_loss = run->measured.loss;
        run->worse = 0;
        return code == CLI_YES ? save_best(run) : code;
    }
    run->worse++;
    run->stopped_early = run->settings->patience && run->worse >= run->settings->patience;
    return code;
}

/* ---- steps ---- */

/* The epoch that the next batch belongs to, from 1. */
static uint64_t epoch_ahead(const struct train_run *run)
{
    const struct cameo_batches_position at = cameo_batches_tell(run->batches);

    return at.epoch + 1 + (at.sample >= cameo_dataset_samples(run->data));
}

/* Means over the epoch weigh each batch by its rows. */
static void add_to_epoch(struct train_run *run, int64_t rows)
{
    const size_t accuracy = train_accuracy(run);

    run->so_far.rows += (uint64_t)rows;
    run->so_far.loss += run->loss * (double)rows;
    if (accuracy < cameo_trainer_scalar_count(run->trainer))
        run->so_far.accuracy += run->scalars[accuracy] * (double)rows;
}

/* The second step of a run is looked at, as the first makes things ready; of one step, that. */
static bool is_profiled(const struct train_run *run)
{
    const uint64_t first = run->began_at;

    return run->settings->profile &&
           cameo_trainer_steps(run->trainer) == (run->total > first + 1 ? first + 1 : first);
}

static int profile(const struct train_run *run, const struct cli_steps *steps)
{
    train_clear_line();
    cli_steps_summary(stderr, steps, cameo_machine_peak(run->settings->effective_threads));
    return cli_steps_profile(run->settings->profile, steps);
}

static int step(struct train_run *run, const struct cameo_feed *feeds, int64_t rows)
{
    const size_t loss = cameo_trainer_loss(run->trainer);
    const bool profiled = is_profiled(run);
    struct cli_steps steps = {0};
    struct cameo_error err;
    int code = CLI_YES;

    if (profiled)
        cameo_trainer_set_step(run->trainer, cli_steps_add, &steps);
    const enum cameo_status status = cameo_trainer_step(
        run->trainer, feeds, cameo_trainer_input_count(run->trainer), run->scalars, &err);
    if (profiled) {
        cameo_trainer_set_step(run->trainer, NULL, NULL);
        code = status == CAMEO_OK ? profile(run, &steps) : CLI_YES;
        cli_steps_free(&steps);
    }
    if (status != CAMEO_OK)
        return cli_fail(&err);
    if (loss < cameo_trainer_scalar_count(run->trainer))
        run->loss = run->scalars[loss];
    if (isnan(run->first_loss))
        run->first_loss = run->loss;
    add_to_epoch(run, rows);
    const int logged = train_log_step(run);
    train_show(run, false);
    return code == CLI_YES ? logged : code;
}

static bool checkpoint_is_due(const struct train_run *run)
{
    const size_t every = run->settings->checkpoint_every;

    return run->settings->checkpoint && every && cameo_trainer_steps(run->trainer) % every == 0;
}

/* The data says so, not the number of steps: a run may go on with batches of another size. */
static bool epoch_is_over(const struct train_run *run)
{
    const int64_t left = cameo_dataset_samples(run->data) - cameo_batches_tell(run->batches).sample;

    if (run->settings->steps)
        return epoch_ahead(run) != run->epoch;
    return left <= 0 || (strcmp(run->settings->last_batch, "drop") == 0 &&
                         left < cameo_batches_size(run->batches));
}

/* One batch, and what is due after it; nothing when an epoch ends between them. */
static int advance(struct train_run *run)
{
    const struct cameo_feed *feeds;
    struct cameo_error err;
    const uint64_t epoch = epoch_ahead(run);
    int64_t rows;
    int code;

    if (cameo_batches_next(run->batches, &feeds, &rows, &err) != CAMEO_OK)
        return cli_fail(&err);
    if (!rows)
        return CLI_YES;
    run->epoch = epoch;
    code = step(run, feeds, rows);
    if (code == CLI_YES && epoch_is_over(run)) {
        code = validate(run);
        run->so_far = (struct train_epoch){0};
    }
    if (code == CLI_YES && checkpoint_is_due(run))
        code = train_checkpoint(run);
    return code;
}

static int stop(struct train_run *run)
{
    const struct train_settings *s = run->settings;
    const unsigned long long steps = (unsigned long long)cameo_trainer_steps(run->trainer);

    train_clear_line();
    if (!s->checkpoint) {
        struct cameo_error err;

        if (cameo_trainer_save(run->trainer, s->out, NULL, NULL, &err) != CAMEO_OK)
            return cli_fail(&err);
        cli_complain("stopped after step %llu; what was trained so far is in %s ('--checkpoint "
                     "DIR' makes a run that can go on exactly there)",
                     steps, s->out);
        return CLI_CANCELLED;
    }
    const int code = train_checkpoint(run);
    if (code != CLI_YES)
        return code;
    cli_complain("stopped after step %llu; the same command with --resume goes on from %s", steps,
                 s->checkpoint);
    return CLI_CANCELLED;
}

int train_loop(struct train_run *run)
{
    int code = CLI_YES;

    signal(SIGINT, note_interrupt);
    signal(SIGTERM, note_interrupt);
    run->started = train_seconds();
    while (code == CLI_YES && !interrupted && !run->stopped_early && !cli_reader_gone &&
           cameo_trainer_steps(run->trainer) < run->total)
        code = advance(run);
    if (code == CLI_YES && interrupted)
        return stop(run);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    if (code == CLI_YES && run->settings->checkpoint)
        code = train_checkpoint(run);
    train_show(run, true);
    train_clear_line();
    return code;
}
