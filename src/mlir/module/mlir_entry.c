/* The one function that the module exports, and its smaller ones. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/module/mlir_entry.h"

#include <llvm-c/Core.h>
#include <stdio.h>
#include <stdlib.h>

static void mlir_version(char *text, size_t size)
{
    unsigned major = 0, minor = 0, patch = 0;

    LLVMGetVersion(&major, &minor, &patch);
    snprintf(text, size, "%u.%u.%u", major, minor, patch);
}

void cm_mlir_release(struct cm_mlir_product *product)
{
    for (size_t i = 0; i < product->n_messages; i++)
        free(product->messages[i]);
    free(product->messages);
    free(product->bytes);
    free(product->error);
    *product = (struct cm_mlir_product){0};
}

const struct cm_mlir_module *cameo_mlir_module(void)
{
    static const struct cm_mlir_module module = {
        CM_MLIR_ABI,       mlir_version,    cm_mlir_build_plan, cm_mlir_build_finish,
        cm_mlir_build_end, cm_mlir_release, cm_mlir_targets};

    return &module;
}
