/* Ctrl-C while the library computes. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "ext.h"

#include <sys/syscall.h>
#include <unistd.h>

/* Of the main thread alone, where Python handles signals; calls may be nested, by way of callbacks. */
static struct cameo_cancel *cancel;
static void (*python_handler)(int);
static int depth;

static bool is_main_thread(void)
{
    static _Thread_local int known = -1;

    if (known < 0)
        known = syscall(SYS_gettid) == (long)getpid();
    return known == 1;
}

static void note(int signal)
{
    cameo_cancel_set(cancel);
    python_handler(signal); /* it notes the signal for the interpreter, and does nothing else */
}

void ext_watch_begin(struct ext_watch *watch)
{
    struct sigaction ours = {.sa_handler = note};

    *watch = (struct ext_watch){0};
    if (!is_main_thread())
        return;
    if (!cancel && cameo_cancel_new(&cancel, NULL) != CAMEO_OK)
        return; /* then Ctrl-C waits for the end of the call */
    if (depth++ == 0)
        cameo_cancel_clear(cancel);
    watch->cancel = cancel;
    if (depth > 1 || sigaction(SIGINT, NULL, &watch->before) != 0)
        return;
    /* Nobody's: the process ends. With more arguments: not Python's. */
    if (watch->before.sa_handler == SIG_DFL || watch->before.sa_handler == SIG_IGN ||
        (watch->before.sa_flags & SA_SIGINFO))
        return;
    python_handler = watch->before.sa_handler;
    ours.sa_flags = watch->before.sa_flags;
    ours.sa_mask = watch->before.sa_mask;
    watch->armed = sigaction(SIGINT, &ours, NULL) == 0;
}

bool ext_watch_end(struct ext_watch *watch, enum cameo_status status)
{
    if (!watch->cancel)
        return false;
    depth--;
    if (watch->armed) {
        struct sigaction now;
        if (sigaction(SIGINT, NULL, &now) == 0 && now.sa_handler == note) /* a callback may have set its own */
            sigaction(SIGINT, &watch->before, NULL);
    }
    return status == CAMEO_CANCELLED && PyErr_CheckSignals() < 0;
}
