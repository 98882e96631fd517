/* Checkpoints of PyTorch Lightning, which NeMo's are too. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_LIGHTNING_H
#define CM_CONVERT_LIGHTNING_H

#include "convert/format.h"

/* What torch.save wrote as a tree of plain data: objects of omegaconf become what they hold. */
const struct cm_item *cm_plain_item(struct cm_arena *arena, const struct cm_item *item);
enum cm_status cm_lightning_take(struct cm_saved *saved, const struct cm_item *tree,
                                 struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_lightning_write(const struct cm_saved *saved, const char *path,
                                  struct cm_error *err) CM_MUST_CHECK;

#endif
