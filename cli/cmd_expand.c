/* cameo expand: a model with its functions inlined. */
// SPDX-License-Identifier: Apache-2.0
#include "derive.h"

static const char *out_path, *only, *except;
static bool operators, core;

static void put_texts(struct cli_json *json, const char *name, const struct cameo_text *texts,
                      size_t count)
{
    cli_json_open(json, name, '[');
    for (size_t i = 0; i < count; i++)
        cli_json_text(json, NULL, texts[i]);
    cli_json_close(json, ']');
}

static void put_json(const struct cameo_expansion *report, const struct cli_saved *saved)
{
    struct cli_json json = {.to = stdout};

    cli_json_open(&json, NULL, '{');
    cli_json_count(&json, "calls", report->call_count);
    cli_json_count(&json, "operators", report->operator_count);
    cli_json_count(&json, "functions_removed", report->function_count);
    cli_json_count(&json, "nodes_before", report->nodes_before);
    cli_json_count(&json, "nodes", report->nodes);
    put_texts(&json, "changes", report->changes, report->change_count);
    put_texts(&json, "left", report->left, report->left_count);
    cli_saved_json(&json, saved);
    cli_json_close(&json, '}');
}

static const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}

static void put_text(const struct cameo_expansion *report)
{
    printf("%zu call%s inlined, %zu function%s removed\n", report->call_count,
           plural(report->call_count), report->function_count, plural(report->function_count));
    if (operators || core || only)
        printf("%zu operator%s expanded\n", report->operator_count, plural(report->operator_count));
    printf("%zu -> %zu node%s\n", report->nodes_before, report->nodes, plural(report->nodes));
}

static int expand(const struct cameo_model *model)
{
    struct cameo_expand_options options = CAMEO_EXPAND_OPTIONS_INIT;
    const struct cameo_expansion *report;
    struct cameo_model *made = NULL;
    struct cameo_error err;

    options.only = only;
    options.except = except;
    options.operators = operators;
    options.core = core;
    options.findings = &cli_found;
    const enum cameo_status status = cameo_model_expand(model, &options, &made, &report, &err);
    if (status != CAMEO_OK)
        return cli_fail_found(&err);
    if (!cli_as_json)
        put_text(report);
    fflush(stdout); /* what follows goes elsewhere; a failure is found at the end */
    for (size_t i = 0; i < report->change_count; i++)
        cli_put_line(stderr, report->changes[i]);
    for (size_t i = 0; i < report->left_count; i++)
        cli_put_line(stderr, report->left[i]);
    struct cli_saved saved;
    const int code = cli_save_files(made, out_path, &saved);
    if (cli_as_json && code == CLI_YES)
        put_json(report, &saved);
    cli_saved_free(&saved);
    cameo_model_free(made);
    return code == CLI_YES ? cli_flush(stdout, "standard output") : code;
}

static int expand_main(char **operands, int count)
{
    struct cameo_model *model;
    struct cameo_error err;

    (void)count;
    if (!out_path) {
        cli_complain("expand: no file to write was given, add -o FILE");
        return CLI_USAGE;
    }
    if (core && (only || operators)) {
        cli_complain("expand: --core expands all that is not a core operator: leave out %s",
                     only ? "--only" : "--operators");
        return CLI_USAGE;
    }
    int code = cli_may_save("expand: -o", out_path);
    if (code == CLI_YES)
        code = cli_check_writable(out_path); /* before the work, not after it */
    if (code != CLI_YES)
        return code;
    if (cli_load_model(operands[0], NULL, &model, &err) != CAMEO_OK)
        return cli_fail(&err);
    cli_note_newer(model);
    code = expand(model);
    cameo_model_free(model);
    return code;
}

static const struct cli_option options[] = {
    {"--output", "-o", "FILE", "the file to write", CLI_TEXT, &out_path},
    {"--only", NULL, "NAMES", "these functions and operators, parted by commas", CLI_TEXT, &only},
    {"--except", NULL, "NAMES", "not these", CLI_TEXT, &except},
    {"--operators", NULL, NULL, "operators that have a function body too", CLI_FLAG, &operators},
    {"--core", NULL, NULL, "all but core operators", CLI_FLAG, &core},
    {"--json", NULL, NULL, "print JSON", CLI_FLAG, &cli_as_json},
    CLI_SARIF_OPTION,
    {0},
};

CLI_COMMAND(
    expand, expand_main, "MODEL -o FILE [--only NAMES] [--except NAMES] [--core]",
    "inline functions, down to core operators if asked",
    "Puts the body of each function that the model defines in the place of its calls, in\n"
    "training info too. --operators does the same with operators that are functions: those\n"
    "that ONNX defines so, of com.microsoft and of ai.cameo. --core leaves core operators\n"
    "only, the set that a new backend has to implement (docs/core-operators.md). A name is\n"
    "NAME, DOMAIN::NAME or DOMAIN::*, of a function or an operator. Nodes that are not\n"
    "expanded stay as they are; where the opset is too old for a body it is raised, and said.",
    "cameo expand net.onnx -o flat.onnx # functions of the model\n"
    "cameo expand net.onnx -o flat.onnx --only LayerNormalization,com.microsoft::* # these\n"
    "cameo expand net.onnx -o core.onnx --core # core operators only",
    "0 if it was written, 1 if something that must go has no body", options, 1, 1);
