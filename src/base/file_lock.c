/* Locks on folders. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "base/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "/.lock"

static enum cm_status fail_lock(const char *folder, int why, struct cm_error *err)
{
    return cm_fail(err, why == ENOENT || why == ENOTDIR ? CM_NOT_FOUND : CM_IO,
                   "cannot write in the folder '%.300s': %s", folder, strerror(why));
}

static enum cm_status refuse(const struct cm_lock *lock, const char *folder, struct cm_error *err)
{
    char text[24] = "";
    const ssize_t size = pread(lock->fd, text, sizeof text - 1, 0);
    const long holder = size > 0 ? strtol(text, NULL, 10) : 0;

    if (holder > 0)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "folder '%.300s' is in use by process %ld: wait until it ends, or take "
                       "another folder",
                       folder, holder);
    return cm_fail(err, CM_BAD_ARGUMENT,
                   "folder '%.300s' is in use by another process: wait until it ends, or take "
                   "another folder",
                   folder);
}

/* Is the file that is locked still the one of that name? Whoever had it may have removed it. */
static bool is_current(const struct cm_lock *lock)
{
    struct stat open_one, named;

    return fstat(lock->fd, &open_one) == 0 && stat(lock->path, &named) == 0 &&
           open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

/* A file of that name that no lock wrote, or that has a second name elsewhere, is somebody's: it is
 * neither overwritten nor removed. */
static bool is_ours(const struct cm_lock *lock)
{
    struct stat facts;
    char text[24] = "";

    if (fstat(lock->fd, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_nlink > 1 ||
        facts.st_size >= (off_t)sizeof text)
        return false;
    const ssize_t size = pread(lock->fd, text, sizeof text - 1, 0);
    return size >= 0 && strspn(text, "0123456789\n") == (size_t)size;
}

/* The holder's number is for the other's sentence: without room for it the lock is as good. */
static void sign(const struct cm_lock *lock)
{
    char text[24];
    const int size = snprintf(text, sizeof text, "%ld\n", (long)getpid());

    (void)!ftruncate(lock->fd, 0);
    (void)!pwrite(lock->fd, text, (size_t)size, 0);
}

enum cm_status cm_lock_take(struct cm_lock *lock, const char *folder, struct cm_error *err)
{
    enum cm_status status = CM_OK;

    *lock = (struct cm_lock){.taken = false};
    if ((size_t)snprintf(lock->path, sizeof lock->path, "%s" NAME, folder) >= sizeof lock->path)
        return fail_lock(folder, ENAMETOOLONG, err);
    for (bool current = false; !current;) {
        lock->fd = open(lock->path,
                        O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0666);
        if (lock->fd < 0)
            return fail_lock(folder, errno, err);
        if (is_current(lock) && !is_ours(lock)) {
            close(lock->fd);
            return cm_fail(err, CM_BAD_ARGUMENT,
                           "folder '%.300s' has a file '.lock' that is not a lock of Cameo: remove "
                           "it, or take another folder",
                           folder);
        }
        const bool held = flock(lock->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        if (held)
            status = refuse(lock, folder, err);
        current = held || is_current(lock);
        if (held || !current)
            close(lock->fd);
    }
    lock->taken = status == CM_OK;
    if (lock->taken)
        sign(lock);
    return status;
}

void cm_lock_release(struct cm_lock *lock)
{
    if (!lock->taken)
        return;
    if (is_current(lock)) /* and not that of a run after somebody removed the folder */
        unlink(lock->path);
    close(lock->fd);
    lock->taken = false;
}
