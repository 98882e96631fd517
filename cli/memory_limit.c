/* What a command may hold when nobody says. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "cli.h"

#include <sys/resource.h>

size_t cli_memory_limit(size_t given)
{
    static size_t said;

    said = given ? given : said;
    return said ? said : cameo_free_memory(false);
}

/* Not in sanitizer builds, which reserve more than any machine has. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RESERVES_MUCH 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define RESERVES_MUCH 1
#endif
#endif

void cli_bound_memory(void)
{
#if defined(RLIMIT_DATA) && !defined(RESERVES_MUCH)
    const rlim_t bound = (rlim_t)cameo_free_memory(true);
    struct rlimit limit;

    if (!bound || getrlimit(RLIMIT_DATA, &limit) != 0)
        return;
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > bound) {
        limit.rlim_cur = bound;
        setrlimit(RLIMIT_DATA, &limit);
    }
#endif
}
