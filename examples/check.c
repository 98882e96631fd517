/* Says what is wrong with a model: check MODEL */
// SPDX-License-Identifier: Apache-2.0
#include <cameo.h>

#include <stdio.h>

static void print_findings(const struct cameo_findings *findings)
{
    for (size_t i = 0; i < cameo_findings_count(findings); i++) {
        const struct cameo_finding *finding = cameo_findings_at(findings, i);

        printf("%s %s: %s: %s\n", finding->severity == CAMEO_VIOLATION ? "violation" : "warning",
               finding->rule.data, finding->place.data, finding->reason.data);
    }
    if (cameo_findings_cut(findings))
        printf("and more\n");
}

int main(int argc, char **argv)
{
    struct cameo_check_options options = CAMEO_CHECK_OPTIONS_INIT;
    struct cameo_findings *findings;
    struct cameo_model *model;
    struct cameo_error err;

    if (argc != 2) {
        fprintf(stderr, "usage: check MODEL\n");
        return 2;
    }
    if (cameo_model_load(argv[1], NULL, &model, &err) != CAMEO_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    options.strict = true;
    const enum cameo_status status = cameo_model_check(model, &options, &findings, &err);
    cameo_model_free(model); /* the findings live on their own */
    if (status != CAMEO_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    print_findings(findings);
    const int code = cameo_findings_violations(findings) > 0;
    if (code == 0)
        printf("legal ONNX\n");
    cameo_findings_free(findings);
    return code;
}
