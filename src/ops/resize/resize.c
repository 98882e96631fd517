/* Resize: elements moved when the nearest is taken, weighted sums of neighbours otherwise, one axis
 * after the other. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "base/parallel.h"
#include "ops/common/move.h"
#include "ops/common/reals.h"
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
    memcpy(dims, x->dims, (size_t)x->rank * sizeof dims[0]);
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

enum {
    MOST_PARTS = 16,
    WORTH_A_THREAD = 1 << 14, /* elements of the result */
};

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

/* ---- nearest: every element of the output is one of the input ---- */

/* to[i] = from[index[i]], or what is extrapolated. */
#define GATHER_ROW(Name, ctype)                                                                    \
    static void Name(int64_t count, const void *from, const int64_t *index, void *to,              \
                     const void *fill)                                                             \
    {                                                                                              \
        const ctype *xs = from, other = *(const ctype *)fill;                                      \
        ctype *ys = to;                                                                            \
        for (int64_t i = 0; i < count; i++)                                                        \
            ys[i] = index[i] < 0 ? other : xs[index[i]];                                           \
    }
struct wide {
    uint64_t half[2];
};
GATHER_ROW(gather_1, uint8_t)
GATHER_ROW(gather_2, uint16_t)
GATHER_ROW(gather_4, uint32_t)
GATHER_ROW(gather_8, uint64_t)
GATHER_ROW(gather_16, struct wide)

static void gather(size_t width, int64_t count, const void *from, const int64_t *index, void *to,
                   const void *fill)
{
    switch (width) {
    case 1:
        gather_1(count, from, index, to, fill);
        break;
    case 2:
        gather_2(count, from, index, to, fill);
        break;
    case 4:
        gather_4(count, from, index, to, fill);
        break;
    case 8:
        gather_8(count, from, index, to, fill);
        break;
    default:
        gather_16(count, from, index, to, fill);
    }
}

/* One element holding the extrapolation value; strings are empty. */
static void make_fill(enum cm_dtype type, double value, void *fill)
{
    memset(fill, 0, 2 * sizeof(double));
    if (type == CM_COMPLEX64 || type == CM_COMPLEX128)
        cm_reals_store(type == CM_COMPLEX64 ? CM_FLOAT : CM_DOUBLE, fill, 0, 1, &value);
    else if (type != CM_STRING)
        cm_reals_store(type, fill, 0, 1, &value);
}

static void nearest_tables(const struct plan *plan, const struct cm_resize_axis *axes, int rank,
                           int64_t *memory, int64_t **index)
{
    for (int i = plan->first; i < rank; i++) {
        index[i] = memory;
        memory += axes[i].out;
        for (int64_t o = 0; o < axes[i].out; o++)
            index[i][o] = axes[i].identity ? o : cm_resize_nearest(&plan->resize, &axes[i], o);
    }
}

struct nearest_run {
    const struct plan *plan;
    const struct cm_tensor *x, *y;
    int64_t *index[CM_MAX_RANK], strides[CM_MAX_RANK];
    int64_t rows; /* of a plane of the result, along the last axis */
    size_t width;
    double fill[2];
};

/* Where row number `row` of the result begins in x, counted in elements; -1: it is extrapolated. */
static int64_t row_begin(const struct nearest_run *run, int64_t row)
{
    const struct cm_shape *x = &run->x->shape, *y = &run->y->shape;
    const int first = run->plan->first;
    int64_t begin = row / run->rows * cm_shape_span(x, first, x->rank);
    int64_t left = row % run->rows;
    for (int i = x->rank - 2; i >= first; i--) {
        const int64_t at = run->index[i][left % y->dims[i]];
        left /= y->dims[i];
        if (at < 0)
            return -1;
        begin += at * run->strides[i];
    }
    return begin;
}

/* Rows that begin at the same place are copied. */
static void nearest_rows(void *arg, int64_t first, int64_t end)
{
    const struct nearest_run *run = arg;
    const int last = run->x->shape.rank - 1;
    const int64_t length = run->y->shape.dims[last];
    const size_t bytes = (size_t)length * run->width;
    char *to = (char *)run->y->data + (size_t)first * bytes;
    int64_t before = -1;
    for (int64_t row = first; row < end; row++, to += bytes) {
        const int64_t begin = row_begin(run, row);
        if (begin >= 0 && begin == before)
            memcpy(to, to - bytes, bytes);
        else if (begin >= 0)
            gather(run->width, length, (const char *)run->x->data + (size_t)begin * run->width,
                   run->index[last], to, run->fill);
        for (int64_t o = 0; begin < 0 && o < length; o++)
            memcpy(to + (size_t)o * run->width, run->fill, run->width);
        before = begin;
    }
}

static enum cm_status run_nearest(struct cm_call *call, const struct cm_resize_axis *axes)
{
    const struct plan *plan = call->state;
    const struct cm_tensor *x = call->in[X];
    struct cm_tensor *y = call->out[0];
    const int rank = x->shape.rank;
    struct nearest_run run = {.plan = plan,
                              .x = x,
                              .y = y,
                              .rows = cm_shape_span(&y->shape, plan->first, rank - 1),
                              .width = cm_dtype_size(x->type)};
    const int64_t planes = cm_shape_span(&x->shape, 0, plan->first);

    make_fill(x->type, plan->resize.extrapolation, run.fill);
    nearest_tables(plan, axes, rank, call->scratch, run.index);
    cm_shape_strides(&x->shape, run.strides);
    cm_parallel(planes * run.rows, 1 + WORTH_A_THREAD / y->shape.dims[rank - 1], nearest_rows,
                &run);
    return cm_move_hold(y, x, call->err);
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
    const bool alone = cm_tensor_count(run.y) < WORTH_A_THREAD;
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
    return plan->resize.mode == CM_RESIZE_NEAREST ? run_nearest(call, axes)
                                                  : run_smooth(call, axes);
}

CM_OP(Resize, .infer = resize_infer, .prepare = resize_prepare, .run = resize_run,
      .grad = cm_resize_grad);
