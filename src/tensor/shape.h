/* Concrete shapes: every dimension known. What may be unknown or symbolic is a type (graph/type.h).
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TENSOR_SHAPE_H
#define CM_TENSOR_SHAPE_H

#include "base/compiler.h"

#include <stdbool.h>

enum { CM_MAX_RANK = 64 };
/* No tensor has a dimension past this, not even an empty one: what files declare cannot make sums
 * of sizes, pads and offsets overflow. */
#define CM_MAX_DIM (INT64_C(1) << 48)

struct cm_shape {
    int rank; /* 0 is a scalar */
    int64_t dims[CM_MAX_RANK];
};

#define CM_SHAPE(...)                                                                              \
    ((struct cm_shape){(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}})
#define CM_SCALAR ((struct cm_shape){0, {0}})

/* The number of elements; false when it does not fit in 63 bits or a dimension is past CM_MAX_DIM.
 * A shape that a tensor has was checked when the tensor was made, so for those cm_shape_elements is
 * enough. */
bool cm_shape_count(const struct cm_shape *shape, int64_t *out);
int64_t cm_shape_elements(const struct cm_shape *shape);
/* Elements of dims [from, to). */
int64_t cm_shape_span(const struct cm_shape *shape, int from, int to);
bool cm_shape_equal(const struct cm_shape *a, const struct cm_shape *b);
/* Puts an axis of this size before `axis`, which may be the rank. False when the shape has no room
 * for one more, and then it stays as it was. All that makes a rank grow goes through here. */
bool cm_shape_insert(struct cm_shape *shape, int axis, int64_t size) CM_MUST_CHECK;
/* Row-major strides in elements. */
void cm_shape_strides(const struct cm_shape *shape, int64_t *strides);
/* "2x3x4", "scalar"; cut to fit. Returns text. */
const char *cm_shape_print(const struct cm_shape *shape, char *text, size_t size);

/* numpy's rule, missing leading dims count as 1; false when the shapes do not go together. */
bool cm_broadcast(const struct cm_shape *a, const struct cm_shape *b, struct cm_shape *out);
/* Strides, in elements, that walk a tensor of shape `from` as if it had shape `to`: 0 along axes
 * that are repeated. `from` must broadcast to `to`. */
void cm_broadcast_strides(const struct cm_shape *from, const struct cm_shape *to, int64_t *strides);

/* Brings axis into [0, rank); false when it is outside [-rank, rank). */
bool cm_axis_fix(int64_t axis, int rank, int *out);

#endif
