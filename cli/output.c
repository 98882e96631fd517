/* Text files that a command writes: a stream of the C library over a file of libcameo's, which
 * comes into being whole or not at all. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "cli.h"
#include "short_of_memory.h"

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
    if (!out->to)
        cli_no_memory();
    return CLI_YES;
}

int cli_output_end(struct cli_output *out, int code)
{
    const bool failed = fclose(out->to) != 0;
    if (code == CLI_YES && out->err.status == CAMEO_OK && (failed || cli_memory_was_missed()))
        cli_no_memory(); /* what it holds may lack a part */
    if (code == CLI_YES && out->err.status == CAMEO_OK)
        cameo_file_commit(out->file, &out->err);
    cameo_file_free(out->file);
    if (code == CLI_YES && out->err.status != CAMEO_OK && !cli_reader_gone)
        code = cli_fail(&out->err);
    return code;
}
