/* How much stack the calling thread has left. Threads of a host program may have little: hostile
 * files nest, and a frame that does not fit ends the process. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_STACK_H
#define CM_BASE_STACK_H

#include <stddef.h>

enum {
    /* What a call of the library takes. Graphs and functions nested as deep as their budgets allow
     * were measured to take 450 KiB. */
    CM_STACK_OF_CALL = 640 << 10,
    CM_STACK_OF_CHUNK = 100 << 10, /* what a chunk of cm_parallel takes: frames reach 75 KiB */
    CM_STACK_OF_THREAD = 1 << 20,  /* what our own threads get at least */
};

/* SIZE_MAX where it is unknown: a stack that the program switched to by itself. The first call of a
 * thread asks the system, later calls cost a few instructions. */
size_t cm_stack_left(void);

#endif
