/* cameo step: the whole training step as a plain model. */
// SPDX-License-Identifier: Apache-2.0
#include "derive.h"

static const char *out_path;
static bool portable;

static int write_step(const struct cameo_model *model, const char *path)
{
    struct cameo_model *step = NULL;
    struct cameo_error err;

    if (cameo_model_summary(model)->training_count == 0) {
        cli_complain("step: %s carries no training; 'cameo prepare' adds one", path);
        return CLI_NO;
    }
    cli_note_newer(model);
    const int code = cameo_model_step(model, portable, &step, &err) != CAMEO_OK
                         ? cli_fail_model(model, &err)
                         : cli_save(step, out_path);
    cameo_model_free(step);
    return code;
}

static int step_main(char **operands, int count)
{
    struct cameo_model *model;
    struct cameo_error err;

    (void)count;
    if (!out_path) {
        cli_complain("step: no file to write was given, add -o FILE");
        return CLI_USAGE;
    }
    if (cli_load_model(operands[0], NULL, &model, &err) != CAMEO_OK)
        return cli_fail(&err);
    const int code = write_step(model, operands[0]);
    cameo_model_free(model);
    return code;
}

static const struct cli_option options[] = {
    {"--output", "-o", "FILE", "the file to write", CLI_TEXT, &out_path},
    {"--portable", NULL, NULL, "standard operators only; random masks are fed", CLI_FLAG,
     &portable},
    {0},
};

CLI_COMMAND(step, step_main, "MODEL -o FILE [--portable]", "write the training step as a model",
            "Writes one training step of a model that carries its training: a plain model whose\n"
            "inputs are weights, optimizer state and a batch, and whose outputs are the loss and\n"
            "the new weights and state, NAME.next for NAME. Run it in a loop, in any runtime.",
            "cameo step trainable.onnx -o step.onnx --portable # for other runtimes",
            "0 if it was written, 1 if the model has no training or a part of it is not known",
            options, 1, 1);
