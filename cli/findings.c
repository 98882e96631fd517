/* Findings as text and as JSON, and failing with them; and what of a model is newer than we are. */
// SPDX-License-Identifier: Apache-2.0
#include "cli.h"

#include <string.h>

bool cli_as_json;
struct cameo_findings *cli_found;

/* ---- as text ---- */

/* The next violation from *index on, which becomes the index after it; NULL: the end. */
static const struct cameo_finding *next_violation(const struct cameo_findings *findings,
                                                  size_t *index)
{
    const struct cameo_finding *finding;

    while ((finding = cameo_findings_at(findings, *index)) != NULL) {
        ++*index;
        if (finding->severity == CAMEO_VIOLATION)
            break;
    }
    return finding;
}

/* What to do is said once below neighbours that need the same. */
static void put_lines(const struct cameo_findings *findings)
{
    const size_t total = cameo_findings_violations(findings);
    const struct cameo_finding *finding, *next;
    size_t shown = 0, i = 0;

    for (next = next_violation(findings, &i); shown < CLI_LINES_MAX && next; shown++) {
        finding = next;
        next = next_violation(findings, &i);
        fputs("  ", stderr);
        cli_put_finding(stderr, finding);
        if (!next || strcmp(next->help.data, finding->help.data) != 0)
            cli_put_help(stderr, finding);
    }
    if (total > shown)
        fprintf(stderr, "  and %zu more\n", total - shown);
}

void cli_put_help(FILE *to, const struct cameo_finding *finding)
{
    if (!finding->help.size)
        return;
    fputs("    help: ", to);
    cli_put_line(to, finding->help);
}

void cli_put_finding(FILE *to, const struct cameo_finding *finding)
{
    if (finding->place.size) {
        cli_put_text(to, finding->place.data, finding->place.size);
        fputs(": ", to);
    }
    cli_put_line(to, finding->reason);
}

/* ---- as JSON ---- */

static const char *severity_name(enum cameo_severity severity)
{
    return severity == CAMEO_WARNING ? "warning" : severity == CAMEO_NOTE ? "note" : "violation";
}

void cli_json_finding(struct cli_json *json, const struct cameo_finding *finding)
{
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "rule", finding->rule);
    cli_json_string(json, "severity", severity_name(finding->severity));
    cli_json_text(json, "place", finding->place);
    if (finding->op_type.size) {
        cli_json_text(json, "node", finding->node);
        cli_json_text(json, "operator", finding->op_type);
    }
    if (finding->value.size)
        cli_json_text(json, "value", finding->value);
    cli_json_text(json, "reason", finding->reason);
    cli_json_text(json, "help", finding->help);
    cli_json_close(json, '}');
}

void cli_json_findings(struct cli_json *json, const struct cameo_findings *findings)
{
    const struct cameo_finding *finding;

    cli_json_count(json, "violations", cameo_findings_violations(findings));
    cli_json_count(json, "warnings", cameo_findings_warnings(findings));
    cli_json_bool(json, "cut", cameo_findings_cut(findings));
    cli_json_open(json, "findings", '[');
    for (size_t i = 0; (finding = cameo_findings_at(findings, i)) != NULL; i++)
        cli_json_finding(json, finding);
    cli_json_close(json, ']');
}

/* Of a failure that has no list: its message. */
static struct cameo_finding finding_of(const struct cameo_error *err)
{
    const struct cameo_text none = {"", 0};

    return (struct cameo_finding){.rule = {"call", 4},
                                  .severity = CAMEO_VIOLATION,
                                  .place = none,
                                  .reason = {err->message, strlen(err->message)},
                                  .help = none};
}

static void json_message(struct cli_json *json, const struct cameo_finding *finding)
{
    cli_json_count(json, "violations", 1);
    cli_json_count(json, "warnings", 0);
    cli_json_bool(json, "cut", false);
    cli_json_open(json, "findings", '[');
    cli_json_finding(json, finding);
    cli_json_close(json, ']');
}

/* ---- failing ---- */

int cli_refuse(const struct cameo_findings *findings, const struct cameo_error *err)
{
    const size_t violations = findings ? cameo_findings_violations(findings) : 0;
    const struct cameo_finding alone = finding_of(err), *finding;
    struct cli_json json = {.to = stdout, .flat = true};

    cli_sarif_failed();
    for (size_t i = 0; violations && (finding = cameo_findings_at(findings, i)) != NULL; i++)
        cli_sarif_add(finding);
    if (!violations)
        cli_sarif_add(&alone);

    if (cli_as_json) {
        cli_json_open(&json, NULL, '{');
        if (violations)
            cli_json_findings(&json, findings);
        else
            json_message(&json, &alone);
        cli_json_close(&json, '}');
    }
    if (violations < 2) {
        const int code = cli_fail(err);
        size_t first = 0;

        if (violations)
            cli_put_help(stderr, next_violation(findings, &first));
        return code;
    }
    const struct cameo_text headline = cameo_findings_headline(findings);
    fputs("cameo: ", stderr);
    cli_put_text(stderr, headline.data, headline.size);
    fputs(":\n", stderr);
    put_lines(findings);
    return cli_exit_code(err->status);
}

int cli_fail_found(const struct cameo_error *err)
{
    const int code = cli_refuse(cli_found, err);

    cameo_findings_free(cli_found);
    cli_found = NULL;
    return code;
}

int cli_fail_model(const struct cameo_model *model, const struct cameo_error *err)
{
    const bool about = err->status == CAMEO_BAD_MODEL || err->status == CAMEO_UNSUPPORTED;

    if (about && cameo_model_blockers(model, NULL, &cli_found, NULL) != CAMEO_OK)
        cli_found = NULL;
    return cli_fail_found(err);
}

void cli_note_newer(const struct cameo_model *model)
{
    for (size_t i = 0; i < cameo_model_summary(model)->opset_count; i++) {
        const struct cameo_opset *opset = cameo_model_opset(model, i);
        const long long newest = (long long)cameo_newest_opset(opset->domain.data);

        if (newest > 0 && opset->version > newest)
            cli_complain("note: opset %lld%s%s is newer than %lld, the newest known; operators are "
                         "read as of %lld",
                         (long long)opset->version, opset->domain.size ? " of " : "",
                         opset->domain.data, newest, newest);
    }
    for (size_t i = 0; cameo_model_note(model, i); i++)
        cli_complain("note: %s", cameo_model_note(model, i)->data);
}
