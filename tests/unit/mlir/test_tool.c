/* How programs of others end, as the shell plays them. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "mlir/toolchain/tool.h"

/* Runs a program that ends as the script says. */
static void ends(struct cm_arena *arena, const char *script, enum cm_status status,
                 const char *message)
{
    const char *const arguments[] = {"/bin/sh", "-c", script, "-o", "out.bc", NULL};
    struct cm_workspace workspace;
    struct cm_error err = {0};

    CHECK_OK(cm_workspace_open(&workspace, arena, &err), &err);
    CHECK_INT(cm_tool_run(&workspace, arguments, &err), status);
    CHECK_STRING(err.text, message);
    cm_workspace_close(&workspace);
}

static void endings(struct cm_arena *arena)
{
    ends(arena, "exit 0", CM_OK, "");
    ends(arena, "echo no such thing >&2; exit 1", CM_UNSUPPORTED,
         "/bin/sh failed: no such thing\n");
    ends(arena, "kill -TERM $$", CM_CANCELLED, "/bin/sh was stopped");
    ends(arena, "echo a backtrace; kill -SEGV $$", CM_UNSUPPORTED,
         "/bin/sh crashed (Segmentation fault): a backtrace\n");
    ends(arena, "echo a backtrace; kill -XFSZ $$", CM_IO,
         "/bin/sh cannot write out.bc: File too large");
    ends(arena, "echo 'fatal error: IO failure: No space left on device' >&2; exit 1", CM_IO,
         "/bin/sh cannot write out.bc: No space left on device");
}

void test_tool__a_program_that_cannot_write_is_told_from_one_that_crashes(void)
{
    check_in_arena(endings);
}
