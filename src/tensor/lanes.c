/* Lanes along an axis. */
// SPDX-License-Identifier: Apache-2.0
#include "tensor/lanes.h"

struct cm_lanes cm_lanes_of(const struct cm_shape *shape, int axis)
{
    return (struct cm_lanes){cm_shape_span(shape, 0, axis), shape->dims[axis],
                             cm_shape_span(shape, axis + 1, shape->rank)};
}

int64_t cm_lanes_first(const struct cm_lanes *lanes, int64_t lane)
{
    return lane / lanes->inner * lanes->length * lanes->inner + lane % lanes->inner;
}
