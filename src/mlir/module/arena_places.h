/* Places for buffers whose lifetimes and sizes are known: two that live at one time never overlap,
 * and the memory that all of them need together is kept small. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MLIR_MODULE_ARENA_PLACES_H
#define CM_MLIR_MODULE_ARENA_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cm_mlir_place {
    int64_t first, last; /* it lives from the start of the one operation to the end of the other */
    int64_t bytes;
    int64_t offset; /* the result, a multiple of CM_MLIR_ALIGNMENT */
};

enum { CM_MLIR_ALIGNMENT = 64 };

/* Fills in the offsets and `total`, what the arena needs. False: memory ran out, or the total is
 * beyond `most`. */
bool cm_mlir_place_all(struct cm_mlir_place *places, size_t count, int64_t most, int64_t *total);

#endif
