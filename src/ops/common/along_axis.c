/* The attribute `axis`: lanes in a run, ranks in inference. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/common/along_axis.h"

enum cm_status cm_lanes_read(struct cm_call *call, const struct cm_shape *shape,
                             struct cm_lanes *out)
{
    int axis;
    if (!cm_axis_fix(cm_node_int(call->node, "axis"), shape->rank, &axis))
        return cm_call_fail(call, CM_BAD_MODEL, "axis is out of range for rank %d", shape->rank);
    *out = cm_lanes_of(shape, axis);
    return CM_OK;
}

enum cm_status cm_lanes_infer(struct cm_infer *in, int i)
{
    const struct cm_type *x = cm_infer_type(in, i);
    int axis;
    if (x->rank != CM_RANK_UNKNOWN)
        CM_TRY(cm_infer_axis(in, cm_node_int(in->node, "axis"), x->rank, false, &axis));
    return cm_infer_set(in, 0, x);
}
