/* The checkpoints of one run: a folder of files named after their step, the newest few kept. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_CHECKPOINT_FOLDER_H
#define CM_TRAIN_CHECKPOINT_FOLDER_H

#include "base/status.h"

#include <stdbool.h>

enum { CM_CHECKPOINT_NAME_SIZE = 48 }; /* of what comes after the folder, NUL included */

/* path has room for the folder's name and CM_CHECKPOINT_NAME_SIZE. */
void cm_checkpoint_path(const char *folder, uint64_t step, char *path);
/* Makes the folder, unless it is there. */
enum cm_status cm_checkpoint_folder_make(const char *folder, struct cm_error *err) CM_MUST_CHECK;
/* *found is false when there is none, or no folder. */
enum cm_status cm_checkpoint_newest(const char *folder, bool *found, uint64_t *step,
                                    struct cm_error *err) CM_MUST_CHECK;
/* Removes all but the newest keep, and what a run that was killed left half-written. A file that
 * cannot be removed stays. */
void cm_checkpoint_folder_prune(const char *folder, uint64_t keep);

#endif
