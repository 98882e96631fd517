/* Headers and notes of the text form, `<key: value, ..>`, by the rows of onnx/descriptor.h. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/syntax_print.h"

#include "onnx/wire.h"

static void print_item(struct cm_printer *p, const struct cm_message_info *info, const void *item)
{
    if (info == &cm_graph_info) {
        cm_print_graph(p, item);
    } else if (info == &cm_opset_info) {
        const struct cm_opset_proto *const opset = item;
        cm_put_quoted(p, opset->domain);
        cm_put_text(p, " : ");
        cm_put_int64(p, opset->version);
    } else if (info == &cm_entry_info) {
        const struct cm_entry_proto *const entry = item;
        cm_put_quoted(p, entry->key);
        cm_put_text(p, ": ");
        cm_put_quoted(p, entry->value);
    } else if (!cm_print_notes(p, info, item, UINT32_MAX)) {
        cm_put_text(p, "<>");
    }
}

static void print_list(struct cm_printer *p, const struct cm_field_info *field, const void *msg)
{
    const struct cm_wire_list list = cm_field_list(msg, field);
    const struct cm_str *const strings = list.items;
    const int64_t *const ints = list.items;

    cm_put(p, "[", 1);
    for (size_t i = 0; cm_put_next(p, i, list.count); i++) {
        if (field->kind == CM_FIELD_MESSAGES)
            print_item(p, field->message, (const char *)list.items + i * field->message->size);
        else if (field->kind == CM_FIELD_STRS)
            cm_put_quoted(p, strings[i]);
        else
            cm_put_int64(p, ints[i]);
    }
    cm_put(p, "]", 1);
}

void cm_print_field(struct cm_printer *p, const struct cm_message_info *info, const void *msg,
                    int field)
{
    const struct cm_field_info *const row = &info->fields[field];
    const void *const at = cm_field_of(msg, row);

    cm_put_text(p, row->name);
    cm_put_text(p, ": ");
    switch (row->kind) {
    case CM_FIELD_INT64:
        cm_put_int64(p, *(const int64_t *)at);
        break;
    case CM_FIELD_INT32:
        cm_put_int64(p, *(const int32_t *)at);
        break;
    case CM_FIELD_STR:
        cm_put_quoted(p, *(const struct cm_str *)at);
        break;
    case CM_FIELD_MESSAGE:
        print_item(p, row->message, cm_field_message(msg, row));
        break;
    case CM_FIELD_INT64S:
    case CM_FIELD_STRS:
    case CM_FIELD_MESSAGES:
        print_list(p, row, msg);
        break;
    default:
        cm_print_fail(p, CM_UNSUPPORTED, "%s.%s has no text form", info->name, row->name);
    }
}

bool cm_print_notes(struct cm_printer *p, const struct cm_message_info *info, const void *msg,
                    uint32_t fields)
{
    const struct cm_msg *const head = msg;
    bool any = false;

    for (int i = 0; i < info->n_fields; i++) {
        if (!(fields >> i & 1) || !cm_msg_has(head, i))
            continue;
        cm_put_text(p, any ? ", " : "<");
        cm_print_field(p, info, msg, i);
        any = true;
    }
    if (any)
        cm_put(p, ">", 1);
    return any;
}

void cm_print_entries(struct cm_printer *p, const struct cm_entries *entries)
{
    cm_put(p, "[", 1);
    for (size_t i = 0; cm_put_next(p, i, entries->count); i++)
        print_item(p, &cm_entry_info, &entries->items[i]);
    cm_put(p, "]", 1);
}
