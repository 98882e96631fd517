/* Saving a model that was made. */
// SPDX-License-Identifier: Apache-2.0
#include "derive.h"

#include <string.h>

int cli_save(const struct cameo_model *model, const char *path)
{
    struct cameo_save_options options = CAMEO_SAVE_OPTIONS_INIT;
    struct cameo_save_report report = CAMEO_SAVE_REPORT_INIT;
    struct cameo_error err;
    char number[CLI_NUMBER_SIZE];

    const int code = cli_may_save("-o", path);
    if (code != CLI_YES)
        return code;
    options.cancel = cli_stop_on_signal();
    if (cameo_model_save(model, path, &options, &report, &err) != CAMEO_OK)
        return cli_fail(&err);
    fputs("wrote ", stderr);
    cli_put_text(stderr, path, strlen(path));
    fprintf(stderr, ": %s\n", cli_bytes(number, report.model_bytes));
    return CLI_YES;
}
