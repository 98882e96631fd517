/* Saying all that keeps a model from running, and what of it is newer than we are. */
// SPDX-License-Identifier: Apache-2.0
#include "cli.h"

#include <string.h>

static void put_finding(const struct cameo_finding *finding)
{
    fputs("cameo: ", stderr);
    if (finding->place.size) {
        cli_put_text(stderr, finding->place.data, finding->place.size);
        fputs(": ", stderr);
    }
    cli_put_text(stderr, finding->reason.data, finding->reason.size);
    fputc('\n', stderr);
}

/* The message up to where it begins to list, then the list itself, a line each. */
static void put_findings(const struct cameo_findings *findings, const char *cannot,
                         const struct cameo_error *err)
{
    const size_t total = cameo_findings_violations(findings);
    const struct cameo_finding *finding;
    const char *begins = strstr(err->message, " reasons:"), *counts = err->message;

    for (const char *at; begins && (at = strstr(counts, ", for ")) && at < begins; counts = at + 1)
        ;
    if (begins && counts > err->message) /* with the name of the file; it may have met fewer */
        cli_complain("%.*s, for %zu reasons:", (int)(counts - 1 - err->message), err->message,
                     total);
    else
        cli_complain("the model cannot %s, for %zu reasons:", cannot, total);
    for (size_t i = 0; i < CLI_LINES_MAX && (finding = cameo_findings_at(findings, i)) != NULL; i++)
        put_finding(finding);
    if (total > CLI_LINES_MAX)
        cli_complain("and %zu more", total - CLI_LINES_MAX);
}

/* Takes the findings; fewer than two: the message says it all. */
static int fail_with(struct cameo_findings *findings, const char *cannot,
                     const struct cameo_error *err)
{
    const bool many = findings && cameo_findings_count(findings) > 1;

    if (many)
        put_findings(findings, cannot, err);
    cameo_findings_free(findings);
    return many ? cli_exit_code(err->status) : cli_fail(err);
}

static bool is_of_the_model(const struct cameo_error *err)
{
    return err->status == CAMEO_BAD_MODEL || err->status == CAMEO_UNSUPPORTED;
}

int cli_fail_model(const struct cameo_model *model, const struct cameo_session_options *options,
                   const struct cameo_error *err)
{
    struct cameo_findings *findings = NULL;

    if (is_of_the_model(err) && cameo_model_blockers(model, options, &findings, NULL) != CAMEO_OK)
        findings = NULL;
    return fail_with(findings, "run", err);
}

int cli_fail_training(struct cameo_model *model, const struct cameo_trainer_options *options,
                      const struct cameo_error *err)
{
    struct cameo_findings *findings = NULL;

    if (is_of_the_model(err) &&
        cameo_model_training_blockers(model, options, &findings, NULL) != CAMEO_OK)
        findings = NULL;
    return fail_with(findings, "be trained", err);
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
