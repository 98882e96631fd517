/* Goes through a folder and the folders in it. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "base/folder_list.h"

#include "base/array.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

struct visited {
    dev_t device;
    ino_t inode;
};

struct listing {
    struct cm_arena *arena;
    bool follow;
    size_t entries;
    struct cm_folder_names *names;
    CM_ARRAY(struct visited)
    visited; /* folders: each is entered once, so that links and mounts in a circle end */
    struct cm_error *err;
};

static int by_name(const void *a, const void *b)
{
    return cm_str_compare(*(const struct cm_str *)a, *(const struct cm_str *)b);
}

static void close_folder(void *folder)
{
    closedir(folder);
}

static bool enter(struct listing *l, const struct stat *facts)
{
    for (size_t i = 0; i < l->visited.count; i++)
        if (l->visited.items[i].device == facts->st_dev &&
            l->visited.items[i].inode == facts->st_ino)
            return false;
    *CM_PUSH(l->arena, &l->visited) = (struct visited){facts->st_dev, facts->st_ino};
    return true;
}

static enum cm_status list(struct listing *l, int fd, struct cm_str below, int levels);

static enum cm_status list_entry(struct listing *l, int folder, const char *entry,
                                 struct cm_str below, int levels)
{
    const int way = l->follow ? 0 : AT_SYMLINK_NOFOLLOW;
    struct stat facts;

    if (strcmp(entry, ".") == 0 || strcmp(entry, "..") == 0)
        return CM_OK;
    if (++l->entries > CM_FOLDER_ENTRIES)
        return cm_fail(l->err, CM_LIMIT, "there are more than %d files and folders in it",
                       CM_FOLDER_ENTRIES);
    if (fstatat(folder, entry, &facts, way) != 0)
        return CM_OK;
    const struct cm_str name = cm_arena_printf(l->arena, "%.*s%s%s", (int)below.size, below.data,
                                               below.size ? "/" : "", entry);
    if (S_ISREG(facts.st_mode) || S_ISLNK(facts.st_mode))
        *CM_PUSH(l->arena, l->names) = name;
    if (!S_ISDIR(facts.st_mode) || levels <= 1)
        return CM_OK;
    const int fd =
        openat(folder, entry, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (l->follow ? 0 : O_NOFOLLOW));
    return fd < 0 ? CM_OK : list(l, fd, name, levels - 1);
}

/* Takes fd. */
static enum cm_status list(struct listing *l, int fd, struct cm_str below, int levels)
{
    DIR *folder = fdopendir(fd);
    const struct dirent *entry;
    enum cm_status status = CM_OK;
    struct stat facts;

    if (!folder) {
        close(fd);
        return cm_fail(l->err, CM_IO, "cannot read the folder: %s", strerror(errno));
    }
    cm_arena_defer(l->arena, close_folder, folder);
    if (fstat(fd, &facts) == 0 && enter(l, &facts))
        while (!status && (entry = readdir(folder)))
            status = list_entry(l, fd, entry->d_name, below, levels);
    cm_arena_forget(l->arena, close_folder, folder);
    closedir(folder);
    return status;
}

enum cm_status cm_folder_list(struct cm_arena *arena, const char *path, int levels, unsigned flags,
                              struct cm_folder_names *out, struct cm_error *err)
{
    struct listing l = {
        .arena = arena, .follow = flags & CM_FOLLOW_LINKS, .names = out, .err = err};
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    *out = (struct cm_folder_names){0};
    if (fd < 0)
        return cm_fail(err, CM_IO, "cannot read the folder: %s", strerror(errno));
    CM_TRY(list(&l, fd, CM_STR(""), levels));
    if (out->count)
        qsort(out->items, out->count, sizeof *out->items, by_name);
    return CM_OK;
}
