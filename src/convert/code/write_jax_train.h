/* JAX: train.py and the state it begins with. Not for other folders. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_WRITE_JAX_TRAIN_H
#define CM_CONVERT_WRITE_JAX_TRAIN_H

#include "convert/code/code_state.h"

/* Writes both where the model has training info that optax can go on with; otherwise a note says
 * why not. is_eager: jax.jit cannot trace the model. */
enum cm_status cm_jax_write_training(struct cm_code *code, struct cm_folder_save *folder,
                                     bool is_eager, struct cm_error *err) CM_MUST_CHECK;
/* The map of a path, "params.fc1.weight", below a tree; missing ones are made, as `made` knows. */
void cm_jax_plant(struct cm_code *code, struct cm_map *made, struct cm_item *tree,
                  struct cm_str path, const struct cm_item *leaf);

#endif
