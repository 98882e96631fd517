/* cameo check: what is wrong with models. */
// SPDX-License-Identifier: Apache-2.0
#include "cli.h"

#include <limits.h>
#include <string.h>

static bool strict, as_json, allow_links;

struct totals {
    size_t violations, warnings;
    size_t unread; /* models that could not be checked */
    bool cut;
};

static void show_finding(const char *path, const struct cameo_finding *finding)
{
    cli_put_text(stdout, path, strlen(path));
    fputs(": ", stdout);
    cli_put_text(stdout, finding->rule.data, finding->rule.size);
    fputs(finding->severity == CAMEO_WARNING ? ": warning: " : ": ", stdout);
    if (finding->place.size) {
        cli_put_text(stdout, finding->place.data, finding->place.size);
        fputs(": ", stdout);
    }
    cli_put_text(stdout, finding->reason.data, finding->reason.size);
    putchar('\n');
}

static void json_finding(struct cli_json *json, const struct cameo_finding *finding)
{
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "rule", finding->rule);
    cli_json_string(json, "severity", finding->severity == CAMEO_WARNING ? "warning" : "violation");
    cli_json_text(json, "place", finding->place);
    cli_json_text(json, "reason", finding->reason);
    cli_json_close(json, '}');
}

/* The findings about one file; NULL with a sentence in err when it could not be checked. */
static struct cameo_findings *check_file(const char *path, struct cameo_error *err)
{
    struct cameo_load_options load = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_check_options options = CAMEO_CHECK_OPTIONS_INIT;
    struct cameo_findings *findings = NULL;
    struct cameo_model *model;

    load.allow_links = allow_links;
    options.strict = strict;
    if (cli_load_model(path, &load, &model, err) != CAMEO_OK)
        return NULL;
    if (cameo_model_check(model, &options, &findings, err) != CAMEO_OK)
        findings = NULL;
    cameo_model_free(model);
    return findings;
}

static void tell_file(const char *path, const struct cameo_findings *findings,
                      const struct cameo_error *err, struct cli_json *json)
{
    const struct cameo_finding *finding;

    if (!as_json) {
        for (size_t i = 0; findings && (finding = cameo_findings_at(findings, i)) != NULL; i++)
            show_finding(path, finding);
        return;
    }
    cli_json_open(json, NULL, '{');
    cli_json_string(json, "model", path);
    if (!findings) {
        cli_json_string(json, "error", err->message);
    } else {
        const size_t violations = cameo_findings_violations(findings);

        cli_json_count(json, "violations", violations);
        cli_json_count(json, "warnings", cameo_findings_count(findings) - violations);
        cli_json_bool(json, "cut", cameo_findings_cut(findings));
        cli_json_open(json, "findings", '[');
        for (size_t i = 0; (finding = cameo_findings_at(findings, i)) != NULL; i++)
            json_finding(json, finding);
        cli_json_close(json, ']');
    }
    cli_json_close(json, '}');
}

static int check_one(const char *path, struct totals *totals, struct cli_json *json)
{
    struct cameo_error err;
    struct cameo_findings *findings = check_file(path, &err);
    int code;

    tell_file(path, findings, &err, json);
    if (!findings) {
        totals->unread++;
        return cli_fail(&err);
    }
    totals->violations += cameo_findings_violations(findings);
    totals->warnings += cameo_findings_count(findings) - cameo_findings_violations(findings);
    totals->cut = totals->cut || cameo_findings_cut(findings);
    code = cameo_findings_violations(findings) ? CLI_NO : CLI_YES;
    cameo_findings_free(findings);
    return code;
}

static void show_totals(const struct totals *totals)
{
    printf("%s%zu violation%s, %zu warning%s", totals->cut ? "at least " : "", totals->violations,
           totals->violations == 1 ? "" : "s", totals->warnings, totals->warnings == 1 ? "" : "s");
    if (totals->unread)
        printf(", %zu model%s not checked", totals->unread, totals->unread == 1 ? "" : "s");
    putchar('\n');
}

static int check_main(char **operands, int count)
{
    struct totals totals = {0};
    struct cli_json json = {.to = stdout};
    int worst = CLI_YES;

    if (as_json)
        cli_json_open(&json, NULL, '[');
    for (int i = 0; i < count; i++) {
        const int code = check_one(operands[i], &totals, &json);

        worst = code > worst ? code : worst;
    }
    if (as_json)
        cli_json_close(&json, ']');
    else
        show_totals(&totals);
    return worst;
}

static const struct cli_option options[] = {
    {"--strict", NULL, NULL, "what is usually a warning is a violation", CLI_FLAG, &strict},
    {"--json", NULL, NULL, "print the findings as JSON", CLI_FLAG, &as_json},
    {"--allow-links", NULL, NULL, "external data may be behind links", CLI_FLAG, &allow_links},
    {0},
};

CLI_COMMAND(check, check_main, "[--strict] [--json] MODEL...", "say whether models are legal ONNX",
            "Lists everything wrong with each model, training info included, one finding a line:\n"
            "the rule, the place and the reason. The last line counts them.",
            "cameo check net.onnx # everything wrong with it\n"
            "cameo check --strict *.onnx # warnings count as violations",
            "0 if all models are legal, 1 if one has a violation or is not an ONNX model", options,
            1, INT_MAX);
