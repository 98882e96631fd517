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

/* Copies strings into one buffer, which `holder` then holds. */
static enum cm_status own_strings(const struct cm_strs *strings, struct cm_str *list,
                                  struct cm_buffer *holder, struct cm_error *err)
{
    struct cm_buffer *buffer;
    size_t bytes = 0;
    for (size_t i = 0; i < strings->count; i++)
        bytes += strings->items[i].size; /* at most those of the file */
    CM_TRY(cm_buffer_new(bytes, &buffer, err));
    const enum cm_status status = cm_buffer_hold(holder, buffer, err);
    char *to = cm_buffer_data(buffer);
    for (size_t i = 0; i < strings->count; i++) {
        if (strings->items[i].size)
            memcpy(to, strings->items[i].data, strings->items[i].size);
        list[i] = (struct cm_str){to, strings->items[i].size};
        to += strings->items[i].size;
    }
    cm_buffer_drop(buffer);
    return status;
}

enum cm_status cm_labels_tensor(const struct cm_labels *labels, struct cm_tensor *out,
                                struct cm_error *err)
{
    CM_TRY(cm_tensor_new(cm_labels_type(labels), &CM_SHAPE((int64_t)labels->count), out, err));
    if (!labels->strings.count) {
        if (labels->count)
            memcpy(out->data, labels->numbers.items, labels->count * sizeof(int64_t));
        return CM_OK;
    }
    const enum cm_status status = own_strings(&labels->strings, out->data, out->buffer, err);
    if (status)
        cm_tensor_drop(out);
    return status;
}

enum cm_status cm_labels_begin(struct cm_call *call, const struct cm_labels *labels,
                               const struct cm_str **own)
{
    struct cm_tensor all;
    *own = NULL;
    if (!labels->strings.count || !call->out[0])
        return CM_OK;
    CM_TRY(cm_labels_tensor(labels, &all, call->err));
    const enum cm_status status = cm_buffer_hold(call->out[0]->buffer, all.buffer, call->err);
    *own = all.data;
    cm_tensor_drop(&all);
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
