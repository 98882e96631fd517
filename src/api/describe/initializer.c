/* Reading and replacing the values of initializers. */
// SPDX-License-Identifier: Apache-2.0
#include "api/running.h"

#include "onnx/tensor_data.h"

struct values_call {
    struct cameo_model *model;
    size_t index;
    const uint8_t *from; /* set */
    uint8_t *to;         /* read */
    size_t size;
};

static enum cm_status check_call(const struct values_call *call, struct cm_error *err)
{
    const struct cameo_model *model = call->model;
    const struct cameo_initializer *row = cameo_model_initializer(model, call->index);

    if (!row)
        return cm_fail(err, CM_BAD_ARGUMENT, "there is no initializer %zu, the model has %zu",
                       call->index, model->summary.initializer_count);
    if (row->sparse || row->dtype == CAMEO_STRING)
        return cm_fail(err, CM_UNSUPPORTED, "initializer '%.200s' holds %s", row->name.data,
                       row->sparse ? "a sparse tensor" : "strings");
    if (row->elements < 0 || row->dtype == CAMEO_UNDEFINED)
        return cm_fail(err, CM_BAD_MODEL,
                       "initializer '%.200s' has an unknown type or an invalid shape",
                       row->name.data);
    if (call->size != row->bytes)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "initializer '%.200s' has %llu bytes of values, but %zu bytes were passed",
                       row->name.data, (unsigned long long)row->bytes, call->size);
    if (call->size && !call->from && !call->to)
        return cm_fail(err, CM_BAD_ARGUMENT, "no memory for the values was given");
    return CM_OK;
}

static enum cm_status read_values(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    const struct values_call *call = arg;
    struct cm_tensor tensor = {0};

    (void)scratch;
    CM_TRY(check_call(call, err));
    CM_TRY(cm_tensor_proto_load(call->model->slots[call->index].proto, call->model->file->files,
                                &tensor, err));
    const size_t size = cm_tensor_bytes(&tensor);
    if (size == call->size && size)
        memcpy(call->to, tensor.data, size);
    cm_tensor_drop(&tensor);
    return size == call->size ? CM_OK : cm_fail(err, CM_BAD_MODEL, "values have %zu bytes", size);
}

enum cameo_status cameo_model_read_initializer(const struct cameo_model *model, size_t index,
                                               void *values, size_t size, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED_ALL(values, size, err);
    struct values_call call = {
        .model = (struct cameo_model *)(uintptr_t)model,
        .index = index,
        .to = values,
        .size = size,
    };

    return cm_api_call(model, read_values, &call, err);
}

/* ---- without a copy ---- */

struct view_call {
    const struct cameo_model *model;
    size_t index;
    struct cameo_value **out;
};

static void leave_to_model(void *arg)
{
    (void)arg;
}

static enum cm_status take_view(struct cm_tensor tensor, struct cameo_value **out,
                                struct cm_error *err)
{
    struct cm_datum made = {.kind = CM_KIND_TENSOR, .tensor = tensor};

    if (!made.tensor.buffer && made.tensor.type != CM_STRING)
        return cm_api_wrap(&made.tensor, leave_to_model, NULL, true, out, err);
    enum cm_status status = cm_api_own_strings(&made, err);
    if (status == CM_OK && made.tensor.buffer)
        cm_buffer_protect(made.tensor.buffer);
    if (status == CM_OK)
        status = cm_api_take(&made, out, err);
    cm_datum_drop(&made);
    return status;
}

static enum cm_status view(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    const struct view_call *call = arg;
    const struct cameo_initializer *row = cameo_model_initializer(call->model, call->index);
    struct cm_tensor tensor;

    (void)scratch;
    if (!row)
        return cm_fail(err, CM_BAD_ARGUMENT, "there is no initializer %zu, the model has %zu",
                       call->index, call->model->summary.initializer_count);
    if (row->sparse)
        return cm_fail(err, CM_UNSUPPORTED, "initializer '%.200s' holds a sparse tensor",
                       row->name.data);
    CM_TRY(cm_tensor_proto_load(call->model->slots[call->index].proto, call->model->file->files,
                                &tensor, err));
    return take_view(tensor, call->out, err);
}

enum cameo_status cameo_model_view_initializer(const struct cameo_model *model, size_t index,
                                               struct cameo_value **out, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(out, err);
    struct view_call call = {model, index, out};

    *out = NULL;
    return cm_api_call(model, view, &call, err);
}

static void forget_external(struct cameo_model *model, struct cameo_initializer *row)
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
static enum cm_status set_values(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    struct values_call *call = arg;
    struct cameo_model *model = call->model;
    struct cm_shape shape;
    size_t room;

    (void)scratch;
    CM_TRY(check_call(call, err));
    if (call->size == 0) /* no values, no change */
        return CM_OK;
    struct cm_api_slot *slot = &model->slots[call->index];
    struct cm_tensor_proto *proto = slot->proto;
    model->prepared = NULL; /* it has the values as they were */
    CM_TRY(cm_tensor_proto_shape(proto, &shape, err));
    struct cm_tensor values =
        cm_tensor_borrow((enum cm_dtype)proto->data_type, &shape, (void *)(uintptr_t)call->from);
    if (!cm_tensor_proto_room(proto, &values, &room))
        return cm_fail(err, CM_LIMIT, "%zu bytes of values are too many", call->size);
    const bool coded = room > 0;
    if (!coded)
        room = call->size;
    if (room > slot->room || !slot->own) {
        slot->own = cm_arena_alloc(&model->arena, room);
        slot->room = room;
    }
    if (!coded)
        values.data = memcpy(slot->own, call->from, call->size);
    if (proto->data_location == CM_LOCATION_EXTERNAL)
        forget_external(model, &model->initializers[call->index]);
    cm_tensor_proto_replace(proto, &values, slot->own);
    return CM_OK;
}

enum cameo_status cameo_model_set_initializer(struct cameo_model *model, size_t index,
                                              const void *values, size_t size,
                                              struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED_ALL(values, size, err);
    struct values_call call = {.model = model, .index = index, .from = values, .size = size};

    return cm_api_call(model, set_values, &call, err);
}
