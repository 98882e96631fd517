/* Operators that work along the lanes of their attribute `axis`. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_COMMON_ALONG_AXIS_H
#define CM_OPS_COMMON_ALONG_AXIS_H

#include "graph/op.h"
#include "tensor/lanes.h"

/* The lanes along the node's attribute `axis`, which is checked. */
enum cm_status cm_lanes_read(struct cm_call *call, const struct cm_shape *shape,
                             struct cm_lanes *out) CM_MUST_CHECK;
/* In inference: output 0 is like input i, whose rank admits the attribute `axis`. */
enum cm_status cm_lanes_infer(struct cm_infer *in, int i) CM_MUST_CHECK;

#endif
