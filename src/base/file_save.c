/* Writing files: under a temporary name, then renamed into place. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "base/arena.h"
#include "base/file.h"
#include "base/folder_save.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/unfinished.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A write of a regular file cannot be interrupted, so none is larger than PIECE_SIZE. */
enum { PENDING_SIZE = 1 << 20, PIECE_SIZE = 16 << 20, TEMPORARY_TRIES = 100 };

#define PATH_FMT "'%.600s'"

static enum cm_status fail_write(const char *path, int error, struct cm_error *err)
{
    if (error == ENOENT || error == ENOTDIR)
        return cm_fail(err, CM_NOT_FOUND, "cannot write " PATH_FMT ": its folder does not exist",
                       path);
    if (error == ENAMETOOLONG)
        return cm_fail(err, CM_BAD_ARGUMENT, "cannot write " PATH_FMT ": %s", path,
                       strerror(error));
    if (error == EFAULT) /* the bytes lie in a mapped file */
        return cm_fail(err, CM_IO,
                       "cannot write " PATH_FMT ": a file that it is made from was cut short",
                       path);
    return cm_fail(err, CM_IO, "cannot write " PATH_FMT ": %s", path, strerror(error));
}

static enum cm_status fail_memory(const char *path, struct cm_error *err)
{
    return cm_fail(err, CM_NO_MEMORY, "cannot write " PATH_FMT ": out of memory", path);
}

static char *copy_text(const char *text, size_t spare)
{
    const size_t size = strlen(text) + 1;
    char *copy = cm_malloc(size + spare);

    if (copy)
        memcpy(copy, text, size);
    return copy;
}

/* The path to rename over: a link is followed, so that it goes on pointing at the newest file. */
static enum cm_status resolve_target(const char *path, char **target, struct cm_error *err)
{
    char real[PATH_MAX];
    struct stat facts;

    if (*path == 0)
        return cm_fail(err, CM_BAD_ARGUMENT, "the name of the file to write is empty");
    const bool link = lstat(path, &facts) == 0 && S_ISLNK(facts.st_mode);
    if (link && !realpath(path, real)) {
        const bool missing = errno == ENOENT || errno == ENOTDIR;
        if (stat(path, &facts) == 0) /* /dev/stdout, when that is a pipe */
            return cm_fail(err, CM_BAD_ARGUMENT,
                           "cannot write " PATH_FMT ": it is not a regular file", path);
        return cm_fail(err, missing ? CM_NOT_FOUND : CM_IO,
                       "cannot write " PATH_FMT ": it is a symbolic link that leads nowhere", path);
    }
    *target = copy_text(link ? real : path, 0);
    return *target ? CM_OK : fail_memory(path, err);
}

/* Renaming would happily replace a device or a file that its owner protected against writing. */
static enum cm_status check_target(const char *path, bool *exists, struct stat *facts,
                                   struct cm_error *err)
{
    *exists = lstat(path, facts) == 0;
    if (!*exists)
        return CM_OK;
    if (S_ISLNK(facts->st_mode))
        return cm_fail(err, CM_IO,
                       "cannot write " PATH_FMT ": it is a symbolic link. Remove the link or name "
                       "another folder",
                       path);
    if (S_ISDIR(facts->st_mode))
        return cm_fail(err, CM_BAD_ARGUMENT, "cannot write " PATH_FMT ": it is a folder", path);
    if (!S_ISREG(facts->st_mode))
        return cm_fail(err, CM_BAD_ARGUMENT, "cannot write " PATH_FMT ": it is not a regular file",
                       path);
    if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0 && errno != EINVAL && errno != ENOSYS)
        return fail_write(path, errno, err);
    return CM_OK;
}

/* A name may be taken by what a killed process with our number left behind. */
static enum cm_status create_temporary(struct cm_save *save, mode_t mode, struct cm_error *err)
{
    static _Atomic unsigned counter;
    enum { SPARE = 64 };
    const size_t base = strlen(save->path);

    save->temporary = copy_text(save->path, SPARE);
    if (!save->temporary)
        return fail_memory(save->path, err);
    for (int tries = 0; tries < TEMPORARY_TRIES; tries++) {
        snprintf(save->temporary + base, SPARE, ".tmp-%ld-%u", (long)getpid(),
                 atomic_fetch_add(&counter, 1));
        save->fd = open(save->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (save->fd >= 0) {
            cm_unfinished_add(save->temporary);
            return CM_OK;
        }
        if (errno != EEXIST && errno != EINTR)
            break;
    }
    return fail_write(save->path, errno, err);
}

/* Owner and permissions of the file to be replaced. Only root may give a file away; others go on
 * without, but a group that was not allowed in before is not let in now. */
static enum cm_status adopt(const struct cm_save *save, const struct stat *facts,
                            struct cm_error *err)
{
    const bool owned = fchown(save->fd, facts->st_uid, facts->st_gid) == 0 ||
                       fchown(save->fd, (uid_t)-1, facts->st_gid) == 0;
    const mode_t mode = facts->st_mode & (owned ? 0777 : 0707);

    if (fchmod(save->fd, mode) != 0 && errno != EPERM && errno != ENOTSUP)
        return fail_write(save->path, errno, err);
    return CM_OK;
}

/* follow: a link at path leads to what is replaced. */
static enum cm_status begin(struct cm_save *save, const char *path, bool follow,
                            struct cm_error *err)
{
    struct stat facts;
    bool exists;

    save->pending = cm_malloc(PENDING_SIZE);
    if (!save->pending)
        return fail_memory(path, err);
    if (save->direct || !follow) {
        save->path = copy_text(path, 0);
        if (!save->path)
            return fail_memory(path, err);
    }
    if (save->direct)
        return CM_OK;
    if (follow)
        CM_TRY(resolve_target(path, &save->path, err));
    CM_TRY(check_target(save->path, &exists, &facts, err));
    CM_TRY(create_temporary(save, exists ? 0600 : 0644, err));
    return exists ? adopt(save, &facts, err) : CM_OK;
}

/* Everything is given back; the temporary file stays only where it became the real one. */
static void end(struct cm_save *save, bool keep)
{
    if (save->fd >= 0 && (save->temporary || save->direct))
        close(save->fd);
    if (save->temporary && !keep)
        unlink(save->temporary);
    if (save->temporary)
        cm_unfinished_drop(save->temporary);
    cm_free(save->path);
    cm_free(save->temporary);
    cm_free(save->pending);
    *save = (struct cm_save){.fd = -1};
}

static enum cm_status begin_file(struct cm_save *save, const char *path, bool follow,
                                 struct cm_error *err)
{
    *save = (struct cm_save){.fd = -1};
    const enum cm_status status = begin(save, path, follow, err);
    if (status) {
        /* What could not be created is not ours to remove. */
        end(save, save->fd < 0);
    }
    return status;
}

enum cm_status cm_save_begin(struct cm_save *save, const char *path, struct cm_error *err)
{
    return begin_file(save, path, true, err);
}

enum cm_status cm_save_begin_inside(struct cm_save *save, const char *folder, struct cm_str name,
                                    struct cm_error *err)
{
    char path[PATH_MAX];
    struct stat facts;
    const size_t size = strcmp(folder, ".") == 0 ? 0 : strlen(folder);
    const size_t slash = size > 0 && folder[size - 1] != '/';

    *save = (struct cm_save){.fd = -1};
    CM_TRY(cm_file_name_is_inside(name, err));
    if (size + slash + name.size >= sizeof path)
        return fail_write(folder, ENAMETOOLONG, err);
    memcpy(path, folder, size);
    memcpy(path + size, "/", slash);
    memcpy(path + size + slash, name.data, name.size);
    path[size + slash + name.size] = 0;
    for (char *at = path + size + slash; (at = strchr(at, '/')); *at++ = '/') {
        *at = 0;
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return fail_write(path, errno, err);
        if (lstat(path, &facts) == 0 && S_ISLNK(facts.st_mode))
            return cm_fail(err, CM_IO,
                           "cannot write in " PATH_FMT ": it is a symbolic link. Remove the link "
                           "or name another folder",
                           path);
    }
    return begin_file(save, path, false, err);
}

/* The number in "/dev/fd/3" and names like it, which may be an open file that others write to as
 * well: a new file in its place would be lost on them. */
static int number_of(const char *path)
{
    static const char *const names[] = {"/dev/fd/", "/proc/self/fd/"};

    if (strcmp(path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (size_t i = 0; i < CM_COUNT(names); i++) {
        const char *at = path + strlen(names[i]);
        char *end = NULL;

        if (strncmp(path, names[i], strlen(names[i])) != 0 || *at < '0' || *at > '9')
            continue;
        const long number = strtol(at, &end, 10);
        if (!*end && number <= INT_MAX)
            return (int)number;
    }
    return -1;
}

/* Opens what has no place in a folder; *fd stays -1 for a regular file, and where nothing is. */
static enum cm_status open_direct(const char *path, int *fd, struct cm_error *err)
{
    const int number = number_of(path);
    struct stat facts;

    *fd = -1;
    if (number >= 0)
        *fd = fcntl(number, F_DUPFD_CLOEXEC, 0);
    else if (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode))
        *fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    else
        return CM_OK;
    return *fd >= 0 ? CM_OK : fail_write(path, errno, err);
}

enum cm_status cm_save_begin_any(struct cm_save *save, const char *path, struct cm_error *err)
{
    int fd;

    *save = (struct cm_save){.fd = -1};
    CM_TRY(open_direct(path, &fd, err));
    if (fd < 0)
        return cm_save_begin(save, path, err);
    *save = (struct cm_save){.fd = fd, .direct = true};
    const enum cm_status status = begin(save, path, true, err);
    if (status)
        end(save, false);
    return status;
}

void cm_save_abandon(struct cm_save *save)
{
    end(save, false);
}

static void abandon(void *save)
{
    cm_save_abandon(save);
}

void cm_save_defer(struct cm_arena *arena, struct cm_save *save)
{
    cm_arena_defer(arena, abandon, save);
}

enum cm_status cm_save_end(struct cm_save *save, enum cm_status status, struct cm_error *err)
{
    if (status == CM_OK)
        return cm_save_commit(save, err);
    cm_save_abandon(save);
    return status;
}

static void close_file(struct cm_save *save)
{
    close(save->fd);
    save->fd = -1;
}

static enum cm_status go_on(const struct cm_save *save, struct cm_error *err)
{
    if (save->cancel && atomic_load_explicit(save->cancel, memory_order_relaxed))
        return cm_fail(err, CM_CANCELLED, "writing " PATH_FMT " was cancelled", save->path);
    return CM_OK;
}

/* After a failure the file is closed, so that nothing later can succeed by mistake. */
static enum cm_status write_out(struct cm_save *save, const uint8_t *bytes, size_t size,
                                struct cm_error *err)
{
    while (size > 0) {
        const enum cm_status cancelled = go_on(save, err);

        if (cancelled) {
            close_file(save);
            return cancelled;
        }
        const ssize_t n = write(save->fd, bytes, cm_min_size(size, PIECE_SIZE));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            const int error = n < 0 ? errno : EIO;
            close_file(save);
            return fail_write(save->path, error, err);
        }
        bytes += n;
        size -= (size_t)n;
    }
    return CM_OK;
}

static enum cm_status flush(struct cm_save *save, struct cm_error *err)
{
    if (save->fd < 0 || !(save->temporary || save->direct))
        return cm_fail(err, CM_IO, "cannot write " PATH_FMT ": an earlier write failed",
                       save->path ? save->path : "");
    const size_t size = save->n_pending;
    save->n_pending = 0;
    return write_out(save, save->pending, size, err);
}

enum cm_status cm_save_write(struct cm_save *save, const void *bytes, size_t size,
                             struct cm_error *err)
{
    if (size > PENDING_SIZE - save->n_pending || save->fd < 0)
        CM_TRY(flush(save, err));
    if (size >= PENDING_SIZE) {
        CM_TRY(write_out(save, bytes, size, err));
    } else if (size > 0) {
        memcpy(save->pending + save->n_pending, bytes, size);
        save->n_pending += size;
    }
    save->written += size;
    return CM_OK;
}

enum cm_status cm_save_align(struct cm_save *save, size_t alignment, struct cm_error *err)
{
    static const uint8_t zeros[4096];
    const size_t past = alignment ? (size_t)(save->written % alignment) : 0;

    for (size_t left = past ? alignment - past : 0; left > 0;) {
        const size_t size = cm_min_size(left, sizeof zeros);

        CM_TRY(cm_save_write(save, zeros, size, err));
        left -= size;
    }
    return CM_OK;
}

/* Some file systems have nothing to sync and say EINVAL. */
static int sync_file(int fd)
{
    int result;

    do {
        result = fsync(fd);
    } while (result != 0 && errno == EINTR);
    return result != 0 && errno != EINVAL ? -1 : 0;
}

int cm_folder_sync(const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return 0;
    const int error = sync_file(fd) != 0 ? errno : 0;
    close(fd);
    return error;
}

int cm_folder_sync_around(const char *path)
{
    const size_t size = (size_t)(cm_path_name(path) - path);
    char folder[PATH_MAX] = ".";

    if (size > 0 && size < sizeof folder) {
        memcpy(folder, path, size);
        folder[size] = 0;
    }
    return cm_folder_sync(folder);
}

/* Syncing and closing are where a file system that writes late says that it could not. */
static enum cm_status complete(struct cm_save *save, struct cm_error *err)
{
    CM_TRY(flush(save, err));
    CM_TRY(go_on(save, err));
    if (sync_file(save->fd) != 0)
        return fail_write(save->path, errno, err);
    const int fd = save->fd;
    save->fd = -1;
    if (close(fd) != 0 && errno != EINTR)
        return fail_write(save->path, errno, err);
    CM_TRY(go_on(save, err)); /* syncing may have taken long */
    return cm_guard_starved() ? cm_fail(err, CM_NO_MEMORY, "no memory for all of '%s'", save->path)
                              : CM_OK;
}

static enum cm_status complete_all(struct cm_save *const *saves, size_t count, struct cm_error *err)
{
    for (size_t i = 0; i < count; i++)
        CM_TRY(complete(saves[i], err));
    return CM_OK;
}

/* *done: how many have their names. */
static enum cm_status rename_all(struct cm_save *const *saves, size_t count, size_t *done,
                                 struct cm_error *err)
{
    for (; *done < count; ++*done) {
        const struct cm_save *save = saves[*done];

        if (save->direct || rename(save->temporary, save->path) == 0)
            continue;
        struct cm_error why;
        const enum cm_status status = fail_write(save->path, errno, &why);

        if (*done)
            return cm_fail(err, status, "%s; '%.300s' is the new one already", why.text,
                           saves[*done - 1]->path);
        return cm_fail(err, status, "%s", why.text);
    }
    return CM_OK;
}

/* All are synced, whichever fails. */
static enum cm_status sync_folders(struct cm_save *const *saves, size_t count, struct cm_error *err)
{
    enum cm_status status = CM_OK;

    for (size_t i = 0; i < count; i++) {
        const int error = saves[i]->direct ? 0 : cm_folder_sync_around(saves[i]->path);

        if (error && status == CM_OK)
            status = cm_fail(err, CM_IO,
                             PATH_FMT " is written, but it may be lost when the power fails: its "
                                      "folder cannot be synced: %s",
                             saves[i]->path, strerror(error));
    }
    return status;
}

enum cm_status cm_save_commit_all(struct cm_save *const *saves, size_t count, struct cm_error *err)
{
    size_t done = 0;
    enum cm_status status = complete_all(saves, count, err);

    if (status == CM_OK)
        status = rename_all(saves, count, &done, err);
    if (status == CM_OK)
        status = sync_folders(saves, count, err);
    for (size_t i = 0; i < count; i++)
        end(saves[i], i < done);
    return status;
}

enum cm_status cm_save_commit(struct cm_save *save, struct cm_error *err)
{
    return cm_save_commit_all(&save, 1, err);
}

/* ---- files that grow ---- */

/* All bytes at the given place, or where a pipe stands. */
static bool write_all(int fd, bool at_place, uint64_t place, const uint8_t *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = at_place ? pwrite(fd, bytes + done, size - done, (off_t)(place + done))
                                   : write(fd, bytes + done, size - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            errno = ENOSPC;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

/* The first record goes to a file without its name, which then takes the place of the old one. */
static enum cm_status append_first(struct cm_stream *stream, const void *bytes, size_t size,
                                   struct cm_error *err)
{
    struct cm_save *fresh = &stream->fresh;

    if (fresh->fd < 0)
        CM_TRY(cm_save_begin(fresh, stream->path, err));
    if (!write_all(fresh->fd, true, 0, bytes, size) || rename(fresh->temporary, fresh->path) != 0) {
        const int reason = errno;

        cm_save_abandon(fresh);
        return fail_write(stream->path, reason, err);
    }
    stream->fd = fresh->fd;
    fresh->fd = -1;
    end(fresh, true);
    stream->size = size;
    return CM_OK;
}

enum cm_status cm_stream_append(struct cm_stream *stream, const void *bytes, size_t size,
                                struct cm_error *err)
{
    const bool is_file = !stream->fresh.direct;

    if (!stream->path)
        return cm_fail(err, CM_BAD_ARGUMENT, "the file to write to is closed");
    if (stream->fd < 0)
        return append_first(stream, bytes, size, err);
    if (!write_all(stream->fd, is_file, stream->size, bytes, size)) {
        const int reason = errno;

        if (is_file) /* what came of the record goes again: the file ends with a whole one */
            (void)!ftruncate(stream->fd, (off_t)stream->size);
        return fail_write(stream->path, reason, err);
    }
    stream->size += size;
    return CM_OK;
}

static enum cm_status open_stream(struct cm_stream *stream, uint64_t keep, struct cm_error *err)
{
    CM_TRY(open_direct(stream->path, &stream->fd, err));
    stream->fresh.direct = stream->fd >= 0;
    if (stream->fd >= 0)
        return CM_OK;
    if (!keep)
        return cm_save_begin(&stream->fresh, stream->path, err);
    stream->fd = open(stream->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (stream->fd < 0 || ftruncate(stream->fd, (off_t)keep) != 0)
        return fail_write(stream->path, errno, err);
    stream->size = keep;
    return CM_OK;
}

enum cm_status cm_stream_open(struct cm_stream *stream, const char *path, uint64_t keep,
                              struct cm_error *err)
{
    *stream = (struct cm_stream){.fd = -1, .fresh = {.fd = -1}, .path = copy_text(path, 0)};
    const enum cm_status status =
        stream->path ? open_stream(stream, keep, err) : fail_memory(path, err);
    if (status)
        cm_stream_close(stream);
    return status;
}

enum cm_status cm_stream_create(struct cm_stream *stream, const char *path, bool *exists,
                                struct cm_error *err)
{
    *stream = (struct cm_stream){.fd = -1, .fresh = {.fd = -1}, .path = copy_text(path, 0)};
    if (!stream->path)
        return fail_memory(path, err);
    stream->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    const int reason = errno;
    *exists = stream->fd < 0 && reason == EEXIST;
    if (stream->fd >= 0)
        return CM_OK;
    cm_stream_close(stream);
    return *exists ? CM_OK : fail_write(path, reason, err);
}

enum cm_status cm_stream_finish(struct cm_stream *stream, struct cm_error *err)
{
    const int fd = stream->fd;
    const bool is_file = fd >= 0 && !stream->fresh.direct;
    int error = is_file && sync_file(fd) != 0 ? errno : 0;

    stream->fd = -1;
    if (fd >= 0 && close(fd) != 0 && errno != EINTR && !error)
        error = errno;
    const enum cm_status status = error ? fail_write(stream->path, error, err) : CM_OK;
    cm_stream_close(stream);
    return status;
}

void cm_stream_close(struct cm_stream *stream)
{
    if (stream->fd >= 0 && stream->path)
        close(stream->fd);
    stream->fresh.direct = false;
    cm_save_abandon(&stream->fresh);
    cm_free(stream->path);
    *stream = (struct cm_stream){.fd = -1, .fresh = {.fd = -1}};
}
