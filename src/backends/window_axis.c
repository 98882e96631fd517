/* Reading windows. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/window_axis.h"

static bool in_range(int64_t value, int64_t least)
{
    return value >= least && value <= CM_WINDOW_MOST;
}

bool cm_window_axis_read(struct cm_call *call, const struct cm_node *node, int axis, int rank,
                         int64_t kernel, int64_t size, int64_t result, struct cm_window_axis *out)
{
    const struct cm_int64s strides = cm_node_ints(node, "strides");
    const struct cm_int64s dilations = cm_node_ints(node, "dilations");
    const struct cm_int64s pads = cm_node_ints(node, "pads");
    const struct cm_str automatic = cm_node_str(node, "auto_pad");
    const bool upper = cm_str_is(automatic, "SAME_UPPER");
    const size_t at = (size_t)axis;
    *out = (struct cm_window_axis){.kernel = kernel,
                                   .stride = at < strides.count ? strides.items[at] : 1,
                                   .dilation = at < dilations.count ? dilations.items[at] : 1};
    if (!in_range(kernel, 1) || !in_range(out->stride, 1) || !in_range(out->dilation, 1))
        return cm_call_decline(call, "the window is larger than %d", CM_WINDOW_MOST);
    if (upper || cm_str_is(automatic, "SAME_LOWER")) {
        /* What the windows need beyond the input, split in two; the odd one goes to the end (upper)
         * or to the beginning (lower). */
        const int64_t extent = (kernel - 1) * out->dilation + 1;
        const int64_t reach = (result - 1) * out->stride + extent;
        const int64_t total = reach > size ? reach - size : 0;
        out->pad_begin = upper ? total / 2 : total - total / 2;
        out->pad_end = total - out->pad_begin;
    } else if (!cm_str_is(automatic, "VALID") && pads.count == 2 * (size_t)rank) {
        out->pad_begin = pads.items[at];
        out->pad_end = pads.items[at + (size_t)rank];
    }
    return (in_range(out->pad_begin, 0) && in_range(out->pad_end, 0)) ||
           cm_call_decline(call, "the padding is negative or larger than %d", CM_WINDOW_MOST);
}
