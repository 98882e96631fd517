/* Walking several broadcast operands. */
// SPDX-License-Identifier: Apache-2.0
#include "tensor/walk.h"

size_t cm_walk_size(int n_operands, int rank)
{
    const size_t n = (size_t)n_operands, axes = (size_t)rank;
    return sizeof(struct cm_walk) + (2 * n + axes + n * axes) * sizeof(int64_t);
}

static bool repeats(const struct cm_shape *operand)
{
    return !operand || cm_shape_elements(operand) == 1;
}

/* The strides of all operands along `axis` of the result; size holds how many elements of each lie
 * inside it. */
static void axis_strides(const struct cm_shape *result, int axis, int n_operands,
                         const struct cm_shape *const *operands, int64_t *size, int64_t *strides)
{
    for (int i = 0; i < n_operands; i++) {
        strides[i] = 0;
        if (repeats(operands[i]))
            continue;
        const int own = axis - (result->rank - operands[i]->rank);
        if (own < 0 || operands[i]->dims[own] == 1)
            continue;
        strides[i] = size[i];
        size[i] *= operands[i]->dims[own];
    }
}

/* Along the next axis every operand goes on where the outermost one so far left it: the two are
 * one. */
static bool mergeable(const struct cm_walk *walk)
{
    if (walk->rank == 0)
        return false;
    const int64_t *next = walk->strides + (int64_t)walk->rank * walk->n_operands;
    for (int i = 0; i < walk->n_operands; i++)
        if (next[i] != next[i - walk->n_operands] * walk->dims[walk->rank - 1])
            return false;
    return true;
}

/* The innermost axis becomes the run. */
static void take_run(struct cm_walk *walk)
{
    walk->run = walk->rank > 0 ? walk->dims[0] : 1;
    for (int i = 0; i < walk->n_operands; i++)
        walk->step[i] = walk->rank == 0 || walk->strides[i] != 0;
    if (walk->rank == 0)
        return;
    walk->rank--;
    walk->dims++;
    walk->strides += walk->n_operands;
}

struct cm_walk *cm_walk_plan(void *memory, const struct cm_shape *result, int n_operands,
                             const struct cm_shape *const *operands)
{
    struct cm_walk *walk = memory;
    int64_t *numbers = (int64_t *)(void *)(walk + 1);
    int64_t *size = numbers + n_operands;

    *walk = (struct cm_walk){.n_operands = n_operands,
                             .count = cm_shape_elements(result),
                             .step = numbers,
                             .dims = size + n_operands,
                             .strides = size + n_operands + result->rank};
    for (int i = 0; i < n_operands; i++)
        size[i] = 1;
    for (int axis = result->rank - 1; axis >= 0 && walk->count > 0; axis--) {
        if (result->dims[axis] == 1)
            continue;
        axis_strides(result, axis, n_operands, operands, size,
                     walk->strides + (int64_t)walk->rank * n_operands);
        if (mergeable(walk))
            walk->dims[walk->rank - 1] *= result->dims[axis];
        else
            walk->dims[walk->rank++] = result->dims[axis];
    }
    take_run(walk);
    return walk;
}

void cm_walk_seek(const struct cm_walk *walk, int64_t run, int64_t *index, int64_t *at)
{
    for (int i = 0; i < walk->n_operands; i++)
        at[i] = 0;
    for (int axis = 0; axis < walk->rank; axis++) {
        index[axis] = run % walk->dims[axis];
        run /= walk->dims[axis];
        for (int i = 0; i < walk->n_operands; i++)
            at[i] += index[axis] * walk->strides[axis * walk->n_operands + i];
    }
}

void cm_walk_next(const struct cm_walk *walk, int64_t *index, int64_t *at)
{
    for (int axis = 0; axis < walk->rank; axis++) {
        const int64_t *strides = walk->strides + (int64_t)axis * walk->n_operands;
        const bool wraps = ++index[axis] == walk->dims[axis];
        for (int i = 0; i < walk->n_operands; i++)
            at[i] += wraps ? strides[i] - strides[i] * walk->dims[axis] : strides[i];
        if (!wraps)
            return;
        index[axis] = 0;
    }
}
