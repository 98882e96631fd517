/* cameo infer: types and shapes of every value of a model. */
// SPDX-License-Identifier: Apache-2.0
#include "derive.h"

static const char *out_path;
static bool strict, partial, constant_inputs, open_inputs;

static void put_findings(const struct cameo_findings *findings, enum cameo_severity severity,
                         FILE *to, const char *before)
{
    const struct cameo_finding *finding;

    for (size_t i = 0; (finding = cameo_findings_at(findings, i)) != NULL; i++) {
        if (finding->severity != severity)
            continue;
        fputs(before, to);
        cli_put_finding(to, finding);
    }
}

static void put_counts(const struct cameo_inference *report)
{
    printf("%zu value%s, %zu with a type (%zu were declared), %zu without an unknown dimension\n",
           report->value_count, report->value_count == 1 ? "" : "s", report->typed_count,
           report->declared_count, report->complete_count);
    printf("%zu dimension%s: %zu number%s, %zu symbolic, %zu unknown\n", report->dim_count,
           report->dim_count == 1 ? "" : "s", report->number_count,
           report->number_count == 1 ? "" : "s", report->symbolic_count, report->unknown_count);
}

static void put_values(const struct cameo_inference *report)
{
    for (size_t i = 0; i < report->listed_count; i++) {
        const struct cameo_inferred_value *value = report->values[i];
        cli_put_text(stdout, value->place.data, value->place.size);
        cli_put_text(stdout, value->name.data, value->name.size);
        fputs(": ", stdout);
        cli_put_line(stdout, value->type);
    }
}

static void put_json(const struct cameo_inference *report, const struct cli_saved *saved)
{
    struct cli_json json = {.to = stdout};

    cli_json_open(&json, NULL, '{');
    cli_json_findings(&json, report->findings);
    cli_json_count(&json, "values", report->value_count);
    cli_json_count(&json, "declared", report->declared_count);
    cli_json_count(&json, "typed", report->typed_count);
    cli_json_count(&json, "complete", report->complete_count);
    cli_json_count(&json, "dimensions", report->dim_count);
    cli_json_count(&json, "numbers", report->number_count);
    cli_json_count(&json, "symbolic", report->symbolic_count);
    cli_json_count(&json, "unknown", report->unknown_count);
    cli_json_open(&json, "types", '[');
    for (size_t i = 0; i < report->listed_count; i++) {
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "place", report->values[i]->place);
        cli_json_text(&json, "name", report->values[i]->name);
        cli_json_text(&json, "type", report->values[i]->type);
        cli_json_count(&json, "unknown", report->values[i]->unknown);
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_saved_json(&json, saved);
    cli_json_close(&json, '}');
}

static int infer(struct cameo_model *model)
{
    struct cameo_infer_options options = CAMEO_INFER_OPTIONS_INIT;
    const struct cameo_inference *report;
    struct cameo_error err;

    options.strict = strict;
    options.list_values = !out_path;
    options.partial = partial;
    options.open_inputs = open_inputs;
    const enum cameo_status status = cameo_model_infer(model, &options, &report, &err);
    const size_t problems = report ? cameo_findings_violations(report->findings) : 0;
    if (!report || (status != CAMEO_OK && !problems))
        return cli_fail(&err);
    if (!cli_as_json) {
        put_findings(report->findings, CAMEO_VIOLATION, stdout, partial ? "problem: " : "");
        put_findings(report->findings, CAMEO_WARNING, stderr, "left open: ");
        put_values(report);
        if (status == CAMEO_OK)
            put_counts(report);
        if (status == CAMEO_OK && problems)
            printf("%zu problem%s: %s keep the type that the file declares\n", problems,
                   problems == 1 ? "" : "s", "values that depend on them are left open, or");
    }
    struct cli_saved saved = {0};
    int code = cli_flush(stdout, "standard output");
    if (code == CLI_YES && status == CAMEO_OK && out_path)
        code = cli_save_files(model, out_path, &saved);
    if (code == CLI_YES && cli_as_json) {
        put_json(report, &saved);
        code = cli_flush(stdout, "standard output");
    }
    cli_saved_free(&saved);
    return code == CLI_YES && status != CAMEO_OK ? CLI_NO : code;
}

static int infer_main(char **operands, int count)
{
    struct cameo_model *model;
    struct cameo_error err;

    (void)count;
    if (constant_inputs && open_inputs) {
        cli_complain("infer: --constant-inputs and --open-inputs contradict each other");
        return CLI_USAGE;
    }
    const int may = out_path ? cli_may_save("infer: -o", out_path) : CLI_YES;
    if (may != CLI_YES)
        return may;
    if (cli_load_model(operands[0], NULL, &model, &err) != CAMEO_OK)
        return cli_fail(&err);
    const int code = infer(model);
    cameo_model_free(model);
    return code;
}

static const struct cli_option options[] = {
    {"--output", "-o", "FILE", "write the model with all types in it", CLI_TEXT, &out_path},
    {"--strict", NULL, NULL, "an operator that is not supported is a problem too", CLI_FLAG,
     &strict},
    {"--partial", NULL, NULL, "list ill-typed nodes, and write what could be inferred", CLI_FLAG,
     &partial},
    {"--constant-inputs", NULL, NULL, "inputs with an initializer have its value (the default)",
     CLI_FLAG, &constant_inputs},
    {"--open-inputs", NULL, NULL, "they may have another, unless the IR version is below 4",
     CLI_FLAG, &open_inputs},
    {"--json", NULL, NULL, "for programs", CLI_FLAG, &cli_as_json},
    CLI_SARIF_OPTION,
    {0},
};

CLI_COMMAND(infer, infer_main, "MODEL [-o FILE]", "find the types and shapes of all values",
            "Prints the type and shape of every value, or writes them into the model's\n"
            "value_info: of its graph, bodies of control flow, functions and training info.\n"
            "Dimensions are numbers, names of the model or expressions of these, such as\n"
            "2*N or floor((H + 1)/2). Where the model contradicts itself, every\n"
            "contradiction is printed and nothing is written, unless --partial is given.\n"
            "Weights are not read.",
            "cameo infer net.onnx                 # prints types\n"
            "cameo infer net.onnx -o typed.onnx   # writes them into the model\n"
            "cameo infer net.onnx --json          # for a script",
            "0 if the types were found, or --partial was given; 1 if the model contradicts itself",
            options, 1, 1);
