/* Numbers that an optimizer computes in each step, outside of a training: for frameworks that keep
 * them in checkpoints. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_OPTIMIZER_NUMBERS_H
#define CM_TRAIN_OPTIMIZER_NUMBERS_H

#include "base/arena.h"
#include "train/prepare/plan.h"

/* The result of this name of the optimizer's function `numbers`, after t updates of weights with
 * these settings. NAN: the function has no such result. */
double cm_optimizer_number(struct cm_arena *arena, enum cm_update_rule rule,
                           const struct cm_plan_group *settings, int64_t t, struct cm_str name);

#endif
