/* Reading and replacing the values of initializers. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api.h"

#include "base/number.h"
#include "onnx/tensor_data.h"

struct values_call {
    struct cameo_model *model;
    size_t index;
    const uint8_t *from; /* set */
    uint8_t *to;         /* read */
    size_t size;
    struct cm_error err;
};

static enum cm_status check_call(struct values_call *call)
{
    const struct cameo_model *model = call->model;
    const struct cameo_tensor *row = cameo_model_initializer(model, call->index);

    if (!row)
        return cm_fail(&call->err, CM_BAD_ARGUMENT,
                       "there is no initializer %zu, the model has %zu", call->index,
                       model->summary.initializer_count);
    if (row->sparse || row->dtype == CAMEO_STRING)
        return cm_fail(&call->err, CM_UNSUPPORTED, "initializer '%.200s' holds %s", row->name.data,
                       row->sparse ? "a sparse tensor" : "strings");
    if (row->elements < 0 || row->dtype == CAMEO_UNDEFINED)
        return cm_fail(&call->err, CM_BAD_MODEL, "initializer '%.200s' has a type or shape that %s",
                       row->name.data, "makes no sense");
    if (call->size != row->bytes)
        return cm_fail(&call->err, CM_BAD_ARGUMENT,
                       "initializer '%.200s' has %llu bytes of values, the call is for %zu",
                       row->name.data, (unsigned long long)row->bytes, call->size);
    if (call->size && !call->from && !call->to)
        return cm_fail(&call->err, CM_BAD_ARGUMENT, "no memory for the values was given");
    return CM_OK;
}

static enum cm_status read_guarded(struct cm_guard *guard, void *arg)
{
    struct values_call *call = arg;
    struct cm_tensor tensor = {0};

    (void)guard;
    CM_TRY(cm_tensor_proto_load(call->model->slots[call->index].proto, call->model->file->files,
                                &tensor, &call->err));
    const size_t size = cm_tensor_bytes(&tensor);
    if (size == call->size && size)
        memcpy(call->to, tensor.data, size);
    cm_tensor_drop(&tensor);
    return size == call->size ? CM_OK
                              : cm_fail(&call->err, CM_BAD_MODEL, "values have %zu bytes", size);
}

enum cameo_status cameo_model_read_initializer(const struct cameo_model *model, size_t index,
                                               void *values, size_t size, struct cameo_error *err)
{
    struct values_call call = {
        .model = (struct cameo_model *)(uintptr_t)model,
        .index = index,
        .to = values,
        .size = size,
    };
    enum cm_status status = check_call(&call);

    if (status == CM_OK)
        status = cm_api_locked(model, read_guarded, &call, &call.err);
    return cm_api_done(status, &call.err, err);
}

/* The repeated field that holds a tensor's values, or -1 when raw_data does or should. */
static int typed_field(const struct cm_tensor_proto *proto)
{
    static const int fields[] = {
        [CM_TYPED_NONE] = -1,
        [CM_TYPED_FLOAT] = CM_TENSOR_FLOAT_DATA,
        [CM_TYPED_INT32] = CM_TENSOR_INT32_DATA,
        [CM_TYPED_STRING] = -1,
        [CM_TYPED_INT64] = CM_TENSOR_INT64_DATA,
        [CM_TYPED_DOUBLE] = CM_TENSOR_DOUBLE_DATA,
        [CM_TYPED_UINT64] = CM_TENSOR_UINT64_DATA,
    };
    const int field = fields[cm_dtype_info((enum cm_dtype)proto->data_type)->field];

    if (field < 0 || proto->data_location == CM_LOCATION_EXTERNAL ||
        cm_msg_has(&proto->msg, CM_TENSOR_RAW_DATA) || !cm_msg_has(&proto->msg, field))
        return -1;
    return field;
}

static size_t put_varint(uint8_t *to, uint64_t value)
{
    size_t size = 0;

    for (; value > 127; value >>= 7)
        to[size++] = (uint8_t)(value | 128);
    to[size++] = (uint8_t)value;
    return size;
}

/* Six-bit elements have an entry each, unlike those that fit a whole number of times into a byte.
 */
static size_t put_sixes(uint8_t *to, const uint8_t *from, size_t size, int64_t elements)
{
    for (size_t i = 0; i < (size_t)elements; i++) {
        const size_t byte = i * 6 / 8;
        const unsigned low = from[byte], high = byte + 1 < size ? from[byte + 1] : 0;

        to[i] = (uint8_t)((low | high << 8) >> (i * 6 % 8) & 63);
    }
    return (size_t)elements;
}

/* Elements as varints, signed ones extended to 64 bits as protobuf wants; types of less than a byte
 * go byte by byte. Returns the bytes written, at most ten an element. */
static size_t put_varints(uint8_t *to, const uint8_t *from, size_t size, enum cm_dtype type)
{
    const size_t width = cm_dtype_size(type) ? cm_dtype_size(type) : 1;
    const bool extend = cm_dtype_size(type) && cm_dtype_info(type)->kind == CM_CLASS_SIGNED;
    const uint64_t sign = UINT64_C(1) << (width * 8 - 1);
    size_t written = 0;

    for (size_t i = 0; i + width <= size; i += width) {
        uint64_t value = 0;

        memcpy(&value, from + i, width);
        if (extend)
            value = (value ^ sign) - sign;
        written += put_varint(to + written, value);
    }
    return written;
}

static struct cm_packed *packed_member(struct cm_tensor_proto *proto, int field)
{
    switch (field) {
    case CM_TENSOR_FLOAT_DATA:
        return &proto->float_data;
    case CM_TENSOR_INT32_DATA:
        return &proto->int32_data;
    case CM_TENSOR_INT64_DATA:
        return &proto->int64_data;
    case CM_TENSOR_DOUBLE_DATA:
        return &proto->double_data;
    default:
        return &proto->uint64_data;
    }
}

static void forget_external(struct cameo_model *model, struct cameo_tensor *row)
{
    for (size_t i = 0; i < model->summary.external_file_count; i++) {
        struct cameo_external_file *file = &model->external_files[i];

        if (file->location.size != row->location.size ||
            memcmp(file->location.data, row->location.data, row->location.size) != 0)
            continue;
        file->tensor_count--;
        file->bytes -= file->bytes < row->bytes ? file->bytes : row->bytes;
        if (file->tensor_count == 0) {
            const size_t after = --model->summary.external_file_count - i;
            memmove(file, file + 1, after * sizeof *file);
        }
        break;
    }
    row->is_external = false;
    row->location = (struct cameo_text){"", 0};
}

/* All memory first: once the first member is changed nothing can fail. */
static enum cm_status set_guarded(struct cm_guard *guard, void *arg)
{
    struct values_call *call = arg;
    struct cameo_model *model = call->model;
    struct cm_api_slot *slot = &model->slots[call->index];
    struct cm_tensor_proto *proto = slot->proto;
    const int field = typed_field(proto);
    const bool varints = field == CM_TENSOR_INT32_DATA || field == CM_TENSOR_INT64_DATA ||
                         field == CM_TENSOR_UINT64_DATA;
    size_t room = call->size;

    (void)guard;
    if (varints && !cm_size_mul(call->size, 10, &room))
        return cm_fail(&call->err, CM_LIMIT, "%zu bytes of values are too many", call->size);
    if (room > slot->room || !slot->own) {
        slot->own = cm_arena_alloc(&model->arena, room);
        slot->room = room;
    }
    size_t written = call->size;
    if (varints && cm_dtype_info((enum cm_dtype)proto->data_type)->bits == 6)
        written =
            put_sixes(slot->own, call->from, call->size, model->initializers[call->index].elements);
    else if (varints)
        written = put_varints(slot->own, call->from, call->size, (enum cm_dtype)proto->data_type);
    else if (call->size)
        memcpy(slot->own, call->from, call->size);
    if (proto->data_location == CM_LOCATION_EXTERNAL) {
        proto->external_data = (struct cm_entries){0};
        proto->data_location = CM_LOCATION_DEFAULT;
        cm_msg_clear(&proto->msg, CM_TENSOR_EXTERNAL_DATA);
        cm_msg_clear(&proto->msg, CM_TENSOR_DATA_LOCATION);
        forget_external(model, &model->initializers[call->index]);
    }
    if (field < 0) {
        proto->raw_data = (struct cm_str){(const char *)slot->own, written};
        cm_msg_set(&proto->msg, CM_TENSOR_RAW_DATA);
    } else {
        *packed_member(proto, field) = (struct cm_packed){slot->own, written};
        cm_msg_set(&proto->msg, field);
    }
    return CM_OK;
}

enum cameo_status cameo_model_set_initializer(struct cameo_model *model, size_t index,
                                              const void *values, size_t size,
                                              struct cameo_error *err)
{
    struct values_call call = {.model = model, .index = index, .from = values, .size = size};
    enum cm_status status = check_call(&call);

    if (status == CM_OK && size > 0) /* no values, no change */
        status = cm_api_locked(model, set_guarded, &call, &call.err);
    return cm_api_done(status, &call.err, err);
}
