/* Tensors that lie row by row at any address. */
// SPDX-License-Identifier: Apache-2.0
#include "tensor/layout.h"

static bool same(const struct cm_layout *a, const struct cm_layout *b)
{
    return a == b;
}

static enum cm_status align(const struct cm_tensor *from, struct cm_tensor *to,
                            struct cm_error *err)
{
    if (to->layout)
        return cm_fail(err, CM_UNSUPPORTED, "an unaligned tensor is copied to rows only");
    memcpy(to->data, from->data, cm_tensor_bytes(from));
    return CM_OK;
}

const struct cm_layout cm_unaligned = {.name = "unaligned", .same = same, .reorder = align};
