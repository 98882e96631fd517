/* LayerNormalization, RMSNormalization and their gradients of any float type, computed in double,
 * where norm_layers.c has declined: also scales and biases that differ from row to row. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "base/parallel.h"
#include "graph/backend.h"
#include "tensor/line.h"

#include <math.h>

static const bool centred = true, not_centred = false; /* is the mean taken off? */

/* The rows of operand x_at are not empty, and so is nothing else. */
static bool has_rows(struct cm_call *call, int x_at)
{
    const struct cm_tensor *x = call->in[x_at];
    int axis;
    if (cm_tensor_count(x) == 0)
        return cm_call_decline_empty(call, x);
    return cm_axis_fix(cm_node_int(call->node, "axis"), x->shape.rank, &axis) ||
           cm_call_decline(call, "the axis is out of range");
}

static bool accepts_forward(struct cm_call *call)
{
    return has_rows(call, 0);
}

/* How scale or bias is laid over X. */
struct spread {
    int64_t strides[CM_MAX_RANK];
    bool varies; /* from row to row */
};

struct layers {
    int axis;
    int64_t rows, size;
    double epsilon;
    struct spread spread[2]; /* of inputs 1 and 2 */
};

static enum cm_status prepare_forward(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[0]->shape;
    struct layers *layers = cm_call_state(call, sizeof *layers);
    size_t bytes;
    if (!cm_axis_fix(cm_node_int(call->node, "axis"), x->rank, &layers->axis))
        return cm_call_fail(call, CM_BAD_MODEL, "its axis is out of range for rank %d", x->rank);
    layers->rows = cm_shape_span(x, 0, layers->axis);
    layers->size = cm_shape_span(x, layers->axis, x->rank);
    layers->epsilon = (double)cm_node_float(call->node, "epsilon");
    for (int i = 0; i < 2 && i + 1 < call->n_in; i++) {
        if (!call->in[i + 1])
            continue;
        cm_broadcast_strides(&call->in[i + 1]->shape, x, layers->spread[i].strides);
        for (int d = 0; d < layers->axis; d++)
            layers->spread[i].varies =
                layers->spread[i].varies || layers->spread[i].strides[d] != 0;
    }
    if (!cm_size_mul((size_t)layers->size, 2 * sizeof(double), &bytes))
        return cm_call_fail(call, CM_LIMIT, "its axes are too long");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

/* The part of p that lies over one row of X. */
static void fetch_row(const struct layers *layers, const struct cm_shape *x, int which,
                      const struct cm_tensor *p, int64_t row, double *to)
{
    const int64_t *strides = layers->spread[which].strides;
    const int last = x->rank - 1;
    int64_t index[CM_MAX_RANK] = {0}, at = 0, rest = row;
    for (int d = layers->axis - 1; d >= 0; d--) {
        at += rest % x->dims[d] * strides[d];
        rest /= x->dims[d];
    }
    for (int64_t done = 0; done < layers->size; done += x->dims[last]) {
        if (strides[last] != 0) {
            cm_line_load(cm_line_at(p, at), strides[last], x->dims[last], CM_DOUBLE, to + done);
        } else {
            const double value = cm_tensor_real(p, at);
            for (int64_t i = 0; i < x->dims[last]; i++)
                to[done + i] = value;
        }
        for (int d = last - 1; d >= layers->axis; d--) {
            at += strides[d];
            if (++index[d] < x->dims[d])
                break;
            at -= strides[d] * x->dims[d];
            index[d] = 0;
        }
    }
}

static void store_statistic(const struct cm_call *call, int o, int64_t row, double value)
{
    if (o < call->n_out && call->out[o])
        cm_line_store(cm_line_at(call->out[o], row), value);
}

static void normalize_rows(void *arg, int64_t begin, int64_t end)
{
    const struct cm_call *call = arg;
    const struct layers *layers = call->state;
    const struct cm_tensor *x = call->in[0];
    const bool takes_mean = *(const bool *)call->arg, has_bias = call->n_in > 2 && call->in[2];
    const double size = (double)layers->size;
    double *operands[2] = {call->scratch, (double *)call->scratch + layers->size};
    for (int64_t row = begin; row < end; row++) {
        const struct cm_line line = cm_line_at(x, row * layers->size);
        const double mean = takes_mean ? cm_line_sum(line, layers->size) / size : 0;
        const double variance = cm_line_square_sum(line, layers->size, mean) / size;
        const double inverse = 1 / sqrt(variance + layers->epsilon);
        for (int i = 0; i < 1 + has_bias; i++)
            if (layers->spread[i].varies)
                fetch_row(layers, &x->shape, i, call->in[i + 1], row, operands[i]);
        cm_line_affine_each(line, cm_line_at(call->out[0], row * layers->size), layers->size, mean,
                            inverse, operands[0], has_bias ? operands[1] : NULL);
        store_statistic(call, 1, row, mean);
        store_statistic(call, 2, row, inverse);
    }
}

enum { GRAIN = 1 << 13 }; /* elements worth a thread */

static enum cm_status run_forward(struct cm_call *call)
{
    const struct layers *layers = call->state;
    const struct cm_tensor *x = call->in[0];
    const bool has_bias = call->n_in > 2 && call->in[2];
    double *operands[2] = {call->scratch, (double *)call->scratch + layers->size};
    bool varies = false;
    for (int i = 0; i < 1 + has_bias; i++) {
        varies = varies || layers->spread[i].varies;
        fetch_row(layers, &x->shape, i, call->in[i + 1], 0, operands[i]);
    }
    /* Operands that differ from row to row share one place: then one thread does all. */
    cm_parallel(layers->rows,
                varies                 ? layers->rows
                : layers->size < GRAIN ? GRAIN / layers->size
                                       : 1,
                normalize_rows, call);
    return CM_OK;
}

/* ---- Their gradients. Rows are shared out in parts; each part sums the gradients of scale and
 * bias for itself, and these are added in order, so that the number of threads does not matter.
 * ---- */

enum { G_DY, G_X, G_SCALE };      /* operands */
enum { G_DX, G_DSCALE, G_DBIAS }; /* results */

static bool accepts_backward(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[G_X]->shape;
    int axis = 0;
    if (!has_rows(call, G_X))
        return false;
    cm_axis_fix(cm_node_int(call->node, "axis"), x->rank, &axis);
    return (cm_shape_equal(x, &call->in[G_DY]->shape) &&
            cm_tensor_count(call->in[G_SCALE]) == cm_shape_span(x, axis, x->rank)) ||
           cm_call_decline(call, "the operands differ in shape");
}

struct row_parts {
    int64_t count, size;     /* rows, and elements of each */
    int64_t parts, per_part; /* rows of a part */
    double epsilon;
};

enum {
    MOST_PARTS = 64,
    PART_ELEMENTS = 1 << 13, /* worth a thread */
    SUM_ELEMENTS = 1 << 19,  /* that the sums of all parts may have */
    BUFFERS = 4,             /* of a part: x, dy, and the sums */
};

static enum cm_status prepare_backward(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[G_X]->shape;
    struct row_parts *rows = cm_call_state(call, sizeof *rows);
    size_t bytes;
    int axis;
    if (!cm_axis_fix(cm_node_int(call->node, "axis"), x->rank, &axis))
        return cm_call_fail(call, CM_BAD_MODEL, "its axis is out of range for rank %d", x->rank);
    rows->count = cm_shape_span(x, 0, axis);
    rows->size = cm_shape_span(x, axis, x->rank);
    rows->epsilon = (double)cm_node_float(call->node, "epsilon");
    int64_t parts = rows->count / (1 + PART_ELEMENTS / rows->size);
    parts = parts < SUM_ELEMENTS / rows->size ? parts : SUM_ELEMENTS / rows->size;
    parts = parts < MOST_PARTS ? parts : MOST_PARTS;
    rows->parts = parts > 1 ? parts : 1;
    rows->per_part = (rows->count + rows->parts - 1) / rows->parts;
    if (!cm_size_mul((size_t)rows->size, (size_t)(rows->parts * BUFFERS + 1) * sizeof(double),
                     &bytes))
        return cm_call_fail(call, CM_LIMIT, "its axes are too long");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

/* dx = inverse * (g - mean(g) - xhat * mean(g * xhat)) with g = dy * scale, the first mean only
 * where one was taken off. x becomes xhat. */
static void turn_row(const struct row_parts *rows, bool takes_mean, const double *scale, double *x,
                     double *dy, double *d_scale, double *d_bias)
{
    const double n = (double)rows->size;
    double mean = 0, squares = 0, sum = 0, along = 0;
    for (int64_t i = 0; takes_mean && i < rows->size; i++)
        mean += x[i];
    mean /= n;
    for (int64_t i = 0; i < rows->size; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    const double inverse = 1 / sqrt(squares / n + rows->epsilon);
    for (int64_t i = 0; i < rows->size; i++) {
        const double g = dy[i] * scale[i];
        x[i] = (x[i] - mean) * inverse;
        d_scale[i] += dy[i] * x[i];
        d_bias[i] += dy[i];
        sum += g;
        along += g * x[i];
        dy[i] = g;
    }
    sum = takes_mean ? sum / n : 0;
    along /= n;
    for (int64_t i = 0; i < rows->size; i++)
        dy[i] = inverse * (dy[i] - sum - x[i] * along);
}

static void turn_parts(void *arg, int64_t begin, int64_t end)
{
    const struct cm_call *call = arg;
    const struct row_parts *rows = call->state;
    const double *scale = call->scratch;
    const bool takes_mean = *(const bool *)call->arg;
    for (int64_t part = begin; part < end; part++) {
        double *x = (double *)call->scratch + rows->size * (1 + part * BUFFERS);
        double *dy = x + rows->size, *d_scale = dy + rows->size, *d_bias = d_scale + rows->size;
        const int64_t first = part * rows->per_part, next = first + rows->per_part;
        for (int64_t i = 0; i < 2 * rows->size; i++)
            d_scale[i] = 0;
        for (int64_t row = first; row < next && row < rows->count; row++) {
            const int64_t at = row * rows->size;
            cm_line_load(cm_line_at(call->in[G_X], at), 1, rows->size, CM_DOUBLE, x);
            cm_line_load(cm_line_at(call->in[G_DY], at), 1, rows->size, CM_DOUBLE, dy);
            turn_row(rows, takes_mean, scale, x, dy, d_scale, d_bias);
            if (call->out[G_DX])
                cm_line_save(cm_line_at(call->out[G_DX], at), 1, rows->size, CM_DOUBLE, dy);
        }
    }
}

static enum cm_status run_backward(struct cm_call *call)
{
    const struct row_parts *rows = call->state;
    double *sums = (double *)call->scratch + rows->size * 3; /* of the first part */
    cm_line_load(cm_line_at(call->in[G_SCALE], 0), 1, rows->size, CM_DOUBLE, call->scratch);
    cm_parallel(rows->parts, 1, turn_parts, call);
    for (int64_t part = 1; part < rows->parts; part++)
        for (int64_t i = 0; i < 2 * rows->size; i++)
            sums[i] += sums[part * BUFFERS * rows->size + i];
    for (int o = G_DSCALE; o < call->n_out; o++)
        if (call->out[o])
            cm_line_save(cm_line_at(call->out[o], 0), 1, rows->size, CM_DOUBLE,
                         sums + (o - G_DSCALE) * rows->size);
    return CM_OK;
}

#define FORWARD                                                                                    \
    .label = "rows in double", .accepts = accepts_forward, .prepare = prepare_forward,             \
    .run = run_forward
#define BACKWARD                                                                                   \
    .label = "rows in double", .accepts = accepts_backward, .prepare = prepare_backward,           \
    .run = run_backward

CM_KERNEL_AT(cpu, 1, LayerNormalization, FORWARD, .arg = &centred);
CM_KERNEL_AT(cpu, 1, RMSNormalization, FORWARD, .arg = &not_centred);
CM_KERNEL_AT_IN(cpu, 1, "ai.cameo", LayerNormalizationGrad, BACKWARD, .arg = &centred);
CM_KERNEL_AT_IN(cpu, 1, "ai.cameo", RMSNormalizationGrad, BACKWARD, .arg = &not_centred);
