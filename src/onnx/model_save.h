/* What the files of onnx/ that open and save models share; nobody else includes it. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_ONNX_MODEL_SAVE_H
#define CM_ONNX_MODEL_SAVE_H

#include "onnx/model_file.h"

/* What bytes that cannot be decoded look like, for people: "JSON"; NULL when nobody can tell. */
const char *cm_model_guess(struct cm_str bytes);

/* The form of a file by its name, unless it was chosen. */
enum cm_model_format cm_model_format_of(enum cm_model_format format, const char *path);

/* The refusal of a form that nobody here reads or writes. */
enum cm_status cm_model_refuse_mlir(struct cm_error *err);

/* A second tree over the same contents, whose tensors may be changed without the first one
 * noticing. Messages that cannot hold tensors are shared. */
struct cm_model_proto *cm_model_twin(struct cm_arena *arena, const struct cm_model_proto *model);

/* Turns a tensor of a twin into one whose contents are outside, inside, or outside under another
 * name. */
void cm_tensor_proto_put_outside(struct cm_tensor_proto *tensor, struct cm_arena *arena,
                                 struct cm_str location, uint64_t offset, uint64_t length);
void cm_tensor_proto_put_inside(struct cm_tensor_proto *tensor, struct cm_str bytes);
void cm_tensor_proto_relocate(struct cm_tensor_proto *tensor, struct cm_arena *arena,
                              struct cm_str location);

/* Is its data external, with a location that can be read? */
bool cm_tensor_proto_location(const struct cm_tensor_proto *tensor, struct cm_str *location);

/* The external files of the model now at path; none when there is no such model. Lives in arena. */
struct cm_old_data;
struct cm_old_data *cm_old_data_find(struct cm_arena *arena, const char *path,
                                     const struct cm_mlir_form_hooks *mlir);
/* Removes those that neither the model now at path nor its neighbours use, if they are named like
 * path's own or like external_name (may be NULL). Cannot fail: what cannot be removed is left. */
void cm_old_data_remove(const struct cm_old_data *old, const char *external_name,
                        struct cm_save_report *report);

#endif
