/* The loop that most trainings are: batches, steps, validation after each epoch, early stopping,
 * the best model, checkpoints. The command, the library and whoever is built on it run this one.
 * What happens is told to a function of the caller's, which may end the run. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_TRAINING_LOOP_H
#define CM_TRAIN_TRAINING_LOOP_H

#include "train/checkpoint.h"
#include "train/feeder.h"

/* Numbers and members mean what they mean in cameo.h. */
enum cm_loop_moment {
    CM_AFTER_STEP,
    CM_AFTER_EPOCH,
    CM_AFTER_CHECKPOINT,
    CM_AT_START,
    CM_AT_END,
    CM_NOT_WRITTEN
};

struct cm_loop_progress {
    enum cm_loop_moment moment;
    uint64_t step, steps, epoch;
    const double *scalars, *means; /* of the last step; over the epoch so far */
    double loss, best_loss;
    const struct cm_trainer_measure *measure;
    bool best;
    const char *checkpoint;
    const char *unwritten, *problem; /* CM_NOT_WRITTEN: a path, and why */
};

/* false: the run ends here, without failure. */
typedef bool cm_loop_progress_fn(void *arg, const struct cm_loop_progress *progress);
/* Saves the model with the trainer's values. */
typedef enum cm_status cm_loop_save_fn(void *arg, const char *path, struct cm_error *err);

struct cm_loop_options {
    uint64_t epochs, steps;
    bool further;
    struct cm_feeder *validation; /* the trainer is then prepared for evaluation */
    uint64_t patience;
    const char *best;
    cm_loop_save_fn *save; /* writes best */
    void *save_arg;
    const char *checkpoint; /* a folder */
    uint64_t checkpoint_every, keep;
    bool resume;
    struct cm_resume_options resuming; /* with conditions of the caller's */
    cm_loop_progress_fn *progress;
    void *progress_arg;
    struct cm_findings *findings; /* receives all that is wrong with the options; or NULL */
};

struct cm_loop_result {
    double loss, first_loss; /* of the last and of the first step ever; NaN: there is none */
    double best_loss;        /* of validations; infinite: there was none */
    bool stopped;            /* by the progress function */
    bool out_of_patience;
    bool finished; /* it went to its end; a failure is then that of a file it went on without */
    uint64_t unwritten;             /* files that could not be written */
    uint64_t best_step, best_epoch; /* of best_loss; 0: none, or not known */
};

/* Adds what is wrong with the options whatever is trained on whatever data. validates: there will
 * be validation data, even if options->validation is NULL as yet. */
void cm_loop_check(const struct cm_loop_options *options, bool validates,
                   struct cm_findings *findings);

/* The trainer is then where the run ended, and the newest checkpoint, if asked for, too. A step
 * that the trainer's cancel flag ends leaves a checkpoint of the step before it. A checkpoint or a
 * best model that cannot be written does not end the run: it is told, and is the status at the end.
 * The checkpoint folder is locked until then. result is filled whatever comes. */
enum cm_status cm_training_run(struct cm_arena *arena, struct cm_trainer *trainer,
                               struct cm_feeder *feeder, const struct cm_loop_options *options,
                               struct cm_loop_result *result, struct cm_error *err) CM_MUST_CHECK;

#endif
