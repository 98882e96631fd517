/* QuantizeLinear and DequantizeLinear between floats and 8 or 16 bits: neighbours that share a
 * scale are one loop, on all threads. */
// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"
#include "graph/backend.h"
#include "tensor/linear_codes.h"

enum { X, SCALE, ZERO };
enum {
    SHORTEST = 16,   /* runs that are worth a loop */
    GRAIN = 1 << 14, /* elements worth a thread */
};

/* x is lines of `line` elements. In a line each `run` elements share a scale; the last run may be
 * shorter. Run r of all has scale r % scales. */
struct linear_runs {
    int64_t line, run, scales;
};

static bool plan_runs(struct cm_call *call, struct linear_runs *r)
{
    const struct cm_shape *x = &call->in[X]->shape, *s = &call->in[SCALE]->shape;
    const struct cm_tensor *zero = call->n_in > ZERO ? call->in[ZERO] : NULL;
    const int64_t block = cm_node_int(call->node, "block_size");
    int axis = 0;
    *r = (struct linear_runs){cm_shape_elements(x), cm_shape_elements(x), cm_shape_elements(s)};
    if (zero && r->scales == 1 ? cm_tensor_count(zero) != 1
                               : zero && !cm_shape_equal(&zero->shape, s))
        return cm_call_decline(call, "zero point and scale differ in shape");
    if (r->scales == 1)
        return true;
    if (x->rank != 1 && !cm_axis_fix(cm_node_int(call->node, "axis"), x->rank, &axis))
        return cm_call_decline(call, "the axis is out of range");
    const int64_t inner = cm_shape_span(x, axis + 1, x->rank);
    const int64_t groups = block > 0 ? (x->dims[axis] - 1) / block + 1 : x->dims[axis];
    r->line = block > 0 ? x->dims[axis] : inner;
    r->run = block > 0 ? block : inner;
    if (r->run < SHORTEST || (block > 0 && inner != 1))
        return cm_call_decline(call, "few neighbours share a scale");
    bool fits = s->rank == (block > 0 ? x->rank : 1);
    for (int i = 0; fits && i < s->rank; i++)
        fits = s->dims[i] == (block <= 0 || i == axis ? groups : x->dims[i]);
    return fits || cm_call_decline(call, "the scale does not have the shape it needs");
}

static bool accepts(struct cm_call *call, enum cm_dtype floats, const struct cm_tensor *codes)
{
    struct linear_runs ignored;
    if (floats != CM_FLOAT || call->in[SCALE]->type != CM_FLOAT)
        return cm_call_decline(call, "not all real numbers are float");
    if (!cm_quantize_loop(codes->type))
        return cm_call_decline_type(call, codes);
    if (cm_tensor_count(call->in[X]) == 0)
        return cm_call_decline_empty(call, call->in[X]);
    return plan_runs(call, &ignored);
}

static bool quantize_accepts(struct cm_call *call)
{
    const int64_t precision = cm_node_int(call->node, "precision");
    if (precision && precision != CM_FLOAT)
        return cm_call_decline(call, "the precision is not float");
    return accepts(call, call->in[X]->type, call->out[0]);
}

static bool dequantize_accepts(struct cm_call *call)
{
    return accepts(call, call->out[0]->type, call->in[X]);
}

static enum cm_status prepare(struct cm_call *call)
{
    plan_runs(call, cm_call_state(call, sizeof(struct linear_runs)));
    return CM_OK;
}

/* How many of the elements [begin, end) share the scale of the first, and that scale and its zero
 * point.
 */
static int64_t next_run(const struct cm_call *call, int64_t begin, int64_t end, float *scale,
                        float *zero)
{
    const struct linear_runs *r = call->state;
    const struct cm_tensor *zeros = call->n_in > ZERO ? call->in[ZERO] : NULL;
    const int64_t line = begin / r->line, run = begin % r->line / r->run;
    const int64_t runs = (r->line - 1) / r->run + 1;
    const int64_t stop = (run + 1) * r->run < r->line ? (run + 1) * r->run : r->line;
    const int64_t left = line * r->line + stop - begin, at = (line * runs + run) % r->scales;
    *scale = ((const float *)call->in[SCALE]->data)[at];
    *zero = zeros ? (float)cm_tensor_real(zeros, at) : 0;
    return left < end - begin ? left : end - begin;
}

static void quantize_some(void *arg, int64_t begin, int64_t end)
{
    const struct cm_call *call = arg;
    const struct cm_tensor *y = call->out[0];
    cm_quantize_fn *const quantize = cm_quantize_loop(y->type);
    float scale, zero;
    for (int64_t n; begin < end; begin += n) {
        n = next_run(call, begin, end, &scale, &zero);
        quantize(n, (const float *)call->in[X]->data + begin, scale, zero,
                 (char *)y->data + (size_t)begin * cm_dtype_size(y->type));
    }
}

static void dequantize_some(void *arg, int64_t begin, int64_t end)
{
    const struct cm_call *call = arg;
    const struct cm_tensor *x = call->in[X];
    cm_dequantize_fn *const dequantize = cm_dequantize_loop(x->type);
    float scale, zero;
    for (int64_t n; begin < end; begin += n) {
        n = next_run(call, begin, end, &scale, &zero);
        dequantize(n, (const char *)x->data + (size_t)begin * cm_dtype_size(x->type), scale, zero,
                   (float *)call->out[0]->data + begin);
    }
}

static enum cm_status quantize_run(struct cm_call *call)
{
    cm_parallel(cm_tensor_count(call->in[X]), GRAIN, quantize_some, call);
    return CM_OK;
}

static enum cm_status dequantize_run(struct cm_call *call)
{
    cm_parallel(cm_tensor_count(call->in[X]), GRAIN, dequantize_some, call);
    return CM_OK;
}

CM_KERNEL(cpu, QuantizeLinear, .label = "runs of one scale", .accepts = quantize_accepts,
          .prepare = prepare, .run = quantize_run);
CM_KERNEL(cpu, DequantizeLinear, .label = "runs of one scale", .accepts = dequantize_accepts,
          .prepare = prepare, .run = dequantize_run);
