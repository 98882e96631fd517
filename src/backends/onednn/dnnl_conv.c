/* Convolution and its transpose, of one to three spatial axes, with groups and bias. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/onednn/dnnl_product.h"
#include "graph/backend.h"

/* (out, in / groups, kernel..) as (groups, out / groups, in / groups, kernel..): the same bytes. */
void cm_dnnl_split_groups(struct cm_dnnl_operand *weights, int64_t groups)
{
    memmove(weights->dims + 1, weights->dims, (size_t)weights->rank * sizeof weights->dims[0]);
    weights->rank++;
    weights->dims[0] = groups;
    weights->dims[1] /= groups;
}

/* Channels last comes first: it is as fast as blocks of channels, never needs padding, and steps
 * that work element by element or by channel can keep it. */
static bool choose_order(struct cm_call *call, struct cm_dnnl_conv *conv)
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
    for (size_t i = 0; i < CM_COUNT(wishes); i++) {
        conv->x.order = wishes[i].order;
        conv->y.order = wishes[i].order == CM_DNNL_GIVEN ? CM_DNNL_FREE : wishes[i].order;
        conv->direct = wishes[i].direct;
        if (cm_dnnl_make_conv(call, conv))
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
        return cm_call_decline(call, "the image has %d spatial axes", rank);
    if (!cm_dnnl_operand(call, CM_DNNL_IN(product->in[0]), CM_DNNL_FREE, &conv->x) ||
        !cm_dnnl_operand(call, CM_DNNL_IN(product->in[1]), CM_DNNL_FREE, &conv->weights) ||
        !cm_dnnl_operand(call, CM_DNNL_OUT(0), CM_DNNL_FREE, &conv->y) ||
        (product->in[2] >= 0 &&
         !cm_dnnl_operand(call, CM_DNNL_IN(product->in[2]), CM_DNNL_PLAIN, &conv->bias)))
        return false;
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
        cm_dnnl_split_groups(&conv.weights, groups);
    return choose_order(call, &conv);
}

static bool conv_accepts(struct cm_call *call)
{
    const struct cm_dnnl_product product = cm_dnnl_lone_product(call);
    return cm_dnnl_accept_conv(call, &product);
}

CM_KERNEL(onednn, Conv, .label = "oneDNN convolution", .accepts = conv_accepts, CM_DNNL_RUNS);

/* ---- transposed ---- */

/* ONNX has the weights of a transposed convolution as (in, out / groups, kernel..); oneDNN sees the
 * two exchanged, by strides. */
void cm_dnnl_exchange_channels(struct cm_dnnl_operand *weights, int groups)
{
    const int first = groups > 1; /* the axis after that of groups */
    int64_t step = 1;
    if (groups > 1)
        cm_dnnl_split_groups(weights, groups);
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
void cm_dnnl_fit_pads(const struct cm_shape *x, const struct cm_shape *y, struct cm_dnnl_window *w)
{
    for (int i = 0; i < w->rank; i++) {
        const int64_t extent = (w->kernel[i] - 1) * w->dilation[i] + 1;
        const int64_t reach = (x->dims[i + 2] - 1) * w->stride[i] + extent;
        w->pad_end[i] = reach - y->dims[i + 2] - w->pad_begin[i];
    }
}

bool cm_dnnl_accept_conv_transpose(struct cm_call *call, const struct cm_dnnl_product *product)
{
    struct cm_dnnl_conv conv = {.transposed = true};
    const struct cm_str automatic = cm_node_str(product->node, "auto_pad");
    if (cm_str_starts(automatic, "SAME") || cm_node_ints(product->node, "output_shape").count)
        return cm_call_decline(call, "the padding follows from the size of the result");
    if (!read_operands(call, product, &conv))
        return false;
    const int64_t groups = cm_node_int(product->node, "group");
    if (groups > INT32_MAX)
        return cm_call_decline(call, "the convolution has too many groups");
    cm_dnnl_exchange_channels(&conv.weights, (int)groups);
    cm_dnnl_fit_pads(&call->in[product->in[0]]->shape, &call->out[0]->shape, &conv.window);
    return choose_order(call, &conv);
}

static bool conv_transpose_accepts(struct cm_call *call)
{
    const struct cm_dnnl_product product = cm_dnnl_lone_product(call);
    return cm_dnnl_accept_conv_transpose(call, &product);
}

CM_KERNEL(onednn, ConvTranspose, .label = "oneDNN transposed convolution",
          .accepts = conv_transpose_accepts, CM_DNNL_RUNS);
