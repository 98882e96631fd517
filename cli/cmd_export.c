/* cameo export: a model's weights and training as another framework saves them. */
// SPDX-License-Identifier: Apache-2.0
#include "derive.h"

#include <string.h>

static const char *out_path, *to;
static bool weights_only, list, json_output, no_check;

static void put_json(const struct cameo_exported *report)
{
    struct cli_json json = {.to = stdout};

    cli_json_open(&json, NULL, '{');
    cli_json_string(&json, "format", to);
    if (report->optimizer.size)
        cli_json_text(&json, "optimizer", report->optimizer);
    if (report->step >= 0)
        cli_json_int(&json, "step", report->step);
    cli_json_count(&json, "bytes", report->bytes);
    cli_json_open(&json, "tensors", '[');
    for (size_t i = 0; i < report->tensor_count; i++) {
        const struct cameo_exported_tensor *tensor = report->tensors[i];

        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "name", tensor->name);
        cli_json_text(&json, "role", tensor->role);
        if (tensor->slot.size)
            cli_json_text(&json, "slot", tensor->slot);
        cli_json_text(&json, "type", tensor->type);
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_open(&json, "notes", '[');
    for (size_t i = 0; i < report->note_count; i++)
        cli_json_text(&json, NULL, report->notes[i]);
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
}

static void put_list(const struct cameo_exported *report)
{
    size_t width = 0;

    for (size_t i = 0; i < report->tensor_count; i++) {
        const size_t columns = cli_text_width(report->tensors[i]->name);

        width = columns > width && columns < 80 ? columns : width;
    }
    for (size_t i = 0; i < report->tensor_count; i++) {
        const struct cameo_exported_tensor *tensor = report->tensors[i];

        cli_put_padded(stdout, tensor->slot.size ? tensor->slot : tensor->role, 16);
        cli_put_padded(stdout, tensor->name, width + 2);
        cli_put_line(stdout, tensor->type);
    }
}

static void put_formats(void)
{
    const struct cameo_export_format *format;

    for (size_t i = 0; (format = cameo_export_format(i)); i++) {
        cli_put_padded(stdout, format->name, 20);
        cli_put_padded(stdout, format->system, 24);
        cli_put_line(stdout, format->what);
    }
}

static void put_outcome(const struct cameo_exported *report)
{
    char number[CLI_NUMBER_SIZE];

    fputs("wrote ", stderr);
    cli_put_text(stderr, out_path, strlen(out_path));
    fprintf(stderr, ": %zu tensor%s, %s", report->tensor_count,
            report->tensor_count == 1 ? "" : "s", cli_bytes(number, report->bytes));
    if (report->step >= 0)
        fprintf(stderr, ", after %lld updates", (long long)report->step);
    fputc('\n', stderr);
}

/* What the receiver must know, from a note on. */
static void put_notes(const struct cameo_exported *report, size_t first)
{
    for (size_t i = first; i < report->note_count; i++)
        cli_put_line(stderr, report->notes[i]);
}

static int export_it(const struct cameo_model *model)
{
    struct cameo_export_options options = CAMEO_EXPORT_OPTIONS_INIT;
    const struct cameo_exported *report;
    struct cameo_error err;

    options.to = to;
    options.weights_only = weights_only;
    options.no_check = no_check;
    options.cancel = cli_stop_on_signal();
    if (cameo_model_export(model, NULL, &options, &report, &err) != CAMEO_OK)
        return cli_fail(&err);
    if (json_output)
        put_json(report);
    else if (list)
        put_list(report);
    fflush(stdout); /* what follows goes elsewhere; a failure is found at the end */
    put_notes(report, 0);
    if (out_path) {
        const size_t said = report->note_count;
        if (cameo_model_export(model, out_path, &options, &report, &err) != CAMEO_OK)
            return cli_fail(&err);
        put_notes(report, said); /* what the writer of code could not write */
        put_outcome(report);
    }
    return cli_flush(stdout, "standard output");
}

static int check_usage(int count)
{
    if (count && !to)
        cli_complain("export: say the format with --to, see `cameo export --list`");
    else if (count && !out_path && !list && !json_output)
        cli_complain("export: nothing to write was given, add -o PATH, or --list");
    else if (!count && (!list || to || out_path))
        cli_complain("export: no model was given");
    else
        return CLI_YES;
    return CLI_USAGE;
}

static int export_main(char **operands, int count)
{
    struct cameo_model *model;
    struct cameo_error err;
    int code = check_usage(count);

    if (code != CLI_YES)
        return code;
    if (!count) {
        put_formats();
        return cli_flush(stdout, "standard output");
    }
    if (cli_load_model(operands[0], NULL, &model, &err) != CAMEO_OK)
        return cli_fail(&err);
    code = cli_may_write("export: -o", out_path);
    if (code == CLI_YES)
        code = export_it(model);
    cameo_model_free(model);
    return code;
}

static const struct cli_option options[] = {
    {"--to", NULL, "FORMAT", "what to write; `cameo export --list` names the formats", CLI_TEXT,
     &to},
    {"--output", "-o", "PATH", "the file or folder to write", CLI_TEXT, &out_path},
    {"--weights-only", NULL, NULL, "leave the optimizer out", CLI_FLAG, &weights_only},
    {"--no-check", NULL, NULL, "of code: record no results to compare with", CLI_FLAG, &no_check},
    {"--list", NULL, NULL, "print the tensors; without a model, the formats", CLI_FLAG, &list},
    {"--json", NULL, NULL, "print the tensors as JSON", CLI_FLAG, &json_output},
    CLI_SARIF_OPTION,
    {0},
};

CLI_COMMAND(
    export, export_main, "MODEL --to FORMAT -o PATH [--weights-only]",
    "write weights and training as another framework saves them",
    "Writes the checkpoint that another framework continues from: weights under the names and\n"
    "in the layouts that they came with (`cameo import`), the optimizer's state, its settings,\n"
    "the schedule and the position, where the format has a place for them. What it has none\n"
    "for is said. The file or folder appears whole or not at all. docs/checkpoints.md has\n"
    "more.",
    "cameo export trained.onnx --to pytorch -o trained.pt # and go on in PyTorch\n"
    "cameo export trained.onnx --to huggingface -o checkpoint-200\n"
    "cameo export trained.onnx --to keras-weights --weights-only -o net.weights.h5\n"
    "cameo export trained.onnx --to pytorch --list # what would be written\n"
    "cameo export --list # the formats",
    "0 if it was written, 1 if the format cannot hold the training", options, 0, 1);
