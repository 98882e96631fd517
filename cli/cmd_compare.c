/* cameo compare: what two models differ in. */
// SPDX-License-Identifier: Apache-2.0
#include "compare.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static struct cli_texts input_texts, only;
static struct cli_make make;
static const char *expected, *relative_text, *absolute_text;
static size_t seed;
static bool as_json;

static const char *const part_names[] = {"structure", "weights", "results"};
static const char *const part_units[] = {"node", "tensor", "value"};

/* ---- rows ---- */

void compare_add(struct comparison *c, enum compare_part part, const char *kind, const char *name,
                 const struct cameo_difference *difference, const char *format, ...)
{
    char text[1200] = "";
    va_list args;

    c->rows = cli_grow(c->rows, c->count, &c->room, sizeof *c->rows);
    va_start(args, format);
    if (format)
        vsnprintf(text, sizeof text, format, args);
    va_end(args);
    c->rows[c->count++] = (struct compare_row){
        .part = part,
        .differs = strcmp(kind, "note") != 0,
        .kind = kind,
        .name = cli_copy(name),
        .text = cli_copy(text),
        .measured = difference != NULL,
        .difference = difference ? *difference : (struct cameo_difference)CAMEO_DIFFERENCE_INIT};
}

void compare_free(struct comparison *c)
{
    for (size_t i = 0; i < c->count; i++) {
        free(c->rows[i].name);
        free(c->rows[i].text);
    }
    free(c->rows);
    c->rows = NULL;
    c->count = c->room = 0;
}

/* ---- telling ---- */

/* Of the norm of what is expected; of a reference of zeros, the norm itself. */
static double relative_norm(const struct cameo_difference *d)
{
    return d->reference_norm > 0 ? d->norm / d->reference_norm : d->norm;
}

static bool part_differs(const struct comparison *c, enum compare_part part)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->rows[i].part == part && c->rows[i].differs)
            return true;
    return false;
}

static void print_row(const struct compare_row *row)
{
    const struct cameo_difference *d = &row->difference;

    printf("  %-8s ", row->kind);
    cli_put_text(stdout, row->name, strlen(row->name));
    if (row->text[0]) {
        fputs(": ", stdout);
        cli_put_text(stdout, row->text, strlen(row->text));
    }
    if (row->measured)
        printf(": %lld of %lld differ, at most %.3g, relative L2 %.3g, first at %lld",
               (long long)d->differing, (long long)d->count, d->max_abs, relative_norm(d),
               (long long)d->first);
    putchar('\n');
}

void compare_print(const struct comparison *c)
{
    for (int part = 0; part < COMPARE_PARTS; part++) {
        size_t printed = 0, rows = 0;

        if (!c->wanted[part])
            continue;
        printf("%-10s ", part_names[part]);
        if (c->differing[part])
            printf("%zu of %zu %s%s differ%s", c->differing[part], c->looked[part],
                   part_units[part], c->looked[part] == 1 ? "" : "s",
                   c->differing[part] == 1 ? "s" : "");
        else
            printf("%zu %s%s, %s", c->looked[part], part_units[part],
                   c->looked[part] == 1 ? "" : "s",
                   part_differs(c, (enum compare_part)part) ? "all the same" : "the same");
        if (part == COMPARE_RESULTS)
            printf(", on %s inputs, within %g relative and %g absolute",
                   c->random ? "random" : "given", c->relative, c->absolute);
        putchar('\n');
        for (size_t i = 0; i < c->count; i++) {
            if (c->rows[i].part != (enum compare_part)part)
                continue;
            if (rows++ < CLI_LINES_MAX) {
                print_row(&c->rows[i]);
                printed++;
            }
        }
        if (rows > printed)
            printf("  and %zu more\n", rows - printed);
    }
}

void compare_json(const struct comparison *c)
{
    struct cli_json json = {.to = stdout};
    bool same = true;

    cli_json_open(&json, NULL, '{');
    for (int part = 0; part < COMPARE_PARTS; part++) {
        if (!c->wanted[part])
            continue;
        same = same && !part_differs(c, (enum compare_part)part);
        cli_json_open(&json, part_names[part], '{');
        cli_json_count(&json, "compared", c->looked[part]);
        cli_json_count(&json, "differing", c->differing[part]);
        cli_json_open(&json, "rows", '[');
        for (size_t i = 0; i < c->count; i++) {
            const struct compare_row *row = &c->rows[i];
            const struct cameo_difference *d = &row->difference;

            if (row->part != (enum compare_part)part)
                continue;
            cli_json_open(&json, NULL, '{');
            cli_json_string(&json, "kind", row->kind);
            cli_json_string(&json, "name", row->name);
            if (row->text[0])
                cli_json_string(&json, "text", row->text);
            if (row->measured) {
                cli_json_int(&json, "count", d->count);
                cli_json_int(&json, "differing", d->differing);
                cli_json_int(&json, "first", d->first);
                if (isfinite(d->max_abs))
                    cli_json_real(&json, "max_abs", d->max_abs);
                else
                    cli_json_null(&json, "max_abs");
                cli_json_real(&json, "relative_l2", relative_norm(d));
            }
            cli_json_close(&json, '}');
        }
        cli_json_close(&json, ']');
        cli_json_close(&json, '}');
    }
    cli_json_bool(&json, "same", same);
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

static bool read_options(struct comparison *c, int count)
{
    struct cli_names names;
    bool fine = true;

    c->relative = 1e-3;
    c->absolute = 1e-5;
    c->tolerant = relative_text || absolute_text;
    if (!read_tolerance("--rtol", relative_text, &c->relative) ||
        !read_tolerance("--atol", absolute_text, &c->absolute))
        return false;
    cli_names_split(&only, &names);
    for (int part = 0; part < COMPARE_PARTS; part++)
        c->wanted[part] = expected ? part == COMPARE_RESULTS : !names.count;
    for (size_t i = 0; i < names.count && fine; i++) {
        fine = false;
        for (int part = 0; part < COMPARE_PARTS; part++)
            if (strcmp(names.items[i], part_names[part]) == 0)
                fine = c->wanted[part] = true;
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

static int compare_models(struct comparison *c)
{
    if (expected)
        return compare_recorded(c, expected, &input_texts, &make, seed);
    if (c->wanted[COMPARE_STRUCTURE])
        compare_structure(c);
    if (c->wanted[COMPARE_WEIGHTS])
        compare_weights(c);
    return c->wanted[COMPARE_RESULTS] ? compare_results(c, &input_texts, &make, seed) : CLI_YES;
}

static int compare_main(char **operands, int count)
{
    struct comparison c = {0};
    struct cameo_error err;

    if (!read_options(&c, count))
        return CLI_USAGE;
    if (cli_load_model(operands[0], NULL, &c.a, &err) != CAMEO_OK)
        return cli_fail(&err);
    int code = CLI_YES;
    if (count == 2 && cli_load_model(operands[1], NULL, &c.b, &err) != CAMEO_OK)
        code = cli_fail(&err);
    if (code == CLI_YES)
        code = compare_models(&c);
    if (code == CLI_YES) {
        bool same = true;
        for (size_t i = 0; i < c.count; i++)
            same = same && !c.rows[i].differs;
        (as_json ? compare_json : compare_print)(&c);
        code = cli_flush(stdout, "standard output");
        code = code != CLI_YES ? code : same ? CLI_YES : CLI_NO;
    }
    compare_free(&c);
    cameo_model_free(c.a);
    cameo_model_free(c.b);
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
