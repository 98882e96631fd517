/* cameo strip: a trainable model becomes an inference model again. */
// SPDX-License-Identifier: Apache-2.0
#include "copy_proof.h"
#include "derive.h"

#include <stdlib.h>
#include <string.h>

static const char *out_path, *entry;
static bool check;

/* All of it, or one entry. */
static enum cameo_status take_out(struct cameo_model *model, const struct cameo_edit **report,
                                  struct cameo_error *err)
{
    const unsigned long number = entry ? strtoul(entry, NULL, 10) : 0;

    if (entry && (number || cameo_model_summary(model)->training_count != 1))
        return cameo_model_remove_training(model, number, err);
    return cameo_model_strip_training(model, report, err);
}

/* The copy is compared with the original. If training modes were turned off, or the original is
 * written over, the copy is compared with the model as it was before it was written. */
static int strip(const char *path, struct cameo_model *model)
{
    const struct cameo_edit *report = NULL;
    struct cameo_model *original = NULL;
    struct cli_saved saved = {0};
    struct cameo_error err;
    int code = CLI_YES;

    if (take_out(model, &report, &err) != CAMEO_OK)
        return cli_fail(&err);
    for (size_t i = 0; report && i < report->change_count; i++)
        cli_put_line(stderr, report->changes[i]);
    const bool changed = (report && report->change_count) || cli_same_file(path, out_path);
    if (check && !changed && cli_load_model(path, NULL, &original, &err) != CAMEO_OK)
        code = cli_fail(&err);
    if (code == CLI_YES)
        code = cli_save_files(model, out_path, &saved);
    if (code == CLI_YES && check)
        code = cli_prove_copy(changed ? model : original, model, &saved);
    cli_saved_free(&saved);
    cameo_model_free(original);
    return code;
}

static int check_options(void)
{
    if (!out_path) {
        cli_complain("strip: no file to write was given, add -o FILE");
        return CLI_USAGE;
    }
    if (entry && entry[strspn(entry, "0123456789")]) {
        cli_complain("strip: --entry is '%s', expected the number of an entry, from 0", entry);
        return CLI_USAGE;
    }
    const int code = cli_placement_check("strip");
    return code == CLI_YES ? cli_check_writable(out_path) : code; /* before the work */
}

static int strip_main(char **operands, int count)
{
    struct cameo_model *model;
    struct cameo_error err;
    int code = check_options();

    (void)count;
    if (code != CLI_YES)
        return code;
    if (cli_load_model(operands[0], NULL, &model, &err) != CAMEO_OK)
        return cli_fail(&err);
    code = strip(operands[0], model);
    cameo_model_free(model);
    return code;
}

static const struct cli_option options[] = {
    {"--output", "-o", "FILE", "the file to write", CLI_TEXT, &out_path},
    {"--entry", NULL, "N", "take out this entry of training info alone, counted from 0", CLI_TEXT,
     &entry},
    CLI_PLACEMENT_OPTIONS,
    {"--check", NULL, NULL, "prove that the copy works without any other file", CLI_FLAG, &check},
    {0},
};

CLI_COMMAND(
    strip, strip_main, "MODEL -o FILE", "take the training out of a model",
    "Writes the inference model that is inside a trainable one, with the weights that\n"
    "training gave it. Every ONNX runtime loads it. Dropout and BatchNormalization that an export\n"
    "left in training mode are turned off, and named. External data of less than 64 MiB goes\n"
    "into FILE; more goes to one new file beside it. --check loads the result from a folder of\n"
    "its own, checks it, and compares its tensors and results with those of MODEL.",
    "cameo strip trained.onnx -o net.onnx --check # to be shipped",
    "0 if it was written, 1 if the model is broken or --check finds that it does not stand alone",
    options, 1, 1);
