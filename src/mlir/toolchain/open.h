/* The module that compiles programs (mlir_module.h), opened when it is first asked for. The
 * environment variable CAMEO_MLIR is a path to open instead, or "off". */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MLIR_OPEN_H
#define CM_MLIR_OPEN_H

#include "base/status.h"
#include "mlir/toolchain/mlir_module.h"

/* Refuses with CM_UNSUPPORTED where there is none, and says what to install. */
enum cm_status cm_mlir_open(const struct cm_mlir_module **out, struct cm_error *err) CM_MUST_CHECK;

/* Which module would be opened; opening it takes longer than most commands do. */
struct cm_mlir_found {
    char version[32]; /* of MLIR, the part that matters; "": there is no module */
    char path[1024];  /* of the module */
    char reason[512]; /* why there is none */
};
struct cm_mlir_found cm_mlir_found(void);

#endif
