/* A tensor seen from one axis: lanes of `length` elements, `inner` apart. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_COMMON_LANES_H
#define CM_OPS_COMMON_LANES_H

#include "graph/op.h"

/* The shape as outer x length x inner. */
struct cm_lanes {
    int64_t outer, length, inner;
};

struct cm_lanes cm_lanes_of(const struct cm_shape *shape, int axis);
/* The same along the node's attribute `axis`, which is checked. */
enum cm_status cm_lanes_read(struct cm_call *call, const struct cm_shape *shape,
                             struct cm_lanes *out) CM_MUST_CHECK;
/* The first element of lane number `lane`. */
int64_t cm_lanes_first(const struct cm_lanes *lanes, int64_t lane);

/* In inference: output 0 is like input i, whose rank admits the attribute `axis`. */
enum cm_status cm_lanes_infer(struct cm_infer *in, int i) CM_MUST_CHECK;

#endif
