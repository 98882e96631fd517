/* The functions behind struct cm_mlir_module. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MLIR_MODULE_MLIR_ENTRY_H
#define CM_MLIR_MODULE_MLIR_ENTRY_H

#include "mlir/toolchain/mlir_module.h"

struct cm_mlir_build *cm_mlir_build_plan(const struct cm_mlir_job *job,
                                         struct cm_mlir_product *out);
bool cm_mlir_build_finish(struct cm_mlir_build *build);
void cm_mlir_build_end(struct cm_mlir_build *build);
void cm_mlir_release(struct cm_mlir_product *product);
/* Makes LLVM's targets known, once in a process. */
void cm_mlir_start_targets(void);
char *cm_mlir_targets(void);

/* All that the module exports. */
__attribute__((visibility("default"))) const struct cm_mlir_module *cameo_mlir_module(void);

#endif
