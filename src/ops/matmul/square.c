/* What operators on square matrices share. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/square.h"

enum cm_status cm_infer_square(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    struct cm_dim side;
    if (x->rank == CM_RANK_UNKNOWN)
        return CM_OK;
    CM_TRY(cm_infer_rank(in, 0, 2, CM_MAX_RANK));
    if (!cm_dim_unify(x->dims[x->rank - 2], x->dims[x->rank - 1], &side))
        return cm_infer_fail(in, "its matrices are %lld by %lld, not square",
                             (long long)x->dims[x->rank - 2].value,
                             (long long)x->dims[x->rank - 1].value);
    return CM_OK;
}
