/* Rates that fall when the validation loss does: PyTorch's ReduceLROnPlateau (mode min, threshold
 * mode rel). One state variable of the training holds the best loss, the counts and the rates, so
 * that checkpoints and saved models have them; the graph only reads the rates. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_PLATEAU_H
#define CM_TRAIN_PLATEAU_H

#include "train/trainer.h"

#define CM_PLATEAU_NAME "training.plateau"

/* The elements of the variable, a vector of doubles. */
enum {
    CM_PLATEAU_BEST,    /* the least loss so far */
    CM_PLATEAU_WORSE,   /* validations since */
    CM_PLATEAU_COOLING, /* validations that count for nothing, to come */
    CM_PLATEAU_FACTOR,  /* the settings: a rate times this, */
    CM_PLATEAU_PATIENCE,
    CM_PLATEAU_THRESHOLD,
    CM_PLATEAU_COOLDOWN,
    CM_PLATEAU_LEAST, /* but not below this */
    CM_PLATEAU_RATES  /* one for each group of weights */
};

/* Does the training have such a schedule? */
bool cm_trainer_has_plateau(const struct cm_trainer *trainer);
/* The same for the trainer's variable; CM_BAD_ARGUMENT where it has none. */
enum cm_status cm_trainer_add_validation(struct cm_trainer *trainer, double loss,
                                         struct cm_error *err) CM_MUST_CHECK;

#endif
