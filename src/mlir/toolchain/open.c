/* Opens the module of MLIR. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/toolchain/open.h"

#include "base/library.h"
#include "base/text.h"
#include "mlir/toolchain/tool.h"

#include <pthread.h>
#include <stdio.h>

#ifndef CM_MLIR_FILE
#define CM_MLIR_FILE "libcameo_mlir.so"
#endif

#define VARIABLE "CAMEO_MLIR"

static const char *const names[] = {CM_MLIR_FILE, NULL};

static struct {
    struct cm_library library;
    const struct cm_mlir_module *content; /* NULL: there is none */
} module;

static void open_module(void)
{
    cm_mlir_entry_fn *entry = NULL;
    const struct cm_symbol symbols[] = {{CM_MLIR_ENTRY, &entry}};
    struct cm_library *library = &module.library;

    if (!cm_library_open(VARIABLE, names, library) || !cm_library_find(library, symbols, 1))
        return;
    const struct cm_mlir_module *content = entry();
    if (content->abi == CM_MLIR_ABI)
        module.content = content;
    else
        snprintf(library->why, sizeof library->why, "%.400s is of another version of Cameo",
                 library->path);
}

static void need_module(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, open_module);
}

/* What helps: a module that the environment keeps away is there for all we know, one that is there
 * lacks MLIR itself, as that of a wheel from another machine. */
static const char *advice(void)
{
    struct cm_library found;

    if (cm_str_starts(cm_str(module.library.why), VARIABLE))
        return "unset " VARIABLE " to use the one that was built with Cameo";
    return cm_library_locate(VARIABLE, names, &found) ? CM_LLVM_INSTALL
                                                      : CM_LLVM_INSTALL
               ", then build Cameo again, or its wheel with pip install --no-cache-dir";
}

enum cm_status cm_mlir_open(const struct cm_mlir_module **out, struct cm_error *err)
{
    need_module();
    *out = module.content;
    if (module.content)
        return CM_OK;
    if (cm_library_status(&module.library) == CM_NO_MEMORY)
        return cm_fail(err, CM_NO_MEMORY, "Cameo's module for MLIR: %s", module.library.why);
    return cm_fail(err, CM_UNSUPPORTED,
                   "compiling needs Cameo's module for MLIR, which is not available (%s); %s (what "
                   "is emitted up to linalg needs none)",
                   module.library.why, advice());
}

struct cm_mlir_found cm_mlir_found(void)
{
    struct cm_mlir_found found = {0};
    struct cm_library library;

    if (cm_library_locate(VARIABLE, names, &library))
        snprintf(found.version, sizeof found.version, "%d", CM_LLVM_VERSION);
    snprintf(found.path, sizeof found.path, "%s", library.path);
    snprintf(found.reason, sizeof found.reason, "%s", library.why);
    return found;
}
