/* Run-time values as the public API has them. */
// SPDX-License-Identifier: Apache-2.0
#include "api/running.h"

#include "base/memory.h"
#include "base/number.h"

#include <assert.h>

#define SAME(public_name, own_name)                                                                \
    static_assert((int)(public_name) == (int)(own_name), "public numbers are the library's own")

SAME(CAMEO_KIND_NONE, CM_KIND_NONE);
SAME(CAMEO_KIND_TENSOR, CM_KIND_TENSOR);
SAME(CAMEO_KIND_SPARSE, CM_KIND_SPARSE);
SAME(CAMEO_KIND_SEQUENCE, CM_KIND_SEQUENCE);
SAME(CAMEO_KIND_MAP, CM_KIND_MAP);
SAME(CAMEO_KIND_OPTIONAL, CM_KIND_OPTIONAL);
SAME(CAMEO_KIND_OPAQUE, CM_KIND_OPAQUE);

static_assert(sizeof(struct cameo_text) == sizeof(struct cm_str) &&
                  offsetof(struct cameo_text, size) == offsetof(struct cm_str, size),
              "strings in tensors are public as they are");

/* ---- values that stand by themselves ---- */

/* One buffer holds the views and, behind them, the bytes they view, each with a NUL. */
static enum cm_status own_strings(struct cm_tensor *tensor, struct cm_error *err)
{
    const size_t count = (size_t)cm_tensor_count(tensor);
    const struct cm_str *from = tensor->data;
    size_t size;
    struct cm_buffer *buffer;

    bool fits = cm_size_mul(count, sizeof *from, &size);
    for (size_t i = 0; i < count && fits; i++)
        fits = cm_size_add(size, from[i].size + 1, &size);
    if (!fits)
        return cm_fail(err, CM_LIMIT, "%zu strings are too many", count);
    CM_TRY(cm_buffer_new(size, &buffer, err));
    struct cm_str *to = cm_buffer_data(buffer);
    char *bytes = (char *)(to + count);
    for (size_t i = 0; i < count; i++) {
        if (from[i].size)
            memcpy(bytes, from[i].data, from[i].size);
        bytes[from[i].size] = 0;
        to[i] = (struct cm_str){bytes, from[i].size};
        bytes += from[i].size + 1;
    }
    cm_buffer_drop(tensor->buffer);
    tensor->buffer = buffer;
    tensor->data = to;
    return CM_OK;
}

static enum cm_status own_tensor(struct cm_tensor *tensor, struct cm_error *err)
{
    struct cm_tensor copy;

    if (tensor->type == CM_STRING)
        return own_strings(tensor, err);
    if (tensor->buffer && !tensor->layout)
        return CM_OK;
    CM_TRY(cm_tensor_copy(tensor, &copy, err));
    cm_tensor_drop(tensor);
    *tensor = copy;
    return CM_OK;
}

enum cm_status cm_api_own(struct cm_datum *datum, struct cm_error *err)
{
    if (datum->kind == CM_KIND_TENSOR || datum->kind == CM_KIND_MAP)
        CM_TRY(own_tensor(&datum->tensor, err));
    if (datum->list && !cm_datum_has_strings(datum))
        return CM_OK; /* such items own their bytes */
    CM_TRY(cm_datum_separate(datum, err));
    for (size_t i = 0; i < datum->n_items; i++)
        CM_TRY(cm_api_own(&datum->items[i], err));
    return CM_OK;
}

enum cm_status cm_api_own_strings(struct cm_datum *datum, struct cm_error *err)
{
    const bool has_tensor = datum->kind == CM_KIND_TENSOR || datum->kind == CM_KIND_MAP;

    if (has_tensor && datum->tensor.type == CM_STRING)
        CM_TRY(own_strings(&datum->tensor, err));
    if (datum->list && !cm_datum_has_strings(datum))
        return CM_OK;
    CM_TRY(cm_datum_separate(datum, err));
    for (size_t i = 0; i < datum->n_items; i++)
        CM_TRY(cm_api_own_strings(&datum->items[i], err));
    return CM_OK;
}

enum cm_status cm_api_take(struct cm_datum *from, struct cameo_value **out, struct cm_error *err)
{
    struct cm_datum *made = cm_malloc(sizeof *made);

    if (!made)
        return cm_fail(err, CM_NO_MEMORY, "no memory for a value");
    *made = *from;
    *from = (struct cm_datum){0};
    *out = (struct cameo_value *)made;
    return CM_OK;
}

enum cm_status cm_api_shape(int rank, const int64_t *dims, struct cm_shape *out,
                            struct cm_error *err)
{
    int64_t count;

    if (rank < 0 || rank > CM_MAX_RANK || (rank > 0 && !dims))
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "rank %d: expected 0 to 64, with dimensions where it is above 0", rank);
    out->rank = rank;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return cm_fail(err, CM_BAD_ARGUMENT, "dimension %d is %lld", i, (long long)dims[i]);
        out->dims[i] = dims[i];
    }
    if (!cm_shape_count(out, &count))
        return cm_fail(err, CM_BAD_ARGUMENT, "the size of a shape overflows");
    return CM_OK;
}

/* ---- the public side ---- */

void cameo_value_free(struct cameo_value *value)
{
    if (!value)
        return;
    cm_datum_drop((struct cm_datum *)value);
    cm_free(value);
}

static const struct cm_tensor *tensor_of(const struct cameo_value *value)
{
    const struct cm_datum *own = cm_api_value(value);

    return own->kind == CM_KIND_TENSOR || own->kind == CM_KIND_MAP ? &own->tensor : NULL;
}

enum cameo_kind cameo_value_kind(const struct cameo_value *value)
{
    return (enum cameo_kind)cm_api_value(value)->kind;
}

enum cameo_dtype cameo_value_dtype(const struct cameo_value *value)
{
    const struct cm_tensor *tensor = tensor_of(value);
    return tensor ? (enum cameo_dtype)tensor->type : CAMEO_UNDEFINED;
}

int cameo_value_rank(const struct cameo_value *value)
{
    const struct cm_tensor *tensor = tensor_of(value);
    return tensor ? tensor->shape.rank : 0;
}

const int64_t *cameo_value_dims(const struct cameo_value *value)
{
    return cm_api_value(value)->tensor.shape.dims;
}

int64_t cameo_value_count(const struct cameo_value *value)
{
    const struct cm_tensor *tensor = tensor_of(value);
    return tensor ? cm_tensor_count(tensor) : 0;
}

const void *cameo_value_data(const struct cameo_value *value)
{
    const struct cm_tensor *tensor = tensor_of(value);
    return tensor ? tensor->data : NULL;
}

size_t cameo_value_bytes(const struct cameo_value *value)
{
    const struct cm_tensor *tensor = tensor_of(value);
    return tensor ? cm_tensor_bytes(tensor) : 0;
}

void *cameo_value_mutable_data(struct cameo_value *value)
{
    const struct cm_tensor *tensor = tensor_of(value);
    const bool fixed =
        !tensor || tensor->type == CM_STRING || cm_buffer_is_protected(tensor->buffer);
    return fixed ? NULL : tensor->data;
}

static const struct cm_tensor *numbers_of(const struct cameo_value *value, int64_t index)
{
    const struct cm_tensor *tensor = tensor_of(value);

    if (!tensor || index < 0 || index >= cm_tensor_count(tensor))
        return NULL;
    return cm_dtype_is_real(tensor->type) ? tensor : NULL;
}

double cameo_value_real(const struct cameo_value *value, int64_t index)
{
    const struct cm_tensor *tensor = numbers_of(value, index);
    return tensor ? cm_tensor_real(tensor, index) : 0;
}

int64_t cameo_value_integer(const struct cameo_value *value, int64_t index)
{
    const struct cm_tensor *tensor = numbers_of(value, index);

    if (!tensor || cm_dtype_info(tensor->type)->kind == CM_CLASS_FLOAT)
        return 0;
    return cm_tensor_int(tensor, index);
}

struct cameo_text cameo_value_string(const struct cameo_value *value, int64_t index)
{
    const struct cm_tensor *tensor = tensor_of(value);

    if (!tensor || tensor->type != CM_STRING || index < 0 || index >= cm_tensor_count(tensor))
        return (struct cameo_text){"", 0};
    const struct cm_str text = ((const struct cm_str *)tensor->data)[index];
    return text.data ? (struct cameo_text){cm_str_text(text), text.size}
                     : (struct cameo_text){"", 0};
}

void cameo_value_set_real(struct cameo_value *value, int64_t index, double number)
{
    const struct cm_tensor *tensor = numbers_of(value, index);

    if (tensor && !cm_buffer_is_protected(tensor->buffer))
        cm_tensor_set_real(tensor, index, number);
}

size_t cameo_value_item_count(const struct cameo_value *value)
{
    return cm_api_value(value)->n_items;
}

const struct cameo_value *cameo_value_item(const struct cameo_value *value, size_t index)
{
    const struct cm_datum *own = cm_api_value(value);
    return index < own->n_items ? (const struct cameo_value *)&own->items[index] : NULL;
}
