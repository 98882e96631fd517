/* What another framework saved, brought into a model: weights matched, training prepared with the
 * checkpoint's optimizer and schedule at their position, state filled in. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_IMPORT_SAVED_H
#define CM_CONVERT_IMPORT_SAVED_H

#include "convert/match/parts.h"
#include "onnx/model_file.h"
#include "train/prepare/prepare.h"

struct cm_saved_import_options {
    struct cm_prepare_options prepare; /* loss, output, target, class_axis; and flags that win over
                                          what was read: optimizer, lr, momentum, .. */
    /* Of those whose defaults are numbers too: were they given? */
    bool has_schedule, has_clip, has_accumulate;
    const char *map;      /* rules for names, text of lines: "INITIALIZER = NAME", "/REGEX/ =
                             REPLACEMENT"; NULL: none */
    const char *settings; /* JSON text of --set; NULL: none */
    bool weights_only, partial;
};

/* One row of the table: how a tensor was matched. */
struct cm_import_match {
    struct cm_str initializer, source; /* one empty: left over on the other side */
    struct cm_str how; /* "by name", "by name without 'module.'", "by its layer, transposed" */
};

struct cm_saved_import_report {
    struct cm_import_match *matches;
    size_t n_matches;
    struct cm_findings findings;      /* notes, and as violations all that stands in the way */
    struct cm_prepare_report prepare; /* of weights only: nothing */
};

/* Changes file's model; its new contents are read from saved's files while it is saved, so that
 * saved must live in file's arena or longer. What the options say goes into saved, which tells
 * afterwards what is trained with. All that stands in the way is in one message; then the model
 * must not be used any more. */
enum cm_status cm_saved_import(struct cm_arena *arena, struct cm_model_file *file,
                               struct cm_saved *saved,
                               const struct cm_saved_import_options *options,
                               struct cm_saved_import_report *report,
                               struct cm_error *err) CM_MUST_CHECK;

#endif
