/* Writing folders: under a temporary name, then renamed into place. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "base/folder_save.h"

#include "base/arena.h"
#include "base/memory.h"
#include "base/unfinished.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SPARE = 64, TRIES = 100 };

static enum cm_status fail(const char *path, int error, struct cm_error *err)
{
    return cm_fail(err, error == ENOENT ? CM_NOT_FOUND : CM_IO, "cannot write '%.600s': %s", path,
                   error == ENOENT ? "its folder does not exist" : strerror(error));
}

/* Such a one is replaced by the renaming. */
static bool is_empty_folder(const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    bool empty = folder != NULL;

    while (empty && (entry = readdir(folder)))
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    if (folder)
        closedir(folder);
    else if (fd >= 0)
        close(fd);
    return empty;
}

enum cm_status cm_folder_begin(struct cm_folder_save *save, const char *path, struct cm_error *err)
{
    static _Atomic unsigned counter;
    size_t size = strlen(path);
    struct stat facts;

    *save = (struct cm_folder_save){0};
    while (size > 1 && path[size - 1] == '/')
        size--;
    if (size == 0)
        return cm_fail(err, CM_BAD_ARGUMENT, "the name of the folder to write is empty");
    save->path = cm_calloc(size + 1, 1);
    save->temporary = cm_calloc(size + SPARE, 1);
    if (!save->path || !save->temporary) {
        cm_folder_abandon(save);
        return cm_fail(err, CM_NO_MEMORY, "cannot write '%.600s': out of memory", path);
    }
    memcpy(save->path, path, size);
    if (lstat(save->path, &facts) == 0 && !is_empty_folder(save->path)) {
        cm_folder_abandon(save);
        return cm_fail(err, CM_BAD_ARGUMENT, "cannot write '%.600s': something is there already",
                       path);
    }
    for (int tries = 0; tries < TRIES; tries++) {
        memcpy(save->temporary, save->path, size);
        snprintf(save->temporary + size, SPARE, ".tmp-%ld-%u", (long)getpid(),
                 atomic_fetch_add(&counter, 1));
        if (mkdir(save->temporary, 0777) == 0) {
            cm_unfinished_add(save->temporary);
            return CM_OK;
        }
        if (errno != EEXIST)
            break;
    }
    const int error = errno;
    save->temporary[0] = 0;
    cm_folder_abandon(save);
    return fail(path, error, err);
}

enum cm_status cm_folder_file(struct cm_folder_save *save, struct cm_arena *arena, const char *name,
                              const char **path, struct cm_error *err)
{
    const struct cm_str full = cm_arena_printf(arena, "%s/%s", save->temporary, name);
    char *text = cm_arena_alloc(arena, full.size + 1);

    CM_TRY(cm_file_name_is_inside(cm_str(name), err));
    memcpy(text, full.data, full.size);
    for (char *at = text + strlen(save->temporary) + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        if (mkdir(text, 0777) != 0 && errno != EEXIST)
            return fail(text, errno, err);
        *at = '/';
    }
    *path = text;
    return CM_OK;
}

enum cm_status cm_folder_put(struct cm_folder_save *save, struct cm_arena *arena, const char *name,
                             struct cm_str bytes, struct cm_error *err)
{
    struct cm_save file = {0};
    const char *path;

    CM_TRY(cm_folder_file(save, arena, name, &path, err));
    CM_TRY(cm_save_begin(&file, path, err));
    return cm_save_end(&file, cm_save_write(&file, bytes.data, bytes.size, err), err);
}

void cm_folder_abandon(struct cm_folder_save *save)
{
    if (save->temporary) {
        if (save->temporary[0])
            cm_remove_tree(save->temporary);
        cm_unfinished_drop(save->temporary);
    }
    cm_free(save->temporary);
    cm_free(save->path);
    *save = (struct cm_folder_save){0};
}

static void abandon(void *save)
{
    cm_folder_abandon(save);
}

void cm_folder_defer(struct cm_arena *arena, struct cm_folder_save *save)
{
    cm_arena_defer(arena, abandon, save);
}

static enum cm_status rename_folder(struct cm_folder_save *save, struct cm_error *err)
{
    const int error = cm_folder_sync(save->temporary);

    if (error)
        return fail(save->path, error, err);
    if (cm_guard_starved())
        return cm_fail(err, CM_NO_MEMORY, "no memory for all of '%s'", save->path);
    if (rename(save->temporary, save->path) != 0)
        return errno == EEXIST || errno == ENOTEMPTY
                   ? cm_fail(err, CM_BAD_ARGUMENT,
                             "cannot write '%.600s': something is there already", save->path)
                   : fail(save->path, errno, err);
    save->temporary[0] = 0;
    return CM_OK;
}

static enum cm_status sync_parent(const char *path, struct cm_error *err)
{
    const int error = cm_folder_sync_around(path);
    return error ? cm_fail(err, CM_IO,
                           "'%.600s' is written, but it may be lost when the power fails: the "
                           "folder that it is in cannot be synced: %s",
                           path, strerror(error))
                 : CM_OK;
}

enum cm_status cm_folder_commit(struct cm_folder_save *save, struct cm_error *err)
{
    enum cm_status status = rename_folder(save, err);

    if (!status)
        status = sync_parent(save->path, err);
    cm_folder_abandon(save);
    return status;
}
