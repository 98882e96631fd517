/* Libraries that end the process when memory is short: oneDNN and LLVM abort or read a NULL
 * pointer, OpenMP calls exit. The handlers may interrupt anything, so they keep to system calls. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "cli.h"
#include "short_of_memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static atomic_bool leaving;

enum { PROBE = 16 << 20 };

/* Is it known that there is no memory? An allocation failed, or the system has none to give. */
static bool is_short(int last_error)
{
    if (last_error == ENOMEM || cli_memory_was_refused())
        return true;
    void *probe = mmap(NULL, PROBE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (probe == MAP_FAILED)
        return true;
    munmap(probe, PROBE);
    return false;
}

static const char no_memory[] =
    "cameo: out of memory: a library that cannot go on without it (oneDNN, OpenMP, LLVM) ended the "
    "run; allow more memory, or use fewer threads or smaller batches\n";
static const char its_own[] = "cameo: a library (oneDNN, OpenMP, LLVM) ended the run; the reason "
                              "that it gave stands above\n";

static void tell(const char *sentence, size_t size)
{
    (void)!write(STDERR_FILENO, sentence, size);
    cameo_remove_unfinished();
    _exit(CLI_MACHINE);
}

static void crash(int number)
{
    if (is_short(errno))
        tell(no_memory, sizeof no_memory - 1);
    signal(number, SIG_DFL); /* the crash goes on as if nobody had looked */
    raise(number);
}

static void leave(void)
{
    if (atomic_load(&leaving))
        return;
    if (is_short(errno))
        tell(no_memory, sizeof no_memory - 1);
    tell(its_own, sizeof its_own - 1);
}

int cli_leave(int code)
{
    atomic_store(&leaving, true);
    if (code >= CLI_MACHINE || !cli_memory_was_missed())
        return code;
    cli_complain("out of memory: a part of the work could not be done");
    return CLI_MACHINE;
}

void cli_watch_libraries(void)
{
    static char stack[1 << 16];
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = crash, .sa_flags = SA_ONSTACK | SA_NODEFER};

    (void)!sigaltstack(&own, NULL);
    (void)!sigaction(SIGSEGV, &action, NULL);
    (void)!sigaction(SIGABRT, &action, NULL);
    (void)!atexit(leave);
}
