/* Labels of classes. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/ml/labels.h"

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

enum cm_status cm_labels_begin(struct cm_call *call, const struct cm_labels *labels,
                               const struct cm_str **own)
{
    const struct cm_strs *strings = &labels->strings;
    struct cm_buffer *buffer;
    size_t bytes = 0;
    *own = NULL;
    if (!strings->count || !call->out[0])
        return CM_OK;
    for (size_t i = 0; i < strings->count; i++)
        bytes += strings->items[i].size;
    CM_TRY(cm_buffer_new(bytes + strings->count * sizeof **own, &buffer, call->err));
    const enum cm_status status = cm_buffer_hold(call->out[0]->buffer, buffer, call->err);
    struct cm_str *list = cm_buffer_data(buffer);
    char *to = (char *)(list + strings->count);
    for (size_t i = 0; i < strings->count; i++) {
        if (strings->items[i].size)
            memcpy(to, strings->items[i].data, strings->items[i].size);
        list[i] = (struct cm_str){to, strings->items[i].size};
        to += strings->items[i].size;
    }
    *own = list;
    cm_buffer_drop(buffer);
    return status;
}

void cm_labels_store(struct cm_call *call, const struct cm_labels *labels, const struct cm_str *own,
                     int64_t row, size_t label)
{
    if (!call->out[0])
        return;
    if (own)
        ((struct cm_str *)call->out[0]->data)[row] = own[label];
    else
        ((int64_t *)call->out[0]->data)[row] = labels->numbers.items[label];
}
