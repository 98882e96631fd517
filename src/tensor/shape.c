/* Concrete shapes. */
// SPDX-License-Identifier: Apache-2.0
#include "tensor/shape.h"

#include "base/number.h"

bool cm_shape_count(const struct cm_shape *shape, int64_t *out)
{
    int64_t product = 1;
    bool empty = false;

    /* A zero anywhere makes the tensor empty, even beside dims whose product would overflow; but a
     * strided walk over such a shape could still overflow, so the product without zeros must fit.
     */
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dims[i] < 0 || shape->dims[i] > CM_MAX_DIM)
            return false;
        if (shape->dims[i] == 0)
            empty = true;
        else if (!cm_dim_mul(product, shape->dims[i], &product))
            return false;
    }
    *out = empty ? 0 : product;
    return true;
}

int64_t cm_shape_elements(const struct cm_shape *shape)
{
    return cm_shape_span(shape, 0, shape->rank);
}

int64_t cm_shape_span(const struct cm_shape *shape, int from, int to)
{
    int64_t product = 1;
    for (int i = from; i < to; i++)
        product *= shape->dims[i];
    return product;
}

bool cm_shape_equal(const struct cm_shape *a, const struct cm_shape *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
}

bool cm_shape_insert(struct cm_shape *shape, int axis, int64_t size)
{
    if (shape->rank >= CM_MAX_RANK || axis < 0 || axis > shape->rank)
        return false;
    memmove(&shape->dims[axis + 1], &shape->dims[axis],
            (size_t)(shape->rank - axis) * sizeof shape->dims[0]);
    shape->dims[axis] = size;
    shape->rank++;
    return true;
}

void cm_shape_strides(const struct cm_shape *shape, int64_t *strides)
{
    int64_t stride = 1;
    for (int i = shape->rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= shape->dims[i];
    }
}

const char *cm_shape_print(const struct cm_shape *shape, char *text, size_t size)
{
    if (shape->rank == 0) {
        snprintf(text, size, "scalar");
        return text;
    }
    size_t at = 0;
    for (int i = 0; i < shape->rank && at < size; i++) {
        const int n =
            snprintf(text + at, size - at, "%s%lld", i ? "x" : "", (long long)shape->dims[i]);
        at += n > 0 ? (size_t)n : 0;
    }
    return text;
}

bool cm_broadcast(const struct cm_shape *a, const struct cm_shape *b, struct cm_shape *out)
{
    struct cm_shape result = {.rank = a->rank > b->rank ? a->rank : b->rank};

    for (int i = 0; i < result.rank; i++) {
        const int ia = i - (result.rank - a->rank), ib = i - (result.rank - b->rank);
        const int64_t da = ia < 0 ? 1 : a->dims[ia], db = ib < 0 ? 1 : b->dims[ib];
        if (da != db && da != 1 && db != 1)
            return false;
        result.dims[i] = da == 1 ? db : da;
    }
    *out = result;
    return true;
}

void cm_broadcast_strides(const struct cm_shape *from, const struct cm_shape *to, int64_t *strides)
{
    const int lead = to->rank - from->rank;
    int64_t stride = 1;

    for (int i = to->rank - 1; i >= 0; i--) {
        const int64_t dim = i < lead ? 1 : from->dims[i - lead];
        strides[i] = dim == 1 ? 0 : stride;
        stride *= dim;
    }
}

bool cm_axis_fix(int64_t axis, int rank, int *out)
{
    if (axis < -(int64_t)rank || axis >= rank)
        return false;
    *out = (int)(axis < 0 ? axis + rank : axis);
    return true;
}
