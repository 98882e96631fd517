/* What `cameo demo` shows: headings, the commands it runs, a guess, where to go next. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CLI_DEMO_SHOW_H
#define CLI_DEMO_SHOW_H

#include "cli.h"

/* Greets, and starts the clock. Gives an exit code. */
int demo_begin(void);
void demo_heading(int number, const char *title);
/* How long it has been since the last heading, where that is worth a line. */
void demo_time(void);
/* The command that makes the folder and goes there. */
void demo_show_folder(const char *folder);
/* Shows a subcommand with its words, which NULL ends, as one would type it, and runs it. Gives its
 * exit code. */
int demo_command(const char *name, ...);

/* The image, and next to it what the network makes of it. */
void demo_show_guess(const float *image, const struct cameo_value *probability, int64_t truth);
void demo_end(const char *folder, double accuracy);

#endif
