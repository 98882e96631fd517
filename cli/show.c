/* Printing: complaints, text that came from files, numbers for people. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void cli_complain(const char *format, ...)
{
    char text[1400];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fputs("cameo: ", stderr);
    cli_put_text(stderr, text, strlen(text));
    fputc('\n', stderr);
}

int cli_fail(const struct cameo_error *err)
{
    cli_complain("%s", err->message);
    return cli_exit_code(err->status);
}

int cli_broken(const char *name)
{
    static bool told; /* what could not be written stays in the buffer and fails again */

    if (cli_reader_gone)
        return CLI_YES;
    if (!told)
        cli_complain("cannot write to %s: %s", name, errno ? strerror(errno) : "a write failed");
    told = true;
    return CLI_MACHINE;
}

int cli_flush(FILE *to, const char *name)
{
    errno = 0;
    return fflush(to) == 0 && !ferror(to) ? CLI_YES : cli_broken(name);
}

bool cli_same_file(const char *a, const char *b)
{
    struct stat first, second;

    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

bool cli_file_size(const char *path, uint64_t *bytes)
{
    struct stat facts;

    if (stat(path, &facts) != 0)
        return false;
    *bytes = (uint64_t)facts.st_size;
    return true;
}

int cli_check_writable(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    char folder[4096] = ".";
    struct stat facts;

    if (!path)
        return CLI_YES;
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    errno = 0;
    if (stat(path, &facts) != 0 && errno == ENOENT) {
        if (access(folder, W_OK | X_OK) == 0)
            return CLI_YES;
    } else if (errno == 0 && S_ISDIR(facts.st_mode)) {
        errno = EISDIR;
    } else if (errno == 0 && access(path, W_OK) == 0) {
        return CLI_YES;
    }
    const int why = errno;
    cli_complain("cannot write %s: %s", path, strerror(why));
    return cli_errno_code(why);
}

const char *cli_number(char *text, uint64_t number)
{
    char digits[24];
    const int count = snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    char *to = text;

    for (int i = 0; i < count; i++) {
        if (i > 0 && (count - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = 0;
    return text;
}

const char *cli_bytes(char *text, uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double amount = (double)bytes / 1024;
    size_t unit = 0;

    if (bytes < 1024) {
        snprintf(text, CLI_NUMBER_SIZE, "%llu byte%s", (unsigned long long)bytes,
                 bytes == 1 ? "" : "s");
        return text;
    }
    for (; amount >= 1023.95 && unit + 1 < sizeof units / sizeof *units; unit++)
        amount /= 1024;
    snprintf(text, CLI_NUMBER_SIZE, "%.1f %s", amount, units[unit]);
    return text;
}
