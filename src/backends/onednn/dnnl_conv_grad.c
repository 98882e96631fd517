/* ConvGrad and ConvTransposeGrad: dX and dW, with the gradient of the bias, by a primitive each.
 *
 * With a group per channel, oneDNN has a kernel for dW of 3 x 3 alone; all others it treats like
 * any group, vectors with one channel in use: 3 to 7 GFLOP/s where our own sums have 40. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/depthwise.h"
#include "backends/onednn/dnnl_product.h"

#include "base/number.h"
#include "graph/backend.h"

enum { DY, X, W };      /* operands */
enum { D_X, D_W, D_B }; /* results */

static bool is_wanted(const struct cm_call *call, int o)
{
    return o < call->n_out && call->out[o];
}

static bool read_gradients(struct cm_call *call, struct cm_dnnl_conv_grad *grad)
{
    if (!cm_dnnl_suits(call))
        return false;
    const struct cm_shape *x = &call->in[X]->shape, *dy = &call->in[DY]->shape;
    const struct cm_shape *weights = &call->in[W]->shape;
    const int64_t groups = cm_node_int(call->node, "group");
    const int rank = x->rank - 2;
    if (rank < 1 || rank > 3)
        return cm_call_decline(call, "the image has %d spatial axes", rank);
    if (dy->rank != x->rank || weights->rank != x->rank || groups < 1 || groups > INT32_MAX ||
        weights->dims[0] % groups)
        return cm_call_decline(call, "the operands do not fit each other");
    if (is_wanted(call, D_B) && !is_wanted(call, D_W))
        return cm_call_decline(call, "the gradient of the bias is wanted, not that of W");
    const struct {
        int place;
        struct cm_dnnl_operand *operand;
    } all[] = {{CM_DNNL_IN(DY), &grad->dy},     {CM_DNNL_IN(X), &grad->x},
               {CM_DNNL_IN(W), &grad->weights}, {CM_DNNL_OUT(D_X), &grad->dx},
               {CM_DNNL_OUT(D_W), &grad->dw},   {CM_DNNL_OUT(D_B), &grad->db}};
    for (size_t i = 0; i < CM_COUNT(all); i++)
        if ((all[i].place >= 0 || is_wanted(call, ~all[i].place)) &&
            !cm_dnnl_operand(call, all[i].place, CM_DNNL_FREE, all[i].operand))
            return false;
    grad->db.order = CM_DNNL_PLAIN;
    grad->dw.order = CM_DNNL_MOVED; /* weights and what optimizers keep of them are rows */
    if (!cm_dnnl_read_window_to(call, call->node, x, dy, weights->dims + 2, &grad->window))
        return false;
    struct cm_dnnl_operand *const kernels[] = {&grad->weights, &grad->dw};
    for (size_t i = 0; i < CM_COUNT(kernels); i++) {
        if (kernels[i]->rank && grad->transposed)
            cm_dnnl_exchange_channels(kernels[i], (int)groups);
        else if (kernels[i]->rank && groups > 1)
            cm_dnnl_split_groups(kernels[i], groups);
    }
    if (grad->transposed)
        cm_dnnl_fit_pads(x, dy, &grad->window);
    return true;
}

/* In the layouts that the forward convolution would have. */
static bool choose_gradient_order(struct cm_call *call, struct cm_dnnl_conv_grad *grad)
{
    static const struct {
        enum cm_dnnl_order order;
        bool direct;
    } wishes[] = {{CM_DNNL_CHANNELS_LAST, true}, {CM_DNNL_FREE, true}, {CM_DNNL_PLAIN, false}};
    for (size_t i = 0; i < CM_COUNT(wishes); i++) {
        grad->x.order = grad->dx.order = grad->dy.order = wishes[i].order;
        grad->direct = wishes[i].direct;
        if (cm_dnnl_make_conv_grad(call, grad))
            return true;
    }
    return false;
}

/* ---- dW of depthwise kernels, by ourselves ---- */

struct conv_grad_call {
    void *work;                      /* oneDNN's part; NULL: none */
    struct cm_depthwise_sizes sizes; /* of our own part; no channels: none */
};

/* Does the size of dY follow from that of X? */
static bool fits(const struct cm_dnnl_window *w, int axis, int64_t image, int64_t result)
{
    const int64_t extent = (w->kernel[axis] - 1) * w->dilation[axis] + 1;
    const int64_t room = image + w->pad_begin[axis] + w->pad_end[axis] - extent;
    return room >= 0 && result == room / w->stride[axis] + 1;
}

/* Is dW for us? */
static bool read_depthwise(const struct cm_call *call, const struct cm_dnnl_window *w,
                           struct cm_depthwise_sizes *out)
{
    const struct cm_shape *x = &call->in[X]->shape, *dy = &call->in[DY]->shape;
    const int64_t channels = x->dims[1];
    if (!is_wanted(call, D_W) || w->rank != 2 || (w->kernel[0] == 3 && w->kernel[1] == 3) ||
        channels < CM_DEPTHWISE_LANES || cm_node_int(call->node, "group") != channels ||
        call->in[W]->shape.dims[0] != channels || call->in[W]->shape.dims[1] != 1 ||
        dy->dims[0] != x->dims[0] || dy->dims[1] != channels || !cm_dnnl_found().version[0])
        return false;
    struct cm_depthwise_sizes sizes = {.images = x->dims[0], .channels = channels};
    for (int i = 0; i < 2; i++) {
        if (!fits(w, i, x->dims[i + 2], dy->dims[i + 2]))
            return false;
        sizes.image[i] = x->dims[i + 2];
        sizes.result[i] = dy->dims[i + 2];
        sizes.kernel[i] = w->kernel[i];
        sizes.stride[i] = w->stride[i];
        sizes.dilation[i] = w->dilation[i];
        sizes.pad[i] = w->pad_begin[i];
    }
    *out = sizes;
    return true;
}

static bool accept_depthwise(struct cm_call *call, struct cm_dnnl_conv_grad grad,
                             struct conv_grad_call *made)
{
    if (!read_depthwise(call, &grad.window, &made->sizes))
        return false;
    grad.dx.order = grad.dy.order = CM_DNNL_CHANNELS_LAST;
    grad.dw.rank = grad.db.rank = 0;
    grad.direct = true;
    if (grad.dx.rank && !cm_dnnl_make_conv_grad(call, &grad)) {
        made->sizes.channels = 0;
        return false;
    }
    made->work = grad.dx.rank ? call->state : NULL;
    return true;
}

static enum cm_status prepare_depthwise(struct cm_call *call, const struct cm_depthwise_sizes *s,
                                        size_t *scratch_bytes)
{
    const struct cm_layout *layout;
    int64_t floats;
    if (!cm_dim_mul(s->kernel[0], s->kernel[1], &floats) ||
        !cm_dim_mul(floats, s->channels, &floats) ||
        !cm_dim_mul(floats, cm_depthwise_parts(s), &floats) ||
        !cm_dtype_bytes(CM_FLOAT, floats, scratch_bytes))
        return cm_call_fail(call, CM_LIMIT, "its kernels are too large");
    for (int i = DY; i <= X; i++) {
        CM_TRY(cm_dnnl_channels_last(call, &call->in[i]->shape, &layout));
        cm_call_want_layout(call, i, layout);
    }
    return CM_OK;
}

/* ---- the kernels ---- */

static bool conv_grad_accepts(struct cm_call *call)
{
    struct cm_dnnl_conv_grad grad = {.transposed = false};
    struct conv_grad_call made = {.work = NULL};
    if (!read_gradients(call, &grad))
        return false;
    if (!accept_depthwise(call, grad, &made)) {
        if (!choose_gradient_order(call, &grad))
            return false;
        made.work = call->state;
    }
    *(struct conv_grad_call *)cm_call_state(call, sizeof made) = made;
    return true;
}

static enum cm_status conv_grad_prepare(struct cm_call *call)
{
    const struct conv_grad_call *made = call->state;
    size_t scratch_bytes = 0;
    if (made->sizes.channels)
        CM_TRY(prepare_depthwise(call, &made->sizes, &scratch_bytes));
    return cm_dnnl_prepare_state(call, made->work, scratch_bytes);
}

static enum cm_status conv_grad_run(struct cm_call *call)
{
    const struct conv_grad_call *made = call->state;
    const float *dy = call->in[DY]->data;
    CM_TRY(cm_dnnl_run_state(call, made->work));
    if (made->sizes.channels)
        cm_depthwise_weight_gradient(&made->sizes, call->in[X]->data, dy, call->scratch,
                                     call->out[D_W]->data);
    if (made->sizes.channels && is_wanted(call, D_B))
        cm_depthwise_bias_gradient(&made->sizes, dy, call->out[D_B]->data);
    return CM_OK;
}

static bool conv_transpose_grad_accepts(struct cm_call *call)
{
    struct cm_dnnl_conv_grad grad = {.transposed = true};
    const struct cm_str automatic = cm_node_str(call->node, "auto_pad");
    if (cm_str_starts(automatic, "SAME") || cm_node_ints(call->node, "output_shape").count)
        return cm_call_decline(call, "the padding follows from the size of the result");
    return read_gradients(call, &grad) && choose_gradient_order(call, &grad);
}

CM_KERNEL_IN(onednn, "ai.cameo", ConvGrad, .label = "oneDNN convolution gradient",
             .accepts = conv_grad_accepts, .prepare = conv_grad_prepare, .run = conv_grad_run,
             .layouts = CM_LAYOUT_CHOSEN);
CM_KERNEL_IN(onednn, "ai.cameo", ConvTransposeGrad,
             .label = "oneDNN transposed convolution gradient",
             .accepts = conv_transpose_grad_accepts, CM_DNNL_RUNS);
