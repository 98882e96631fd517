/* LRN: each element divided by a power of the squares around it, along the channels. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/op.h"
#include "ops/microsoft/compose.h"
#include "ops/norm/norm_grad.h"
#include "tensor/line.h"

#include <math.h>

enum { CHUNK = 256 };

static enum cm_status lrn_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    const int64_t size = cm_node_int(in->node, "size");
    if (size < 1 || size > INT32_MAX)
        return cm_infer_fail(in, "size is %lld, must be 1 to %d", (long long)size, INT32_MAX);
    if (x->rank != CM_RANK_UNKNOWN && x->rank < 2)
        return cm_infer_fail(in, "input 0 has rank %d, needs 2 or more", x->rank);
    return cm_infer_set(in, 0, x);
}

struct lrn {
    int64_t images, channels, area, before, after; /* neighbours on either side */
    double alpha, beta, bias;                      /* alpha already divided by the size */
};

static enum cm_status lrn_prepare(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[0]->shape;
    struct lrn *lrn = cm_call_state(call, sizeof *lrn);
    const int64_t size = cm_node_int(call->node, "size");
    *lrn = (struct lrn){.images = x->dims[0],
                        .channels = x->dims[1],
                        .area = cm_shape_span(x, 2, x->rank),
                        .before = (size - 1) / 2,
                        .after = size - 1 - (size - 1) / 2,
                        .alpha = (double)cm_node_float(call->node, "alpha") / (double)size,
                        .beta = (double)cm_node_float(call->node, "beta"),
                        .bias = (double)cm_node_float(call->node, "bias")};
    return CM_OK;
}

/* Elements [first, first + n) of one channel. */
static void lrn_part(const struct cm_call *call, const struct lrn *lrn, int64_t image,
                     int64_t channel, int64_t first, int64_t n)
{
    const int64_t from = channel > lrn->before ? channel - lrn->before : 0;
    const int64_t to =
        channel + lrn->after < lrn->channels ? channel + lrn->after + 1 : lrn->channels;
    double sums[CHUNK] = {0}, x[CHUNK];
    for (int64_t c = from; c < to; c++) {
        const int64_t at = (image * lrn->channels + c) * lrn->area + first;
        cm_line_load(cm_line_at(call->in[0], at), 1, n, CM_DOUBLE, x);
        for (int64_t i = 0; i < n; i++)
            sums[i] += x[i] * x[i];
    }
    const int64_t at = (image * lrn->channels + channel) * lrn->area + first;
    cm_line_load(cm_line_at(call->in[0], at), 1, n, CM_DOUBLE, x);
    for (int64_t i = 0; i < n; i++)
        x[i] /= pow(lrn->bias + lrn->alpha * sums[i], lrn->beta);
    cm_line_save(cm_line_at(call->out[0], at), 1, n, CM_DOUBLE, x);
}

static enum cm_status lrn_run(struct cm_call *call)
{
    const struct lrn *lrn = call->state;
    if (cm_tensor_count(call->out[0]) == 0)
        return CM_OK;
    for (int64_t image = 0; image < lrn->images; image++)
        for (int64_t c = 0; c < lrn->channels; c++)
            for (int64_t i = 0; i < lrn->area; i += CHUNK)
                lrn_part(call, lrn, image, c, i, lrn->area - i < CHUNK ? lrn->area - i : CHUNK);
    return CM_OK;
}

/* (N, C, ..) as (N, 1, C, ..): an image whose rows are the channels. */
static cm_value channels_as_rows(struct cm_grad *g, cm_value x)
{
    const struct cm_type *type = cm_builder_type(&g->build, x);
    struct cm_arena *arena = cm_builder_arena(&g->build);
    if (!type)
        return 0;
    if (cm_dim_known(type->dims[1]) && type->dims[1].value > 0)
        return cm_emit(g, "Reshape", x, cm_emit_int64s(g, 0, 1, type->dims[1].value, -1));
    const cm_value channels = cm_emit_with(
        g, "Shape", CM_ATTRIBUTES(cm_attr_int(arena, "start", 1), cm_attr_int(arena, "end", 2)), x);
    const cm_value shape = cm_emit_with(g, "Concat", CM_ATTRIBUTES(cm_attr_int(arena, "axis", 0)),
                                        cm_emit_int64s(g, 0, 1), channels, cm_emit_int64s(g, -1));
    return cm_emit(g, "Reshape", x, shape);
}

/* Sums over `before` channels before and the rest of size behind, times factor: a convolution along
 * the channels. */
static cm_value window_sum(struct cm_grad *g, cm_value x, int64_t before, double factor)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    const int64_t size = cm_node_int(g->node, "size");
    const cm_value kernel =
        cm_emit(g, "Expand", cm_emit_scalar_like(g, x, factor), cm_emit_int64s(g, 1, 1, size, 1));
    const cm_value sum =
        cm_emit_with(g, "Conv",
                     CM_ATTRIBUTES(cm_attr_ints(
                         arena, "pads", 4, (const int64_t[]){before, 0, size - 1 - before, 0})),
                     channels_as_rows(g, x), kernel);
    return cm_emit(g, "Reshape", sum, cm_emit(g, "Shape", x));
}

/* y = x s^-beta with s = bias + a sum(x^2): dx = dy s^-beta - 2 a beta x sum'(dy y / s), sum' over
 * the channels that see x. y is written out, as other runtimes have LRN for few sizes and ranks. */
static enum cm_status lrn_grad(struct cm_grad *g)
{
    const int64_t size = cm_node_int(g->node, "size"), before = (size - 1) / 2;
    const double a = (double)cm_node_float(g->node, "alpha") / (double)size;
    const double beta = (double)cm_node_float(g->node, "beta");
    if (cm_builder_type(&g->build, cm_grad_input(g, 0))->rank == CM_RANK_UNKNOWN)
        return cm_builder_fail(&g->build, CM_UNSUPPORTED,
                               "the gradient needs to know the rank of X");
    const cm_value x = cm_norm_widen(g, cm_grad_input(g, 0));
    const cm_value dy = cm_norm_widen(g, cm_grad_incoming(g, 0));
    const cm_value s = cm_emit(g, "Add", window_sum(g, cm_emit(g, "Mul", x, x), before, a),
                               cm_emit_scalar_like(g, x, (double)cm_node_float(g->node, "bias")));
    const cm_value direct =
        cm_emit(g, "Mul", dy, cm_emit(g, "Pow", s, cm_emit_scalar_like(g, x, -beta)));
    const cm_value shares = cm_emit(g, "Div", cm_emit(g, "Mul", direct, x), s);
    const cm_value others = window_sum(g, shares, size - 1 - before, 2 * a * beta);
    return cm_norm_set(g, 0, cm_emit(g, "Sub", direct, cm_emit(g, "Mul", x, others)));
}

/* The windows of squares are means over an image whose rows are the channels. */
static enum cm_status lrn_body(struct cm_body *b)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    const int64_t size = cm_node_int(b->node, "size"), before = (size - 1) / 2;
    const enum cm_dtype type = cm_compose_type(b, cm_body_input(b, 0))->dtype;
    const enum cm_dtype wide = cm_line_wide(type);
    const cm_value x = cm_compose_cast(b, cm_body_input(b, 0), wide);
    const cm_value shape = CM_COMPOSE_CONCAT(b, 0, cm_emit_int64s(b, 0, 1),
                                             cm_compose_dims(b, x, 1, 2), cm_emit_int64s(b, -1));
    const cm_value rows = cm_emit(b, "Reshape", cm_emit(b, "Mul", x, x), shape);
    const cm_value means = cm_emit_with(
        b, "AveragePool",
        CM_ATTRIBUTES(
            cm_attr_ints(arena, "kernel_shape", 2, (const int64_t[]){size, 1}),
            cm_attr_ints(arena, "pads", 4, (const int64_t[]){before, 0, size - 1 - before, 0}),
            cm_attr_int(arena, "count_include_pad", 1)),
        rows);
    const cm_value window =
        cm_emit_with(b, "Reshape", CM_ATTRIBUTES(cm_attr_int(arena, "allowzero", 1)), means,
                     cm_emit(b, "Shape", x));
    const cm_value sum = cm_emit(
        b, "Add",
        cm_emit(b, "Mul", window, cm_emit_scalar(b, wide, (double)cm_node_float(b->node, "alpha"))),
        cm_emit_scalar(b, wide, (double)cm_node_float(b->node, "bias")));
    const cm_value beta = cm_emit_scalar(b, wide, (double)cm_node_float(b->node, "beta"));
    const cm_value y = cm_emit(b, "Div", x, cm_emit(b, "Pow", sum, beta));
    return cm_body_return(b, 0, cm_compose_cast(b, y, type));
}

CM_OP(LRN, .infer = lrn_infer, .prepare = lrn_prepare, .run = lrn_run, .grad = lrn_grad,
      .body = lrn_body);
