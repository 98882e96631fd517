/* A mapped file that somebody cuts short while it is in use, or a disk that cannot read it: the
 * kernel answers the access with SIGBUS, and this with a sentence. The handler may interrupt
 * anything, so it keeps to system calls: it asks the kernel which file lies at the address. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "cli.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[4096]; /* the current one, to be left out of paths in it */

/* A file read a line at a time without the library: lines that do not fit are cut. */
struct reader {
    int fd;
    char bytes[4096];
    size_t at, size;
};

static bool next_byte(struct reader *reader, char *out)
{
    if (reader->at == reader->size) {
        const ssize_t n = read(reader->fd, reader->bytes, sizeof reader->bytes);

        reader->at = 0;
        reader->size = n > 0 ? (size_t)n : 0;
        if (n <= 0)
            return false;
    }
    *out = reader->bytes[reader->at++];
    return true;
}

static bool next_line(struct reader *reader, char *line, size_t size)
{
    size_t used = 0;
    char c = 0;
    bool any = false;

    while (next_byte(reader, &c) && c != '\n') {
        any = true;
        if (used + 1 < size)
            line[used++] = c;
    }
    line[used] = 0;
    return any || c == '\n';
}

static uintptr_t read_hex(const char **at)
{
    uintptr_t value = 0;

    for (;; ++*at) {
        const char c = **at;
        const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;

        if (digit < 0)
            return value;
        value = value << 4 | (uintptr_t)digit;
    }
}

/* The path in a line "begin-end rights offset device inode    path" whose range holds address. */
static const char *path_in(const char *line, uintptr_t address)
{
    const char *at = line;
    const uintptr_t begin = read_hex(&at);

    if (*at++ != '-')
        return NULL;
    const uintptr_t end = read_hex(&at);
    const char *path = strchr(at, '/');
    return address >= begin && address < end ? path : NULL;
}

static void say(const char *text, size_t size)
{
    while (size > 0) {
        const ssize_t n = write(STDERR_FILENO, text, size);

        if (n <= 0)
            return;
        text += n;
        size -= (size_t)n;
    }
}

static void say_path(char *path)
{
    const size_t prefix = strlen(folder);

    if (prefix && strncmp(path, folder, prefix) == 0 && path[prefix] == '/')
        path += prefix + 1;
    for (char *c = path; *c; c++)
        if ((unsigned char)*c < 32 || *c == 127)
            *c = '?';
    say("'", 1);
    say(path, strlen(path));
    say("'", 1);
}

static void lose(int number, siginfo_t *info, void *context)
{
    static const char begin[] = "cameo: ", nameless[] = "a file that is in use";
    static const char end[] = " was cut short, or cannot be read, while it was in use\n";
    static struct reader reader;
    static char line[8192];
    static atomic_flag told = ATOMIC_FLAG_INIT;
    const uintptr_t address = (uintptr_t)info->si_addr;
    bool named = false;

    (void)number, (void)context;
    while (atomic_flag_test_and_set(&told)) /* another thread is telling, and then all is over */
        pause();
    say(begin, sizeof begin - 1);
    reader.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while (reader.fd >= 0 && !named && next_line(&reader, line, sizeof line)) {
        const char *path = path_in(line, address);

        if (path)
            say_path(line + (path - line));
        named = path != NULL;
    }
    if (!named)
        say(nameless, sizeof nameless - 1);
    say(end, sizeof end - 1);
    cameo_remove_unfinished();
    _exit(CLI_MACHINE);
}

void cli_watch_files(void)
{
    struct sigaction action = {.sa_sigaction = lose, .sa_flags = SA_SIGINFO};

    if (!getcwd(folder, sizeof folder))
        folder[0] = 0;
    sigfillset(&action.sa_mask);
    (void)!sigaction(SIGBUS, &action, NULL);
}
