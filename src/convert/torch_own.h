/* What PyTorch's dictionaries have no place for, in files that we write: under a key of our own,
 * which scripts of others leave alone, so that what we wrote we read again without loss. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_TORCH_OWN_H
#define CM_CONVERT_TORCH_OWN_H

#include "convert/saved.h"

#define CM_TORCH_OWN_KEY "cameo_training"

/* {"schedule": .., "schedule_name": .., "clip": {"kind", "limit"}, "accumulate": ..}: what is
 * known; NULL: nothing. */
const struct cm_item *cm_torch_own_item(struct cm_arena *arena, const struct cm_saved *saved);
/* Takes it from a file's dictionary, if it has it; after all else. */
enum cm_status cm_torch_take_own(struct cm_saved *saved, const struct cm_item *tree,
                                 struct cm_error *err) CM_MUST_CHECK;

#endif
