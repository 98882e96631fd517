/* Sequences, optionals and maps of tensors: messages to run-time values and back. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/value_data.h"

#include "base/file.h"
#include "base/memory.h"
#include "onnx/decode.h"
#include "onnx/encode.h"
#include "onnx/tensor_data.h"
#include "onnx/wire.h"

typedef enum cm_status load_fn(const void *proto, struct cm_datum *out, struct cm_error *err);
typedef enum cm_status fill_fn(struct cm_arena *arena, const struct cm_datum *datum, void *out,
                               struct cm_error *err);

static load_fn load_tensor, load_sequence, load_map, load_optional, refuse_sparse;
static fill_fn fill_tensor, fill_sequence, fill_map, fill_optional;

/* What SequenceProto.elem_type and OptionalProto.elem_type stand for. */
static const struct element {
    enum cm_kind kind;
    const struct cm_message_info *info;
    int name;         /* the field with the name of such a message */
    int listed, held; /* the fields of a sequence and of an optional that have such values */
    load_fn *load;
    fill_fn *fill; /* NULL: not written */
} elements[] = {
    [CM_ELEM_TENSOR] = {CM_KIND_TENSOR, &cm_tensor_info, CM_TENSOR_NAME, CM_SEQUENCE_TENSOR_VALUES,
                        CM_OPTIONAL_TENSOR_VALUE, load_tensor, fill_tensor},
    [CM_ELEM_SPARSE_TENSOR] = {CM_KIND_SPARSE, &cm_sparse_info, -1,
                               CM_SEQUENCE_SPARSE_TENSOR_VALUES, CM_OPTIONAL_SPARSE_TENSOR_VALUE,
                               refuse_sparse, NULL},
    [CM_ELEM_SEQUENCE] = {CM_KIND_SEQUENCE, &cm_sequence_info, CM_SEQUENCE_NAME,
                          CM_SEQUENCE_SEQUENCE_VALUES, CM_OPTIONAL_SEQUENCE_VALUE, load_sequence,
                          fill_sequence},
    [CM_ELEM_MAP] = {CM_KIND_MAP, &cm_map_info, CM_MAP_NAME, CM_SEQUENCE_MAP_VALUES,
                     CM_OPTIONAL_MAP_VALUE, load_map, fill_map},
    [CM_ELEM_OPTIONAL] = {CM_KIND_OPTIONAL, &cm_optional_info, CM_OPTIONAL_NAME,
                          CM_SEQUENCE_OPTIONAL_VALUES, CM_OPTIONAL_OPTIONAL_VALUE, load_optional,
                          fill_optional},
};

/* CM_ELEM_UNDEFINED: there is none. */
static size_t element_of(enum cm_kind kind)
{
    for (size_t e = CM_ELEM_TENSOR; e < CM_COUNT(elements); e++)
        if (elements[e].kind == kind)
            return e;
    return CM_ELEM_UNDEFINED;
}

static enum cm_status refuse_kind(struct cm_error *err)
{
    return cm_fail(err, CM_UNSUPPORTED, "a value of this kind has no message of its own");
}

/* ---- reading ---- */

static enum cm_status load_tensor(const void *proto, struct cm_datum *out, struct cm_error *err)
{
    CM_TRY(cm_tensor_proto_load(proto, NULL, &out->tensor, err));
    out->kind = CM_KIND_TENSOR;
    return CM_OK;
}

static enum cm_status refuse_sparse(const void *proto, struct cm_datum *out, struct cm_error *err)
{
    (void)proto;
    (void)out;
    return cm_fail(err, CM_UNSUPPORTED, "sparse tensors as values are not supported");
}

/* Room for count items, all of them without a value. */
static enum cm_status make_items(struct cm_datum *out, size_t count, struct cm_error *err)
{
    if (count == 0)
        return CM_OK;
    out->items = cm_calloc(count, sizeof *out->items);
    if (!out->items)
        return cm_fail(err, CM_NO_MEMORY, "no memory for %zu items", count);
    out->n_items = count;
    return CM_OK;
}

static enum cm_status check_elem_type(int32_t elem, struct cm_error *err)
{
    if (elem < 0 || (size_t)elem >= CM_COUNT(elements))
        return cm_fail(err, CM_BAD_MODEL, "elem_type is %d, which is not a kind of value",
                       (int)elem);
    return CM_OK;
}

/* The list that elem_type names is the only one that may hold anything. */
static enum cm_status find_list(const struct cm_sequence_proto *proto, struct cm_wire_list *out,
                                struct cm_error *err)
{
    const size_t elem = (size_t)proto->elem_type;

    *out = (struct cm_wire_list){0};
    CM_TRY(check_elem_type(proto->elem_type, err));
    for (size_t e = CM_ELEM_TENSOR; e < CM_COUNT(elements); e++) {
        const struct cm_field_info *field = &cm_sequence_info.fields[elements[e].listed];
        const struct cm_wire_list list = cm_field_list(proto, field);

        if (e == elem)
            *out = list;
        else if (list.count)
            return cm_fail(err, CM_BAD_MODEL, "elem_type stands for %s, but %s holds %zu",
                           elem ? cm_sequence_info.fields[elements[elem].listed].name : "no list",
                           field->name, list.count);
    }
    return CM_OK;
}

/* Nesting is as deep as the decoder let the messages be. */
static enum cm_status load_sequence(const void *from, struct cm_datum *out, struct cm_error *err)
{
    const struct cm_sequence_proto *proto = from;
    struct cm_wire_list list;

    CM_TRY(find_list(proto, &list, err));
    CM_TRY(make_items(out, list.count, err));
    out->kind = CM_KIND_SEQUENCE;
    for (size_t i = 0; i < list.count; i++) {
        const struct element *element = &elements[proto->elem_type];
        const char *const item = (const char *)list.items + i * element->info->size;
        const enum cm_status status = element->load(item, &out->items[i], err);
        if (status) {
            cm_datum_drop(out);
            return cm_error_context(err, status, "item %zu of a sequence", i);
        }
    }
    return CM_OK;
}

static enum cm_status load_string_keys(const struct cm_map_proto *proto, struct cm_tensor *out,
                                       struct cm_error *err)
{
    const size_t count = proto->string_keys.count;

    if (proto->keys.count)
        return cm_fail(err, CM_BAD_MODEL, "keys are strings, but there are %zu integer keys",
                       proto->keys.count);
    CM_TRY(cm_tensor_new(CM_STRING, &CM_SHAPE((int64_t)count), out, err));
    if (count)
        memcpy(out->data, proto->string_keys.items, count * sizeof(struct cm_str));
    return CM_OK;
}

static bool key_fits(enum cm_dtype type, int64_t key)
{
    const struct cm_dtype_info *info = cm_dtype_info(type);
    const bool is_signed = info->kind == CM_CLASS_SIGNED;

    if (info->bits == 64) /* unsigned ones come through int64 by their bits */
        return true;
    const int64_t limit = INT64_C(1) << (is_signed ? info->bits - 1 : info->bits);
    return key < limit && key >= (is_signed ? -limit : 0);
}

/* The low bytes of a little-endian number are the narrower number. */
static enum cm_status load_integer_keys(const struct cm_map_proto *proto, enum cm_dtype type,
                                        struct cm_tensor *out, struct cm_error *err)
{
    const size_t count = proto->keys.count, size = cm_dtype_size(type);

    if (proto->string_keys.count)
        return cm_fail(err, CM_BAD_MODEL, "keys are %s, but there are %zu strings",
                       cm_dtype_name(type), proto->string_keys.count);
    for (size_t i = 0; i < count; i++)
        if (!key_fits(type, proto->keys.items[i]))
            return cm_fail(err, CM_BAD_MODEL, "key %lld does not fit in %s",
                           (long long)proto->keys.items[i], cm_dtype_name(type));
    CM_TRY(cm_tensor_new(type, &CM_SHAPE((int64_t)count), out, err));
    for (size_t i = 0; i < count; i++)
        memcpy((char *)out->data + i * size, &proto->keys.items[i], size);
    return CM_OK;
}

static bool is_key_type(int64_t code)
{
    if (!cm_dtype_is_valid(code))
        return false;
    const struct cm_dtype_info *info = cm_dtype_info((enum cm_dtype)code);
    return code == CM_STRING ||
           ((info->kind == CM_CLASS_SIGNED || info->kind == CM_CLASS_UNSIGNED) && info->bits >= 8);
}

static enum cm_status load_map(const void *from, struct cm_datum *out, struct cm_error *err)
{
    const struct cm_map_proto *proto = from;
    struct cm_tensor keys = {0};

    if (!is_key_type(proto->key_type))
        return cm_fail(err, CM_BAD_MODEL, "key_type is %d, which no map may have",
                       (int)proto->key_type);
    const enum cm_dtype type = (enum cm_dtype)proto->key_type;
    if (proto->values)
        CM_TRY(cm_error_context(err, load_sequence(proto->values, out, err), "values of a map"));
    enum cm_status status = type == CM_STRING ? load_string_keys(proto, &keys, err)
                                              : load_integer_keys(proto, type, &keys, err);
    if (!status && (size_t)cm_tensor_count(&keys) != out->n_items)
        status = cm_fail(err, CM_BAD_MODEL, "a map has %lld keys and %zu values",
                         (long long)cm_tensor_count(&keys), out->n_items);
    if (status) {
        cm_tensor_drop(&keys);
        cm_datum_drop(out);
        return status;
    }
    out->kind = CM_KIND_MAP;
    out->tensor = keys;
    return CM_OK;
}

/* An optional says what it could hold and may still hold nothing. */
static enum cm_status load_optional(const void *from, struct cm_datum *out, struct cm_error *err)
{
    const struct cm_optional_proto *proto = from;
    const void *held = NULL;

    CM_TRY(check_elem_type(proto->elem_type, err));
    for (size_t e = CM_ELEM_TENSOR; e < CM_COUNT(elements); e++) {
        const void *value = cm_field_message(proto, &cm_optional_info.fields[elements[e].held]);

        if (e == (size_t)proto->elem_type)
            held = value;
        else if (value)
            return cm_fail(err, CM_BAD_MODEL,
                           "an optional of elem_type %d holds another kind of value",
                           (int)proto->elem_type);
    }
    *out = (struct cm_datum){0};
    return held ? elements[proto->elem_type].load(held, out, err) : CM_OK;
}

enum cm_status cm_value_proto_load(struct cm_arena *arena, struct cm_str bytes, enum cm_kind kind,
                                   struct cm_datum *out, struct cm_error *err)
{
    const struct element *element = &elements[element_of(kind)];

    *out = (struct cm_datum){0};
    if (kind == CM_KIND_SPARSE)
        return refuse_sparse(NULL, out, err);
    if (!element->info)
        return refuse_kind(err);
    void *const proto = cm_arena_alloc(arena, element->info->size);
    CM_TRY(cm_decode(element->info, bytes, arena, proto, err));
    return element->load(proto, out, err);
}

/* ---- writing ---- */

static enum cm_status fill_tensor(struct cm_arena *arena, const struct cm_datum *datum, void *out,
                                  struct cm_error *err)
{
    return cm_tensor_proto_store(out, arena, &datum->tensor, err);
}

static enum cm_status fill_optional(struct cm_arena *arena, const struct cm_datum *datum, void *to,
                                    struct cm_error *err)
{
    struct cm_optional_proto *out = to;
    const size_t elem = element_of(datum->kind);
    const struct element *element = &elements[elem];

    cm_msg_set(&out->msg, CM_OPTIONAL_ELEM_TYPE);
    if (datum->kind == CM_KIND_NONE)
        return CM_OK;
    if (!element->fill || elem == CM_ELEM_OPTIONAL)
        return refuse_kind(err);
    out->elem_type = (int32_t)elem;
    void *const value = cm_arena_alloc(arena, element->info->size);
    memcpy(cm_field_at(out, &cm_optional_info.fields[element->held]), &value, sizeof value);
    cm_msg_set(&out->msg, element->held);
    return element->fill(arena, datum, value, err);
}

/* One item without a value makes it a sequence of optionals. */
static int32_t item_elem_type(const struct cm_datum *datum)
{
    int32_t type = CM_ELEM_TENSOR;

    for (size_t i = 0; i < datum->n_items; i++) {
        if (datum->items[i].kind == CM_KIND_NONE)
            return CM_ELEM_OPTIONAL;
        if (datum->items[i].kind == CM_KIND_SEQUENCE || datum->items[i].kind == CM_KIND_MAP)
            type = (int32_t)element_of(datum->items[i].kind);
    }
    return type;
}

static enum cm_status fill_sequence(struct cm_arena *arena, const struct cm_datum *datum, void *to,
                                    struct cm_error *err)
{
    struct cm_sequence_proto *out = to;

    out->elem_type = item_elem_type(datum);
    cm_msg_set(&out->msg, CM_SEQUENCE_ELEM_TYPE);
    if (!datum->n_items)
        return CM_OK;
    /* The list that elem_type names, made at once: one by one would copy it for each item. */
    const struct element *element = &elements[out->elem_type];
    const size_t size = element->info->size;
    const struct cm_wire_list list = {cm_arena_alloc_array(arena, datum->n_items, size),
                                      datum->n_items};
    memcpy(cm_field_at(out, &cm_sequence_info.fields[element->listed]), &list, sizeof list);
    cm_msg_set(&out->msg, element->listed);
    for (size_t i = 0; i < list.count; i++) {
        const struct cm_datum *item = &datum->items[i];
        if (element->kind != CM_KIND_OPTIONAL && item->kind != element->kind)
            return cm_fail(err, CM_BAD_ARGUMENT, "items of a sequence are of different kinds");
        CM_TRY(element->fill(arena, item, (char *)list.items + i * size, err));
    }
    return CM_OK;
}

static enum cm_status fill_map(struct cm_arena *arena, const struct cm_datum *datum, void *to,
                               struct cm_error *err)
{
    struct cm_map_proto *out = to;
    const struct cm_tensor *keys = &datum->tensor;
    const size_t count = (size_t)cm_tensor_count(keys);

    out->key_type = (int32_t)keys->type;
    cm_msg_set(&out->msg, CM_MAP_KEY_TYPE);
    if (keys->type == CM_STRING) {
        out->string_keys = (struct cm_strs){keys->data, count};
        cm_msg_set(&out->msg, CM_MAP_STRING_KEYS);
    } else {
        out->keys = (struct cm_int64s){CM_NEW_ARRAY(arena, int64_t, count), count};
        for (size_t i = 0; i < count; i++)
            out->keys.items[i] = cm_tensor_int(keys, (int64_t)i);
        cm_msg_set(&out->msg, CM_MAP_KEYS);
    }
    out->values = CM_NEW(arena, struct cm_sequence_proto);
    cm_msg_set(&out->msg, CM_MAP_VALUES);
    return fill_sequence(arena, datum, out->values, err);
}

enum cm_status cm_value_proto_store(struct cm_arena *arena, const struct cm_datum *datum,
                                    enum cm_kind kind, struct cm_str name, struct cm_str *out,
                                    struct cm_error *err)
{
    const struct element *element = &elements[element_of(kind)];

    if (kind != CM_KIND_OPTIONAL && kind != datum->kind)
        return cm_fail(err, CM_BAD_ARGUMENT, "the value is not of the kind it is to be written as");
    if (!element->fill)
        return refuse_kind(err);
    void *const proto = cm_arena_alloc(arena, element->info->size);
    memcpy(cm_field_at(proto, &element->info->fields[element->name]), &name, sizeof name);
    cm_msg_set(proto, element->name);
    CM_TRY(element->fill(arena, datum, proto, err));
    return cm_encode(element->info, proto, arena, out, err);
}
