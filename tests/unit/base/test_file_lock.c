/* Locks on folders. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "base/file_lock.h"
#include "check.h"
#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Instead of the C library's: a file system that has no locks, or none of flock's. */
static bool no_flock, no_locks;

int flock(int fd, int operation)
{
    if (!no_flock && !no_locks)
        return (int)syscall(SYS_flock, fd, operation);
    errno = ENOSYS;
    return -1;
}

int fcntl(int fd, int command, ...)
{
    va_list args;

    va_start(args, command);
    void *arg = va_arg(args, void *);
    va_end(args);
    if (command != F_OFD_SETLK || !no_locks)
        return (int)syscall(SYS_fcntl, fd, command, arg);
    errno = ENOSYS;
    return -1;
}

void test_lock__is_held_by_one(void)
{
    struct cm_error err = {0};
    struct cm_lock first, second;
    struct folder folder;
    char path[FOLDER_PATH_SIZE], holder[60];

    folder_make(&folder);
    folder_path(&folder, ".", path);
    snprintf(holder, sizeof holder, "is in use by process %ld:", (long)getpid());
    CHECK_OK(cm_lock_take(&first, path, &err), &err);
    CHECK_FAILS(cm_lock_take(&second, path, &err), CM_BAD_ARGUMENT, &err, holder);
    cm_lock_release(&second);
    CHECK_FAILS(cm_lock_take(&second, path, &err), CM_BAD_ARGUMENT, &err, holder);
    cm_lock_release(&first);
    cm_lock_release(&first);
    CHECK_INT(folder_count(&folder), 0);
    CHECK_OK(cm_lock_take(&second, path, &err), &err);
    cm_lock_release(&second);
    folder_path(&folder, "nowhere", path);
    CHECK_FAILS(cm_lock_take(&second, path, &err), CM_NOT_FOUND, &err, "nowhere");
    folder_remove(&folder);
}

void test_lock__is_gone_with_a_process_that_was_killed(void)
{
    struct cm_error err = {0};
    struct cm_lock lock;
    struct folder folder;
    char path[FOLDER_PATH_SIZE], holder[60], byte;
    int ready[2];

    folder_make(&folder);
    folder_path(&folder, ".", path);
    CHECK_INT(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        if (cm_lock_take(&lock, path, &err) == CM_OK && write(ready[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    CHECK_INT(read(ready[0], &byte, 1), 1);
    snprintf(holder, sizeof holder, "is in use by process %ld:", (long)child);
    CHECK_FAILS(cm_lock_take(&lock, path, &err), CM_BAD_ARGUMENT, &err, holder);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ready[0]);
    close(ready[1]);
    CHECK_INT(folder_count(&folder), 1); /* what it left */
    CHECK_OK(cm_lock_take(&lock, path, &err), &err);
    cm_lock_release(&lock);
    CHECK_INT(folder_count(&folder), 0);
    folder_remove(&folder);
}

void test_lock__leaves_files_of_others_alone(void)
{
    struct cm_error err = {0};
    struct cm_lock lock;
    struct folder folder;
    char path[FOLDER_PATH_SIZE], name[FOLDER_PATH_SIZE], other[FOLDER_PATH_SIZE];

    folder_make(&folder);
    folder_path(&folder, ".", path);
    folder_path(&folder, ".lock", name);
    folder_path(&folder, "precious", other);
    folder_write(&folder, ".lock", "mine");
    CHECK_FAILS(cm_lock_take(&lock, path, &err), CM_BAD_ARGUMENT, &err, "not a lock of Cameo");
    cm_lock_release(&lock);
    CHECK(folder_holds(&folder, ".lock", "mine"));
    /* A second name of a file elsewhere, even an empty one. */
    CHECK_INT(unlink(name), 0);
    folder_write(&folder, "precious", "");
    CHECK_INT(link(other, name), 0);
    CHECK_FAILS(cm_lock_take(&lock, path, &err), CM_BAD_ARGUMENT, &err, "not a lock of Cameo");
    CHECK(folder_holds(&folder, "precious", ""));
    /* What a run left that was killed. */
    CHECK_INT(unlink(name), 0);
    folder_write(&folder, ".lock", "12345\n");
    CHECK_OK(cm_lock_take(&lock, path, &err), &err);
    cm_lock_release(&lock);
    CHECK_INT(unlink(other), 0);
    folder_remove(&folder);
}

static void take_twice(void)
{
    struct cm_error err = {0};
    struct cm_lock first, second;
    struct folder folder;
    char path[FOLDER_PATH_SIZE], holder[60];

    folder_make(&folder);
    folder_path(&folder, ".", path);
    snprintf(holder, sizeof holder, "is in use by process %ld", (long)getpid());
    CHECK_OK(cm_lock_take(&first, path, &err), &err);
    CHECK_INT(folder_count(&folder), 1);
    CHECK_FAILS(cm_lock_take(&second, path, &err), CM_BAD_ARGUMENT, &err, holder);
    cm_lock_release(&second);
    cm_lock_release(&first);
    CHECK_INT(folder_count(&folder), 0);
    CHECK_OK(cm_lock_take(&second, path, &err), &err);
    cm_lock_release(&second);
    folder_remove(&folder);
}

void test_lock__is_one_of_bytes_where_flock_is_missing(void)
{
    no_flock = true;
    take_twice();
    no_flock = false;
}

void test_lock__is_a_file_where_the_file_system_has_no_locks(void)
{
    struct cm_error err = {0};
    struct cm_lock lock;
    struct folder folder;
    char path[FOLDER_PATH_SIZE];

    no_locks = true;
    take_twice();
    folder_make(&folder);
    folder_path(&folder, ".", path);
    const pid_t child = fork();
    if (child == 0)
        _exit(cm_lock_take(&lock, path, &err) == CM_OK ? 0 : 1); /* and does not let go */
    waitpid(child, NULL, 0);
    CHECK_INT(folder_count(&folder), 1);
    CHECK_OK(cm_lock_take(&lock, path, &err), &err);
    cm_lock_release(&lock);
    CHECK_INT(folder_count(&folder), 0);

    folder_write(&folder, ".lock-held", "1 another-machine");
    CHECK_FAILS(cm_lock_take(&lock, path, &err), CM_BAD_ARGUMENT, &err,
                "in use by process 1 another-machine");
    CHECK(strstr(err.text, "if it was killed, remove '") != NULL);
    CHECK(folder_holds(&folder, ".lock-held", "1 another-machine"));
    no_locks = false;
    folder_remove(&folder);
}

void test_lock__stays_when_a_child_of_fork_lets_go(void)
{
    struct cm_error err = {0};
    struct cm_lock lock, second;
    struct folder folder;
    char path[FOLDER_PATH_SIZE];

    folder_make(&folder);
    folder_path(&folder, ".", path);
    CHECK_OK(cm_lock_take(&lock, path, &err), &err);
    const pid_t child = fork();
    if (child == 0) {
        cm_lock_release(&lock);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    CHECK_FAILS(cm_lock_take(&second, path, &err), CM_BAD_ARGUMENT, &err, "is in use by process");
    cm_lock_release(&lock);
    CHECK_INT(folder_count(&folder), 0);
    folder_remove(&folder);
}
