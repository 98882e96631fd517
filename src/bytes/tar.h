/* Files in a tar archive, plain, as views into it. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BYTES_TAR_H
#define CM_BYTES_TAR_H

#include "base/arena.h"
#include "base/array.h"

struct cm_tar_file {
    struct cm_str name; /* without "./" at its beginning */
    struct cm_str bytes;
};

struct cm_tar {
    CM_ARRAY(struct cm_tar_file);
};

bool cm_tar_is_file(struct cm_str bytes);
/* Regular files; folders, links and others are passed over. Long names as GNU tar and pax write
 * them. */
enum cm_status cm_tar_list(struct cm_arena *arena, struct cm_str bytes, struct cm_tar *out,
                           struct cm_error *err) CM_MUST_CHECK;

#endif
