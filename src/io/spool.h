/* Bytes that are made once and read often: kept in memory while they are few, in a temporary file
 * without a name when they become many, so that data larger than memory can be unpacked. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_IO_SPOOL_H
#define CM_IO_SPOOL_H

#include "base/file.h"

struct cm_spool {
    size_t limit; /* bytes that may stay in memory */
    uint8_t *pending;
    size_t n_pending, capacity;
    size_t size; /* bytes written in all */
    int fd;      /* -1: none */
    struct cm_mapping mapping;
};

/* limit 0: a usual one. Released when arena is. */
struct cm_spool *cm_spool_new(struct cm_arena *arena, size_t limit);
enum cm_status cm_spool_write(struct cm_spool *spool, const void *bytes, size_t size,
                              struct cm_error *err) CM_MUST_CHECK;
/* No more comes; the bytes live as long as the arena. */
enum cm_status cm_spool_finish(struct cm_spool *spool, struct cm_str *out,
                               struct cm_error *err) CM_MUST_CHECK;

#endif
