/* Teams of threads in a child of fork, which has none of its parent's. Not run under an emulator:
 * qemu's own threads do not outlive a fork either. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include "base/parallel.h"

#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static void count(void *arg, int64_t begin, int64_t end)
{
    atomic_fetch_add((atomic_int *)arg, (int)(end - begin));
}

void test_forks__a_child_has_threads_of_its_own(void)
{
    enum { COUNT = 1000, GRAIN = 7 };
    struct cm_team *team = cm_team_new(3);
    atomic_int counted = 0;
    int status = -1;

    cm_team_enter(team);
    cm_parallel(COUNT, GRAIN, count, &counted);
    const pid_t child = fork();
    if (child == 0) {
        alarm(20); /* ends a child that waits */
        cm_parallel(COUNT, GRAIN, count, &counted);
        cm_team_enter(NULL);
        cm_team_free(team);
        _exit(counted == 2 * COUNT ? 0 : 1);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_INT(status, 0);
    cm_parallel(COUNT, GRAIN, count, &counted);
    CHECK_INT(counted, 2 * COUNT);
    cm_team_enter(NULL);
    cm_team_free(team);
}
