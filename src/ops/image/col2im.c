/* Col2Im: columns of windows added back to the image they were cut from. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "graph/op.h"
#include "ops/common/move.h"
#include "tensor/element_types.h"
#include "tensor/half.h"

#include <complex.h>

enum { COLUMNS, IMAGE, KERNEL };

/* Windows over an image of several axes. */
struct windows {
    int rank;
    int64_t image[CM_MAX_RANK], kernel[CM_MAX_RANK], stride[CM_MAX_RANK], dilation[CM_MAX_RANK];
    int64_t pad[CM_MAX_RANK], count[CM_MAX_RANK];
    int64_t taps, columns, area;
};

static const int64_t small = INT64_C(1) << 40; /* so that sums and products of a few fit */

static int64_t listed(struct cm_int64s list, int i, int64_t otherwise)
{
    return list.count ? list.items[i] : otherwise;
}

/* Numbers along one axis, checked. */
static enum cm_status read_axis(const struct cm_node *node, int i, struct windows *w,
                                struct cm_error *err)
{
    const struct cm_int64s pads = cm_node_ints(node, "pads");
    const int64_t before = listed(pads, i, 0), after = listed(pads, i + w->rank, 0);
    int64_t span;
    w->stride[i] = listed(cm_node_ints(node, "strides"), i, 1);
    w->dilation[i] = listed(cm_node_ints(node, "dilations"), i, 1);
    w->pad[i] = before;
    if (w->image[i] < 1 || w->image[i] > small || w->kernel[i] < 1 || w->kernel[i] > small ||
        w->stride[i] < 1 || w->stride[i] > small || w->dilation[i] < 1 || before < 0 ||
        before > small || after < 0 || after > small)
        return cm_fail(err, CM_BAD_ARGUMENT, "its sizes along axis %d are out of range", i);
    if (!cm_dim_mul(w->dilation[i], w->kernel[i] - 1, &span) ||
        span >= w->image[i] + before + after)
        return cm_fail(err, CM_BAD_ARGUMENT, "no window fits along axis %d", i);
    w->count[i] = (w->image[i] + before + after - span - 1) / w->stride[i] + 1;
    if (!cm_dim_mul(w->taps, w->kernel[i], &w->taps) ||
        !cm_dim_mul(w->columns, w->count[i], &w->columns) ||
        !cm_dim_mul(w->area, w->image[i], &w->area))
        return cm_fail(err, CM_LIMIT, "its sizes are too large");
    return CM_OK;
}

static enum cm_status check_lists(const struct cm_node *node, int rank, struct cm_error *err)
{
    static const struct {
        const char *name;
        int times;
    } lists[] = {{"strides", 1}, {"dilations", 1}, {"pads", 2}};

    for (size_t i = 0; i < CM_COUNT(lists); i++) {
        const size_t count = cm_node_ints(node, lists[i].name).count;
        if (count && count != (size_t)(rank * lists[i].times))
            return cm_fail(err, CM_BAD_MODEL, "%s has %zu numbers, needs %d", lists[i].name, count,
                           rank * lists[i].times);
    }
    return CM_OK;
}

static enum cm_status read_windows(const struct cm_node *node, const struct cm_tensor *image,
                                   const struct cm_tensor *kernel, struct windows *w,
                                   struct cm_error *err)
{
    const int64_t rank = cm_tensor_count(image);
    *w = (struct windows){.taps = 1, .columns = 1, .area = 1};
    if (rank < 1 || rank > CM_MAX_RANK - 2 || cm_tensor_count(kernel) != rank)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "image_shape and block_shape have different lengths, or too many axes");
    w->rank = (int)rank;
    CM_TRY(check_lists(node, w->rank, err));
    for (int i = 0; i < w->rank; i++) {
        w->image[i] = cm_tensor_int(image, i);
        w->kernel[i] = cm_tensor_int(kernel, i);
        CM_TRY(read_axis(node, i, w, err));
    }
    return CM_OK;
}

static enum cm_status col2im_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, COLUMNS);
    const struct cm_tensor *image = cm_infer_constant(in, IMAGE);
    const struct cm_tensor *kernel = cm_infer_constant(in, KERNEL);
    struct cm_dim dims[CM_MAX_RANK];
    struct cm_known known;
    int rank = CM_RANK_UNKNOWN;
    CM_TRY(cm_infer_rank(in, COLUMNS, 3, 3));
    if (cm_infer_known(in, IMAGE, &known) && known.count <= CM_MAX_RANK - 2) {
        rank = (int)known.count + 2;
        for (size_t i = 0; i < known.count; i++)
            dims[i + 2] = cm_quantity_dim(known.items[i]);
    }
    dims[0] = x->rank == 3 ? x->dims[0] : CM_DIM_ANY;
    dims[1] = CM_DIM_ANY;
    if (image && kernel) {
        struct windows w;
        CM_TRY(read_windows(in->node, image, kernel, &w, in->err));
        if (x->rank == 3 && cm_dim_known(x->dims[1])) {
            if (x->dims[1].value % w.taps != 0)
                return cm_infer_fail(in, "axis 1 has %lld, which windows of %lld do not divide",
                                     (long long)x->dims[1].value, (long long)w.taps);
            dims[1] = CM_DIM(x->dims[1].value / w.taps);
        }
        if (x->rank == 3 && cm_dim_known(x->dims[2]) && x->dims[2].value != w.columns)
            return cm_infer_fail(in, "there are %lld columns, the image has %lld windows",
                                 (long long)x->dims[2].value, (long long)w.columns);
    }
    return cm_infer_set_tensor(in, 0, x->dtype, rank, dims);
}

/* Narrow floats are summed as floats: an image and a row of windows of those. */
static enum cm_status col2im_prepare(struct cm_call *call)
{
    const struct cm_shape *y = &call->out[0]->shape;
    size_t image, row;
    if (!cm_dtype_is_narrow(call->in[COLUMNS]->type))
        return CM_OK;
    if (!cm_dtype_bytes(CM_FLOAT, cm_shape_span(y, 2, y->rank), &image) ||
        !cm_dtype_bytes(CM_FLOAT, call->in[COLUMNS]->shape.dims[2], &row) ||
        !cm_size_add(image, row, &image))
        return cm_call_fail(call, CM_LIMIT, "its image is too large");
    cm_call_scratch(call, image);
    return CM_OK;
}

/* to[i * step] += from[i] */
typedef void add_fn(int64_t count, const void *from, int64_t at, void *to, int64_t to_at,
                    int64_t step);
#define ADD_PARAMETERS                                                                             \
    int64_t count, const void *from, int64_t at, void *to, int64_t to_at, int64_t step
#define ADD_LOOP(name, TAG, ctype, expression)                                                     \
    static void name##_##TAG(ADD_PARAMETERS)                                                       \
    {                                                                                              \
        ctype *ys = (ctype *)to + to_at;                                                           \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const ctype a = ys[i * step], b = ((const ctype *)from)[at + i];                       \
            ys[i * step] = (ctype)(expression);                                                    \
        }                                                                                          \
    }
#define ADD_PLAIN(TAG, ctype, name, extra) ADD_LOOP(name, TAG, ctype, a + b)
#define ADD_WRAP(TAG, ctype, name, extra)  ADD_LOOP(name, TAG, ctype, (uint64_t)a + (uint64_t)b)
CM_FLOAT_TYPES(ADD_PLAIN, add, ())
CM_INTEGER_TYPES(ADD_WRAP, add, ())
ADD_LOOP(add, COMPLEX64, float complex, a + b)
ADD_LOOP(add, COMPLEX128, double complex, a + b)
ADD_LOOP(add, BOOL, uint8_t, (a | b) != 0)
static add_fn *const adds[CM_DTYPE_COUNT] = {
    CM_NUMBER_TYPES(CM_LOOP_ENTRY, add, ())[CM_BOOL] = add_BOOL,
    [CM_COMPLEX64] = add_COMPLEX64,
    [CM_COMPLEX128] = add_COMPLEX128,
};

static bool advance(int rank, const int64_t *dims, int64_t *index)
{
    for (int i = rank - 1; i >= 0; i--) {
        if (++index[i] < dims[i])
            return true;
        index[i] = 0;
    }
    return false;
}

/* Where a row of windows falls: windows [from, to) of it see the image, the first at element at. */
struct span {
    int64_t from, to, at;
};

static struct span locate(const struct windows *w, const int64_t *row, const int64_t *tap)
{
    const int last = w->rank - 1;
    const int64_t step = w->stride[last];
    int64_t at = 0;
    for (int i = 0; i < last; i++) {
        const int64_t x = row[i] * w->stride[i] + tap[i] * w->dilation[i] - w->pad[i];
        if (x < 0 || x >= w->image[i])
            return (struct span){0};
        at = at * w->image[i] + x;
    }
    const int64_t offset = tap[last] * w->dilation[last] - w->pad[last];
    struct span s = {.from = offset < 0 ? (-offset + step - 1) / step : 0, .to = w->count[last]};
    if (offset >= w->image[last])
        return (struct span){0};
    const int64_t past = (w->image[last] - 1 - offset) / step + 1;
    s.to = past < s.to ? past : s.to;
    s.at = at * w->image[last] + s.from * step + offset;
    return s.from < s.to ? s : (struct span){0};
}

/* One channel of one image: number `plane` of them all. */
static void add_plane(const struct cm_call *call, const struct windows *w, int64_t plane)
{
    const enum cm_dtype type = call->in[COLUMNS]->type;
    const bool narrow = cm_dtype_is_narrow(type);
    const int last = w->rank - 1;
    const int64_t width = w->count[last];
    const void *from = call->in[COLUMNS]->data;
    float *image = call->scratch, *row_of = narrow ? image + w->area : NULL;
    int64_t tap[CM_MAX_RANK] = {0}, row[CM_MAX_RANK] = {0}, at = plane * w->taps * w->columns;
    if (narrow)
        cm_move_zero(CM_FLOAT, image, 0, w->area);
    else
        cm_move_zero(type, call->out[0]->data, plane * w->area, w->area);
    do {
        do {
            const struct span s = locate(w, row, tap);
            const int64_t n = s.to - s.from;
            if (n > 0 && narrow) {
                cm_narrow_load(type, from, at + s.from, n, row_of);
                add_FLOAT(n, row_of, 0, image, s.at, w->stride[last]);
            } else if (n > 0) {
                adds[type](n, from, at + s.from, call->out[0]->data, plane * w->area + s.at,
                           w->stride[last]);
            }
            at += width;
        } while (advance(last, w->count, row));
    } while (advance(w->rank, w->kernel, tap));
    if (narrow)
        cm_narrow_store(type, call->out[0]->data, plane * w->area, w->area, image);
}

static enum cm_status col2im_run(struct cm_call *call)
{
    const enum cm_dtype type = call->in[COLUMNS]->type;
    const struct cm_shape *y = &call->out[0]->shape;
    struct windows w;
    if (!adds[type] && !cm_dtype_is_narrow(type))
        return cm_call_fail(call, CM_UNSUPPORTED, "elements of type %s cannot be added",
                            cm_dtype_name(type));
    CM_TRY(read_windows(call->node, call->in[IMAGE], call->in[KERNEL], &w, call->err));
    for (int64_t plane = 0; plane < y->dims[0] * y->dims[1]; plane++)
        add_plane(call, &w, plane);
    return CM_OK;
}

/* ---- gradient: the windows cut out of the image's gradient again ---- */

struct cutting {
    struct cm_grad *g;
    int rank;
    cm_value image, kernel; /* their sizes, rank 1 */
    cm_value padded;        /* sizes of the image with its padding */
};

/* Element i of a list, as a scalar. */
static cm_value item(const struct cutting *c, cm_value list, int i)
{
    return cm_emit(c->g, "Gather", list, cm_build_int64(&c->g->build, i));
}

/* step * (0, 1, .. count - 1), lying along axis `at` of `rank` axes. */
static cm_value ladder(const struct cutting *c, cm_value count, int64_t step, int at, int rank)
{
    const cm_value zero = cm_build_int64(&c->g->build, 0), one = cm_build_int64(&c->g->build, 1);
    const cm_value steps = cm_emit(c->g, "Mul", cm_emit(c->g, "Range", zero, count, one),
                                   cm_build_int64(&c->g->build, step));
    int64_t shape[2 * CM_MAX_RANK];
    for (int i = 0; i < rank; i++)
        shape[i] = i == at ? -1 : 1;
    return cm_emit(c->g, "Reshape", steps, cm_build_int64s(&c->g->build, (size_t)rank, shape));
}

/* What each element of the columns became part of: flat places in the padded image, by taps and
 * windows. */
static cm_value places(const struct cutting *c)
{
    const cm_value one = cm_build_int64(&c->g->build, 1);
    cm_value at = 0;
    for (int i = 0; i < c->rank; i++) {
        const int64_t stride = listed(cm_node_ints(c->g->node, "strides"), i, 1);
        const int64_t dilation = listed(cm_node_ints(c->g->node, "dilations"), i, 1);
        const cm_value taps = item(c, c->kernel, i), size = item(c, c->padded, i);
        const cm_value span = cm_emit(c->g, "Mul", cm_emit(c->g, "Sub", taps, one),
                                      cm_build_int64(&c->g->build, dilation));
        const cm_value room = cm_emit(c->g, "Sub", cm_emit(c->g, "Sub", size, span), one);
        const cm_value windows = cm_emit(
            c->g, "Add", cm_emit(c->g, "Div", room, cm_build_int64(&c->g->build, stride)), one);
        const cm_value here = cm_emit(c->g, "Add", ladder(c, taps, dilation, i, 2 * c->rank),
                                      ladder(c, windows, stride, c->rank + i, 2 * c->rank));
        at = at ? cm_emit(c->g, "Add", cm_emit(c->g, "Mul", at, size), here) : here;
    }
    return cm_emit(c->g, "Reshape", at, cm_emit_int64s(c->g, -1));
}

/* How many axes the image has; 0 when nothing says. */
static int image_rank(struct cm_grad *g)
{
    const struct cm_int64s pads = cm_node_ints(g->node, "pads");
    for (int i = IMAGE; i <= KERNEL; i++) {
        const struct cm_type *type = cm_builder_type(&g->build, cm_grad_input(g, i));
        if (type->rank == 1 && cm_dim_known(type->dims[0]) &&
            type->dims[0].value <= CM_MAX_RANK - 2)
            return (int)type->dims[0].value;
    }
    return pads.count / 2 <= CM_MAX_RANK - 2 ? (int)(pads.count / 2) : 0;
}

static enum cm_status col2im_grad(struct cm_grad *g)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    struct cutting c = {.g = g,
                        .rank = image_rank(g),
                        .image = cm_grad_input(g, IMAGE),
                        .kernel = cm_grad_input(g, KERNEL)};
    const struct cm_int64s given = cm_node_ints(g->node, "pads");
    int64_t pads[2 * CM_MAX_RANK] = {0}, around[CM_MAX_RANK];
    if (c.rank == 0)
        return cm_builder_fail(&g->build, CM_UNSUPPORTED,
                               "the gradient needs to know how many axes the image has");
    CM_TRY(check_lists(g->node, c.rank, g->build.err));
    for (int i = 0; i < c.rank; i++) {
        pads[2 + i] = listed(given, i, 0);
        pads[c.rank + 4 + i] = listed(given, i + c.rank, 0);
        if (pads[2 + i] < 0 || pads[2 + i] > small || pads[c.rank + 4 + i] < 0 ||
            pads[c.rank + 4 + i] > small)
            return cm_builder_fail(&g->build, CM_BAD_MODEL,
                                   "its pads along axis %d are out of range", i);
        around[i] = pads[2 + i] + pads[c.rank + 4 + i];
    }
    c.padded = cm_emit(g, "Add", c.image, cm_build_int64s(&g->build, (size_t)c.rank, around));
    const cm_value wide = cm_emit(g, "Pad", cm_grad_incoming(g, 0),
                                  cm_build_int64s(&g->build, (size_t)(2 * (c.rank + 2)), pads));
    const cm_value flat = cm_emit(g, "Reshape", wide, cm_emit_int64s(g, 0, 0, -1));
    const cm_value cut =
        cm_emit_with(g, "Gather", CM_ATTRIBUTES(cm_attr_int(arena, "axis", 2)), flat, places(&c));
    /* (N, C, taps * columns): the channels take the taps in. */
    return cm_grad_set(g, COLUMNS,
                       cm_emit(g, "Reshape", cut, cm_emit(g, "Shape", cm_grad_input(g, COLUMNS))));
}

CM_OP(Col2Im, .infer = col2im_infer, .prepare = col2im_prepare, .run = col2im_run,
      .grad = col2im_grad);
