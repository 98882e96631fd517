/* Values that the caller makes: of its memory, of strings, and of other values. */
// SPDX-License-Identifier: Apache-2.0
#include "api/running.h"

#include "base/memory.h"

/* Moves what was made into a handle, or drops it. */
static enum cameo_status finish(enum cm_status status, struct cm_datum *made,
                                struct cameo_value **out, const struct cm_error *reason,
                                struct cameo_error *err)
{
    struct cm_error failed = *reason;

    if (status == CM_OK)
        status = cm_api_take(made, out, &failed);
    cm_datum_drop(made);
    return cm_api_done(status, &failed, err);
}

static enum cm_status make_zeros(enum cameo_dtype dtype, int rank, const int64_t *dims,
                                 struct cm_datum *out, struct cm_error *err)
{
    struct cm_shape shape;

    if (!cm_dtype_is_valid((int64_t)dtype))
        return cm_fail(err, CM_BAD_ARGUMENT, "%d is not an element type", (int)dtype);
    CM_TRY(cm_api_shape(rank, dims, &shape, err));
    CM_TRY(cm_tensor_new((enum cm_dtype)dtype, &shape, &out->tensor, err));
    out->kind = CM_KIND_TENSOR;
    const size_t size = cm_tensor_bytes(&out->tensor);
    if (size && out->tensor.type != CM_STRING)
        memset(out->tensor.data, 0, size);
    return cm_api_own_strings(out, err);
}

enum cameo_status cameo_value_new(enum cameo_dtype dtype, int rank, const int64_t *dims,
                                  struct cameo_value **out, struct cameo_error *err)
{
    CM_API_NEED(out, err);
    struct cm_datum made = {0};
    struct cm_error reason = {0};

    *out = NULL;
    return finish(make_zeros(dtype, rank, dims, &made, &reason), &made, out, &reason, err);
}

/* The handle comes first, so that nothing can fail once the memory is taken over. */
enum cm_status cm_api_wrap(const struct cm_tensor *tensor, cameo_deleter_fn *deleter, void *arg,
                           bool read_only, struct cameo_value **out, struct cm_error *err)
{
    struct cm_datum made = {.kind = CM_KIND_TENSOR, .tensor = *tensor};
    struct cameo_value *value;

    made.tensor.buffer = NULL;
    CM_TRY(cm_api_take(&made, &value, err));
    struct cm_tensor *own = &((struct cm_datum *)value)->tensor;
    const enum cm_status status =
        cm_buffer_wrap(own->data, cm_tensor_bytes(own), deleter, arg, &own->buffer, err);
    if (status) {
        own->buffer = NULL;
        cameo_value_free(value);
        return status;
    }
    if (read_only)
        cm_buffer_protect(own->buffer);
    *out = value;
    return CM_OK;
}

static enum cm_status from_tensor(const struct cameo_tensor *given, struct cameo_value **out,
                                  struct cm_error *err)
{
    struct cm_datum made = {.kind = CM_KIND_TENSOR};
    struct cameo_tensor lent;

    CM_TRY(cm_api_check_tensor(given, &lent, &made.tensor, err));
    CM_TRY(cm_api_use_memory(&lent, &made.tensor, err));
    const bool copied = made.tensor.buffer || made.tensor.type == CM_STRING;
    if (!copied && lent.deleter)
        return cm_api_wrap(&made.tensor, lent.deleter, lent.deleter_arg, false, out, err);
    enum cm_status status = cm_api_own_strings(&made, err);
    if (status == CM_OK)
        status = cm_api_take(&made, out, err);
    cm_datum_drop(&made);
    if (status == CM_OK && lent.deleter)
        lent.deleter(lent.deleter_arg);
    return status;
}

enum cameo_status cameo_value_from_tensor(const struct cameo_tensor *tensor,
                                          struct cameo_value **out, struct cameo_error *err)
{
    CM_API_NEED(tensor, err);
    CM_API_NEED(out, err);
    struct cm_error reason = {0};

    *out = NULL;
    return cm_api_done(from_tensor(tensor, out, &reason), &reason, err);
}

static enum cm_status make_strings(int rank, const int64_t *dims, const char *const *strings,
                                   struct cm_datum *out, struct cm_error *err)
{
    struct cm_shape shape;

    CM_TRY(cm_api_shape(rank, dims, &shape, err));
    CM_TRY(cm_tensor_new(CM_STRING, &shape, &out->tensor, err));
    out->kind = CM_KIND_TENSOR;
    struct cm_str *texts = out->tensor.data;
    for (int64_t i = 0; i < cm_tensor_count(&out->tensor); i++) {
        if (!strings || !strings[i])
            return cm_fail(err, CM_BAD_ARGUMENT, "string %lld is NULL", (long long)i);
        texts[i] = cm_str(strings[i]);
    }
    return cm_api_own_strings(out, err);
}

enum cameo_status cameo_value_new_strings(int rank, const int64_t *dims, const char *const *strings,
                                          struct cameo_value **out, struct cameo_error *err)
{
    CM_API_NEED(out, err);
    struct cm_datum made = {0};
    struct cm_error reason = {0};

    *out = NULL;
    return finish(make_strings(rank, dims, strings, &made, &reason), &made, out, &reason, err);
}

/* ---- values of values ---- */

/* All items of one kind, and tensors of one element type. */
static enum cm_status make_list(const struct cameo_value *const *items, size_t count,
                                struct cm_datum *out, struct cm_error *err)
{
    if (count && !items)
        return cm_fail(err, CM_BAD_ARGUMENT, "the count is %zu, but the list of items is NULL",
                       count);
    CM_TRY(cm_sequence_new(count, out, err));
    for (size_t i = 0; i < count; i++) {
        if (!items[i])
            return cm_fail(err, CM_BAD_ARGUMENT, "item %zu is NULL", i);
        const struct cm_datum *item = cm_api_value(items[i]), *first = cm_api_value(items[0]);
        if (item->kind != first->kind || item->tensor.type != first->tensor.type)
            return cm_fail(err, CM_BAD_ARGUMENT, "item %zu is of another type than item 0", i);
        CM_TRY(cm_sequence_add(out, item, err));
    }
    return CM_OK;
}

enum cameo_status cameo_value_new_sequence(const struct cameo_value *const *items, size_t count,
                                           struct cameo_value **out, struct cameo_error *err)
{
    CM_API_NEED(out, err);
    CM_API_NEED_ALL(items, count, err);
    struct cm_datum made = {0};
    struct cm_error reason = {0};

    *out = NULL;
    return finish(make_list(items, count, &made, &reason), &made, out, &reason, err);
}

static enum cm_status make_map(const struct cameo_value *given,
                               const struct cameo_value *const *items, struct cm_datum *out,
                               struct cm_error *err)
{
    const struct cm_datum *keys = cm_api_value(given);
    const enum cm_dtype_class kind = cm_dtype_info(keys->tensor.type)->kind;
    struct cm_datum shared = {0};

    if (keys->kind != CM_KIND_TENSOR || keys->tensor.shape.rank != 1 ||
        (keys->tensor.type != CM_STRING && kind != CM_CLASS_SIGNED && kind != CM_CLASS_UNSIGNED))
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "the keys of a map are a list of integers or strings, a tensor of rank 1");
    CM_TRY(make_list(items, (size_t)keys->tensor.shape.dims[0], out, err));
    CM_TRY(cm_datum_share(keys, &shared, err));
    const enum cm_status status = cm_api_own(&shared, err);
    if (status) {
        cm_datum_drop(&shared);
        return status;
    }
    out->kind = CM_KIND_MAP;
    out->tensor = shared.tensor;
    return CM_OK;
}

enum cameo_status cameo_value_new_map(const struct cameo_value *keys,
                                      const struct cameo_value *const *items,
                                      struct cameo_value **out, struct cameo_error *err)
{
    CM_API_NEED(keys, err);
    CM_API_NEED(out, err);
    struct cm_datum made = {0};
    struct cm_error reason = {0};

    *out = NULL;
    return finish(make_map(keys, items, &made, &reason), &made, out, &reason, err);
}

enum cameo_status cameo_value_new_optional(const struct cameo_value *content,
                                           struct cameo_value **out, struct cameo_error *err)
{
    CM_API_NEED(out, err);
    struct cm_datum made = {0};
    struct cm_error reason = {0};
    enum cm_status status = CM_OK;

    *out = NULL;
    if (content) {
        status = cm_datum_share(cm_api_value(content), &made, &reason);
        if (status == CM_OK)
            status = cm_api_own(&made, &reason);
    }
    return finish(status, &made, out, &reason, err);
}
