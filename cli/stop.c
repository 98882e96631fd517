/* Signals that end the program: nothing half done stays behind. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "cli.h"

static struct cameo_cancel *stop;

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

void cli_end_by_signal(int number)
{
    cameo_remove_unfinished();
    signal(number, SIG_DFL);
    raise(number);
}

static void handle(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};

    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction old;

        /* What nohup has ignored stays ignored. */
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            (void)!sigaction(numbers[i], &action, NULL);
    }
}

void cli_watch_signals(void)
{
    handle(cli_end_by_signal);
}

/* A second Ctrl-C ends the program at once. */
static void note_stop(int number)
{
    cameo_cancel_set(stop);
    signal(number, cli_end_by_signal);
}

struct cameo_cancel *cli_stop_on_signal(void)
{
    if (!stop && cameo_cancel_new(&stop, NULL) == CAMEO_OK)
        handle(note_stop);
    return stop;
}
