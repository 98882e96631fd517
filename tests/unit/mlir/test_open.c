/* Opening the module of MLIR, or saying what to install. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include "mlir/toolchain/open.h"

#include <stdlib.h>
#include <string.h>

void test_open__a_missing_module_is_told_with_what_to_install(void)
{
    const struct cm_mlir_module *module = NULL;
    struct cm_error err = {0};

    setenv("CAMEO_MLIR", "off", 1);
    CHECK_FAILS(cm_mlir_open(&module, &err), CM_UNSUPPORTED, &err,
                "compiling needs Cameo's module for MLIR, which is not available (CAMEO_MLIR is "
                "off); unset CAMEO_MLIR to use the one that was built with Cameo (what is emitted "
                "up to linalg needs none)");
    CHECK(module == NULL);
    CHECK_STRING(cm_mlir_found().version, "");
    CHECK_STRING(cm_mlir_found().reason, "CAMEO_MLIR is off");
}
