/* Locks on folders. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "base/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME      "/.lock"
#define NAME_HELD "/.lock-held"

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

/* flock, or, for a file system that has none, as some of clusters, a lock on the file's bytes that
 * belongs to the open file as flock's does. *none: it has neither. */
static bool is_free(int fd, bool *none)
{
    struct flock bytes = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return true;
    if (errno == EWOULDBLOCK)
        return false;
    if (fcntl(fd, F_OFD_SETLK, &bytes) == 0)
        return true;
    *none = errno != EAGAIN && errno != EACCES;
    return false;
}

/* ---- file systems without locks ---- */

/* Who holds such a lock: a process of a machine. */
struct holder {
    char text[120]; /* "PID HOST" */
};

static void describe_self(struct holder *self)
{
    char host[80] = "";

    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = 0;
    for (char *at = host; *at; at++)
        *at = *at > ' ' && *at < 127 ? *at : '-';
    snprintf(self->text, sizeof self->text, "%ld %s", (long)getpid(), host);
}

static bool read_holder(const char *path, struct holder *holder)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    const ssize_t size = fd >= 0 ? read(fd, holder->text, sizeof holder->text - 1) : -1;

    if (fd >= 0)
        close(fd);
    holder->text[size > 0 ? size : 0] = 0;
    return size > 0;
}

/* A process of this machine that has ended; of others nothing is known. */
static bool has_ended(const struct holder *holder, const struct holder *self)
{
    char *host = NULL;
    const long number = strtol(holder->text, &host, 10);

    return number > 0 && number <= INT_MAX && strcmp(host, strchr(self->text, ' ')) == 0 &&
           kill((pid_t)number, 0) != 0 && errno == ESRCH;
}

/* Moved away, which one of two can do, and looked at again: the other may have been faster. */
static bool take_away(const char *path, const struct holder *ended)
{
    char aside[sizeof(((struct cm_lock *)0)->path) + 24];
    struct holder found;

    snprintf(aside, sizeof aside, "%s-%ld", path, (long)getpid());
    if (rename(path, aside) != 0)
        return false;
    const bool same = read_holder(aside, &found) && strcmp(found.text, ended->text) == 0;
    if (!same)
        (void)!link(aside, path);
    unlink(aside);
    return same;
}

/* The file itself is the lock: who makes it has it. A run that was killed on another machine leaves
 * it, and the sentence says so. */
static enum cm_status take_by_name(struct cm_lock *lock, const char *folder, struct cm_error *err)
{
    struct holder self, holder = {""};

    describe_self(&self);
    snprintf(lock->path, sizeof lock->path, "%s" NAME_HELD, folder);
    for (int tries = 0; tries < 3; tries++) {
        lock->fd = open(lock->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (lock->fd >= 0) {
            (void)!pwrite(lock->fd, self.text, strlen(self.text), 0);
            return CM_OK;
        }
        if (errno != EEXIST)
            return fail_lock(folder, errno, err);
        if (!read_holder(lock->path, &holder) || !has_ended(&holder, &self) ||
            !take_away(lock->path, &holder))
            break;
    }
    return cm_fail(
        err, CM_BAD_ARGUMENT,
        "folder '%.300s' is in use by process %.100s: wait until it ends, or take another "
        "folder; if it was killed, remove '%.300s" NAME_HELD "'",
        folder, *holder.text ? holder.text : "(unknown)", folder);
}

/* ---- both ---- */

enum cm_status cm_lock_take(struct cm_lock *lock, const char *folder, struct cm_error *err)
{
    enum cm_status status = CM_OK;

    *lock = (struct cm_lock){.taken = false};
    if ((size_t)snprintf(lock->path, sizeof lock->path, "%s" NAME_HELD, folder) >=
        sizeof lock->path)
        return fail_lock(folder, ENAMETOOLONG, err);
    snprintf(lock->path, sizeof lock->path, "%s" NAME, folder);
    for (bool current = false; !current;) {
        bool none = false;

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
        const bool held = !is_free(lock->fd, &none);
        if (held && !none)
            status = refuse(lock, folder, err);
        current = held || is_current(lock);
        if (held || !current)
            close(lock->fd);
        if (none) {
            unlink(lock->path);
            status = take_by_name(lock, folder, err);
        } else if (!held && current) {
            sign(lock);
        }
    }
    lock->taken = status == CM_OK;
    lock->holder = getpid();
    return status;
}

void cm_lock_release(struct cm_lock *lock)
{
    if (!lock->taken)
        return;
    /* A child of fork lets go of its copy only: the run is its parent's. And where somebody removed
     * the folder, the file may be that of a later run. */
    if (lock->holder == getpid() && is_current(lock))
        unlink(lock->path);
    close(lock->fd);
    lock->taken = false;
}
