/* ConvInteger and QLinearConv: convolution of quantized images, summed as 32-bit integers. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/patch.h"

#include "base/number.h"
#include "ops/common/gemm.h"
#include "ops/common/reals.h"

/* Where the operands of the two are; -1: it has none. */
struct kind {
    int x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias;
};
static const struct kind integer = {0, -1, 2, 1, -1, 3, -1, -1, -1};
static const struct kind quantized = {0, 1, 2, 3, 4, 5, 6, 7, 8};

static enum cm_status conv_infer(struct cm_infer *in)
{
    const struct kind *kind = in->node->op->arg;
    const struct cm_type *x = cm_infer_type(in, kind->x);
    const enum cm_dtype type = kind->y_zero < 0 ? CM_INT32 : cm_infer_type(in, kind->y_zero)->dtype;
    /* The same operands in Conv's order. */
    const struct cm_fact facts_in[3] = {
        in->in[kind->x], in->in[kind->w],
        kind->bias >= 0 && kind->bias < in->n_in ? in->in[kind->bias] : (struct cm_fact){0}};
    struct cm_infer as_conv = *in;
    struct cm_conv_facts facts;
    struct cm_dim dims[CM_MAX_RANK];
    as_conv.in = facts_in;
    as_conv.n_in = 3;
    CM_TRY(cm_conv_facts(&as_conv, false, &facts));
    if (facts.rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, type, CM_RANK_UNKNOWN, NULL);
    dims[0] = facts.batch;
    dims[1] = facts.result_channels;
    for (int i = 0; i < facts.rank; i++)
        dims[i + 2] = CM_DIM_ANY;
    if (x->rank != CM_RANK_UNKNOWN && facts.kernel_known) {
        const struct cm_type *like;
        CM_TRY(cm_window_infer(in, &facts.window, x, facts.result_channels, &like));
        return cm_infer_set_tensor(in, 0, type, like->rank, like->dims);
    }
    return cm_infer_set_tensor(in, 0, type, facts.rank + 2, dims);
}

struct conv {
    struct cm_patch patch;
    int64_t batch, group, in_channels, out_channels; /* channels of one group */
    int64_t chunk;                                   /* rows of windows at a time */
    size_t weights, image, columns, sums;            /* places in scratch, in bytes */
};

static const struct cm_tensor *operand(const struct cm_call *call, int i)
{
    return i >= 0 && i < call->n_in ? call->in[i] : NULL;
}

static bool reserve(int64_t rows, int64_t columns, size_t *end, size_t *at)
{
    int64_t count;
    size_t bytes;
    *at = *end;
    return cm_dim_mul(rows, columns, &count) && cm_dtype_bytes(CM_INT32, count, &bytes) &&
           bytes < SIZE_MAX / 2 && cm_size_add(*end, cm_round_up(bytes, CM_TENSOR_ALIGNMENT), end);
}

/* One number, or one per channel of the result. */
static enum cm_status check_per_channel(struct cm_call *call, int i, int64_t channels)
{
    const struct cm_tensor *p = operand(call, i);
    if (p && cm_tensor_count(p) != 1 && (p->shape.rank != 1 || p->shape.dims[0] != channels))
        return cm_call_fail(call, CM_BAD_ARGUMENT, "input %d does not have one number per channel",
                            i);
    return CM_OK;
}

static enum cm_status conv_prepare(struct cm_call *call)
{
    const struct kind *kind = call->node->op->arg;
    const struct cm_shape *x = &call->in[kind->x]->shape, *w = &call->in[kind->w]->shape;
    struct conv *conv = cm_call_state(call, sizeof *conv);
    struct cm_window window;
    int64_t lines;
    CM_TRY(cm_window_read(call->node, x->rank - 2, w->dims + 2, &window, call->err));
    for (int i = 0; i < window.rank; i++)
        cm_window_count(&window, i, x->dims[i + 2]);
    if (!cm_patch_init(&conv->patch, &window, x->dims + 2, call->out[0]->shape.dims + 2))
        return cm_call_fail(call, CM_LIMIT, "its spatial sizes are too large");
    conv->batch = x->dims[0];
    conv->group = cm_node_int(call->node, "group");
    conv->in_channels = w->dims[1];
    conv->out_channels = w->dims[0] / conv->group;
    CM_TRY(check_per_channel(call, kind->w_zero, w->dims[0]));
    CM_TRY(check_per_channel(call, kind->w_scale, w->dims[0]));
    for (int i = 0; i < 4; i++) {
        const int single[4] = {kind->x_scale, kind->x_zero, kind->y_scale, kind->y_zero};
        CM_TRY(check_per_channel(call, single[i], 1));
    }
    if (!cm_dim_mul(conv->in_channels, conv->patch.taps, &lines))
        return cm_call_fail(call, CM_LIMIT, "the kernel is too large");
    conv->chunk = cm_patch_chunk(&conv->patch, lines);
    const int64_t columns = conv->chunk * conv->patch.width;
    size_t end = cm_round_up(cm_gemm_scratch(CM_INT32, conv->out_channels, columns, lines),
                             CM_TENSOR_ALIGNMENT);
    if (!reserve(conv->out_channels, lines, &end, &conv->weights) ||
        !reserve(conv->in_channels, conv->patch.image_size, &end, &conv->image) ||
        !reserve(lines, columns, &end, &conv->columns) ||
        !reserve(conv->out_channels, columns, &end, &conv->sums))
        return cm_call_fail(call, CM_LIMIT, "the matrix of its windows is too large");
    cm_call_scratch(call, end);
    return CM_OK;
}

static int64_t element(const struct cm_tensor *p, int64_t channel)
{
    return !p ? 0 : cm_tensor_int(p, cm_tensor_count(p) == 1 ? 0 : channel);
}

/* count elements from first on, less a zero point. */
static void widen(const struct cm_tensor *x, int64_t first, int64_t count, int64_t zero,
                  int32_t *to)
{
    const int32_t off = (int32_t)zero;
    if (x->type == CM_UINT8) {
        const uint8_t *from = (const uint8_t *)x->data + first;
        for (int64_t i = 0; i < count; i++)
            to[i] = from[i] - off;
    } else {
        const int8_t *from = (const int8_t *)x->data + first;
        for (int64_t i = 0; i < count; i++)
            to[i] = from[i] - off;
    }
}

/* One channel's sums, n of them, as quantized results from element y_at on. */
static void requantize(const struct cm_call *call, int64_t channel, int64_t n, const int32_t *sums,
                       int64_t y_at)
{
    enum { BLOCK = 256 };
    const struct kind *kind = call->node->op->arg;
    const struct cm_tensor *w_scale = call->in[kind->w_scale];
    const int64_t at = cm_tensor_count(w_scale) == 1 ? 0 : channel;
    const float scale = (float)cm_tensor_real(call->in[kind->x_scale], 0) *
                        (float)cm_tensor_real(w_scale, at) /
                        (float)cm_tensor_real(call->in[kind->y_scale], 0);
    const double zero = (double)element(call->in[kind->y_zero], 0);
    for (int64_t first = 0; first < n; first += BLOCK) {
        const int64_t count = n - first < BLOCK ? n - first : BLOCK;
        double v[BLOCK];
        for (int64_t i = 0; i < count; i++)
            v[i] = (double)sums[first + i] * (double)scale + zero;
        cm_reals_store(call->out[0]->type, call->out[0]->data, y_at + first, count, v);
    }
}

/* One group of one image: its windows a few rows at a time. */
static void conv_group(const struct cm_call *call, const struct conv *conv, int64_t image,
                       int64_t group)
{
    const struct kind *kind = call->node->op->arg;
    const struct cm_patch *patch = &conv->patch;
    const int64_t lines = conv->in_channels * patch->taps, first = group * conv->out_channels;
    char *scratch = call->scratch;
    int32_t *weights = (int32_t *)(void *)(scratch + conv->weights);
    int32_t *sums = (int32_t *)(void *)(scratch + conv->sums);
    const struct cm_tensor *bias = operand(call, kind->bias);
    const bool raw = kind->y_zero < 0;
    const int64_t pixels = conv->in_channels * patch->image_size;
    widen(call->in[kind->x], (image * conv->group + group) * pixels, pixels,
          element(operand(call, kind->x_zero), 0), (int32_t *)(void *)(scratch + conv->image));
    for (int64_t c = 0; c < conv->out_channels; c++)
        widen(call->in[kind->w], (first + c) * lines, lines,
              element(operand(call, kind->w_zero), first + c), weights + c * lines);
    struct cm_gemm g = {.type = CM_INT32,
                        .m = conv->out_channels,
                        .k = lines,
                        .alpha = 1,
                        .beta = 1,
                        .a = {weights, 0, lines, 1},
                        .add = {bias ? bias->data : NULL, first, 1, 0},
                        .c = raw ? call->out[0]->data : sums,
                        .c_column = 1};
    for (int64_t row = 0; row < patch->rows; row += conv->chunk) {
        const int64_t rows = patch->rows - row < conv->chunk ? patch->rows - row : conv->chunk;
        const int64_t y_at = (image * conv->group + group) * conv->out_channels * patch->columns +
                             row * patch->width;
        g.n = rows * patch->width;
        g.c_row = raw ? patch->columns : g.n;
        g.c_first = raw ? y_at : 0;
        g.b = (struct cm_matrix){scratch + conv->columns, 0, g.n, 1};
        for (int64_t c = 0; c < conv->in_channels; c++)
            cm_patch_gather(patch, CM_INT32, scratch + conv->image, c * patch->image_size, row,
                            rows, scratch + conv->columns, c * patch->taps * g.n);
        cm_gemm(&g, scratch);
        for (int64_t c = 0; !raw && c < conv->out_channels; c++)
            requantize(call, first + c, g.n, sums + c * g.n, y_at + c * patch->columns);
    }
}

static enum cm_status conv_run(struct cm_call *call)
{
    const struct conv *conv = call->state;
    if (cm_tensor_count(call->out[0]) == 0)
        return CM_OK;
    for (int64_t image = 0; image < conv->batch; image++)
        for (int64_t group = 0; group < conv->group; group++)
            conv_group(call, conv, image, group);
    return CM_OK;
}

CM_OP(ConvInteger, .infer = conv_infer, .prepare = conv_prepare, .run = conv_run,
      .grad = cm_grad_none, .arg = &integer);
CM_OP(QLinearConv, .infer = conv_infer, .prepare = conv_prepare, .run = conv_run,
      .grad = cm_grad_none, .arg = &quantized);
