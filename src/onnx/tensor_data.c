/* The contents of TensorProtos: checked, viewed in place or decoded, and stored. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/tensor_data.h"

#include "base/memory.h"

#include "base/number.h"
#include "onnx/decode.h"
#include "onnx/external.h"
#include "onnx/wire.h"
#include "tensor/bits.h"

/* What the field names and the sizes of a tensor come down to. */
struct facts {
    enum cm_dtype type;
    struct cm_shape shape;
    int64_t count;
    size_t bytes; /* of dense contents; meaningless for strings */
};

static const int value_fields[] = {
    CM_TENSOR_RAW_DATA,   CM_TENSOR_FLOAT_DATA,  CM_TENSOR_INT32_DATA,  CM_TENSOR_STRING_DATA,
    CM_TENSOR_INT64_DATA, CM_TENSOR_DOUBLE_DATA, CM_TENSOR_UINT64_DATA,
};

int cm_tensor_values_field(enum cm_dtype type)
{
    static const int fields[] = {
        [CM_TYPED_NONE] = -1,
        [CM_TYPED_FLOAT] = CM_TENSOR_FLOAT_DATA,
        [CM_TYPED_INT32] = CM_TENSOR_INT32_DATA,
        [CM_TYPED_STRING] = CM_TENSOR_STRING_DATA,
        [CM_TYPED_INT64] = CM_TENSOR_INT64_DATA,
        [CM_TYPED_DOUBLE] = CM_TENSOR_DOUBLE_DATA,
        [CM_TYPED_UINT64] = CM_TENSOR_UINT64_DATA,
    };
    return fields[cm_dtype_info(type)->field];
}

static const char *field_name(int field)
{
    return cm_tensor_info.fields[field].name;
}

static enum cm_status name_it(const struct cm_tensor_proto *proto, enum cm_status status,
                              struct cm_error *err)
{
    if (status == CM_OK)
        return CM_OK;
    if (proto->name.size == 0)
        return cm_error_context(err, status, "tensor without a name");
    return cm_error_context(err, status, "tensor '%.*s'", CM_STR_FMT(proto->name));
}

/* "float[2x3]", "int64 scalar". */
static const char *print_type(const struct facts *facts, char *text, size_t size)
{
    char shape[128];

    cm_shape_print(&facts->shape, shape, sizeof shape);
    snprintf(text, size, facts->shape.rank ? "%s[%s]" : "%s %s", cm_dtype_name(facts->type), shape);
    return text;
}

enum cm_status cm_tensor_proto_shape(const struct cm_tensor_proto *proto, struct cm_shape *out,
                                     struct cm_error *err)
{
    struct cm_shape shape = {0};
    int64_t count;

    if (proto->dims.count > CM_MAX_RANK)
        return cm_fail(err, CM_BAD_MODEL, "rank %zu is above the limit of %d", proto->dims.count,
                       CM_MAX_RANK);
    shape.rank = (int)proto->dims.count;
    for (int i = 0; i < shape.rank; i++) {
        shape.dims[i] = proto->dims.items[i];
        if (shape.dims[i] < 0)
            return cm_fail(err, CM_BAD_MODEL, "dimension %d is %lld, must not be negative", i,
                           (long long)shape.dims[i]);
        if (shape.dims[i] > CM_MAX_DIM)
            return cm_fail(err, CM_BAD_MODEL, "dimension %d is %lld, above the limit of %lld", i,
                           (long long)shape.dims[i], (long long)CM_MAX_DIM);
    }
    if (!cm_shape_count(&shape, &count)) {
        char text[128];
        return cm_fail(err, CM_BAD_MODEL, "number of elements of shape %s does not fit in 63 bits",
                       cm_shape_print(&shape, text, sizeof text));
    }
    *out = shape;
    return CM_OK;
}

static enum cm_status find_facts(const struct cm_tensor_proto *proto, struct facts *out,
                                 struct cm_error *err)
{
    if (!cm_dtype_is_valid(proto->data_type))
        return cm_fail(err, CM_BAD_MODEL, "data_type is %d, which is not an element type",
                       (int)proto->data_type);
    out->type = (enum cm_dtype)proto->data_type;
    CM_TRY(cm_tensor_proto_shape(proto, &out->shape, err));
    out->count = cm_shape_elements(&out->shape);
    if (!cm_dtype_bytes(out->type, out->count, &out->bytes)) {
        char text[160];
        return cm_fail(err, CM_BAD_MODEL, "size of %s does not fit in memory",
                       print_type(out, text, sizeof text));
    }
    return CM_OK;
}

enum cm_status cm_tensor_proto_bytes(const struct cm_tensor_proto *proto, uint64_t *out,
                                     struct cm_error *err)
{
    struct facts facts;

    CM_TRY(name_it(proto, find_facts(proto, &facts, err), err));
    *out = facts.bytes;
    if (facts.type != CM_STRING)
        return CM_OK;
    *out = 0;
    for (size_t i = 0; i < proto->string_data.count; i++)
        *out += proto->string_data.items[i].size; /* views of one file: cannot overflow */
    return CM_OK;
}

struct cm_packed *cm_tensor_proto_packed(struct cm_tensor_proto *proto, int field)
{
    return cm_field_at(proto, &cm_tensor_info.fields[field]);
}

static struct cm_packed packed_field(const struct cm_tensor_proto *proto, int field)
{
    const struct cm_wire_list list = cm_field_list(proto, &cm_tensor_info.fields[field]);
    return (struct cm_packed){list.items, list.count};
}

/* A field that holds nothing counts as absent, as some writers set all of them. */
static bool is_filled(const struct cm_tensor_proto *proto, int field)
{
    return cm_msg_has(&proto->msg, field) && packed_field(proto, field).size != 0;
}

static size_t fill_count(const struct cm_tensor_proto *proto)
{
    size_t count = 0;
    for (size_t i = 0; i < CM_COUNT(value_fields); i++)
        count += is_filled(proto, value_fields[i]);
    return count;
}

/* Entries of the typed field: one per element, or two for complex types, or one per packed byte. */
static uint64_t entries_needed(const struct facts *facts)
{
    const struct cm_dtype_info *info = cm_dtype_info(facts->type);
    const uint64_t count = (uint64_t)facts->count;

    if (info->kind == CM_CLASS_COMPLEX)
        return 2 * count; /* fits: the bytes did */
    return info->bits == 4 || info->bits == 2 ? facts->bytes : count;
}

static enum cm_status wrong_size(const char *field, uint64_t has, const char *unit, uint64_t needs,
                                 const struct facts *facts, struct cm_error *err)
{
    char text[160];
    return cm_fail(err, CM_BAD_MODEL, "%s has %llu %s, %s needs %llu", field,
                   (unsigned long long)has, unit, print_type(facts, text, sizeof text),
                   (unsigned long long)needs);
}

static enum cm_status check_typed(const struct cm_tensor_proto *proto, const struct facts *facts,
                                  struct cm_error *err)
{
    const int field = cm_tensor_values_field(facts->type);
    const char *name = field_name(field);
    const uint64_t needs = entries_needed(facts);
    const size_t size = packed_field(proto, field).size;
    const size_t width = cm_wire_kind(cm_tensor_info.fields[field].kind)->width;

    if (field == CM_TENSOR_STRING_DATA)
        return size == needs ? CM_OK : wrong_size(name, size, "strings", needs, facts, err);
    if (width)
        return size % width == 0 && size / width == needs
                   ? CM_OK
                   : wrong_size(name, size / width, "values", needs, facts, err);
    /* Varints have 1 to 10 bytes each; how many there are, only decoding tells. */
    if (size < needs || size / 10 > needs)
        return wrong_size(name, size, "bytes of varints", needs, facts, err);
    return CM_OK;
}

static enum cm_status check_filled(const struct cm_tensor_proto *proto, const struct facts *facts,
                                   struct cm_error *err)
{
    const int field = cm_tensor_values_field(facts->type);
    const size_t filled = fill_count(proto);

    if (filled > 1)
        return cm_fail(err, CM_BAD_MODEL, "%zu fields hold values, must be one", filled);
    if (filled == 0 && facts->count == 0)
        return CM_OK;
    if (filled == 0) {
        char text[160];
        return cm_fail(err, CM_BAD_MODEL, "holds no values for %s",
                       print_type(facts, text, sizeof text));
    }
    if (is_filled(proto, CM_TENSOR_RAW_DATA)) {
        if (facts->type == CM_STRING)
            return cm_fail(err, CM_BAD_MODEL, "strings cannot be in raw_data");
        if (proto->raw_data.size != facts->bytes)
            return wrong_size("raw_data", proto->raw_data.size, "bytes", facts->bytes, facts, err);
        return CM_OK;
    }
    if (!is_filled(proto, field))
        return cm_fail(err, CM_BAD_MODEL, "%s values must be in %s or raw_data",
                       cm_dtype_name(facts->type), field_name(field));
    return check_typed(proto, facts, err);
}

static enum cm_status check(const struct cm_tensor_proto *proto, struct facts *facts,
                            struct cm_error *err)
{
    CM_TRY(find_facts(proto, facts, err));
    if (proto->segment)
        return cm_fail(err, CM_UNSUPPORTED, "is a segment of a larger tensor");
    if (proto->data_location == CM_LOCATION_DEFAULT)
        return check_filled(proto, facts, err);
    if (proto->data_location != CM_LOCATION_EXTERNAL)
        return cm_fail(err, CM_BAD_MODEL, "data_location is %d, must be 0 or 1",
                       (int)proto->data_location);
    if (facts->type == CM_STRING)
        return cm_fail(err, CM_BAD_MODEL, "strings cannot be in an external file");
    if (fill_count(proto))
        return cm_fail(err, CM_BAD_MODEL, "holds values though its data is external");
    return CM_OK;
}

enum cm_status cm_tensor_proto_check(const struct cm_tensor_proto *proto, struct cm_error *err)
{
    struct facts facts;
    return name_it(proto, check(proto, &facts, err), err);
}

/* Bytes that are already as in memory: in place, or copied where the element type cannot start.
 * aligned: NULL, or where to say so instead of copying. */
static enum cm_status view(const struct facts *facts, const void *bytes, struct cm_tensor *out,
                           bool *aligned, struct cm_error *err)
{
    static const _Alignas(CM_TENSOR_ALIGNMENT) uint8_t nothing[CM_TENSOR_ALIGNMENT];
    const size_t size = cm_dtype_size(facts->type);
    const size_t alignment = size > 8 ? 8 : size ? size : 1; /* complex128 is a pair of doubles */

    if (facts->count == 0)
        bytes = nothing;
    const struct cm_tensor in_place =
        cm_tensor_borrow(facts->type, &facts->shape, (void *)(uintptr_t)bytes);
    const bool fits = (uintptr_t)bytes % alignment == 0;
    /* Bits past the last element may be anything in a file, but not in a tensor. */
    if ((fits || aligned) && cm_tensor_padding_is_clear(&in_place)) {
        if (aligned)
            *aligned = fits;
        *out = in_place;
        return CM_OK;
    }
    CM_TRY(cm_tensor_copy(&in_place, out, err));
    cm_tensor_clear_padding(out);
    return CM_OK;
}

/* One entry of int32_data: sign-extended and zero-extended forms of the bits are both in use. */
static bool put_int32(const struct facts *facts, uint64_t entry, int64_t i, void *data)
{
    const int32_t value = (int32_t)(uint32_t)entry; /* protobuf keeps the low 32 bits */
    const int width = cm_dtype_info(facts->type)->bits;
    const int bits = width < 6 ? 8 : width; /* 4 and 2 bits come packed, a byte to an entry */

    if (bits < 32 && (value < -(1 << (bits - 1)) || value >= 1 << bits))
        return false;
    switch (bits) {
    case 32:
        ((int32_t *)data)[i] = value;
        return true;
    case 16:
        ((uint16_t *)data)[i] = (uint16_t)value;
        return true;
    case 8:
        ((uint8_t *)data)[i] = facts->type == CM_BOOL ? (uint8_t)(value != 0) : (uint8_t)value;
        return true;
    default:
        cm_packed_set(bits, data, i, (uint8_t)value);
        return true;
    }
}

static bool put_entry(const struct facts *facts, uint64_t entry, int64_t i, void *data)
{
    switch (cm_dtype_info(facts->type)->field) {
    case CM_TYPED_INT32:
        return put_int32(facts, entry, i, data);
    case CM_TYPED_INT64:
        ((int64_t *)data)[i] = (int64_t)entry;
        return true;
    default:
        if (facts->type == CM_UINT64)
            ((uint64_t *)data)[i] = entry;
        else
            ((uint32_t *)data)[i] = (uint32_t)entry;
        return facts->type == CM_UINT64 || entry <= UINT32_MAX;
    }
}

static enum cm_status decode_entries(const struct facts *facts, struct cm_packed rest,
                                     const char *field, void *data, struct cm_error *err)
{
    const uint64_t needs = entries_needed(facts);
    uint64_t entry, i = 0;
    bool broken = false;

    for (; i < needs && cm_varint_next(&rest, &entry, &broken); i++) {
        if (!put_entry(facts, entry, (int64_t)i, data))
            return cm_fail(err, CM_BAD_MODEL, "%s[%llu] is %lld, which %s cannot hold", field,
                           (unsigned long long)i, (long long)entry, cm_dtype_name(facts->type));
    }
    while (!broken && cm_varint_next(&rest, &entry, &broken))
        i++;
    if (broken)
        return cm_fail(err, CM_BAD_MODEL, "%s[%llu] is a broken number", field,
                       (unsigned long long)i);
    return i == needs ? CM_OK : wrong_size(field, i, "values", needs, facts, err);
}

static enum cm_status decode_typed(const struct cm_tensor_proto *proto, const struct facts *facts,
                                   struct cm_tensor *out, bool *aligned, struct cm_error *err)
{
    const int field = cm_tensor_values_field(facts->type);
    const struct cm_packed packed = packed_field(proto, field);
    struct cm_tensor tensor;

    if (field == CM_TENSOR_FLOAT_DATA || field == CM_TENSOR_DOUBLE_DATA)
        return view(facts, packed.data, out, aligned, err);
    CM_TRY(cm_tensor_new(facts->type, &facts->shape, &tensor, err));
    if (cm_dtype_info(facts->type)->bits == 6) /* what is left of the last byte is zero */
        memset(tensor.data, 0, facts->bytes);
    const enum cm_status status =
        decode_entries(facts, packed, field_name(field), tensor.data, err);
    if (status)
        cm_tensor_drop(&tensor);
    else
        *out = tensor;
    return status;
}

/* The same of bytes that may lie in a mapped file: what was copied need not stay in memory. */
static enum cm_status view_mapped(const struct facts *facts, const void *bytes,
                                  const struct cm_external_files *files, struct cm_tensor *out,
                                  bool *aligned, struct cm_error *err)
{
    CM_TRY(view(facts, bytes, out, aligned, err));
    if (files && out->buffer)
        cm_external_forget(files, bytes, facts->bytes);
    return CM_OK;
}

static enum cm_status read_later(const struct cm_contents *contents, const struct facts *facts,
                                 struct cm_tensor *out, struct cm_error *err)
{
    struct cm_tensor tensor;

    CM_TRY(cm_tensor_new(facts->type, &facts->shape, &tensor, err));
    const enum cm_status status = contents->read(contents, 0, facts->bytes, tensor.data, err);
    if (status)
        cm_tensor_drop(&tensor);
    else
        *out = tensor;
    return status;
}

static enum cm_status load(const struct cm_tensor_proto *proto, struct cm_external_files *files,
                           struct cm_tensor *out, bool *aligned, struct cm_error *err)
{
    struct facts facts;
    struct cm_str bytes;

    CM_TRY(check(proto, &facts, err));
    if (proto->data_location == CM_LOCATION_EXTERNAL) {
        if (!files)
            return cm_fail(err, CM_UNSUPPORTED,
                           "its data is external, and there is no folder for it");
        CM_TRY(cm_external_view(files, proto, facts.bytes, &bytes, err));
        return view_mapped(&facts, bytes.data, files, out, aligned, err);
    }
    if (facts.count == 0)
        return view(&facts, NULL, out, NULL, err);
    if (facts.type == CM_STRING) {
        *out = cm_tensor_borrow(CM_STRING, &facts.shape, proto->string_data.items);
        return CM_OK;
    }
    if (proto->later)
        return read_later(proto->later, &facts, out, err);
    if (is_filled(proto, CM_TENSOR_RAW_DATA))
        return view_mapped(&facts, proto->raw_data.data, files, out, aligned, err);
    return decode_typed(proto, &facts, out, aligned, err);
}

enum cm_status cm_tensor_proto_load(const struct cm_tensor_proto *proto,
                                    struct cm_external_files *files, struct cm_tensor *out,
                                    struct cm_error *err)
{
    return name_it(proto, load(proto, files, out, NULL, err), err);
}

enum cm_status cm_tensor_proto_view(const struct cm_tensor_proto *proto,
                                    struct cm_external_files *files, struct cm_tensor *out,
                                    bool *aligned, struct cm_error *err)
{
    *aligned = true;
    return name_it(proto, load(proto, files, out, aligned, err), err);
}

static void clear_field(struct cm_tensor_proto *proto, int field)
{
    if (cm_msg_has(&proto->msg, field))
        cm_msg_clear(&proto->msg, field);
}

void cm_tensor_proto_clear_values(struct cm_tensor_proto *proto, int but)
{
    proto->later = NULL;
    for (size_t i = 0; i < CM_COUNT(value_fields); i++)
        if (value_fields[i] != but)
            clear_field(proto, value_fields[i]);
}

void cm_tensor_proto_leave_file(struct cm_tensor_proto *proto)
{
    clear_field(proto, CM_TENSOR_EXTERNAL_DATA);
    clear_field(proto, CM_TENSOR_DATA_LOCATION);
    proto->external_data = (struct cm_entries){0};
    proto->data_location = CM_LOCATION_DEFAULT;
}

static void store_dims(struct cm_tensor_proto *proto, struct cm_arena *arena,
                       const struct cm_shape *shape)
{
    const size_t rank = (size_t)shape->rank;

    if (proto->dims.count == rank &&
        (rank == 0 || memcmp(proto->dims.items, shape->dims, rank * sizeof(int64_t)) == 0))
        return; /* what says the same keeps its bytes */
    proto->dims.items = CM_NEW_ARRAY(arena, int64_t, rank);
    proto->dims.count = rank;
    memcpy(proto->dims.items, shape->dims, rank * sizeof(int64_t));
    cm_msg_set(&proto->msg, CM_TENSOR_DIMS);
}

/* Floating point values stay in the typed field they were in: there they look the same. */
static int store_field(const struct cm_tensor_proto *proto, enum cm_dtype type)
{
    const int field = cm_tensor_values_field(type);

    if (field == CM_TENSOR_STRING_DATA)
        return field;
    if (proto->data_type == (int32_t)type &&
        (field == CM_TENSOR_FLOAT_DATA || field == CM_TENSOR_DOUBLE_DATA) &&
        is_filled(proto, field))
        return field;
    return CM_TENSOR_RAW_DATA;
}

enum cm_status cm_tensor_proto_store(struct cm_tensor_proto *proto, struct cm_arena *arena,
                                     const struct cm_tensor *tensor, struct cm_error *err)
{
    if (tensor->layout)
        return name_it(proto,
                       cm_fail(err, CM_UNSUPPORTED, "a backend's layout cannot be stored as it is"),
                       err);
    const int field = store_field(proto, tensor->type);
    const size_t bytes = cm_tensor_bytes(tensor);

    store_dims(proto, arena, &tensor->shape);
    if (proto->data_type != (int32_t)tensor->type) {
        proto->data_type = (int32_t)tensor->type;
        cm_msg_set(&proto->msg, CM_TENSOR_DATA_TYPE);
    }
    cm_tensor_proto_clear_values(proto, field);
    cm_tensor_proto_leave_file(proto);
    clear_field(proto, CM_TENSOR_SEGMENT);
    proto->segment = NULL;
    const struct cm_wire_list contents = {
        tensor->data, field == CM_TENSOR_STRING_DATA ? (size_t)cm_tensor_count(tensor) : bytes};
    memcpy(cm_field_at(proto, &cm_tensor_info.fields[field]), &contents, sizeof contents);
    cm_msg_set(&proto->msg, field);
    return CM_OK;
}

/* ---- contents that come later ---- */

enum cm_status cm_tensor_proto_store_later(struct cm_tensor_proto *proto, struct cm_arena *arena,
                                           enum cm_dtype type, const struct cm_shape *shape,
                                           const struct cm_contents *contents, struct cm_error *err)
{
    const struct cm_tensor nothing = cm_tensor_borrow(type, shape, NULL);

    proto->float_data = proto->double_data = (struct cm_packed){0}; /* so that raw_data is chosen */
    CM_TRY(cm_tensor_proto_store(proto, arena, &nothing, err));
    if (cm_tensor_bytes(&nothing))
        proto->later = contents;
    return CM_OK;
}

enum cm_status cm_contents_write(const struct cm_contents *contents, uint64_t size,
                                 cm_contents_fn *write, void *arg, struct cm_error *err)
{
    uint8_t *piece = cm_malloc(cm_min_size(contents->piece, size));
    enum cm_status status = CM_OK;

    if (!piece)
        return cm_fail(err, CM_NO_MEMORY, "no memory for %zu bytes of a tensor", contents->piece);
    for (uint64_t at = 0; !status && at < size;) {
        const size_t now = cm_min_size(contents->piece, size - at);

        status = contents->read(contents, at, now, piece, err);
        if (!status)
            status = write(arg, piece, now, err);
        at += now;
    }
    cm_free(piece);
    return status;
}
