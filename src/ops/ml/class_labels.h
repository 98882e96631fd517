/* Labels of classes, strings or numbers, as the classifiers give them in output 0. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_ML_CLASS_LABELS_H
#define CM_OPS_ML_CLASS_LABELS_H

#include "graph/op.h"

struct cm_labels {
    struct cm_strs strings; /* these, or */
    struct cm_int64s numbers;
    size_t count;
};

/* The strings if there are any. */
struct cm_labels cm_labels_read(const struct cm_node *node, const char *numbers);
enum cm_dtype cm_labels_type(const struct cm_labels *labels);
/* All of them, as a tensor that holds its strings itself; the caller drops it. */
enum cm_status cm_labels_tensor(const struct cm_labels *labels, struct cm_tensor *out,
                                struct cm_error *err) CM_MUST_CHECK;
/* Before labels are stored in a run: strings become the result's own, so that they may outlive the
 * model. Gives what cm_labels_store needs. */
enum cm_status cm_labels_begin(struct cm_call *call, const struct cm_labels *labels,
                               const struct cm_str **own) CM_MUST_CHECK;
/* Does nothing if output 0 is not wanted. */
void cm_labels_store(struct cm_call *call, const struct cm_labels *labels, const struct cm_str *own,
                     int64_t row, size_t label);

#endif
