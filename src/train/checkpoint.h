/* A training as it stands in one file, so that it goes on with the same bits: a .safetensors file
 * of the state variables, the random state, the number of steps, the conditions that the run
 * depends on (train/conditions.h) and notes of the caller's. Written whole or not at all. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_CHECKPOINT_H
#define CM_TRAIN_CHECKPOINT_H

#include "io/arrays.h"
#include "train/conditions.h"

/* scratch is free for reuse afterwards. path must end with .safetensors. */
enum cm_status cm_checkpoint_write(const struct cm_trainer *trainer, struct cm_arena *scratch,
                                   const char *path, const struct cm_notes *conditions,
                                   const struct cm_notes *notes,
                                   struct cm_error *err) CM_MUST_CHECK;

struct cm_checkpoint {
    const char *path;
    struct cm_arrays arrays;
    struct cm_notes conditions, notes;
};

/* Reads path into memory, all of it in arena. path must outlive out. */
enum cm_status cm_checkpoint_open(struct cm_arena *arena, const char *path,
                                  struct cm_checkpoint *out, struct cm_error *err) CM_MUST_CHECK;
/* Puts trainer where the one that wrote the checkpoint was. One of another model is refused, and
 * then no variable has changed. Conditions are the caller's to compare. */
enum cm_status cm_checkpoint_restore(const struct cm_checkpoint *checkpoint,
                                     struct cm_trainer *trainer, struct cm_arena *scratch,
                                     struct cm_error *err) CM_MUST_CHECK;

#endif
