/* Messages out of attributes, by the rows of onnx/descriptor.h. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/dialect/dialect_names.h"
#include "mlir/dialect/dialect_read.h"
#include "onnx/syntax_names.h"
#include "onnx/wire.h"

#include <stdlib.h>

enum cm_status cm_dialect_refuse(const struct cm_dialect_reader *r, const char *at,
                                 enum cm_status status, const char *format, ...)
{
    char reason[CM_ERROR_SIZE / 2];
    va_list args;

    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    return cm_lex_fail_at(&r->tree.lex, at, status, "%s", reason);
}

bool cm_dialect_is_real(const struct cm_dialect_attr *attr)
{
    return attr->kind == CM_DIALECT_ATTR_NUMBER &&
           (!attr->whole ||
            (attr->type.kind == CM_DIALECT_TYPE_ELEMENT && cm_dtype_is_float(attr->type.element)));
}

enum cm_status cm_dialect_read_int(struct cm_dialect_reader *r, const struct cm_dialect_attr *attr,
                                   int64_t *out)
{
    if (attr->kind != CM_DIALECT_ATTR_NUMBER || cm_dialect_is_real(attr))
        return cm_dialect_refuse(r, attr->at, CM_BAD_MODEL, "expected a whole number");
    if (!cm_str_to_int64(attr->text, out))
        return cm_dialect_refuse(r, attr->at, CM_BAD_MODEL, "'%.*s' is not a number of 64 bits",
                                 CM_STR_FMT(attr->text));
    return CM_OK;
}

static enum cm_status dialect_read_float(struct cm_dialect_reader *r,
                                         const struct cm_dialect_attr *attr, float *out)
{
    const struct cm_number_text number = {attr->text, false};

    if (attr->kind != CM_DIALECT_ATTR_NUMBER || !cm_dialect_is_real(attr))
        return cm_dialect_refuse(r, attr->at, CM_BAD_MODEL,
                                 "expected a number of type f32, such as 1.000000e+00 : f32");
    if (!cm_str_starts(attr->text, "0x"))
        return cm_number_to_float(&r->tree.lex, &number, out);
    const struct cm_str text = cm_arena_str(r->arena, attr->text);
    const unsigned long long bits = strtoull(cm_str_text(text), NULL, 16);
    const uint32_t low = (uint32_t)bits;
    if (text.size > 10)
        return cm_dialect_refuse(r, attr->at, CM_BAD_MODEL, "more bits than f32 has");
    memcpy(out, &low, sizeof *out);
    return CM_OK;
}

enum cm_status cm_dialect_read_str(struct cm_dialect_reader *r, const struct cm_dialect_attr *attr,
                                   struct cm_str *out)
{
    if (attr->kind != CM_DIALECT_ATTR_STRING)
        return cm_dialect_refuse(r, attr->at, CM_BAD_MODEL, "expected a string");
    *out = attr->text;
    return CM_OK;
}

static size_t item_size(const struct cm_field_info *field)
{
    switch (field->kind) {
    case CM_FIELD_MESSAGES:
        return field->message->size;
    case CM_FIELD_STRS:
        return sizeof(struct cm_str);
    case CM_FIELD_FLOATS:
        return sizeof(float);
    default:
        return sizeof(int64_t);
    }
}

static enum cm_status read_item(struct cm_dialect_reader *r, const struct cm_field_info *field,
                                const struct cm_dialect_attr *attr, void *out)
{
    switch (field->kind) {
    case CM_FIELD_MESSAGES:
        return cm_dialect_read_message(r, field->message, attr, out);
    case CM_FIELD_STRS:
        return cm_dialect_read_str(r, attr, out);
    case CM_FIELD_FLOATS:
        return dialect_read_float(r, attr, out);
    default:
        return cm_dialect_read_int(r, attr, out);
    }
}

static enum cm_status read_list(struct cm_dialect_reader *r, const struct cm_field_info *field,
                                const struct cm_dialect_attr *attr, void *msg)
{
    const size_t size = item_size(field);

    if (attr->kind != CM_DIALECT_ATTR_ARRAY)
        return cm_dialect_refuse(r, attr->at, CM_BAD_MODEL, "expected a list in brackets");
    struct cm_wire_list list = {cm_arena_alloc_array(r->arena, attr->items.count, size),
                                attr->items.count};
    for (size_t i = 0; i < list.count; i++)
        CM_TRY(read_item(r, field, &attr->items.items[i], (char *)list.items + i * size));
    memcpy(cm_field_at(msg, field), &list, sizeof list);
    return CM_OK;
}

enum cm_status cm_dialect_read_field(struct cm_dialect_reader *r,
                                     const struct cm_message_info *info, int f,
                                     const struct cm_dialect_attr *attr, void *msg)
{
    const struct cm_field_info *const field = &info->fields[f];
    void *const at = cm_field_at(msg, field);
    int64_t number;
    struct cm_str text = {0};

    switch (field->kind) {
    case CM_FIELD_INT64:
        CM_TRY(cm_dialect_read_int(r, attr, at));
        break;
    case CM_FIELD_INT32:
        CM_TRY(cm_dialect_read_int(r, attr, &number));
        if (number < INT32_MIN || number > INT32_MAX)
            return cm_dialect_refuse(r, attr->at, CM_BAD_MODEL, "%s does not fit in 32 bits",
                                     field->name);
        *(int32_t *)at = (int32_t)number;
        break;
    case CM_FIELD_FLOAT:
        CM_TRY(dialect_read_float(r, attr, at));
        break;
    case CM_FIELD_STR:
        CM_TRY(cm_dialect_read_str(r, attr, at));
        break;
    case CM_FIELD_MESSAGE: {
        if (field->message == &cm_graph_info)
            return cm_dialect_refuse(r, attr->at, CM_BAD_MODEL, "graphs are regions");
        void *const child = cm_arena_alloc(r->arena, field->message->size);
        CM_TRY(cm_dialect_read_message(r, field->message, attr, child));
        memcpy(at, &child, sizeof child);
        break;
    }
    case CM_FIELD_INT64S:
    case CM_FIELD_FLOATS:
    case CM_FIELD_STRS:
    case CM_FIELD_MESSAGES:
        if (field->message == &cm_graph_info)
            return cm_dialect_refuse(r, attr->at, CM_BAD_MODEL, "graphs are regions");
        CM_TRY(read_list(r, field, attr, msg));
        break;
    case CM_FIELD_PACKED_VARINT:
    case CM_FIELD_PACKED_4:
    case CM_FIELD_PACKED_8:
        CM_TRY(cm_dialect_read_str(r, attr, &text));
        if ((field->kind == CM_FIELD_PACKED_4 && text.size % 4) ||
            (field->kind == CM_FIELD_PACKED_8 && text.size % 8))
            return cm_dialect_refuse(r, attr->at, CM_BAD_MODEL, "%s has %zu bytes", field->name,
                                     text.size);
        memcpy(at, &(struct cm_packed){(const uint8_t *)text.data, text.size},
               sizeof(struct cm_packed));
        break;
    }
    cm_msg_set(msg, f);
    return CM_OK;
}

static bool is_among(struct cm_str name, const char *const *others)
{
    for (; others && *others; others++)
        if (cm_str_is(name, *others))
            return true;
    return false;
}

enum cm_status cm_dialect_read_fields(struct cm_dialect_reader *r,
                                      const struct cm_message_info *info,
                                      const struct cm_dialect_entries *entries, const char *prefix,
                                      uint32_t allowed, const char *const *others, void *msg)
{
    const size_t skip = strlen(prefix);

    for (size_t i = 0; i < entries->count; i++) {
        const struct cm_dialect_entry *const entry = &entries->items[i];
        if (!cm_str_starts(entry->key, prefix))
            continue;
        const struct cm_str name = {entry->key.data + skip, entry->key.size - skip};
        const int field = cm_message_field_named(info, name);
        if (is_among(name, others))
            continue;
        if (field < 0 || !(allowed >> field & 1))
            return cm_dialect_refuse(r, entry->at, CM_BAD_MODEL,
                                     "attribute '%.*s' means nothing here", CM_STR_FMT(entry->key));
        if (cm_msg_has(msg, field))
            return cm_dialect_refuse(r, entry->at, CM_BAD_MODEL, "'%.*s' appears twice",
                                     CM_STR_FMT(entry->key));
        CM_TRY(cm_dialect_read_field(r, info, field, &entry->value, msg));
    }
    return CM_OK;
}

/* ["key", "value"] */
static enum cm_status read_pair(struct cm_dialect_reader *r, const struct cm_dialect_attr *attr,
                                struct cm_entry_proto *out)
{
    if (attr->items.count != 2)
        return cm_dialect_refuse(r, attr->at, CM_BAD_MODEL, "expected a key and a value");
    CM_TRY(cm_dialect_read_str(r, &attr->items.items[0], &out->key));
    CM_TRY(cm_dialect_read_str(r, &attr->items.items[1], &out->value));
    cm_msg_set(&out->msg, CM_ENTRY_KEY);
    cm_msg_set(&out->msg, CM_ENTRY_VALUE);
    return CM_OK;
}

enum cm_status cm_dialect_read_message(struct cm_dialect_reader *r,
                                       const struct cm_message_info *info,
                                       const struct cm_dialect_attr *attr, void *msg)
{
    const bool is_dict = attr->kind == CM_DIALECT_ATTR_DICT;

    if (info == &cm_entry_info && attr->kind == CM_DIALECT_ATTR_ARRAY)
        return read_pair(r, attr, msg);
    if (info == &cm_type_info && attr->kind == CM_DIALECT_ATTR_TYPE &&
        attr->type.kind == CM_DIALECT_TYPE_PROTO) {
        *(struct cm_type_proto *)msg = *attr->type.proto;
        return CM_OK;
    }
    if (info == &cm_value_info_info && is_dict)
        return cm_dialect_read_declared(r, &attr->entries, "", NULL, msg);
    if (info == &cm_tensor_info && is_dict)
        return cm_dialect_read_tensor(r, NULL, &attr->entries, msg);
    if (info == &cm_tensor_info)
        return cm_dialect_read_tensor(r, attr, NULL, msg);
    if (!is_dict)
        return cm_dialect_refuse(r, attr->at, CM_BAD_MODEL, "expected '{' and the fields of %s",
                                 info->name);
    return cm_dialect_read_fields(r, info, &attr->entries, "", UINT32_MAX, NULL, msg);
}

/* "0:N,2:M" */
static enum cm_status read_dim_params(struct cm_dialect_reader *r,
                                      const struct cm_dialect_attr *attr,
                                      struct cm_type_proto *type)
{
    struct cm_str rest = {0};

    CM_TRY(cm_dialect_read_str(r, attr, &rest));
    struct cm_shape_proto *const shape =
        type && type->tensor_type ? type->tensor_type->shape : NULL;
    while (rest.size) {
        const char *const comma = memchr(rest.data, ',', rest.size);
        const size_t size = comma ? (size_t)(comma - rest.data) : rest.size;
        const char *const colon = memchr(rest.data, ':', size);
        int64_t index;

        if (!colon ||
            !cm_str_to_int64((struct cm_str){rest.data, (size_t)(colon - rest.data)}, &index) ||
            index < 0 || !shape || (uint64_t)index >= shape->dim.count)
            return cm_dialect_refuse(r, attr->at, CM_BAD_MODEL,
                                     "expected names of dimensions that the type has, such as "
                                     "\"0:batch,1:length\"");
        struct cm_dim_proto *const dim = &shape->dim.items[index];
        if (dim->msg.has)
            return cm_dialect_refuse(r, attr->at, CM_BAD_MODEL,
                                     "dimension %lld has a name, so the type must have '?' there",
                                     (long long)index);
        dim->dim_param = (struct cm_str){colon + 1, size - (size_t)(colon + 1 - rest.data)};
        cm_msg_set(&dim->msg, CM_DIM_PARAM);
        const size_t done = size + (comma != NULL);
        rest = (struct cm_str){rest.data + done, rest.size - done};
    }
    return CM_OK;
}

enum cm_status cm_dialect_read_declared(struct cm_dialect_reader *r,
                                        const struct cm_dialect_entries *entries,
                                        const char *prefix, const struct cm_dialect_type *printed,
                                        struct cm_value_info_proto *out)
{
    static const char *const own[] = {"type", "dim_params", "type_proto", "outer", NULL};
    const char *const p = prefix[0] ? "onnx." : "";
    const struct cm_dialect_attr *const type = cm_dialect_get(entries, p[0] ? "onnx.type" : "type");
    const struct cm_dialect_attr *const message =
        cm_dialect_get(entries, p[0] ? "onnx.type_proto" : "type_proto");
    const struct cm_dialect_attr *const params =
        cm_dialect_get(entries, p[0] ? "onnx.dim_params" : "dim_params");

    CM_TRY(cm_dialect_read_fields(r, &cm_value_info_info, entries, p, ~CM_BIT(CM_VALUE_INFO_TYPE),
                                  own, out));
    if (type && type->kind != CM_DIALECT_ATTR_TYPE)
        return cm_dialect_refuse(r, type->at, CM_BAD_MODEL, "expected a type");
    if (type)
        printed = &type->type;
    if (message) {
        if (message->kind != CM_DIALECT_ATTR_DICT)
            return cm_dialect_refuse(r, message->at, CM_BAD_MODEL, "expected fields in braces");
        out->type = CM_NEW(r->arena, struct cm_type_proto);
        CM_TRY(cm_dialect_read_fields(r, &cm_type_info, &message->entries, "", UINT32_MAX, NULL,
                                      out->type));
    } else if (printed && printed->kind == CM_DIALECT_TYPE_PROTO) {
        out->type = printed->proto;
    }
    if (out->type)
        cm_msg_set(&out->msg, CM_VALUE_INFO_TYPE);
    return params ? read_dim_params(r, params, out->type) : CM_OK;
}

enum cm_status cm_dialect_read_tensor_type(struct cm_dialect_reader *r, const char *at,
                                           const struct cm_dialect_type *type,
                                           struct cm_tensor_proto *out)
{
    const struct cm_tensor_type_proto *const tensor =
        type->kind == CM_DIALECT_TYPE_PROTO ? type->proto->tensor_type : NULL;

    if (!tensor || !tensor->shape)
        return cm_dialect_refuse(r, at, CM_BAD_MODEL, "expected a tensor type with a shape");
    const size_t rank = tensor->shape->dim.count;
    out->dims = (struct cm_int64s){CM_NEW_ARRAY(r->arena, int64_t, rank), rank};
    for (size_t i = 0; i < rank; i++) {
        const struct cm_dim_proto *const dim = &tensor->shape->dim.items[i];
        if (!cm_msg_has(&dim->msg, CM_DIM_VALUE))
            return cm_dialect_refuse(r, at, CM_BAD_MODEL,
                                     "expected a type of which all dimensions are numbers");
        out->dims.items[i] = dim->dim_value;
    }
    if (rank)
        cm_msg_set(&out->msg, CM_TENSOR_DIMS);
    out->data_type = tensor->elem_type;
    cm_msg_set(&out->msg, CM_TENSOR_DATA_TYPE);
    return CM_OK;
}

enum cm_status cm_dialect_read_tensor(struct cm_dialect_reader *r,
                                      const struct cm_dialect_attr *dense,
                                      const struct cm_dialect_entries *notes,
                                      struct cm_tensor_proto *out)
{
    static const char *const own[] = {"dense", "type", "storage", "input", "declared", NULL};
    const struct cm_dialect_attr *const storage = notes ? cm_dialect_get(notes, "storage") : NULL;
    const struct cm_dialect_attr *const type = notes ? cm_dialect_get(notes, "type") : NULL;
    struct cm_str kept = CM_STR_NONE;

    if (notes && !dense)
        dense = cm_dialect_get(notes, "dense");
    if (storage)
        CM_TRY(cm_dialect_read_str(r, storage, &kept));
    if (dense) {
        CM_TRY(cm_dialect_read_dense(r, dense, kept, out));
    } else if (type && type->kind == CM_DIALECT_ATTR_TYPE) {
        CM_TRY(cm_dialect_read_tensor_type(r, type->at, &type->type, out));
        out->data_location = CM_LOCATION_EXTERNAL;
        cm_msg_set(&out->msg, CM_TENSOR_DATA_LOCATION);
    }
    return notes ? cm_dialect_read_fields(r, &cm_tensor_info, notes, "", UINT32_MAX, own, out)
                 : CM_OK;
}
