/* What a process removes that ends without unwinding. A signal handler may run this, so it keeps to
 * system calls: opendir would allocate. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "base/unfinished.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST = 64, DEPTH_MAX = 16, LISTING_SIZE = 2048 };

static _Atomic(const char *) unfinished[MOST];

/* Puts to where from stands. */
static void replace(const char *from, const char *to)
{
    for (int i = 0; i < MOST; i++) {
        const char *expected = from;

        if (atomic_compare_exchange_strong(&unfinished[i], &expected, to))
            return;
    }
}

void cm_unfinished_add(const char *path)
{
    replace(NULL, path);
}

void cm_unfinished_drop(const char *path)
{
    replace(path, NULL);
}

static void remove_entry(int parent, const char *name, int depth);

/* Removes what one call of getdents64 listed; the entries are packed, so they are copied out. */
static void remove_listed(int folder, const char *listing, size_t size, int depth)
{
    for (size_t at = 0; at + offsetof(struct dirent64, d_name) < size;) {
        const char *name = listing + at + offsetof(struct dirent64, d_name);
        unsigned short length;

        memcpy(&length, listing + at + offsetof(struct dirent64, d_reclen), sizeof length);
        if (length == 0)
            return;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
            remove_entry(folder, name, depth + 1);
        at += length;
    }
}

static void empty_folder(int folder, int depth)
{
    char listing[LISTING_SIZE];
    long size;

    while ((size = syscall(SYS_getdents64, folder, listing, sizeof listing)) > 0)
        remove_listed(folder, listing, (size_t)size, depth);
}

static void remove_entry(int parent, const char *name, int depth)
{
    if (unlinkat(parent, name, 0) == 0 || depth >= DEPTH_MAX)
        return;
    const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    empty_folder(fd, depth);
    close(fd);
    unlinkat(parent, name, AT_REMOVEDIR);
}

void cm_remove_tree(const char *path)
{
    remove_entry(AT_FDCWD, path, 0);
}

void cm_unfinished_remove(void)
{
    for (int i = 0; i < MOST; i++) {
        const char *path = atomic_exchange(&unfinished[i], NULL);

        if (path)
            cm_remove_tree(path);
    }
}
