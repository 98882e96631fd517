/* ConvInteger and QLinearConv: convolution of quantized images, summed as 32-bit integers. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/patch.h"

#include "base/number.h"
#include "base/parallel.h"
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
    int64_t chunk, chunks;                           /* rows of windows at a time; how often */
    int64_t parts;                                   /* of scratch, each for one thread's work */
    size_t part;                                     /* bytes of one */
    size_t weights, image, columns, sums;            /* places in a part, in bytes */
};

enum {
    MOST_PARTS = 8,
    PART_BYTES = 1 << 26, /* of all parts together, if there are several */
    EXACT_PRODUCTS = 256, /* of codes: their sum is exact as a float */
    FEW_ROWS = 4,         /* of weights: too few for a matrix product */
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
    conv->part = end;
    conv->chunks = (conv->patch.rows + conv->chunk - 1) / conv->chunk;
    conv->parts = MOST_PARTS; /* as shapes have it, whatever the number of threads */
    while (conv->parts > 1 && (size_t)conv->parts > PART_BYTES / end)
        conv->parts--;
    cm_call_scratch(call, end * (size_t)conv->parts);
    return CM_OK;
}

static int64_t element(const struct cm_tensor *p, int64_t channel)
{
    return !p ? 0 : cm_tensor_int(p, cm_tensor_count(p) == 1 ? 0 : channel);
}

/* count elements from first on, less a zero point. */
static void widen(const struct cm_tensor *x, int64_t first, int64_t count, int64_t zero, float *to)
{
    const float off = (float)zero;
    if (x->type == CM_UINT8) {
        const uint8_t *from = (const uint8_t *)x->data + first;
        for (int64_t i = 0; i < count; i++)
            to[i] = (float)from[i] - off;
    } else {
        const int8_t *from = (const int8_t *)x->data + first;
        for (int64_t i = 0; i < count; i++)
            to[i] = (float)from[i] - off;
    }
}

/* One channel's sums, n of them, as quantized results from element y_at on: rounded, then the zero
 * point added. */
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
            v[i] = (double)cm_round_half_even((float)sums[first + i] * scale) + zero;
        cm_reals_store(call->out[0]->type, call->out[0]->data, y_at + first, count, v);
    }
}

/* The few rows of a depthwise convolution: windows, of which there are as many as products sum
 * exactly, are added tap by tap. */
static void multiply_few(int64_t m, int64_t n, int64_t k, const float *weights,
                         const float *columns, const int32_t *bias, int64_t c_row, int32_t *to)
{
    enum { BLOCK = 256 };
    float sums[BLOCK];
    for (int64_t i = 0; i < m; i++) {
        const uint32_t add = bias ? (uint32_t)bias[i] : 0;
        for (int64_t first = 0; first < n; first += BLOCK) {
            const int64_t count = n - first < BLOCK ? n - first : BLOCK;
            memset(sums, 0, sizeof sums);
            for (int64_t p = 0; p < k; p++)
                for (int64_t j = 0; j < count; j++)
                    sums[j] += weights[i * k + p] * columns[p * n + first + j];
            for (int64_t j = 0; j < count; j++)
                to[i * c_row + first + j] = (int32_t)((uint32_t)(int32_t)sums[j] + add);
        }
    }
}

/* A few rows of windows of one group of one image. */
static void conv_chunk(const struct cm_call *call, const struct conv *conv, int64_t group,
                       int64_t y_first, int64_t row, char *scratch)
{
    const struct kind *kind = call->node->op->arg;
    const struct cm_patch *patch = &conv->patch;
    const int64_t lines = conv->in_channels * patch->taps, first = group * conv->out_channels;
    const float *weights = (const float *)(void *)(scratch + conv->weights);
    float *columns = (float *)(void *)(scratch + conv->columns);
    int32_t *sums = (int32_t *)(void *)(scratch + conv->sums);
    const struct cm_tensor *bias = operand(call, kind->bias);
    const bool raw = kind->y_zero < 0;
    const int64_t rows = patch->rows - row < conv->chunk ? patch->rows - row : conv->chunk;
    const int64_t n = rows * patch->width, y_at = y_first + row * patch->width;
    for (int64_t c = 0; c < conv->in_channels; c++)
        cm_patch_gather(patch, CM_FLOAT, scratch + conv->image, c * patch->image_size, row, rows,
                        columns, c * patch->taps * n);
    if (conv->out_channels < FEW_ROWS && lines <= EXACT_PRODUCTS) {
        multiply_few(conv->out_channels, n, lines, weights, columns,
                     bias ? (const int32_t *)bias->data + first : NULL, raw ? patch->columns : n,
                     raw ? (int32_t *)call->out[0]->data + y_at : sums);
    } else {
        const struct cm_gemm g = {.type = CM_INT32,
                                  .of_codes = true,
                                  .m = conv->out_channels,
                                  .n = n,
                                  .k = lines,
                                  .alpha = 1,
                                  .beta = 1,
                                  .a = {weights, 0, lines, 1},
                                  .b = {columns, 0, n, 1},
                                  .add = {bias ? bias->data : NULL, first, 1, 0},
                                  .c = raw ? call->out[0]->data : sums,
                                  .c_first = raw ? y_at : 0,
                                  .c_row = raw ? patch->columns : n,
                                  .c_column = 1};
        cm_gemm(&g, scratch);
    }
    for (int64_t c = 0; !raw && c < conv->out_channels; c++)
        requantize(call, first + c, n, sums + c * n, y_at + c * patch->columns);
}

/* Parts of all chunks of all groups of all images, each part as many in a row: the codes of a group
 * become floats anew in each part that needs them. */
static void conv_parts(void *arg, int64_t begin, int64_t end)
{
    const struct cm_call *call = arg;
    const struct conv *conv = call->state;
    const struct kind *kind = call->node->op->arg;
    const int64_t lines = conv->in_channels * conv->patch.taps;
    const int64_t pixels = conv->in_channels * conv->patch.image_size;
    const int64_t units = conv->batch * conv->group * conv->chunks;
    for (int64_t part = begin; part < end; part++) {
        char *scratch = (char *)call->scratch + (size_t)part * conv->part;
        float *weights = (float *)(void *)(scratch + conv->weights);
        int64_t loaded = -1; /* which group of which image */
        const int64_t first = part * units / conv->parts, last = (part + 1) * units / conv->parts;
        for (int64_t unit = first; unit < last; unit++) {
            const int64_t which = unit / conv->chunks, group = which % conv->group;
            if (which != loaded) {
                widen(call->in[kind->x], which * pixels, pixels,
                      element(operand(call, kind->x_zero), 0),
                      (float *)(void *)(scratch + conv->image));
                for (int64_t c = 0; c < conv->out_channels; c++)
                    widen(call->in[kind->w], (group * conv->out_channels + c) * lines, lines,
                          element(operand(call, kind->w_zero), group * conv->out_channels + c),
                          weights + c * lines);
                loaded = which;
            }
            conv_chunk(call, conv, group, which * conv->out_channels * conv->patch.columns,
                       unit % conv->chunks * conv->chunk, scratch);
        }
    }
}

static enum cm_status conv_run(struct cm_call *call)
{
    const struct conv *conv = call->state;
    if (cm_tensor_count(call->out[0]) == 0)
        return CM_OK;
    cm_parallel(conv->parts, 1, conv_parts, call);
    return CM_OK;
}

CM_OP(ConvInteger, .values.is_quantized = true, .infer = conv_infer, .prepare = conv_prepare,
      .run = conv_run, .grad = cm_grad_none, .arg = &integer);
CM_OP(QLinearConv, .values.is_quantized = true, .infer = conv_infer, .prepare = conv_prepare,
      .run = conv_run, .grad = cm_grad_none, .arg = &quantized);
