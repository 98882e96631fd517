/* Tensors as text: dense, sparse and external ones. Values are printed where they lie, element by
 * element. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "onnx/decode.h"
#include "onnx/syntax_names.h"
#include "onnx/syntax_print.h"
#include "onnx/tensor_data.h"
#include "onnx/wire.h"
#include "tensor/bits.h"
#include "tensor/dtype.h"

/* Of a tensor that is cut. */
enum { SHOWN_ELEMENTS = 4 };

/* Where one tensor's elements are on the way out. */
struct list {
    struct cm_printer *p;
    const char *separator;
    size_t done, limit; /* elements printed, and where to stop */
};

/* False when the list is to end here. */
static bool next_element(struct list *list)
{
    if (list->p->status != CM_OK)
        return false;
    if (list->done)
        cm_put_text(list->p, list->separator);
    if (list->done == list->limit) {
        cm_put_text(list->p, "...");
        return false;
    }
    list->done++;
    return true;
}

static void limit_list(struct list *list, uint64_t count)
{
    const size_t elide = list->p->elide;

    list->limit = SIZE_MAX;
    if (elide && count > elide)
        list->limit = elide < SHOWN_ELEMENTS ? elide : SHOWN_ELEMENTS;
}

static void no_form(struct cm_printer *p, const struct cm_tensor_proto *tensor, const char *why)
{
    cm_print_fail(p, CM_BAD_MODEL, "tensor '%.*s' has no text form: %s", CM_STR_FMT(tensor->name),
                  why);
}

/* Does an entry of int32_data or uint64_data fit its type? The bits of a negative number may come
 * without its sign. */
static bool entry_fits(const struct cm_dtype_info *info, uint64_t entry)
{
    const int64_t value = (int32_t)(uint32_t)entry; /* protobuf keeps the low 32 bits */

    if (info->field == CM_TYPED_UINT64)
        return info->bits == 64 || entry >> info->bits == 0;
    if (info->field == CM_TYPED_INT64 || info->bits == 32)
        return true;
    return value >= -(INT64_C(1) << (info->bits - 1)) && value < INT64_C(1) << info->bits;
}

/* An entry of a varint field as the number it stands for; ONNX's printer writes it as it is. */
static void put_entry(struct cm_printer *p, enum cm_dtype type, uint64_t entry)
{
    const struct cm_dtype_info *const info = cm_dtype_info(type);
    const int spare = 64 - info->bits;

    if (info->field == CM_TYPED_UINT64) {
        cm_put_uint64(p, entry);
    } else if (info->field == CM_TYPED_INT64) {
        cm_put_int64(p, (int64_t)entry);
    } else if (p->upstream) {
        cm_put_int64(p, (int32_t)(uint32_t)entry);
    } else if (info->kind == CM_CLASS_SIGNED) {
        const uint64_t sign = UINT64_C(1) << (info->bits - 1);
        cm_put_int64(p, (int64_t)((entry << spare >> spare ^ sign) - sign));
    } else {
        cm_put_uint64(p, entry << spare >> spare);
    }
}

/* Element i of a type below a byte. */
static void put_narrow(struct cm_printer *p, enum cm_dtype type, const uint8_t *data, int64_t i)
{
    const int bits = cm_dtype_info(type)->bits;
    const int sign = cm_dtype_info(type)->kind == CM_CLASS_SIGNED ? 1 << (bits - 1) : 0;

    cm_put_int64(p, (cm_packed_get(bits, data, i) ^ sign) - sign);
}

static void put_raw_element(struct cm_printer *p, enum cm_dtype type, const uint8_t *at)
{
    const size_t size = cm_dtype_size(type);
    uint64_t bits = 0;
    float single;
    double real;

    switch (cm_dtype_info(type)->field) {
    case CM_TYPED_FLOAT:
        memcpy(&single, at, sizeof single);
        cm_put_float(p, single);
        break;
    case CM_TYPED_DOUBLE:
        memcpy(&real, at, sizeof real);
        cm_put_double(p, real);
        break;
    default:
        memcpy(&bits, at, size);
        if (cm_dtype_info(type)->kind == CM_CLASS_SIGNED) {
            const uint64_t sign = UINT64_C(1) << (8 * size - 1);
            cm_put_int64(p, (int64_t)((bits ^ sign) - sign));
        } else {
            cm_put_uint64(p, bits);
        }
    }
}

/* A complex number is two floats or doubles in a row. */
static enum cm_dtype part_of(enum cm_dtype type)
{
    return type == CM_COMPLEX64 ? CM_FLOAT : type == CM_COMPLEX128 ? CM_DOUBLE : type;
}

static void print_raw(struct list *list, const struct cm_tensor_proto *tensor)
{
    const enum cm_dtype type = (enum cm_dtype)tensor->data_type, part = part_of(type);
    const uint8_t *const data = (const uint8_t *)tensor->raw_data.data;
    int64_t count;
    size_t need;

    if (!cm_syntax_element_count(tensor, &count) || !cm_dtype_bytes(type, count, &need)) {
        no_form(list->p, tensor, "its shape is not valid");
        return;
    }
    if (need != tensor->raw_data.size) {
        cm_print_fail(list->p, CM_BAD_MODEL,
                      "tensor '%.*s' has %zu bytes of raw_data, its shape needs %zu",
                      CM_STR_FMT(tensor->name), tensor->raw_data.size, need);
        return;
    }
    limit_list(list, (uint64_t)count);
    if (cm_dtype_info(type)->bits < 8) {
        for (int64_t i = 0; i < count && next_element(list); i++)
            put_narrow(list->p, type, data, i);
        return;
    }
    const size_t step = cm_dtype_size(part);
    for (size_t at = 0; at < need; at += step) {
        if (!next_element(list))
            return;
        put_raw_element(list->p, part, data + at);
    }
}

/* Contents that are not in memory are, for so long. */
static void print_later(struct list *list, const struct cm_tensor_proto *tensor)
{
    struct cm_tensor_proto here = *tensor;
    struct cm_tensor loaded;
    struct cm_error err;

    if (cm_tensor_proto_load(tensor, NULL, &loaded, &err)) {
        cm_print_fail(list->p, err.status, "%s", err.text);
        return;
    }
    here.later = NULL;
    here.raw_data.data = loaded.data;
    print_raw(list, &here);
    cm_tensor_drop(&loaded);
}

static void print_fixed(struct list *list, enum cm_dtype part, struct cm_packed data)
{
    const size_t step = cm_dtype_size(part);

    limit_list(list, data.size / step);
    for (size_t at = 0; data.size - at >= step; at += step) {
        if (!next_element(list))
            return;
        put_raw_element(list->p, part, data.data + at);
    }
}

static uint64_t varint_count(struct cm_packed data)
{
    uint64_t count = 0;

    for (size_t i = 0; i < data.size; i++)
        count += data.data[i] < 0x80;
    return count;
}

/* Elements of 4 and 2 bits come packed, a byte to an entry. */
static void print_packed(struct list *list, const struct cm_tensor_proto *tensor)
{
    const enum cm_dtype type = (enum cm_dtype)tensor->data_type;
    const int per_byte = 8 / cm_dtype_info(type)->bits;
    struct cm_packed rest = tensor->int32_data;
    int64_t count, done = 0;
    uint64_t entry;
    bool broken = false;
    size_t need;

    if (!cm_syntax_element_count(tensor, &count) || !cm_dtype_bytes(type, count, &need) ||
        need != varint_count(rest)) {
        no_form(list->p, tensor, "its int32_data does not fill its shape");
        return;
    }
    limit_list(list, (uint64_t)count);
    while (cm_varint_next(&rest, &entry, &broken)) {
        const uint8_t byte = (uint8_t)entry;
        for (int i = 0; i < per_byte && done < count; i++, done++) {
            if (!next_element(list))
                return;
            put_narrow(list->p, type, &byte, i);
        }
    }
    if (broken)
        no_form(list->p, tensor, "a number in it is broken");
}

static void print_varints(struct list *list, const struct cm_tensor_proto *tensor,
                          struct cm_packed data)
{
    const enum cm_dtype type = (enum cm_dtype)tensor->data_type;
    uint64_t entry;
    bool broken = false;

    limit_list(list, varint_count(data));
    while (cm_varint_next(&data, &entry, &broken) && next_element(list)) {
        if (!list->p->upstream && !entry_fits(cm_dtype_info(type), entry))
            no_form(list->p, tensor, "a number in it does not fit its element type");
        put_entry(list->p, type, entry);
    }
    if (broken)
        no_form(list->p, tensor, "a number in it is broken");
}

static void print_strings(struct cm_printer *p, const struct cm_strs *strings)
{
    struct list list = {p, ", ", 0, 0};

    limit_list(&list, strings->count);
    /* ONNX's printer forgets the brace of an empty list. */
    if (strings->count || !p->upstream)
        cm_put(p, "{", 1);
    for (size_t i = 0; i < strings->count && next_element(&list); i++)
        cm_put_quoted(p, strings->items[i]);
    cm_put(p, "}", 1);
}

/* Values in two fields, or in one that does not go with the type, cannot be told from others once
 * printed. */
static bool values_are_plain(struct cm_printer *p, const struct cm_tensor_proto *tensor)
{
    const uint32_t present = tensor->msg.has & CM_TENSOR_VALUES;
    const enum cm_dtype type = (enum cm_dtype)tensor->data_type;

    if (!cm_dtype_is_valid(tensor->data_type) && (tensor->data_type != CM_UNDEFINED || present))
        no_form(p, tensor, "its element type is unknown");
    else if (present & (present - 1))
        no_form(p, tensor, "it holds values in two fields");
    else if (present == CM_BIT(CM_TENSOR_RAW_DATA) && type == CM_STRING)
        no_form(p, tensor, "strings are not kept in raw_data");
    else if (present & ~CM_BIT(CM_TENSOR_RAW_DATA) &&
             present != CM_BIT(cm_tensor_values_field(type)))
        no_form(p, tensor, "its values are in a field that its element type does not use");
    return p->status == CM_OK;
}

static bool is_packed(enum cm_dtype type)
{
    return cm_dtype_info(type)->bits == 4 || cm_dtype_info(type)->bits == 2;
}

static void print_values(struct cm_printer *p, const struct cm_tensor_proto *tensor)
{
    const enum cm_dtype type = (enum cm_dtype)tensor->data_type;
    struct list list = {p, p->upstream ? "," : ", ", 0, SIZE_MAX};

    if (type == CM_STRING) {
        print_strings(p, &tensor->string_data);
        return;
    }
    cm_put_text(p, p->upstream ? " {" : "{");
    if (cm_msg_has(&tensor->msg, CM_TENSOR_RAW_DATA)) {
        (tensor->later ? print_later : print_raw)(&list, tensor);
    } else if (type != CM_UNDEFINED) {
        const struct cm_field_info *const field =
            &cm_tensor_info.fields[cm_tensor_values_field(type)];
        const struct cm_wire_list held = cm_field_list(tensor, field);
        const struct cm_packed data = {held.items, held.count};
        if (field->kind == CM_FIELD_PACKED_4 || field->kind == CM_FIELD_PACKED_8)
            print_fixed(&list, field->kind == CM_FIELD_PACKED_4 ? CM_FLOAT : CM_DOUBLE, data);
        else if (is_packed(type))
            print_packed(&list, tensor);
        else
            print_varints(&list, tensor, data);
    }
    cm_put(p, "}", 1);
}

/* ONNX's printer has no form for these. */
static bool upstream_gives_up(enum cm_dtype type)
{
    return !cm_dtype_is_valid(type) || cm_dtype_info(type)->kind == CM_CLASS_COMPLEX ||
           (cm_dtype_info(type)->bits && cm_dtype_info(type)->bits < 8);
}

static void print_tensor_type(struct cm_printer *p, const struct cm_tensor_proto *tensor)
{
    const bool valid = cm_dtype_is_valid(tensor->data_type);

    cm_put_text(p, valid ? cm_dtype_name((enum cm_dtype)tensor->data_type) : "undefined");
    for (size_t i = 0; i < tensor->dims.count && p->status == CM_OK; i++) {
        cm_put(p, i ? "," : "[", 1);
        cm_put_int64(p, tensor->dims.items[i]);
    }
    if (tensor->dims.count)
        cm_put(p, "]", 1);
}

static void print_upstream_tensor(struct cm_printer *p, const struct cm_tensor_proto *tensor,
                                  bool initializer)
{
    print_tensor_type(p, tensor);
    if (tensor->name.size) {
        cm_put(p, " ", 1);
        cm_put_name(p, tensor->name);
    }
    if (initializer)
        cm_put_text(p, " = ");
    if (tensor->data_location == CM_LOCATION_EXTERNAL)
        cm_print_entries(p, &tensor->external_data);
    else if (upstream_gives_up((enum cm_dtype)tensor->data_type))
        cm_put_text(p, "...");
    else
        print_values(p, tensor);
}

void cm_print_tensor(struct cm_printer *p, const struct cm_tensor_proto *tensor, bool initializer)
{
    if (p->upstream) {
        print_upstream_tensor(p, tensor, initializer);
        return;
    }
    if (!values_are_plain(p, tensor))
        return;
    const bool external =
        tensor->data_location == CM_LOCATION_EXTERNAL && !(tensor->msg.has & CM_TENSOR_VALUES);
    uint32_t notes = CM_NOTES_TENSOR & tensor->msg.has;
    if (external)
        notes &= ~(CM_BIT(CM_TENSOR_EXTERNAL_DATA) | CM_BIT(CM_TENSOR_DATA_LOCATION));
    print_tensor_type(p, tensor);
    if (tensor->name.size || initializer) {
        cm_put(p, " ", 1);
        cm_put_name(p, tensor->name);
    }
    if (notes) {
        cm_put(p, " ", 1);
        cm_print_notes(p, &cm_tensor_info, tensor, notes);
    }
    cm_put_text(p, initializer || external ? " = " : " ");
    if (external)
        cm_print_entries(p, &tensor->external_data);
    else
        print_values(p, tensor);
}

void cm_print_sparse(struct cm_printer *p, const struct cm_sparse_proto *sparse)
{
    cm_put_text(p, "sparse_tensor[");
    for (size_t i = 0; i < sparse->dims.count && p->status == CM_OK; i++) {
        if (i)
            cm_put(p, ",", 1);
        cm_put_int64(p, sparse->dims.items[i]);
    }
    cm_put_text(p, "] {");
    if (sparse->values)
        cm_print_tensor(p, sparse->values, false);
    if (sparse->indices) {
        cm_put_text(p, ", ");
        cm_print_tensor(p, sparse->indices, false);
    }
    cm_put(p, "}", 1);
}
