/* The two ways heads lie in memory. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/heads.h"

enum cm_status cm_heads_read(struct cm_infer *in, int i, int64_t heads, struct cm_heads_type *out)
{
    const struct cm_type *type = cm_infer_type(in, i);
    *out = (struct cm_heads_type){CM_DIM_ANY, CM_DIM_ANY, CM_DIM_ANY, CM_DIM_ANY};
    if (type->rank == CM_RANK_UNKNOWN)
        return CM_OK;
    if (type->rank == 4) {
        *out = (struct cm_heads_type){type->dims[0], type->dims[1], type->dims[2], type->dims[3]};
        return CM_OK;
    }
    if (type->rank != 3)
        return cm_infer_fail(in, "input %d has rank %d, needs 3 or 4", i, type->rank);
    if (heads < 1)
        return cm_infer_fail(in, "input %d has rank 3, which needs the number of its heads", i);
    const struct cm_dim hidden = type->dims[2];
    if (cm_dim_known(hidden) && hidden.value % heads != 0)
        return cm_infer_fail(in, "input %d has %lld columns, which %lld heads do not divide", i,
                             (long long)hidden.value, (long long)heads);
    *out = (struct cm_heads_type){type->dims[0], CM_DIM(heads), type->dims[1],
                                  cm_dim_floor(in->symbols, hidden, 0, heads)};
    return CM_OK;
}

enum cm_status cm_heads_unify(struct cm_infer *in, struct cm_dim a, struct cm_dim b,
                              const char *what)
{
    struct cm_dim both;
    if (!cm_dim_unify(a, b, &both))
        return cm_infer_fail(in, "%s are %lld in one operand and %lld in another", what,
                             (long long)a.value, (long long)b.value);
    return CM_OK;
}

struct cm_heads cm_heads_of(const struct cm_shape *shape, int64_t heads)
{
    const int64_t *d = shape->dims;
    if (shape->rank == 4)
        return (struct cm_heads){d[0], d[1], d[2], d[3], d[2] * d[3], d[3]};
    return (struct cm_heads){d[0], heads, d[1], d[2] / heads, d[2] / heads, d[2]};
}

int64_t cm_heads_row(const struct cm_heads *heads, int64_t batch, int64_t head, int64_t position)
{
    return batch * heads->heads * heads->length * heads->size + head * heads->head_stride +
           position * heads->row_stride;
}
