/* Programs of others that compiling needs: clang and LLVM's linkers. They are found in the folders
 * of PATH and where Debian keeps them, started without a shell, and work in a folder of their own
 * that is gone afterwards, however it ended. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MLIR_TOOL_H
#define CM_MLIR_TOOL_H

#include "base/arena.h"

#include <stdatomic.h>

/* The version of LLVM that all parts are of. */
enum { CM_LLVM_VERSION = 19 };
/* What brings everything that is missing, on Debian and its kin. */
#define CM_LLVM_INSTALL "apt-get install libmlir-19-dev llvm-19-dev clang-19 lld-19"

/* The path of a program, "clang" or "ld.lld", in arena. Without one: what to install. The
 * environment variable CAMEO_LLVM_DIR names a folder that is looked in instead of all others. */
enum cm_status cm_tool_find(struct cm_arena *arena, const char *name, const char **path,
                            struct cm_error *err) CM_MUST_CHECK;

/* A folder for files that programs exchange. */
struct cm_workspace {
    char *path; /* NULL: there is none */
    struct cm_arena *arena;
    const atomic_bool *cancel; /* set after opening: ends programs that run; NULL: none */
};

/* Removed with arena, or when it is closed; what was read from it stays. */
enum cm_status cm_workspace_open(struct cm_workspace *workspace, struct cm_arena *arena,
                                 struct cm_error *err) CM_MUST_CHECK;
void cm_workspace_close(struct cm_workspace *workspace);
/* The path of a file in it, in the arena. */
const char *cm_workspace_path(const struct cm_workspace *workspace, const char *name);
enum cm_status cm_workspace_put(const struct cm_workspace *workspace, const char *name,
                                struct cm_str bytes, struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_workspace_get(const struct cm_workspace *workspace, const char *name,
                                struct cm_str *out, struct cm_error *err) CM_MUST_CHECK;

/* Runs a program to its end, and says whether that was a good one and what it wrote, which is
 * readable until the next one runs. Arguments are those of cm_tool_run. A program that crashes
 * fails the call, and so does one that cannot write its output, with CM_IO. */
enum cm_status cm_tool_try(const struct cm_workspace *workspace, const char *const *arguments,
                           bool *succeeded, struct cm_str *said,
                           struct cm_error *err) CM_MUST_CHECK;
/* Runs a program to its end; arguments end with NULL, the first is its path. What it says where it
 * fails becomes the message. */
enum cm_status cm_tool_run(const struct cm_workspace *workspace, const char *const *arguments,
                           struct cm_error *err) CM_MUST_CHECK;

#endif
