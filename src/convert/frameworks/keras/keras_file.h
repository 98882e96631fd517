/* Variables of Keras files: in HDF5 they have numbers, not names, below the layer that has them. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_KERAS_FILE_H
#define CM_CONVERT_KERAS_FILE_H

#include "bytes/hdf5.h"
#include "convert/format.h"
#include "convert/frameworks/keras/keras_optimizer.h"

/* The names of a layer's variables, as Keras gives them: of a layer of this class ("dense"; empty:
 * not known) with variables of these shapes. config is the layer's own, or NULL. Every name is set;
 * what cannot be told is a number. Returns how many of them, the first ones, are trained. */
size_t cm_keras_name_variables(struct cm_arena *arena, struct cm_str class_name,
                               const struct cm_item *config, const struct cm_shape *shapes,
                               size_t count, struct cm_str *names);
/* The class whose layers have variables of these names and shapes, as groups are called ("dense",
 * "conv2d"); NULL: none is known. cell: it is a layer around the cell that has them. */
const char *cm_keras_guess_class(const struct cm_str *names, const struct cm_shape *shapes,
                                 size_t count, bool *is_cell);

/* The groups of a weights file. */
enum cm_status cm_keras_read_weights(struct cm_saved *saved, const struct cm_hdf5_object *root,
                                     const struct cm_item *config,
                                     struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_keras_read_legacy(struct cm_saved *saved, const struct cm_hdf5_object *root,
                                    struct cm_error *err) CM_MUST_CHECK;

/* The row's write. */
enum cm_status cm_keras_write_weights(const struct cm_saved *saved, const char *path,
                                      struct cm_error *err);

#endif
