/* cameo compare: what two models differ in. */
// SPDX-License-Identifier: Apache-2.0
#include "compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct cli_texts input_texts, only;
static struct cli_make make;
static const char *expected, *relative_text, *absolute_text;
static size_t seed;
static bool as_json;

static const char *const part_names[COMPARE_PARTS] = {"structure", "weights", "results"};
static const char *const part_units[COMPARE_PARTS] = {"node", "tensor", "value"};
static const char *const kind_names[] = {"added", "removed", "changed", "value", "first", "note"};

/* ---- telling ---- */

/* Of the norm of what is expected; of a reference of zeros, the norm itself. */
static double relative_norm(const struct cameo_difference *d)
{
    return d->reference_norm > 0 ? d->norm / d->reference_norm : d->norm;
}

static bool part_differs(const struct cameo_comparison *c, int part)
{
    const struct cameo_compare_row *row;

    for (size_t i = 0; (row = cameo_comparison_row(c, i)) != NULL; i++)
        if ((int)row->part == part && row->kind != CAMEO_COMPARE_NOTE)
            return true;
    return false;
}

static void print_row(const struct cameo_compare_row *row)
{
    const struct cameo_difference *d = row->difference;

    printf("  %-8s ", kind_names[row->kind]);
    cli_put_text(stdout, row->name.data, row->name.size);
    if (row->text.size) {
        fputs(": ", stdout);
        cli_put_text(stdout, row->text.data, row->text.size);
    }
    if (d)
        printf(": %lld of %lld differ, at most %.3g, relative L2 %.3g, first at %lld",
               (long long)d->differing, (long long)d->count, d->max_abs, relative_norm(d),
               (long long)d->first);
    putchar('\n');
}

static void print_headline(const struct compare_request *r, const struct cameo_comparison *c,
                           int part)
{
    const size_t compared = cameo_comparison_compared(c, (enum cameo_compare_part)part);
    const size_t differing = cameo_comparison_differing(c, (enum cameo_compare_part)part);
    const char *plural = compared == 1 ? "" : "s";

    printf("%-10s ", part_names[part]);
    if (differing)
        printf("%zu of %zu %s%s differ%s", differing, compared, part_units[part], plural,
               differing == 1 ? "s" : "");
    else
        printf("%zu %s%s, %s", compared, part_units[part], plural,
               part_differs(c, part) ? "all the same" : "the same");
    if (part == CAMEO_COMPARE_RESULTS)
        printf(", on %s inputs, within %g relative and %g absolute", r->random ? "random" : "given",
               r->relative < 0 ? 1e-3 : r->relative, r->absolute < 0 ? 1e-5 : r->absolute);
    putchar('\n');
}

void compare_print(const struct compare_request *r, const struct cameo_comparison *c)
{
    const struct cameo_compare_row *row;

    for (int part = 0; part < COMPARE_PARTS; part++) {
        size_t rows = 0;

        if (!r->wanted[part])
            continue;
        print_headline(r, c, part);
        for (size_t i = 0; (row = cameo_comparison_row(c, i)) != NULL; i++)
            if ((int)row->part == part && rows++ < CLI_LINES_MAX)
                print_row(row);
        if (rows > CLI_LINES_MAX)
            printf("  and %zu more\n", rows - CLI_LINES_MAX);
    }
}

static void json_row(struct cli_json *json, const struct cameo_compare_row *row)
{
    const struct cameo_difference *d = row->difference;

    cli_json_open(json, NULL, '{');
    cli_json_string(json, "kind", kind_names[row->kind]);
    cli_json_text(json, "name", row->name);
    if (row->text.size)
        cli_json_text(json, "text", row->text);
    if (d) {
        cli_json_int(json, "count", d->count);
        cli_json_int(json, "differing", d->differing);
        cli_json_int(json, "first", d->first);
        if (isfinite(d->max_abs))
            cli_json_real(json, "max_abs", d->max_abs);
        else
            cli_json_null(json, "max_abs");
        cli_json_real(json, "relative_l2", relative_norm(d));
    }
    cli_json_close(json, '}');
}

static void print_json(const struct compare_request *r, const struct cameo_comparison *c)
{
    struct cli_json json = {.to = stdout};
    const struct cameo_compare_row *row;

    cli_json_open(&json, NULL, '{');
    for (int part = 0; part < COMPARE_PARTS; part++) {
        if (!r->wanted[part])
            continue;
        cli_json_open(&json, part_names[part], '{');
        cli_json_count(&json, "compared",
                       cameo_comparison_compared(c, (enum cameo_compare_part)part));
        cli_json_count(&json, "differing",
                       cameo_comparison_differing(c, (enum cameo_compare_part)part));
        cli_json_open(&json, "rows", '[');
        for (size_t i = 0; (row = cameo_comparison_row(c, i)) != NULL; i++)
            if ((int)row->part == part)
                json_row(&json, row);
        cli_json_close(&json, ']');
        cli_json_close(&json, '}');
    }
    cli_json_bool(&json, "same", cameo_comparison_same(c));
    cli_json_close(&json, '}');
}

/* ---- the command ---- */

static bool read_tolerance(const char *flag, const char *text, double *out)
{
    char *end;

    if (!text)
        return true;
    *out = strtod(text, &end);
    if (end != text && !*end && *out >= 0 && isfinite(*out))
        return true;
    cli_complain("compare: %s needs a number of at least 0, not '%s'", flag, text);
    return false;
}

static bool read_options(struct compare_request *r, int count)
{
    struct cli_names names;
    bool fine = true;

    r->relative = r->absolute = -1;
    if (!read_tolerance("--rtol", relative_text, &r->relative) ||
        !read_tolerance("--atol", absolute_text, &r->absolute))
        return false;
    cli_names_split(&only, &names);
    for (int part = 0; part < COMPARE_PARTS; part++)
        r->wanted[part] = expected ? part == CAMEO_COMPARE_RESULTS : !names.count;
    for (size_t i = 0; i < names.count && fine; i++) {
        fine = false;
        for (int part = 0; part < COMPARE_PARTS; part++)
            if (strcmp(names.items[i], part_names[part]) == 0)
                fine = r->wanted[part] = true;
        if (!fine)
            cli_complain("compare: --only takes structure, weights and results, not '%s'",
                         names.items[i]);
    }
    cli_names_free(&names);
    if (fine && (count == 2) == (expected != NULL)) {
        cli_complain("compare: two models are compared, or one with --expected");
        fine = false;
    }
    return fine;
}

/* Inputs that flags describe; what they leave out is made up. A session says which there are. */
static int gather(struct compare_request *r, const struct cameo_session_options *session,
                  const struct cameo_make_options *make_options)
{
    struct cameo_error err;
    int code = CLI_YES;

    if (cameo_session_new(r->a, session, &r->session, &err) != CAMEO_OK)
        return cli_fail_found(&err);
    cli_inputs_begin(&r->inputs, "compare", r->session);
    for (size_t i = 0; i < input_texts.count && code == CLI_YES; i++)
        code = cli_inputs_add(&r->inputs, input_texts.items[i]);
    const size_t given = r->inputs.count;
    if (code == CLI_YES)
        code = cli_inputs_make(&r->inputs, &make, make_options);
    if (code == CLI_YES)
        code = cli_inputs_check(&r->inputs, r->session, NULL);
    r->random = r->inputs.count > given;
    return code;
}

static int compare_models(struct compare_request *r)
{
    struct cameo_compare_options o = CAMEO_COMPARE_OPTIONS_INIT;
    struct cameo_session_options session = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_make_options make_options = CAMEO_MAKE_OPTIONS_INIT;
    struct cameo_comparison *c;
    struct cameo_error err;
    int code = CLI_YES;

    session.findings = &cli_found;
    session.memory_limit = make_options.memory_limit = cli_memory_limit(0);
    make_options.seed = seed;
    for (int part = 0; part < COMPARE_PARTS; part++)
        o.parts |= (unsigned)r->wanted[part] << part;
    if (r->wanted[CAMEO_COMPARE_RESULTS] &&
        (input_texts.count || make.dims.count || make.shapes.count))
        code = gather(r, &session, &make_options);
    if (code != CLI_YES)
        return code;
    o.relative = r->relative;
    o.absolute = r->absolute;
    o.feeds = r->inputs.feeds;
    o.feed_count = r->inputs.count;
    o.make = &make_options;
    o.session = &session;
    const enum cameo_status status =
        expected ? cameo_model_compare_values(r->a, r->recorded, r->recorded_count, &o, &c, &err)
                 : cameo_model_compare(r->a, r->b, &o, &c, &err);
    if (status != CAMEO_OK)
        return cli_fail_found(&err);
    r->random = r->random || cameo_comparison_made_inputs(c);
    (as_json ? print_json : compare_print)(r, c);
    code = cli_flush(stdout, "standard output");
    if (code == CLI_YES && !cameo_comparison_same(c))
        code = CLI_NO;
    cameo_comparison_free(c);
    return code;
}

static int compare_main(char **operands, int count)
{
    struct compare_request r = {.relative = 0};
    struct cameo_error err;

    if (!read_options(&r, count))
        return CLI_USAGE;
    if (cli_load_model(operands[0], NULL, &r.a, &err) != CAMEO_OK)
        return cli_fail(&err);
    int code = CLI_YES;
    if (count == 2 && cli_load_model(operands[1], NULL, &r.b, &err) != CAMEO_OK)
        code = cli_fail(&err);
    if (code == CLI_YES && expected)
        code = compare_read_recorded(&r, expected);
    if (code == CLI_YES)
        code = compare_models(&r);
    if (r.session)
        cli_inputs_end(&r.inputs);
    cameo_session_free(r.session);
    compare_free_recorded(&r);
    cameo_model_free(r.a);
    cameo_model_free(r.b);
    return code;
}

static const struct cli_option options[] = {
    {"--expected", NULL, "PATH", "values of another runtime: .npz, or a folder of .npy", CLI_TEXT,
     &expected},
    {"--only", NULL, "PART,..", "compare structure, weights or results only", CLI_TEXTS, &only},
    {"--input", "-i", "NAME=FILE", "the value of an input (those not given are made up)", CLI_TEXTS,
     &input_texts},
    {"--data", NULL, "FILE", "the same from a file of arrays named after inputs", CLI_TEXTS,
     &input_texts},
    CLI_MAKE_OPTIONS(make),
    {"--seed", NULL, "N", "of random operators and inputs", CLI_SIZE, &seed},
    {"--rtol", NULL, "X", "relative difference that is none (1e-3; of weights 0)", CLI_TEXT,
     &relative_text},
    {"--atol", NULL, "X", "absolute difference that is none (1e-5; of weights 0)", CLI_TEXT,
     &absolute_text},
    {"--json", NULL, NULL, "print JSON", CLI_FLAG, &as_json},
    CLI_SARIF_OPTION,
    {0},
};

CLI_COMMAND(
    compare, compare_main, "A B | MODEL --expected PATH", "say what two models differ in",
    "Lists nodes, inputs, outputs, opsets and metadata that were added, removed or changed,\n"
    "weights that differ with norms of their differences, and results: both models run on the\n"
    "same inputs, given or made up. Where outputs differ, the first value of the same name that\n"
    "does, in the order of the nodes, is told. With --expected, values that another runtime\n"
    "recorded are compared, by name; 'cameo run --dump' writes such a folder. Graphs are\n"
    "matched by the names of values.",
    "cameo compare net.onnx trained.onnx # what training changed\n"
    "cameo compare net.onnx fast.onnx --only results # does it still compute the same?\n"
    "cameo compare net.onnx --expected ort.npz -i x.npy # the first value where runtimes part",
    "0 if they are the same, 1 if they differ or cannot run", options, 1, 2);
