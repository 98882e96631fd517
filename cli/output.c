/* Text files that a command writes: a stream of the C library over a file of libcameo's, which
 * comes into being whole or not at all. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "cli.h"

static ssize_t put(void *cookie, const char *bytes, size_t size)
{
    struct cli_output *out = cookie;

    if (out->err.status == CAMEO_OK)
        cameo_file_write(out->file, bytes, size, &out->err);
    return out->err.status == CAMEO_OK ? (ssize_t)size : 0;
}

int cli_output_begin(struct cli_output *out, const char *path)
{
    const cookie_io_functions_t functions = {.write = put};

    *out = (struct cli_output){.err.status = CAMEO_OK};
    if (cameo_file_new(path, NULL, &out->file, &out->err) != CAMEO_OK)
        return cli_fail(&out->err);
    out->to = fopencookie(out, "w", functions);
    if (out->to)
        return CLI_YES;
    cameo_file_free(out->file);
    cli_complain("no memory for writing %s", path);
    return CLI_MACHINE;
}

int cli_output_end(struct cli_output *out, int code)
{
    if (fclose(out->to) != 0 && out->err.status == CAMEO_OK && code == CLI_YES) {
        cli_complain("no memory for writing");
        code = CLI_MACHINE;
    }
    if (code == CLI_YES && out->err.status == CAMEO_OK)
        cameo_file_commit(out->file, &out->err);
    cameo_file_free(out->file);
    if (code == CLI_YES && out->err.status != CAMEO_OK && !cli_reader_gone)
        code = cli_fail(&out->err);
    return code;
}
