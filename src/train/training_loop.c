/* A whole run, step by step. */
// SPDX-License-Identifier: Apache-2.0
#include "train/training_loop.h"

#include "base/crc32c.h"
#include "base/file_lock.h"
#include "train/checkpoint_folder.h"
#include "train/plateau.h"
#include "train/trainer_parts.h"

#include <inttypes.h>
#include <math.h>

enum { USUAL_KEEP = 3 };

/* What a checkpoint keeps of a run beside its trainer: where in the data it is after the last step,
 * validations since the best, rows of the epoch so far, losses; then sums of the scalars over those
 * rows, then the step that the run began with, and step and epoch of the best loss. */
enum { EPOCH, SAMPLE, WORSE, ROWS, BEST_LOSS, FIRST_LOSS, LOSS, SUMS };
enum { BEGAN, BEST_STEP, BEST_EPOCH, AFTER_SUMS }; /* behind the sums */

struct cm_loop {
    struct cm_arena *arena;
    struct cm_trainer *trainer;
    struct cm_feeder *feeder;
    const struct cm_loop_options *options;
    struct cm_loop_result *result;
    struct cm_trainer_scalar *scalars;
    size_t n_scalars;
    double *values, *means, *record;
    uint64_t total; /* steps, counted from the first ever; UINT64_MAX: the data says when it ends */
    uint64_t told;  /* the same as far as it is known; 0: not */
    uint64_t epoch;
    struct cm_trainer_measure measure;
    struct cm_notes conditions;
    struct cm_lock *lock;   /* on the checkpoint folder */
    char *path;             /* of the checkpoint read or written last */
    bool is_kept;           /* it tells how things are now */
    bool measuring;         /* the validation data is on its way through */
    bool unmeasured;        /* a step was done since the last validation */
    const char *unwritten;  /* the file that could not be written now */
    struct cm_error lost;   /* why the first such file could not */
    enum cm_status lost_as; /* CM_OK: all could be written */
    struct cm_error *err;
};

static double *after_sums(const struct cm_loop *l)
{
    return l->record + SUMS + l->n_scalars;
}

static size_t record_size(const struct cm_loop *l)
{
    return SUMS + l->n_scalars + AFTER_SUMS;
}

/* ---- telling ---- */

static void tell(struct cm_loop *l, enum cm_loop_moment moment, bool best)
{
    const struct cm_loop_options *o = l->options;
    const bool measured = (moment == CM_AFTER_EPOCH || moment == CM_AT_END) && o->validation;
    const bool named = moment == CM_AFTER_CHECKPOINT || (moment == CM_AT_START && l->is_kept);
    const struct cm_loop_progress progress = {.moment = moment,
                                              .step = cm_trainer_steps(l->trainer),
                                              .steps = l->told,
                                              .epoch = l->epoch,
                                              .scalars = l->values,
                                              .means = l->means,
                                              .loss = l->record[LOSS],
                                              .measure = measured ? &l->measure : NULL,
                                              .best = best,
                                              .best_loss = l->record[BEST_LOSS],
                                              .checkpoint = named ? l->path : NULL,
                                              .unwritten = l->unwritten,
                                              .problem = l->unwritten ? l->err->text : NULL};

    l->result->loss = l->record[LOSS];
    l->result->first_loss = l->record[FIRST_LOSS];
    l->result->best_loss = l->record[BEST_LOSS];
    l->result->best_step = (uint64_t)after_sums(l)[BEST_STEP];
    l->result->best_epoch = (uint64_t)after_sums(l)[BEST_EPOCH];
    l->result->out_of_patience = o->patience && l->record[WORSE] >= (double)o->patience;
    if (o->progress && !o->progress(o->progress_arg, &progress))
        l->result->stopped = true;
}

/* A file that cannot be written does not end the run, with which all that was trained would be
 * lost. The next one is tried all the same: the disk may have room again. */
static enum cm_status go_without(struct cm_loop *l, const char *path, enum cm_status status)
{
    if (status == CM_OK || status == CM_CANCELLED)
        return status;
    if (l->lost_as == CM_OK) {
        l->lost_as = status;
        l->lost = *l->err;
    }
    l->result->unwritten++;
    l->unwritten = path;
    tell(l, CM_NOT_WRITTEN, false);
    l->unwritten = NULL;
    return CM_OK;
}

/* ---- checkpoints ---- */

static void note_position(struct cm_loop *l)
{
    const struct cm_feed_position at = cm_feeder_position(l->feeder);

    l->record[EPOCH] = (double)at.epoch;
    l->record[SAMPLE] = (double)at.sample;
}

/* The trainer knows how much it has seen, whatever of it was in an earlier run. */
static void count_samples(const struct cm_loop *l)
{
    const struct cm_feeder_facts *facts = cm_feeder_facts(l->feeder);
    const uint64_t epochs = (uint64_t)l->record[EPOCH], rows = (uint64_t)l->record[ROWS];

    if (!facts->samples)
        return; /* a source that does not say */
    cm_trainer_set_progress(l->trainer, (struct cm_trainer_progress){
                                            .epochs = epochs + (l->record[SAMPLE] > 0 &&
                                                                cm_feeder_ends_epoch(l->feeder)),
                                            .samples = epochs * (uint64_t)facts->samples + rows});
}

/* Where the record says. */
static enum cm_status seek(const struct cm_loop *l)
{
    const struct cm_feed_position at = {(uint64_t)l->record[EPOCH], (int64_t)l->record[SAMPLE]};

    return cm_feeder_seek(l->feeder, at, l->err);
}

/* Which array goes to which input, and how. */
static struct cm_str describe_inputs(const struct cm_loop *l)
{
    const struct cm_feeder_facts *facts = cm_feeder_facts(l->feeder);
    struct cm_str all = CM_STR("");

    for (size_t i = 0; i < cm_trainer_input_count(l->trainer); i++) {
        const struct cm_str name = cm_trainer_input(l->trainer, i)->name;
        const struct cm_str array =
            cm_dataset_field(facts->dataset, (size_t)facts->fields[i])->name;

        all = cm_arena_printf(l->arena, "%s%s%.*s from %.*s%s", cm_str_text(all), i ? ", " : "",
                              CM_STR_FMT(name), CM_STR_FMT(array),
                              cm_feeder_scales(l->feeder, i) ? " as 0 to 1" : "");
    }
    return all;
}

/* A check sum over some samples, spread over all: other data of the same size is found, without
 * reading all of it. What cannot be read is met again when it is its turn. */
static struct cm_str describe_data(struct cm_loop *l)
{
    enum { MOST = 64 };
    const struct cm_feeder_facts *facts = cm_feeder_facts(l->feeder);
    const int64_t count = facts->samples < MOST ? facts->samples : MOST;
    uint32_t sum = 0;

    for (size_t i = 0; i < cm_trainer_input_count(l->trainer); i++) {
        const size_t at = (size_t)facts->fields[i];
        const struct cm_dataset_field *field = cm_dataset_field(facts->dataset, at);
        int64_t elements;
        size_t bytes;

        if (field->type == CM_STRING || !cm_shape_count(&field->sample, &elements) ||
            !cm_dtype_bytes(field->type, elements, &bytes))
            continue;
        unsigned char *sample = cm_arena_alloc(l->arena, bytes);
        for (int64_t k = 0; k < count; k++) {
            const int64_t row = k * (facts->samples - 1) / (count > 1 ? count - 1 : 1);

            if (cm_dataset_read(facts->dataset, at, row, sample, NULL) == CM_OK)
                sum = cm_crc32c(sum, sample, bytes);
        }
    }
    return cm_arena_printf(l->arena, "check sum %08" PRIx32 " of %" PRId64 " samples", sum, count);
}

/* Which batches come in which order, and what is in them. The seed is a condition already where the
 * trainer's is the same. */
static void add_conditions_of_set(struct cm_loop *l)
{
    static const char *const last[] = {
        [CM_LAST_SHORT] = "short", [CM_LAST_DROP] = "drop", [CM_LAST_WRAP] = "wrap"};
    const struct cm_feeder_facts *facts = cm_feeder_facts(l->feeder);
    const struct cm_feed_options *feed = &facts->feed;
    const struct cm_str order =
        !feed->shuffle ? CM_STR("as stored")
        : feed->seed == l->trainer->options.seed
            ? CM_STR("shuffled")
            : cm_arena_printf(l->arena, "shuffled with seed %" PRIu64, feed->seed);
    const struct cm_str columns = cm_dataset_columns(facts->dataset);
    const struct cm_note own[] = {
        {CM_STR("inputs"), describe_inputs(l)},
        {CM_STR("columns"), columns.size ? columns : CM_STR("not given")},
        {CM_STR("samples"), cm_arena_printf(l->arena, "%" PRId64, facts->samples)},
        {CM_STR("data"), describe_data(l)},
        {CM_STR("batch size"), cm_arena_printf(l->arena, "%" PRId64, feed->batch_size)},
        {CM_STR("order"), order},
        {CM_STR("last batch"), cm_str(feed->endless ? "endless" : last[feed->last])}};

    for (size_t i = 0; i < CM_COUNT(own); i++)
        *CM_PUSH(l->arena, &l->conditions) = own[i];
}

static void add_conditions(struct cm_loop *l)
{
    const struct cm_feeder_facts *facts = cm_feeder_facts(l->feeder);

    if (facts->dataset)
        add_conditions_of_set(l);
    else
        *CM_PUSH(l->arena, &l->conditions) =
            (struct cm_note){CM_STR("batches"),
                             facts->conditions.size ? facts->conditions : CM_STR("of a function")};
}

/* Writes one, unless it is there already. Only then are old ones removed. */
static enum cm_status checkpoint(struct cm_loop *l)
{
    const struct cm_loop_options *o = l->options;
    const struct cm_checkpoint file = {.path = l->path,
                                       .in_folder = true,
                                       .conditions = l->conditions,
                                       .record = l->record,
                                       .n_record = record_size(l)};
    struct cm_arena scratch;

    if (!o->checkpoint || l->is_kept)
        return CM_OK;
    cm_checkpoint_path(o->checkpoint, cm_trainer_steps(l->trainer), l->path);
    cm_arena_init(&scratch, l->arena->guard);
    const enum cm_status status = cm_checkpoint_write(&file, l->trainer, &scratch, l->err);
    cm_arena_release(&scratch);
    if (status)
        return go_without(l, l->path, status);
    l->is_kept = true;
    cm_checkpoint_folder_prune(o->checkpoint, o->keep ? o->keep : USUAL_KEEP);
    tell(l, CM_AFTER_CHECKPOINT, false);
    return CM_OK;
}

static enum cm_status take_record(struct cm_loop *l, const struct cm_checkpoint *file)
{
    /* Older ones end before the best step, or even before the first, which was 0. */
    const size_t most = record_size(l), least = SUMS + l->n_scalars;
    bool sound = file->n_record == most || file->n_record == least || file->n_record == least + 1;

    memset(after_sums(l), 0, AFTER_SUMS * sizeof *l->record);
    for (size_t i = EPOCH; sound && i < file->n_record; i++) /* a NaN is none of these */
        if (i <= ROWS || i >= least)
            sound = file->record[i] >= 0 && file->record[i] < 0x1p53;
    if (!sound)
        return cm_fail(l->err, CM_BAD_ARGUMENT,
                       "%s: the checkpoint does not say where in the data the run was", file->path);
    memcpy(l->record, file->record, file->n_record * sizeof *file->record);
    return CM_OK;
}

static enum cm_status read_checkpoint(struct cm_loop *l, struct cm_arena *scratch)
{
    struct cm_resume_options options = l->options->resuming;
    struct cm_checkpoint file;

    options.conditions = l->conditions;
    CM_TRY(cm_checkpoint_open(scratch, l->path, &file, l->err));
    CM_TRY(cm_checkpoint_resume(&file, &options, l->trainer, scratch, l->err));
    CM_TRY(take_record(l, &file));
    return seek(l);
}

static enum cm_status resume(struct cm_loop *l)
{
    const struct cm_loop_options *o = l->options;
    struct cm_arena scratch;
    uint64_t newest;
    bool found;

    CM_TRY(cm_checkpoint_folder_make(o->checkpoint, l->err));
    CM_TRY(cm_lock_take(l->lock, o->checkpoint, l->err));
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
    cm_arena_init(&scratch, l->arena->guard);
    const enum cm_status status = read_checkpoint(l, &scratch);
    cm_arena_release(&scratch);
    l->is_kept = status == CM_OK;
    return status;
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

static enum cm_status measure_batches(struct cm_loop *l)
{
    struct cm_feeder *data = l->options->validation;
    const struct cm_tensor *const *in = NULL;
    struct cm_trainer_measure one;
    int64_t rows;

    l->measure = (struct cm_trainer_measure){0};
    CM_TRY(cm_feeder_seek(data, (struct cm_feed_position){0}, l->err));
    CM_TRY(cm_feeder_next(data, &in, &rows, l->err));
    while (rows) {
        CM_TRY(cm_trainer_evaluate(l->trainer, in, &one, l->err));
        add_measure(&l->measure, &one, rows);
        CM_TRY(cm_feeder_next(data, &in, &rows, l->err));
    }
    l->measure.loss =
        l->measure.samples ? l->measure.loss / (double)l->measure.samples : (double)NAN;
    return CM_OK;
}

static enum cm_status measure_all(struct cm_loop *l)
{
    l->measuring = true;
    const enum cm_status status = measure_batches(l);
    l->measuring = status != CM_OK;
    return status;
}

/* Measures, and saves the model if no validation was better. */
static enum cm_status validate(struct cm_loop *l, bool *best)
{
    const struct cm_loop_options *o = l->options;

    CM_TRY(measure_all(l));
    l->unmeasured = false;
    *best = l->measure.loss < l->record[BEST_LOSS];
    if (!*best)
        return CM_OK;
    l->record[WORSE] = 0;
    l->record[BEST_LOSS] = l->measure.loss;
    after_sums(l)[BEST_STEP] = (double)cm_trainer_steps(l->trainer);
    after_sums(l)[BEST_EPOCH] = (double)l->epoch;
    return o->best ? go_without(l, o->best, o->save(o->save_arg, o->best, l->err)) : CM_OK;
}

/* A run that ends within an epoch is measured there too: its last weights may be the best. */
static enum cm_status validate_at_end(struct cm_loop *l)
{
    bool best;

    if (!l->options->validation || !l->unmeasured || l->result->stopped)
        return CM_OK;
    CM_TRY(validate(l, &best));
    tell(l, CM_AT_END, best);
    l->is_kept = false;
    return CM_OK;
}

static enum cm_status end_epoch(struct cm_loop *l)
{
    bool best = false;

    if (l->options->validation) {
        CM_TRY(validate(l, &best));
        l->record[WORSE] += !best;
        if (cm_trainer_has_plateau(l->trainer))
            CM_TRY(cm_trainer_add_validation(l->trainer, l->measure.loss, l->err));
    }
    tell(l, CM_AFTER_EPOCH, best);
    memset(l->record + SUMS, 0, l->n_scalars * sizeof *l->record);
    l->record[ROWS] = 0;
    l->is_kept = false;
    return CM_OK;
}

static bool is_source(const struct cm_loop *l)
{
    return !cm_feeder_facts(l->feeder)->dataset;
}

/* Was a run that is resumed cut off between the last step of an epoch and the end of what follows
 * it? An endless feed does not show it: there, that leaves no checkpoint. */
static bool is_epoch_open(const struct cm_loop *l)
{
    if (!(l->record[ROWS] > 0))
        return false;
    return is_source(l)
               ? l->record[SAMPLE] == 0
               : !cm_feeder_facts(l->feeder)->feed.endless && cm_feeder_ends_epoch(l->feeder);
}

/* ---- steps ---- */

static void take_means(struct cm_loop *l)
{
    for (size_t i = 0; i < l->n_scalars; i++)
        l->means[i] = l->record[SUMS + i] / l->record[ROWS];
}

static void take_scalars(struct cm_loop *l, int64_t rows)
{
    const int loss = cm_trainer_loss(l->trainer);

    l->record[ROWS] += (double)rows;
    for (size_t i = 0; i < l->n_scalars; i++) {
        l->values[i] = l->scalars[i].value;
        l->record[SUMS + i] += l->values[i] * (double)rows;
    }
    take_means(l);
    if (loss >= 0)
        l->record[LOSS] = l->values[loss];
    if (isnan(l->record[FIRST_LOSS]))
        l->record[FIRST_LOSS] = l->record[LOSS];
}

/* A batch that was not used comes again, here or in a run that resumes this one; so does a
 * validation. What fails in the middle costs no more than a run that was stopped there; a training
 * that diverged has nothing worth keeping, and older checkpoints stay. */
static enum cm_status left_off(struct cm_loop *l, enum cm_status status)
{
    const struct cm_error reason = *l->err;
    const bool is_between = !l->measuring || !cm_feeder_facts(l->feeder)->feed.endless;
    if (status == CM_DIVERGED)
        return status;
    enum cm_status kept = seek(l);

    if (is_between && (kept == CM_OK || status != CM_CANCELLED))
        kept = checkpoint(l);
    if (kept && status == CM_CANCELLED)
        return kept;
    *l->err = reason;
    return status;
}

/* A source has no more batches of an epoch, which may be all that it is asked for. */
static enum cm_status leave_epoch(struct cm_loop *l)
{
    note_position(l);
    return l->record[ROWS] > 0 ? end_epoch(l) : CM_OK;
}

/* One batch and what is due after it; nothing where an epoch ends between two. */
static enum cm_status advance(struct cm_loop *l)
{
    const uint64_t epoch = cm_feeder_epoch(l->feeder), every = l->options->checkpoint_every;
    const struct cm_tensor *const *in = NULL;
    int64_t rows;

    CM_TRY(cm_feeder_next(l->feeder, &in, &rows, l->err));
    if (!rows)
        return is_source(l) ? leave_epoch(l) : CM_OK;
    CM_TRY(cm_trainer_step(l->trainer, in, l->scalars, l->err));
    l->epoch = epoch + 1;
    l->is_kept = false;
    l->unmeasured = true;
    note_position(l);
    take_scalars(l, rows);
    count_samples(l);
    tell(l, CM_AFTER_STEP, false);
    if (cm_feeder_ends_epoch(l->feeder))
        CM_TRY(end_epoch(l));
    return every && cm_trainer_steps(l->trainer) % every == 0 ? checkpoint(l) : CM_OK;
}

/* ---- the whole ---- */

/* A setting that another one needs. */
static void check_needs(struct cm_findings *findings, bool given, const char *setting, bool has,
                        const char *need)
{
    if (given && !has)
        cm_findings_refuse(findings, "%s needs %s", setting, need);
}

void cm_loop_check(const struct cm_loop_options *o, bool validates, struct cm_findings *findings)
{
    static const char folder[] = "a folder for checkpoints (checkpoint)";
    static const char data[] = "validation data (validate)";

    findings->rule = "train";
    findings->what = "the training cannot begin";
    if (o->epochs && o->steps)
        cm_findings_refuse(findings, "epochs and steps both say when to stop: give one of them");
    check_needs(findings, o->resume, "resume", o->checkpoint, folder);
    check_needs(findings, o->checkpoint_every, "checkpoint_every", o->checkpoint, folder);
    check_needs(findings, o->keep, "keep", o->checkpoint, folder);
    check_needs(findings, o->best, "best", validates, data);
    check_needs(findings, o->patience, "patience", validates, data);
}

/* The same, and what is wrong with them for this trainer and its data. */
static enum cm_status check(const struct cm_loop *l)
{
    const struct cm_loop_options *o = l->options;
    const struct cm_feeder_facts *facts = cm_feeder_facts(l->feeder);
    struct cm_findings own = {.arena = l->arena};
    struct cm_findings *findings = o->findings ? o->findings : &own;

    cm_loop_check(o, o->validation, findings);
    check_needs(findings, cm_trainer_has_plateau(l->trainer),
                "schedule 'plateau' follows the validation loss and", o->validation,
                "validation data (validate)");
    if (o->validation && cm_trainer_loss(l->trainer) < 0)
        cm_findings_add(findings, CM_UNSUPPORTED, CM_STR_NONE,
                        "the model's training has no loss to validate");
    if (o->validation && cm_feeder_facts(o->validation)->feed.endless)
        cm_findings_refuse(findings, "the validation batches are endless");
    if (facts->dataset && !facts->feed.endless && facts->batches == 0)
        cm_findings_refuse(findings,
                           "%lld samples are too few for one batch of %lld: take smaller batches",
                           (long long)facts->samples, (long long)facts->feed.batch_size);
    return cm_findings_fail(findings, l->err);
}

static uint64_t epochs_of(const struct cm_loop *l)
{
    return l->options->epochs ? l->options->epochs : 1;
}

static uint64_t add_steps(uint64_t a, uint64_t b)
{
    return a <= UINT64_MAX - b ? a + b : UINT64_MAX;
}

/* The number of the last step. A source may have fewer or more batches than it says. */
static void set_total(struct cm_loop *l)
{
    const uint64_t batches = (uint64_t)cm_feeder_facts(l->feeder)->batches;
    const uint64_t first = (uint64_t)after_sums(l)[BEGAN], epochs = epochs_of(l);
    const bool fits = !batches || epochs <= UINT64_MAX / batches;
    const uint64_t all = l->options->steps ? l->options->steps
                         : fits            ? epochs * batches
                                           : UINT64_MAX;

    l->total = l->options->steps || !is_source(l) ? add_steps(first, all) : UINT64_MAX;
    l->told = all ? add_steps(first, all) : 0;
}

static bool is_done(const struct cm_loop *l)
{
    const bool by_source = is_source(l) && !l->options->steps;

    return l->result->stopped || l->result->out_of_patience ||
           cm_trainer_steps(l->trainer) >= l->total ||
           (by_source && l->record[EPOCH] >= (double)epochs_of(l));
}

/* Where the last step was the last one of an epoch too, as far as the source says, it is asked. */
static enum cm_status finish_epoch(struct cm_loop *l)
{
    const struct cm_feeder_facts *facts = cm_feeder_facts(l->feeder);
    const struct cm_tensor *const *in = NULL;
    int64_t rows;

    if (!is_source(l) || l->result->stopped || l->record[SAMPLE] == 0 ||
        l->record[SAMPLE] != (double)facts->batches)
        return CM_OK;
    CM_TRY(cm_feeder_next(l->feeder, &in, &rows, l->err));
    return rows ? seek(l) : leave_epoch(l);
}

static void begin(struct cm_loop *l)
{
    const char *folder = l->options->checkpoint;

    l->n_scalars = cm_trainer_scalar_count(l->trainer);
    l->scalars = CM_NEW_ARRAY(l->arena, struct cm_trainer_scalar, l->n_scalars);
    l->values = CM_NEW_ARRAY(l->arena, double, l->n_scalars);
    l->means = CM_NEW_ARRAY(l->arena, double, l->n_scalars);
    l->record = CM_NEW_ARRAY(l->arena, double, record_size(l));
    if (l->options->further)
        after_sums(l)[BEGAN] = (double)cm_trainer_steps(l->trainer);
    l->record[BEST_LOSS] = (double)INFINITY;
    l->record[FIRST_LOSS] = l->record[LOSS] = (double)NAN;
    l->path = cm_arena_alloc(l->arena, (folder ? strlen(folder) : 0) + CM_CHECKPOINT_NAME_SIZE);
    for (size_t i = 0; i < l->options->resuming.conditions.count; i++)
        *CM_PUSH(l->arena, &l->conditions) = l->options->resuming.conditions.items[i];
    add_conditions(l);
    note_position(l);
}

static enum cm_status go_on(struct cm_loop *l)
{
    if (!l->result->stopped && is_epoch_open(l)) {
        l->epoch -= is_source(l); /* the record is of the next one already */
        take_means(l);
        CM_TRY(end_epoch(l));
    }
    while (!is_done(l))
        CM_TRY(advance(l));
    CM_TRY(finish_epoch(l));
    return validate_at_end(l);
}

static enum cm_status run_whole(struct cm_loop *l)
{
    CM_TRY(check(l));
    begin(l);
    if (l->options->checkpoint)
        CM_TRY(resume(l));
    set_total(l);
    l->epoch = (uint64_t)l->record[EPOCH] + 1;
    tell(l, CM_AT_START, false);
    const enum cm_status status = go_on(l);
    if (status)
        return left_off(l, status);
    CM_TRY(checkpoint(l));
    l->result->finished = true;
    if (!l->lost_as)
        return CM_OK;
    return cm_fail(l->err, l->lost_as, "%s (the run went on without it)", l->lost.text);
}

static void release_lock(void *lock)
{
    cm_lock_release(lock);
}

enum cm_status cm_training_run(struct cm_arena *arena, struct cm_trainer *trainer,
                               struct cm_feeder *feeder, const struct cm_loop_options *options,
                               struct cm_loop_result *result, struct cm_error *err)
{
    struct cm_loop l = {.arena = arena,
                        .trainer = trainer,
                        .feeder = feeder,
                        .options = options,
                        .result = result,
                        .lock = CM_NEW(arena, struct cm_lock),
                        .err = err};

    *result = (struct cm_loop_result){
        .loss = (double)NAN, .first_loss = (double)NAN, .best_loss = (double)INFINITY};
    cm_arena_defer(arena, release_lock, l.lock); /* where memory gives out */
    const enum cm_status status = run_whole(&l);
    cm_arena_forget(arena, release_lock, l.lock);
    cm_lock_release(l.lock);
    return status;
}
