/* Chunks on a team's own threads: all of them once, the same ones for any number of threads. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "base/parallel.h"

#include <stdatomic.h>

enum { COUNT = 1000, GRAIN = 7 };

struct tally {
    atomic_int times[COUNT];
    atomic_int wrong; /* chunks that do not begin or end where they should */
};

static void count_chunk(void *arg, int64_t begin, int64_t end)
{
    struct tally *tally = arg;
    const int64_t stop = begin + GRAIN < COUNT ? begin + GRAIN : COUNT;

    if (begin % GRAIN != 0 || end != stop)
        atomic_fetch_add(&tally->wrong, 1);
    for (int64_t i = begin; i < end; i++)
        atomic_fetch_add(&tally->times[i], 1);
}

static void check_tally(struct tally *tally, int times)
{
    CHECK_INT(tally->wrong, 0);
    for (int i = 0; i < COUNT; i++)
        CHECK_INT(tally->times[i], times);
}

void test_parallel__chunks_do_not_depend_on_the_number_of_threads(void)
{
    for (int threads = 1; threads <= 5; threads++) {
        struct cm_team *team = cm_team_new(threads);
        struct tally tally = {0};
        CHECK(team && cm_team_threads(team) == threads);
        struct cm_team *before = cm_team_enter(team);
        for (int i = 0; i < 20; i++)
            cm_parallel(COUNT, GRAIN, count_chunk, &tally);
        CHECK(cm_team_enter(before) == team);
        check_tally(&tally, 20);
        cm_team_free(team);
    }
}

void test_parallel__without_a_team_stays_on_the_thread(void)
{
    struct tally tally = {0};
    cm_parallel(COUNT, GRAIN, count_chunk, &tally);
    check_tally(&tally, 1);
    cm_parallel(0, GRAIN, count_chunk, &tally);
    check_tally(&tally, 1);
}

static void go_deeper(void *arg, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        cm_parallel(COUNT, GRAIN, count_chunk, arg);
}

void test_parallel__inside_a_chunk_stays_on_the_thread(void)
{
    struct cm_team *team = cm_team_new(3);
    struct tally tally = {0};
    struct cm_team *before = cm_team_enter(team);
    cm_parallel(10, 1, go_deeper, &tally);
    cm_parallel(COUNT, GRAIN, count_chunk, &tally); /* the team is free again */
    cm_team_enter(before);
    check_tally(&tally, 11);
    cm_team_free(team);
}
