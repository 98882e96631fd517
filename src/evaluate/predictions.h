/* What a model predicts for a data set, gathered batch by batch: rows of CSV, or arrays with one
 * row for each sample, in a file or for the caller. Who runs the model adds its outputs. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_EVALUATE_PREDICTIONS_H
#define CM_EVALUATE_PREDICTIONS_H

#include "base/arena.h"
#include "tensor/tensor.h"

struct cm_array;
struct cm_predictions;

/* Lives in arena, whose end leaves no half a file. wanted: names of outputs, separated by commas;
 * NULL: all. path: a .csv, .npz, .npy or .safetensors file; NULL: they stay arrays. Both, and the
 * names, are borrowed. */
enum cm_status cm_predictions_new(struct cm_arena *arena, const struct cm_str *outputs,
                                  size_t n_outputs, const char *wanted, const char *path,
                                  struct cm_predictions **out, struct cm_error *err) CM_MUST_CHECK;
/* Outputs that are gathered, and which output of the model number k is. */
size_t cm_predictions_count(const struct cm_predictions *p);
size_t cm_predictions_output(const struct cm_predictions *p, size_t k);
/* Before the first batch: opens the file that rows of text are written to. */
enum cm_status cm_predictions_begin(struct cm_predictions *p, struct cm_error *err) CM_MUST_CHECK;
/* The outputs of a batch, as they are gathered: the first rows of the fed ones. */
enum cm_status cm_predictions_add(struct cm_predictions *p, const struct cm_datum *const *outputs,
                                  int64_t rows, int64_t fed, struct cm_error *err) CM_MUST_CHECK;
/* Writes the file. */
enum cm_status cm_predictions_save(struct cm_predictions *p, struct cm_error *err) CM_MUST_CHECK;
/* Number k as one array, which lives in the arena. */
enum cm_status cm_predictions_array(struct cm_predictions *p, size_t k, struct cm_array *out,
                                    struct cm_error *err) CM_MUST_CHECK;

/* The rows of a sequence of maps, as models of classical learning give their scores, as a matrix;
 * every map has the same keys. A tensor is borrowed. *keys is borrowed from value; NULL: it is a
 * tensor. */
enum cm_status cm_score_matrix(const struct cm_datum *value, struct cm_tensor *out,
                               const struct cm_tensor **keys, struct cm_error *err) CM_MUST_CHECK;

#endif
