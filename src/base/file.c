/* Reading files: mapping them whole, opening those a model names, taking paths apart. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "base/file.h"

#include "base/memory.h"
#include "base/number.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef SYS_openat2
#include <linux/openat2.h>
#endif

/* Not blocking, so that a pipe in the place of a file cannot stop us; regular files ignore it. */
enum { READ_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

/* Less is not worth a system call. */
enum { FORGET_LEAST = 1 << 18 };

/* A path in a message is cut before it can push out the reason. */
#define PATH_FMT "'%.600s'"
#define NAME_FMT "'%.200s'"

static enum cm_status fail_open(const char *path, int error, struct cm_error *err)
{
    const bool missing = error == ENOENT || error == ENOTDIR;

    if (missing)
        return cm_fail(err, CM_NOT_FOUND, "there is no file " PATH_FMT, path);
    return cm_fail(err, CM_IO, "cannot open " PATH_FMT ": %s", path, strerror(error));
}

/* The file's facts, once it is known to be one whose bytes we may take. */
static enum cm_status stat_regular(int fd, const char *path, enum cm_status otherwise,
                                   struct stat *facts, struct cm_error *err)
{
    if (fstat(fd, facts) != 0)
        return cm_fail(err, CM_IO, "cannot examine " PATH_FMT ": %s", path, strerror(errno));
    if (S_ISDIR(facts->st_mode))
        return cm_fail(err, otherwise, PATH_FMT " is a folder, not a file", path);
    if (!S_ISREG(facts->st_mode))
        return cm_fail(err, otherwise, PATH_FMT " is not a regular file", path);
    return CM_OK;
}

static enum cm_status read_whole(int fd, const char *path, uint8_t *bytes, size_t size,
                                 struct cm_error *err)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = pread(fd, bytes + done, size - done, (off_t)done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return cm_fail(err, CM_IO, "cannot read " PATH_FMT ": %s", path, strerror(errno));
        if (n == 0)
            return cm_fail(err, CM_IO, PATH_FMT " became shorter while it was read", path);
        done += (size_t)n;
    }
    return CM_OK;
}

static enum cm_status copy_file(int fd, const char *path, size_t size, struct cm_mapping *out,
                                struct cm_error *err)
{
    uint8_t *bytes = cm_malloc(size);

    if (!bytes)
        return cm_fail(err, CM_NO_MEMORY, "no memory for the %zu bytes of " PATH_FMT, size, path);
    const enum cm_status status = read_whole(fd, path, bytes, size, err);
    if (status)
        cm_free(bytes);
    else
        *out = (struct cm_mapping){bytes, size, true};
    return status;
}

enum cm_status cm_fd_map(int fd, const char *path, bool copy, struct cm_mapping *out,
                         struct cm_error *err)
{
    struct stat facts;

    *out = (struct cm_mapping){0};
    CM_TRY(stat_regular(fd, path, CM_BAD_ARGUMENT, &facts, err));
    if (facts.st_size <= 0)
        return CM_OK;
    if ((uint64_t)facts.st_size > PTRDIFF_MAX)
        return cm_fail(err, CM_LIMIT, PATH_FMT " is larger than memory can be", path);
    const size_t size = (size_t)facts.st_size;
    if (copy)
        return copy_file(fd, path, size, out, err);
    const void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data != MAP_FAILED) {
        *out = (struct cm_mapping){data, size, false};
        return CM_OK;
    }
    if (errno == ENODEV) /* some network and user-space file systems cannot map */
        return copy_file(fd, path, size, out, err);
    if (errno == ENOMEM)
        cm_memory_note_refused();
    return cm_fail(err, errno == ENOMEM ? CM_NO_MEMORY : CM_IO, "cannot map " PATH_FMT ": %s", path,
                   strerror(errno));
}

enum cm_status cm_file_map(const char *path, bool copy, struct cm_mapping *out,
                           struct cm_error *err)
{
    *out = (struct cm_mapping){0};
    const int fd = open(path, READ_FLAGS);
    if (fd < 0)
        return fail_open(path, errno, err);
    const enum cm_status status = cm_fd_map(fd, path, copy, out, err);
    close(fd);
    return status;
}

void cm_mapping_release(struct cm_mapping *mapping)
{
    if (mapping->copied)
        cm_free((void *)mapping->data);
    else if (mapping->data && !cm_memory_is_pinned(mapping->data, mapping->size))
        munmap((void *)mapping->data, mapping->size);
    *mapping = (struct cm_mapping){0};
}

static void release_mapping(void *mapping)
{
    cm_mapping_release(mapping);
}

void cm_mapping_defer(struct cm_arena *arena, struct cm_mapping *mapping)
{
    cm_arena_defer(arena, release_mapping, mapping);
}

void cm_mapped_forget(const struct cm_str *ranges, size_t n, const void *bytes, size_t size)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = (uintptr_t)bytes, last = first + size;

    if (size < FORGET_LEAST)
        return;
    for (size_t i = 0; i < n; i++) {
        const uintptr_t begin = (uintptr_t)ranges[i].data;
        const uintptr_t from = cm_round_up(first, page), to = last / page * page;

        /* Whole pages only: their neighbours hold other bytes. */
        if (first >= begin && last <= begin + ranges[i].size && from < to)
            (void)!madvise((void *)from, to - from, MADV_DONTNEED);
    }
}

static bool is_separator(char c)
{
    return c == '/' || c == '\\'; /* the model may come from, or go to, another system */
}

static bool has_parent_component(struct cm_str name)
{
    size_t start = 0;

    for (size_t i = 0; i <= name.size; i++) {
        if (i < name.size && !is_separator(name.data[i]))
            continue;
        if (i - start == 2 && name.data[start] == '.' && name.data[start + 1] == '.')
            return true;
        start = i + 1;
    }
    return false;
}

static bool has_drive(struct cm_str name)
{
    const char letter = name.size > 2 ? (char)(name.data[0] | 0x20) : 0;

    return letter >= 'a' && letter <= 'z' && name.data[1] == ':' && is_separator(name.data[2]);
}

enum cm_status cm_file_name_is_inside(struct cm_str name, struct cm_error *err)
{
    if (name.size == 0)
        return cm_fail(err, CM_BAD_MODEL, "the file name is empty");
    if (memchr(name.data, 0, name.size))
        return cm_fail(err, CM_BAD_MODEL, "file name '%.*s' holds a zero byte", CM_STR_FMT(name));
    if (name.size >= PATH_MAX)
        return cm_fail(err, CM_BAD_MODEL, "file name '%.*s...' has %zu bytes, the limit is %d",
                       CM_STR_FMT(name), name.size, PATH_MAX - 1);
    if (is_separator(name.data[0]) || has_drive(name))
        return cm_fail(err, CM_BAD_MODEL,
                       "file name '%.*s' is absolute, must be relative to the model's folder",
                       CM_STR_FMT(name));
    if (has_parent_component(name))
        return cm_fail(err, CM_BAD_MODEL,
                       "file name '%.*s' has a '..' in it, must stay in the model's folder",
                       CM_STR_FMT(name));
    return CM_OK;
}

/* The kernel's own resolution that cannot leave a folder. ENOSYS when it has none, or a sandbox
 * hides it. A concurrent rename makes it say EAGAIN; an attacker may keep that up, so tries are
 * few. */
static int open_resolved(int folder, const char *name)
{
#ifdef SYS_openat2
    struct open_how how = {.flags = READ_FLAGS,
                           .resolve =
                               RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS};
    long fd = -1;

    for (int tries = 0; tries < 16; tries++) {
        fd = syscall(SYS_openat2, folder, name, &how, sizeof how);
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
            break;
    }
    if (fd < 0 && (errno == EPERM || errno == EINVAL || errno == E2BIG))
        errno = ENOSYS;
    return (int)fd;
#else
    (void)folder, (void)name;
    errno = ENOSYS;
    return -1;
#endif
}

static void close_quietly(int fd)
{
    const int error = errno;

    close(fd);
    errno = error;
}

static bool is_link(int folder, const char *name)
{
    struct stat facts;

    return fstatat(folder, name, &facts, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(facts.st_mode);
}

/* Opens one component; ELOOP for a link, whatever else it was taken for. */
static int open_component(int folder, const char *name, int flags)
{
    const int fd = openat(folder, *name ? name : ".", flags | O_NOFOLLOW);
    const int error = errno;

    if (fd < 0)
        errno = is_link(folder, name) ? ELOOP : error;
    return fd;
}

/* The same without the kernel's help and without links: one component after the other. */
static int open_by_steps(int folder, const char *name)
{
    char rest[PATH_MAX];
    char *part = rest;
    int at = fcntl(folder, F_DUPFD_CLOEXEC, 0);

    memcpy(rest, name, strlen(name) + 1);
    for (char *slash; at >= 0 && (slash = strchr(part, '/')); part = slash + 1) {
        *slash = 0;
        const int next = open_component(at, part, O_PATH | O_DIRECTORY | O_CLOEXEC);
        close_quietly(at);
        at = next;
    }
    if (at < 0)
        return -1;
    const int fd = open_component(at, part, READ_FLAGS);
    close_quietly(at);
    return fd;
}

/* Wherever links lead: somebody said that they may. It is first opened in name only, as opening a
 * device for real could already do something. */
static int open_followed(int folder, const char *name)
{
    char link[64];
    struct stat facts;
    const int found = openat(folder, name, O_PATH | O_CLOEXEC);

    if (found < 0)
        return -1;
    /* What is no plain file is handed on as it is, for the caller to refuse. */
    if (fstat(found, &facts) != 0 || !S_ISREG(facts.st_mode))
        return found;
    snprintf(link, sizeof link, "/proc/self/fd/%d", found);
    int fd = open(link, READ_FLAGS);
    if (fd < 0 && errno == ENOENT) /* no /proc */
        fd = openat(folder, name, READ_FLAGS);
    close_quietly(found);
    return fd;
}

/* A link was met where none may be: accepting it helps if there is a file at its end. */
static enum cm_status fail_link(int folder, const char *name, struct cm_error *err)
{
    struct stat facts;

    if (fstatat(folder, name, &facts, 0) == 0 && S_ISREG(facts.st_mode))
        return cm_fail(err, CM_BAD_MODEL,
                       NAME_FMT " is, or is behind, a symbolic link; --allow-links accepts those",
                       name);
    return cm_fail(err, CM_BAD_MODEL,
                   NAME_FMT " is, or is behind, a symbolic link that leads to no file", name);
}

static enum cm_status fail_beneath(const char *folder, const char *name, int error,
                                   struct cm_error *err)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return cm_fail(err, CM_NOT_FOUND, "there is no file " NAME_FMT " in folder " PATH_FMT, name,
                       folder);
    case EXDEV:
        return cm_fail(err, CM_BAD_MODEL, NAME_FMT " leads out of the model's folder", name);
    default:
        return cm_fail(err, CM_IO, "cannot open " NAME_FMT " in folder " PATH_FMT ": %s", name,
                       folder, strerror(error));
    }
}

static enum cm_status check_opened(int fd, const char *name, unsigned flags, struct cm_error *err)
{
    struct stat facts;

    CM_TRY(stat_regular(fd, name, CM_BAD_MODEL, &facts, err));
    /* A second name may be that of somebody's secret, linked into the folder. */
    if (!(flags & CM_FOLLOW_LINKS) && facts.st_nlink > 1)
        return cm_fail(err, CM_BAD_MODEL,
                       PATH_FMT " has %llu hard links, must have 1; --allow-links accepts those",
                       name, (unsigned long long)facts.st_nlink);
    return CM_OK;
}

enum cm_status cm_file_open_beneath(const char *folder, struct cm_str name, unsigned flags, int *fd,
                                    struct cm_error *err)
{
    char text[PATH_MAX];

    *fd = -1;
    CM_TRY(cm_file_name_is_inside(name, err));
    memcpy(text, name.data, name.size);
    text[name.size] = 0;
    const char *where = *folder ? folder : ".";
    const int at = open(where, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (at < 0)
        return cm_fail(err, errno == ENOENT || errno == ENOTDIR ? CM_NOT_FOUND : CM_IO,
                       "cannot open folder " PATH_FMT ": %s", where, strerror(errno));
    const bool follow = flags & CM_FOLLOW_LINKS;
    int opened = follow ? open_followed(at, text) : open_resolved(at, text);
    if (opened < 0 && !follow && errno == ENOSYS)
        opened = open_by_steps(at, text);
    if (opened < 0) {
        const int error = errno;
        const enum cm_status status = error == ELOOP && !follow
                                          ? fail_link(at, text, err)
                                          : fail_beneath(where, text, error, err);
        close(at);
        return status;
    }
    close(at);
    const enum cm_status status = check_opened(opened, text, flags, err);
    if (status)
        close(opened);
    else
        *fd = opened;
    return status;
}

struct cm_str cm_path_folder(struct cm_arena *arena, const char *path)
{
    size_t size = (size_t)(cm_path_name(path) - path);

    if (size == 0)
        return cm_arena_str(arena, CM_STR("."));
    while (size > 1 && path[size - 1] == '/')
        size--;
    return cm_arena_str(arena, (struct cm_str){path, size});
}

const char *cm_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

struct cm_str cm_path_join(struct cm_arena *arena, struct cm_str folder, struct cm_str name)
{
    size_t room;

    if (folder.size == 0 || cm_str_is(folder, ".") || cm_str_starts(name, "/"))
        return cm_arena_str(arena, name);
    const size_t slash = !cm_str_ends(folder, "/");
    if (!cm_size_add(folder.size + slash, name.size, &room))
        room = SIZE_MAX - 1;
    char *path = cm_arena_alloc(arena, room + 1);
    memcpy(path, folder.data, folder.size);
    if (slash)
        path[folder.size] = '/';
    if (name.size)
        memcpy(path + folder.size + slash, name.data, name.size);
    return (struct cm_str){path, folder.size + slash + name.size};
}
