/* Changes to tensors and to the types of values. */
// SPDX-License-Identifier: Apache-2.0
#include "mutate_model.h"

#include "onnx/tensor_data.h"

enum { MOST_ELEMENTS = 64 };

/* ---- tensors ---- */

/* Element i: bits that mean something for its type. */
static void put_element(struct mutation *m, int32_t dtype, uint8_t *bytes, size_t i)
{
    const size_t size = cm_dtype_size((enum cm_dtype)dtype);
    const float real = chance_real(m->chance);
    const double wide = (double)real;
    const int64_t number = chance_number(m->chance);

    switch (dtype) {
    case CM_FLOAT:
    case CM_COMPLEX64:
        for (size_t part = 0; part < size; part += sizeof real)
            memcpy(bytes + i * size + part, &real, sizeof real);
        break;
    case CM_DOUBLE:
    case CM_COMPLEX128:
        for (size_t part = 0; part < size; part += sizeof wide)
            memcpy(bytes + i * size + part, &wide, sizeof wide);
        break;
    case CM_BOOL:
        bytes[i] = chance_percent(m->chance, 98) ? number & 1 : (uint8_t)number;
        break;
    default: /* little-endian: the low bytes are the number cut to fit */
        memcpy(bytes + i * (size_t)cm_dtype_info((enum cm_dtype)dtype)->bits / 8, &number,
               size ? size : 1);
        break;
    }
}

static void clear_contents(struct cm_tensor_proto *tensor)
{
    static const int fields[] = {
        CM_TENSOR_FLOAT_DATA, CM_TENSOR_INT32_DATA,    CM_TENSOR_STRING_DATA,
        CM_TENSOR_INT64_DATA, CM_TENSOR_DOUBLE_DATA,   CM_TENSOR_UINT64_DATA,
        CM_TENSOR_RAW_DATA,   CM_TENSOR_EXTERNAL_DATA, CM_TENSOR_DATA_LOCATION};

    for (size_t i = 0; i < CM_COUNT(fields); i++)
        cm_msg_clear(&tensor->msg, fields[i]);
    tensor->data_location = CM_LOCATION_DEFAULT;
}

static void fill_strings(struct mutation *m, struct cm_tensor_proto *tensor, size_t count)
{
    static const char *const words[] = {"", "a", "1", "1.5", "nan", "a b", "\xc3\xa4", "\xff"};

    clear_contents(tensor);
    tensor->string_data.items = CM_NEW_ARRAY(m->arena, struct cm_str, count);
    tensor->string_data.count = count;
    for (size_t i = 0; i < count; i++)
        tensor->string_data.items[i] = cm_str(words[chance_draw(m->chance, CM_COUNT(words))]);
    cm_msg_set(&tensor->msg, CM_TENSOR_STRING_DATA);
}

void mutation_fill_tensor(struct mutation *m, struct cm_tensor_proto *tensor, int32_t dtype,
                          bool keep_shape)
{
    int64_t count = 1;
    size_t bytes;

    if (!keep_shape) {
        tensor->dims.count = chance_draw(m->chance, 5);
        tensor->dims.items = CM_NEW_ARRAY(m->arena, int64_t, tensor->dims.count);
        for (size_t i = 0; i < tensor->dims.count; i++)
            tensor->dims.items[i] =
                (int64_t)chance_draw(m->chance, 4) + (int64_t)chance_percent(m->chance, 80);
        cm_msg_set(&tensor->msg, CM_TENSOR_DIMS);
    }
    tensor->data_type = dtype;
    cm_msg_set(&tensor->msg, CM_TENSOR_DATA_TYPE);
    for (size_t i = 0; i < tensor->dims.count; i++) {
        const int64_t dim = tensor->dims.items[i];
        count = dim < 0 || dim > MOST_ELEMENTS ? MOST_ELEMENTS + 1 : count * dim;
        if (count > MOST_ELEMENTS)
            return; /* the contents do not fit: that too must be noticed */
    }
    if (dtype == CM_STRING) {
        fill_strings(m, tensor, (size_t)count);
        return;
    }
    if (!cm_dtype_is_valid(dtype) || !cm_dtype_bytes((enum cm_dtype)dtype, count, &bytes))
        return;
    uint8_t *raw = cm_arena_alloc(m->arena, bytes + 16);
    for (size_t i = 0; i < (size_t)count; i++)
        put_element(m, dtype, raw, i);
    clear_contents(tensor);
    tensor->raw_data = (struct cm_str){(const char *)raw, bytes};
    cm_msg_set(&tensor->msg, CM_TENSOR_RAW_DATA);
}

/* Another number in one place, the rest as it was. */
static bool change_element(struct mutation *m, struct cm_tensor_proto *tensor)
{
    struct cm_tensor now;
    struct cm_error err;

    if (tensor->data_type == CM_STRING || cm_tensor_proto_load(tensor, NULL, &now, &err))
        return false;
    const size_t size = cm_tensor_bytes(&now);
    const size_t count = (size_t)cm_tensor_count(&now);
    uint8_t *raw = cm_arena_alloc(m->arena, size + 16);
    if (size)
        memcpy(raw, now.data, size);
    cm_tensor_drop(&now);
    if (!count)
        return false;
    put_element(m, tensor->data_type, raw, chance_draw(m->chance, count));
    clear_contents(tensor);
    tensor->raw_data = (struct cm_str){(const char *)raw, size};
    cm_msg_set(&tensor->msg, CM_TENSOR_RAW_DATA);
    return true;
}

static void change_dim(struct mutation *m, struct cm_tensor_proto *tensor)
{
    const size_t count = tensor->dims.count;
    int64_t *dims = CM_NEW_ARRAY(m->arena, int64_t, count + 1);

    if (count)
        memcpy(dims, tensor->dims.items, count * sizeof *dims);
    tensor->dims.items = dims;
    if (!count || chance_percent(m->chance, 25)) { /* one more, often without more elements */
        dims[count] = chance_percent(m->chance, 70) ? 1 : chance_number(m->chance);
        tensor->dims.count++;
    } else if (chance_percent(m->chance, 25)) {
        tensor->dims.count--;
    } else {
        dims[chance_draw(m->chance, count)] = chance_number(m->chance);
    }
    cm_msg_set(&tensor->msg, CM_TENSOR_DIMS);
}

bool mutate_tensor(struct mutation *m)
{
    if (!m->tensors.count)
        return false;
    struct cm_tensor_proto *tensor = m->tensors.items[chance_draw(m->chance, m->tensors.count)];

    switch (chance_draw(m->chance, 5)) {
    case 0:
    case 1:
        return change_element(m, tensor);
    case 2:
        change_dim(m, tensor);
        if (chance_percent(m->chance, 80))
            mutation_fill_tensor(m, tensor, tensor->data_type, true);
        return true;
    case 3:
        mutation_fill_tensor(m, tensor, mutation_dtype(m), true);
        return true;
    default:
        mutation_fill_tensor(m, tensor, tensor->data_type, false);
        return true;
    }
}

/* ---- types ---- */

static void random_dim(struct mutation *m, struct cm_dim_proto *dim)
{
    static const char *const symbols[] = {"N", "M", "batch", ""};

    *dim = (struct cm_dim_proto){0};
    switch (chance_draw(m->chance, 6)) {
    case 0:
        dim->dim_param = cm_str(symbols[chance_draw(m->chance, CM_COUNT(symbols))]);
        cm_msg_set(&dim->msg, CM_DIM_PARAM);
        break;
    case 1: /* unknown */
        break;
    default:
        dim->dim_value = chance_number(m->chance);
        cm_msg_set(&dim->msg, CM_DIM_VALUE);
        break;
    }
}

static struct cm_tensor_type_proto *random_tensor_type(struct mutation *m)
{
    struct cm_tensor_type_proto *type = CM_NEW(m->arena, struct cm_tensor_type_proto);

    type->elem_type = mutation_dtype(m);
    cm_msg_set(&type->msg, CM_TENSOR_TYPE_ELEM_TYPE);
    if (chance_percent(m->chance, 85)) {
        const size_t rank = chance_draw(m->chance, 5);
        type->shape = CM_NEW(m->arena, struct cm_shape_proto);
        for (size_t i = 0; i < rank; i++)
            random_dim(m, CM_LIST_ADD(m->arena, &type->shape->dim));
        cm_msg_set(&type->shape->msg, CM_SHAPE_DIM);
        cm_msg_set(&type->msg, CM_TENSOR_TYPE_SHAPE);
    }
    return type;
}

struct cm_type_proto *mutation_type(struct mutation *m)
{
    struct cm_type_proto *type = CM_NEW(m->arena, struct cm_type_proto);
    const size_t kind = chance_draw(m->chance, 12);

    if (kind < 2 && m->infos.count) { /* wraps a type that is there */
        struct cm_wrap_type_proto *wrap = CM_NEW(m->arena, struct cm_wrap_type_proto);
        const struct cm_value_info_proto *info =
            m->infos.items[chance_draw(m->chance, m->infos.count)];
        if (info->type) {
            wrap->elem_type = mutation_copy(m, &cm_type_info, info->type);
            cm_msg_set(&wrap->msg, CM_WRAP_TYPE_ELEM_TYPE);
        }
        if (!wrap->elem_type)
            wrap->msg.has = 0;
        *(kind ? &type->sequence_type : &type->optional_type) = wrap;
        cm_msg_set(&type->msg, kind ? CM_TYPE_SEQUENCE_TYPE : CM_TYPE_OPTIONAL_TYPE);
    } else {
        type->tensor_type = random_tensor_type(m);
        cm_msg_set(&type->msg, CM_TYPE_TENSOR_TYPE);
    }
    return type;
}

static void change_shape(struct mutation *m, struct cm_tensor_type_proto *type)
{
    struct cm_shape_proto *shape = type->shape;
    const size_t what = chance_draw(m->chance, 8);

    if (what == 0) {
        cm_msg_clear(&type->msg, CM_TENSOR_TYPE_SHAPE);
        type->shape = NULL;
        return;
    }
    if (what == 1) {
        if (chance_percent(m->chance, 50)) {
            random_dim(m, CM_LIST_ADD(m->arena, &shape->dim));
        } else if (shape->dim.count) {
            shape->dim.count--;
        }
        cm_msg_set(&shape->msg, CM_SHAPE_DIM);
    } else if (shape->dim.count) {
        random_dim(m, &shape->dim.items[chance_draw(m->chance, shape->dim.count)]);
        cm_msg_set(&shape->msg, CM_SHAPE_DIM);
    }
}

bool mutate_info(struct mutation *m)
{
    if (!m->infos.count)
        return false;
    struct cm_value_info_proto *info = m->infos.items[chance_draw(m->chance, m->infos.count)];
    struct cm_tensor_type_proto *tensor = info->type ? info->type->tensor_type : NULL;

    if (tensor && tensor->shape && chance_percent(m->chance, 60)) {
        change_shape(m, tensor);
    } else if (tensor && chance_percent(m->chance, 70)) {
        tensor->elem_type = mutation_dtype(m);
        cm_msg_set(&tensor->msg, CM_TENSOR_TYPE_ELEM_TYPE);
    } else {
        info->type = mutation_type(m);
        cm_msg_set(&info->msg, CM_VALUE_INFO_TYPE);
    }
    return true;
}
