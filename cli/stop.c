/* Ctrl-C while a file is written: the write ends, and nothing half done stays behind. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "cli.h"

static struct cameo_cancel *stop;

static void note_stop(int number)
{
    (void)number;
    cameo_cancel_set(stop);
}

struct cameo_cancel *cli_stop_on_signal(void)
{
    /* A second Ctrl-C ends the program at once. */
    struct sigaction action = {.sa_handler = note_stop, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

    if (stop || cameo_cancel_new(&stop, NULL) != CAMEO_OK)
        return stop;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction old;

        /* What nohup has ignored stays ignored. */
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            (void)!sigaction(numbers[i], &action, NULL);
    }
    return stop;
}
