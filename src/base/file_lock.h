/* A lock on a folder that one process at a time may write to: a file in it that the process holds
 * locked. The system lets go of the lock when the process ends, however it ends. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_FILE_LOCK_H
#define CM_BASE_FILE_LOCK_H

#include "base/status.h"

#include <stdbool.h>
#include <sys/types.h>

/* Zeroed is none. */
struct cm_lock {
    bool taken;
    pid_t holder; /* the process that took it, not a child of fork */
    int fd;
    char path[4096];
};

/* Fails with CM_BAD_ARGUMENT and the holder's process id where another run has it, of this process
 * or another one, and where '.lock' is a file that no lock wrote. Where the file system has no
 * locks, a file of another name is the lock: if a killed process of another machine left it, it has
 * to be removed by hand, and the sentence says so. */
enum cm_status cm_lock_take(struct cm_lock *lock, const char *folder,
                            struct cm_error *err) CM_MUST_CHECK;
/* Removes the file, in the process that took the lock. Harmless on a zeroed struct. */
void cm_lock_release(struct cm_lock *lock);

#endif
