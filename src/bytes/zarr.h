/* Arrays of zarr, versions 2 and 3: a description as JSON, and chunks of the array under keys of
 * some store. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BYTES_ZARR_H
#define CM_BYTES_ZARR_H

#include "bytes/saved_tensor.h"

struct cm_zarr_store {
    /* The bytes under a key, which is valid during the call; *found false: nothing is there. */
    enum cm_status (*get)(void *arg, struct cm_str key, bool *found, struct cm_str *bytes,
                          struct cm_str *file, struct cm_error *err);
    void *arg;
    size_t pieces_left; /* that all arrays together may still have */
};
enum { CM_ZARR_PIECES_MAX = 4000000 };

/* The array whose description is at NAME/.zarray (version 2) or NAME/zarr.json (3). Chunks become
 * pieces; the tensor is zero where they are not stored. */
enum cm_status cm_zarr_read(struct cm_arena *arena, struct cm_zarr_store *store, struct cm_str name,
                            struct cm_str description, int version, struct cm_saved_tensor **out,
                            struct cm_error *err) CM_MUST_CHECK;

#endif
