/* A training as it stands in one file, so that it goes on with the same bits: a .safetensors file
 * of the state variables, the random state, the number of steps, and notes of the caller's (where
 * the data stands, with how many threads it ran). Written whole or not at all. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_CHECKPOINT_H
#define CM_TRAIN_CHECKPOINT_H

#include "train/trainer.h"

struct cm_note {
    struct cm_str key, value; /* UTF-8 */
};

/* scratch is free for reuse afterwards. path must end with .safetensors. */
enum cm_status cm_checkpoint_write(const struct cm_trainer *trainer, struct cm_arena *scratch,
                                   const char *path, const struct cm_note *notes, size_t n_notes,
                                   struct cm_error *err) CM_MUST_CHECK;
/* Only the notes, in arena. */
enum cm_status cm_checkpoint_notes(struct cm_arena *arena, const char *path, struct cm_note **notes,
                                   size_t *n_notes, struct cm_error *err) CM_MUST_CHECK;
/* Puts trainer where the one that wrote path was. A checkpoint of another model is refused, and
 * then no variable has changed. */
enum cm_status cm_checkpoint_read(struct cm_trainer *trainer, struct cm_arena *scratch,
                                  const char *path, struct cm_error *err) CM_MUST_CHECK;

#endif
