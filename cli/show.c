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
    cli_sarif_failed();
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

bool cli_is_stream(const char *path)
{
    struct stat facts;

    return stat(path, &facts) == 0 && !S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode);
}

int cli_check_writable(const char *path)
{
    struct cameo_file *file = NULL;
    struct cameo_error err;

    /* Whoever reads a pipe would take its opening and closing for an empty file. */
    if (!path || (cli_is_stream(path) && access(path, W_OK) == 0))
        return CLI_YES;
    const enum cameo_status status = cameo_file_new(path, NULL, &file, &err);
    cameo_file_free(file);
    return status == CAMEO_OK ? CLI_YES : cli_fail(&err);
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
