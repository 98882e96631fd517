/* How much memory there is: what a run may hold when nobody says. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The number in a file; SIZE_MAX when there is none, or it says "max". */
static size_t read_limit(const char *path)
{
    char text[32] = "";
    FILE *file = fopen(path, "r");
    char *end;

    if (!file)
        return SIZE_MAX;
    const bool got = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    if (!got || text[0] < '0' || text[0] > '9')
        return SIZE_MAX;
    const unsigned long long number = strtoull(text, &end, 10);
    return number < SIZE_MAX ? (size_t)number : SIZE_MAX;
}

/* The smallest limit of the control group at path and of those around it. */
static size_t limit_around(char *path)
{
    size_t limit = SIZE_MAX;

    for (;;) {
        char file[4200];

        snprintf(file, sizeof file, "/sys/fs/cgroup%s/memory.max", path);
        const size_t one = read_limit(file);
        limit = one < limit ? one : limit;
        char *slash = strrchr(path, '/');
        if (!slash)
            return limit;
        *slash = 0;
    }
}

static size_t group_limit(void)
{
    size_t limit = read_limit("/sys/fs/cgroup/memory/memory.limit_in_bytes"); /* version 1 */
    FILE *file = fopen("/proc/self/cgroup", "r");
    char line[4096];

    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "0::/", 4) != 0)
            continue;
        line[strcspn(line, "\n")] = 0;
        const size_t one = limit_around(line + 3);
        limit = one < limit ? one : limit;
    }
    if (file)
        fclose(file);
    return limit;
}

/* What the kernel could give now without taking it from others; all there is when it does not say.
 */
static size_t machine_limit(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    FILE *file = fopen("/proc/meminfo", "r");
    unsigned long long available = 0;
    char line[256];

    while (file && !available && fgets(line, sizeof line, file)) {
        if (strncmp(line, "MemAvailable:", 13) == 0)
            available = strtoull(line + 13, NULL, 10) * 1024;
    }
    if (file)
        fclose(file);
    if (available)
        return available < SIZE_MAX ? (size_t)available : SIZE_MAX;
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

size_t cli_memory_limit(size_t given)
{
    const size_t all[] = {machine_limit(), group_limit(), process_limit()};
    size_t limit = SIZE_MAX;

    if (given)
        return given;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        limit = all[i] < limit ? all[i] : limit;
    return limit < SIZE_MAX ? limit : 0;
}
