/* Tensors and storages of PyTorch in pickles. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/torch/torch_pickle.h"

#include "base/number.h"
#include "convert/frameworks/torch/torch_file.h"

static const struct {
    const char *storage, *name;
    enum cm_dtype dtype;
} torch_types[] = {
    {"FloatStorage", "float32", CM_FLOAT},
    {"BFloat16Storage", "bfloat16", CM_BFLOAT16},
    {"HalfStorage", "float16", CM_FLOAT16},
    {"LongStorage", "int64", CM_INT64},
    {"ByteStorage", "uint8", CM_UINT8},
    {"BoolStorage", "bool", CM_BOOL},
    {"DoubleStorage", "float64", CM_DOUBLE},
    {"IntStorage", "int32", CM_INT32},
    {"ShortStorage", "int16", CM_INT16},
    {"CharStorage", "int8", CM_INT8},
    {"ComplexFloatStorage", "complex64", CM_COMPLEX64},
    {"ComplexDoubleStorage", "complex128", CM_COMPLEX128},
    {NULL, "uint16", CM_UINT16},
    {NULL, "uint32", CM_UINT32},
    {NULL, "uint64", CM_UINT64},
    {NULL, "float8_e4m3fn", CM_FLOAT8E4M3FN},
    {NULL, "float8_e4m3fnuz", CM_FLOAT8E4M3FNUZ},
    {NULL, "float8_e5m2", CM_FLOAT8E5M2},
    {NULL, "float8_e5m2fnuz", CM_FLOAT8E5M2FNUZ},
    {NULL, "float8_e8m0fnu", CM_FLOAT8E8M0},
    {"UntypedStorage", "untyped", CM_UINT8},
};

enum cm_dtype cm_torch_dtype(struct cm_str name)
{
    if (!cm_str_starts(name, "torch."))
        return CM_UNDEFINED;
    name = cm_str_after_last(name, '.');
    for (size_t i = 0; i < CM_COUNT(torch_types); i++)
        if (cm_str_is(name, torch_types[i].name) ||
            (torch_types[i].storage && cm_str_is(name, torch_types[i].storage)))
            return torch_types[i].dtype;
    return CM_UNDEFINED;
}

const char *cm_torch_dtype_name(enum cm_dtype dtype)
{
    for (size_t i = 0; i < CM_COUNT(torch_types); i++)
        if (torch_types[i].dtype == dtype)
            return torch_types[i].name;
    return NULL;
}

const char *cm_torch_storage_name(enum cm_dtype dtype)
{
    for (size_t i = 0; i < CM_COUNT(torch_types); i++)
        if (torch_types[i].dtype == dtype)
            return torch_types[i].storage;
    return NULL;
}

enum cm_status cm_torch_storage(struct cm_pickle *p, struct cm_str name, enum cm_dtype dtype,
                                int64_t count, struct cm_str bytes, struct cm_item **out,
                                struct cm_error *err)
{
    struct cm_item *item = cm_pickle_item(p, CM_ITEM_OBJECT);
    const struct cm_shape shape = CM_SHAPE(count);
    size_t size;

    if (count < 0 || count > CM_MAX_DIM || !cm_dtype_bytes(dtype, count, &size))
        return cm_fail(err, CM_BAD_MODEL, "a storage of %lld elements is too large",
                       (long long)count);
    if (bytes.size < size)
        return cm_fail(err, CM_BAD_MODEL, "a storage has %zu bytes, its %lld elements need %zu",
                       bytes.size, (long long)count, size);
    bytes.size = size;
    CM_TRY(cm_saved_tensor_new(p->arena, dtype, &shape, bytes, p->file, &item->tensor, err));
    item->text = name;
    *out = item;
    return CM_OK;
}

/* Tensors at the same place with the same shape are one in the framework. */
void cm_torch_place_view(struct cm_saved_tensor *tensor, const struct cm_saved_tensor *storage)
{
    struct cm_saved_piece *piece = &tensor->pieces.items[0];
    struct {
        uint64_t at;
        int64_t dtype, dims[CM_MAX_RANK], strides[CM_MAX_RANK];
    } key = {0};

    piece->bytes = storage->pieces.items[0].bytes;
    if (!piece->bytes.data || !piece->bytes.size)
        return;
    key.at = (uint64_t)(uintptr_t)piece->bytes.data +
             (uint64_t)piece->offset * cm_dtype_size(tensor->dtype);
    key.dtype = tensor->dtype;
    for (int i = 0; i < tensor->shape.rank; i++) {
        key.dims[i] = tensor->shape.dims[i];
        key.strides[i] = piece->stride ? piece->stride[i] : 0;
    }
    tensor->storage = cm_hash((struct cm_str){(const char *)&key, sizeof key}) | 1;
}

/* Strides that reach no further than the storage; dense ones are left out. */
static enum cm_status read_strides(const struct cm_pickle_call *call, const struct cm_item *list,
                                   struct cm_saved_tensor *tensor, int64_t count)
{
    struct cm_saved_piece *piece = &tensor->pieces.items[0];
    const struct cm_shape *shape = &tensor->shape;
    int64_t dense[CM_MAX_RANK], last = piece->offset;
    bool is_dense = true;

    if (!cm_pickle_is_list(list, (size_t)shape->rank))
        return cm_pickle_bad_arguments(call);
    cm_shape_strides(shape, dense);
    for (int i = 0; i < shape->rank; i++) {
        int64_t reach;

        if (!cm_pickle_is_count(cm_item_at(list, (size_t)i), &piece->stride[i]) ||
            !cm_dim_mul(piece->stride[i], shape->dims[i] ? shape->dims[i] - 1 : 0, &reach) ||
            !cm_dim_add(last, reach, &last))
            return cm_pickle_bad_arguments(call);
        is_dense = is_dense && (shape->dims[i] <= 1 || piece->stride[i] == dense[i]);
    }
    if (cm_shape_elements(shape) && last >= count)
        return cm_fail(call->err, CM_BAD_MODEL,
                       "a tensor reaches to element %lld of a storage of %lld", (long long)last,
                       (long long)count);
    if (is_dense)
        piece->stride = NULL;
    return CM_OK;
}

/* _rebuild_tensor(storage, offset, size, stride), _v2(.., requires_grad, hooks), _v3(.., dtype):
 * a view of a storage. */
static enum cm_status call_tensor(struct cm_pickle_call *call, struct cm_item **out)
{
    struct cm_pickle *p = call->pickle;
    const struct cm_item *storage = cm_pickle_argument(call, 0),
                         *type = cm_pickle_argument(call, 6);
    struct cm_saved_tensor *tensor = CM_NEW(p->arena, struct cm_saved_tensor);
    int64_t offset;

    if (!cm_pickle_is_list(call->arguments, 4) || storage->kind != CM_ITEM_OBJECT ||
        !storage->tensor || !cm_pickle_is_count(cm_pickle_argument(call, 1), &offset) ||
        offset > CM_MAX_DIM || !cm_pickle_read_shape(cm_pickle_argument(call, 2), &tensor->shape))
        return cm_pickle_bad_arguments(call);
    const struct cm_saved_piece *all = &storage->tensor->pieces.items[0];
    int64_t count = storage->tensor->shape.dims[0];
    tensor->dtype = storage->tensor->dtype;
    if (type && type->kind == CM_ITEM_OBJECT && cm_str_ends(call->function->text, "_v3")) {
        tensor->dtype = cm_torch_dtype(type->text);
        if (tensor->dtype == CM_UNDEFINED)
            return cm_fail(call->err, CM_UNSUPPORTED, "a tensor of type '%.*s' is not supported",
                           CM_STR_FMT(type->text));
        count = (int64_t)(all->bytes.size / cm_dtype_size(tensor->dtype));
    }
    struct cm_saved_piece *piece = cm_saved_piece_add(p->arena, tensor, true);
    piece->offset = offset + all->offset;
    piece->file = p->file;
    for (int i = 0; i < tensor->shape.rank; i++)
        piece->size[i] = tensor->shape.dims[i];
    CM_TRY(read_strides(call, cm_pickle_argument(call, 3), tensor, count + all->offset));
    cm_torch_place_view(tensor, storage->tensor);
    if (!all->bytes.data)
        *CM_PUSH(p->arena, &p->views) = (struct cm_pickle_view){tensor, storage->tensor};
    *out = cm_pickle_item(p, CM_ITEM_TENSOR);
    (*out)->tensor = tensor;
    return CM_OK;
}

/* torch.storage._load_from_bytes(bytes): a file of torch.save inside a plain pickle. */
static enum cm_status call_nested(struct cm_pickle_call *call, struct cm_item **out)
{
    const struct cm_item *bytes = cm_pickle_argument(call, 0);

    if (!bytes || bytes->kind != CM_ITEM_BYTES || call->pickle->persistent)
        return cm_pickle_bad_arguments(call);
    call->pickle->made += bytes->text.size / 8;
    return cm_torch_read(call->pickle->arena, bytes->text, call->pickle->file, out, call->err);
}

static enum cm_status call_refused(struct cm_pickle_call *call, struct cm_item **out)
{
    (void)out;
    return cm_fail(call->err, CM_UNSUPPORTED,
                   "a tensor made by '%.*s' is not supported, only dense ones are: save it after "
                   "to_dense() or dequantize()",
                   CM_STR_FMT(call->function->text));
}

/* _rebuild_from_type_v2(function, type, arguments, state): a subclass of tensor. */
static enum cm_status call_from_type(struct cm_pickle_call *call, struct cm_item **out)
{
    const struct cm_item *function = cm_pickle_argument(call, 0),
                         *arguments = cm_pickle_argument(call, 2);

    if (!cm_pickle_is_list(arguments, 0) || function->kind != CM_ITEM_OBJECT)
        return cm_pickle_bad_arguments(call);
    return cm_pickle_call_inner(call, function, arguments, out);
}

const struct cm_pickle_known cm_torch_pickle_names[] = {
    {"torch._utils", "_rebuild_tensor_v2", call_tensor},
    {"torch._utils", "_rebuild_tensor_v3", call_tensor},
    {"torch._utils", "_rebuild_tensor", call_tensor},
    {"torch._utils", "_rebuild_parameter", cm_pickle_call_first},
    {"torch._utils", "_rebuild_parameter_with_state", cm_pickle_call_first},
    {"torch._utils", "_rebuild_device_tensor_from_numpy", cm_pickle_call_first},
    {"torch._utils", "_rebuild_device_tensor_from_cpu_tensor", cm_pickle_call_first},
    {"torch._utils", "_rebuild_sparse_tensor", call_refused},
    {"torch._utils", "_rebuild_sparse_csr_tensor", call_refused},
    {"torch._utils", "_rebuild_nested_tensor", call_refused},
    {"torch._utils", "_rebuild_qtensor", call_refused},
    {"torch._tensor", "_rebuild_from_type_v2", call_from_type},
    {"torch.tensor", "_rebuild_from_type_v2", call_from_type},
    {"torch.storage", "_load_from_bytes", call_nested},
    {"torch", "Size", cm_pickle_call_list},
};
const size_t cm_torch_pickle_name_count = CM_COUNT(cm_torch_pickle_names);
