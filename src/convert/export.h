/* A model's weights and training as another framework saves them. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_EXPORT_H
#define CM_CONVERT_EXPORT_H

#include "convert/format.h"
#include "onnx/model_file.h"

struct cm_export_options {
    const char *to;    /* name of a format */
    bool weights_only; /* no optimizer */
    struct cm_write_options write;
};

/* What the model holds as if a framework had saved it: weights under the framework's names with the
 * exporter's changes undone, slots, groups, schedule, position. For a model that was never
 * imported: its initializers by their own names, the optimizer as prepare wrote it. Bytes stay the
 * model's. */
enum cm_status cm_export_gather(struct cm_arena *arena, const struct cm_model_file *file,
                                struct cm_saved **out, struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_export(struct cm_arena *arena, const struct cm_model_file *file, const char *path,
                         const struct cm_export_options *options,
                         struct cm_error *err) CM_MUST_CHECK;

#endif
