/* The loop that most trainings are: batches, steps, validation after each epoch, early stopping,
 * the best model, checkpoints. The command, the library and whoever is built on it run this one.
 * What happens is told to a function of the caller's, which may end the run. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_TRAINING_LOOP_H
#define CM_TRAIN_TRAINING_LOOP_H

#include "train/conditions.h"

/* The numbers are public. */
enum cm_loop_moment {
    CM_AFTER_STEP = 0,
    CM_AFTER_EPOCH = 1, /* and its validation and the saving of the best, if there are such */
    CM_AFTER_CHECKPOINT = 2,
    CM_AT_START = 3, /* resumed or not, before the first step */
};

struct cm_loop_progress {
    enum cm_loop_moment moment;
    uint64_t step, steps;  /* done, and to do in all */
    uint64_t epoch;        /* of the last batch, from 1 */
    const double *scalars; /* of the last step, by number */
    const double *means;   /* the same over the epoch so far, each batch weighed by its rows */
    double loss;           /* of the last step; NaN: the training has none */
    const struct cm_trainer_measure *measure; /* of all validation data, after an epoch; or NULL */
    bool best;                                /* it is the best so far */
    double best_loss;                         /* of validations so far; infinite: none */
    const char *checkpoint; /* the one that was written; at the start, resumed from; or NULL */
};

/* false: the run ends here, without failure. */
typedef bool cm_loop_progress_fn(void *arg, const struct cm_loop_progress *progress);
/* Saves the model with the trainer's values. */
typedef enum cm_status cm_loop_save_fn(void *arg, const char *path, struct cm_error *err);

struct cm_loop_options {
    uint64_t epochs, steps; /* how long, counted from the first step ever; both 0: one epoch */
    /* Measured after each epoch, or NULL; the trainer is then prepared for evaluation. */
    struct cm_feeder *validation;
    uint64_t patience; /* stop when so many validations in a row brought nothing better; 0: never */
    const char *best;  /* the model with the best validation loss goes to this file, or NULL */
    cm_loop_save_fn *save; /* writes it */
    void *save_arg;
    const char *checkpoint;    /* a folder, made where it is not; or NULL */
    uint64_t checkpoint_every; /* steps; 0: only where the run ends */
    uint64_t keep;             /* how many checkpoints stay; 0: 3 */
    bool resume;               /* from the newest checkpoint, if there is one */
    struct cm_resume_options resuming;
    const struct cm_notes *conditions; /* of the caller's, beside those of the library; or NULL */
    bool initialize;                   /* run the initialization graphs first, unless resumed */
    const atomic_bool *stop; /* set, the step under way is finished and the run ends; or NULL */
    cm_loop_progress_fn *progress;
    void *progress_arg;
};

struct cm_loop_result {
    double loss, first_loss; /* of the last and of the first step ever; NaN: there is none */
    double best_loss;        /* of validations; infinite: there was none */
    bool stopped;            /* by the progress function or by stop */
    bool out_of_patience;
};

/* The trainer is then where the run ended, and the newest checkpoint, if asked for, too. A step
 * that the trainer's cancel flag ends leaves a checkpoint of the step before it. result is filled
 * whatever comes. */
enum cm_status cm_training_run(struct cm_trainer *trainer, struct cm_feeder *feeder,
                               const struct cm_loop_options *options, struct cm_loop_result *result,
                               struct cm_error *err) CM_MUST_CHECK;

#endif
