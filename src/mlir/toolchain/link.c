/* Running ld.lld and wasm-ld. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/toolchain/link.h"

bool cm_link_is_wasm(const char *triple)
{
    return cm_str_starts(cm_str(triple), "wasm");
}

const char *cm_link_program(const char *triple)
{
    return cm_link_is_wasm(triple) ? "wasm-ld" : "ld.lld";
}

enum cm_status cm_link_shared(const struct cm_workspace *workspace, const char *linker,
                              const char *triple, const char *name, struct cm_str object,
                              struct cm_str library, const char *const *exported, size_t n_exported,
                              struct cm_str *out, struct cm_error *err)
{
    struct cm_arena *arena = workspace->arena;
    const char **arguments = CM_NEW_ARRAY(arena, const char *, n_exported + 16);
    size_t n = 0;

    CM_TRY(cm_workspace_put(workspace, "model.o", object, err));
    arguments[n++] = linker;
    if (cm_link_is_wasm(triple)) {
        CM_TRY(cm_workspace_put(workspace, "library.bc", library, err));
        arguments[n++] = cm_workspace_path(workspace, "library.bc");
        arguments[n++] = "--no-entry";
        arguments[n++] =
            "--stack-first"; /* one that is too small is a trap, not overwritten data */
        arguments[n++] = "--export=__heap_base"; /* where the caller's memory begins */
        for (size_t i = 0; i < n_exported; i++)
            arguments[n++] = cm_arena_printf(arena, "--export=%s", exported[i]).data;
    } else {
        arguments[n++] = "-shared";
        arguments[n++] = "--soname";
        arguments[n++] = name;
        arguments[n++] = "--gc-sections";
        arguments[n++] = "-znoexecstack";
        arguments[n++] = "--hash-style=both";
        arguments[n++] = "--build-id=none";
        arguments[n++] = "-zrelro";
    }
    arguments[n++] = "--strip-all";
    arguments[n++] = cm_workspace_path(workspace, "model.o");
    arguments[n++] = "-o";
    arguments[n++] = cm_workspace_path(workspace, "model.linked");
    CM_TRY(cm_error_context(err, cm_tool_run(workspace, arguments, err), "linking"));
    return cm_workspace_get(workspace, "model.linked", out, err);
}
