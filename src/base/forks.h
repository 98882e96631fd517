/* Whether this process is a copy that fork made of one that had threads: only the thread that
 * forked lives on in it. Whoever starts threads remembers the count, and does not wait for threads
 * of another. Forking while another thread is inside the library is not provided for. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_FORKS_H
#define CM_BASE_FORKS_H

/* Forks between the first process that asked and this one. */
unsigned cm_forks(void);

#endif
