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

int cli_fail_model(const struct cameo_model *model, const struct cameo_session_options *options,
                   const struct cameo_error *err)
{
    static const char reasons[] = " reasons:";
    struct cameo_findings *findings = NULL;
    const struct cameo_finding *finding;

    if ((err->status != CAMEO_BAD_MODEL && err->status != CAMEO_UNSUPPORTED) ||
        cameo_model_blockers(model, options, &findings, NULL) != CAMEO_OK ||
        cameo_findings_count(findings) < 2) {
        cameo_findings_free(findings); /* the message says it all */
        return cli_fail(err);
    }
    const size_t total = cameo_findings_violations(findings);
    const char *begins = strstr(err->message, reasons);
    if (begins) /* with the name of the file */
        cli_complain("%.*s", (int)(begins - err->message + (long)strlen(reasons)), err->message);
    else
        cli_complain("the model cannot run, for %zu reasons:", total);
    for (size_t i = 0; i < CLI_LINES_MAX && (finding = cameo_findings_at(findings, i)) != NULL; i++)
        put_finding(finding);
    if (total > CLI_LINES_MAX)
        cli_complain("and %zu more", total - CLI_LINES_MAX);
    cameo_findings_free(findings);
    return cli_exit_code(err->status);
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
}
