/* What the files of `cameo train` share: what the user asked for, and a run under way. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CLI_TRAIN_H
#define CLI_TRAIN_H

#include "saved_files.h"
#include "values.h"

struct train_settings {
    struct cli_texts data, validate; /* files */
    const char *model, *columns, *target, *out, *best, *log, *profile;
    const char *checkpoint, *tensorboard;
    size_t batch_size, epochs, steps, seed, threads, memory_limit, patience;
    size_t checkpoint_every, keep, tensorboard_every;
    const char *last_batch, *backend, *without;
    bool no_shuffle, init, resume, force, memory, recompute, raw_bytes, allow_links;
    int effective_threads;
};

/* Files that are written while it runs. */
enum train_output {
    TRAIN_LOG,
    TRAIN_EVENTS,
    TRAIN_PROFILE,
    TRAIN_CHECKPOINT,
    TRAIN_BEST,
    TRAIN_OUTPUTS
};

struct train_unwritten {
    size_t count;
    char why[1200]; /* the first could not be written, or the file not be ended; else empty */
};

enum { TRAIN_PLACE_SIZE = 4096 };

struct train_run {
    const struct train_settings *settings;
    struct cameo_model *model;
    struct cameo_trainer *trainer;
    struct cameo_dataset *data, *validation;
    struct cameo_batches *batches, *validation_batches;
    struct cameo_loop_result result;
    uint64_t began_at;      /* steps done when this run began */
    double best_loss;       /* of validations before the last */
    size_t differences;     /* between the conditions of the checkpoint and ours */
    uint64_t kept;          /* the step of the newest checkpoint */
    struct cli_steps steps; /* of the step that is profiled */
    int code;               /* of what failed before the first step */
    struct train_unwritten unwritten[TRAIN_OUTPUTS];
    char best_place[TRAIN_PLACE_SIZE]; /* where the best model is if it is not where it should be */
    struct cli_saved saved;            /* -o, once it is written */
    struct cameo_file *log;
    struct cameo_events *events;
    double started, shown; /* seconds */
};

/* Is what was asked of the loop possible, whatever the model and the data are? */
int train_check_loop(const struct train_settings *settings);
/* Exit codes. The model is trained; the caller saves it. CLI_CANCELLED: the user stopped it. */
int train_loop(struct train_run *run);

/* A second Ctrl-C ends the program at once, the first one after the step under way. */
void train_watch_signals(bool watch);

/* A file that could not be written does not end the run: that is told at once, and once more when
 * the model is saved. Gives CLI_MACHINE if there was one. */
void train_note_unwritten(struct train_run *run, enum train_output output, const char *why);
/* The same of a file that could not be ended: told when the model is saved. */
void train_note_incomplete(struct train_run *run, enum train_output output, const char *why);
int train_tell_unwritten(const struct train_run *run);
/* Saves the model as it is now, to another place than path, whose name it gets. */
bool train_rescue(const struct train_run *run, const char *path, char *place, size_t size);
/* The same to where it should go, else to another place that is told. Gives the exit code. */
int train_save(struct train_run *run);
int train_tell_weights(const struct train_run *run);

/* Progress and logs. */
void train_show(struct train_run *run, const struct cameo_progress *at);
/* A line for the epoch that is over: its mean loss, and what validation found. */
void train_show_epoch(const struct train_run *run, const struct cameo_progress *at);
/* What a step will hold, if that is asked for; fails when it is more than is allowed. */
int train_check_memory(struct train_run *run);
void train_put_number(FILE *to, const char *name, double value);
void train_clear_line(void);
int train_log_open(struct train_run *run);
void train_log_close(struct train_run *run);
void train_log_step(struct train_run *run, const struct cameo_progress *at);
void train_log_validation(struct train_run *run, const struct cameo_progress *at);
double train_seconds(void);

/* Curves for TensorBoard, if they are asked for; opened when it is known where the run begins. */
int train_events_open(struct train_run *run);
void train_events_close(struct train_run *run);
void train_events_step(struct train_run *run, const struct cameo_progress *at);
void train_events_epoch(struct train_run *run, const struct cameo_progress *at);

#endif
