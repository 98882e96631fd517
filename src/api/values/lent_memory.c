/* Memory of the caller's: structs that say their size, arrays of them, and tensors, which are
 * checked, and used in place where they lie as kernels need them. */
// SPDX-License-Identifier: Apache-2.0
#include "api/running.h"

#include "base/number.h"

#include <assert.h>

enum cm_status cm_api_item(void *out, size_t size, const void *array, size_t index,
                           struct cm_error *err)
{
    size_t stride;

    memcpy(&stride, array, sizeof stride);
    if (stride <= sizeof stride)
        return cm_fail(
            err, CM_BAD_ARGUMENT,
            "the first struct of an array has struct_size %zu; make it with its _INIT macro",
            stride);
    memcpy(out, (const char *)array + index * stride, stride < size ? stride : size);
    return CM_OK;
}

/* Only members that every version of the header has are written. */
struct cameo_value **cm_api_fetched(struct cameo_fetch *fetches, size_t index)
{
    char *fetch = (char *)fetches + index * fetches->struct_size;
    return (struct cameo_value **)(void *)(fetch + offsetof(struct cameo_fetch, value));
}

enum cm_status cm_api_check_fetches(struct cameo_fetch *fetches, size_t count, struct cm_error *err)
{
    if (count && fetches->struct_size < offsetof(struct cameo_fetch, value) + sizeof(void *))
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "a fetch has struct_size %zu; make it with CAMEO_FETCH_INIT",
                       fetches->struct_size);
    for (size_t i = 0; i < count; i++)
        *cm_api_fetched(fetches, i) = NULL;
    return CM_OK;
}

/* The caller's tensor as this version has it, with a device and a type that can be used. */
static enum cm_status api_lent(const struct cameo_tensor *given, struct cameo_tensor *out,
                               struct cm_error *err)
{
    *out = (struct cameo_tensor)CAMEO_TENSOR_INIT;
    if (!given)
        return cm_fail(err, CM_BAD_ARGUMENT, "there is neither a value nor a tensor");
    CM_TRY(cm_api_options(out, sizeof *out, given, err));
    if (out->device != CAMEO_DEVICE_CPU)
        return cm_fail(err, CM_UNSUPPORTED,
                       "its memory is on device %d, and only memory of the CPU can be used",
                       (int)out->device);
    if (!cm_dtype_is_valid((int64_t)out->dtype))
        return cm_fail(err, CM_BAD_ARGUMENT, "%d is not an element type", (int)out->dtype);
    return CM_OK;
}

/* Axes of one element, and tensors without elements, may have any stride. */
static bool is_dense(const struct cm_shape *shape, const int64_t *strides)
{
    int64_t dense = 1;

    if (!strides || cm_shape_elements(shape) == 0)
        return true;
    for (int i = shape->rank - 1; i >= 0; i--) {
        if (shape->dims[i] > 1 && strides[i] != dense)
            return false;
        dense *= shape->dims[i];
    }
    return true;
}

/* Copies along the last axis, for each place of the others. */
static void gather(const char *from, const struct cm_shape *shape, const int64_t *strides,
                   size_t size, char *to)
{
    int64_t index[CM_MAX_RANK] = {0};
    const int last = shape->rank - 1;
    int axis;

    do {
        for (int64_t i = 0; i < shape->dims[last]; i++, to += size)
            memcpy(to, from + i * strides[last] * (int64_t)size, size);
        for (axis = last - 1; axis >= 0; axis--) {
            from += strides[axis] * (int64_t)size;
            if (++index[axis] < shape->dims[axis])
                break;
            from -= index[axis] * strides[axis] * (int64_t)size;
            index[axis] = 0;
        }
    } while (axis >= 0);
}

enum cm_status cm_api_gather(enum cm_dtype type, const struct cm_shape *shape,
                             const int64_t *strides, const void *data, struct cm_tensor *out,
                             struct cm_error *err)
{
    const size_t size = cm_dtype_size(type);

    if (is_dense(shape, strides)) {
        const struct cm_tensor lent = cm_tensor_borrow(type, shape, (void *)(uintptr_t)data);
        return cm_tensor_copy(&lent, out, err);
    }
    if (size == 0)
        return cm_fail(err, CM_UNSUPPORTED,
                       "elements of type %s, of less than a byte, have strides",
                       cm_dtype_name(type));
    struct cm_tensor copy;
    CM_TRY(cm_tensor_new(type, shape, &copy, err));
    gather(data, shape, strides, size, copy.data);
    *out = copy;
    return CM_OK;
}

bool cm_api_strides_fit(const struct cm_shape *shape, const int64_t *strides, const void *data,
                        size_t size)
{
    /* Backwards and forwards from data, in bytes. */
    size_t before = 0, behind = size;

    for (int i = 0; strides && cm_shape_elements(shape) && i < shape->rank; i++) {
        const bool back = strides[i] < 0;
        const size_t stride = back ? (size_t)0 - (size_t)strides[i] : (size_t)strides[i];
        size_t step;

        if (!cm_size_mul((size_t)shape->dims[i] - 1, stride, &step) ||
            !cm_size_mul(step, size, &step) ||
            !cm_size_add(back ? before : behind, step, back ? &before : &behind))
            return false;
    }
    return before <= PTRDIFF_MAX && behind <= PTRDIFF_MAX && before <= (uintptr_t)data &&
           behind <= UINTPTR_MAX - (uintptr_t)data;
}

/* How many bytes the elements reach over. */
static bool reach(enum cm_dtype type, const struct cm_shape *shape, const int64_t *strides,
                  size_t *out)
{
    size_t last = 0, step;

    for (int i = 0; i < shape->rank; i++)
        if (strides[i] < 0 || !cm_size_mul((size_t)shape->dims[i] - 1, (size_t)strides[i], &step) ||
            !cm_size_add(last, step, &last))
            return false;
    return cm_size_add(last, 1, &last) && last <= INT64_MAX &&
           cm_dtype_bytes(type, (int64_t)last, out);
}

enum cm_status cm_api_check_bytes(const struct cameo_tensor *lent, const struct cm_tensor *tensor,
                                  struct cm_error *err)
{
    const bool dense = is_dense(&tensor->shape, lent->strides);
    size_t needed = cm_tensor_bytes(tensor);
    char text[200];

    if (!dense && !reach(tensor->type, &tensor->shape, lent->strides, &needed))
        return cm_fail(err, CM_BAD_ARGUMENT, "its strides are negative or overflow");
    if ((dense ? lent->bytes == needed : lent->bytes >= needed) && (!needed || lent->data))
        return CM_OK;
    return cm_fail(err, CM_BAD_ARGUMENT, "its memory has %zu bytes, its shape %s needs %zu",
                   lent->data ? lent->bytes : 0, cm_shape_print(&tensor->shape, text, sizeof text),
                   needed);
}

enum cm_status cm_api_check_tensor(const struct cameo_tensor *given, struct cameo_tensor *lent,
                                   struct cm_tensor *out, struct cm_error *err)
{
    struct cm_shape shape;

    CM_TRY(api_lent(given, lent, err));
    CM_TRY(cm_api_shape(lent->rank, lent->dims, &shape, err));
    *out = cm_tensor_borrow((enum cm_dtype)lent->dtype, &shape, lent->data);
    return CM_OK;
}

bool cm_api_is_aligned(const void *data, enum cm_dtype type)
{
    const size_t size = cm_dtype_size(type);
    return !size || (uintptr_t)data % (size < 16 ? size : 16) == 0;
}

enum cm_status cm_api_use_memory(const struct cameo_tensor *lent, struct cm_tensor *tensor,
                                 struct cm_error *err)
{
    const bool dense = is_dense(&tensor->shape, lent->strides);

    CM_TRY(cm_api_check_bytes(lent, tensor, err));
    if (dense && (!lent->bytes || cm_api_is_aligned(lent->data, tensor->type)))
        return CM_OK;
    return cm_api_gather(tensor->type, &tensor->shape, lent->strides, lent->data, tensor, err);
}

bool cm_api_is_dense(const struct cameo_tensor *lent, const struct cm_shape *shape)
{
    return is_dense(shape, lent->strides);
}

void cm_api_take_over(const struct cameo_feed *feeds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct cameo_feed feed = CAMEO_FEED_INIT;
        struct cameo_tensor lent;
        struct cm_error ignored = {0};

        if (cm_api_item(&feed, sizeof feed, feeds, i, &ignored) == CM_OK && !feed.value &&
            api_lent(feed.tensor, &lent, &ignored) == CM_OK && lent.deleter)
            lent.deleter(lent.deleter_arg);
    }
}

int64_t cameo_tensor_count(const struct cameo_tensor *tensor)
{
    struct cameo_tensor lent;
    struct cm_tensor own;
    struct cm_error ignored = {0};

    if (!tensor || cm_api_check_tensor(tensor, &lent, &own, &ignored) != CM_OK)
        return -1;
    return cm_tensor_count(&own);
}
