/* A training as it stands in one file, so that it goes on with the same bits: a .safetensors file
 * of the state variables, the random state, the number of steps, where its loop stood and notes of
 * the caller's. Written whole or not at all.
 *
 * The same bits come under the same conditions only, so a checkpoint holds those too, texts by key:
 * the version of the library, instruction set, backends and their versions, threads, passes and the
 * seed; besides them what the writer adds. Others are refused unless the reader wants them. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_CHECKPOINT_H
#define CM_TRAIN_CHECKPOINT_H

#include "base/array.h"
#include "io/arrays.h"
#include "train/trainer.h"

struct cm_note {
    struct cm_str key, value; /* UTF-8 */
};

struct cm_notes {
    CM_ARRAY(struct cm_note);
};

struct cm_checkpoint {
    const char *path; /* borrowed; must end with .safetensors to be written */
    bool in_folder;   /* its name is ours, only the folder is the user's: a link there is refused */
    struct cm_notes conditions; /* to be written: those beside the trainer's own */
    struct cm_notes notes;
    double *record; /* where a training loop stood, in its own terms; none: no loop wrote it */
    size_t n_record;
    struct cm_arrays arrays; /* of one that was opened */
};

/* scratch is free for reuse afterwards. */
enum cm_status cm_checkpoint_write(const struct cm_checkpoint *checkpoint,
                                   const struct cm_trainer *trainer, struct cm_arena *scratch,
                                   struct cm_error *err) CM_MUST_CHECK;
/* Reads path into memory, all of it in arena. */
enum cm_status cm_checkpoint_open(struct cm_arena *arena, const char *path,
                                  struct cm_checkpoint *out, struct cm_error *err) CM_MUST_CHECK;

struct cm_resume_options {
    struct cm_notes conditions; /* those beside the trainer's own */
    bool anyway;                /* resume under other conditions too */
    /* Hears of each that differs; the texts end with NUL. May be NULL. */
    void (*difference)(void *arg, const char *key, const char *was, const char *now);
    void *difference_arg;
};

/* Puts trainer where the one that wrote the checkpoint was. One of another model is refused; then,
 * as under other conditions, no variable has changed. */
enum cm_status cm_checkpoint_resume(const struct cm_checkpoint *checkpoint,
                                    const struct cm_resume_options *options,
                                    struct cm_trainer *trainer, struct cm_arena *scratch,
                                    struct cm_error *err) CM_MUST_CHECK;

#endif
