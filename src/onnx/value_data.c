/* Sequences, optionals and maps of tensors: messages to run-time values and back. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/value_data.h"

#include "base/file.h"
#include "base/memory.h"
#include "onnx/decode.h"
#include "onnx/encode.h"
#include "onnx/tensor_data.h"

static enum cm_status load_sequence(const struct cm_sequence_proto *proto, struct cm_datum *out,
                                    struct cm_error *err);
static enum cm_status load_map(const struct cm_map_proto *proto, struct cm_datum *out,
                               struct cm_error *err);
static enum cm_status load_optional(const struct cm_optional_proto *proto, struct cm_datum *out,
                                    struct cm_error *err);

/* ---- reading ---- */

static enum cm_status load_tensor(const struct cm_tensor_proto *proto, struct cm_datum *out,
                                  struct cm_error *err)
{
    CM_TRY(cm_tensor_proto_load(proto, NULL, &out->tensor, err));
    out->kind = CM_KIND_TENSOR;
    return CM_OK;
}

static enum cm_status refuse_sparse(struct cm_error *err)
{
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

/* The list that elem_type names is the only one that may hold anything. */
static enum cm_status sequence_count(const struct cm_sequence_proto *proto, size_t *out,
                                     struct cm_error *err)
{
    const struct {
        const char *name;
        size_t count;
    } lists[] = {
        [CM_ELEM_UNDEFINED] = {"no list", 0},
        [CM_ELEM_TENSOR] = {"tensor_values", proto->tensor_values.count},
        [CM_ELEM_SPARSE_TENSOR] = {"sparse_tensor_values", proto->sparse_tensor_values.count},
        [CM_ELEM_SEQUENCE] = {"sequence_values", proto->sequence_values.count},
        [CM_ELEM_MAP] = {"map_values", proto->map_values.count},
        [CM_ELEM_OPTIONAL] = {"optional_values", proto->optional_values.count},
    };
    const int32_t elem = proto->elem_type;

    if (elem < 0 || (size_t)elem >= CM_COUNT(lists))
        return cm_fail(err, CM_BAD_MODEL, "elem_type is %d, which is not a kind of value",
                       (int)elem);
    for (size_t i = 0; i < CM_COUNT(lists); i++)
        if (lists[i].count != 0 && i != (size_t)elem)
            return cm_fail(err, CM_BAD_MODEL, "elem_type stands for %s, but %s holds %zu",
                           lists[elem].name, lists[i].name, lists[i].count);
    *out = lists[elem].count;
    return CM_OK;
}

static enum cm_status load_item(const struct cm_sequence_proto *proto, size_t i,
                                struct cm_datum *out, struct cm_error *err)
{
    switch (proto->elem_type) {
    case CM_ELEM_TENSOR:
        return load_tensor(&proto->tensor_values.items[i], out, err);
    case CM_ELEM_SEQUENCE:
        return load_sequence(&proto->sequence_values.items[i], out, err);
    case CM_ELEM_MAP:
        return load_map(&proto->map_values.items[i], out, err);
    case CM_ELEM_OPTIONAL:
        return load_optional(&proto->optional_values.items[i], out, err);
    default:
        return refuse_sparse(err);
    }
}

/* Nesting is as deep as the decoder let the messages be. */
static enum cm_status load_sequence(const struct cm_sequence_proto *proto, struct cm_datum *out,
                                    struct cm_error *err)
{
    size_t count = 0;

    CM_TRY(sequence_count(proto, &count, err));
    CM_TRY(make_items(out, count, err));
    out->kind = CM_KIND_SEQUENCE;
    for (size_t i = 0; i < count; i++) {
        const enum cm_status status = load_item(proto, i, &out->items[i], err);
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

static enum cm_status load_map(const struct cm_map_proto *proto, struct cm_datum *out,
                               struct cm_error *err)
{
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
static enum cm_status load_optional(const struct cm_optional_proto *proto, struct cm_datum *out,
                                    struct cm_error *err)
{
    const bool held[] = {
        [CM_ELEM_TENSOR] = proto->tensor_value,
        [CM_ELEM_SPARSE_TENSOR] = proto->sparse_tensor_value,
        [CM_ELEM_SEQUENCE] = proto->sequence_value,
        [CM_ELEM_MAP] = proto->map_value,
        [CM_ELEM_OPTIONAL] = proto->optional_value,
    };
    const int32_t elem = proto->elem_type;

    if (elem < 0 || (size_t)elem >= CM_COUNT(held))
        return cm_fail(err, CM_BAD_MODEL, "elem_type is %d, which is not a kind of value",
                       (int)elem);
    for (size_t i = 0; i < CM_COUNT(held); i++)
        if (held[i] && i != (size_t)elem)
            return cm_fail(err, CM_BAD_MODEL,
                           "an optional of elem_type %d holds another kind of value", (int)elem);
    *out = (struct cm_datum){0};
    if (!held[elem])
        return CM_OK;
    switch (elem) {
    case CM_ELEM_TENSOR:
        return load_tensor(proto->tensor_value, out, err);
    case CM_ELEM_SEQUENCE:
        return load_sequence(proto->sequence_value, out, err);
    case CM_ELEM_MAP:
        return load_map(proto->map_value, out, err);
    case CM_ELEM_OPTIONAL:
        return load_optional(proto->optional_value, out, err);
    default:
        return refuse_sparse(err);
    }
}

static enum cm_status refuse_kind(struct cm_error *err)
{
    return cm_fail(err, CM_UNSUPPORTED, "a value of this kind has no message of its own");
}

enum cm_status cm_value_proto_load(struct cm_arena *arena, struct cm_str bytes, enum cm_kind kind,
                                   struct cm_datum *out, struct cm_error *err)
{
    static const struct cm_message_info *const infos[] = {
        [CM_KIND_TENSOR] = &cm_tensor_info,
        [CM_KIND_SEQUENCE] = &cm_sequence_info,
        [CM_KIND_MAP] = &cm_map_info,
        [CM_KIND_OPTIONAL] = &cm_optional_info,
    };

    *out = (struct cm_datum){0};
    if ((size_t)kind >= CM_COUNT(infos) || !infos[kind])
        return kind == CM_KIND_SPARSE ? refuse_sparse(err) : refuse_kind(err);
    void *const proto = cm_arena_alloc(arena, infos[kind]->size);
    CM_TRY(cm_decode(infos[kind], bytes, arena, proto, err));
    switch (kind) {
    case CM_KIND_TENSOR:
        return load_tensor(proto, out, err);
    case CM_KIND_SEQUENCE:
        return load_sequence(proto, out, err);
    case CM_KIND_MAP:
        return load_map(proto, out, err);
    default:
        return load_optional(proto, out, err);
    }
}

static void release_mapping(void *what)
{
    cm_mapping_release(what);
}

enum cm_status cm_value_file_load(struct cm_arena *arena, const char *path, enum cm_kind kind,
                                  struct cm_datum *out, struct cm_error *err)
{
    struct cm_mapping *const mapping = CM_NEW(arena, struct cm_mapping);

    *out = (struct cm_datum){0};
    cm_arena_defer(arena, release_mapping, mapping);
    CM_TRY(cm_file_map(path, false, mapping, err));
    const struct cm_str bytes = {(const char *)mapping->data, mapping->size};
    return cm_error_context(err, cm_value_proto_load(arena, bytes, kind, out, err), "%s", path);
}

/* ---- writing ---- */

static enum cm_status fill_sequence(struct cm_arena *arena, const struct cm_datum *datum,
                                    struct cm_sequence_proto *out, struct cm_error *err);
static enum cm_status fill_map(struct cm_arena *arena, const struct cm_datum *datum,
                               struct cm_map_proto *out, struct cm_error *err);

static enum cm_status fill_optional(struct cm_arena *arena, const struct cm_datum *datum,
                                    struct cm_optional_proto *out, struct cm_error *err)
{
    cm_msg_set(&out->msg, CM_OPTIONAL_ELEM_TYPE);
    switch (datum->kind) {
    case CM_KIND_NONE:
        return CM_OK;
    case CM_KIND_TENSOR:
        out->elem_type = CM_ELEM_TENSOR;
        out->tensor_value = CM_NEW(arena, struct cm_tensor_proto);
        cm_msg_set(&out->msg, CM_OPTIONAL_TENSOR_VALUE);
        return cm_tensor_proto_store(out->tensor_value, arena, &datum->tensor, err);
    case CM_KIND_SEQUENCE:
        out->elem_type = CM_ELEM_SEQUENCE;
        out->sequence_value = CM_NEW(arena, struct cm_sequence_proto);
        cm_msg_set(&out->msg, CM_OPTIONAL_SEQUENCE_VALUE);
        return fill_sequence(arena, datum, out->sequence_value, err);
    case CM_KIND_MAP:
        out->elem_type = CM_ELEM_MAP;
        out->map_value = CM_NEW(arena, struct cm_map_proto);
        cm_msg_set(&out->msg, CM_OPTIONAL_MAP_VALUE);
        return fill_map(arena, datum, out->map_value, err);
    default:
        return refuse_kind(err);
    }
}

/* One item without a value makes it a sequence of optionals. */
static int32_t item_elem_type(const struct cm_datum *datum)
{
    int32_t type = CM_ELEM_TENSOR;

    for (size_t i = 0; i < datum->n_items; i++) {
        switch (datum->items[i].kind) {
        case CM_KIND_NONE:
            return CM_ELEM_OPTIONAL;
        case CM_KIND_SEQUENCE:
            type = CM_ELEM_SEQUENCE;
            break;
        case CM_KIND_MAP:
            type = CM_ELEM_MAP;
            break;
        default:
            break;
        }
    }
    return type;
}

/* The list that elem_type names, made at once: one by one would copy it for each item. */
static void make_list(struct cm_arena *arena, struct cm_sequence_proto *out, size_t count)
{
    switch (out->elem_type) {
    case CM_ELEM_TENSOR:
        out->tensor_values.items = CM_NEW_ARRAY(arena, struct cm_tensor_proto, count);
        out->tensor_values.count = count;
        cm_msg_set(&out->msg, CM_SEQUENCE_TENSOR_VALUES);
        return;
    case CM_ELEM_SEQUENCE:
        out->sequence_values.items = CM_NEW_ARRAY(arena, struct cm_sequence_proto, count);
        out->sequence_values.count = count;
        cm_msg_set(&out->msg, CM_SEQUENCE_SEQUENCE_VALUES);
        return;
    case CM_ELEM_MAP:
        out->map_values.items = CM_NEW_ARRAY(arena, struct cm_map_proto, count);
        out->map_values.count = count;
        cm_msg_set(&out->msg, CM_SEQUENCE_MAP_VALUES);
        return;
    default:
        out->optional_values.items = CM_NEW_ARRAY(arena, struct cm_optional_proto, count);
        out->optional_values.count = count;
        cm_msg_set(&out->msg, CM_SEQUENCE_OPTIONAL_VALUES);
        return;
    }
}

static enum cm_status fill_item(struct cm_arena *arena, const struct cm_datum *item, size_t i,
                                struct cm_sequence_proto *out, struct cm_error *err)
{
    static const enum cm_kind kinds[] = {[CM_ELEM_TENSOR] = CM_KIND_TENSOR,
                                         [CM_ELEM_SEQUENCE] = CM_KIND_SEQUENCE,
                                         [CM_ELEM_MAP] = CM_KIND_MAP};

    if (out->elem_type == CM_ELEM_OPTIONAL)
        return fill_optional(arena, item, &out->optional_values.items[i], err);
    if (item->kind != kinds[out->elem_type])
        return cm_fail(err, CM_BAD_ARGUMENT, "items of a sequence are of different kinds");
    if (out->elem_type == CM_ELEM_TENSOR)
        return cm_tensor_proto_store(&out->tensor_values.items[i], arena, &item->tensor, err);
    if (out->elem_type == CM_ELEM_SEQUENCE)
        return fill_sequence(arena, item, &out->sequence_values.items[i], err);
    return fill_map(arena, item, &out->map_values.items[i], err);
}

static enum cm_status fill_sequence(struct cm_arena *arena, const struct cm_datum *datum,
                                    struct cm_sequence_proto *out, struct cm_error *err)
{
    out->elem_type = item_elem_type(datum);
    cm_msg_set(&out->msg, CM_SEQUENCE_ELEM_TYPE);
    if (datum->n_items)
        make_list(arena, out, datum->n_items);
    for (size_t i = 0; i < datum->n_items; i++)
        CM_TRY(fill_item(arena, &datum->items[i], i, out, err));
    return CM_OK;
}

static enum cm_status fill_map(struct cm_arena *arena, const struct cm_datum *datum,
                               struct cm_map_proto *out, struct cm_error *err)
{
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
    if (kind == CM_KIND_OPTIONAL) {
        struct cm_optional_proto optional = {.name = name};
        cm_msg_set(&optional.msg, CM_OPTIONAL_NAME);
        CM_TRY(fill_optional(arena, datum, &optional, err));
        return cm_encode(&cm_optional_info, &optional, arena, out, err);
    }
    if (kind != datum->kind)
        return cm_fail(err, CM_BAD_ARGUMENT, "the value is not of the kind it is to be written as");
    if (kind == CM_KIND_TENSOR) {
        struct cm_tensor_proto tensor = {.name = name};
        cm_msg_set(&tensor.msg, CM_TENSOR_NAME);
        CM_TRY(cm_tensor_proto_store(&tensor, arena, &datum->tensor, err));
        return cm_encode(&cm_tensor_info, &tensor, arena, out, err);
    }
    if (kind == CM_KIND_SEQUENCE) {
        struct cm_sequence_proto sequence = {.name = name};
        cm_msg_set(&sequence.msg, CM_SEQUENCE_NAME);
        CM_TRY(fill_sequence(arena, datum, &sequence, err));
        return cm_encode(&cm_sequence_info, &sequence, arena, out, err);
    }
    if (kind != CM_KIND_MAP)
        return refuse_kind(err);
    struct cm_map_proto map = {.name = name};
    cm_msg_set(&map.msg, CM_MAP_NAME);
    CM_TRY(fill_map(arena, datum, &map, err));
    return cm_encode(&cm_map_info, &map, arena, out, err);
}
