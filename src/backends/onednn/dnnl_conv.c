/* Convolution and its transpose, of one to three spatial axes, with groups and bias. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/onednn/dnnl_product.h"

/* (out, in / groups, kernel..) as (groups, out / groups, in / groups, kernel..): the same bytes. */
static void split_groups(struct cm_dnnl_operand *weights, int64_t groups)
{
    memmove(weights->dims + 1, weights->dims, (size_t)weights->rank * sizeof weights->dims[0]);
    weights->rank++;
    weights->dims[0] = groups;
    weights->dims[1] /= groups;
}

/* Channels last comes first: it is as fast as blocks of channels, never needs padding, and steps
 * that work element by element or by channel can keep it. */
static bool choose_order(struct cm_call *call, struct cm_dnnl_conv *conv,
                         bool (*make)(struct cm_call *, const struct cm_dnnl_conv *))
{
    static const struct {
        enum cm_dnnl_order order;
        bool direct;
    } wishes[] = {
        {CM_DNNL_CHANNELS_LAST, true},
        {CM_DNNL_FREE, true},
        {CM_DNNL_GIVEN, false},
        {CM_DNNL_FREE, false},
    };
    for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++) {
        conv->x.order = wishes[i].order;
        conv->y.order = wishes[i].order == CM_DNNL_GIVEN ? CM_DNNL_FREE : wishes[i].order;
        conv->direct = wishes[i].direct;
        if (make(call, conv))
            return true;
    }
    return false;
}

static bool read_operands(struct cm_call *call, const struct cm_dnnl_product *product,
                          struct cm_dnnl_conv *conv)
{
    if (!cm_dnnl_suits(call))
        return false;
    const struct cm_shape *x = &call->in[product->in[0]]->shape;
    const struct cm_shape *weights = &call->in[product->in[1]]->shape;
    const int rank = x->rank - 2;
    if (rank < 1 || rank > 3)
        return cm_call_decline(call, "it has %d spatial axes", rank);
    if (!cm_dnnl_operand(call, CM_DNNL_IN(product->in[0]), CM_DNNL_FREE, &conv->x) ||
        !cm_dnnl_operand(call, CM_DNNL_IN(product->in[1]), CM_DNNL_FREE, &conv->weights) ||
        !cm_dnnl_operand(call, CM_DNNL_OUT(0), CM_DNNL_FREE, &conv->y) ||
        (product->in[2] >= 0 &&
         !cm_dnnl_operand(call, CM_DNNL_IN(product->in[2]), CM_DNNL_PLAIN, &conv->bias)))
        return cm_call_decline(call, "its rank is too high");
    return cm_dnnl_read_window(call, product->node, x, weights->dims + 2, &conv->window) &&
           cm_dnnl_set_followers(call, product, CM_DNNL_CHANNELS_AT_1, &conv->y, &conv->bias,
                                 &conv->posts);
}

bool cm_dnnl_accept_conv(struct cm_call *call, const struct cm_dnnl_product *product)
{
    struct cm_dnnl_conv conv = {0};
    if (!read_operands(call, product, &conv))
        return false;
    const int64_t groups = cm_node_int(product->node, "group");
    if (groups > 1)
        split_groups(&conv.weights, groups);
    return choose_order(call, &conv, cm_dnnl_make_conv);
}

static bool conv_accepts(struct cm_call *call)
{
    const struct cm_dnnl_product product = cm_dnnl_lone_product(call);
    return cm_dnnl_accept_conv(call, &product);
}

CM_KERNEL(onednn, Conv, .accepts = conv_accepts, .prepare = cm_dnnl_prepare, .run = cm_dnnl_run,
          .layouts = CM_LAYOUT_CHOSEN);

/* ---- transposed ---- */

/* ONNX has the weights of a transposed convolution as (in, out / groups, kernel..); oneDNN sees the
 * two exchanged, by strides. */
static void exchange_channels(struct cm_dnnl_operand *weights, int groups)
{
    const int first = groups > 1; /* the axis after that of groups */
    int64_t step = 1;
    if (groups > 1)
        split_groups(weights, groups);
    for (int i = weights->rank - 1; i >= 0; i--) {
        weights->strides[i] = step;
        step *= weights->dims[i];
    }
    const int64_t in = weights->dims[first], in_stride = weights->strides[first];
    weights->dims[first] = weights->dims[first + 1];
    weights->strides[first] = weights->strides[first + 1];
    weights->dims[first + 1] = in;
    weights->strides[first + 1] = in_stride;
}

/* oneDNN derives no sizes: the pad at the end is what makes them fit, output_padding included. */
static void fit_pads(const struct cm_shape *x, const struct cm_shape *y, struct cm_dnnl_window *w)
{
    for (int i = 0; i < w->rank; i++) {
        const int64_t extent = (w->kernel[i] - 1) * w->dilation[i] + 1;
        const int64_t reach = (x->dims[i + 2] - 1) * w->stride[i] + extent;
        w->pad_end[i] = reach - y->dims[i + 2] - w->pad_begin[i];
    }
}

bool cm_dnnl_accept_conv_transpose(struct cm_call *call, const struct cm_dnnl_product *product)
{
    struct cm_dnnl_conv conv = {0};
    const struct cm_str automatic = cm_node_str(product->node, "auto_pad");
    if (cm_str_starts(automatic, "SAME") || cm_node_ints(product->node, "output_shape").count)
        return cm_call_decline(call, "its pads follow from the size of its result");
    if (!read_operands(call, product, &conv))
        return false;
    const int64_t groups = cm_node_int(product->node, "group");
    if (groups > INT32_MAX)
        return cm_call_decline(call, "it has too many groups");
    exchange_channels(&conv.weights, (int)groups);
    fit_pads(&call->in[product->in[0]]->shape, &call->out[0]->shape, &conv.window);
    return choose_order(call, &conv, cm_dnnl_make_deconv);
}

static bool conv_transpose_accepts(struct cm_call *call)
{
    const struct cm_dnnl_product product = cm_dnnl_lone_product(call);
    return cm_dnnl_accept_conv_transpose(call, &product);
}

CM_KERNEL(onednn, ConvTranspose, .accepts = conv_transpose_accepts, .prepare = cm_dnnl_prepare,
          .run = cm_dnnl_run, .layouts = CM_LAYOUT_CHOSEN);

/* ---- gradients ---- */

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
        return cm_call_decline(call, "it has %d spatial axes", rank);
    if (dy->rank != x->rank || weights->rank != x->rank || groups < 1 || groups > INT32_MAX ||
        weights->dims[0] % groups)
        return cm_call_decline(call, "its operands do not fit each other");
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
            return cm_call_decline(call, "its rank is too high");
    grad->db.order = CM_DNNL_PLAIN;
    grad->dw.order = CM_DNNL_MOVED; /* weights and what optimizers keep of them are rows */
    if (!cm_dnnl_read_window_to(call, call->node, x, dy, weights->dims + 2, &grad->window))
        return false;
    struct cm_dnnl_operand *const kernels[] = {&grad->weights, &grad->dw};
    for (size_t i = 0; i < CM_COUNT(kernels); i++) {
        if (kernels[i]->rank && grad->transposed)
            exchange_channels(kernels[i], (int)groups);
        else if (kernels[i]->rank && groups > 1)
            split_groups(kernels[i], groups);
    }
    if (grad->transposed)
        fit_pads(x, dy, &grad->window);
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

static bool conv_grad_accepts(struct cm_call *call)
{
    struct cm_dnnl_conv_grad grad = {.transposed = false};
    return read_gradients(call, &grad) && choose_gradient_order(call, &grad);
}

bool cm_dnnl_accept_conv_data(struct cm_call *call)
{
    struct cm_dnnl_conv_grad grad = {.direct = true};
    if (!read_gradients(call, &grad))
        return false;
    grad.x.order = grad.dx.order = grad.dy.order = CM_DNNL_CHANNELS_LAST;
    grad.dw.rank = grad.db.rank = 0;
    return cm_dnnl_make_conv_grad(call, &grad);
}

static bool conv_transpose_grad_accepts(struct cm_call *call)
{
    struct cm_dnnl_conv_grad grad = {.transposed = true};
    const struct cm_str automatic = cm_node_str(call->node, "auto_pad");
    if (cm_str_starts(automatic, "SAME") || cm_node_ints(call->node, "output_shape").count)
        return cm_call_decline(call, "its pads follow from the size of its result");
    return read_gradients(call, &grad) && choose_gradient_order(call, &grad);
}

CM_KERNEL_IN(onednn, "ai.cameo", ConvGrad, .accepts = conv_grad_accepts, .prepare = cm_dnnl_prepare,
             .run = cm_dnnl_run, .layouts = CM_LAYOUT_CHOSEN);
CM_KERNEL_IN(onednn, "ai.cameo", ConvTransposeGrad, .accepts = conv_transpose_grad_accepts,
             .prepare = cm_dnnl_prepare, .run = cm_dnnl_run, .layouts = CM_LAYOUT_CHOSEN);
