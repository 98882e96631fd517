/* What the pooling operators share. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/pool/planes.h"

#include "base/parallel.h"
#include "tensor/half.h"

enum cm_status cm_planes_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0), *y;
    if (x->rank == CM_RANK_UNKNOWN) {
        CM_TRY(cm_infer_set(in, 0, x));
        return cm_infer_set_tensor(in, 1, CM_INT64, CM_RANK_UNKNOWN, NULL);
    }
    CM_TRY(cm_infer_rank(in, 0, 3, CM_MAX_RANK));
    struct cm_window window;
    CM_TRY(cm_window_read(in->node, x->rank - 2, NULL, &window, in->err));
    CM_TRY(cm_window_infer(in, &window, x, x->dims[1], &y));
    CM_TRY(cm_infer_set(in, 0, y));
    return cm_infer_set_tensor(in, 1, CM_INT64, y->rank, y->dims);
}

enum cm_status cm_planes_infer_global(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    struct cm_dim dims[CM_MAX_RANK];
    if (x->rank == CM_RANK_UNKNOWN)
        return cm_infer_set(in, 0, x);
    CM_TRY(cm_infer_rank(in, 0, 2, CM_MAX_RANK));
    for (int i = 0; i < x->rank; i++)
        dims[i] = i < 2 ? x->dims[i] : CM_DIM(1);
    return cm_infer_set_tensor(in, 0, x->dtype, x->rank, dims);
}

/* One window over everything; a plane without axes is a row of one element. */
static void cover(const struct cm_shape *x, struct cm_window *out)
{
    out->rank = x->rank > 2 ? x->rank - 2 : 1;
    for (int i = 0; i < out->rank; i++) {
        out->kernel[i] = i + 2 < x->rank ? x->dims[i + 2] : 1;
        out->stride[i] = out->dilation[i] = 1;
    }
}

/* Sizes of an empty tensor may have any product; no element is ever reached by one that wrapped. */
static int64_t product(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

enum cm_status cm_planes_read(struct cm_call *call, const struct cm_tensor *x, bool global,
                              struct cm_planes *out)
{
    if (global)
        cover(&x->shape, &out->window);
    else
        CM_TRY(cm_window_read(call->node, x->shape.rank - 2, NULL, &out->window, call->err));
    const int rank = out->window.rank;
    out->in_plane = out->out_plane = 1;
    for (int i = rank - 1; i >= 0; i--) {
        out->in[i] = i + 2 < x->shape.rank ? x->shape.dims[i + 2] : 1;
        out->out[i] = global ? 1 : cm_window_count(&out->window, i, out->in[i]);
        out->x_strides[i] = out->in_plane;
        out->in_plane = product(out->in_plane, out->in[i]);
        out->out_plane = product(out->out_plane, out->out[i]);
    }
    const bool empty = cm_tensor_count(call->out[0]) == 0;
    out->count = empty ? 0 : x->shape.dims[0] * x->shape.dims[1];
    return CM_OK;
}

enum cm_status cm_planes_plan(struct cm_call *call, bool global, struct cm_planes *out)
{
    const struct cm_tensor *x = call->in[0];
    CM_TRY(cm_planes_read(call, x, global, out));
    if (out->count && cm_dtype_is_narrow(x->type)) /* one plane in and out, as floats */
        cm_call_scratch(call, (size_t)(out->in_plane + out->out_plane) * sizeof(float));
    return CM_OK;
}

bool cm_planes_clip(const struct cm_planes *planes, const int64_t *at, int64_t *low, int64_t *high)
{
    const struct cm_window *window = &planes->window;
    for (int i = 0; i < window->rank; i++) {
        const int64_t dilation = window->dilation[i];
        int64_t first = at[i] * window->stride[i] - window->pad_begin[i];
        const int64_t end = first + (window->kernel[i] - 1) * dilation + 1;
        if (first < 0) /* the first tap inside */
            first += (-first + dilation - 1) / dilation * dilation;
        low[i] = first;
        high[i] = end < planes->in[i] ? end : planes->in[i];
        if (low[i] >= high[i])
            return false;
    }
    return true;
}

double cm_planes_divisor(const struct cm_planes *planes, bool count_pads, const int64_t *at)
{
    const struct cm_window *window = &planes->window;
    double taps = 1;
    for (int i = 0; i < window->rank; i++) {
        const int64_t dilation = window->dilation[i], size = planes->in[i];
        int64_t first = at[i] * window->stride[i] - window->pad_begin[i];
        const int64_t end = first + (window->kernel[i] - 1) * dilation + 1;
        const int64_t limit = count_pads ? size + window->pad_end[i] : size;
        if (first < 0 && !count_pads)
            first += (-first + dilation - 1) / dilation * dilation;
        const int64_t length = (end < limit ? end : limit) - first;
        taps *= length > 0 ? (double)((length - 1) / dilation + 1) : 0;
    }
    return taps;
}

static void narrow_plane(struct cm_call *call, const struct cm_planes *planes, int64_t plane,
                         int64_t *indices, cm_plane_fn *pool)
{
    const struct cm_tensor *x = call->in[0];
    float *from = call->scratch, *to = from + planes->in_plane;
    cm_narrow_load(x->type, x->data, plane * planes->in_plane, planes->in_plane, from);
    pool(planes, from, to, indices, plane * planes->in_plane);
    cm_narrow_store(x->type, call->out[0]->data, plane * planes->out_plane, planes->out_plane, to);
}

struct job {
    struct cm_call *call;
    const struct cm_planes *planes;
    cm_plane_fn *pool;
    int64_t *indices;
    bool narrow;
};

static void pool_some(void *arg, int64_t begin, int64_t end)
{
    const struct job *job = arg;
    const struct cm_planes *planes = job->planes;
    const struct cm_tensor *x = job->call->in[0];
    const size_t width = cm_dtype_size(x->type);
    for (int64_t p = begin; p < end; p++) {
        const int64_t in_at = p * planes->in_plane, out_at = p * planes->out_plane;
        int64_t *indices = job->indices ? job->indices + out_at : NULL;
        if (job->narrow)
            narrow_plane(job->call, planes, p, indices, job->pool);
        else
            job->pool(planes, (const char *)x->data + (size_t)in_at * width,
                      (char *)job->call->out[0]->data + (size_t)out_at * width, indices, in_at);
    }
}

enum { GRAIN = 1 << 15 }; /* elements worth a thread */

enum cm_status cm_planes_run(struct cm_call *call, const struct cm_planes *planes,
                             cm_plane_fn *const *by_type)
{
    const struct cm_tensor *x = call->in[0];
    const bool narrow = cm_dtype_is_narrow(x->type);
    cm_plane_fn *pool = by_type[narrow ? CM_FLOAT : x->type];
    int64_t *indices = call->n_out > 1 && call->out[1] ? call->out[1]->data : NULL;

    if (!pool)
        return cm_call_fail(call, CM_UNSUPPORTED, "no kernel for %s", cm_dtype_name(x->type));
    struct job job = {call, planes, pool, indices, narrow};
    const int64_t each =
        planes->in_plane > planes->out_plane ? planes->in_plane : planes->out_plane;
    /* Narrow planes go one by one through the call's scratch memory. */
    cm_parallel(planes->count,
                narrow         ? planes->count
                : each < GRAIN ? GRAIN / (each + 1) + 1
                               : 1,
                pool_some, &job);
    return CM_OK;
}
