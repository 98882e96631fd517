/* States of optax's optimizers, told by their structure: optax stores no names and no settings. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_OPTAX_H
#define CM_CONVERT_OPTAX_H

#include "convert/saved.h"

/* A tree with its tensors taken out, so that it can be kept as JSON and filled again
 * (flax_state.h). Texts in it stand for what was there:
 *
 *   "=weights:PREFIX"       the tree of the weights whose names begin with PREFIX/
 *   "=buffers:PREFIX"       the same of buffers
 *   "=averages:PREFIX"      of moving averages of weights
 *   "=slots:SLOT:GROUP:PREFIX"  of a slot of the weights, those of one group (-1: of all)
 *   "=count:TYPE:NUMBER"    a count of updates, which goes on
 *   "=rate:GROUP:TYPE:NUMBER"  the learning rate of a group
 *   "=number:TYPE:NUMBER"   an array of one number and no axes
 *   "=kept:ROLE:NAME"       the tensor of that name and role
 *
 * Every other value v is {"=": v}. */

/* Takes the optimizer: rule, groups, slots, counts. The weights, whose names begin with
 * `prefix` ("params/", or empty), must have been taken. path is that of the state, for names and
 * messages. The result is the tree for the way back. */
const struct cm_item *cm_optax_take(struct cm_saved *saved, const struct cm_item *state,
                                    struct cm_str path, struct cm_str prefix);

/* A leaf of a tree that is not understood further: kept under its path. */
const struct cm_item *cm_jax_keep(struct cm_saved *saved, const struct cm_item *item,
                                  struct cm_str path, enum cm_saved_role role);
/* A count of updates; *count is its value if it is one. */
const struct cm_item *cm_jax_keep_count(struct cm_saved *saved, const struct cm_item *item,
                                        struct cm_str path, int64_t *count);

/* The state that optax has for the optimizer of `saved` by its rule, for trainings that come from
 * elsewhere; the same language. prefix is that of the weights' names. */
const struct cm_item *cm_optax_state(struct cm_arena *arena, const struct cm_saved *saved,
                                     struct cm_str prefix);

/* The word of optax for a slot, by its meaning; NULL: it has none. */
const char *cm_optax_slot(const char *meaning, enum cm_update_rule rule);

#endif
