/* Copies of models in which tensors may be moved in and out. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/model_save.h"
#include "onnx/tensor_data.h"
#include "onnx/wire.h"

static bool may_hold_tensors(const struct cm_message_info *info)
{
    static const struct cm_message_info *const holders[] = {
        &cm_model_info,    &cm_graph_info,    &cm_node_info,   &cm_attribute_info,
        &cm_function_info, &cm_training_info, &cm_sparse_info, &cm_tensor_info,
    };

    for (size_t i = 0; i < CM_COUNT(holders); i++) {
        if (info == holders[i])
            return true;
    }
    return false;
}

/* Whether messages of a kind are copied too; those that are not, are shared. NULL: all are, and so
 * are lists of names, which edits change where they lie. Lists of numbers never change. */
typedef bool wanted_fn(const struct cm_message_info *info);

static void *copy_messages(struct cm_arena *arena, const struct cm_message_info *info,
                           const void *from, size_t count, wanted_fn *wanted);

static void copy_child(struct cm_arena *arena, const struct cm_field_info *field, void *msg,
                       wanted_fn *wanted)
{
    void *place = cm_field_at(msg, field);

    if (field->kind == CM_FIELD_MESSAGE) {
        void *child = cm_field_message(msg, field);
        if (!child)
            return;
        child = copy_messages(arena, field->message, child, 1, wanted);
        memcpy(place, &child, sizeof child);
    } else {
        struct cm_wire_list list = cm_field_list(msg, field);
        if (list.count == 0)
            return;
        list.items = copy_messages(arena, field->message, list.items, list.count, wanted);
        memcpy(place, &list, sizeof list);
    }
}

static void copy_names(struct cm_arena *arena, const struct cm_field_info *field, void *msg)
{
    void *place = cm_field_at(msg, field);
    struct cm_strs names;

    memcpy(&names, place, sizeof names);
    if (names.count == 0)
        return;
    struct cm_str *items = CM_NEW_ARRAY(arena, struct cm_str, names.count);
    memcpy(items, names.items, names.count * sizeof *items);
    names.items = items;
    memcpy(place, &names, sizeof names);
}

/* As deep as the messages are, which whoever made them has limited. */
static void *copy_messages(struct cm_arena *arena, const struct cm_message_info *info,
                           const void *from, size_t count, wanted_fn *wanted)
{
    char *copies = cm_arena_alloc_array(arena, count, info->size);

    memcpy(copies, from, count * info->size);
    for (int f = 0; f < info->n_fields; f++) {
        const struct cm_field_info *field = &info->fields[f];
        const bool nested = field->kind == CM_FIELD_MESSAGE || field->kind == CM_FIELD_MESSAGES;
        const bool names = field->kind == CM_FIELD_STRS && !wanted;

        if (!names && !(nested && (!wanted || wanted(field->message))))
            continue;
        for (size_t i = 0; i < count; i++) {
            char *copy = copies + i * info->size;
            if (names)
                copy_names(arena, field, copy);
            else
                copy_child(arena, field, copy, wanted);
        }
    }
    return copies;
}

struct cm_model_proto *cm_model_twin(struct cm_arena *arena, const struct cm_model_proto *model)
{
    return copy_messages(arena, &cm_model_info, model, 1, may_hold_tensors);
}

struct cm_model_file *cm_model_copy(struct cm_arena *arena, const struct cm_model_file *from)
{
    struct cm_model_file *file = CM_NEW(arena, struct cm_model_file);
    const struct cm_model_proto *model =
        copy_messages(arena, &cm_model_info, &from->model, 1, NULL);

    *file = (struct cm_model_file){.model = *model,
                                   .arena = arena,
                                   .files = from->files,
                                   .path = from->path,
                                   .folder = from->folder,
                                   .registry = from->registry,
                                   .to_ship = from->to_ship};
    return file;
}

static void set_entry(struct cm_entry_proto *entry, const char *key, struct cm_str value)
{
    entry->key = cm_str(key);
    entry->value = value;
    cm_msg_set(&entry->msg, CM_ENTRY_KEY);
    cm_msg_set(&entry->msg, CM_ENTRY_VALUE);
}

void cm_tensor_proto_put_outside(struct cm_tensor_proto *tensor, struct cm_arena *arena,
                                 struct cm_str location, uint64_t offset, uint64_t length)
{
    struct cm_entry_proto *entries = CM_NEW_ARRAY(arena, struct cm_entry_proto, 3);

    cm_tensor_proto_clear_values(tensor, -1);
    set_entry(&entries[0], "location", location);
    set_entry(&entries[1], "offset", cm_arena_printf(arena, "%llu", (unsigned long long)offset));
    set_entry(&entries[2], "length", cm_arena_printf(arena, "%llu", (unsigned long long)length));
    tensor->external_data = (struct cm_entries){entries, 3};
    cm_msg_set(&tensor->msg, CM_TENSOR_EXTERNAL_DATA);
    if (tensor->data_location != CM_LOCATION_EXTERNAL) {
        tensor->data_location = CM_LOCATION_EXTERNAL;
        cm_msg_set(&tensor->msg, CM_TENSOR_DATA_LOCATION);
    }
}

void cm_tensor_proto_put_inside(struct cm_tensor_proto *tensor, struct cm_str bytes)
{
    cm_tensor_proto_clear_values(tensor, -1);
    cm_tensor_proto_leave_file(tensor);
    tensor->raw_data = bytes;
    cm_msg_set(&tensor->msg, CM_TENSOR_RAW_DATA);
}

void cm_tensor_proto_relocate(struct cm_tensor_proto *tensor, struct cm_arena *arena,
                              struct cm_str location)
{
    const struct cm_entries old = tensor->external_data;
    struct cm_entry_proto *entries = CM_NEW_ARRAY(arena, struct cm_entry_proto, old.count);

    memcpy(entries, old.items, old.count * sizeof *entries);
    tensor->external_data.items = entries;
    for (size_t i = 0; i < old.count; i++) {
        if (!cm_str_is(entries[i].key, "location"))
            continue;
        entries[i].value =
            location; /* the entry alone is changed: its neighbours keep their bytes */
        cm_msg_set(&entries[i].msg, CM_ENTRY_VALUE);
    }
}

bool cm_tensor_proto_location(const struct cm_tensor_proto *tensor, struct cm_str *location)
{
    struct cm_external_place place;

    if (tensor->data_location != CM_LOCATION_EXTERNAL ||
        cm_external_place(tensor, &place, NULL) != CM_OK)
        return false;
    *location = place.location;
    return true;
}
