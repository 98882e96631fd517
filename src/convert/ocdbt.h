/* TensorStore's key-value store OCDBT: a B+tree in files, of which a manifest names the newest
 * root. Read only. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_OCDBT_H
#define CM_CONVERT_OCDBT_H

#include "convert/format.h"

struct cm_ocdbt_value {
    struct cm_str key, bytes;
    struct cm_str file; /* that the bytes are in */
};

struct cm_ocdbt {
    struct cm_ocdbt_value *items; /* in order of their keys */
    size_t count, capacity;
};

/* All keys of the store in `place` whose manifest is 'manifest.ocdbt'. Values stay in their files.
 */
enum cm_status cm_ocdbt_read(struct cm_saved_place *place, struct cm_ocdbt *out,
                             struct cm_error *err) CM_MUST_CHECK;

#endif
