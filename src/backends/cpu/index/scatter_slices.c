/* ScatterND of slices that are long enough for vectors: replaced, or floats added, as the gradients
 * of tables are. Threads share out the columns of the slices, so that each element meets its
 * updates in their order. */
// SPDX-License-Identifier: Apache-2.0
#include "base/machine.h"
#include "base/number.h"
#include "base/parallel.h"
#include "graph/backend.h"
#include "tensor/line.h"

enum { DATA, INDICES, UPDATES };
enum {
    SHORTEST = 4,    /* slices */
    BLOCK = 256,     /* floats that go through doubles at a time */
    CHUNK = 128,     /* columns at least that a thread takes */
    CHUNKS = 16,     /* at most */
    MANY = 1 << 16,  /* elements worth several threads */
    COPIED = 1 << 16 /* bytes of the data at a time */
};

struct slices {
    bool adds;
    int64_t chunk;                                   /* columns of a thread's piece */
    int length;                                      /* indices of a tuple */
    int64_t count, slice;                            /* tuples; elements of a slice */
    int64_t dims[CM_MAX_RANK], strides[CM_MAX_RANK]; /* of the axes that tuples lead along */
};

static bool plan_slices(struct cm_call *call, struct slices *s)
{
    const struct cm_shape *data = &call->in[DATA]->shape, *indices = &call->in[INDICES]->shape;
    const struct cm_shape *updates = &call->in[UPDATES]->shape;
    const int lead = indices->rank - 1;
    int64_t strides[CM_MAX_RANK];
    bool fits = lead >= 0 && indices->dims[lead] <= data->rank;
    s->length = fits ? (int)indices->dims[lead] : 0;
    fits = fits && updates->rank == lead + data->rank - s->length;
    for (int i = 0; fits && i < updates->rank; i++)
        fits = updates->dims[i] == (i < lead ? indices->dims[i] : data->dims[s->length + i - lead]);
    if (!fits)
        return cm_call_decline(call, "the operands differ in shape");
    cm_shape_strides(data, strides);
    s->count = cm_shape_span(indices, 0, lead);
    s->slice = cm_shape_span(data, s->length, data->rank);
    memcpy(s->dims, data->dims, sizeof s->dims);
    memcpy(s->strides, strides, sizeof s->strides);
    if (s->slice < SHORTEST)
        return cm_call_decline(call, "the slices have %lld elements", (long long)s->slice);
    return true;
}

static bool accepts(struct cm_call *call)
{
    const struct cm_str how = cm_node_str(call->node, "reduction");
    const struct cm_tensor *x = call->in[DATA];
    struct slices s;
    if (cm_tensor_count(x) == 0)
        return cm_call_decline_empty(call, x);
    if (!cm_str_is(how, "none") && !cm_str_is(how, "add"))
        return cm_call_decline(call, "the updates are not added");
    if (cm_str_is(how, "add") ? !cm_dtype_is_float(x->type) || cm_dtype_size(x->type) < 2
                              : x->type == CM_STRING || cm_dtype_size(x->type) == 0)
        return cm_call_decline_type(call, x);
    return plan_slices(call, &s);
}

static enum cm_status prepare(struct cm_call *call)
{
    struct slices *s = cm_call_state(call, sizeof *s);
    size_t bytes;
    plan_slices(call, s);
    s->chunk = s->slice / CHUNKS < CHUNK ? CHUNK : s->slice / CHUNKS;
    s->adds = cm_str_is(cm_node_str(call->node, "reduction"), "add");
    if (!cm_size_mul((size_t)s->count, sizeof(int64_t), &bytes))
        return cm_call_fail(call, CM_LIMIT, "it has too many indices");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

/* Where the slices begin, in elements. */
static enum cm_status find_places(struct cm_call *call, int64_t *places)
{
    const struct slices *s = call->state;
    const int64_t *index = call->in[INDICES]->data;
    for (int64_t i = 0; i < s->count; i++) {
        places[i] = 0;
        for (int k = 0; k < s->length; k++, index++) {
            if (*index < -s->dims[k] || *index >= s->dims[k])
                return cm_call_fail(call, CM_BAD_ARGUMENT,
                                    "index %lld is out of range for axis %d of %lld elements",
                                    (long long)*index, k, (long long)s->dims[k]);
            places[i] += (*index < 0 ? *index + s->dims[k] : *index) * s->strides[k];
        }
    }
    return CM_OK;
}

static CM_ALWAYS_INLINE void add_floats_on(enum cm_machine machine, int64_t count, const float *x,
                                           float *y)
{
    (void)machine;
    CM_ANY_ORDER
    for (int64_t i = 0; i < count; i++)
        y[i] += x[i];
}
CM_TWO_BUILDS(add_floats, (int64_t count, const float *x, float *y), (machine, count, x, y))

/* Other floats. */
static void add_any(int64_t count, struct cm_line x, struct cm_line y)
{
    for (; count > 0; count -= BLOCK, x.at += BLOCK, y.at += BLOCK) {
        const int64_t n = count < BLOCK ? count : BLOCK;
        double a[BLOCK], b[BLOCK];
        cm_line_load(y, 1, n, CM_DOUBLE, a);
        cm_line_load(x, 1, n, CM_DOUBLE, b);
        for (int64_t i = 0; i < n; i++)
            a[i] += b[i];
        cm_line_save(y, 1, n, CM_DOUBLE, a);
    }
}

/* Elements [begin, end) of all slices. */
static void scatter_columns(const struct cm_call *call, int64_t begin, int64_t end)
{
    const struct slices *s = call->state;
    const struct cm_tensor *from = call->in[UPDATES], *to = call->out[0];
    const size_t width = cm_dtype_size(to->type);
    const int64_t *places = call->scratch, count = end - begin;
    for (int64_t i = 0; i < s->count; i++) {
        const int64_t x = i * s->slice + begin, y = places[i] + begin;
        if (!s->adds)
            memcpy((char *)to->data + (size_t)y * width,
                   (const char *)from->data + (size_t)x * width, (size_t)count * width);
        else if (to->type == CM_FLOAT)
            add_floats_builds[cm_this_machine()](count, (const float *)from->data + x,
                                                 (float *)to->data + y);
        else
            add_any(count, cm_line_at(from, x), cm_line_at(to, y));
    }
}

static void scatter_chunks(void *arg, int64_t begin, int64_t end)
{
    const struct cm_call *call = arg;
    const struct slices *s = call->state;
    for (int64_t i = begin; i < end; i++) {
        const int64_t next = (i + 1) * s->chunk;
        scatter_columns(call, i * s->chunk, next < s->slice ? next : s->slice);
    }
}

static void copy_data(void *arg, int64_t begin, int64_t end)
{
    const struct cm_call *call = arg;
    memcpy((char *)call->out[0]->data + begin, (const char *)call->in[DATA]->data + begin,
           (size_t)(end - begin));
}

static enum cm_status run(struct cm_call *call)
{
    const struct slices *s = call->state;
    CM_TRY(find_places(call, call->scratch));
    if (call->out[0]->data != call->in[DATA]->data)
        cm_parallel((int64_t)cm_tensor_bytes(call->in[DATA]), COPIED, copy_data, call);
    if (s->slice < 2 * CHUNK || s->count < MANY / s->slice)
        scatter_columns(call, 0, s->slice);
    else
        cm_parallel((s->slice + s->chunk - 1) / s->chunk, 1, scatter_chunks, call);
    return CM_OK;
}

CM_KERNEL(cpu, ScatterND, .label = "whole slices", .accepts = accepts, .prepare = prepare,
          .run = run);
