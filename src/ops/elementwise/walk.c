/* Walking several broadcast operands. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/walk.h"

/* Along axis `outer` every operand goes on where axis `inner` (n elements) left it: the two are one
 * axis. */
static bool mergeable(const struct cm_walk *walk, int inner, const int64_t *strides)
{
    for (int i = 0; i < walk->n_operands; i++)
        if (strides[i * CM_MAX_RANK] != walk->operands[i].strides[inner] * walk->dims[inner])
            return false;
    return true;
}

/* The innermost axis becomes the run. */
static void take_run(struct cm_walk *walk)
{
    walk->run = walk->rank > 0 ? walk->dims[0] : 1;
    for (int i = 0; i < walk->n_operands; i++) {
        struct cm_walk_operand *operand = &walk->operands[i];
        operand->step = walk->rank > 0 && operand->strides[0] != 0;
        memmove(operand->strides, operand->strides + 1,
                (CM_MAX_RANK - 1) * sizeof operand->strides[0]);
    }
    memmove(walk->dims, walk->dims + 1, (CM_MAX_RANK - 1) * sizeof walk->dims[0]);
    walk->rank = walk->rank > 0 ? walk->rank - 1 : 0;
}

struct cm_walk *cm_walk_plan(struct cm_call *call)
{
    const struct cm_shape *y = &call->out[0]->shape;
    const size_t n = (size_t)call->n_in;
    struct cm_walk *walk = cm_call_state(call, sizeof *walk + n * sizeof walk->operands[0] +
                                                   n * CM_MAX_RANK * sizeof(int64_t));
    int64_t *all = (int64_t *)(void *)&walk->operands[n]; /* strides before merging */

    walk->n_operands = call->n_in;
    walk->count = cm_shape_elements(y);
    for (size_t i = 0; i < n; i++)
        cm_broadcast_strides(&call->in[i]->shape, y, all + i * CM_MAX_RANK);
    for (int axis = y->rank - 1; axis >= 0; axis--) {
        if (y->dims[axis] == 1)
            continue;
        if (walk->rank > 0 && mergeable(walk, walk->rank - 1, all + axis)) {
            walk->dims[walk->rank - 1] *= y->dims[axis];
            continue;
        }
        for (size_t i = 0; i < n; i++)
            walk->operands[i].strides[walk->rank] = all[i * CM_MAX_RANK + (size_t)axis];
        walk->dims[walk->rank++] = y->dims[axis];
    }
    take_run(walk);
    return walk;
}

void cm_walk_next(const struct cm_walk *walk, int64_t *index, int64_t *at)
{
    for (int axis = 0; axis < walk->rank; axis++) {
        const bool wraps = ++index[axis] == walk->dims[axis];
        for (int i = 0; i < walk->n_operands; i++) {
            const int64_t stride = walk->operands[i].strides[axis];
            at[i] += wraps ? stride - stride * walk->dims[axis] : stride;
        }
        if (!wraps)
            return;
        index[axis] = 0;
    }
}
