/* Packed bytes: zstd through its library, which is opened when a packed file comes, zlib and gzip
 * through io/. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BYTES_ZSTD_H
#define CM_BYTES_ZSTD_H

#include "bytes/saved_tensor.h"

/* What a zstd frame holds, in arena; refuses more than `most` bytes. */
enum cm_status cm_zstd_read(struct cm_arena *arena, struct cm_str packed, size_t most,
                            struct cm_str *out, struct cm_error *err) CM_MUST_CHECK;

/* Can so many packed bytes be unpacked to that size at all, and does a frame that says its size say
 * this one? Asked before memory is taken. */
enum cm_status cm_packed_check(enum cm_packing packing, struct cm_str packed, size_t unpacked,
                               struct cm_error *err) CM_MUST_CHECK;

#endif
