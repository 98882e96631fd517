/* Window geometry. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/common/window.h"

enum { LIMIT = INT32_MAX }; /* of any single number: products of two then fit in 64 bits */

static enum cm_status read_list(const struct cm_node *node, const char *name, size_t count,
                                int64_t least, int64_t absent, int64_t *out, struct cm_error *err)
{
    const struct cm_int64s list = cm_node_ints(node, name);
    if (list.count && list.count != count)
        return cm_fail(err, CM_BAD_MODEL, "attribute '%s' has %zu numbers, needs %zu", name,
                       list.count, count);
    for (size_t i = 0; i < count; i++) {
        out[i] = list.count ? list.items[i] : absent;
        if (out[i] < least || out[i] > LIMIT)
            return cm_fail(err, CM_BAD_MODEL, "attribute '%s' has %lld, must be %lld to %d", name,
                           (long long)out[i], (long long)least, LIMIT);
    }
    return CM_OK;
}

enum cm_status cm_window_read(const struct cm_node *node, int rank, const int64_t *kernel,
                              struct cm_window *out, struct cm_error *err)
{
    const size_t n = (size_t)rank;
    int64_t pads[2 * CM_MAX_RANK];
    memset(out, 0, sizeof *out);
    out->rank = rank;
    CM_TRY(read_list(node, "strides", n, 1, 1, out->stride, err));
    CM_TRY(read_list(node, "dilations", n, 1, 1, out->dilation, err));
    CM_TRY(read_list(node, "pads", 2 * n, 0, 0, pads, err));
    memcpy(out->pad_begin, pads, n * sizeof pads[0]);
    memcpy(out->pad_end, pads + n, n * sizeof pads[0]);
    if (cm_node_ints(node, "kernel_shape").count || !kernel)
        CM_TRY(read_list(node, "kernel_shape", n, 1, 0, out->kernel, err));
    else
        memcpy(out->kernel, kernel, n * sizeof kernel[0]);
    const struct cm_str mode = cm_node_str(node, "auto_pad");
    out->same_upper = cm_str_is(mode, "SAME_UPPER");
    out->same_lower = cm_str_is(mode, "SAME_LOWER");
    out->valid = cm_str_is(mode, "VALID");
    if (mode.size && !out->same_upper && !out->same_lower && !out->valid &&
        !cm_str_is(mode, "NOTSET"))
        return cm_fail(err, CM_BAD_MODEL,
                       "attribute 'auto_pad' is '%.*s', expected 'NOTSET', 'SAME_UPPER', "
                       "'SAME_LOWER' or 'VALID'",
                       CM_STR_FMT(mode));
    out->ceil_mode = cm_node_int(node, "ceil_mode") != 0;
    return CM_OK;
}

/* The span a dilated kernel covers. */
static int64_t span(const struct cm_window *window, int axis)
{
    return (window->kernel[axis] - 1) * window->dilation[axis] + 1;
}

int64_t cm_window_count(struct cm_window *window, int axis, int64_t size)
{
    const int64_t stride = window->stride[axis], covered = span(window, axis);
    if (window->same_upper || window->same_lower) {
        const int64_t count = size / stride + (size % stride != 0);
        const int64_t total = count > 0 ? (count - 1) * stride + covered - size : 0;
        const int64_t pad = total > 0 ? total : 0;
        window->pad_begin[axis] = window->same_upper ? pad / 2 : pad - pad / 2;
        window->pad_end[axis] = pad - window->pad_begin[axis];
        return count;
    }
    if (window->valid)
        window->pad_begin[axis] = window->pad_end[axis] = 0;
    const int64_t room = size + window->pad_begin[axis] + window->pad_end[axis] - covered;
    if (room < 0)
        return 0;
    int64_t count = room / stride + 1;
    /* Rounding up adds a window, unless it would begin in the padding behind the input. */
    if (window->ceil_mode && room % stride != 0 && count * stride < size + window->pad_begin[axis])
        count++;
    return count;
}

/* Windows along an axis of a size that may be unknown. Windows must fit, so there is no need to say
 * that there are none where they do not. */
static struct cm_dim window_dim(struct cm_symbols *symbols, struct cm_window *window, int axis,
                                struct cm_dim size)
{
    if (cm_dim_known(size))
        return CM_DIM(cm_window_count(window, axis, size.value));
    const int64_t stride = window->stride[axis], covered = span(window, axis);
    if (window->same_upper || window->same_lower)
        return cm_dim_floor(symbols, size, stride - 1, stride);
    const int64_t begin = window->valid ? 0 : window->pad_begin[axis],
                  end = window->valid ? 0 : window->pad_end[axis];
    if (!window->ceil_mode)
        return cm_dim_floor(symbols, size, begin + end - covered + stride, stride);
    const struct cm_dim up =
        cm_dim_floor(symbols, size, begin + end - covered + 2 * stride - 1, stride);
    if (end - covered + stride <= 0) /* none begins in the padding behind the input */
        return up;
    if (end >= covered)
        return CM_DIM_ANY;
    const struct cm_dim inside = cm_dim_floor(symbols, size, begin + stride - 1, stride);
    return cm_quantity_dim(
        cm_quantity_smaller(symbols, cm_dim_quantity(up), cm_dim_quantity(inside)));
}

enum cm_status cm_window_infer(struct cm_infer *in, struct cm_window *window,
                               const struct cm_type *x, struct cm_dim channels,
                               const struct cm_type **out)
{
    struct cm_dim dims[CM_MAX_RANK];
    if (x->rank == CM_RANK_UNKNOWN) {
        *out = x;
        return CM_OK;
    }
    dims[0] = x->dims[0];
    dims[1] = channels;
    for (int i = 0; i < window->rank; i++) {
        dims[i + 2] = window_dim(in->symbols, window, i, x->dims[i + 2]);
        if (cm_dim_known(dims[i + 2]) && dims[i + 2].value < 1 && x->dims[i + 2].value > 0)
            return cm_infer_fail(in,
                                 "a window of %lld does not fit into spatial axis %d of size %lld",
                                 (long long)span(window, i), i, (long long)x->dims[i + 2].value);
    }
    *out = cm_type_tensor(in->arena, x->dtype, x->rank, dims);
    return CM_OK;
}
