/* Starting threads. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "base/thread.h"

#include "base/compiler.h"
#include "base/stack.h"

#include <sched.h>
#include <signal.h>

/* The system's usual size may be small: it is the limit of the process, 'ulimit -s'. */
static bool create(pthread_t *thread, void *(*main)(void *), void *arg)
{
    pthread_attr_t attributes;
    size_t size;

    if (pthread_attr_init(&attributes) != 0)
        return false;
    if (pthread_attr_getstacksize(&attributes, &size) == 0 && size < CM_STACK_OF_THREAD)
        pthread_attr_setstacksize(&attributes, CM_STACK_OF_THREAD);
    const bool started = pthread_create(thread, &attributes, main, arg) == 0;
    pthread_attr_destroy(&attributes);
    return started;
}

bool cm_thread_start(pthread_t *thread, void *(*main)(void *), void *arg)
{
    static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t blocked, before;

    sigfillset(&blocked);
    for (size_t i = 0; i < CM_COUNT(faults); i++)
        sigdelset(&blocked, faults[i]);
    if (pthread_sigmask(SIG_SETMASK, &blocked, &before) != 0)
        return false;
    const bool started = create(thread, main, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

void cm_thread_yield(void)
{
    sched_yield();
}
