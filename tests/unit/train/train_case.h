/* What tests of train/ share: trainers from text and from files, batches of rows. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_TRAIN_CASE_H
#define CM_TESTS_TRAIN_CASE_H

#include "check.h"
#include "io/arrays.h"
#include "train/prepare/prepare.h"
#include "train/trainer.h"

/* A model in text form; the test fails if it cannot be read. */
struct cm_model_file *train_model(struct cm_arena *arena, const char *text);
/* A trainer over it that checks for NaN, one thread; the test fails if it cannot be made. */
struct cm_trainer *train_open(struct cm_arena *arena, struct cm_model_file *file);
struct cm_trainer *train_of(struct cm_arena *arena, const char *text);
/* The status of making one, for models that must be refused. */
enum cm_status train_try(struct cm_arena *arena, const char *text, struct cm_error *err);

/* How to prepare a model, all else as usual. */
struct cm_prepare_options train_with(const char *loss, const char *optimizer, double lr);

/* Element i of the variable called name. */
double train_value(const struct cm_trainer *trainer, const char *name, int64_t i);

/* Rows [first, first + count) of every array a trainer wants, wrapping around. in has room for
 * them; memory is arena's. */
void train_batch(struct cm_arena *arena, const struct cm_trainer *trainer,
                 const struct cm_arrays *data, int64_t first, int64_t count,
                 const struct cm_tensor **in);

/* The numbers in the brackets after `"key": ` of a JSON text, nesting ignored; their count. */
size_t train_numbers(struct cm_str json, const char *key, double *out, size_t room);

#endif
