/* What other backends may know of oneDNN's layouts. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/channels_last.h"

#include "backends/onednn/dnnl_operand.h"

bool cm_channels_last_found(void)
{
    return cm_dnnl_found().version[0] != 0;
}

enum cm_status cm_channels_last(struct cm_call *call, const struct cm_shape *shape,
                                const struct cm_layout **out)
{
    return cm_dnnl_channels_last(call, shape, out);
}

bool cm_conv_window_read(struct cm_call *call, const struct cm_node *conv, const struct cm_shape *x,
                         const struct cm_shape *weights, struct cm_conv_window *out)
{
    struct cm_dnnl_window w;
    if (!cm_dnnl_suits(call))
        return false;
    if (x->rank < 3 || x->rank > 2 + CM_CHANNELS_LAST_AXES)
        return cm_call_decline(call, "the image has %d spatial axes", x->rank - 2);
    if (!cm_dnnl_read_window(call, conv, x, weights->dims + 2, &w))
        return false;
    out->rank = w.rank;
    for (int i = 0; i < w.rank; i++) {
        out->kernel[i] = w.kernel[i];
        out->stride[i] = w.stride[i];
        out->dilation[i] = w.dilation[i];
        out->pad_begin[i] = w.pad_begin[i];
        out->pad_end[i] = w.pad_end[i];
    }
    return true;
}
