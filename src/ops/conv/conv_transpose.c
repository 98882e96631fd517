/* ConvTranspose: the kernels, as columns, times X give patches, which are added where they overlap.
 */
// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/patch.h"

#include "base/number.h"
#include "ops/common/gemm.h"
#include "tensor/half.h"

static enum cm_status optional_list(const struct cm_node *node, const char *name, int rank,
                                    struct cm_int64s *out, struct cm_error *err)
{
    *out = cm_node_ints(node, name);
    if (out->count && out->count != (size_t)rank)
        return cm_fail(err, CM_BAD_MODEL, "%s has %zu numbers, needs %d", name, out->count, rank);
    for (size_t i = 0; i < out->count; i++)
        if (out->items[i] < 0 || out->items[i] > INT32_MAX)
            return cm_fail(err, CM_BAD_MODEL, "%s has %lld, must be 0 to %d", name,
                           (long long)out->items[i], INT32_MAX);
    return CM_OK;
}

/* Axis i: the whole extent of its patches is stride * (size - 1) + output_padding + span; pads take
 * away from that. */
static enum cm_status axis_size(struct cm_window *window, int i, int64_t size,
                                int64_t output_padding, int64_t wanted, int64_t *out,
                                struct cm_error *err)
{
    const int64_t span = (window->kernel[i] - 1) * window->dilation[i] + 1;
    int64_t extent;
    if (!cm_int64_mul(window->stride[i], size - 1, &extent) ||
        !cm_int64_add(extent, span + output_padding, &extent))
        return cm_fail(err, CM_LIMIT, "its result along spatial axis %d is too large", i);
    if (wanted < 0) {
        *out = extent - window->pad_begin[i] - window->pad_end[i];
        return CM_OK;
    }
    const int64_t total = extent > wanted ? extent - wanted : 0;
    window->pad_begin[i] = window->same_upper ? total / 2 : total - total / 2;
    window->pad_end[i] = total - window->pad_begin[i];
    *out = wanted;
    return CM_OK;
}

enum cm_status cm_conv_transpose_sizes(const struct cm_node *node, struct cm_window *window,
                                       const int64_t *sizes, int64_t *out, struct cm_error *err)
{
    struct cm_int64s shape, padding;
    CM_TRY(optional_list(node, "output_shape", window->rank, &shape, err));
    CM_TRY(optional_list(node, "output_padding", window->rank, &padding, err));
    for (int i = 0; i < window->rank; i++) {
        int64_t wanted = shape.count ? shape.items[i] : -1, size = 0;
        if (!shape.count && (window->same_upper || window->same_lower) &&
            !cm_int64_mul(sizes[i], window->stride[i], &wanted))
            return cm_fail(err, CM_LIMIT, "its result along spatial axis %d is too large", i);
        if (window->valid)
            window->pad_begin[i] = window->pad_end[i] = 0;
        CM_TRY(axis_size(window, i, sizes[i], padding.count ? padding.items[i] : 0, wanted, &size,
                         err));
        if (size < 0)
            return cm_fail(err, CM_BAD_MODEL, "its pads leave nothing of spatial axis %d", i);
        if (out)
            out[i] = size;
    }
    return CM_OK;
}

/* The same of a size that is no number. */
static struct cm_dim open_size(struct cm_infer *in, const struct cm_window *window, int i)
{
    const struct cm_int64s padding = cm_node_ints(in->node, "output_padding");
    const struct cm_dim size = cm_infer_type(in, 0)->dims[i + 2];
    const struct cm_dim times = cm_dim_product(in->symbols, size, CM_DIM(window->stride[i]));
    if (window->same_upper || window->same_lower)
        return times;
    const int64_t pads = window->valid ? 0 : window->pad_begin[i] + window->pad_end[i];
    const int64_t more = (window->kernel[i] - 1) * window->dilation[i] + 1 - window->stride[i];
    return cm_dim_floor(in->symbols, times,
                        more - pads + (padding.count > (size_t)i ? padding.items[i] : 0), 1);
}

static enum cm_status conv_transpose_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    const struct cm_int64s given = cm_node_ints(in->node, "output_shape");
    struct cm_conv_facts facts;
    struct cm_dim dims[CM_MAX_RANK];
    int64_t sizes[CM_MAX_RANK], result[CM_MAX_RANK];
    CM_TRY(cm_conv_facts(in, true, &facts));
    if (facts.rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, x->dtype, CM_RANK_UNKNOWN, NULL);
    bool known = facts.kernel_known && x->rank != CM_RANK_UNKNOWN;
    for (int i = 0; known && i < facts.rank; i++) {
        sizes[i] = x->dims[i + 2].value;
        known = cm_dim_known(x->dims[i + 2]);
    }
    if (known)
        CM_TRY(cm_conv_transpose_sizes(in->node, &facts.window, sizes, result, in->err));
    dims[0] = facts.batch;
    dims[1] = facts.result_channels;
    for (int i = 0; i < facts.rank; i++) {
        dims[i + 2] = known                                ? CM_DIM(result[i])
                      : facts.kernel_known && x->rank >= 0 ? open_size(in, &facts.window, i)
                                                           : CM_DIM_ANY;
        if (given.count == (size_t)facts.rank && given.items[i] >= 0)
            dims[i + 2] = CM_DIM(given.items[i]);
    }
    return cm_infer_set_tensor(in, 0, x->dtype, facts.rank + 2, dims);
}

struct conv_transpose {
    struct cm_patch patch; /* the image is Y, the windows are the elements of X */
    int64_t batch, group, in_channels, out_channels; /* channels of one group */
    int64_t chunk;                                   /* rows of X at a time */
    enum cm_dtype compute;                           /* narrow types are added up as floats */
    /* Where the parts of scratch begin, after the product's own: patches; for narrow types also W,
     * X and Y of one group. */
    size_t patches, w, x, y;
};

/* Reserves room for count elements in the layout of scratch; false on overflow. */
static bool reserve(enum cm_dtype type, int64_t a, int64_t b, size_t *end, size_t *at)
{
    int64_t count;
    size_t bytes;
    *at = *end;
    return cm_dim_mul(a, b, &count) && cm_dtype_bytes(type, count, &bytes) &&
           bytes < SIZE_MAX - CM_TENSOR_ALIGNMENT &&
           cm_size_add(*end, cm_round_up(bytes, CM_TENSOR_ALIGNMENT), end);
}

static enum cm_status conv_transpose_prepare(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[0]->shape, *w = &call->in[1]->shape;
    const struct cm_shape *y = &call->out[0]->shape;
    struct conv_transpose *conv = cm_call_state(call, sizeof *conv);
    struct cm_window window;
    CM_TRY(cm_window_read(call->node, x->rank - 2, w->dims + 2, &window, call->err));
    CM_TRY(cm_conv_transpose_sizes(call->node, &window, x->dims + 2, NULL, call->err));
    if (!cm_patch_init(&conv->patch, &window, y->dims + 2, x->dims + 2))
        return cm_call_fail(call, CM_LIMIT, "its spatial sizes are too large");
    conv->batch = x->dims[0];
    conv->group = cm_node_int(call->node, "group");
    conv->in_channels = w->dims[0] / conv->group;
    conv->out_channels = w->dims[1];
    conv->compute = call->in[0]->type == CM_DOUBLE ? CM_DOUBLE : CM_FLOAT;

    int64_t lines;
    if (!cm_dim_mul(conv->out_channels, conv->patch.taps, &lines))
        return cm_call_fail(call, CM_LIMIT, "the kernel is too large");
    conv->chunk = cm_patch_chunk(&conv->patch, lines);
    const int64_t columns = conv->chunk * conv->patch.width;
    const bool narrow = conv->compute != call->in[0]->type;
    size_t end = cm_round_up(cm_gemm_scratch(conv->compute, lines, columns, conv->in_channels),
                             CM_TENSOR_ALIGNMENT);
    bool fits = reserve(conv->compute, lines, columns, &end, &conv->patches);
    if (fits && narrow)
        fits = reserve(CM_FLOAT, lines, conv->in_channels, &end, &conv->w) &&
               reserve(CM_FLOAT, conv->in_channels, conv->patch.columns, &end, &conv->x) &&
               reserve(CM_FLOAT, conv->out_channels, conv->patch.image_size, &end, &conv->y);
    if (!fits)
        return cm_call_fail(call, CM_LIMIT, "the matrix of its patches is too large");
    cm_call_scratch(call, end);
    return CM_OK;
}

/* The result begins as the bias. */
static void fill_bias(const struct cm_call *call, const struct conv_transpose *conv, void *y,
                      int64_t y_at, int64_t first_channel)
{
    const struct cm_tensor *bias = call->n_in > 2 ? call->in[2] : NULL;
    const int64_t size = conv->patch.image_size;
    for (int64_t c = 0; c < conv->out_channels; c++) {
        const double value = bias ? cm_tensor_real(bias, first_channel + c) : 0;
        if (conv->compute == CM_DOUBLE)
            for (int64_t i = 0; i < size; i++)
                ((double *)y)[y_at + c * size + i] = value;
        else
            for (int64_t i = 0; i < size; i++)
                ((float *)y)[y_at + c * size + i] = (float)value;
    }
}

/* One group of one image, in float or double. */
struct operands {
    const void *x, *w;
    void *y;
    int64_t x_at, w_at, y_at;
};

static void transpose_group(const struct cm_call *call, const struct conv_transpose *conv,
                            const struct operands *op)
{
    const struct cm_patch *patch = &conv->patch;
    const int64_t lines = conv->out_channels * patch->taps;
    char *patches = (char *)call->scratch + conv->patches;
    struct cm_gemm g = {.type = conv->compute,
                        .m = lines,
                        .k = conv->in_channels,
                        .alpha = 1,
                        .a = {op->w, op->w_at, 1, lines},
                        .c = patches,
                        .c_column = 1};
    for (int64_t row = 0; row < patch->rows; row += conv->chunk) {
        const int64_t rows = patch->rows - row < conv->chunk ? patch->rows - row : conv->chunk;
        g.n = g.c_row = rows * patch->width;
        g.b = (struct cm_matrix){op->x, op->x_at + row * patch->width, patch->columns, 1};
        cm_gemm(&g, call->scratch);
        for (int64_t c = 0; c < conv->out_channels; c++)
            cm_patch_scatter(patch, conv->compute, patches, c * patch->taps * g.n, row, rows, op->y,
                             op->y_at + c * patch->image_size);
    }
}

static enum cm_status conv_transpose_run(struct cm_call *call)
{
    const struct conv_transpose *conv = call->state;
    const enum cm_dtype type = call->in[0]->type;
    const bool narrow = conv->compute != type;
    char *scratch = call->scratch;
    const int64_t w_size = conv->in_channels * conv->out_channels * conv->patch.taps;
    const int64_t x_size = conv->in_channels * conv->patch.columns;
    const int64_t y_size = conv->out_channels * conv->patch.image_size;
    if (cm_tensor_count(call->out[0]) == 0)
        return CM_OK;
    for (int64_t i = 0; i < conv->batch * conv->group; i++) {
        const int64_t group = i % conv->group;
        struct operands op = {call->in[0]->data, call->in[1]->data, call->out[0]->data,
                              i * x_size,        group * w_size,    i * y_size};
        if (narrow) {
            cm_narrow_load(type, op.x, op.x_at, x_size, (float *)(void *)(scratch + conv->x));
            cm_narrow_load(type, op.w, op.w_at, w_size, (float *)(void *)(scratch + conv->w));
            op = (struct operands){
                .x = scratch + conv->x, .w = scratch + conv->w, .y = scratch + conv->y};
        }
        fill_bias(call, conv, op.y, op.y_at, group * conv->out_channels);
        transpose_group(call, conv, &op);
        if (narrow)
            cm_narrow_store(type, call->out[0]->data, i * y_size, y_size, op.y);
    }
    return CM_OK;
}

/* Each element of X with all the weights of its channel. */
static double conv_transpose_flops(const struct cm_node *node, const struct cm_tensor *const *in,
                                   int n_in, const struct cm_tensor *const *out, int n_out)
{
    (void)out, (void)n_out;
    return cm_flops_conv(node, in, n_in, in, n_in);
}

CM_OP(ConvTranspose, .infer = conv_transpose_infer, .prepare = conv_transpose_prepare,
      .run = conv_transpose_run, .grad = cm_conv_transpose_grad, .cost.flops = conv_transpose_flops,
      .layer.weights = CM_OPERAND(1) | CM_OPERAND(2));
