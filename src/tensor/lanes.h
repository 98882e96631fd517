/* A tensor seen from one axis: lanes of `length` elements, `inner` apart. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TENSOR_LANES_H
#define CM_TENSOR_LANES_H

#include "tensor/shape.h"

/* The shape as outer x length x inner. */
struct cm_lanes {
    int64_t outer, length, inner;
};

struct cm_lanes cm_lanes_of(const struct cm_shape *shape, int axis);
/* The first element of lane number `lane`. */
int64_t cm_lanes_first(const struct cm_lanes *lanes, int64_t lane);

#endif
