/* Zip files as archives of arrays and checkpoints are: members stored or deflated, sizes past 32
 * bits. Everything that a directory says is checked against the file. Encrypted members, other
 * compressions and archives in several files are refused. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BYTES_ZIP_H
#define CM_BYTES_ZIP_H

#include "base/array.h"
#include "base/file.h"

/* ---- reading ---- */

struct cm_zip {
    const uint8_t *data;
    uint64_t size;
    uint64_t directory, directory_size, count; /* the central directory, members in it */
    uint64_t at;                               /* the next entry of the directory */
    uint64_t packed, unpacked, limit;          /* what was located so far, and may be at most */
};

struct cm_zip_member {
    struct cm_str name;
    struct cm_str packed; /* its bytes, once it was located */
    bool deflated;
    size_t size; /* unpacked; for deflated ones what the directory says */
    uint32_t crc;
    uint32_t flags, method;
    uint64_t packed_size, local; /* where its local header is */
};

/* limit: of the bytes that all members may unpack to; 0: none. */
enum cm_status cm_zip_open(struct cm_str bytes, size_t limit, struct cm_zip *out,
                           struct cm_error *err) CM_MUST_CHECK;
/* The next entry of the directory; there are `count`. */
enum cm_status cm_zip_next(struct cm_zip *zip, struct cm_zip_member *out,
                           struct cm_error *err) CM_MUST_CHECK;
/* Finds the bytes of a member; once for each. All members together are no larger than the file, so
 * entries that share bytes, of which bombs are made, are refused. */
enum cm_status cm_zip_locate(struct cm_zip *zip, struct cm_zip_member *member,
                             struct cm_error *err) CM_MUST_CHECK;
/* The member's contents: its bytes in the file, or unpacked into arena; its check sum was
 * compared. */
enum cm_status cm_zip_contents(struct cm_arena *arena, const struct cm_zip_member *member,
                               struct cm_str *out, struct cm_error *err) CM_MUST_CHECK;

/* ---- writing: stored, with 64-bit sizes throughout ---- */

struct cm_zip_file {
    struct cm_str name; /* borrowed until the end */
    uint64_t offset, size;
    uint32_t crc;
    bool streamed; /* the check sum follows the bytes */
};

struct cm_zip_writer {
    struct cm_arena *arena;
    struct cm_save *save;
    size_t alignment; /* of each member's bytes in the file; 0: none */
    uint64_t base;    /* what was written before the archive begins */
    CM_ARRAY(struct cm_zip_file) files;
};

/* The header of a member of `size` bytes. crc is its check sum; NULL: it is not known yet. The
 * caller writes the bytes with cm_zip_write, then calls cm_zip_end_member. */
enum cm_status cm_zip_begin_member(struct cm_zip_writer *zip, struct cm_str name, uint64_t size,
                                   const uint32_t *crc, struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_zip_write(struct cm_zip_writer *zip, const void *bytes, size_t size,
                            struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_zip_end_member(struct cm_zip_writer *zip, struct cm_error *err) CM_MUST_CHECK;
/* A whole member at once. */
enum cm_status cm_zip_add(struct cm_zip_writer *zip, struct cm_str name, struct cm_str bytes,
                          struct cm_error *err) CM_MUST_CHECK;
/* The directory, after the last member. */
enum cm_status cm_zip_finish(struct cm_zip_writer *zip, struct cm_error *err) CM_MUST_CHECK;

#endif
