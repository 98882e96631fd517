/* From an object file to a shared library or a module of WebAssembly, by LLVM's linkers. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MLIR_LINK_H
#define CM_MLIR_LINK_H

#include "mlir/toolchain/tool.h"

/* Is the target (as clang spells it; "" is this machine) WebAssembly? */
bool cm_link_is_wasm(const char *triple);
/* The name of the linker for a target, for cm_tool_find. */
const char *cm_link_program(const char *triple);

/* The linked file; its bytes live as long as workspace. Functions that are missing stay open: the
 * program that opens it has them. A module of WebAssembly takes them from library, bitcode, and
 * imports nothing. name is what a shared library calls itself. */
enum cm_status cm_link_shared(const struct cm_workspace *workspace, const char *linker,
                              const char *triple, const char *name, struct cm_str object,
                              struct cm_str library, const char *const *exported, size_t n_exported,
                              struct cm_str *out, struct cm_error *err) CM_MUST_CHECK;

#endif
