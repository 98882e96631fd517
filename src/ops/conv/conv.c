/* Conv: every window of X, as a column, times the kernels as rows. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/patch.h"

#include "base/number.h"
#include "ops/common/gemm.h"

/* The channels of X and W agree with each other and with the groups. */
static enum cm_status check_channels(struct cm_infer *in, bool transpose, struct cm_conv_facts *out)
{
    const struct cm_type *x = cm_infer_type(in, 0), *w = cm_infer_type(in, 1);
    const bool has_x = x->rank != CM_RANK_UNKNOWN, has_w = w->rank != CM_RANK_UNKNOWN;
    const struct cm_dim channels = has_x ? x->dims[1] : CM_DIM_ANY;
    const struct cm_dim outer = has_w ? w->dims[0] : CM_DIM_ANY,
                        inner = has_w ? w->dims[1] : CM_DIM_ANY;
    const struct cm_dim need =
        transpose ? outer : cm_dim_product(in->symbols, inner, CM_DIM(out->group));
    if (cm_dim_known(channels) && cm_dim_known(need) && channels.value != need.value)
        return cm_infer_fail(in, "input 0 has %lld channels, W with group %lld needs %lld",
                             (long long)channels.value, (long long)out->group,
                             (long long)need.value);
    if (cm_dim_known(outer) && outer.value % out->group != 0)
        return cm_infer_fail(in, "axis 0 of W has %lld, which group %lld does not divide",
                             (long long)outer.value, (long long)out->group);
    out->batch = has_x ? x->dims[0] : CM_DIM_ANY;
    out->result_channels =
        transpose ? cm_dim_product(in->symbols, inner, CM_DIM(out->group)) : outer;
    return CM_OK;
}

static enum cm_status check_bias(struct cm_infer *in, struct cm_dim channels)
{
    const struct cm_type *b = cm_infer_type(in, 2);
    if (!b || b->rank == CM_RANK_UNKNOWN)
        return CM_OK;
    CM_TRY(cm_infer_rank(in, 2, 1, 1));
    if (cm_dim_known(b->dims[0]) && cm_dim_known(channels) && b->dims[0].value != channels.value)
        return cm_infer_fail(in, "the bias has %lld numbers, the result has %lld channels",
                             (long long)b->dims[0].value, (long long)channels.value);
    return CM_OK;
}

/* The kernel's sizes: from W as far as it says, and the attribute must not contradict it. */
static enum cm_status read_kernel(struct cm_infer *in, struct cm_conv_facts *out)
{
    const struct cm_type *w = cm_infer_type(in, 1);
    const struct cm_int64s given = cm_node_ints(in->node, "kernel_shape");
    if (given.count && given.count != (size_t)out->rank)
        return cm_infer_fail(in, "kernel_shape has %zu numbers, needs %d", given.count, out->rank);
    out->kernel_known = true;
    for (int i = 0; i < out->rank; i++) {
        const struct cm_dim dim = w->rank == CM_RANK_UNKNOWN ? CM_DIM_ANY : w->dims[i + 2];
        if (given.count && cm_dim_known(dim) && given.items[i] != dim.value)
            return cm_infer_fail(in, "kernel_shape says %lld, W has %lld",
                                 (long long)given.items[i], (long long)dim.value);
        out->kernel[i] = given.count ? given.items[i] : dim.value;
        out->kernel_known = out->kernel_known && out->kernel[i] >= 0;
        if (out->kernel[i] == 0 || out->kernel[i] > INT32_MAX)
            return cm_infer_fail(
                in, "the kernel has size %lld along spatial axis %d, expected 1 or more",
                (long long)out->kernel[i], i);
    }
    if (!out->kernel_known)
        return CM_OK;
    return cm_window_read(in->node, out->rank, out->kernel, &out->window, in->err);
}

enum cm_status cm_conv_facts(struct cm_infer *in, bool transpose, struct cm_conv_facts *out)
{
    const struct cm_type *x = cm_infer_type(in, 0), *w = cm_infer_type(in, 1);
    memset(out, 0, sizeof *out);
    out->group = cm_node_int(in->node, "group");
    if (out->group < 1)
        return cm_infer_fail(in, "group is %lld, must be 1 or more", (long long)out->group);
    const int rank = x->rank != CM_RANK_UNKNOWN ? x->rank : w->rank;
    out->rank = rank == CM_RANK_UNKNOWN ? CM_RANK_UNKNOWN : rank - 2;
    if (rank == CM_RANK_UNKNOWN)
        return CM_OK;
    if (rank < 3)
        return cm_infer_fail(in, "its input has rank %d, needs 3 or more", rank);
    if (w->rank != CM_RANK_UNKNOWN && w->rank != rank)
        return cm_infer_fail(in, "input 0 has rank %d, W has rank %d", rank, w->rank);
    CM_TRY(check_channels(in, transpose, out));
    CM_TRY(check_bias(in, out->result_channels));
    return read_kernel(in, out);
}

static enum cm_status conv_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    struct cm_conv_facts facts;
    struct cm_dim dims[CM_MAX_RANK];
    const struct cm_type *type;
    CM_TRY(cm_conv_facts(in, false, &facts));
    if (facts.rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, x->dtype, CM_RANK_UNKNOWN, NULL);
    if (x->rank != CM_RANK_UNKNOWN && facts.kernel_known) {
        CM_TRY(cm_window_infer(in, &facts.window, x, facts.result_channels, &type));
        return cm_infer_set(in, 0, type);
    }
    dims[0] = facts.batch;
    dims[1] = facts.result_channels;
    for (int i = 0; i < facts.rank; i++)
        dims[i + 2] = CM_DIM_ANY;
    return cm_infer_set_tensor(in, 0, x->dtype, facts.rank + 2, dims);
}

struct conv {
    struct cm_patch patch;
    bool trivial;
    int64_t batch, group, in_channels, out_channels; /* channels of one group */
    int64_t chunk;                                   /* rows of windows at a time */
    size_t gemm_scratch;
};

static enum cm_status conv_prepare(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[0]->shape, *w = &call->in[1]->shape;
    const struct cm_shape *y = &call->out[0]->shape;
    const enum cm_dtype type = call->in[0]->type;
    struct conv *conv = cm_call_state(call, sizeof *conv);
    struct cm_window window;
    CM_TRY(cm_window_read(call->node, x->rank - 2, w->dims + 2, &window, call->err));
    for (int i = 0; i < window.rank; i++)
        cm_window_count(&window, i, x->dims[i + 2]);
    if (!cm_patch_init(&conv->patch, &window, x->dims + 2, y->dims + 2))
        return cm_call_fail(call, CM_LIMIT, "its spatial sizes are too large");
    conv->trivial = cm_patch_is_trivial(&conv->patch);
    conv->batch = x->dims[0];
    conv->group = cm_node_int(call->node, "group");
    conv->in_channels = w->dims[1];
    conv->out_channels = w->dims[0] / conv->group;

    int64_t lines, elements;
    size_t bytes;
    if (!cm_dim_mul(conv->in_channels, conv->patch.taps, &lines))
        return cm_call_fail(call, CM_LIMIT, "the kernel is too large");
    conv->chunk = conv->trivial ? conv->patch.rows : cm_patch_chunk(&conv->patch, lines);
    const int64_t columns = conv->chunk * conv->patch.width;
    conv->gemm_scratch =
        cm_round_up(cm_gemm_scratch(type, conv->out_channels, columns, lines), CM_TENSOR_ALIGNMENT);
    if (!cm_dim_mul(lines, conv->trivial ? 0 : columns, &elements) ||
        !cm_dtype_bytes(type, elements, &bytes))
        return cm_call_fail(call, CM_LIMIT, "the matrix of its windows is too large");
    cm_call_scratch(call, conv->gemm_scratch + bytes);
    return CM_OK;
}

/* One group of one image: its windows a few rows at a time. */
static void conv_group(const struct cm_call *call, const struct conv *conv, int64_t image,
                       int64_t group)
{
    const struct cm_patch *patch = &conv->patch;
    const enum cm_dtype type = call->in[0]->type;
    const int64_t lines = conv->in_channels * patch->taps;
    const int64_t x_at = (image * conv->group + group) * conv->in_channels * patch->image_size;
    char *columns = (char *)call->scratch + conv->gemm_scratch;
    const bool biased = call->n_in > 2 && call->in[2];
    struct cm_gemm g = {
        .type = type,
        .m = conv->out_channels,
        .k = lines,
        .alpha = 1,
        .beta = 1,
        .a = {call->in[1]->data, group * conv->out_channels * lines, lines, 1},
        .add = {biased ? call->in[2]->data : NULL, group * conv->out_channels, 1, 0},
        .c = call->out[0]->data,
        .c_row = patch->columns,
        .c_column = 1};
    for (int64_t row = 0; row < patch->rows; row += conv->chunk) {
        const int64_t rows = patch->rows - row < conv->chunk ? patch->rows - row : conv->chunk;
        g.n = rows * patch->width;
        g.c_first = (image * conv->group + group) * conv->out_channels * patch->columns +
                    row * patch->width;
        if (conv->trivial)
            g.b = (struct cm_matrix){call->in[0]->data, x_at, patch->image_size, 1};
        else
            g.b = (struct cm_matrix){columns, 0, g.n, 1};
        for (int64_t c = 0; !conv->trivial && c < conv->in_channels; c++)
            cm_patch_gather(patch, type, call->in[0]->data, x_at + c * patch->image_size, row, rows,
                            columns, c * patch->taps * g.n);
        cm_gemm(&g, call->scratch);
    }
}

static enum cm_status conv_run(struct cm_call *call)
{
    const struct conv *conv = call->state;
    if (!cm_gemm_has(call->in[0]->type))
        return cm_call_fail(call, CM_UNSUPPORTED, "no kernel for %s",
                            cm_dtype_name(call->in[0]->type));
    if (cm_tensor_count(call->out[0]) == 0)
        return CM_OK;
    for (int64_t image = 0; image < conv->batch; image++)
        for (int64_t group = 0; group < conv->group; group++)
            conv_group(call, conv, image, group);
    return CM_OK;
}

CM_OP(Conv, .infer = conv_infer, .prepare = conv_prepare, .run = conv_run, .grad = cm_conv_grad,
      .cost.flops = cm_flops_conv, .layer.weights = CM_OPERAND(1) | CM_OPERAND(2));
