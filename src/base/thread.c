/* Starting threads. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "base/thread.h"

#include "base/compiler.h"

#include <signal.h>

bool cm_thread_start(pthread_t *thread, void *(*main)(void *), void *arg)
{
    static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t blocked, before;

    sigfillset(&blocked);
    for (size_t i = 0; i < CM_COUNT(faults); i++)
        sigdelset(&blocked, faults[i]);
    if (pthread_sigmask(SIG_SETMASK, &blocked, &before) != 0)
        return false;
    const bool started = pthread_create(thread, NULL, main, arg) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}
