/* Trees of JAX: nested maps with a network's weights, its other collections and the state of its
 * optimizer, as flax's TrainState has them or as users put them together. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_FLAX_STATE_H
#define CM_CONVERT_FLAX_STATE_H

#include "convert/saved.h"

/* Takes all of a tree: 'params' are weights (all tensors are, where there is no 'params'), other
 * collections buffers, 'opt_state' is optax's, 'step' and 'epoch' the position. Names are paths,
 * "params/fc1/kernel". The shape of the tree becomes the fact "jax.tree", for the way back. */
enum cm_status cm_jax_take_tree(struct cm_saved *saved, const struct cm_item *tree,
                                struct cm_error *err) CM_MUST_CHECK;

/* The tree that a training is saved as: the one that it was read from, with its tensors as they are
 * now; for trainings from elsewhere that of a TrainState. */
enum cm_status cm_jax_tree(struct cm_arena *arena, const struct cm_saved *saved,
                           const struct cm_item **out, struct cm_error *err) CM_MUST_CHECK;

#endif
