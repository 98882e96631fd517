/* cameo strip: a trainable model becomes an inference model again. */
// SPDX-License-Identifier: Apache-2.0
#include "derive.h"

#include <stdlib.h>
#include <string.h>

static const char *out_path, *entry;

/* All of it, or one entry. */
static enum cameo_status take_out(struct cameo_model *model, const struct cameo_edit **report,
                                  struct cameo_error *err)
{
    const unsigned long number = entry ? strtoul(entry, NULL, 10) : 0;

    if (entry && (number || cameo_model_summary(model)->training_count != 1))
        return cameo_model_remove_training(model, number, err);
    return cameo_model_strip_training(model, report, err);
}

static int strip_main(char **operands, int count)
{
    const struct cameo_edit *report = NULL;
    struct cameo_model *model;
    struct cameo_error err;

    (void)count;
    if (!out_path) {
        cli_complain("strip: no file to write was given, add -o FILE");
        return CLI_USAGE;
    }
    if (entry && entry[strspn(entry, "0123456789")]) {
        cli_complain("strip: --entry is '%s', expected the number of an entry, from 0", entry);
        return CLI_USAGE;
    }
    if (cli_load_model(operands[0], NULL, &model, &err) != CAMEO_OK)
        return cli_fail(&err);
    int code = CLI_YES;
    if (take_out(model, &report, &err) != CAMEO_OK)
        code = cli_fail(&err);
    for (size_t i = 0; code == CLI_YES && report && i < report->change_count; i++)
        cli_put_line(stderr, report->changes[i]);
    if (code == CLI_YES)
        code = cli_save(model, out_path);
    cameo_model_free(model);
    return code;
}

static const struct cli_option options[] = {
    {"--output", "-o", "FILE", "the file to write", CLI_TEXT, &out_path},
    {"--entry", NULL, "N", "take out this entry of training info alone, counted from 0", CLI_TEXT,
     &entry},
    {0},
};

CLI_COMMAND(
    strip, strip_main, "MODEL -o FILE", "take the training out of a model",
    "Writes the inference model that is inside a trainable one, with the weights that\n"
    "training gave it. Every ONNX runtime loads it. Dropout and BatchNormalization that an export\n"
    "left in training mode are turned off, and named.",
    "cameo strip trained.onnx -o net.onnx # to be shipped",
    "0 if it was written, 1 if the model is broken", options, 1, 1);
