/* What tests about models in files share: a folder that goes away, a model with tensors in every
 * place, and whether they still hold what they should. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_MODEL_CASE_H
#define CM_TESTS_MODEL_CASE_H

#include "check.h"
#include "onnx/model_file.h"

/* A fresh empty folder, removed with all in it at the end of arena. */
const char *case_folder(struct cm_arena *arena);
const char *case_path(struct cm_arena *arena, const char *folder, const char *name);
void case_write(const char *path, const void *bytes, size_t size);
struct cm_str case_read(struct cm_arena *arena, const char *path);
bool case_exists(const char *path);
size_t case_count_files(const char *folder);

/* A float tensor of n elements whose values follow from its name, in raw_data. */
void case_tensor(struct cm_arena *arena, struct cm_tensor_proto *tensor, const char *name,
                 size_t n);
/* Makes it external; length -1: no such key. */
void case_outside(struct cm_arena *arena, struct cm_tensor_proto *tensor, const char *location,
                  long long offset, long long length);
/* Tensors of 2000 bytes and more in an initializer, a constant, a branch of an If in a function,
 * both graphs of training info and a sparse initializer, beside small ones, typed ones and strings.
 * CASE_LARGE of them have over 1024 bytes. */
enum { CASE_LARGE = 8 };
void case_model(struct cm_arena *arena, struct cm_model_proto *model);
void case_save(struct cm_arena *arena, const struct cm_model_proto *model, const char *path);
/* A model with one float initializer W of n elements at folder/name, its data in folder/location at
 * offset. */
const char *case_external_model(struct cm_arena *arena, const char *folder, const char *name,
                                const char *location, size_t n, size_t offset);

/* Checks the contents of all tensors of case_model and how many of them are external. */
void case_check(struct cm_model_file *file, size_t external);

#endif
