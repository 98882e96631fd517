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
/* Into output 0, if it is wanted. Strings stay the model's: the executor copies those of results.
 */
void cm_labels_store(struct cm_call *call, const struct cm_labels *labels, int64_t row,
                     size_t label);

#endif
