/* Preloaded into a program: makes one system call that changes a file fail, or a signal come at it.
 *
 * Calls on files of the folder FAIL_FOLDER count, as they come: open for writing, write, pwrite,
 * fsync, close, rename, mkdir. FAIL_AT is the number of the call that fails with FAIL_ERROR (0 or
 * absent: none), and FAIL_SIGNAL a signal that is raised there instead. FAIL_LOG names a file that
 * gets a line for each call. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *folder;
static long fail_at, failure, number_of_signal;
static int list = -1;
static atomic_long calls;

static long number(const char *name)
{
    const char *text = getenv(name);

    return text ? strtol(text, NULL, 10) : 0;
}

__attribute__((constructor)) static void begin(void)
{
    const char *name = getenv("FAIL_LOG");

    folder = getenv("FAIL_FOLDER");
    fail_at = number("FAIL_AT");
    failure = number("FAIL_ERROR");
    number_of_signal = number("FAIL_SIGNAL");
    if (name)
        list = (int)syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                            0600);
}

/* Does this call fail? */
static bool fails(const char *what)
{
    const long now = atomic_fetch_add(&calls, 1) + 1;
    char line[32];

    if (list >= 0)
        (void)!syscall(SYS_write, list, line, snprintf(line, sizeof line, "%s\n", what));
    if (now != fail_at)
        return false;
    if (number_of_signal) {
        raise((int)number_of_signal);
        return false;
    }
    errno = (int)failure;
    return true;
}

static bool is_inside(const char *path)
{
    char here[4096];

    if (!folder)
        return false;
    if (path[0] == '/')
        return strncmp(path, folder, strlen(folder)) == 0;
    return getcwd(here, sizeof here) && strncmp(here, folder, strlen(folder)) == 0;
}

/* Files that are written, and folders. */
static bool counts(int fd)
{
    const int error = errno;
    char link[40], path[4096];
    struct stat facts;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t size = readlink(link, path, sizeof path - 1);
    path[size > 0 ? size : 0] = 0;
    const char *lock = strstr(path, "/.lock"); /* which works as well without its text */
    const bool inside = !lock && path[0] == '/' && is_inside(path) && fstat(fd, &facts) == 0 &&
                        (S_ISDIR(facts.st_mode) || (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY);
    errno = error;
    return inside;
}

#define NEXT(type, name, ...)                                                                      \
    static type (*next)(__VA_ARGS__);                                                              \
    if (!next)                                                                                     \
    next = (type(*)(__VA_ARGS__))(uintptr_t)dlsym(RTLD_NEXT, name)

int open(const char *path, int flags, ...)
{
    va_list args;

    NEXT(int, "open", const char *, int, ...);
    va_start(args, flags);
    const unsigned mode = flags & O_CREAT ? va_arg(args, unsigned) : 0;
    va_end(args);
    return (flags & O_ACCMODE) != O_RDONLY && is_inside(path) && fails("open")
               ? -1
               : next(path, flags, mode);
}

ssize_t write(int fd, const void *bytes, size_t size)
{
    NEXT(ssize_t, "write", int, const void *, size_t);
    return counts(fd) && fails("write") ? -1 : next(fd, bytes, size);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at)
{
    NEXT(ssize_t, "pwrite", int, const void *, size_t, off_t);
    return counts(fd) && fails("pwrite") ? -1 : next(fd, bytes, size, at);
}

int fsync(int fd)
{
    NEXT(int, "fsync", int);
    return counts(fd) && fails("fsync") ? -1 : next(fd);
}

int close(int fd)
{
    struct stat facts;

    NEXT(int, "close", int);
    const bool failed =
        counts(fd) && fstat(fd, &facts) == 0 && !S_ISDIR(facts.st_mode) && fails("close");
    const int result = next(fd);
    if (failed)
        errno = (int)failure;
    return failed ? -1 : result;
}

int rename(const char *from, const char *to)
{
    NEXT(int, "rename", const char *, const char *);
    return is_inside(to) && fails("rename") ? -1 : next(from, to);
}

int mkdir(const char *path, mode_t mode)
{
    NEXT(int, "mkdir", const char *, mode_t);
    return is_inside(path) && fails("mkdir") ? -1 : next(path, mode);
}
