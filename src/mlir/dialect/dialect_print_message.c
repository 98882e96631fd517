/* Messages as attributes of the ONNX dialect: by the rows of onnx/descriptor.h, so that what has no
 * form of its own in the dialect is kept all the same. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/dialect/dialect_names.h"
#include "mlir/dialect/dialect_print.h"
#include "onnx/syntax_names.h"
#include "onnx/tensor_data.h"
#include "onnx/wire.h"

static void put_int(struct cm_dialect_out *o, int64_t value, const char *type)
{
    cm_put_int64(&o->pen, value);
    cm_put_text(&o->pen, type);
}

static void put_list(struct cm_dialect_out *o, const struct cm_field_info *field,
                     struct cm_wire_list list)
{
    const int64_t *const ints = list.items;
    const float *const floats = list.items;
    const struct cm_str *const strings = list.items;

    cm_put_text(&o->pen, "[");
    for (size_t i = 0; i < list.count && o->pen.status == CM_OK; i++) {
        if (i)
            cm_put_text(&o->pen, ", ");
        if (field->kind == CM_FIELD_MESSAGES)
            cm_dialect_put_message(o, field->message,
                                   (const char *)list.items + i * field->message->size);
        else if (field->kind == CM_FIELD_STRS)
            cm_dialect_put_quoted(o, strings[i]);
        else if (field->kind == CM_FIELD_FLOATS)
            cm_dialect_put_f32(o, floats[i]);
        else
            cm_put_int64(&o->pen, ints[i]);
    }
    cm_put_text(&o->pen, "]");
}

void cm_dialect_put_field(struct cm_dialect_out *o, const struct cm_field_info *field,
                          const void *msg)
{
    const void *const at = cm_field_of(msg, field);
    const struct cm_wire_list list =
        cm_wire_kind(field->kind)->list ? cm_field_list(msg, field) : (struct cm_wire_list){0};

    switch (field->kind) {
    case CM_FIELD_INT64:
        put_int(o, *(const int64_t *)at, " : si64");
        break;
    case CM_FIELD_INT32:
        put_int(o, *(const int32_t *)at, " : si32");
        break;
    case CM_FIELD_FLOAT:
        cm_dialect_put_f32(o, *(const float *)at);
        break;
    case CM_FIELD_STR:
        cm_dialect_put_quoted(o, *(const struct cm_str *)at);
        break;
    case CM_FIELD_MESSAGE:
        cm_dialect_put_message(o, field->message, cm_field_message(msg, field));
        break;
    case CM_FIELD_INT64S:
    case CM_FIELD_FLOATS:
    case CM_FIELD_STRS:
    case CM_FIELD_MESSAGES:
        put_list(o, field, list);
        break;
    case CM_FIELD_PACKED_VARINT:
    case CM_FIELD_PACKED_4:
    case CM_FIELD_PACKED_8:
        cm_dialect_put_quoted(o, (struct cm_str){list.items, list.count});
        break;
    }
}

void cm_dialect_put_fields(struct cm_dialect_dict *dict, const struct cm_message_info *info,
                           const void *msg, uint32_t skipped)
{
    for (int i = 0; i < info->n_fields; i++) {
        if (!cm_msg_has(msg, i) || skipped >> i & 1)
            continue;
        cm_dialect_put_key(dict, info->fields[i].name);
        cm_dialect_put_field(dict->out, &info->fields[i], msg);
    }
}

static void put_tensor(struct cm_dialect_out *o, const struct cm_tensor_proto *tensor);

/* Messages that have a form of their own; false: this one is told field by field. */
static bool put_special(struct cm_dialect_out *o, const struct cm_message_info *info,
                        const void *msg)
{
    struct cm_dialect_dict dict = {o, "", false};

    if (info == &cm_entry_info) {
        const struct cm_entry_proto *const entry = msg;
        if (!cm_msg_has(&entry->msg, CM_ENTRY_KEY) || !cm_msg_has(&entry->msg, CM_ENTRY_VALUE))
            return false;
        cm_put_text(&o->pen, "[");
        cm_dialect_put_quoted(o, entry->key);
        cm_put_text(&o->pen, ", ");
        cm_dialect_put_quoted(o, entry->value);
        cm_put_text(&o->pen, "]");
        return true;
    }
    if (info == &cm_type_info) {
        if (!cm_dialect_type_is_whole(msg) || cm_dialect_dim_params(o, msg).size)
            return false;
        cm_put_str(&o->pen, cm_dialect_type_text(o, msg));
        return true;
    }
    if (info == &cm_value_info_info) {
        cm_dialect_put_declared(&dict, msg, CM_STR_NONE);
        cm_dialect_end(&dict);
        return true;
    }
    if (info == &cm_tensor_info) {
        put_tensor(o, msg);
        return true;
    }
    return false;
}

void cm_dialect_put_message(struct cm_dialect_out *o, const struct cm_message_info *info,
                            const void *msg)
{
    struct cm_dialect_dict dict = {o, "", false};

    if (info == &cm_graph_info) {
        cm_print_fail(&o->pen, CM_UNSUPPORTED,
                      "a graph in an attribute that is not of type graph or graphs has no form in "
                      "the ONNX dialect");
        return;
    }
    if (!msg || o->pen.depth >= CM_DIALECT_ATTRIBUTE_DEPTH) {
        cm_print_fail(&o->pen, CM_LIMIT, "messages are nested more than %d deep",
                      CM_DIALECT_ATTRIBUTE_DEPTH);
        return;
    }
    o->pen.depth++;
    if (!put_special(o, info, msg)) {
        cm_dialect_put_fields(&dict, info, msg, 0);
        cm_dialect_end(&dict);
    }
    o->pen.depth--;
}

void cm_dialect_put_declared(struct cm_dialect_dict *dict, const struct cm_value_info_proto *value,
                             struct cm_str printed)
{
    struct cm_dialect_out *const o = dict->out;
    const struct cm_type_proto *const type =
        cm_msg_has(&value->msg, CM_VALUE_INFO_TYPE) ? value->type : NULL;
    const bool whole = type && cm_dialect_type_is_whole(type);
    const struct cm_str text = whole ? cm_dialect_type_text(o, type) : CM_STR(CM_DIALECT_UNKNOWN);
    const struct cm_str names = whole ? cm_dialect_dim_params(o, type) : CM_STR_NONE;

    if (names.size) {
        cm_dialect_put_key(dict, "dim_params");
        cm_dialect_put_quoted(o, names);
    }
    cm_dialect_put_fields(dict, &cm_value_info_info, value,
                          CM_BIT(CM_VALUE_INFO_TYPE) | CM_BIT(CM_VALUE_INFO_METADATA_PROPS) |
                              CM_BIT(CM_VALUE_INFO_NAME));
    cm_dialect_put_fields(dict, &cm_value_info_info, value,
                          CM_BIT(CM_VALUE_INFO_TYPE) | CM_BIT(CM_VALUE_INFO_DOC_STRING) |
                              CM_BIT(CM_VALUE_INFO_NAME));
    cm_dialect_put_fields(dict, &cm_value_info_info, value, ~CM_BIT(CM_VALUE_INFO_NAME));
    if (type && !whole) {
        struct cm_dialect_dict inside = {o, "", false};
        cm_dialect_put_key(dict, "type_proto");
        cm_dialect_put_fields(&inside, &cm_type_info, type, 0);
        cm_dialect_end(&inside);
    } else if (printed.size ? !cm_str_equal(text, printed) : type != NULL) {
        cm_dialect_put_key(dict, "type");
        cm_put_str(&o->pen, text);
    }
}

static const uint32_t value_fields = CM_BIT(CM_TENSOR_FLOAT_DATA) | CM_BIT(CM_TENSOR_INT32_DATA) |
                                     CM_BIT(CM_TENSOR_STRING_DATA) | CM_BIT(CM_TENSOR_INT64_DATA) |
                                     CM_BIT(CM_TENSOR_RAW_DATA) | CM_BIT(CM_TENSOR_DOUBLE_DATA) |
                                     CM_BIT(CM_TENSOR_UINT64_DATA);

/* What the type of the dense values says. */
static const uint32_t type_fields = CM_BIT(CM_TENSOR_DIMS) | CM_BIT(CM_TENSOR_DATA_TYPE);

/* Would the values, put into the field where the tensor has them, be the same bytes? */
static bool field_is_plain(struct cm_dialect_out *o, const struct cm_tensor_proto *tensor,
                           const struct cm_tensor *values)
{
    const uint32_t present = tensor->msg.has & value_fields;
    struct cm_tensor_proto again = *tensor;
    size_t room;

    if (values->type == CM_STRING)
        return (present & ~CM_BIT(CM_TENSOR_STRING_DATA)) == 0;
    if (present & (present - 1))
        return false;
    if (!present)
        return cm_tensor_count(values) == 0;
    if (present == CM_BIT(CM_TENSOR_RAW_DATA))
        return tensor->raw_data.size == cm_tensor_bytes(values) &&
               cm_tensor_padding_is_clear(values);
    if (cm_tensor_count(values) == 0 || !cm_tensor_proto_room(&again, values, &room))
        return false;
    uint8_t *const bytes = cm_arena_alloc(o->arena, room + 1);
    cm_tensor_proto_replace(&again, values, bytes);
    for (int f = 0; f < cm_tensor_info.n_fields; f++) {
        if (!(present >> f & 1))
            continue;
        struct cm_tensor_proto before = *tensor;
        const struct cm_packed *const a = cm_tensor_proto_packed(&before, f);
        const struct cm_packed *const b = cm_tensor_proto_packed(&again, f);
        return a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
    }
    return false;
}

static bool bools_are_plain(const struct cm_tensor *values)
{
    const uint8_t *const bytes = values->data;

    for (int64_t i = 0; values->type == CM_BOOL && i < cm_tensor_count(values); i++)
        if (bytes[i] > 1)
            return false;
    return true;
}

static void drop_tensor(void *tensor)
{
    cm_tensor_drop(tensor);
}

void cm_dialect_drop(struct cm_dialect_out *o, struct cm_tensor *values)
{
    if (!values)
        return;
    cm_arena_forget(o->arena, drop_tensor, values);
    cm_tensor_drop(values);
}

enum cm_dialect_tensor_form cm_dialect_tensor_form(struct cm_dialect_out *o,
                                                   const struct cm_tensor_proto *tensor,
                                                   struct cm_tensor **out)
{
    struct cm_shape shape;

    *out = NULL;
    if (!cm_dialect_element(tensor->data_type) || cm_tensor_proto_shape(tensor, &shape, NULL))
        return CM_DIALECT_FIELDS;
    if (tensor->data_location == CM_LOCATION_EXTERNAL)
        return tensor->msg.has & value_fields ? CM_DIALECT_FIELDS : CM_DIALECT_EXTERNAL;
    if (cm_msg_has(&tensor->msg, CM_TENSOR_SEGMENT) || cm_tensor_proto_check(tensor, NULL))
        return CM_DIALECT_FIELDS;
    struct cm_tensor *const values = CM_NEW(o->arena, struct cm_tensor);
    cm_arena_defer(o->arena, drop_tensor, values);
    const enum cm_status status = cm_tensor_proto_load(tensor, NULL, values, o->pen.err);
    if (status != CM_OK && tensor->later && o->pen.status == CM_OK)
        o->pen.status = status; /* the contents are elsewhere and could not be read */
    if (status == CM_OK && field_is_plain(o, tensor, values) && bools_are_plain(values)) {
        *out = values;
        return CM_DIALECT_DENSE;
    }
    cm_dialect_drop(o, values);
    return CM_DIALECT_FIELDS;
}

/* Where values are kept, unless it is the usual place. */
static const char *storage_of(const struct cm_tensor_proto *tensor)
{
    const uint32_t present = tensor->msg.has & value_fields;

    if (tensor->data_type == CM_STRING || present == CM_BIT(CM_TENSOR_RAW_DATA))
        return NULL;
    return present ? "typed" : "none";
}

static uint32_t skipped_fields(enum cm_dialect_tensor_form form, uint32_t skipped)
{
    if (form == CM_DIALECT_FIELDS)
        return skipped;
    skipped |= type_fields | value_fields;
    return form == CM_DIALECT_EXTERNAL ? skipped | CM_BIT(CM_TENSOR_DATA_LOCATION) : skipped;
}

bool cm_dialect_has_tensor_notes(const struct cm_tensor_proto *tensor,
                                 enum cm_dialect_tensor_form form, uint32_t skipped)
{
    return (tensor->msg.has & ~skipped_fields(form, skipped)) ||
           (form == CM_DIALECT_DENSE && storage_of(tensor));
}

void cm_dialect_put_tensor_notes(struct cm_dialect_dict *dict, const struct cm_tensor_proto *tensor,
                                 enum cm_dialect_tensor_form form, uint32_t skipped)
{
    const char *const storage = form == CM_DIALECT_DENSE ? storage_of(tensor) : NULL;

    cm_dialect_put_fields(dict, &cm_tensor_info, tensor, skipped_fields(form, skipped));
    if (storage) {
        cm_dialect_put_key(dict, "storage");
        cm_dialect_put_quoted(dict->out, cm_str(storage));
    }
}

static void put_tensor(struct cm_dialect_out *o, const struct cm_tensor_proto *tensor)
{
    struct cm_dialect_dict dict = {o, "", false};
    struct cm_tensor *values;
    const enum cm_dialect_tensor_form form = cm_dialect_tensor_form(o, tensor, &values);

    if (form == CM_DIALECT_DENSE && !cm_dialect_has_tensor_notes(tensor, form, 0)) {
        cm_dialect_put_dense(o, values);
    } else {
        if (form == CM_DIALECT_DENSE) {
            cm_dialect_put_key(&dict, "dense");
            cm_dialect_put_dense(o, values);
        } else if (form == CM_DIALECT_EXTERNAL) {
            cm_dialect_put_key(&dict, "type");
            cm_put_str(&o->pen, cm_dialect_tensor_type(o, tensor));
        }
        cm_dialect_put_tensor_notes(&dict, tensor, form, 0);
        cm_dialect_end(&dict);
    }
    cm_dialect_drop(o, values);
}
