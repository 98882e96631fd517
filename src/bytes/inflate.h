/* Deflate through zlib, which is opened when a compressed file comes, and the check sum of zip
 * files. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BYTES_INFLATE_H
#define CM_BYTES_INFLATE_H

#include "base/status.h"
#include "base/text.h"

/* zlib as it was found; opens it if nobody did. */
struct cm_zlib_found {
    const char *version; /* "1.2.13"; "" when it cannot be used */
    const char *path;    /* of the library; "" when none was opened */
    const char *why;     /* why it cannot be used; "" when it can */
};
struct cm_zlib_found cm_zlib_found(void);

/* Raw deflate, whole: exactly out_size bytes come out of in, or it fails. CM_UNSUPPORTED without
 * zlib. */
enum cm_status cm_inflate(struct cm_str in, uint8_t *out, size_t out_size,
                          struct cm_error *err) CM_MUST_CHECK;
/* The first bytes only, as many as there are up to room. */
enum cm_status cm_inflate_head(struct cm_str in, uint8_t *out, size_t room, size_t *got,
                               struct cm_error *err) CM_MUST_CHECK;
typedef enum cm_status cm_inflate_sink_fn(void *arg, const uint8_t *bytes, size_t size,
                                          struct cm_error *err);
/* The same as cm_inflate, handed over piece by piece: in all exactly out_size bytes, or it fails.
 */
enum cm_status cm_inflate_stream(struct cm_str in, size_t out_size, cm_inflate_sink_fn *sink,
                                 void *arg, struct cm_error *err) CM_MUST_CHECK;
/* zip's check sum; begin with 0. */
uint32_t cm_crc32(uint32_t crc, const void *bytes, size_t size);

#endif
