/* What the kernels of this backend ask of a call before they describe it to oneDNN. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_ONEDNN_DNNL_OPERAND_H
#define CM_BACKENDS_ONEDNN_DNNL_OPERAND_H

#include "backends/onednn/dnnl.h"

/* Float32, not empty, and of a size that 32 bits can count, every tensor of the call; declines
 * otherwise. */
bool cm_dnnl_suits(struct cm_call *call);
/* Does input i lie in one of our layouts? */
bool cm_dnnl_has_layout(const struct cm_call *call, int i);
/* The window that a node of Conv or of pooling slides over a tensor of shape x to fill output 0;
 * kernel holds the spatial sizes of the kernel. Declines what oneDNN cannot do. */
bool cm_dnnl_read_window(struct cm_call *call, const struct cm_node *node, const struct cm_shape *x,
                         const int64_t *kernel, struct cm_dnnl_window *out);
/* The same where the result is not output 0 and has shape y. */
bool cm_dnnl_read_window_to(struct cm_call *call, const struct cm_node *node,
                            const struct cm_shape *x, const struct cm_shape *y,
                            const int64_t *kernel, struct cm_dnnl_window *out);

#endif
