/* LRN: each element divided by a power of the squares around it, along the channels. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "graph/op.h"
#include "tensor/line.h"

#include <math.h>

enum { CHUNK = 256 };

static enum cm_status lrn_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    const int64_t size = cm_node_int(in->node, "size");
    if (size < 1 || size > INT32_MAX)
        return cm_infer_fail(in, "size is %lld, must be 1 to %d", (long long)size, INT32_MAX);
    CM_TRY(cm_infer_rank(in, 0, 2, CM_MAX_RANK));
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

/* y = x s^-beta with s = bias + a sum(x^2): dx = dy s^-beta - 2 a beta x sum'(dy y / s), sum' over
 * the channels that see x. Sums are convolutions of an image whose rows are the channels. y is
 * written out, as other runtimes have LRN for few sizes and ranks. */
static enum cm_status lrn_grad(struct cm_grad *g)
{
    const struct cm_type *type = cm_builder_type(&g->build, cm_grad_input(g, 0));
    const long long size = cm_node_int(g->node, "size"), before = (size - 1) / 2;
    struct cm_str rows = CM_STR("Concat<axis=0>([0, 1], Shape<start=1, end=2>(t), [-1])");
    if (type->rank == CM_RANK_UNKNOWN)
        return cm_builder_fail(&g->build, CM_UNSUPPORTED,
                               "the gradient needs to know the rank of X");
    if (cm_dim_known(type->dims[1]) && type->dims[1].value > 0)
        rows = cm_arena_printf(cm_builder_arena(&g->build), "[0, 1, %lld, -1]",
                               (long long)type->dims[1].value);
    const char *const wide = cm_dtype_name(type->dtype == CM_DOUBLE ? CM_DOUBLE : CM_FLOAT);
    return cm_grad_formula(
        g,
        "window(t, before, after, factor) = {"
        "  kernel = Expand(like(t, factor), [1, 1, size, 1]);"
        "  sum = Conv<pads=[before, 0, after, 0]>(Reshape(t, %s), kernel); Reshape(sum, Shape(t))"
        "};"
        "x = %s(X); dy = %s(dY); a = alpha / size; s = window(x * x, %lld, %lld, a) + bias;"
        "direct = dy * Pow(s, -beta); shares = direct * x / s;"
        "others = window(shares, %lld, %lld, 2 * a * beta); dX = cast(direct - x * others, X)",
        cm_str_text(rows), wide, wide, before, size - 1 - before, size - 1 - before, before);
}

/* The windows of squares are means over an image whose rows are the channels. */
static enum cm_status lrn_body(struct cm_body *b)
{
    const enum cm_dtype type = cm_builder_type(&b->build, cm_body_input(b, 0))->dtype;
    const long long size = cm_node_int(b->node, "size"), before = (size - 1) / 2;
    return cm_body_formula(
        b,
        "x = %s(X); rows = Concat<axis=0>([0, 1], Shape<start=1, end=2>(x), [-1]);"
        "means = AveragePool<kernel_shape=[size, 1], pads=[%lld, 0, %lld, 0], count_include_pad=1>("
        "  Reshape(x * x, rows));"
        "sum = Reshape<allowzero=1>(means, Shape(x)) * alpha + bias; Y = %s(x / Pow(sum, beta))",
        cm_dtype_name(cm_line_wide(type)), before, size - 1 - before, cm_dtype_name(type));
}

CM_OP(LRN, .infer = lrn_infer, .prepare = lrn_prepare, .run = lrn_run, .grad = lrn_grad,
      .body = lrn_body);
