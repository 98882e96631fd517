/* cameo strip: a trainable model becomes an inference model again. */
// SPDX-License-Identifier: Apache-2.0
#include "derive.h"

#include <stdlib.h>
#include <string.h>

static const char *out_path, *entry;

/* All of it, or one entry. */
static enum cameo_status take_out(struct cameo_model *model, struct cameo_error *err)
{
    return entry ? cameo_model_remove_training(model, strtoul(entry, NULL, 10), err)
                 : cameo_model_strip(model, err);
}

static int strip_main(char **operands, int count)
{
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
    const int code = take_out(model, &err) != CAMEO_OK ? cli_fail(&err) : cli_save(model, out_path);
    cameo_model_free(model);
    return code;
}

static const struct cli_option options[] = {
    {"--output", "-o", "FILE", "the file to write", CLI_TEXT, &out_path},
    {"--entry", NULL, "N", "take out this entry of training info alone, counted from 0", CLI_TEXT,
     &entry},
    {0},
};

CLI_COMMAND(strip, strip_main, "MODEL -o FILE", "take the training out of a model",
            "Writes the inference model that is inside a trainable one, with the weights that\n"
            "training gave it. Every ONNX runtime loads it.",
            "cameo strip trained.onnx -o net.onnx # to be shipped",
            "0 if it was written, 1 if the model is broken", options, 1, 1);
