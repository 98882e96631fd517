/* Archives of object files (.a), as the linkers of Unix read them. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MLIR_AR_H
#define CM_MLIR_AR_H

#include "base/arena.h"

struct cm_ar_member {
    const char *name;
    struct cm_str bytes;
    const char *const *symbols; /* that it defines */
    size_t n_symbols;
};

/* The whole archive, in arena, in the form of GNU: a table of symbols, a table of names of 16 and
 * more bytes, then the members. No time, user or mode of a file comes in, so that equal members
 * give equal archives. Fails where it would reach 4 GiB, which this form cannot. */
enum cm_status cm_ar_write(const struct cm_ar_member *members, size_t count, struct cm_arena *arena,
                           struct cm_str *out, struct cm_error *err) CM_MUST_CHECK;

#endif
