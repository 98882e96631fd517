/* Resize: elements moved when the nearest is taken, weighted sums of neighbours otherwise, one axis
 * after the other. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "base/parallel.h"
#include "ops/common/move.h"
#include "ops/common/reals.h"
#include "ops/resize/nearest.h"
#include "ops/resize/resize_grad.h"

#include <math.h>

enum { X, ROI, SCALES, SIZES };

/* A list of unknown length may turn out to be empty, which is as good as absent. */
static bool present(const struct cm_type *list)
{
    return list && !(list->rank == 1 && list->dims[0].value == 0);
}

static bool surely_present(const struct cm_type *list)
{
    return list && list->rank == 1 && list->dims[0].value > 0;
}

/* Sizes that follow from partial knowledge: each axis by itself. */
static enum cm_status infer_axis(struct cm_infer *in, const struct cm_resize *resize, int i,
                                 const struct cm_tensor *scales, const struct cm_known *sizes,
                                 struct cm_dim *dim)
{
    if (scales && i < cm_tensor_count(scales)) {
        const double scale = cm_tensor_real(scales, i);
        int64_t length;
        if (scale == 1)
            return CM_OK;
        const struct cm_dim was = *dim;
        *dim = CM_DIM_ANY;
        if (!cm_dim_known(was))
            return CM_OK;
        CM_TRY(cm_resize_length(was.value, scale, &length, in->err));
        *dim = CM_DIM(length);
        return CM_OK;
    }
    *dim = CM_DIM_ANY;
    if (sizes && resize->policy == CM_RESIZE_STRETCH && (size_t)i < sizes->count)
        *dim = cm_quantity_dim(sizes->items[i]);
    return CM_OK;
}

static enum cm_status infer_partly(struct cm_infer *in, const struct cm_resize *resize,
                                   const struct cm_type *x)
{
    const struct cm_tensor *scales =
        present(cm_infer_type(in, SCALES)) ? cm_infer_constant(in, SCALES) : NULL;
    struct cm_known sizes;
    const bool known = present(cm_infer_type(in, SIZES)) && cm_infer_known(in, SIZES, &sizes);
    struct cm_dim dims[CM_MAX_RANK];
    cm_type_copy_dims(dims, x);
    for (int i = 0; i < resize->n_axes; i++)
        CM_TRY(infer_axis(in, resize, i, scales, known ? &sizes : NULL, &dims[resize->axes[i]]));
    return cm_infer_set_tensor(in, 0, x->dtype, x->rank, dims);
}

/* A constant operand that decides about sizes: present and known, or absent. */
static bool settled(struct cm_infer *in, int i, const struct cm_tensor **out)
{
    *out = cm_infer_constant(in, i);
    return *out || !present(cm_infer_type(in, i));
}

static enum cm_status resize_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, X);
    const struct cm_tensor *roi, *scales, *sizes;
    struct cm_resize resize;
    struct cm_resize_axis axes[CM_MAX_RANK];
    struct cm_shape shape;
    struct cm_dim dims[CM_MAX_RANK];

    for (int i = ROI; i <= SIZES; i++) {
        const struct cm_type *list = cm_infer_type(in, i);
        if (list && list->rank > 1)
            return cm_infer_fail(in, "input %d has rank %d, needs 1", i, list->rank);
    }
    if (surely_present(cm_infer_type(in, SCALES)) && surely_present(cm_infer_type(in, SIZES)))
        return cm_infer_fail(in, "needs either scales or sizes, has both");
    if (x->rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, x->dtype, CM_RANK_UNKNOWN, NULL);
    CM_TRY(cm_resize_read(in->node, x->rank, &resize, in->err));
    const bool known =
        settled(in, ROI, &roi) && settled(in, SCALES, &scales) && settled(in, SIZES, &sizes);
    if (!known || !cm_type_shape(x, &shape))
        return infer_partly(in, &resize, x);
    CM_TRY(cm_resize_axes(&resize, &shape, roi, scales, sizes, axes, in->err));
    for (int i = 0; i < x->rank; i++)
        dims[i] = CM_DIM(axes[i].out);
    return cm_infer_set_tensor(in, 0, x->dtype, x->rank, dims);
}

struct plan {
    struct cm_resize resize;
    int first;      /* axes before it are left alone, so planes from it on are done one by one */
    int lanes;      /* reals that an element is made of */
    int64_t buffer; /* reals of a plane, at any stage */
    int64_t parts;  /* of the planes, each with buffers of its own */
};

enum { MOST_PARTS = 16 };

/* The taps of one axis, in scratch memory. */
struct table {
    int64_t *index; /* -1 as the first tap: extrapolated */
    double *weight;
    int64_t taps;
};

static const struct cm_tensor *operand(const struct cm_call *call, int i)
{
    return i < call->n_in ? call->in[i] : NULL;
}

static enum cm_status read_axes(struct cm_call *call, const struct cm_resize *resize,
                                struct cm_resize_axis *axes)
{
    return cm_resize_axes(resize, &call->in[X]->shape, operand(call, ROI), operand(call, SCALES),
                          operand(call, SIZES), axes, call->err);
}

static bool have_data(const struct cm_call *call)
{
    for (int i = ROI; i <= SIZES; i++)
        if (operand(call, i) && !operand(call, i)->data && cm_tensor_count(operand(call, i)) > 0)
            return false;
    return true;
}

/* Axes when the operands are not there yet: the scale is at least about what the sizes say, since
 * lengths are rounded down, or to the nearest. */
static void guess_axes(const struct cm_call *call, struct cm_resize_axis *axes)
{
    const struct cm_shape *x = &call->in[X]->shape, *y = &call->out[0]->shape;
    for (int i = 0; i < x->rank; i++) {
        const double out = (double)y->dims[i] - 0.5;
        axes[i] = (struct cm_resize_axis){.in = x->dims[i],
                                          .out = y->dims[i],
                                          .scale = x->dims[i] ? out / (double)x->dims[i] : 1};
    }
}

static bool add_product(size_t *sum, int64_t a, int64_t b, size_t c)
{
    size_t product;
    return cm_size_mul((size_t)a, (size_t)b, &product) && cm_size_mul(product, c, &product) &&
           cm_size_add(*sum, product, sum);
}

/* Bytes of tables and buffers. */
static bool measure(const struct cm_call *call, struct plan *plan,
                    const struct cm_resize_axis *axes, size_t *bytes)
{
    const int rank = call->in[X]->shape.rank;
    const bool nearest = plan->resize.mode == CM_RESIZE_NEAREST;
    *bytes = 0;
    for (plan->first = 0; plan->first < rank && axes[plan->first].identity;)
        plan->first++;
    plan->buffer = plan->lanes;
    for (int i = plan->first; i < rank; i++) {
        const int64_t taps = nearest ? 1 : cm_resize_tap_count(&plan->resize, axes[i].scale) + 2;
        const int64_t most = axes[i].in > axes[i].out ? axes[i].in : axes[i].out;
        if (!add_product(bytes, axes[i].out, taps, sizeof(int64_t) + sizeof(double)) ||
            !cm_dim_mul(plan->buffer, most, &plan->buffer))
            return false;
    }
    plan->parts = cm_shape_span(&call->in[X]->shape, 0, plan->first);
    plan->parts = plan->parts < MOST_PARTS ? plan->parts : MOST_PARTS;
    return nearest || (add_product(bytes, plan->buffer, 2 * plan->parts, sizeof(double)));
}

static enum cm_status resize_prepare(struct cm_call *call)
{
    struct plan *plan = cm_call_state(call, sizeof *plan);
    const struct cm_tensor *x = call->in[X];
    const bool complex = cm_dtype_info(x->type)->kind == CM_CLASS_COMPLEX;
    struct cm_resize_axis axes[CM_MAX_RANK];
    size_t bytes;

    CM_TRY(cm_resize_read(call->node, x->shape.rank, &plan->resize, call->err));
    if (plan->resize.mode != CM_RESIZE_NEAREST && !complex && !cm_reals_have(x->type))
        return cm_call_fail(call, CM_UNSUPPORTED, "elements of type %s cannot be interpolated",
                            cm_dtype_name(x->type));
    plan->lanes = complex ? 2 : 1;
    if (cm_tensor_count(call->out[0]) == 0)
        return CM_OK;
    if (have_data(call))
        CM_TRY(read_axes(call, &plan->resize, axes));
    else
        guess_axes(call, axes);
    if (!measure(call, plan, axes, &bytes))
        return cm_call_fail(call, CM_LIMIT, "its intermediate sizes overflow");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

/* ---- linear and cubic: sums over taps, axis by axis ---- */

static double *smooth_tables(const struct plan *plan, const struct cm_resize_axis *axes, int rank,
                             void *memory, struct table *tables)
{
    double *next = memory;
    for (int i = plan->first; i < rank; i++) {
        struct table *table = &tables[i];
        if (axes[i].identity)
            continue;
        table->taps = cm_resize_tap_count(&plan->resize, axes[i].scale);
        table->weight = next;
        table->index = (int64_t *)(void *)(next + axes[i].out * table->taps);
        next += 2 * axes[i].out * table->taps;
        for (int64_t o = 0; o < axes[i].out; o++)
            if (!cm_resize_taps(&plan->resize, &axes[i], o, table->index + o * table->taps,
                                table->weight + o * table->taps))
                table->index[o * table->taps] = -1;
    }
    return next;
}

/* One row of `inner` reals from the taps' rows. */
static void weigh(const struct table *table, int64_t o, int64_t inner, const double *from,
                  double *to)
{
    const int64_t *index = table->index + o * table->taps;
    const double *weight = table->weight + o * table->taps;
    if (inner == 1) {
        double sum = 0;
        for (int64_t t = 0; t < table->taps; t++)
            sum += weight[t] * from[index[t]];
        *to = sum;
        return;
    }
    if (table->taps == 2) { /* in one pass, with the same bits */
        const double v = weight[0], w = weight[1];
        const double *a = from + index[0] * inner, *b = from + index[1] * inner;
        for (int64_t i = 0; i < inner; i++)
            to[i] = 0 + v * a[i] + w * b[i];
        return;
    }
    for (int64_t i = 0; i < inner; i++)
        to[i] = 0;
    for (int64_t t = 0; t < table->taps; t++) {
        const double w = weight[t], *row = from + index[t] * inner;
        for (int64_t i = 0; i < inner; i++)
            to[i] += w * row[i];
    }
}

/* Pairs of neighbours along the last axis: what linear images are made of. */
static void weigh_pairs(const struct table *table, int64_t count, double extrapolation,
                        const double *from, double *to)
{
    const int64_t *index = table->index;
    const double *weight = table->weight;
    for (int64_t o = 0; o < count; o++, index += 2, weight += 2)
        to[o] =
            index[0] < 0 ? extrapolation : weight[0] * from[index[0]] + weight[1] * from[index[1]];
}

static void smooth_axis(const struct cm_resize_axis *axis, const struct table *table, int64_t outer,
                        int64_t inner, double extrapolation, const double *from, double *to)
{
    if (inner == 1 && table->taps == 2) {
        for (int64_t r = 0; r < outer; r++)
            weigh_pairs(table, axis->out, extrapolation, from + r * axis->in, to + r * axis->out);
        return;
    }
    for (int64_t r = 0; r < outer; r++, from += axis->in * inner)
        for (int64_t o = 0; o < axis->out; o++, to += inner) {
            if (table->index[o * table->taps] >= 0)
                weigh(table, o, inner, from, to);
            else
                for (int64_t i = 0; i < inner; i++)
                    to[i] = extrapolation;
        }
}

struct smooth_run {
    const struct plan *plan;
    const struct cm_resize_axis *axes;
    const struct cm_tensor *x, *y;
    enum cm_dtype type;
    bool grows; /* axes become longer: the last one first, while there are few rows */
    struct table tables[CM_MAX_RANK];
    double *buffers; /* of the first part */
};

static void smooth_plane(const struct smooth_run *run, int64_t plane, double *from, double *to)
{
    const struct cm_shape *x = &run->x->shape, *y = &run->y->shape;
    const int rank = x->rank, first = run->plan->first, lanes = run->plan->lanes;
    const int64_t in = cm_shape_span(x, first, rank) * lanes;
    const int64_t out = cm_shape_span(y, first, rank) * lanes;

    cm_reals_load(run->type, run->x->data, plane * in, in, from);
    for (int k = first; k < rank; k++) {
        const int i = run->grows ? first + rank - 1 - k : k;
        if (run->axes[i].identity)
            continue;
        smooth_axis(&run->axes[i], &run->tables[i], cm_shape_span(run->grows ? x : y, first, i),
                    cm_shape_span(run->grows ? y : x, i + 1, rank) * lanes,
                    run->plan->resize.extrapolation, from, to);
        double *const done = to;
        to = from;
        from = done;
    }
    cm_reals_store(run->type, run->y->data, plane * out, out, from);
}

static void smooth_parts(void *arg, int64_t begin, int64_t end)
{
    const struct smooth_run *run = arg;
    const struct plan *plan = run->plan;
    const int64_t planes = cm_shape_span(&run->x->shape, 0, plan->first);
    for (int64_t part = begin; part < end; part++) {
        double *buffer = run->buffers + 2 * part * plan->buffer;
        for (int64_t p = planes * part / plan->parts; p < planes * (part + 1) / plan->parts; p++)
            smooth_plane(run, p, buffer, buffer + plan->buffer);
    }
}

static enum cm_status run_smooth(struct cm_call *call, const struct cm_resize_axis *axes)
{
    const struct plan *plan = call->state;
    const struct cm_tensor *x = call->in[X];
    struct smooth_run run = {.plan = plan,
                             .axes = axes,
                             .x = x,
                             .y = call->out[0],
                             .type = x->type == CM_COMPLEX64    ? CM_FLOAT
                                     : x->type == CM_COMPLEX128 ? CM_DOUBLE
                                                                : x->type,
                             .grows = true};

    for (int i = plan->first; i < x->shape.rank; i++)
        run.grows = run.grows && axes[i].out >= axes[i].in;
    run.buffers = smooth_tables(plan, axes, x->shape.rank, call->scratch, run.tables);
    const bool alone = cm_tensor_count(run.y) < CM_RESIZE_GRAIN;
    cm_parallel(plan->parts, alone ? plan->parts : 1, smooth_parts, &run);
    return CM_OK;
}

static enum cm_status resize_run(struct cm_call *call)
{
    const struct plan *plan = call->state;
    const int rank = call->in[X]->shape.rank;
    struct cm_resize_axis axes[CM_MAX_RANK];
    bool identity = true;

    if (cm_tensor_count(call->out[0]) == 0)
        return CM_OK;
    CM_TRY(read_axes(call, &plan->resize, axes));
    for (int i = 0; i < rank; i++) {
        identity = identity && axes[i].identity;
        if (axes[i].out != call->out[0]->shape.dims[i])
            return cm_call_fail(call, CM_BAD_ARGUMENT, "axis %d becomes %lld long, not %lld", i,
                                (long long)axes[i].out, (long long)call->out[0]->shape.dims[i]);
    }
    if (identity)
        return cm_run_copy(call);
    return plan->resize.mode == CM_RESIZE_NEAREST
               ? cm_resize_run_nearest(call, &plan->resize, axes, plan->first)
               : run_smooth(call, axes);
}

CM_OP(Resize, .infer = resize_infer, .prepare = resize_prepare, .run = resize_run,
      .grad = cm_resize_grad);
