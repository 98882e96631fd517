/* What the files of `cameo train` share: what the user asked for, and a run under way. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CLI_TRAIN_H
#define CLI_TRAIN_H

#include "values.h"

struct train_settings {
    const char *model, *data, *validate, *columns, *target, *out, *best, *log, *profile;
    const char *checkpoint;
    size_t batch_size, epochs, steps, seed, threads, memory_limit, patience;
    size_t checkpoint_every, keep;
    const char *last_batch, *backend, *without;
    bool no_shuffle, init, resume, force, memory, json, recompute, raw_bytes;
    bool last_batch_given;
    int effective_threads;
};

struct train_run {
    const struct train_settings *settings;
    const struct cameo_model *model;
    struct cameo_trainer *trainer;
    struct cameo_dataset *data, *validation;
    struct cameo_batches *batches, *validation_batches;
    double *scalars; /* of the last step */
    double loss, first_loss;
    uint64_t total, began_at; /* steps: to do in all, done when this run began */
    uint64_t epoch;           /* of the last batch, from 1 */
    struct train_epoch {      /* of the epoch under way, sums over its rows */
        double loss, accuracy;
        uint64_t rows;
    } so_far;
    double best_loss; /* of validations; infinite: none yet */
    uint64_t worse;   /* validations since then */
    struct cameo_measure measured;
    bool stopped_early;
    FILE *log;
    double started, shown; /* seconds */
};

/* Exit codes. The model is trained; the caller saves it. CLI_CANCELLED: the user stopped it. */
int train_loop(struct train_run *run);

/* Progress and logs. */
void train_show(struct train_run *run, bool now);
/* A line for the epoch that is over: its mean loss, and what validation found. */
void train_show_epoch(struct train_run *run);
size_t train_accuracy(const struct train_run *run);
/* What a step will hold, if that is asked for; fails when it is more than is allowed. */
int train_check_memory(struct train_run *run);
void train_put_number(FILE *to, const char *name, double value);
void train_clear_line(void);
int train_log_open(struct train_run *run);
int train_log_step(struct train_run *run);
int train_log_validation(struct train_run *run);
double train_seconds(void);

/* Checkpoints in a folder, the newest of them, and where it was. */
int train_checkpoints_check(struct train_run *run);
int train_checkpoint(struct train_run *run);
/* Goes on from the newest; *found is false when there is none. */
int train_resume(struct train_run *run, bool *found);

#endif
