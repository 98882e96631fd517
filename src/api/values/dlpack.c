/* Tensors of other libraries as values, and values as tensors for other libraries, without a copy
 * where that can be: DLPack. */
// SPDX-License-Identifier: Apache-2.0
#include "api/running.h"

#include "base/memory.h"
#include "cameo_dlpack.h"
#include "tensor/bits.h"

#include <assert.h>

static_assert(sizeof(struct DLTensor) == 48 && sizeof(struct DLManagedTensor) == 64 &&
                  sizeof(struct DLManagedTensorVersioned) == 80,
              "the layouts are those that DLPack publishes");

/* ---- element types ---- */

static const struct DLDataType types[CM_DTYPE_COUNT] = {
    [CM_FLOAT] = {CAMEO_DL_FLOAT, 32, 1},
    [CM_UINT8] = {CAMEO_DL_UINT, 8, 1},
    [CM_INT8] = {CAMEO_DL_INT, 8, 1},
    [CM_UINT16] = {CAMEO_DL_UINT, 16, 1},
    [CM_INT16] = {CAMEO_DL_INT, 16, 1},
    [CM_INT32] = {CAMEO_DL_INT, 32, 1},
    [CM_INT64] = {CAMEO_DL_INT, 64, 1},
    [CM_BOOL] = {CAMEO_DL_BOOL, 8, 1},
    [CM_FLOAT16] = {CAMEO_DL_FLOAT, 16, 1},
    [CM_DOUBLE] = {CAMEO_DL_FLOAT, 64, 1},
    [CM_UINT32] = {CAMEO_DL_UINT, 32, 1},
    [CM_UINT64] = {CAMEO_DL_UINT, 64, 1},
    [CM_COMPLEX64] = {CAMEO_DL_COMPLEX, 64, 1},
    [CM_COMPLEX128] = {CAMEO_DL_COMPLEX, 128, 1},
    [CM_BFLOAT16] = {CAMEO_DL_BFLOAT, 16, 1},
    [CM_FLOAT8E4M3FN] = {CAMEO_DL_FLOAT8_E4M3FN, 8, 1},
    [CM_FLOAT8E4M3FNUZ] = {CAMEO_DL_FLOAT8_E4M3FNUZ, 8, 1},
    [CM_FLOAT8E5M2] = {CAMEO_DL_FLOAT8_E5M2, 8, 1},
    [CM_FLOAT8E5M2FNUZ] = {CAMEO_DL_FLOAT8_E5M2FNUZ, 8, 1},
    [CM_UINT4] = {CAMEO_DL_UINT, 4, 1},
    [CM_INT4] = {CAMEO_DL_INT, 4, 1},
    [CM_FLOAT4E2M1] = {CAMEO_DL_FLOAT4_E2M1FN, 4, 1},
    [CM_FLOAT8E8M0] = {CAMEO_DL_FLOAT8_E8M0FNU, 8, 1},
    [CM_UINT2] = {CAMEO_DL_UINT, 2, 1},
    [CM_INT2] = {CAMEO_DL_INT, 2, 1},
    [CM_FLOAT6E2M3] = {CAMEO_DL_FLOAT6_E2M3FN, 6, 1},
    [CM_FLOAT6E3M2] = {CAMEO_DL_FLOAT6_E3M2FN, 6, 1},
};

static enum cm_dtype type_of(struct DLDataType from)
{
    for (int i = 1; i < CM_DTYPE_COUNT; i++)
        if (types[i].lanes == from.lanes && types[i].code == from.code &&
            types[i].bits == from.bits)
            return (enum cm_dtype)i;
    return CM_UNDEFINED;
}

/* ---- in ---- */

/* One of the two forms, and how to let go of it. */
struct incoming {
    const struct DLTensor *tensor;
    uint64_t flags;
    cameo_deleter_fn *release;
    void *arg;
};

static void release_old(void *arg)
{
    struct DLManagedTensor *tensor = arg;

    if (tensor->deleter)
        tensor->deleter(tensor);
}

static void release_versioned(void *arg)
{
    struct DLManagedTensorVersioned *tensor = arg;

    if (tensor->deleter)
        tensor->deleter(tensor);
}

/* Elements of less than a byte that have one each are put together. */
static enum cm_status pack(enum cm_dtype type, const struct cm_shape *shape, const int64_t *strides,
                           const void *data, struct cm_tensor *out, struct cm_error *err)
{
    const int bits = cm_dtype_info(type)->bits;
    struct cm_tensor bytes, packed;

    CM_TRY(cm_api_gather(CM_UINT8, shape, strides, data, &bytes, err));
    const enum cm_status status = cm_tensor_new(type, shape, &packed, err);
    if (status == CM_OK) {
        for (int64_t i = 0; i < cm_tensor_count(&bytes); i++)
            cm_packed_set(bits, packed.data, i, ((const uint8_t *)bytes.data)[i]);
        cm_tensor_clear_padding(&packed);
        *out = packed;
    }
    cm_tensor_drop(&bytes);
    return status;
}

static enum cm_status check_incoming(const struct DLTensor *from, enum cm_dtype *type,
                                     struct cm_shape *shape, struct cm_error *err)
{
    const int device = from->device.device_type;

    *type = type_of(from->dtype);
    if (device != 1 && device != 3 && device != 11)
        return cm_fail(err, CM_UNSUPPORTED,
                       "its memory is on device %d of DLPack, and only memory of the CPU can be "
                       "used",
                       device);
    if (*type == CM_UNDEFINED)
        return cm_fail(err, CM_UNSUPPORTED,
                       "elements of DLPack's type code %d with %d bits and %d lanes have no type "
                       "in ONNX",
                       from->dtype.code, from->dtype.bits, from->dtype.lanes);
    CM_TRY(cm_api_shape(from->ndim, from->shape, shape, err));
    if (!from->data && cm_shape_elements(shape))
        return cm_fail(err, CM_BAD_ARGUMENT, "the tensor has no memory");
    const size_t size = cm_dtype_size(*type) ? cm_dtype_size(*type) : 1;
    if (from->data &&
        (from->byte_offset > UINTPTR_MAX - (uintptr_t)from->data ||
         !cm_api_strides_fit(shape, from->strides, (char *)from->data + from->byte_offset, size)))
        return cm_fail(err, CM_BAD_ARGUMENT, "its strides or its offset lead out of all memory");
    return CM_OK;
}

static enum cm_status take_in(const struct incoming *in, struct cameo_value **out,
                              struct cm_error *err)
{
    const struct DLTensor *from = in->tensor;
    struct cm_datum made = {.kind = CM_KIND_TENSOR};
    struct cm_shape shape;
    enum cm_dtype type;
    size_t bytes;

    CM_TRY(check_incoming(from, &type, &shape, err));
    void *data = from->data ? (char *)from->data + from->byte_offset : NULL;
    if (!cm_dtype_bytes(type, cm_shape_elements(&shape), &bytes))
        return cm_fail(err, CM_BAD_ARGUMENT, "the size of a shape overflows");
    const struct cameo_tensor strided = {.strides = from->strides};
    const bool padded = cm_dtype_size(type) == 0 && in->flags & CAMEO_DL_FLAG_SUBBYTE_PADDED;
    if (!padded && cm_api_is_dense(&strided, &shape) && cm_api_is_aligned(data, type)) {
        const struct cm_tensor tensor = cm_tensor_borrow(type, &shape, data);
        return cm_api_wrap(&tensor, in->release, in->arg, in->flags & CAMEO_DL_FLAG_READ_ONLY, out,
                           err);
    }
    CM_TRY(padded ? pack(type, &shape, from->strides, data, &made.tensor, err)
                  : cm_api_gather(type, &shape, from->strides, data, &made.tensor, err));
    const enum cm_status status = cm_api_take(&made, out, err);
    cm_datum_drop(&made);
    if (status == CM_OK)
        in->release(in->arg);
    return status;
}

enum cameo_status cameo_value_from_dlpack(struct DLManagedTensorVersioned *tensor,
                                          struct cameo_value **out, struct cameo_error *err)
{
    CM_API_NEED(tensor, err);
    CM_API_NEED(out, err);
    const struct incoming in = {&tensor->dl_tensor, tensor->flags, release_versioned, tensor};
    struct cm_error reason = {0};

    *out = NULL;
    if (tensor->version.major != CAMEO_DLPACK_MAJOR)
        return cm_api_done(cm_fail(&reason, CM_UNSUPPORTED,
                                   "the tensor is of version %u of DLPack, not %d",
                                   (unsigned)tensor->version.major, CAMEO_DLPACK_MAJOR),
                           &reason, err);
    return cm_api_done(take_in(&in, out, &reason), &reason, err);
}

enum cameo_status cameo_value_from_dlpack_unversioned(struct DLManagedTensor *tensor,
                                                      struct cameo_value **out,
                                                      struct cameo_error *err)
{
    CM_API_NEED(tensor, err);
    CM_API_NEED(out, err);
    const struct incoming in = {&tensor->dl_tensor, 0, release_old, tensor};
    struct cm_error reason = {0};

    *out = NULL;
    return cm_api_done(take_in(&in, out, &reason), &reason, err);
}

/* ---- out ---- */

/* What a tensor for others points at, in one piece with it. */
struct outgoing {
    union {
        struct DLManagedTensor old;
        struct DLManagedTensorVersioned versioned;
    } managed;
    struct cm_tensor tensor; /* holds the memory */
    int64_t strides[];
};

static void free_outgoing(struct outgoing *outgoing)
{
    cm_tensor_drop(&outgoing->tensor);
    cm_free(outgoing);
}

static void free_old(struct DLManagedTensor *self)
{
    free_outgoing(self->manager_ctx);
}

static void free_versioned(struct DLManagedTensorVersioned *self)
{
    free_outgoing(self->manager_ctx);
}

/* Memory that is the caller's, lent, is copied; so is what others read, for one who may write. */
static enum cm_status take_out(const struct cameo_value *value, bool may_write,
                               struct outgoing **out, bool *copied, struct cm_error *err)
{
    const struct cm_datum *own = cm_api_value(value);
    const struct cm_tensor *from = &own->tensor;

    if (own->kind != CM_KIND_TENSOR || types[from->type].bits == 0)
        return cm_fail(err, CM_UNSUPPORTED, "DLPack has %s",
                       own->kind == CM_KIND_TENSOR ? "no strings" : "nothing but tensors");
    struct outgoing *made =
        cm_calloc(1, sizeof *made + (size_t)from->shape.rank * sizeof made->strides[0]);
    if (!made)
        return cm_fail(err, CM_NO_MEMORY, "no memory for a tensor");
    *copied = !from->buffer || (may_write && !cm_buffer_is_sole(from->buffer));
    if (*copied) {
        const enum cm_status status = cm_tensor_copy(from, &made->tensor, err);
        if (status) {
            cm_free(made);
            return status;
        }
    } else {
        made->tensor = *from;
        cm_tensor_keep(&made->tensor);
    }
    const bool empty = cm_shape_elements(&from->shape) == 0; /* its other axes may be huge */
    int64_t stride = 1;
    for (int i = from->shape.rank - 1; i >= 0; i--) {
        made->strides[i] = stride;
        stride *= empty ? 1 : from->shape.dims[i];
    }
    *out = made;
    return CM_OK;
}

static struct DLTensor describe(struct outgoing *outgoing)
{
    return (struct DLTensor){.data = outgoing->tensor.data,
                             .device = {1, 0},
                             .ndim = outgoing->tensor.shape.rank,
                             .dtype = types[outgoing->tensor.type],
                             .shape = outgoing->tensor.shape.dims,
                             .strides = outgoing->strides};
}

enum cameo_status cameo_value_to_dlpack(const struct cameo_value *value,
                                        struct DLManagedTensorVersioned **out,
                                        struct cameo_error *err)
{
    CM_API_NEED(value, err);
    CM_API_NEED(out, err);
    const bool sole = cm_buffer_is_sole(cm_api_value(value)->tensor.buffer);
    struct outgoing *made = NULL;
    struct cm_error reason = {0};
    bool copied = false;

    *out = NULL;
    const enum cm_status status = take_out(value, false, &made, &copied, &reason);
    if (status == CM_OK) {
        made->managed.versioned =
            (struct DLManagedTensorVersioned){.version = {CAMEO_DLPACK_MAJOR, CAMEO_DLPACK_MINOR},
                                              .manager_ctx = made,
                                              .deleter = free_versioned,
                                              .flags = copied ? CAMEO_DL_FLAG_IS_COPIED
                                                       : sole ? 0
                                                              : CAMEO_DL_FLAG_READ_ONLY,
                                              .dl_tensor = describe(made)};
        *out = &made->managed.versioned;
    }
    return cm_api_done(status, &reason, err);
}

enum cameo_status cameo_value_to_dlpack_unversioned(const struct cameo_value *value,
                                                    struct DLManagedTensor **out,
                                                    struct cameo_error *err)
{
    CM_API_NEED(value, err);
    CM_API_NEED(out, err);
    struct outgoing *made = NULL;
    struct cm_error reason = {0};
    bool copied;

    *out = NULL;
    const enum cm_status status = take_out(value, true, &made, &copied, &reason);
    if (status == CM_OK) {
        made->managed.old = (struct DLManagedTensor){
            .dl_tensor = describe(made), .manager_ctx = made, .deleter = free_old};
        *out = &made->managed.old;
    }
    return cm_api_done(status, &reason, err);
}
