/* C for the target of a compiled model: clang makes LLVM bitcode of it, which the module
 * (mlir/toolchain/mlir_module.h) links with the program. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MLIR_CLANG_H
#define CM_MLIR_CLANG_H

#include "base/array.h"
#include "mlir/toolchain/tool.h"

struct cm_mlir_program;

struct cm_clang_target {
    const char *triple; /* "": this machine */
    const char *cpu;    /* "native": this machine's; "": the least of its kind */
};

/* Is there such a target, and such a processor of it? Else CM_BAD_ARGUMENT says which there are. */
enum cm_status cm_clang_check_target(const struct cm_workspace *workspace, const char *clang,
                                     const struct cm_clang_target *target,
                                     struct cm_error *err) CM_MUST_CHECK;

/* Bitcode of one source; files in workspace are called name. The bytes live as long as workspace.
 * optimize: by clang; without that LLVM's passes have to run over it. */
enum cm_status cm_clang_compile(const struct cm_workspace *workspace, const char *clang,
                                const struct cm_clang_target *target, const char *name,
                                struct cm_str source, bool optimize, struct cm_str *bitcode,
                                struct cm_error *err) CM_MUST_CHECK;

/* The kernels (src/kernels) that a program calls: their sources, each once. */
struct cm_mlir_source;
struct cm_clang_sources {
    CM_ARRAY(const struct cm_mlir_source *);
};
enum cm_status cm_clang_kernels(const struct cm_mlir_program *program, struct cm_arena *arena,
                                struct cm_clang_sources *out, struct cm_error *err) CM_MUST_CHECK;
/* The text of an embedded source, with the embedded files that it includes in their places. */
enum cm_status cm_clang_expand(const struct cm_mlir_source *source, struct cm_arena *arena,
                               struct cm_str *out, struct cm_error *err) CM_MUST_CHECK;
/* Does source define a function of this name? */
bool cm_clang_defines(struct cm_str source, struct cm_str function);

#endif
