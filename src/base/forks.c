/* Counts forks. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "base/forks.h"

#include <pthread.h>
#include <stdatomic.h>

static atomic_uint forks;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void count_fork(void)
{
    atomic_fetch_add(&forks, 1);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, count_fork);
}

unsigned cm_forks(void)
{
    pthread_once(&once, watch_forks);
    return atomic_load_explicit(&forks, memory_order_relaxed);
}
