/* Threads of the library's own. Signals of the program are for the program's threads; those that a
 * fault of the thread itself raises stay open, because the system ends a process that blocks one:
 * the command answers SIGBUS, a mapped file that was cut short, with a sentence. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_THREAD_H
#define CM_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* false: there is no thread to be had. */
bool cm_thread_start(pthread_t *thread, void *(*main)(void *), void *arg);
/* Lets the system run another thread first. */
void cm_thread_yield(void);

#endif
