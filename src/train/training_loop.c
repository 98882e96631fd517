/* A whole run, step by step. */
// SPDX-License-Identifier: Apache-2.0
#include "train/training_loop.h"

#include "base/memory.h"
#include "train/checkpoint.h"
#include "train/checkpoint_folder.h"

#include <inttypes.h>
#include <math.h>

enum { USUAL_KEEP = 3 };

struct cm_loop {
    struct cm_trainer *trainer;
    struct cm_feeder *feeder;
    const struct cm_loop_options *options;
    struct cm_loop_result *result;
    struct cm_error *err;
    struct cm_trainer_scalar *scalars;
    double *values, *sums, *means; /* by scalar: of the last step; of the epoch so far */
    uint64_t rows;                 /* of the epoch so far */
    uint64_t total, epoch, worse;  /* worse: validations since the best */
    struct cm_feed_position at;    /* after the batch of the last step that was done */
    struct cm_trainer_measure measure;
    char *path;   /* of the checkpoint read or written last */
    bool is_kept; /* that is how things are now */
};

/* ---- telling ---- */

static void tell(struct cm_loop *l, enum cm_loop_moment moment, bool measured, bool best)
{
    const struct cm_loop_options *o = l->options;
    const bool named = moment == CM_AFTER_CHECKPOINT || (moment == CM_AT_START && l->is_kept);
    const struct cm_loop_progress progress = {.moment = moment,
                                              .step = cm_trainer_steps(l->trainer),
                                              .steps = l->total,
                                              .epoch = l->epoch,
                                              .scalars = l->values,
                                              .means = l->means,
                                              .loss = l->result->loss,
                                              .measure = measured ? &l->measure : NULL,
                                              .best = best,
                                              .best_loss = l->result->best_loss,
                                              .checkpoint = named ? l->path : NULL};

    if (o->progress && !o->progress(o->progress_arg, &progress))
        l->result->stopped = true;
    if (o->stop && atomic_load_explicit(o->stop, memory_order_relaxed))
        l->result->stopped = true;
}

/* ---- checkpoints ---- */

static void add_conditions(const struct cm_loop *l, struct cm_arena *arena, struct cm_notes *to)
{
    const struct cm_notes *more = l->options->conditions;

    cm_conditions_add_trainer(arena, to, l->trainer);
    for (size_t i = 0; more && i < more->count; i++)
        *CM_PUSH(arena, to) = (struct cm_note){cm_arena_str(arena, more->items[i].key),
                                               cm_arena_str(arena, more->items[i].value)};
    cm_conditions_add_data(arena, to, l->trainer, l->feeder);
}

/* Where a run stands, beside its trainer. */
struct loop_number {
    const char *key;
    uint64_t *count;
    double *real; /* where count is NULL */
};

enum { N_NUMBERS = 7 };

static void list_numbers(struct cm_loop *l, struct loop_number numbers[N_NUMBERS], uint64_t *sample)
{
    const struct loop_number all[N_NUMBERS] = {{"epoch", &l->at.epoch, NULL},
                                               {"sample", sample, NULL},
                                               {"best loss", NULL, &l->result->best_loss},
                                               {"worse", &l->worse, NULL},
                                               {"first loss", NULL, &l->result->first_loss},
                                               {"loss", NULL, &l->result->loss},
                                               {"rows of the epoch", &l->rows, NULL}};

    memcpy(numbers, all, sizeof all);
}

static struct cm_str real_text(struct cm_arena *arena, double value)
{
    char text[CM_DOUBLE_TEXT_SIZE];

    cm_double_to_text(value, text);
    return cm_arena_str(arena, cm_str(text));
}

static bool take_number(struct cm_str text, const struct loop_number *number)
{
    int64_t count;

    if (!number->count)
        return cm_str_to_double(text, number->real);
    if (!cm_str_to_int64(text, &count) || count < 0)
        return false;
    *number->count = (uint64_t)count;
    return true;
}

static struct cm_str sum_key(const struct cm_loop *l, struct cm_arena *arena, size_t scalar)
{
    return cm_arena_printf(arena, "sum of '%.*s'",
                           CM_STR_FMT(cm_trainer_scalar_name(l->trainer, scalar)));
}

static void add_position(struct cm_loop *l, struct cm_arena *arena, struct cm_notes *to)
{
    uint64_t sample = (uint64_t)l->at.sample;
    struct loop_number numbers[N_NUMBERS];

    list_numbers(l, numbers, &sample);
    for (size_t i = 0; i < N_NUMBERS; i++)
        cm_notes_add(arena, to, numbers[i].key,
                     numbers[i].count ? cm_arena_printf(arena, "%" PRIu64, *numbers[i].count)
                                      : real_text(arena, *numbers[i].real));
    for (size_t i = 0; i < cm_trainer_scalar_count(l->trainer); i++)
        cm_notes_add(arena, to, sum_key(l, arena, i).data, real_text(arena, l->sums[i]));
}

static enum cm_status read_position(struct cm_loop *l, struct cm_arena *arena,
                                    const struct cm_notes *from)
{
    struct loop_number numbers[N_NUMBERS];
    uint64_t sample = 0;

    list_numbers(l, numbers, &sample);
    for (size_t i = 0; i < N_NUMBERS; i++)
        if (!take_number(cm_notes_find(from, cm_str(numbers[i].key)), &numbers[i]))
            return cm_fail(l->err, CM_BAD_ARGUMENT,
                           "the checkpoint does not say where in the data the run was");
    for (size_t i = 0; i < cm_trainer_scalar_count(l->trainer); i++)
        if (!cm_str_to_double(cm_notes_find(from, sum_key(l, arena, i)), &l->sums[i]))
            l->sums[i] = (double)NAN; /* a scalar that the model did not have */
    l->at.sample = (int64_t)sample;
    return CM_OK;
}

typedef enum cm_status loop_scratch_fn(struct cm_loop *l, struct cm_arena *scratch);

struct scratch_call {
    struct cm_loop *loop;
    loop_scratch_fn *fn;
};

static enum cm_status call_with_scratch(struct cm_guard *guard, void *arg)
{
    const struct scratch_call *call = arg;
    struct cm_arena scratch;

    cm_arena_init(&scratch, guard);
    const enum cm_status status = call->fn(call->loop, &scratch);
    cm_arena_release(&scratch);
    return status;
}

static enum cm_status with_scratch(struct cm_loop *l, loop_scratch_fn *fn)
{
    struct scratch_call call = {l, fn};

    return cm_guarded(0, l->err, call_with_scratch, &call);
}

static enum cm_status write_checkpoint(struct cm_loop *l, struct cm_arena *scratch)
{
    struct cm_notes conditions = {0}, position = {0};

    add_conditions(l, scratch, &conditions);
    add_position(l, scratch, &position);
    return cm_checkpoint_write(l->trainer, scratch, l->path, &conditions, &position, l->err);
}

/* Writes one, unless it is there already. Only then are old ones removed. */
static enum cm_status checkpoint(struct cm_loop *l)
{
    const struct cm_loop_options *o = l->options;

    if (!o->checkpoint || l->is_kept)
        return CM_OK;
    cm_checkpoint_path(o->checkpoint, cm_trainer_steps(l->trainer), l->path);
    CM_TRY(with_scratch(l, write_checkpoint));
    l->is_kept = true;
    cm_checkpoint_folder_prune(o->checkpoint, o->keep ? o->keep : USUAL_KEEP);
    tell(l, CM_AFTER_CHECKPOINT, false, false);
    return CM_OK;
}

static enum cm_status read_checkpoint(struct cm_loop *l, struct cm_arena *scratch)
{
    struct cm_notes now = {0};
    struct cm_checkpoint file;

    CM_TRY(cm_checkpoint_open(scratch, l->path, &file, l->err));
    add_conditions(l, scratch, &now);
    CM_TRY(cm_error_context(
        l->err, cm_conditions_compare(&file.conditions, &now, &l->options->resuming, l->err), "%s",
        l->path));
    CM_TRY(cm_error_context(l->err, read_position(l, scratch, &file.notes), "%s", l->path));
    CM_TRY(cm_checkpoint_restore(&file, l->trainer, scratch, l->err));
    return cm_feeder_seek(l->feeder, l->at, l->err);
}

static enum cm_status resume(struct cm_loop *l)
{
    const struct cm_loop_options *o = l->options;
    uint64_t newest = 0;
    bool found;

    CM_TRY(cm_checkpoint_folder_make(o->checkpoint, l->err));
    CM_TRY(cm_checkpoint_newest(o->checkpoint, &found, &newest, l->err));
    if (found && !o->resume)
        return cm_fail(l->err, CM_BAD_ARGUMENT,
                       "folder '%.300s' holds checkpoints of another run: resume from them, or "
                       "take another folder",
                       o->checkpoint);
    cm_checkpoint_folder_prune(o->checkpoint, UINT64_MAX);
    if (!found)
        return CM_OK; /* a first run */
    cm_checkpoint_path(o->checkpoint, newest, l->path);
    CM_TRY(with_scratch(l, read_checkpoint));
    l->is_kept = true;
    return CM_OK;
}

/* ---- validation ---- */

static void add_measure(struct cm_trainer_measure *sum, const struct cm_trainer_measure *one,
                        int64_t rows)
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

static enum cm_status measure_all(struct cm_loop *l)
{
    struct cm_feeder *data = l->options->validation;
    const struct cm_tensor *const *in = NULL;
    int64_t rows;

    l->measure = (struct cm_trainer_measure){0};
    CM_TRY(cm_feeder_seek(data, (struct cm_feed_position){0}, l->err));
    for (;;) {
        struct cm_trainer_measure one;

        CM_TRY(cm_feeder_next(data, &in, &rows, l->err));
        if (!rows)
            break;
        CM_TRY(cm_trainer_evaluate(l->trainer, in, &one, l->err));
        add_measure(&l->measure, &one, rows);
    }
    l->measure.loss =
        l->measure.samples ? l->measure.loss / (double)l->measure.samples : (double)NAN;
    return CM_OK;
}

static bool out_of_patience(const struct cm_loop *l)
{
    return l->options->patience && l->worse >= l->options->patience;
}

static enum cm_status end_epoch(struct cm_loop *l)
{
    const struct cm_loop_options *o = l->options;
    bool best = false;

    if (o->validation) {
        CM_TRY(measure_all(l));
        best = l->measure.loss < l->result->best_loss;
        l->worse = best ? 0 : l->worse + 1;
        if (best)
            l->result->best_loss = l->measure.loss;
        l->result->out_of_patience = out_of_patience(l);
        if (best && o->best)
            CM_TRY(o->save(o->save_arg, o->best, l->err));
    }
    tell(l, CM_AFTER_EPOCH, o->validation != NULL, best);
    memset(l->sums, 0, cm_trainer_scalar_count(l->trainer) * sizeof *l->sums);
    l->rows = 0;
    return CM_OK;
}

/* ---- steps ---- */

static void take_scalars(struct cm_loop *l, int64_t rows)
{
    const int loss = cm_trainer_loss(l->trainer);

    l->rows += (uint64_t)rows;
    for (size_t i = 0; i < cm_trainer_scalar_count(l->trainer); i++) {
        l->values[i] = l->scalars[i].value;
        l->sums[i] += l->values[i] * (double)rows;
        l->means[i] = l->sums[i] / (double)l->rows;
    }
    if (loss >= 0)
        l->result->loss = l->values[loss];
    if (isnan(l->result->first_loss))
        l->result->first_loss = l->result->loss;
}

/* The batch was not used: it comes again, here or in a run that resumes this one. */
static enum cm_status cancelled(struct cm_loop *l)
{
    const struct cm_error reason = *l->err;

    CM_TRY(cm_feeder_seek(l->feeder, l->at, l->err));
    CM_TRY(checkpoint(l));
    *l->err = reason;
    return CM_CANCELLED;
}

/* One batch and what is due after it; nothing where an epoch ends between two. */
static enum cm_status advance(struct cm_loop *l)
{
    const uint64_t epoch = cm_feeder_epoch(l->feeder), every = l->options->checkpoint_every;
    const struct cm_tensor *const *in = NULL;
    int64_t rows;

    CM_TRY(cm_feeder_next(l->feeder, &in, &rows, l->err));
    if (!rows)
        return CM_OK;
    const enum cm_status status = cm_trainer_step(l->trainer, in, l->scalars, l->err);
    if (status)
        return status == CM_CANCELLED ? cancelled(l) : status;
    l->epoch = epoch + 1;
    l->at = cm_feeder_position(l->feeder);
    l->is_kept = false;
    take_scalars(l, rows);
    tell(l, CM_AFTER_STEP, false, false);
    if (cm_feeder_ends_epoch(l->feeder))
        CM_TRY(end_epoch(l));
    return every && cm_trainer_steps(l->trainer) % every == 0 ? checkpoint(l) : CM_OK;
}

static enum cm_status run(struct cm_loop *l)
{
    struct cm_loop_result *result = l->result;

    l->at = cm_feeder_position(l->feeder);
    if (l->options->checkpoint)
        CM_TRY(resume(l));
    if (l->options->initialize && !l->is_kept)
        CM_TRY(cm_trainer_initialize(l->trainer, l->err));
    result->out_of_patience = out_of_patience(l);
    l->epoch = l->at.epoch + 1;
    tell(l, CM_AT_START, false, false);
    while (!result->stopped && !result->out_of_patience && cm_trainer_steps(l->trainer) < l->total)
        CM_TRY(advance(l));
    return checkpoint(l);
}

/* ---- the beginning and the end ---- */

static uint64_t steps_of(uint64_t epochs, uint64_t per_epoch)
{
    return per_epoch && epochs > UINT64_MAX / per_epoch ? UINT64_MAX : epochs * per_epoch;
}

static enum cm_status check(const struct cm_loop *l)
{
    const struct cm_loop_options *o = l->options;
    const struct cm_feed_options *feed = cm_feeder_settled(l->feeder);

    if (o->epochs && o->steps)
        return cm_fail(l->err, CM_BAD_ARGUMENT, "epochs and steps both say when to stop");
    if ((o->checkpoint_every || o->resume) && !o->checkpoint)
        return cm_fail(l->err, CM_BAD_ARGUMENT, "%s needs a checkpoint folder",
                       o->resume ? "resume" : "checkpoint_every");
    if ((o->patience || o->best) && !o->validation)
        return cm_fail(l->err, CM_BAD_ARGUMENT, "%s needs validation data",
                       o->best ? "best" : "patience");
    if (o->validation && cm_feeder_settled(o->validation)->endless)
        return cm_fail(l->err, CM_BAD_ARGUMENT, "the validation batches are endless");
    if (!feed->endless && cm_feeder_batches(l->feeder) == 0)
        return cm_fail(l->err, CM_BAD_ARGUMENT, "%lld samples are too few for one batch of %lld",
                       (long long)cm_feeder_samples(l->feeder), (long long)feed->batch_size);
    return CM_OK;
}

static bool allocate(struct cm_loop *l)
{
    const size_t scalars = cm_trainer_scalar_count(l->trainer);
    const char *folder = l->options->checkpoint;

    l->scalars = cm_calloc(scalars + 1, sizeof *l->scalars);
    l->values = cm_calloc(3 * scalars + 1, sizeof *l->values);
    l->path = cm_calloc((folder ? strlen(folder) : 0) + CM_CHECKPOINT_NAME_SIZE, 1);
    if (l->values) {
        l->sums = l->values + scalars;
        l->means = l->sums + scalars;
    }
    return l->scalars && l->values && l->path;
}

enum cm_status cm_training_run(struct cm_trainer *trainer, struct cm_feeder *feeder,
                               const struct cm_loop_options *options, struct cm_loop_result *result,
                               struct cm_error *err)
{
    struct cm_error unused;
    struct cm_loop l = {.trainer = trainer,
                        .feeder = feeder,
                        .options = options,
                        .result = result,
                        .err = err ? err : &unused};

    *result = (struct cm_loop_result){
        .loss = (double)NAN, .first_loss = (double)NAN, .best_loss = (double)INFINITY};
    l.total = options->steps ? options->steps
                             : steps_of(options->epochs ? options->epochs : 1,
                                        (uint64_t)cm_feeder_batches(feeder));
    enum cm_status status = check(&l);
    if (status == CM_OK)
        status = allocate(&l) ? run(&l)
                              : cm_fail(l.err, CM_NO_MEMORY, "no memory for the training loop");
    cm_free(l.scalars);
    cm_free(l.values);
    cm_free(l.path);
    return status;
}
