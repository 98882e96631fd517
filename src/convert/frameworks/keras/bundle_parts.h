/* What the files that write TensorFlow checkpoints share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_BUNDLE_PARTS_H
#define CM_CONVERT_BUNDLE_PARTS_H

#include "base/array.h"
#include "convert/frameworks/keras/bundle.h"

/* A variable to write. */
struct cm_bundle_output {
    struct cm_str key;
    const struct cm_saved_tensor *tensor;
    struct cm_str text; /* instead: a text */
    uint64_t offset, size;
    uint32_t crc;
};

struct cm_bundle_writing {
    struct cm_arena *arena;
    const struct cm_saved *saved;
    CM_ARRAY(struct cm_bundle_output) outputs;
    struct cm_saved_index index;
    struct cm_error *err;
};

void cm_bundle_add(struct cm_bundle_writing *w, struct cm_str key,
                   const struct cm_saved_tensor *tensor);
/* The data and the index of all outputs, as files of a folder: PREFIX.index and the like. */
enum cm_status cm_bundle_put_files(struct cm_bundle_writing *w, struct cm_folder_save *folder,
                                   struct cm_str prefix, struct cm_error *err) CM_MUST_CHECK;
/* A number as a tensor: of CM_INT64 or CM_FLOAT. */
const struct cm_saved_tensor *cm_bundle_scalar(struct cm_bundle_writing *w, enum cm_dtype dtype,
                                               double value);
/* Updates so far, as the optimizer's variable counts them: batches. */
double cm_bundle_step(const struct cm_saved *saved);
/* Adds all variables of saved, and makes the graph that has them: bundle_grow.c. */
enum cm_status cm_bundle_grow(struct cm_bundle_writing *w,
                              struct cm_bundle_graph *graph) CM_MUST_CHECK;

#endif
