/* cameo gradcheck: analytic gradients against numeric ones. */
// SPDX-License-Identifier: Apache-2.0
#include "values.h"

#include <stdlib.h>

static struct cli_texts input_texts;
static size_t seed, samples = 20;
static const char *tolerance_text;
static double tolerance = 1e-4;
static struct cli_make make;

struct report {
    struct cli_json json;
    size_t good, bad, kinks;
};

static void put_row(void *arg, const struct cameo_gradcheck *row)
{
    struct report *report = arg;
    const bool good = row->worst <= tolerance;

    *(good ? &report->good : &report->bad) += 1;
    report->kinks += row->kinks;
    if (cli_as_json) {
        cli_json_open(&report->json, NULL, '{');
        cli_json_text(&report->json, "name", row->name);
        cli_json_bool(&report->json, "good", good);
        cli_json_bool(&report->json, "reached", row->reached);
        cli_json_int(&report->json, "elements", row->elements);
        cli_json_count(&report->json, "checked", row->checked);
        cli_json_real(&report->json, "worst", row->worst);
        cli_json_int(&report->json, "at", row->at);
        cli_json_real(&report->json, "analytic", row->analytic);
        cli_json_real(&report->json, "numeric", row->numeric);
        cli_json_real(&report->json, "below", row->below);
        cli_json_real(&report->json, "above", row->above);
        cli_json_count(&report->json, "kinks", row->kinks);
        cli_json_close(&report->json, '}');
        return;
    }
    fputs(good ? "good  " : "BAD   ", stdout);
    cli_put_padded(stdout, row->name, 24);
    if (!row->reached && good)
        fputs("  nothing depends on it", stdout);
    else if (row->kinks == row->checked)
        fputs("  every element that was looked at is at a kink", stdout);
    else
        printf("  differs by %.1e at %lld: %.9g, differences say %.9g", row->worst,
               (long long)row->at, row->analytic, row->numeric);
    if (!good)
        printf(" (from below %.9g, from above %.9g)", row->below, row->above);
    printf("  (%zu of %lld elements", row->checked, (long long)row->elements);
    if (row->kinks)
        printf(", %zu at a kink", row->kinks);
    fputs(")\n", stdout);
}

static int check(const struct cameo_model *model, const struct cli_inputs *inputs)
{
    struct cameo_gradcheck_options options = CAMEO_GRADCHECK_OPTIONS_INIT;
    struct report report = {.json = {.to = stdout}};
    struct cameo_error err;

    options.seed = seed;
    options.samples = samples;
    if (cli_as_json)
        cli_json_open(&report.json, NULL, '[');
    const enum cameo_status status = cameo_model_gradcheck(model, &options, inputs->feeds,
                                                           inputs->count, put_row, &report, &err);
    if (cli_as_json)
        cli_json_close(&report.json, ']');
    if (status != CAMEO_OK)
        return cli_fail(&err);
    fprintf(stderr, "%zu of %zu tensors agree", report.good, report.good + report.bad);
    if (report.kinks)
        fprintf(stderr, "; %zu element%s at a kink, or too near one for differences to tell",
                report.kinks, report.kinks == 1 ? " is" : "s are");
    fputc('\n', stderr);
    const int code = cli_flush(stdout, "standard output");
    return code == CLI_YES && report.bad ? CLI_NO : code;
}

static int feed_and_check(const struct cameo_model *model)
{
    struct cameo_make_options options = CAMEO_MAKE_OPTIONS_INIT;
    struct cameo_session *session;
    struct cli_inputs inputs;
    struct cameo_error err;

    /* The session is there to say what the inputs are. */
    if (cameo_session_new(model, NULL, &session, &err) != CAMEO_OK)
        return cli_fail_model(model, &err);
    int code = CLI_YES;
    cli_inputs_begin(&inputs, "gradcheck", session);
    for (size_t i = 0; i < input_texts.count && code == CLI_YES; i++)
        code = cli_inputs_add(&inputs, input_texts.items[i]);
    options.seed = seed;
    options.batch = 2;
    options.memory_limit = cli_memory_limit(0);
    options.both_signs = true; /* and away from 0, where many functions have kinks */
    if (code == CLI_YES)
        code = cli_inputs_make(&inputs, &make, &options);
    if (code == CLI_YES)
        code = check(model, &inputs);
    if (code == CLI_YES || code == CLI_NO)
        cli_inputs_note_sizes(&inputs);
    cli_inputs_end(&inputs);
    cameo_session_free(session);
    return code;
}

static int gradcheck_main(char **operands, int count)
{
    struct cameo_model *model;
    struct cameo_error err;
    char *end;

    (void)count;
    if (tolerance_text) {
        tolerance = strtod(tolerance_text, &end);
        if (end == tolerance_text || *end || !(tolerance >= 0)) {
            cli_complain("gradcheck: --tolerance needs a number, not '%s'", tolerance_text);
            return CLI_USAGE;
        }
    }
    if (cli_load_model(operands[0], NULL, &model, &err) != CAMEO_OK)
        return cli_fail(&err);
    cli_note_newer(model);
    const int code = feed_and_check(model);
    cameo_model_free(model);
    return code;
}

static const struct cli_option options[] = {
    {"--input", "-i", "NAME=FILE", "the value of an input; others are made up", CLI_TEXTS,
     &input_texts},
    CLI_MAKE_OPTIONS(make),
    {"--samples", NULL, "N", "elements looked at per tensor (20)", CLI_SIZE, &samples},
    {"--tolerance", NULL, "X", "how much may differ, as a part of the gradient (1e-4)", CLI_TEXT,
     &tolerance_text},
    {"--seed", NULL, "N", "seed of inputs that are made up", CLI_SIZE, &seed},
    {"--json", NULL, NULL, "print JSON", CLI_FLAG, &cli_as_json},
    CLI_SARIF_OPTION,
    {0},
};

CLI_COMMAND(gradcheck, gradcheck_main, "MODEL [--input NAME=FILE]...",
            "compare gradients with differences",
            "Computes the gradients of the outputs by every weight and input in double precision,\n"
            "and again from differences of the outputs. Where the model has a kink (Relu at 0,\n"
            "the maximum of equals) the differences to the two sides disagree, and a gradient\n"
            "between them is right; where kinks are too near, differences do not settle as they\n"
            "narrow. Such elements are counted apart.",
            "cameo gradcheck net.onnx # inputs are made up\n"
            "cameo gradcheck net.onnx --input x=x.npy --samples 100",
            "0 if all agree, 1 if one does not", options, 1, 1);
