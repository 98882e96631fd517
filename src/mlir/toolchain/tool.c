/* Finding and running programs of others. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "mlir/toolchain/tool.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/unfinished.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* ---- finding ---- */

static bool is_program(const char *path)
{
    return access(path, X_OK) == 0;
}

/* name in one of the folders of PATH that are named from the root. */
static const char *in_path(struct cm_arena *arena, const char *name)
{
    const char *at = secure_getenv("PATH");

    while (at && *at) {
        const size_t size = strcspn(at, ":");

        if (*at == '/') {
            const char *path = cm_arena_printf(arena, "%.*s/%s", (int)size, at, name).data;

            if (is_program(path))
                return path;
        }
        at += size + (at[size] == ':');
    }
    return NULL;
}

enum cm_status cm_tool_find(struct cm_arena *arena, const char *name, const char **path,
                            struct cm_error *err)
{
    const char *folder = secure_getenv("CAMEO_LLVM_DIR");
    const char *versioned = cm_arena_printf(arena, "%s-%d", name, CM_LLVM_VERSION).data;

    if (folder) {
        *path = cm_arena_printf(arena, "%s/%s", folder, name).data;
        if (is_program(*path))
            return CM_OK;
        return cm_fail(err, CM_UNSUPPORTED,
                       "%s of LLVM %d is not in %.200s, which CAMEO_LLVM_DIR names", name,
                       CM_LLVM_VERSION, folder);
    }
    *path = in_path(arena, versioned);
    if (!*path) {
        *path = cm_arena_printf(arena, "/usr/lib/llvm-%d/bin/%s", CM_LLVM_VERSION, name).data;
        if (!is_program(*path))
            *path = NULL;
    }
    if (*path)
        return CM_OK;
    return cm_fail(err, CM_UNSUPPORTED, "%s is not installed; " CM_LLVM_INSTALL, versioned);
}

/* ---- a folder to work in ---- */

static void remove_folder(void *what)
{
    cm_remove_tree(what);
    cm_unfinished_drop(what);
    cm_free(what);
}

enum cm_status cm_workspace_open(struct cm_workspace *workspace, struct cm_arena *arena,
                                 struct cm_error *err)
{
    const char *folder = secure_getenv("TMPDIR");
    const size_t room = (folder ? strlen(folder) : 0) + 32;
    char *path = cm_malloc(room);

    *workspace = (struct cm_workspace){.arena = arena};
    if (!path)
        return cm_fail(err, CM_NO_MEMORY, "no memory for a path");
    snprintf(path, room, "%s/cameo-XXXXXX", folder && *folder == '/' ? folder : "/tmp");
    if (!mkdtemp(path)) {
        const int why = errno;

        cm_fail(err, CM_IO, "cannot make the folder %.200s: %s", path, strerror(why));
        cm_free(path);
        return CM_IO;
    }
    cm_unfinished_add(path);
    workspace->path = path;
    cm_arena_defer(arena, remove_folder, path);
    return CM_OK;
}

void cm_workspace_close(struct cm_workspace *workspace)
{
    if (!workspace->path)
        return;
    cm_arena_forget(workspace->arena, remove_folder, workspace->path);
    remove_folder(workspace->path);
    workspace->path = NULL;
}

const char *cm_workspace_path(const struct cm_workspace *workspace, const char *name)
{
    return cm_arena_printf(workspace->arena, "%s/%s", workspace->path, name).data;
}

enum cm_status cm_workspace_put(const struct cm_workspace *workspace, const char *name,
                                struct cm_str bytes, struct cm_error *err)
{
    const char *path = cm_workspace_path(workspace, name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    size_t done = 0;

    if (fd < 0)
        return cm_fail(err, CM_IO, "cannot write %.200s: %s", path, strerror(errno));
    while (done < bytes.size) {
        const ssize_t n = write(fd, bytes.data + done, bytes.size - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            cm_fail(err, CM_IO, "cannot write %.200s: %s", path, strerror(errno));
            close(fd);
            return CM_IO;
        }
        done += (size_t)n;
    }
    return close(fd) == 0 ? CM_OK
                          : cm_fail(err, CM_IO, "cannot write %.200s: %s", path, strerror(errno));
}

enum cm_status cm_workspace_get(const struct cm_workspace *workspace, const char *name,
                                struct cm_str *out, struct cm_error *err)
{
    struct cm_mapping *mapping = CM_NEW(workspace->arena, struct cm_mapping);

    CM_TRY(cm_file_map(cm_workspace_path(workspace, name), false, mapping, err));
    cm_mapping_defer(workspace->arena, mapping);
    *out = (struct cm_str){(const char *)mapping->data, mapping->size};
    return CM_OK;
}

/* ---- running ---- */

static int start(const char *const *arguments, const char *said, pid_t *child)
{
    posix_spawn_file_actions_t actions;
    int why = posix_spawn_file_actions_init(&actions);

    if (why)
        return why;
    why = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (!why)
        why =
            posix_spawn_file_actions_addopen(&actions, 1, said, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (!why)
        why = posix_spawn_file_actions_adddup2(&actions, 1, 2);
    if (!why) /* it takes the strings as they are and changes none */
        why = posix_spawn(child, arguments[0], &actions, NULL, (char *const *)(uintptr_t)arguments,
                          environ);
    posix_spawn_file_actions_destroy(&actions);
    return why;
}

/* Until the child has ended; one that nobody waits for any more is told to. */
static bool wait_for(pid_t child, const atomic_bool *cancel, int *status)
{
    struct timespec pause = {.tv_nsec = 1000000};
    bool told = false;

    for (;;) {
        const pid_t ended = waitpid(child, status, cancel && !told ? WNOHANG : 0);

        if (ended == child)
            return true;
        if (ended < 0 && errno != EINTR)
            return false;
        if (ended != 0)
            continue;
        told = cm_cancelled(cancel);
        if (told)
            kill(child, SIGTERM);
        else
            nanosleep(&pause, NULL);
        if (pause.tv_nsec < 16000000)
            pause.tv_nsec *= 2;
    }
}

/* The file that the arguments tell a program to write. */
static const char *output_of(const char *const *arguments)
{
    for (; arguments[0] && arguments[1]; arguments++)
        if (strcmp(arguments[0], "-o") == 0)
            return arguments[1];
    return "its output";
}

/* Why a program could not write its output, 0: it failed for another reason. LLVM ends with a
 * backtrace in both cases: when a signal tells of a file that is too large, and when a write fails.
 */
static int write_error(int status, struct cm_str said)
{
    static const int reasons[] = {ENOSPC, EFBIG, EDQUOT, EROFS};

    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ)
        return EFBIG;
    for (size_t i = 0; i < CM_COUNT(reasons); i++) {
        const char *text = strerror(reasons[i]);

        if (memmem(said.data, said.size, text, strlen(text)))
            return reasons[i];
    }
    return 0;
}

enum cm_status cm_tool_try(const struct cm_workspace *workspace, const char *const *arguments,
                           bool *succeeded, struct cm_str *said, struct cm_error *err)
{
    struct cm_error ignored = {0};
    pid_t child = 0;
    int status = 0;
    const int why = start(arguments, cm_workspace_path(workspace, "said.txt"), &child);

    if (why)
        return cm_fail(err, CM_IO, "cannot start %.200s: %s", arguments[0], strerror(why));
    if (!wait_for(child, workspace->cancel, &status))
        return cm_fail(err, CM_IO, "lost %.200s: %s", arguments[0], strerror(errno));
    *succeeded = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!*succeeded &&
        (cm_cancelled(workspace->cancel) ||
         (WIFSIGNALED(status) && (WTERMSIG(status) == SIGINT || WTERMSIG(status) == SIGTERM))))
        return cm_fail(err, CM_CANCELLED, "%.200s was stopped", arguments[0]);
    if (cm_workspace_get(workspace, "said.txt", said, &ignored) != CM_OK || !said->size)
        *said = CM_STR("it says nothing");
    if (*succeeded)
        return CM_OK;
    const int reason = write_error(status, *said);
    if (reason)
        return cm_fail(err, CM_IO, "%.200s cannot write %.200s: %s", arguments[0],
                       output_of(arguments), strerror(reason));
    if (WIFSIGNALED(status))
        return cm_fail(err, CM_UNSUPPORTED, "%.200s crashed (%s): %.*s", arguments[0],
                       strsignal(WTERMSIG(status)), said->size < 600 ? (int)said->size : 600,
                       said->data);
    return CM_OK;
}

enum cm_status cm_tool_run(const struct cm_workspace *workspace, const char *const *arguments,
                           struct cm_error *err)
{
    struct cm_str said;
    bool succeeded;

    CM_TRY(cm_tool_try(workspace, arguments, &succeeded, &said, err));
    if (succeeded)
        return CM_OK;
    return cm_fail(err, CM_UNSUPPORTED, "%.200s failed: %.*s", arguments[0],
                   said.size < 600 ? (int)said.size : 600, said.data);
}
