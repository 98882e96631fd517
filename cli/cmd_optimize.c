/* cameo optimize: a model as the passes leave it. */
// SPDX-License-Identifier: Apache-2.0
#include "derive.h"

static const char *out_path, *passes, *without;
static struct cli_texts dumps;
static bool portable, as_is, list_passes;

static void put_counts(const char *name, size_t before, size_t after)
{
    printf("%-12s %zu -> %zu node%s", name, before, after, after == 1 ? "" : "s");
}

static void put_passes(const struct cameo_optimization *report)
{
    struct cameo_pass known = CAMEO_PASS_INIT;

    for (size_t i = 0; i < report->pass_count; i++) {
        const struct cameo_pass_result *pass = report->passes[i];
        if (pass->skipped && cameo_pass(i, &known) && known.on_request)
            continue;
        if (pass->skipped)
            printf("%-12s left out", pass->name);
        else
            put_counts(pass->name, pass->nodes_before, pass->nodes_after);
        putchar('\n');
    }
    put_counts("total", report->nodes_before, report->nodes);
    if (report->nodes_inlined != report->nodes)
        printf(", %zu with fused groups inlined", report->nodes_inlined);
    putchar('\n');
}

static void put_json(const struct cameo_optimization *report, const struct cli_saved *saved)
{
    struct cli_json json = {.to = stdout};

    cli_json_open(&json, NULL, '{');
    cli_json_open(&json, "passes", '[');
    for (size_t i = 0; i < report->pass_count; i++) {
        const struct cameo_pass_result *pass = report->passes[i];
        cli_json_open(&json, NULL, '{');
        cli_json_string(&json, "name", pass->name);
        cli_json_bool(&json, "skipped", pass->skipped);
        cli_json_count(&json, "nodes_before", pass->nodes_before);
        cli_json_count(&json, "nodes_after", pass->nodes_after);
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_count(&json, "nodes_before", report->nodes_before);
    cli_json_count(&json, "nodes", report->nodes);
    cli_json_count(&json, "nodes_inlined", report->nodes_inlined);
    cli_json_count(&json, "functions", report->function_count);
    cli_json_open(&json, "changes", '[');
    for (size_t i = 0; i < report->change_count; i++)
        cli_json_text(&json, NULL, report->changes[i]);
    cli_json_close(&json, ']');
    cli_saved_json(&json, saved);
    cli_json_close(&json, '}');
}

/* Optimizes up to a pass, or all the way, and saves; the whole way is reported on. */
static int write_model(const struct cameo_model *model, const char *until, const char *path)
{
    struct cameo_optimize_options options = CAMEO_OPTIMIZE_OPTIONS_INIT;
    const struct cameo_optimization *report;
    struct cameo_model *made = NULL;
    struct cameo_error err;

    options.passes = passes;
    options.without = without;
    options.until = until;
    options.portable = portable;
    options.as_is = as_is;
    const enum cameo_status status = cameo_model_optimize(model, &options, &made, &report, &err);
    if (status == CAMEO_BAD_ARGUMENT)
        return cli_fail(&err);
    if (status != CAMEO_OK)
        return cli_fail_model(model, &err);
    if (!until) {
        if (!cli_as_json)
            put_passes(report);
        fflush(stdout); /* what follows goes elsewhere; a failure is found at the end */
        for (size_t i = 0; i < report->change_count; i++)
            cli_put_line(stderr, report->changes[i]);
    }
    struct cli_saved saved;
    const int code = cli_save_files(made, path, &saved);
    if (!until && cli_as_json && code == CLI_YES)
        put_json(report, &saved);
    cli_saved_free(&saved);
    cameo_model_free(made);
    return code;
}

static int dump(const void *arg, const char *pass, const char *path)
{
    return write_model(arg, pass, path);
}

static int optimize(const struct cameo_model *model)
{
    int code = cli_may_save("optimize: -o", out_path);

    if (code == CLI_YES)
        code = cli_dump_after("optimize", &dumps, dump, model);
    if (code == CLI_YES && out_path)
        code = write_model(model, NULL, out_path);
    return code == CLI_YES ? cli_flush(stdout, "standard output") : code;
}

static int optimize_main(char **operands, int count)
{
    struct cameo_model *model;
    struct cameo_error err;

    if (list_passes)
        return cli_list_passes(cameo_pass);
    if (!count) {
        cli_complain("optimize: no model was given");
        return CLI_USAGE;
    }
    if (!out_path && !dumps.count) {
        cli_complain("optimize: no file to write was given, add -o FILE");
        return CLI_USAGE;
    }
    int code = cli_placement_check("optimize");
    if (code == CLI_YES)
        code = cli_check_writable(out_path); /* before the work, not after it */
    if (code != CLI_YES)
        return code;
    if (cli_load_model(operands[0], NULL, &model, &err) != CAMEO_OK)
        return cli_fail(&err);
    cli_note_newer(model);
    code = optimize(model);
    cameo_model_free(model);
    return code;
}

static const struct cli_option options[] = {
    {"--output", "-o", "FILE", "the file to write", CLI_TEXT, &out_path},
    CLI_PLACEMENT_OPTIONS,
    {"--passes", NULL, "LIST", "run these passes only, parted by commas", CLI_TEXT, &passes},
    {"--without", NULL, "LIST", "leave these passes out", CLI_TEXT, &without},
    {"--dump-after", NULL, "PASS=FILE", "write the model as it is after a pass", CLI_TEXTS, &dumps},
    {"--portable", NULL, NULL, "standard operators only, no functions", CLI_FLAG, &portable},
    {"--as-is", NULL, NULL, "leave nodes in training mode as they are", CLI_FLAG, &as_is},
    {"--list", NULL, NULL, "list the passes", CLI_FLAG, &list_passes},
    {"--json", NULL, NULL, "print JSON", CLI_FLAG, &cli_as_json},
    CLI_SARIF_OPTION,
    {0},
};

CLI_COMMAND(
    optimize, optimize_main, "MODEL -o FILE [--portable]",
    "write the model as it is run, with fewer nodes",
    "Writes what the passes make of a model before it is run: constants computed, no-ops\n"
    "and repetitions removed, groups of nodes fused. Inputs, outputs, metadata and (from 17\n"
    "on) the opset stay. Each fused group is a call of a function that the file defines;\n"
    "--portable writes its nodes instead. For each pass it says how many nodes there were\n"
    "before and after; --list names them. docs/optimize.md has more.",
    "cameo optimize net.onnx -o fast.onnx # as Cameo runs it\n"
    "cameo optimize net.onnx -o fast.onnx --portable # for other runtimes\n"
    "cameo optimize net.onnx -o fast.onnx --dump-after fold=folded.onnx # what a pass did",
    "0 if it was written, 1 if the model is broken or something in it is not known", options, 0, 1);
