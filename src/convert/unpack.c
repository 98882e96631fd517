/* Pieces of tensors that are packed. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/saved.h"

enum cm_status cm_unpack(const struct cm_saved_piece *piece, uint8_t *out, struct cm_error *err)
{
    (void)out;
    return cm_fail(err, CM_UNSUPPORTED, "it is packed in a way that is not read (%d)",
                   (int)piece->packing);
}
