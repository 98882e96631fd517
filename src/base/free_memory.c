/* How much memory there is: of the machine, of control groups, of the process. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "base/free_memory.h"

#include "base/compiler.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* A small file as text; "" when there is none. */
static const char *read_text(const char *path, char *text, size_t size)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    ssize_t got = 1;

    while (file >= 0 && got > 0 && used < size - 1) {
        got = read(file, text + used, size - 1 - used);
        used += got > 0 ? (size_t)got : 0;
    }
    if (file >= 0)
        close(file);
    text[used] = 0;
    return text;
}

/* The number in a file; SIZE_MAX when there is none, or it says "max". */
static size_t read_limit(const char *path)
{
    char text[32];

    read_text(path, text, sizeof text);
    if (text[0] < '0' || text[0] > '9')
        return SIZE_MAX;
    const unsigned long long number = strtoull(text, NULL, 10);
    return number < SIZE_MAX ? (size_t)number : SIZE_MAX;
}

/* The line after this one, or NULL. */
static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');

    return end && end[1] ? end + 1 : NULL;
}

/* The number after a name in a file of lines "name number"; 0 when there is none. */
static unsigned long long read_entry(const char *path, const char *name)
{
    const size_t size = strlen(name);
    char text[1 << 13];

    for (const char *line = read_text(path, text, sizeof text); line; line = next_line(line))
        if (strncmp(line, name, size) == 0 && (line[size] == ' ' || line[size] == ':'))
            return strtoull(line + size + 1, NULL, 10);
    return 0;
}

static size_t minus(size_t a, size_t b)
{
    return a > b ? a - b : 0;
}

/* The names of what a control group says, in both versions. */
struct group_files {
    const char *most, *used, *cached[2];
};

/* What a group may still take: what its files have in memory can be thrown out. */
static size_t left_in(const char *folder, const struct group_files *names)
{
    char path[4300];

    snprintf(path, sizeof path, "%s/%s", folder, names->most);
    const size_t most = read_limit(path);
    if (most >= SIZE_MAX / 4) /* version 1 has no "max" */
        return SIZE_MAX;
    snprintf(path, sizeof path, "%s/%s", folder, names->used);
    size_t used = read_limit(path);
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    for (size_t i = 0; i < 2 && used < SIZE_MAX; i++)
        used = minus(used, (size_t)read_entry(path, names->cached[i]));
    return used < SIZE_MAX ? minus(most, used) : most;
}

/* The least that the control group at path and those around it have left. */
static size_t left_around(char *path)
{
    static const struct group_files second = {
        "memory.max", "memory.current", {"inactive_file", "active_file"}};
    size_t left = SIZE_MAX;

    for (;;) {
        char folder[4200];

        snprintf(folder, sizeof folder, "/sys/fs/cgroup%s", path);
        const size_t one = left_in(folder, &second);
        left = one < left ? one : left;
        char *slash = strrchr(path, '/');
        if (!slash)
            return left;
        *slash = 0;
    }
}

static size_t group_left(void)
{
    static const struct group_files first = {"memory.limit_in_bytes",
                                             "memory.usage_in_bytes",
                                             {"total_inactive_file", "total_active_file"}};
    size_t left = left_in("/sys/fs/cgroup/memory", &first);
    char text[1 << 13], path[4096];

    for (const char *line = read_text("/proc/self/cgroup", text, sizeof text); line;
         line = next_line(line)) {
        if (strncmp(line, "0::/", 4) != 0)
            continue;
        snprintf(path, sizeof path, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
        const size_t one = left_around(path);
        left = one < left ? one : left;
    }
    return left;
}

/* What the kernel could give now without taking it from others; all there is when it does not say.
 */
static size_t machine_left(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    const unsigned long long available = read_entry("/proc/meminfo", "MemAvailable");

    if (available)
        return available < SIZE_MAX / 1024 ? (size_t)available * 1024 : SIZE_MAX;
    return pages > 0 && size > 0 && (size_t)pages < SIZE_MAX / (size_t)size
               ? (size_t)pages * (size_t)size
               : SIZE_MAX;
}

static size_t process_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur >= SIZE_MAX)
        return SIZE_MAX;
    return (size_t)limit.rlim_cur;
}

/* Memory that others need to go on: a sixteenth of what is free, at least 256 MiB of it unless that
 * would be more than a quarter. */
static size_t without_reserve(size_t left)
{
    const size_t least = (size_t)256 << 20, share = left / 16, most = left / 4;
    const size_t reserve = share > least ? share : least < most ? least : most;

    return left - reserve;
}

static size_t least_left(void)
{
    const size_t all[] = {machine_left(), group_left(), process_limit()};
    size_t left = SIZE_MAX;

    for (size_t i = 0; i < CM_COUNT(all); i++)
        left = all[i] < left ? all[i] : left;
    return left;
}

size_t cm_free_memory(bool with_swap)
{
    const size_t left = least_left();
    const unsigned long long swap = with_swap ? read_entry("/proc/meminfo", "SwapFree") * 1024 : 0;

    return left < SIZE_MAX ? without_reserve(left) + (size_t)swap : 0;
}
