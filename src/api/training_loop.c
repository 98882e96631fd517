/* A whole run: batches, steps, validation, checkpoints, and a caller who is told. */
// SPDX-License-Identifier: Apache-2.0
#include "api/training.h"
#include "base/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

struct loop {
    struct cameo_trainer *trainer;
    struct cameo_batches *batches;
    struct cameo_loop_options options;
    struct cameo_loop_result result;
    double *scalars;
    uint64_t total, epoch, worse;
    struct cameo_batches_position at; /* after the batch of the last step that was done */
    bool kept;                        /* the checkpoint says how things are */
    struct cameo_measure measure;
    struct cameo_error err;
};

static bool says_stop(struct loop *l, enum cameo_moment moment, bool measured, bool best)
{
    const struct cameo_progress progress = {
        .moment = moment,
        .step = cameo_trainer_steps(l->trainer),
        .steps = l->total,
        .epoch = l->epoch,
        .scalars = l->scalars,
        .loss = l->result.loss,
        .measure = measured ? &l->measure : NULL,
        .best = best,
        .checkpoint = moment == CAMEO_AFTER_CHECKPOINT ? l->options.checkpoint : NULL};

    if (l->options.progress && !l->options.progress(l->options.progress_arg, &progress))
        l->result.stopped = true;
    return l->result.stopped;
}

/* ---- checkpoints ---- */

static struct cameo_entry entry(const char *key, const char *value)
{
    return (struct cameo_entry){{key, strlen(key)}, {value, strlen(value)}};
}

static enum cameo_status save_checkpoint(struct loop *l)
{
    char epoch[32], sample[32], best[40], worse[32];

    snprintf(epoch, sizeof epoch, "%" PRIu64, l->at.epoch);
    snprintf(sample, sizeof sample, "%" PRId64, l->at.sample);
    snprintf(best, sizeof best, "%.17g", l->result.best_loss);
    snprintf(worse, sizeof worse, "%" PRIu64, l->worse);
    const struct cameo_entry notes[] = {entry("epoch", epoch), entry("sample", sample),
                                        entry("best loss", best), entry("worse", worse)};
    return cameo_checkpoint_save(l->trainer, l->options.checkpoint, notes,
                                 sizeof notes / sizeof *notes, &l->err);
}

/* Writes it and says so, if it is not there already. */
static enum cameo_status checkpoint(struct loop *l)
{
    if (!l->options.checkpoint || l->kept)
        return CAMEO_OK;
    const enum cameo_status status = save_checkpoint(l);
    l->kept = status == CAMEO_OK;
    if (l->kept)
        says_stop(l, CAMEO_AFTER_CHECKPOINT, false, false);
    return status;
}

struct resumption {
    struct loop *loop;
    struct cameo_batches_position at;
    int known;
};

static void take_note(void *arg, const char *key, const char *value)
{
    struct resumption *r = arg;

    r->known++;
    if (strcmp(key, "epoch") == 0)
        r->at.epoch = strtoull(value, NULL, 10);
    else if (strcmp(key, "sample") == 0)
        r->at.sample = strtoll(value, NULL, 10);
    else if (strcmp(key, "best loss") == 0)
        r->loop->result.best_loss = strtod(value, NULL);
    else if (strcmp(key, "worse") == 0)
        r->loop->worse = strtoull(value, NULL, 10);
    else
        r->known--;
}

static enum cameo_status resume(struct loop *l)
{
    struct resumption r = {.loop = l};
    FILE *there = fopen(l->options.checkpoint, "rb");

    if (!there && errno == ENOENT)
        return CAMEO_OK; /* a first run */
    if (!there) {
        snprintf(l->err.message, sizeof l->err.message, "%.300s: %s", l->options.checkpoint,
                 strerror(errno));
        return l->err.status = CAMEO_IO;
    }
    fclose(there);
    enum cameo_status status =
        cameo_checkpoint_notes(l->options.checkpoint, take_note, &r, &l->err);
    if (status == CAMEO_OK && r.known < 4) {
        snprintf(l->err.message, sizeof l->err.message,
                 "%.300s: it does not say where in the data the run was", l->options.checkpoint);
        return l->err.status = CAMEO_BAD_ARGUMENT;
    }
    if (status == CAMEO_OK)
        status = cameo_checkpoint_resume(l->trainer, l->options.checkpoint, &l->err);
    if (status == CAMEO_OK)
        status = cameo_batches_seek(l->batches, r.at, &l->err);
    l->result.out_of_patience = l->options.patience && l->worse >= l->options.patience;
    l->kept = status == CAMEO_OK;
    return status;
}

/* ---- validation ---- */

static void add_measure(struct cameo_measure *sum, const struct cameo_measure *one, int64_t rows)
{
    sum->samples += rows;
    sum->loss += one->loss * (double)rows;
    sum->judged += one->judged;
    sum->correct += one->correct;
    sum->compared += one->compared;
    sum->absolute += one->absolute;
    sum->squared += one->squared;
    sum->targets += one->targets;
    sum->target_squares += one->target_squares;
}

static enum cameo_status measure_all(struct loop *l)
{
    struct cameo_batches *data = l->options.validation;
    const struct cameo_batches_position beginning = {0};
    enum cameo_status status = cameo_batches_seek(data, beginning, &l->err);

    l->measure = (struct cameo_measure)CAMEO_MEASURE_INIT;
    while (status == CAMEO_OK) {
        const struct cameo_feed *feeds;
        struct cameo_measure one = CAMEO_MEASURE_INIT;
        int64_t rows;

        status = cameo_batches_next(data, &feeds, &rows, &l->err);
        if (status == CAMEO_OK && !rows)
            break;
        if (status == CAMEO_OK)
            status = cameo_trainer_evaluate(l->trainer, feeds, data->n_inputs, &one, &l->err);
        if (status == CAMEO_OK)
            add_measure(&l->measure, &one, rows);
    }
    l->measure.loss =
        l->measure.samples ? l->measure.loss / (double)l->measure.samples : (double)NAN;
    return status;
}

static enum cameo_status end_epoch(struct loop *l)
{
    enum cameo_status status = CAMEO_OK;
    bool best = false;

    if (l->options.validation) {
        status = measure_all(l);
        if (status)
            return status;
        best = l->measure.loss < l->result.best_loss;
        l->worse = best ? 0 : l->worse + 1;
        if (best)
            l->result.best_loss = l->measure.loss;
        l->result.out_of_patience = l->options.patience && l->worse >= l->options.patience;
        if (best && l->options.best)
            status = cameo_trainer_save(l->trainer, l->options.best, NULL, NULL, &l->err);
    }
    if (status == CAMEO_OK)
        says_stop(l, CAMEO_AFTER_EPOCH, l->options.validation != NULL, best);
    return status;
}

/* ---- steps ---- */

/* The epoch that the next batch belongs to, from 1. */
static uint64_t epoch_ahead(const struct loop *l)
{
    const struct cameo_batches_position at = cameo_batches_tell(l->batches);

    return at.epoch + 1 + (at.sample >= l->batches->samples);
}

/* The data says so, not the number of steps: a run need not begin with the first. */
static bool epoch_is_over(const struct loop *l)
{
    const int64_t left = l->batches->samples - cameo_batches_tell(l->batches).sample;

    if (l->batches->endless)
        return epoch_ahead(l) != l->epoch;
    return left <= 0 || (l->batches->drops && left < cameo_batches_size(l->batches));
}

/* The batch was not used: it comes again, here or in a run that resumes this one. */
static enum cameo_status cancelled(struct loop *l)
{
    const struct cameo_error reason = l->err;
    enum cameo_status status = cameo_batches_seek(l->batches, l->at, &l->err);

    if (status == CAMEO_OK)
        status = checkpoint(l);
    if (status)
        return status;
    l->err = reason;
    return CAMEO_CANCELLED;
}

/* One batch and what is due after it; nothing where an epoch ends between two. */
static enum cameo_status advance(struct loop *l)
{
    const size_t loss = cameo_trainer_loss(l->trainer);
    const uint64_t epoch = epoch_ahead(l), every = l->options.checkpoint_every;
    const struct cameo_feed *feeds;
    int64_t rows;
    enum cameo_status status = cameo_batches_next(l->batches, &feeds, &rows, &l->err);

    if (status || !rows)
        return status;
    l->epoch = epoch;
    status = cameo_trainer_step(l->trainer, feeds, l->batches->n_inputs, l->scalars, &l->err);
    if (status)
        return status == CAMEO_CANCELLED ? cancelled(l) : status;
    l->at = cameo_batches_tell(l->batches);
    l->kept = false;
    if (loss < cameo_trainer_scalar_count(l->trainer))
        l->result.loss = l->scalars[loss];
    says_stop(l, CAMEO_AFTER_STEP, false, false);
    if (epoch_is_over(l))
        status = end_epoch(l);
    if (status == CAMEO_OK && every && cameo_trainer_steps(l->trainer) % every == 0)
        status = checkpoint(l);
    return status;
}

static enum cameo_status run(struct loop *l)
{
    enum cameo_status status = l->options.checkpoint && l->options.resume ? resume(l) : CAMEO_OK;

    l->at = cameo_batches_tell(l->batches);
    l->epoch = l->at.epoch + 1;
    while (status == CAMEO_OK && !l->result.stopped && !l->result.out_of_patience &&
           cameo_trainer_steps(l->trainer) < l->total)
        status = advance(l);
    return status == CAMEO_OK ? checkpoint(l) : status;
}

static uint64_t steps_of(uint64_t epochs, uint64_t per_epoch)
{
    return per_epoch && epochs > UINT64_MAX / per_epoch ? UINT64_MAX : epochs * per_epoch;
}

static enum cm_status begin(struct loop *l, const struct cameo_loop_options *options,
                            struct cm_error *err)
{
    const struct cameo_loop_options *o = &l->options;

    CM_TRY(cm_api_options(&l->options, sizeof l->options, options, err));
    if (o->epochs && o->steps)
        return cm_fail(err, CM_BAD_ARGUMENT, "epochs and steps both say when to stop");
    if ((o->checkpoint_every || o->resume) && !o->checkpoint)
        return cm_fail(err, CM_BAD_ARGUMENT, "%s needs a checkpoint file",
                       o->resume ? "resume" : "checkpoint_every");
    if ((o->patience || o->best) && !o->validation)
        return cm_fail(err, CM_BAD_ARGUMENT, "%s needs validation data",
                       o->best ? "best" : "patience");
    if (o->validation && o->validation->endless)
        return cm_fail(err, CM_BAD_ARGUMENT, "the validation batches are endless");
    if (!l->batches->endless && cameo_batches_per_epoch(l->batches) == 0)
        return cm_fail(err, CM_BAD_ARGUMENT, "%lld samples are too few for one batch of %lld",
                       (long long)l->batches->samples, (long long)cameo_batches_size(l->batches));
    l->total = o->steps ? o->steps
                        : steps_of(o->epochs ? o->epochs : 1,
                                   (uint64_t)cameo_batches_per_epoch(l->batches));
    l->scalars = cm_calloc(cameo_trainer_scalar_count(l->trainer) + 1, sizeof *l->scalars);
    return l->scalars ? CM_OK : cm_fail(err, CM_NO_MEMORY, "no memory for the scalars");
}

enum cameo_status cameo_trainer_run(struct cameo_trainer *trainer, struct cameo_batches *batches,
                                    const struct cameo_loop_options *options,
                                    struct cameo_loop_result *result, struct cameo_error *err)
{
    CM_API_NEED(trainer, err);
    CM_API_NEED(batches, err);
    struct loop l = {.trainer = trainer,
                     .batches = batches,
                     .options = CAMEO_LOOP_OPTIONS_INIT,
                     .result = {.loss = (double)NAN, .best_loss = (double)INFINITY}};
    struct cm_error reason = {0};
    enum cm_status wrong = cm_api_check_out(result, &reason);

    if (wrong == CM_OK)
        wrong = begin(&l, options, &reason);
    if (wrong)
        return cm_api_done(wrong, &reason, err);
    const enum cameo_status status = run(&l);
    if (status && err)
        *err = l.err;
    if (result)
        cm_api_give(result, &l.result, sizeof l.result);
    cm_free(l.scalars);
    return status;
}
