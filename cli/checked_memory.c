/* Memory for the command itself. Who asks here gets it, or the command ends with a sentence: no
 * caller can go on with less than it asked for. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "cli.h"
#include "short_of_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void cli_no_memory(void)
{
    cli_complain("out of memory");
    cameo_remove_unfinished();
    exit(cli_leave(CLI_MACHINE));
}

void *cli_alloc(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size ? size : 1);

    if (!memory)
        cli_no_memory();
    return memory;
}

void *cli_grow(void *items, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return items;
    const size_t wanted = *room * 2 + 16;
    void *grown = wanted < SIZE_MAX / size ? realloc(items, wanted * size) : NULL;
    if (!grown)
        cli_no_memory();
    *room = wanted;
    return grown;
}

char *cli_copy(const char *text)
{
    const size_t size = strlen(text) + 1;

    return memcpy(cli_alloc(size, 1), text, size);
}

void *cli_or_absent(void *opened)
{
    if (!opened && errno == ENOMEM)
        cli_no_memory();
    return opened;
}

FILE *cli_open_text(char **text, size_t *size)
{
    *text = NULL;
    FILE *to = open_memstream(text, size);
    if (!to)
        cli_no_memory();
    return to;
}

void cli_close_text(FILE *to)
{
    const bool failed = ferror(to) != 0;

    if (fclose(to) != 0 || failed)
        cli_no_memory();
}
