/* How much memory there is for a run when nobody says. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_FREE_MEMORY_H
#define CM_BASE_FREE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes that the machine has left, or the control group or `ulimit -v` where that is less, without
 * a reserve that others need to go on; with what may be swapped out, if that is asked for. 0: the
 * system does not say. */
size_t cm_free_memory(bool with_swap);

#endif
