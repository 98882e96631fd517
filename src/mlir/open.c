/* Opens the module of MLIR. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/open.h"

#include "base/library.h"

#include <pthread.h>
#include <stdio.h>

#ifndef CM_MLIR_FILE
#define CM_MLIR_FILE "libcameo_mlir.so"
#endif

static struct {
    struct cm_library library;
    const struct cm_mlir_module *content; /* NULL: there is none */
} module;

static void open_module(void)
{
    static const char *const names[] = {CM_MLIR_FILE, NULL};
    cm_mlir_entry_fn *entry = NULL;
    const struct cm_symbol symbols[] = {{CM_MLIR_ENTRY, &entry}};
    struct cm_library *library = &module.library;

    if (!cm_library_open("CAMEO_MLIR", names, library) || !cm_library_find(library, symbols, 1))
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

enum cm_status cm_mlir_open(const struct cm_mlir_module **out, struct cm_error *err)
{
    need_module();
    *out = module.content;
    if (module.content)
        return CM_OK;
    return cm_fail(err, CM_UNSUPPORTED,
                   "compiling needs Cameo's module for MLIR, which is not available (%s); install "
                   "libmlir-19-dev, llvm-19-dev, clang-19 and lld-19, then build Cameo again",
                   module.library.why);
}

struct cm_mlir_found cm_mlir_found(void)
{
    struct cm_mlir_found found = {.path = "", .reason = ""};

    need_module();
    found.reason = module.library.why;
    if (module.content) {
        found.path = module.library.path;
        module.content->version(found.version, sizeof found.version);
    }
    return found;
}
