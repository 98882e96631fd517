/* cameo check: what is wrong with models. */
// SPDX-License-Identifier: Apache-2.0
#include "cli.h"

#include <limits.h>
#include <string.h>

static bool strict, structure, can_run, allow_links;
static const char *tool;

/* One model that was checked. */
struct check_report {
    const char *path;
    struct cameo_findings *findings; /* NULL: it could not be checked, and err says why */
    struct cameo_error err;
    struct cameo_findings *run, *train; /* what keeps it from running here; NULL: not asked */
    bool trains;                        /* it has training info */
    char producer[128];                 /* who wrote the file, as the file says; "": it does not */
};

struct totals {
    size_t violations, warnings, notes, blockers;
    size_t unread; /* models that could not be checked */
    bool cut;
};

/* ---- checking ---- */

/* What keeps the model from running and, where it has training info, from being trained. */
static enum cameo_status find_blockers(struct cameo_model *model, struct check_report *report)
{
    enum cameo_status status = cameo_model_blockers(model, NULL, &report->run, &report->err);

    report->trains = cameo_model_summary(model)->training_count > 0;
    if (status == CAMEO_OK && report->trains)
        status = cameo_model_training_blockers(model, NULL, &report->train, &report->err);
    return status;
}

static void name_producer(const struct cameo_model *model, struct check_report *report)
{
    const struct cameo_summary *s = cameo_model_summary(model);
    const size_t most = 60;
    const size_t name = s->producer_name.size < most ? s->producer_name.size : most;
    const size_t version = s->producer_version.size < most ? s->producer_version.size : most;

    snprintf(report->producer, sizeof report->producer, "%.*s%s%.*s", (int)name,
             name ? s->producer_name.data : "", name && version ? " " : "", (int)version,
             version ? s->producer_version.data : "");
}

static void check_file(struct check_report *report)
{
    struct cameo_load_options load = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_check_options options = CAMEO_CHECK_OPTIONS_INIT;
    struct cameo_model *model;

    load.allow_links = allow_links;
    options.strict = strict;
    options.structure_only = structure;
    options.tool = tool;
    if (cli_load_model(report->path, &load, &model, &report->err) != CAMEO_OK)
        return;
    name_producer(model, report);
    if (cameo_model_check(model, &options, &report->findings, &report->err) != CAMEO_OK)
        report->findings = NULL;
    if (report->findings && can_run && find_blockers(model, report) != CAMEO_OK) {
        cameo_findings_free(report->findings);
        report->findings = NULL;
    }
    cameo_model_free(model);
}

static bool same_text(struct cameo_text a, struct cameo_text b)
{
    return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

/* A run or a training refuses what breaks a rule of ONNX. Where the check has found violations of
 * that rule, it has listed all of them. */
static bool is_found(const struct check_report *report, const struct cameo_finding *blocker)
{
    const struct cameo_finding *finding;

    for (size_t i = 0;
         report->findings && (finding = cameo_findings_at(report->findings, i)) != NULL; i++)
        if (finding->severity == CAMEO_VIOLATION && same_text(finding->rule, blocker->rule))
            return true;
    return false;
}

/* Number i of the blockers of a run or a training that the findings do not name already; NULL past
 * the end. */
static const struct cameo_finding *check_blocker(const struct check_report *report,
                                                 const struct cameo_findings *blockers, size_t *i)
{
    const struct cameo_finding *blocker = NULL;

    while (blockers && (blocker = cameo_findings_at(blockers, *i)) != NULL &&
           is_found(report, blocker))
        ++*i;
    return blocker;
}

static size_t check_blocker_count(const struct check_report *report)
{
    size_t count = 0;

    for (size_t i = 0; check_blocker(report, report->run, &i); i++)
        count++;
    for (size_t i = 0; check_blocker(report, report->train, &i); i++)
        count++;
    return count;
}

/* ---- telling people ---- */

/* What to do about a rule is said once. */
static bool is_first(struct cameo_text rule)
{
    static bool told[256];

    for (size_t i = 0; i < cameo_check_rule_count() && i < sizeof told; i++) {
        if (!same_text(cameo_check_rule_at(i)->id, rule))
            continue;
        const bool first = !told[i];

        told[i] = true;
        return first;
    }
    return false;
}

static void show_finding(const char *path, const struct cameo_finding *finding, const char *rule)
{
    cli_put_text(stdout, path, strlen(path));
    fputs(": ", stdout);
    fputs(rule, stdout);
    fputs(finding->severity == CAMEO_WARNING ? ": warning: "
          : finding->severity == CAMEO_NOTE  ? ": note: "
                                             : ": ",
          stdout);
    cli_put_finding(stdout, finding);
    if (finding->help.size && is_first(finding->rule))
        cli_put_help(stdout, finding);
}

static void show_blockers(const struct check_report *report, const struct cameo_findings *blockers,
                          const char *rule)
{
    const struct cameo_finding *finding;

    for (size_t i = 0; (finding = check_blocker(report, blockers, &i)) != NULL; i++)
        show_finding(report->path, finding, rule);
}

static void show_report(const struct check_report *report)
{
    const struct cameo_finding *finding;

    for (size_t i = 0; (finding = cameo_findings_at(report->findings, i)) != NULL; i++)
        show_finding(report->path, finding, finding->rule.data);
    if (report->producer[0] && cameo_findings_count(report->findings)) {
        cli_put_text(stdout, report->path, strlen(report->path));
        fputs(": the file was written by ", stdout);
        cli_put_text(stdout, report->producer, strlen(report->producer));
        putchar('\n');
    }
    show_blockers(report, report->run, "run");
    show_blockers(report, report->train, "train");
}

static void show_totals(const struct totals *totals)
{
    printf("%s%zu violation%s, %zu warning%s", totals->cut ? "at least " : "", totals->violations,
           totals->violations == 1 ? "" : "s", totals->warnings, totals->warnings == 1 ? "" : "s");
    if (tool)
        printf(", %zu note%s", totals->notes, totals->notes == 1 ? "" : "s");
    if (can_run)
        printf(", %zu blocker%s", totals->blockers, totals->blockers == 1 ? "" : "s");
    if (totals->unread)
        printf(", %zu model%s not checked", totals->unread, totals->unread == 1 ? "" : "s");
    putchar('\n');
}

/* ---- telling programs ---- */

static void json_blockers(struct cli_json *json, const char *key, const struct check_report *report,
                          const struct cameo_findings *blockers)
{
    const struct cameo_finding *finding;

    cli_json_open(json, key, '[');
    for (size_t i = 0; (finding = check_blocker(report, blockers, &i)) != NULL; i++)
        cli_json_finding(json, finding);
    cli_json_close(json, ']');
}

static void json_report(struct cli_json *json, const struct check_report *report)
{
    cli_json_open(json, NULL, '{');
    cli_json_string(json, "model", report->path);
    if (report->producer[0])
        cli_json_string(json, "producer", report->producer);
    if (!report->findings) {
        cli_json_string(json, "error", report->err.message);
        cli_json_close(json, '}');
        return;
    }
    cli_json_findings(json, report->findings);
    if (can_run)
        json_blockers(json, "run_blockers", report, report->run);
    if (can_run && report->trains)
        json_blockers(json, "train_blockers", report, report->train);
    cli_json_close(json, '}');
}

/* ---- the command ---- */

static size_t count_notes(const struct cameo_findings *findings)
{
    const struct cameo_finding *finding;
    size_t count = 0;

    for (size_t i = 0; (finding = cameo_findings_at(findings, i)) != NULL; i++)
        count += finding->severity == CAMEO_NOTE;
    return count;
}

static int add_to_totals(const struct check_report *report, struct totals *totals)
{
    if (!report->findings) {
        totals->unread++;
        return cli_fail(&report->err);
    }
    const size_t violations = cameo_findings_violations(report->findings);
    const size_t blockers = can_run ? check_blocker_count(report) : 0;

    totals->violations += violations;
    totals->warnings += cameo_findings_warnings(report->findings);
    totals->notes += count_notes(report->findings);
    totals->blockers += blockers;
    totals->cut = totals->cut || cameo_findings_cut(report->findings);
    return violations || blockers ? CLI_NO : CLI_YES;
}

static void log_report(const struct check_report *report)
{
    const struct cameo_finding *finding;

    for (size_t i = 0;
         report->findings && (finding = cameo_findings_at(report->findings, i)) != NULL; i++)
        cli_sarif_add(finding);
    for (size_t i = 0; (finding = check_blocker(report, report->run, &i)) != NULL; i++)
        cli_sarif_add(finding);
    for (size_t i = 0; (finding = check_blocker(report, report->train, &i)) != NULL; i++)
        cli_sarif_add(finding);
}

static int check_one(const char *path, struct totals *totals, struct cli_json *json)
{
    struct check_report report = {.path = path};

    check_file(&report);
    if (cli_as_json)
        json_report(json, &report);
    else if (report.findings)
        show_report(&report);
    log_report(&report);
    const int code = add_to_totals(&report, totals);
    cameo_findings_free(report.findings);
    cameo_findings_free(report.run);
    cameo_findings_free(report.train);
    return code;
}

static int check_main(char **operands, int count)
{
    struct totals totals = {0};
    struct cli_json json = {.to = stdout};
    int worst = CLI_YES;

    if (cli_as_json)
        cli_json_open(&json, NULL, '[');
    for (int i = 0; i < count; i++) {
        const int code = check_one(operands[i], &totals, &json);

        worst = code > worst ? code : worst;
    }
    if (cli_as_json)
        cli_json_close(&json, ']');
    else
        show_totals(&totals);
    return worst;
}

static const struct cli_option options[] = {
    {"--strict", NULL, NULL, "what is usually a warning is a violation", CLI_FLAG, &strict},
    {"--structure", NULL, NULL, "structure and names only: types and shapes are not inferred",
     CLI_FLAG, &structure},
    {"--can-run", NULL, NULL, "also list what cannot run here, or train if it has training info",
     CLI_FLAG, &can_run},
    {"--tool", NULL, "ort", "what ONNX forbids and ONNX Runtime accepts is a note", CLI_TEXT,
     &tool},
    {"--json", NULL, NULL, "print the findings as JSON", CLI_FLAG, &cli_as_json},
    CLI_SARIF_OPTION,
    {"--allow-links", NULL, NULL, "external data may be behind links", CLI_FLAG, &allow_links},
    {0},
};

CLI_COMMAND(
    check, check_main, "[--strict] [--tool ort] [--can-run] [--json] [--sarif FILE] MODEL...",
    "say whether models are legal ONNX",
    "Lists everything wrong with each model, one finding a line: the rule, the place and the\n"
    "reason; below the first of each rule, what to do. Types and shapes are inferred, in\n"
    "sub-graphs, functions and training info too; weights are not read. The last line counts.\n"
    "docs/check-rules.md shows each rule broken and mended.",
    "cameo check net.onnx # everything wrong with it\n"
    "cameo check --strict *.onnx # warnings count as violations\n"
    "cameo check --tool ort net.onnx # legal as far as ONNX Runtime cares\n"
    "cameo check --can-run net.onnx # also what is missing here to run or train it\n"
    "cameo check --sarif findings.sarif *.onnx # for a CI service",
    "0 if all models are legal (and can run), 1 if one is not, or is not an ONNX model", options, 1,
    INT_MAX);
