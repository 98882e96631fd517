/* Buffers and tensors. */
// SPDX-License-Identifier: Apache-2.0
#include "tensor/tensor.h"

#include "base/memory.h"
#include "base/number.h"
#include "tensor/bits.h"
#include "tensor/buffer.h"
#include "tensor/half.h"

#include <assert.h>
#include <math.h>

static enum cm_status no_memory(size_t size, struct cm_error *err)
{
    return cm_fail(err, CM_NO_MEMORY, "no memory for %zu bytes of tensor data", size);
}

static _Thread_local const struct cm_buffer_source *current;

const struct cm_buffer_source *cm_buffer_enter(const struct cm_buffer_source *source)
{
    const struct cm_buffer_source *before = current;

    current = source;
    return before;
}

enum cm_status cm_buffer_new(size_t size, struct cm_buffer **out, struct cm_error *err)
{
    if (current)
        return current->get(current->arg, size, out, err);
    if (size > PTRDIFF_MAX - 2 * CM_BUFFER_HEADER)
        return no_memory(size, err);
    struct cm_buffer *buffer = cm_malloc_aligned(
        CM_TENSOR_ALIGNMENT, CM_BUFFER_HEADER + cm_round_up(size, CM_TENSOR_ALIGNMENT));
    if (!buffer)
        return no_memory(size, err);
    *buffer = (struct cm_buffer){.data = (char *)buffer + CM_BUFFER_HEADER, .size = size};
    atomic_init(&buffer->references, 1);
    *out = buffer;
    return CM_OK;
}

enum cm_status cm_buffer_wrap(void *data, size_t size, cm_buffer_free_fn *free_owner, void *owner,
                              struct cm_buffer **out, struct cm_error *err)
{
    struct cm_buffer *buffer = cm_malloc(sizeof *buffer);
    if (!buffer)
        return no_memory(sizeof *buffer, err);
    *buffer =
        (struct cm_buffer){.data = data, .size = size, .free_owner = free_owner, .owner = owner};
    atomic_init(&buffer->references, 1);
    *out = buffer;
    return CM_OK;
}

void *cm_buffer_data(const struct cm_buffer *buffer)
{
    return buffer->data;
}

struct cm_buffer *cm_buffer_keep(struct cm_buffer *buffer)
{
    if (buffer)
        atomic_fetch_add_explicit(&buffer->references, 1, memory_order_relaxed);
    return buffer;
}

void cm_buffer_drop(struct cm_buffer *buffer)
{
    /* Release what this thread wrote; acquire what the others did before the bytes go. */
    if (!buffer || atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel) != 1)
        return;
    for (struct cm_held *held = buffer->held, *next; held; held = next) {
        next = held->next;
        cm_buffer_drop(held->buffer);
        cm_free(held);
    }
    if (buffer->free_owner)
        buffer->free_owner(buffer->owner);
    if (buffer->pool)
        cm_pool_take_back(buffer->pool, buffer);
    else
        cm_free(buffer);
}

enum cm_status cm_buffer_hold(struct cm_buffer *buffer, struct cm_buffer *other,
                              struct cm_error *err)
{
    if (!other || other == buffer)
        return CM_OK;
    struct cm_held *held = cm_malloc(sizeof *held);
    if (!held)
        return no_memory(sizeof *held, err);
    *held = (struct cm_held){cm_buffer_keep(other), buffer->held};
    buffer->held = held;
    return CM_OK;
}

void cm_buffer_protect(struct cm_buffer *buffer)
{
    buffer->read_only = true;
}

bool cm_buffer_is_protected(const struct cm_buffer *buffer)
{
    return buffer && buffer->read_only;
}

bool cm_buffer_is_sole(const struct cm_buffer *buffer)
{
    return buffer && !buffer->read_only &&
           atomic_load_explicit(&buffer->references, memory_order_acquire) == 1;
}

static enum cm_status bytes_of(enum cm_dtype type, const struct cm_shape *shape, size_t *out,
                               struct cm_error *err)
{
    int64_t count;

    if (!cm_shape_count(shape, &count) || !cm_dtype_bytes(type, count, out)) {
        char text[64];
        return cm_fail(err, CM_LIMIT, "a tensor %s[%s] is too large for memory",
                       cm_dtype_name(type), cm_shape_print(shape, text, sizeof text));
    }
    return CM_OK;
}

enum cm_status cm_tensor_new(enum cm_dtype type, const struct cm_shape *shape,
                             struct cm_tensor *out, struct cm_error *err)
{
    struct cm_buffer *buffer;
    size_t size;

    CM_TRY(bytes_of(type, shape, &size, err));
    CM_TRY(cm_buffer_new(size, &buffer, err));
    if (type == CM_STRING)
        memset(buffer->data, 0, size);
    *out = cm_tensor_borrow(type, shape, buffer->data);
    out->buffer = buffer;
    cm_tensor_clear_padding(out);
    return CM_OK;
}

static unsigned last_bits(const struct cm_tensor *tensor)
{
    const int bits = cm_dtype_info(tensor->type)->bits;

    /* Of 8 elements the bits always fill whole bytes. */
    return bits > 0 && bits < 8 ? (unsigned)(cm_tensor_count(tensor) % 8) * (unsigned)bits % 8 : 0;
}

bool cm_tensor_has_padding(const struct cm_tensor *tensor)
{
    return last_bits(tensor) != 0;
}

static uint8_t *last_byte(const struct cm_tensor *tensor)
{
    return (uint8_t *)tensor->data + cm_tensor_bytes(tensor) - 1;
}

bool cm_tensor_padding_is_clear(const struct cm_tensor *tensor)
{
    const unsigned used = last_bits(tensor);

    return !used || *last_byte(tensor) >> used == 0;
}

void cm_tensor_clear_padding(const struct cm_tensor *tensor)
{
    const unsigned used = last_bits(tensor);

    if (used)
        *last_byte(tensor) &= (uint8_t)((1u << used) - 1);
}

struct cm_tensor cm_tensor_borrow(enum cm_dtype type, const struct cm_shape *shape, void *data)
{
    return (struct cm_tensor){.type = type, .shape = *shape, .data = data};
}

void cm_tensor_keep(struct cm_tensor *tensor)
{
    cm_buffer_keep(tensor->buffer);
}

void cm_tensor_drop(struct cm_tensor *tensor)
{
    cm_buffer_drop(tensor->buffer);
    *tensor = (struct cm_tensor){0};
}

static void drop_tensor(void *tensor)
{
    cm_tensor_drop(tensor);
}

void cm_tensor_defer(struct cm_arena *arena, struct cm_tensor *tensor)
{
    cm_arena_defer(arena, drop_tensor, tensor);
}

/* One buffer holds the views and, behind them, the bytes they view. */
static enum cm_status copy_strings(const struct cm_tensor *from, struct cm_tensor *out,
                                   struct cm_error *err)
{
    const struct cm_str *old = from->data;
    const size_t count = (size_t)cm_tensor_count(from);
    struct cm_buffer *buffer;
    size_t size = count * sizeof *old;

    for (size_t i = 0; i < count; i++) {
        if (!cm_size_add(size, old[i].size, &size))
            return no_memory(SIZE_MAX, err);
    }
    CM_TRY(cm_buffer_new(size, &buffer, err));
    struct cm_str *views = buffer->data;
    char *bytes = (char *)(views + count);
    for (size_t i = 0; i < count; i++) {
        if (old[i].size)
            memcpy(bytes, old[i].data, old[i].size);
        views[i] = (struct cm_str){bytes, old[i].size};
        bytes += old[i].size;
    }
    *out = cm_tensor_borrow(CM_STRING, &from->shape, buffer->data);
    out->buffer = buffer;
    return CM_OK;
}

enum cm_status cm_tensor_copy(const struct cm_tensor *from, struct cm_tensor *out,
                              struct cm_error *err)
{
    if (from->layout)
        return cm_fail(err, CM_UNSUPPORTED,
                       "a tensor in a backend's layout cannot be copied as it is");
    if (from->type == CM_STRING)
        return copy_strings(from, out, err);
    struct cm_tensor copy;
    CM_TRY(cm_tensor_new(from->type, &from->shape, &copy, err));
    if (cm_tensor_bytes(from))
        memcpy(copy.data, from->data, cm_tensor_bytes(from));
    *out = copy;
    return CM_OK;
}

int64_t cm_tensor_count(const struct cm_tensor *tensor)
{
    return cm_shape_elements(&tensor->shape);
}

size_t cm_tensor_bytes(const struct cm_tensor *tensor)
{
    size_t size = 0;
    const bool fits = cm_dtype_bytes(tensor->type, cm_tensor_count(tensor), &size);
    assert(fits);
    (void)fits;
    return size;
}

static int64_t packed_int(const struct cm_tensor *tensor, int64_t i)
{
    float value = 0;

    assert(cm_dtype_info(tensor->type)->kind == CM_CLASS_SIGNED ||
           cm_dtype_info(tensor->type)->kind == CM_CLASS_UNSIGNED);
    cm_narrow_load(tensor->type, tensor->data, i, 1, &value);
    return (int64_t)value;
}

int64_t cm_tensor_int(const struct cm_tensor *tensor, int64_t i)
{
    const void *data = tensor->data;

    switch (tensor->type) {
    case CM_BOOL:
        return ((const uint8_t *)data)[i] != 0;
    case CM_UINT8:
        return ((const uint8_t *)data)[i];
    case CM_INT8:
        return ((const int8_t *)data)[i];
    case CM_UINT16:
        return ((const uint16_t *)data)[i];
    case CM_INT16:
        return ((const int16_t *)data)[i];
    case CM_UINT32:
        return ((const uint32_t *)data)[i];
    case CM_INT32:
        return ((const int32_t *)data)[i];
    case CM_UINT64: /* past 2^63 it wraps, as a cast does */
        return (int64_t)((const uint64_t *)data)[i];
    case CM_INT64:
        return ((const int64_t *)data)[i];
    default:
        return packed_int(tensor, i);
    }
}

double cm_tensor_real(const struct cm_tensor *tensor, int64_t i)
{
    if (cm_dtype_is_narrow(tensor->type)) {
        float value;
        cm_narrow_load(tensor->type, tensor->data, i, 1, &value);
        return (double)value;
    }
    switch (tensor->type) {
    case CM_FLOAT:
        return (double)((const float *)tensor->data)[i];
    case CM_DOUBLE:
        return ((const double *)tensor->data)[i];
    case CM_UINT64:
        return (double)((const uint64_t *)tensor->data)[i];
    default:
        return (double)cm_tensor_int(tensor, i);
    }
}

bool cm_tensor_reduced_axes(const struct cm_tensor *axes, bool noop, int rank, bool *reduced,
                            int64_t *wrong)
{
    const int64_t count = axes ? cm_tensor_count(axes) : 0;
    for (int i = 0; i < rank; i++)
        reduced[i] = count == 0 && !noop;
    for (int64_t i = 0; i < count; i++) {
        int axis;
        *wrong = cm_tensor_int(axes, i);
        if (!cm_axis_fix(*wrong, rank, &axis) || reduced[axis])
            return false;
        reduced[axis] = true;
    }
    return true;
}

/* To the nearest whole number that the type holds; NaN becomes 0. */
static int64_t to_integer(const struct cm_dtype_info *info, double value)
{
    const bool is_signed = info->kind == CM_CLASS_SIGNED;
    const double high = ldexp(1, is_signed ? info->bits - 1 : info->bits);
    const double low = is_signed ? -high : 0;

    value = nearbyint(value);
    if (isnan(value))
        return 0;
    if (value < low)
        value = low;
    if (value >= high) /* the largest double below 2^63 is not the largest number: by its bits */
        return (int64_t)(UINT64_MAX >> (is_signed ? 65 - info->bits : 64 - info->bits));
    return is_signed ? (int64_t)value : (int64_t)(uint64_t)value;
}

void cm_tensor_set_real(const struct cm_tensor *tensor, int64_t i, double value)
{
    const struct cm_dtype_info *info = cm_dtype_info(tensor->type);
    uint8_t *at = (uint8_t *)tensor->data + (size_t)i * cm_dtype_size(tensor->type);

    if (tensor->type == CM_DOUBLE) {
        memcpy(at, &value, sizeof value);
    } else if (info->kind == CM_CLASS_FLOAT) {
        const float narrow = (float)value;
        if (tensor->type == CM_FLOAT)
            memcpy(at, &narrow, sizeof narrow);
        else
            cm_narrow_store(tensor->type, tensor->data, i, 1, &narrow);
    } else if (info->kind == CM_CLASS_BOOL) {
        *at = value != 0;
    } else {
        const int64_t whole = to_integer(info, value);
        if (info->bits < 8)
            cm_packed_set(info->bits, tensor->data, i, (uint8_t)whole);
        else
            memcpy(at, &whole, (size_t)info->bits / 8); /* little-endian: the low bytes */
    }
}
