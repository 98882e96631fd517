/* How threads wait for each other. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static bool uses_threads(const struct cli_command *command)
{
    for (const struct cli_option *option = command->options; option->name; option++)
        if (strcmp(option->name, "--threads") == 0)
            return true;
    return false;
}

/* Or was the dynamic loader started, with this program as its argument? Then it is the loader that
 * would be started again. */
static bool is_loaded_by_kernel(void)
{
    return getauxval(AT_BASE) != 0; /* where the kernel put the loader, beside the program */
}

/* OpenMP's threads wait by spinning for milliseconds, which takes the cores from those they wait
 * for wherever other programs run too: many times slower there, and not measurably faster
 * elsewhere. It reads its settings when the program is loaded, before main, so the program is
 * loaded again. Whoever set one of them meant it. */
void cli_wait_without_spinning(int argc, char **argv)
{
    static const char *const settings[] = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"};
    const struct cli_command *command = argc > 1 ? cli_find_command(argv[1]) : NULL;

    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        if (getenv(settings[i]))
            return;
    if (!command || !uses_threads(command) || !is_loaded_by_kernel() ||
        setenv(settings[0], "passive", 1) != 0)
        return;
    execv("/proc/self/exe", argv); /* where it fails, threads spin */
}
