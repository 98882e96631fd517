/* LpNormalization and MeanVarianceNormalization. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "graph/node_formula.h"
#include "ops/common/along_axis.h"
#include "tensor/line.h"

#include <math.h>

/* ---- LpNormalization: a lane along one axis divided by its length in the sense of p ---- */

static enum cm_status lp_infer(struct cm_infer *in)
{
    const int64_t p = cm_node_int(in->node, "p");
    if (p != 1 && p != 2)
        return cm_infer_fail(in, "p is %lld, must be 1 or 2", (long long)p);
    return cm_lanes_infer(in, 0);
}

static enum cm_status lp_prepare(struct cm_call *call)
{
    struct cm_lanes *lanes = cm_call_state(call, sizeof *lanes);
    size_t bytes;
    CM_TRY(cm_lanes_read(call, &call->in[0]->shape, lanes));
    if (cm_tensor_count(call->in[0]) == 0)
        return CM_OK;
    if (!cm_size_mul((size_t)lanes->inner, sizeof(double), &bytes) ||
        !cm_size_mul(bytes, (size_t)lanes->length + 1, &bytes))
        return cm_call_fail(call, CM_LIMIT, "its axes are too long");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

static enum cm_status lp_run(struct cm_call *call)
{
    const struct cm_lanes *l = call->state;
    const bool squares = cm_node_int(call->node, "p") == 2;
    double *norms = call->scratch, *v = norms + l->inner;
    const int64_t size = l->length * l->inner;
    if (cm_tensor_count(call->in[0]) == 0)
        return CM_OK;
    for (int64_t o = 0; o < l->outer; o++) {
        cm_line_load(cm_line_at(call->in[0], o * size), 1, size, CM_DOUBLE, v);
        for (int64_t j = 0; j < l->inner; j++)
            norms[j] = 0;
        for (int64_t i = 0; i < l->length; i++)
            for (int64_t j = 0; j < l->inner; j++)
                norms[j] +=
                    squares ? v[i * l->inner + j] * v[i * l->inner + j] : fabs(v[i * l->inner + j]);
        for (int64_t j = 0; j < l->inner; j++) {
            const double norm = squares ? sqrt(norms[j]) : norms[j];
            norms[j] = norm == 0 ? 1 : norm; /* a lane of zeros stays so */
        }
        for (int64_t i = 0; i < l->length; i++)
            for (int64_t j = 0; j < l->inner; j++)
                v[i * l->inner + j] /= norms[j];
        cm_line_save(cm_line_at(call->out[0], o * size), 1, size, CM_DOUBLE, v);
    }
    return CM_OK;
}

/* One instead of zero before the root, whose slope at zero is infinite. */
static enum cm_status lp_body(struct cm_body *b)
{
    const enum cm_dtype dtype = cm_builder_type(&b->build, cm_body_input(b, 0))->dtype;
    const bool squares = cm_node_int(b->node, "p") == 2;
    return cm_body_formula(b,
                           "x = %s(input); axes = [axis]; sum = ReduceSum(%s, axes);"
                           "norm = Where(Equal(sum, 0), 1, sum); output = %s(x / %s)",
                           cm_dtype_name(cm_line_wide(dtype)), squares ? "x * x" : "Abs(x)",
                           cm_dtype_name(dtype), squares ? "Sqrt(norm)" : "norm");
}

CM_OP(LpNormalization, .infer = lp_infer, .prepare = lp_prepare, .run = lp_run, .body = lp_body);

/* ---- MeanVarianceNormalization: (x - mean) / (deviation + 1e-9) over some axes ---- */

#define SMALL 1e-9

static enum cm_status mvn_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    const struct cm_int64s axes = cm_node_ints(in->node, "axes");
    int axis;
    for (size_t i = 0; x->rank != CM_RANK_UNKNOWN && i < axes.count; i++)
        CM_TRY(cm_infer_axis(in, axes.items[i], x->rank, false, &axis));
    return cm_infer_set(in, 0, x);
}

/* Elements that are normalized together have the same group: strides of the groups over x. */
struct groups {
    int64_t count, size;
    int64_t strides[CM_MAX_RANK];
};

static enum cm_status mvn_prepare(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[0]->shape;
    const struct cm_int64s axes = cm_node_ints(call->node, "axes");
    struct groups *g = cm_call_state(call, sizeof *g);
    bool reduced[CM_MAX_RANK] = {false};
    size_t bytes, row;
    for (size_t i = 0; i < axes.count; i++) {
        int axis;
        if (!cm_axis_fix(axes.items[i], x->rank, &axis))
            return cm_call_fail(call, CM_BAD_MODEL, "axis %lld is out of range for rank %d",
                                (long long)axes.items[i], x->rank);
        reduced[axis] = true;
    }
    if (cm_tensor_count(call->in[0]) == 0)
        return CM_OK;
    g->count = 1;
    for (int i = x->rank - 1; i >= 0; i--) {
        g->strides[i] = reduced[i] ? 0 : g->count;
        g->count *= reduced[i] ? 1 : x->dims[i];
    }
    g->size = cm_tensor_count(call->in[0]) / g->count;
    if (!cm_size_mul((size_t)g->count, 2 * sizeof(double), &bytes) ||
        !cm_size_mul((size_t)(x->rank ? x->dims[x->rank - 1] : 1), sizeof(double), &row) ||
        !cm_size_add(bytes, row, &bytes))
        return cm_call_fail(call, CM_LIMIT, "its axes are too long");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

enum pass { SUMS, SQUARES, RESULTS };

/* One walk over x, row by row. */
static void mvn_pass(const struct cm_call *call, const struct groups *g, enum pass pass)
{
    const struct cm_shape *x = &call->in[0]->shape;
    const int last = x->rank - 1;
    const int64_t width = x->rank ? x->dims[last] : 1, step = x->rank ? g->strides[last] : 0;
    double *means = call->scratch, *spreads = means + g->count, *v = spreads + g->count;
    int64_t index[CM_MAX_RANK] = {0}, group = 0;
    for (int64_t at = 0; at < cm_tensor_count(call->in[0]); at += width) {
        cm_line_load(cm_line_at(call->in[0], at), 1, width, CM_DOUBLE, v);
        for (int64_t i = 0; i < width; i++) {
            const int64_t k = group + i * step;
            const double off = v[i] - means[k];
            if (pass == SUMS)
                means[k] += v[i];
            else if (pass == SQUARES)
                spreads[k] += off * off;
            else
                v[i] = off / spreads[k];
        }
        if (pass == RESULTS)
            cm_line_save(cm_line_at(call->out[0], at), 1, width, CM_DOUBLE, v);
        for (int d = last - 1; d >= 0; d--) {
            group += g->strides[d];
            if (++index[d] < x->dims[d])
                break;
            group -= g->strides[d] * x->dims[d];
            index[d] = 0;
        }
    }
}

static enum cm_status mvn_run(struct cm_call *call)
{
    const struct groups *g = call->state;
    double *means = call->scratch, *spreads = means + g->count;
    if (cm_tensor_count(call->in[0]) == 0)
        return CM_OK;
    for (int64_t i = 0; i < 2 * g->count; i++)
        means[i] = 0;
    mvn_pass(call, g, SUMS);
    for (int64_t i = 0; i < g->count; i++)
        means[i] /= (double)g->size;
    mvn_pass(call, g, SQUARES);
    for (int64_t i = 0; i < g->count; i++)
        spreads[i] = sqrt(spreads[i] / (double)g->size) + SMALL;
    mvn_pass(call, g, RESULTS);
    return CM_OK;
}

static enum cm_status mvn_body(struct cm_body *b)
{
    const enum cm_dtype dtype = cm_builder_type(&b->build, cm_body_input(b, 0))->dtype;
    return cm_body_formula(b,
                           "x = %s(X); list = axes; sizes = Gather(Shape(x), list);"
                           "count = cast(ReduceProd<keepdims=0>(sizes), x);"
                           "off = x - ReduceSum(x, list) / count;"
                           "squares = ReduceSum(off * off, list);"
                           "Y = %s(off / (Sqrt(squares / count) + 1e-9))",
                           cm_dtype_name(cm_line_wide(dtype)), cm_dtype_name(dtype));
}

CM_OP(MeanVarianceNormalization, .infer = mvn_infer, .prepare = mvn_prepare, .run = mvn_run,
      .body = mvn_body);
