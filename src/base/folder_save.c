/* Writing folders: under a temporary name, then renamed into place. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "base/folder_save.h"

#include "base/arena.h"
#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SPARE = 64, TRIES = 100, DEPTH_MAX = 16 };

static enum cm_status fail(const char *path, int error, struct cm_error *err)
{
    return cm_fail(err, error == ENOENT ? CM_NOT_FOUND : CM_IO, "cannot write '%.600s': %s", path,
                   error == ENOENT ? "its folder does not exist" : strerror(error));
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
    const bool exists = lstat(save->path, &facts) == 0;
    if (exists && rmdir(save->path) != 0) { /* an empty folder is taken away */
        cm_folder_abandon(save);
        return cm_fail(err, CM_BAD_ARGUMENT, "cannot write '%.600s': something is there already",
                       path);
    }
    for (int tries = 0; tries < TRIES; tries++) {
        memcpy(save->temporary, save->path, size);
        snprintf(save->temporary + size, SPARE, ".tmp-%ld-%u", (long)getpid(),
                 atomic_fetch_add(&counter, 1));
        if (mkdir(save->temporary, 0777) == 0)
            return CM_OK;
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
    const enum cm_status status = cm_save_write(&file, bytes.data, bytes.size, err);
    if (status) {
        cm_save_abandon(&file);
        return status;
    }
    return cm_save_commit(&file, err);
}

static void remove_tree(int parent, const char *name, int depth)
{
    const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;

    while (folder && (entry = readdir(folder))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(fd, entry->d_name, 0) != 0 && depth < DEPTH_MAX)
            remove_tree(fd, entry->d_name, depth + 1);
    }
    if (folder)
        closedir(folder);
    else if (fd >= 0)
        close(fd);
    unlinkat(parent, name, AT_REMOVEDIR);
}

void cm_folder_abandon(struct cm_folder_save *save)
{
    if (save->temporary && save->temporary[0])
        remove_tree(AT_FDCWD, save->temporary, 0);
    cm_free(save->temporary);
    cm_free(save->path);
    *save = (struct cm_folder_save){0};
}

static void sync_folder(const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0) {
        (void)!fsync(fd);
        close(fd);
    }
}

enum cm_status cm_folder_commit(struct cm_folder_save *save, struct cm_error *err)
{
    enum cm_status status = CM_OK;

    sync_folder(save->temporary);
    if (cm_guard_starved())
        status = cm_fail(err, CM_NO_MEMORY, "no memory for all of '%s'", save->path);
    else if (rename(save->temporary, save->path) != 0)
        status = fail(save->path, errno, err);
    else
        save->temporary[0] = 0;
    if (!status) {
        char *end = strrchr(save->path, '/');
        if (end)
            *end = 0;
        sync_folder(!end ? "." : *save->path ? save->path : "/");
    }
    cm_folder_abandon(save);
    return status;
}
