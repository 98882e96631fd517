/* cameo prepare: an inference model becomes a trainable one. */
// SPDX-License-Identifier: Apache-2.0
#include "derive.h"
#include "training_flags.h"

enum { ORIGINAL_MAX = 80 }; /* a longer text does not widen its column */

static const char *out_path;
static bool list, list_passes;

static void print_json(const struct cameo_preparation *report, const struct cli_saved *saved)
{
    struct cli_json json = {.to = stdout};

    cli_json_open(&json, NULL, '{');
    cli_json_open(&json, "initializers", '[');
    for (size_t i = 0; i < report->choice_count; i++) {
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "name", report->choices[i]->name);
        cli_json_bool(&json, "trained", report->choices[i]->trained);
        cli_json_text(&json, "reason", report->choices[i]->reason);
        cli_json_original(&json, report->choices[i]->original, report->choices[i]->folding);
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_open(&json, "changes", '[');
    for (size_t i = 0; i < report->change_count; i++)
        cli_json_text(&json, NULL, report->changes[i]);
    cli_json_close(&json, ']');
    cli_json_text(&json, "target", report->target);
    cli_json_text(&json, "loss", report->loss);
    cli_saved_json(&json, saved);
    cli_json_close(&json, '}');
}

static void print_choices(const struct cameo_preparation *report)
{
    size_t width = 0, originals = 0;

    for (size_t i = 0; i < report->choice_count; i++) {
        const struct cameo_choice *choice = report->choices[i];
        const size_t columns = cli_text_width(choice->name);
        const size_t original = cli_original_width(choice->original, choice->folding);

        width = columns > width ? columns : width;
        originals = original > originals && original < ORIGINAL_MAX ? original : originals;
    }
    for (size_t i = 0; i < report->choice_count; i++) {
        const struct cameo_choice *choice = report->choices[i];
        fputs(choice->trained ? "train  " : "leave  ", stdout);
        cli_put_padded(stdout, choice->name, width + 2);
        if (originals)
            cli_put_original(stdout, choice->original, choice->folding, originals + 2);
        if (cli_original_width(choice->original, choice->folding) > originals)
            fputs("  ", stdout);
        cli_put_text(stdout, choice->reason.data, choice->reason.size);
        fputc('\n', stdout);
    }
}

static int finish(const struct cameo_model *model, const struct cameo_preparation *report)
{
    struct cli_saved saved = {0};
    int code = CLI_YES;

    if (list && !cli_as_json)
        print_choices(report);
    cli_training_tell(report);
    if (out_path)
        code = cli_save_files(model, out_path, &saved);
    if (cli_as_json && code == CLI_YES)
        print_json(report, &saved);
    cli_saved_free(&saved);
    return code == CLI_YES ? cli_flush(stdout, "standard output") : code;
}

static int prepare_main(char **operands, int count)
{
    struct cameo_prepare_options prepare = CAMEO_PREPARE_OPTIONS_INIT;
    const struct cameo_preparation *report = NULL;
    struct cameo_model *model;
    struct cameo_error err;

    if (list_passes)
        return cli_list_passes(cameo_prepare_pass);
    int code = cli_training_read("prepare", &prepare);
    if (!count) {
        cli_complain("prepare: no model was given");
        code = CLI_USAGE;
    }
    if (!out_path && !list && !cli_as_json && !cli_training.dumps.count) {
        cli_complain("prepare: no file to write was given, add -o FILE, or --list");
        code = CLI_USAGE;
    }
    if (!prepare.loss || !prepare.optimizer) {
        cli_complain("prepare: say the loss and the optimizer, with --loss and --optimizer");
        code = CLI_USAGE;
    }
    if (code == CLI_YES)
        code = cli_placement_check("prepare");
    if (code != CLI_YES)
        return code;
    if (cli_load_model(operands[0], NULL, &model, &err) != CAMEO_OK)
        return cli_fail(&err);
    cli_note_newer(model);
    code = cli_training_dump("prepare", model, &prepare);
    if (code != CLI_YES || !(out_path || list || cli_as_json)) {
        cameo_model_free(model);
        return code;
    }
    if (cameo_model_prepare(model, &prepare, &report, &err) != CAMEO_OK) {
        if (list && report && !cli_as_json)
            print_choices(report);
        code = cli_training_refuse(report, list, &err);
    } else {
        code = finish(model, report);
    }
    cameo_model_free(model);
    return code;
}

static const struct cli_option options[] = {
    {"--output", "-o", "FILE", "the file to write", CLI_TEXT, &out_path},
    CLI_PLACEMENT_OPTIONS,
    {"--out", NULL, NULL, "--output", CLI_OLD, NULL},
    {"--list", NULL, NULL, "print which initializers are trained, and why", CLI_FLAG, &list},
    {"--json", NULL, NULL, "the same as JSON", CLI_FLAG, &cli_as_json},
    CLI_SARIF_OPTION,
    {"--list-passes", NULL, NULL, "list the passes of the preparation", CLI_FLAG, &list_passes},
    CLI_PREPARE_PASS_OPTIONS("--without"),
    CLI_TRAINING_OPTIONS,
    {0},
};

CLI_COMMAND(
    prepare, prepare_main, "MODEL --loss LOSS --optimizer NAME -o FILE", "make a model trainable",
    "Adds training info to an inference model: the loss, its gradients, the optimizer with\n"
    "its state, and an initialization that resets it. The result is standard ONNX; `cameo\n"
    "train` goes on with it. The inference graph stays as it is, unless its opset is too old\n"
    "to be trained; each change is said. What stands in the way is listed all at once.",
    "cameo prepare net.onnx --loss cross-entropy --optimizer adam -o trainable.onnx\n"
    "cameo prepare net.onnx --loss mse --optimizer sgd --lr 0.1 --list # who is trained\n"
    "cameo prepare net.onnx --loss mse --optimizer adam --train '^head' -o head.onnx\n"
    "cameo prepare net.onnx --loss mse --optimizer sgd --dump-after loss=loss.onnx # a pass",
    "0 if it was written, 1 if the model cannot be trained", options, 0, 1);
