/* cameo plot: the curves of training logs. */
// SPDX-License-Identifier: Apache-2.0
#include "cli.h"

#include <stdlib.h>
#include <string.h>

enum { LOGS_MAX = 8 };

static const char *out_path, *title, *only, *smooth_text;
static bool log_scale;

static int put(void *to, const void *bytes, size_t size)
{
    return fwrite(bytes, 1, size, to) != size;
}

static int text_columns(void)
{
    const char *columns = getenv("COLUMNS");
    const long asked = columns ? strtol(columns, NULL, 10) : 0;

    return asked >= 40 && asked <= 500 ? (int)asked : 78;
}

/* "runs/a.jsonl" as a title. */
static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

static int list_curves(const struct cameo_curves *curves)
{
    struct cameo_curve curve;

    fprintf(stderr, "cameo: plot: %s; there are:",
            only ? "no value has such a name"
                 : "no value is called loss; choose with "
                   "--only");
    for (size_t i = 0; i < 40 && cameo_curves_at(curves, i, &curve); i++) {
        fputc(' ', stderr);
        cli_put_text(stderr, curve.name.data, curve.name.size);
    }
    fputc('\n', stderr);
    return CLI_NO;
}

static int draw(const struct cameo_curves *curves, const char *name, double window)
{
    struct cameo_curves_options options = CAMEO_CURVES_OPTIONS_INIT;
    struct cli_output output;
    struct cameo_error err;

    options.title = title ? title : name;
    options.only = only;
    options.window = window;
    options.log_scale = log_scale;
    options.columns = text_columns();
    if (!out_path)
        options.format = cli_terminal_has_braille() ? CAMEO_CURVES_BRAILLE : CAMEO_CURVES_PLAIN;
    int code = out_path ? cli_output_begin(&output, out_path) : CLI_YES;
    if (code != CLI_YES)
        return code;
    const enum cameo_status status =
        cameo_curves_draw(curves, &options, put, out_path ? output.to : stdout, &err);
    if (status == CAMEO_NOT_FOUND)
        code = list_curves(curves);
    else if (status != CAMEO_OK && status != CAMEO_IO) /* that is said by cli_output_end */
        code = cli_fail(&err);
    return out_path ? cli_output_end(&output, code) : code;
}

static int read_window(double *window)
{
    char *end;

    *window = 0;
    if (!smooth_text)
        return CLI_YES;
    *window = strtod(smooth_text, &end);
    if (end == smooth_text || *end || !(*window >= 0)) {
        cli_complain("plot: --smooth takes a number of steps, not '%s'", smooth_text);
        return CLI_USAGE;
    }
    *window = *window > 1 ? *window : -1;
    return CLI_YES;
}

static int plot_main(char **operands, int count)
{
    struct cameo_curves *curves = NULL;
    struct cameo_error err;
    double window;
    int code = read_window(&window);

    if (code == CLI_YES && cameo_curves_new(&curves, &err) != CAMEO_OK)
        code = cli_fail(&err);

    for (int i = 0; i < count && code == CLI_YES; i++) {
        char prefix[80] = "";

        if (out_path && cli_same_file(operands[i], out_path)) {
            cli_complain("plot: %s is the log itself", out_path);
            code = CLI_USAGE;
            break;
        }
        if (count > 1)
            snprintf(prefix, sizeof prefix, "%.56s:", file_name(operands[i]));
        if (cameo_curves_read(curves, operands[i], prefix, &err) != CAMEO_OK)
            code = cli_fail(&err);
    }
    if (code == CLI_YES)
        code = draw(curves, count > 1 ? "training curves" : file_name(operands[0]), window);
    cameo_curves_free(curves);
    return code;
}

static const struct cli_option options[] = {
    {"--output", "-o", "FILE", "draw into FILE, as SVG", CLI_TEXT, &out_path},
    {"--smooth", NULL, "N", "average over about N steps; 1: not at all", CLI_TEXT, &smooth_text},
    {"--log-scale", NULL, NULL, "the loss on a logarithmic scale", CLI_FLAG, &log_scale},
    {"--only", NULL, "NAMES", "the values with these names, separated by commas", CLI_TEXT, &only},
    {"--title", NULL, "TEXT", "the title; the name of the log otherwise", CLI_TEXT, &title},
    {0},
};

CLI_COMMAND(
    plot, plot_main, "[-o CURVE.svg] [--smooth N] [--log-scale] [--only NAMES] LOG...",
    "draw the curves of training logs",
    "Draws what 'cameo train --log' wrote: loss and validation loss, accuracy, the learning\n"
    "rate where it changes. Several logs are drawn together, to compare runs. Without -o the\n"
    "curves are drawn in the terminal.",
    "cameo plot run.jsonl -o curve.svg # a picture\n"
    "cameo plot run.jsonl # in the terminal\n"
    "cameo plot a.jsonl b.jsonl --only loss -o both.svg # two runs",
    "0 if it was drawn, 1 if a log is broken or holds nothing to draw", options, 1, LOGS_MAX);
