/* Labels of classes. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/ml/class_labels.h"

struct cm_labels cm_labels_read(const struct cm_node *node, const char *numbers)
{
    struct cm_labels labels = {.strings = cm_node_strs(node, "classlabels_strings")};
    labels.count = labels.strings.count;
    if (!labels.count) {
        labels.numbers = cm_node_ints(node, numbers);
        labels.count = labels.numbers.count;
    }
    return labels;
}

enum cm_dtype cm_labels_type(const struct cm_labels *labels)
{
    return labels->strings.count ? CM_STRING : CM_INT64;
}

void cm_labels_store(struct cm_call *call, const struct cm_labels *labels, int64_t row,
                     size_t label)
{
    if (!call->out[0])
        return;
    if (labels->strings.count)
        ((struct cm_str *)call->out[0]->data)[row] = labels->strings.items[label];
    else
        ((int64_t *)call->out[0]->data)[row] = labels->numbers.items[label];
}
