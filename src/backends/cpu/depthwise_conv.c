/* ConvGrad with a group per channel and a kernel that is not 3 x 3: dX by oneDNN, dW by ourselves,
 * because oneDNN treats it like any group there, vectors with one channel in use: 3 to 7 GFLOP/s
 * where this has 40. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/depthwise.h"
#include "backends/onednn/dnnl_product.h"

#include "base/number.h"

enum { DY, X, W };      /* operands */
enum { D_X, D_W, D_B }; /* results */

struct depthwise_call {
    struct cm_depthwise_sizes sizes;
    void *data; /* oneDNN's state; NULL: dX is not wanted */
};

static struct cm_tensor *result(const struct cm_call *call, int o)
{
    return o < call->n_out ? call->out[o] : NULL;
}

/* Does the size of dY follow from that of X? */
static bool fits(const struct cm_dnnl_window *w, int axis, int64_t image, int64_t result)
{
    const int64_t extent = (w->kernel[axis] - 1) * w->dilation[axis] + 1;
    const int64_t room = image + w->pad_begin[axis] + w->pad_end[axis] - extent;
    return room >= 0 && result == room / w->stride[axis] + 1;
}

static bool read_sizes(struct cm_call *call, struct cm_depthwise_sizes *out)
{
    const struct cm_shape *x = &call->in[X]->shape, *w = &call->in[W]->shape;
    const struct cm_shape *dy = &call->in[DY]->shape;
    struct cm_dnnl_window window;
    if (!cm_dnnl_suits(call))
        return false;
    if (x->rank != 4 || w->rank != 4 || dy->rank != 4)
        return cm_call_decline(call, "it has %d spatial axes", x->rank - 2);
    const int64_t channels = x->dims[1];
    if (cm_node_int(call->node, "group") != channels || w->dims[0] != channels || w->dims[1] != 1)
        return cm_call_decline(call, "its groups are not single channels");
    if (dy->dims[0] != x->dims[0] || dy->dims[1] != channels)
        return cm_call_decline(call, "its operands do not fit each other");
    if (channels < CM_DEPTHWISE_LANES)
        return cm_call_decline(call, "it has fewer than %d channels", CM_DEPTHWISE_LANES);
    if (!cm_dnnl_read_window_to(call, call->node, x, dy, w->dims + 2, &window))
        return false;
    *out = (struct cm_depthwise_sizes){.images = x->dims[0], .channels = channels};
    for (int i = 0; i < 2; i++) {
        if (!fits(&window, i, x->dims[i + 2], dy->dims[i + 2]))
            return cm_call_decline(call, "its operands do not fit each other");
        out->image[i] = x->dims[i + 2];
        out->result[i] = dy->dims[i + 2];
        out->kernel[i] = window.kernel[i];
        out->stride[i] = window.stride[i];
        out->dilation[i] = window.dilation[i];
        out->pad[i] = window.pad_begin[i];
    }
    return true;
}

static bool accepts(struct cm_call *call)
{
    struct cm_depthwise_sizes s;
    if (!result(call, D_W))
        return cm_call_decline(call, "the gradient of W is not wanted");
    if (!read_sizes(call, &s))
        return false;
    if (s.kernel[0] == 3 && s.kernel[1] == 3)
        return cm_call_decline(call, "its kernel is 3 x 3: oneDNN is as fast");
    if (!cm_dnnl_found().version[0])
        return cm_call_decline(call, "its operands lie in rows without oneDNN");
    return !result(call, D_X) || cm_dnnl_accept_conv_data(call);
}

static enum cm_status prepare(struct cm_call *call)
{
    void *data = result(call, D_X) ? call->state : NULL;
    struct depthwise_call d = {.data = data};
    const struct cm_layout *layout;
    int64_t floats;
    size_t bytes;
    if (!read_sizes(call, &d.sizes))
        return cm_call_fail(call, CM_UNSUPPORTED, "its sizes changed");
    if (!cm_dim_mul(d.sizes.kernel[0], d.sizes.kernel[1], &floats) ||
        !cm_dim_mul(floats, d.sizes.channels, &floats) ||
        !cm_dim_mul(floats, cm_depthwise_parts(&d.sizes), &floats) ||
        !cm_dtype_bytes(CM_FLOAT, floats, &bytes))
        return cm_call_fail(call, CM_LIMIT, "its kernels are too large");
    if (data)
        CM_TRY(cm_dnnl_prepare_with(call, bytes));
    else
        cm_call_scratch(call, bytes);
    for (int i = DY; i <= X; i++) {
        CM_TRY(cm_dnnl_channels_last(call, &call->in[i]->shape, &layout));
        cm_call_want_layout(call, i, layout);
    }
    *(struct depthwise_call *)cm_call_state(call, sizeof d) = d;
    return CM_OK;
}

static enum cm_status run(struct cm_call *call)
{
    const struct depthwise_call *d = call->state;
    const float *dy = call->in[DY]->data;
    if (d->data)
        CM_TRY(cm_dnnl_run_state(call, d->data));
    cm_depthwise_weight_gradient(&d->sizes, call->in[X]->data, dy, call->scratch,
                                 call->out[D_W]->data);
    if (result(call, D_B))
        cm_depthwise_bias_gradient(&d->sizes, dy, call->out[D_B]->data);
    return CM_OK;
}

CM_KERNEL_IN(cpu, "ai.cameo", ConvGrad, .accepts = accepts, .prepare = prepare, .run = run,
             .layouts = CM_LAYOUT_CHOSEN);
