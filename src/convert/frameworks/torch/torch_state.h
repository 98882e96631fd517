/* State dictionaries of PyTorch, which many frameworks wrap: weights, optimizers, schedulers. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_TORCH_STATE_H
#define CM_CONVERT_TORCH_STATE_H

#include "convert/format.h"

/* Has it both 'state' and 'param_groups'? Does it look like the state of a scheduler? */
bool cm_torch_is_optimizer(const struct cm_item *item);
bool cm_torch_is_schedule(const struct cm_item *item);

/* Adds the tensors of a state dictionary: weights, and buffers by their names (running_mean,
 * running_var, num_batches_tracked) or where no optimizer knows them. */
enum cm_status cm_torch_take_weights(struct cm_saved *saved, const struct cm_item *weights,
                                     struct cm_error *err) CM_MUST_CHECK;
/* Adds groups and slots. Indices become names: by the order of the weights taken before, group by
 * group, the shapes of slots telling which may be which; where several ways are left, names that
 * end in bias or belong to norms part decayed groups from others; what stays open is said in
 * saved->missing ("which weights are in group 1: give their names with --set"). decoupled: whether
 * weight decay is, where the state does not say; -1: nothing else says it. */
enum cm_status cm_torch_take_optimizer(struct cm_saved *saved, const struct cm_item *optimizer,
                                       int decoupled, struct cm_error *err) CM_MUST_CHECK;
/* The schedule, by the keys of its state, after the optimizer; saved->step, where something else
 * says it, is set before. LambdaLR: not known, unless somebody who knows (the Trainer's arguments)
 * says so later. */
void cm_torch_take_schedule(struct cm_saved *saved, const struct cm_item *schedule);
/* States of random generators: tensors become entries named `name` and what leads to them, the rest
 * facts. */
void cm_torch_take_random(struct cm_saved *saved, const char *name, const struct cm_item *item);
/* A file of unknown habits: finds all of those in the tree, and tells the rest as facts. */
enum cm_status cm_torch_take_tree(struct cm_saved *saved, const struct cm_item *tree,
                                  struct cm_error *err) CM_MUST_CHECK;

/* Back: the weights as a map; the optimizer as state dictionary, with indices in the order of the
 * weights group by group or (FSDP, torch.distributed.checkpoint) with names; the scheduler's state,
 * NULL where there is none. */
const struct cm_item *cm_torch_weights_item(struct cm_arena *arena, const struct cm_saved *saved);
const struct cm_item *cm_torch_optimizer_item(struct cm_arena *arena, const struct cm_saved *saved,
                                              bool by_name);
const struct cm_item *cm_torch_schedule_item(struct cm_arena *arena, const struct cm_saved *saved);
/* One file of torch.save with an item, whole or not at all. */
enum cm_status cm_torch_save_item(const struct cm_saved *saved, const char *path, const char *stem,
                                  const struct cm_item *item, struct cm_error *err) CM_MUST_CHECK;

#endif
