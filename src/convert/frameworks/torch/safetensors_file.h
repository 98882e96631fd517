/* Tensors of .safetensors files, as weights of a training and back. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_SAFETENSORS_FILE_H
#define CM_CONVERT_SAFETENSORS_FILE_H

#include "convert/format.h"

/* By its first bytes: a length, then the brace of JSON. */
bool cm_safetensors_is_file(struct cm_str head);
/* The tensors of a file as a map of a state dictionary, in the order of the file; `file` is the
 * name for people. */
enum cm_status cm_safetensors_item(struct cm_arena *arena, struct cm_str bytes, struct cm_str file,
                                   struct cm_item *map, struct cm_error *err) CM_MUST_CHECK;

/* One file with these entries of saved, written as a stream. `numbers` are those of the entries. */
enum cm_status cm_safetensors_save(const struct cm_saved *saved, const size_t *numbers,
                                   size_t count, const char *path,
                                   struct cm_error *err) CM_MUST_CHECK;
/* The entries that are weights of the network: numbers of weights and buffers, the master copy
 * where there is one, each name once. */
size_t cm_saved_weights(struct cm_arena *arena, const struct cm_saved *saved, size_t **numbers);

#endif
