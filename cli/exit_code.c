/* The one place that decides how the program ends. */
// SPDX-License-Identifier: Apache-2.0
#include "cli.h"

#include <errno.h>

int cli_exit_code(enum cameo_status status)
{
    switch (status) {
    case CAMEO_OK:
        return CLI_YES;
    case CAMEO_BAD_ARGUMENT:
    case CAMEO_NOT_FOUND:
        return CLI_USAGE;
    case CAMEO_NO_MEMORY:
    case CAMEO_IO:
        return CLI_MACHINE;
    case CAMEO_CANCELLED:
        return CLI_CANCELLED;
    default:
        return CLI_NO;
    }
}

int cli_errno_code(int why)
{
    switch (why) {
    case ENOENT:
    case EEXIST:
    case EISDIR:
    case ENOTDIR:
    case ENAMETOOLONG:
        return CLI_USAGE;
    default:
        return CLI_MACHINE;
    }
}
