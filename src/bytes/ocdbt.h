/* TensorStore's key-value store OCDBT: a B+tree in files, of which a manifest names the newest
 * root. Read only. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BYTES_OCDBT_H
#define CM_BYTES_OCDBT_H

#include "base/arena.h"
#include "base/array.h"

struct cm_ocdbt_value {
    struct cm_str key, bytes;
    struct cm_str file; /* that the bytes are in */
};

struct cm_ocdbt {
    CM_ARRAY(struct cm_ocdbt_value); /* in order of their keys */
};

/* Where the files of a store are. */
struct cm_ocdbt_files {
    /* The bytes of a file of the store's folder, which stay where they are until the end of the
     * arena. */
    enum cm_status (*map)(void *arg, struct cm_str name, struct cm_str *out, struct cm_error *err);
    void *arg;
};

/* All keys of the store whose manifest is 'manifest.ocdbt'. Values stay in their files. */
enum cm_status cm_ocdbt_read(struct cm_arena *arena, const struct cm_ocdbt_files *files,
                             struct cm_ocdbt *out, struct cm_error *err) CM_MUST_CHECK;

#endif
