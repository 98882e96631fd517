/* The settings of an optimizer as a group of PyTorch has them, by the words of its file in
 * data/training/optimizers/. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_TORCH_SETTINGS_H
#define CM_CONVERT_TORCH_SETTINGS_H

#include "convert/saved.h"

/* What the group says; what it does not say stays unknown. */
struct cm_plan_group cm_torch_settings(const struct cm_item *group, enum cm_update_rule rule);
/* 1 or 0; -1: the group does not say. */
int cm_torch_flag(const struct cm_item *group, const char *key);
/* Puts all settings into the group, because loading replaces the groups. */
void cm_torch_put_settings(struct cm_arena *arena, const struct cm_saved *saved,
                           const struct cm_plan_group *settings, struct cm_item *group);

/* Puts the counts of a weight that has seen `step` updates into its state. */
void cm_torch_put_counts(struct cm_arena *arena, const struct cm_saved *saved,
                         const struct cm_plan_group *settings, int64_t step, struct cm_item *state);
/* A tensor of one float without axes. */
const struct cm_item *cm_torch_scalar(struct cm_arena *arena, double number);
bool cm_torch_is_count(enum cm_update_rule rule, struct cm_str key);

/* The key of a group that says by how much the rate falls in each step, or empty. */
struct cm_str cm_torch_decay_key(enum cm_update_rule rule);
/* Is the schedule what that key says? Then lr is the rate that the schedule begins with. */
bool cm_torch_decays_itself(const struct cm_saved *saved);

#endif
