/* ConvGrad and ConvTransposeGrad: the gradients of a convolution or of its transpose by X, W and
 * the bias, each where it is wanted.
 *
 * "Image" is the larger tensor (X of Conv, dY of ConvTranspose), "windows" the smaller one. With
 * the windows of the image as columns: dW = windows columns', and the gradient by the one of the
 * two that is X comes back by W: patches = W' windows, or windows = W columns. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/patch.h"

#include "base/number.h"
#include "ops/common/gemm.h"

enum { DY = CM_CONV_GRAD_DY, X = CM_CONV_GRAD_X, W = CM_CONV_GRAD_W };
enum { D_X, D_W, D_B };

static bool is_transposed(const struct cm_node *node)
{
    return ((const struct cm_conv_grad_kind *)node->op->arg)->transpose;
}

static enum cm_status grad_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, X), *w = cm_infer_type(in, W);
    const int64_t group = cm_node_int(in->node, "group");
    struct cm_dim channels = CM_DIM_ANY;
    if (group < 1)
        return cm_infer_fail(in, "group is %lld, must be 1 or more", (long long)group);
    CM_TRY(cm_infer_rank(in, W, 3, CM_MAX_RANK));
    if (w->rank != CM_RANK_UNKNOWN)
        channels = is_transposed(in->node) ? cm_dim_product(in->symbols, w->dims[1], CM_DIM(group))
                                           : w->dims[0];
    if (in->n_out > D_X)
        CM_TRY(cm_infer_set(in, D_X, x));
    if (in->n_out > D_W)
        CM_TRY(cm_infer_set(in, D_W, w));
    return in->n_out > D_B ? cm_infer_set_tensor(in, D_B, x->dtype, 1, &channels) : CM_OK;
}

struct conv_slopes {
    struct cm_patch patch;
    bool transpose;
    int64_t batch, group;
    int64_t image_channels, window_channels; /* of one group */
    int64_t lines;                           /* of the columns of one group */
    int64_t chunk;                           /* rows of windows at a time */
    size_t columns;                          /* where they begin in scratch */
};

static struct cm_tensor *result(const struct cm_call *call, int o)
{
    return o < call->n_out ? call->out[o] : NULL;
}

/* Do dY and X have the sizes that the window makes of each other? */
static enum cm_status check_sizes(struct cm_call *call, struct cm_window *window)
{
    const struct cm_shape *x = &call->in[X]->shape, *dy = &call->in[DY]->shape;
    int64_t sizes[CM_MAX_RANK];
    if (is_transposed(call->node)) {
        CM_TRY(cm_conv_transpose_sizes(call->node, window, x->dims + 2, sizes, call->err));
    } else {
        for (int i = 0; i < window->rank; i++)
            sizes[i] = cm_window_count(window, i, x->dims[i + 2]);
    }
    for (int i = 0; i < window->rank; i++)
        if (sizes[i] != dy->dims[i + 2])
            return cm_call_fail(call, CM_BAD_MODEL, "axis %d of dY has %lld, needs %lld", i + 2,
                                (long long)dy->dims[i + 2], (long long)sizes[i]);
    return CM_OK;
}

static enum cm_status check_channels(struct cm_call *call, const struct conv_slopes *s)
{
    const struct cm_shape *image = &call->in[s->transpose ? DY : X]->shape,
                          *windows = &call->in[s->transpose ? X : DY]->shape;
    const struct cm_shape *w = &call->in[W]->shape;
    int64_t image_channels;
    if (image->dims[0] != windows->dims[0] || w->dims[0] % s->group != 0 ||
        windows->dims[1] != w->dims[0] || !cm_dim_mul(w->dims[1], s->group, &image_channels) ||
        image->dims[1] != image_channels)
        return cm_call_fail(call, CM_BAD_MODEL, "the shapes of dY, X and W do not match");
    return CM_OK;
}

static enum cm_status grad_prepare(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[X]->shape, *w = &call->in[W]->shape;
    const struct cm_shape *dy = &call->in[DY]->shape;
    const enum cm_dtype type = call->in[X]->type;
    struct conv_slopes *s = cm_call_state(call, sizeof *s);
    struct cm_window window;
    size_t bytes;
    s->transpose = is_transposed(call->node);
    s->group = cm_node_int(call->node, "group");
    if (w->rank < 3 || x->rank != w->rank || dy->rank != w->rank)
        return cm_call_fail(call, CM_BAD_MODEL, "dY, X and W have ranks %d, %d and %d", dy->rank,
                            x->rank, w->rank);
    CM_TRY(cm_window_read(call->node, w->rank - 2, w->dims + 2, &window, call->err));
    for (int i = 0; i < window.rank; i++)
        if (window.kernel[i] != w->dims[i + 2])
            return cm_call_fail(call, CM_BAD_MODEL, "kernel_shape says %lld, W has %lld",
                                (long long)window.kernel[i], (long long)w->dims[i + 2]);
    CM_TRY(check_channels(call, s));
    CM_TRY(check_sizes(call, &window));
    if (!cm_patch_init(&s->patch, &window, (s->transpose ? dy : x)->dims + 2,
                       (s->transpose ? x : dy)->dims + 2))
        return cm_call_fail(call, CM_LIMIT, "its spatial sizes are too large");
    s->batch = x->dims[0];
    s->image_channels = w->dims[1];
    s->window_channels = w->dims[0] / s->group;
    if (!cm_dim_mul(s->image_channels, s->patch.taps, &s->lines))
        return cm_call_fail(call, CM_LIMIT, "the kernel is too large");
    s->chunk = cm_patch_chunk(&s->patch, s->lines);
    const int64_t width = s->chunk * s->patch.width;
    const size_t products[] = {
        cm_gemm_scratch(type, s->window_channels, s->lines, width),  /* dW */
        cm_gemm_scratch(type, s->lines, width, s->window_channels),  /* dX of Conv */
        cm_gemm_scratch(type, s->window_channels, width, s->lines)}; /* dX of ConvTranspose */
    for (size_t i = 0; i < CM_COUNT(products); i++)
        s->columns = products[i] > s->columns ? products[i] : s->columns;
    s->columns = cm_round_up(s->columns, CM_TENSOR_ALIGNMENT);
    int64_t elements;
    if (!cm_dim_mul(s->lines, width, &elements) || !cm_dtype_bytes(type, elements, &bytes) ||
        !cm_size_add(s->columns, bytes, &bytes))
        return cm_call_fail(call, CM_LIMIT, "the matrix of its windows is too large");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

/* A few rows of the windows of one group of one image; i counts groups over all images. */
static void add_rows(const struct cm_call *call, const struct conv_slopes *s, int64_t i,
                     int64_t row, int64_t rows)
{
    const struct cm_patch *patch = &s->patch;
    const enum cm_dtype type = call->in[X]->type;
    const int64_t group = i % s->group, width = rows * patch->width;
    const int64_t image_at = i * s->image_channels * patch->image_size;
    const int64_t windows_at = i * s->window_channels * patch->columns + row * patch->width;
    const int64_t w_at = group * s->window_channels * s->lines;
    const struct cm_tensor *dx = result(call, D_X), *dw = result(call, D_W);
    const void *image = call->in[s->transpose ? DY : X]->data;
    const struct cm_matrix windows = {call->in[s->transpose ? X : DY]->data, windows_at,
                                      patch->columns, 1};
    char *columns = (char *)call->scratch + s->columns;
    if (dw || (dx && s->transpose))
        for (int64_t c = 0; c < s->image_channels; c++)
            cm_patch_gather(patch, type, image, image_at + c * patch->image_size, row, rows,
                            columns, c * patch->taps * width);
    struct cm_gemm g = {.type = type, .alpha = 1, .beta = 1, .c_column = 1};
    if (dw) {
        g.m = s->window_channels;
        g.n = g.c_row = s->lines;
        g.k = width;
        g.a = windows;
        g.b = (struct cm_matrix){columns, 0, 1, width};
        g.c = dw->data;
        g.c_first = w_at;
        g.add = (struct cm_matrix){dw->data, w_at, s->lines, 1};
        cm_gemm(&g, call->scratch);
        g.add.data = NULL;
    }
    if (dx && s->transpose) {
        g.m = s->window_channels;
        g.n = width;
        g.k = s->lines;
        g.a = (struct cm_matrix){call->in[W]->data, w_at, s->lines, 1};
        g.b = (struct cm_matrix){columns, 0, width, 1};
        g.c = dx->data;
        g.c_first = windows_at;
        g.c_row = patch->columns;
        cm_gemm(&g, call->scratch);
    } else if (dx) {
        g.m = s->lines;
        g.n = g.c_row = width;
        g.k = s->window_channels;
        g.a = (struct cm_matrix){call->in[W]->data, w_at, 1, s->lines};
        g.b = windows;
        g.c = columns;
        g.c_first = 0;
        cm_gemm(&g, call->scratch);
        for (int64_t c = 0; c < s->image_channels; c++)
            cm_patch_scatter(patch, type, columns, c * patch->taps * width, row, rows, dx->data,
                             image_at + c * patch->image_size);
    }
}

static void sum_channels(const struct cm_call *call, struct cm_tensor *db)
{
    const struct cm_tensor *dy = call->in[DY];
    const int64_t channels = dy->shape.dims[1];
    const int64_t size = cm_shape_span(&dy->shape, 2, dy->shape.rank);
    for (int64_t c = 0; c < channels; c++) {
        double sum = 0;
        for (int64_t n = 0; n < dy->shape.dims[0]; n++)
            for (int64_t i = 0; i < size; i++)
                sum += cm_tensor_real(dy, (n * channels + c) * size + i);
        if (db->type == CM_DOUBLE)
            ((double *)db->data)[c] = sum;
        else
            ((float *)db->data)[c] = (float)sum;
    }
}

static enum cm_status grad_run(struct cm_call *call)
{
    const struct conv_slopes *s = call->state;
    for (int o = D_X; o <= D_W; o++)
        if (result(call, o))
            memset(result(call, o)->data, 0, cm_tensor_bytes(result(call, o)));
    if (result(call, D_B))
        sum_channels(call, result(call, D_B));
    for (int64_t i = 0; i < s->batch * s->group; i++) {
        for (int64_t row = 0; row < s->patch.rows; row += s->chunk) {
            const int64_t rest = s->patch.rows - row;
            add_rows(call, s, i, row, rest < s->chunk ? rest : s->chunk);
        }
    }
    return CM_OK;
}

static const struct cm_conv_grad_kind straight = {false}, transposed = {true};

/* As many as the forward operator for dX, and again for dW: that one's product is of what has fewer
 * places, dY of a convolution and X of a transposed one. */
static double grad_flops(const struct cm_node *node, const struct cm_tensor *const *in, int n_in,
                         const struct cm_tensor *const *out, int n_out)
{
    const struct cm_conv_grad_kind *kind = node->op->arg;
    const struct cm_tensor *weights[] = {NULL, in[2]};
    double sum = 0;
    (void)n_in;
    for (int o = D_X; o <= D_W && o < n_out; o++)
        if (out[o])
            sum += cm_flops_conv(node, weights, 2, &in[kind->transpose ? 1 : 0], 1);
    return sum;
}

CM_OP_IN(cameo, "ai.cameo", ConvGrad, .infer = grad_infer, .prepare = grad_prepare, .run = grad_run,
         .cost.flops = grad_flops, .body = cm_conv_grad_body, .arg = &straight);
CM_OP_IN(cameo, "ai.cameo", ConvTransposeGrad, .infer = grad_infer, .prepare = grad_prepare,
         .run = grad_run, .cost.flops = grad_flops, .body = cm_conv_grad_body, .arg = &transposed);
