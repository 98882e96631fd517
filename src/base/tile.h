/* Transposing blocks of elements of a few bytes, whole cache lines at a time. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_TILE_H
#define CM_BASE_TILE_H

#include "base/compiler.h"

/* to[c * to_row + r] = from[r * from_row + c] for all r < rows and c < columns; elements have
 * `width` bytes (1, 2, 4, 8 or 16), rows are that many elements apart. */
void cm_tile_transpose(size_t width, int64_t rows, int64_t columns, const void *from,
                       int64_t from_row, void *to, int64_t to_row);

#endif
