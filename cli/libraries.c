/* Which libraries of others are in use. */
// SPDX-License-Identifier: Apache-2.0
#include "cli.h"

void cli_print_libraries(FILE *to)
{
    struct cameo_library library = CAMEO_LIBRARY_INIT;

    bool starved = false;

    for (size_t i = 0; cameo_library(i, &library); i++) {
        if (library.version[0])
            fprintf(to, "%s %s, %s\n", library.name, library.version, library.path);
        else
            fprintf(to, "without %s: %s\n", library.name, library.reason);
        starved |= library.no_memory;
    }
    if (starved)
        cli_no_memory();
}
