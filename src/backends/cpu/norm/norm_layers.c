/* LayerNormalization, RMSNormalization and their gradients, of floats.
 *
 * Rows are shared out in parts that do not depend on the number of threads; gradients by scale and
 * bias are summed by part, and these sums added in order. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/norm/norm_row.h"
#include "base/number.h"
#include "base/parallel.h"
#include "graph/backend.h"

enum {
    FEW = 32, /* rows whose gradients are summed in float, those sums in double */
    MOST_PARTS = 64,
    SUM_ELEMENTS = 1 << 19, /* that the sums of all parts may have */
};

/* Both operators and their gradients. */
struct rows_plan {
    int64_t rows, size;
    double epsilon;
    bool centred;            /* takes the mean off */
    int64_t parts, per_part; /* of the gradients: rows of a part */
};

static const bool centred = true, not_centred = false;

/* Has operand i one element for each of a row, in their order? */
static bool lies_over_row(struct cm_call *call, int i, const struct cm_shape *x, int axis)
{
    const struct cm_shape *p = &call->in[i]->shape;
    bool fits = p->rank <= x->rank && cm_shape_elements(p) == cm_shape_span(x, axis, x->rank);
    for (int d = 0; fits && d < p->rank; d++) {
        const int of_x = x->rank - p->rank + d;
        fits = p->dims[d] == (of_x < axis ? 1 : x->dims[of_x]);
    }
    return fits || cm_call_decline(call, "operand %d does not have one number for each column", i);
}

/* x and scale are operands number x_at and scale_at. */
static bool accepts_rows(struct cm_call *call, int x_at, int scale_at)
{
    const struct cm_shape *x = &call->in[x_at]->shape;
    int axis;
    if (!cm_norm_accepts_floats(call, x_at))
        return false;
    if (!cm_axis_fix(cm_node_int(call->node, "axis"), x->rank, &axis))
        return cm_call_decline(call, "the axis is out of range");
    for (int i = scale_at; i < call->n_in; i++)
        if (call->in[i] && !lies_over_row(call, i, x, axis))
            return false;
    return true;
}

static struct rows_plan *plan_rows(struct cm_call *call, int x_at)
{
    const struct cm_shape *x = &call->in[x_at]->shape;
    struct rows_plan *plan = cm_call_state(call, sizeof *plan);
    int axis = 0;
    cm_axis_fix(cm_node_int(call->node, "axis"), x->rank, &axis);
    plan->rows = cm_shape_span(x, 0, axis);
    plan->size = cm_shape_span(x, axis, x->rank);
    plan->epsilon = (double)cm_node_float(call->node, "epsilon");
    plan->centred = *(const bool *)call->arg;
    return plan;
}

enum { X, SCALE, BIAS };                         /* operands */
enum { Y, MEAN, INVERSE };                       /* results */
enum { G_DY, G_X, G_SCALE };                     /* operands of the gradients */
enum { G_DX, G_DSCALE, G_DBIAS, SUM_KINDS = 2 }; /* and their results */

static bool accepts_forward(struct cm_call *call)
{
    return accepts_rows(call, X, SCALE);
}

static enum cm_status prepare_forward(struct cm_call *call)
{
    plan_rows(call, X);
    return CM_OK;
}

static void normalize_rows(void *arg, int64_t begin, int64_t end)
{
    const struct cm_call *call = arg;
    const struct rows_plan *plan = call->state;
    const struct cm_tensor *bias = call->n_in > BIAS ? call->in[BIAS] : NULL;
    struct norm_row r = {
        .n = plan->size, .scale = call->in[SCALE]->data, .bias = bias ? bias->data : NULL};
    for (int64_t row = begin; row < end; row++) {
        r.x = (const float *)call->in[X]->data + row * plan->size;
        cm_norm_take_statistics(&r, plan->centred, plan->epsilon);
        if (call->out[Y]) {
            r.y = (float *)call->out[Y]->data + row * plan->size;
            cm_norm_write_row(&r);
        }
        if (call->n_out > MEAN && call->out[MEAN])
            ((float *)call->out[MEAN]->data)[row] = r.mean;
        if (call->n_out > INVERSE && call->out[INVERSE])
            ((float *)call->out[INVERSE]->data)[row] = r.inverse;
    }
}

static enum cm_status run_forward(struct cm_call *call)
{
    const struct rows_plan *plan = call->state;
    cm_parallel(plan->rows, 1 + NORM_PART_ELEMENTS / plan->size, normalize_rows, call);
    return CM_OK;
}

/* ---- Their gradients ---- */

static bool accepts_backward(struct cm_call *call)
{
    if (!cm_shape_equal(&call->in[G_X]->shape, &call->in[G_DY]->shape))
        return cm_call_decline(call, "dY and X differ in shape");
    return accepts_rows(call, G_X, G_SCALE);
}

/* Scratch of a part: sums of the gradients of scale and bias, of all rows, and of the last few. */
static enum cm_status prepare_backward(struct cm_call *call)
{
    struct rows_plan *plan = plan_rows(call, G_X);
    const size_t of_element = SUM_KINDS * (sizeof(double) + sizeof(float));
    int64_t parts = plan->rows / (1 + NORM_PART_ELEMENTS / plan->size);
    size_t bytes;
    parts = parts < SUM_ELEMENTS / plan->size ? parts : SUM_ELEMENTS / plan->size;
    parts = parts < MOST_PARTS ? parts : MOST_PARTS;
    plan->parts = parts > 1 ? parts : 1;
    plan->per_part = (plan->rows + plan->parts - 1) / plan->parts;
    if (!cm_size_mul((size_t)plan->size, (size_t)plan->parts * of_element, &bytes))
        return cm_call_fail(call, CM_LIMIT, "its axes are too long");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

static void fold(int64_t n, float *few, double *all)
{
    for (int64_t i = 0; i < n; i++) {
        all[i] += (double)few[i];
        few[i] = 0;
    }
}

static void turn_parts(void *arg, int64_t begin, int64_t end)
{
    const struct cm_call *call = arg;
    const struct rows_plan *plan = call->state;
    const int64_t sums = SUM_KINDS * plan->size;
    const double n = (double)plan->size;
    for (int64_t part = begin; part < end; part++) {
        double *all = (double *)call->scratch + part * sums;
        float *few = (float *)((double *)call->scratch + plan->parts * sums) + part * sums;
        const int64_t first = part * plan->per_part, next = first + plan->per_part;
        memset(all, 0, (size_t)sums * sizeof *all);
        memset(few, 0, (size_t)sums * sizeof *few);
        for (int64_t row = first; row < next && row < plan->rows; row++) {
            const int64_t from = row * plan->size;
            struct norm_row r = {.n = plan->size,
                                 .x = (const float *)call->in[G_X]->data + from,
                                 .dy = (const float *)call->in[G_DY]->data + from,
                                 .scale = call->in[G_SCALE]->data,
                                 .d_scale = few,
                                 .d_bias = few + plan->size};
            cm_norm_take_statistics(&r, plan->centred, plan->epsilon);
            cm_norm_sum_slopes(&r);
            r.dy_mean = plan->centred ? (float)(r.sums[0] / n) : 0;
            r.along = (float)(r.sums[1] / n);
            if (call->out[G_DX]) {
                r.y = (float *)call->out[G_DX]->data + from;
                cm_norm_write_slopes(&r);
            }
            if ((row - first) % FEW == FEW - 1)
                fold(sums, few, all);
        }
        fold(sums, few, all);
    }
}

static enum cm_status run_backward(struct cm_call *call)
{
    const struct rows_plan *plan = call->state;
    const int64_t sums = SUM_KINDS * plan->size;
    double *all = call->scratch;
    cm_parallel(plan->parts, 1, turn_parts, call);
    for (int64_t part = 1; part < plan->parts; part++)
        for (int64_t i = 0; i < sums; i++)
            all[i] += all[part * sums + i];
    for (int o = G_DSCALE; o < call->n_out; o++)
        for (int64_t i = 0; call->out[o] && i < plan->size; i++)
            ((float *)call->out[o]->data)[i] = (float)all[(o - G_DSCALE) * plan->size + i];
    return CM_OK;
}

#define FORWARD  .accepts = accepts_forward, .prepare = prepare_forward, .run = run_forward
#define BACKWARD .accepts = accepts_backward, .prepare = prepare_backward, .run = run_backward

CM_KERNEL(cpu, LayerNormalization, .label = "normalization by rows", FORWARD, .arg = &centred);
CM_KERNEL(cpu, RMSNormalization, .label = "normalization by rows", FORWARD, .arg = &not_centred);
CM_KERNEL_IN(cpu, "ai.cameo", LayerNormalizationGrad, .label = "normalization gradient by rows",
             BACKWARD, .arg = &centred);
CM_KERNEL_IN(cpu, "ai.cameo", RMSNormalizationGrad, .label = "normalization gradient by rows",
             BACKWARD, .arg = &not_centred);
