/* Normalizations of floats that lie side by side: LayerNormalization, RMSNormalization, their
 * gradients, GroupNormalization and InstanceNormalization.
 *
 * A row is what is normalized together. One pass takes its sums, relative to its first element (see
 * norm_batch.c), one writes it. Rows are shared out in parts that do not depend on the number of
 * threads; gradients by scale and bias are summed by part, and these sums added in order. */
// SPDX-License-Identifier: Apache-2.0
#include "base/machine.h"
#include "base/number.h"
#include "base/parallel.h"
#include "graph/op.h"

#include <math.h>

enum {
    LANES = 8,
    FEW = 32,                /* sums of so many in float, those in double */
    PART_ELEMENTS = 1 << 13, /* worth a thread */
    MOST_PARTS = 64,
    SUM_ELEMENTS = 1 << 19, /* that the sums of all parts may have */
};

typedef float floats __attribute__((vector_size(LANES * sizeof(float)), aligned(4)));

/* ---- Rows ---- */

/* One row of n elements. */
struct norm_row {
    int64_t n;
    const float *x, *dy;
    float *y;                  /* y or dx */
    const float *scale, *bias; /* of each element; bias may be NULL */
    float mean, inverse;
    float dy_mean, along; /* gradient: means of g = dy * scale, and of g * xhat */
    float *d_scale, *d_bias;
    double sums[2]; /* of x and x^2, less first; then of g and g * xhat */
    float first;
};

/* Pairs of vectors, which need not wait for each other. */
static CM_ALWAYS_INLINE void sum_row_on(enum cm_machine machine, struct norm_row *row)
{
    const struct norm_row r = *row; /* which no store changes */
    double sum = 0, squares = 0;
    int64_t i = 0;
    (void)machine;
    while (i + 2 * LANES <= r.n) {
        floats s[2] = {0}, q[2] = {0};
        for (int few = 0; few < FEW && i + 2 * LANES <= r.n; few++, i += 2 * LANES)
            for (int h = 0; h < 2; h++) {
                const floats v = *(const floats *)(r.x + i + h * LANES) - r.first;
                s[h] += v;
                q[h] += v * v;
            }
        for (int j = 0; j < LANES; j++) {
            sum += (double)(s[0][j] + s[1][j]);
            squares += (double)(q[0][j] + q[1][j]);
        }
    }
    row->sums[0] = sum;
    row->sums[1] = squares;
}

/* y = (x - mean) * inverse * scale + bias */
static CM_ALWAYS_INLINE void write_row_on(enum cm_machine machine, const struct norm_row *row)
{
    const struct norm_row r = *row; /* which no store changes */
    (void)machine;
    for (int64_t i = 0; i + LANES <= r.n; i += LANES) {
        const floats xhat = (*(const floats *)(r.x + i) - r.mean) * r.inverse;
        const floats y = xhat * *(const floats *)(r.scale + i);
        *(floats *)(r.y + i) = r.bias ? y + *(const floats *)(r.bias + i) : y;
    }
}

/* The same with one factor, in inverse, and one bias. */
static CM_ALWAYS_INLINE void write_plane_on(enum cm_machine machine, const struct norm_row *row)
{
    const struct norm_row r = *row; /* which no store changes */
    const float bias = *r.bias;
    int64_t i = 0;
    (void)machine;
    for (; i + LANES <= r.n; i += LANES)
        *(floats *)(r.y + i) = (*(const floats *)(r.x + i) - r.mean) * r.inverse + bias;
}

/* Sums of g = dy * scale and of g * xhat; what the row adds to the gradients of scale and bias. */
static CM_ALWAYS_INLINE void sum_slopes_on(enum cm_machine machine, struct norm_row *row)
{
    const struct norm_row r = *row; /* which no store changes */
    double sum = 0, along = 0;
    int64_t i = 0;
    (void)machine;
    while (i + LANES <= r.n) {
        floats s = {0}, a = {0};
        for (int few = 0; few < FEW && i + LANES <= r.n; few++, i += LANES) {
            const floats xhat = (*(const floats *)(r.x + i) - r.mean) * r.inverse;
            const floats dy = *(const floats *)(r.dy + i);
            const floats g = dy * *(const floats *)(r.scale + i);
            *(floats *)(r.d_scale + i) += dy * xhat;
            *(floats *)(r.d_bias + i) += dy;
            s += g;
            a += g * xhat;
        }
        for (int j = 0; j < LANES; j++) {
            sum += (double)s[j];
            along += (double)a[j];
        }
    }
    row->sums[0] = sum;
    row->sums[1] = along;
}

/* dx = inverse * (g - mean(g) - xhat * mean(g * xhat)) */
static CM_ALWAYS_INLINE void write_slopes_on(enum cm_machine machine, const struct norm_row *row)
{
    const struct norm_row r = *row; /* which no store changes */
    const float along = r.along * r.inverse;
    int64_t i = 0;
    (void)machine;
    for (; i + LANES <= r.n; i += LANES) {
        const floats off = *(const floats *)(r.x + i) - r.mean;
        const floats g = *(const floats *)(r.dy + i) * *(const floats *)(r.scale + i);
        *(floats *)(r.y + i) = r.inverse * (g - r.dy_mean - off * along);
    }
}

CM_BUILDS(sum_row, (struct norm_row * r), (machine, r))
CM_BUILDS(write_row, (const struct norm_row *r), (machine, r))
CM_BUILDS(write_plane, (const struct norm_row *r), (machine, r))
CM_BUILDS(sum_slopes, (struct norm_row * r), (machine, r))
CM_BUILDS(write_slopes, (const struct norm_row *r), (machine, r))

/* ---- Rows with their tails, which fill no vector ---- */

static int64_t whole(const struct norm_row *r, int64_t width)
{
    return r->n - r->n % width;
}

static void sum_row(struct norm_row *r)
{
    sum_row_builds[cm_this_machine()](r);
    for (int64_t i = whole(r, (int64_t)2 * LANES); i < r->n; i++) {
        const double v = (double)(r->x[i] - r->first);
        r->sums[0] += v;
        r->sums[1] += v * v;
    }
}

static void write_row(const struct norm_row *r)
{
    write_row_builds[cm_this_machine()](r);
    for (int64_t i = whole(r, LANES); i < r->n; i++)
        r->y[i] = (r->x[i] - r->mean) * r->inverse * r->scale[i] + (r->bias ? r->bias[i] : 0);
}

static void write_plane(const struct norm_row *r)
{
    write_plane_builds[cm_this_machine()](r);
    for (int64_t i = whole(r, LANES); i < r->n; i++)
        r->y[i] = (r->x[i] - r->mean) * r->inverse + *r->bias;
}

static void sum_slopes(struct norm_row *r)
{
    sum_slopes_builds[cm_this_machine()](r);
    for (int64_t i = whole(r, LANES); i < r->n; i++) {
        const float xhat = (r->x[i] - r->mean) * r->inverse, g = r->dy[i] * r->scale[i];
        r->d_scale[i] += r->dy[i] * xhat;
        r->d_bias[i] += r->dy[i];
        r->sums[0] += (double)g;
        r->sums[1] += (double)g * (double)xhat;
    }
}

static void write_slopes(const struct norm_row *r)
{
    write_slopes_builds[cm_this_machine()](r);
    for (int64_t i = whole(r, LANES); i < r->n; i++) {
        const float xhat = (r->x[i] - r->mean) * r->inverse;
        r->y[i] = r->inverse * (r->dy[i] * r->scale[i] - r->dy_mean - xhat * r->along);
    }
}

/* Mean and deviation of the row at r->x; without a mean, that of its squares. */
static void take_statistics(struct norm_row *r, bool centred, double epsilon)
{
    const double n = (double)r->n;
    r->first = centred && isfinite(r->x[0]) ? r->x[0] : 0;
    sum_row(r);
    const double off = centred ? r->sums[0] / n : 0, spread = r->sums[1] / n - off * off;
    r->mean = (float)((double)r->first + off);
    r->inverse = (float)(1 / sqrt((spread < 0 ? 0 : spread) + epsilon));
}

/* ---- LayerNormalization and RMSNormalization ---- */

/* Both operators and their gradients. */
struct rows_plan {
    int64_t rows, size;
    double epsilon;
    bool centred;            /* takes the mean off */
    int64_t parts, per_part; /* of the gradients: rows of a part */
};

static bool is_centred(const struct cm_node *node)
{
    return cm_str_is(node->op_type, "LayerNormalization") ||
           cm_str_is(node->op_type, "LayerNormalizationGrad");
}

static bool accepts_floats(struct cm_call *call)
{
    for (int i = 0; i < call->n_in; i++)
        if (call->in[i] && call->in[i]->type != CM_FLOAT)
            return cm_call_decline(call, "input %d is %s", i, cm_dtype_name(call->in[i]->type));
    for (int o = 0; o < call->n_out; o++)
        if (call->out[o] && call->out[o]->type != CM_FLOAT)
            return cm_call_decline(call, "output %d is %s", o, cm_dtype_name(call->out[o]->type));
    return true;
}

/* Has operand i one element for each of a row, in their order? */
static bool lies_over_row(struct cm_call *call, int i, const struct cm_shape *x, int axis)
{
    const struct cm_shape *p = &call->in[i]->shape;
    bool fits = p->rank <= x->rank && cm_shape_elements(p) == cm_shape_span(x, axis, x->rank);
    for (int d = 0; fits && d < p->rank; d++) {
        const int of_x = x->rank - p->rank + d;
        fits = p->dims[d] == (of_x < axis ? 1 : x->dims[of_x]);
    }
    return fits || cm_call_decline(call, "input %d does not lie over each row once", i);
}

/* x and scale are operands number x_at and scale_at. */
static bool accepts_rows(struct cm_call *call, int x_at, int scale_at)
{
    const struct cm_shape *x = &call->in[x_at]->shape;
    int axis;
    if (!accepts_floats(call))
        return false;
    if (!cm_axis_fix(cm_node_int(call->node, "axis"), x->rank, &axis))
        return cm_call_decline(call, "its axis is out of range");
    if (cm_shape_elements(x) == 0)
        return cm_call_decline(call, "it is empty");
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
    plan->centred = is_centred(call->node);
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
        take_statistics(&r, plan->centred, plan->epsilon);
        if (call->out[Y]) {
            r.y = (float *)call->out[Y]->data + row * plan->size;
            write_row(&r);
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
    cm_parallel(plan->rows, 1 + PART_ELEMENTS / plan->size, normalize_rows, call);
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
    int64_t parts = plan->rows / (1 + PART_ELEMENTS / plan->size);
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
            take_statistics(&r, plan->centred, plan->epsilon);
            sum_slopes(&r);
            r.dy_mean = plan->centred ? (float)(r.sums[0] / n) : 0;
            r.along = (float)(r.sums[1] / n);
            if (call->out[G_DX]) {
                r.y = (float *)call->out[G_DX]->data + from;
                write_slopes(&r);
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

CM_KERNEL(cpu, LayerNormalization, FORWARD);
CM_KERNEL(cpu, RMSNormalization, FORWARD);
CM_KERNEL_IN(cpu, "ai.cameo", LayerNormalizationGrad, BACKWARD);
CM_KERNEL_IN(cpu, "ai.cameo", RMSNormalizationGrad, BACKWARD);

/* ---- GroupNormalization and InstanceNormalization: a row is some channels of an image ---- */

struct groups_plan {
    int64_t rows, channels, per_group, area;
    double epsilon;
};

static bool accepts_groups(struct cm_call *call)
{
    if (!accepts_floats(call))
        return false;
    if (cm_tensor_count(call->in[X]) == 0)
        return cm_call_decline(call, "it is empty");
    return true;
}

static enum cm_status prepare_groups(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[X]->shape;
    struct groups_plan *plan = cm_call_state(call, sizeof *plan);
    const int64_t groups = cm_node_has_attr(call->node, "num_groups")
                               ? cm_node_int(call->node, "num_groups")
                               : x->dims[1];
    *plan = (struct groups_plan){.rows = x->dims[0] * groups,
                                 .channels = x->dims[1],
                                 .per_group = x->dims[1] / groups,
                                 .area = cm_shape_span(x, 2, x->rank),
                                 .epsilon = (double)cm_node_float(call->node, "epsilon")};
    return CM_OK;
}

static void normalize_groups(void *arg, int64_t begin, int64_t end)
{
    const struct cm_call *call = arg;
    const struct groups_plan *plan = call->state;
    const float *scale = call->in[SCALE]->data, *bias = call->in[BIAS]->data;
    for (int64_t row = begin; row < end; row++) {
        const int64_t first = row * plan->per_group; /* plane */
        struct norm_row r = {.n = plan->per_group * plan->area,
                             .x = (const float *)call->in[X]->data + first * plan->area};
        take_statistics(&r, true, plan->epsilon);
        const float inverse = r.inverse;
        r.n = plan->area;
        for (int64_t plane = first; plane < first + plan->per_group; plane++) {
            const int64_t c = plane % plan->channels;
            r.x = (const float *)call->in[X]->data + plane * plan->area;
            r.y = (float *)call->out[Y]->data + plane * plan->area;
            r.inverse = inverse * scale[c];
            r.bias = bias + c;
            write_plane(&r);
        }
    }
}

static enum cm_status run_groups(struct cm_call *call)
{
    const struct groups_plan *plan = call->state;
    cm_parallel(plan->rows, 1 + PART_ELEMENTS / (plan->per_group * plan->area), normalize_groups,
                call);
    return CM_OK;
}

#define GROUPS .accepts = accepts_groups, .prepare = prepare_groups, .run = run_groups

CM_KERNEL(cpu, InstanceNormalization, GROUPS);
CM_KERNEL(cpu, GroupNormalization, GROUPS);
