/* What the command does when memory runs out in code that has no answer to it. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CLI_SHORT_OF_MEMORY_H
#define CLI_SHORT_OF_MEMORY_H

#include <stdbool.h>

/* Did the system refuse an allocation of this process? */
bool cli_memory_was_refused(void);
/* Did somebody have to do without, as the reserve did not help either? */
bool cli_memory_was_missed(void);

/* From now on a library that ends the process for want of memory, by a signal or by calling exit,
 * ends it with a sentence and the exit code of a machine that failed. Crashes that have another
 * cause stay crashes. */
void cli_watch_libraries(void);
/* The command is about to end with this exit code by itself. Gives CLI_MACHINE, with a sentence,
 * where memory was missed: an answer may lack a part then. */
int cli_leave(int code);

#endif
