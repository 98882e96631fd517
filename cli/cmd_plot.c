/* cameo plot: the curves of training logs. */
// SPDX-License-Identifier: Apache-2.0
#include "cli.h"
#include "curve.h"

#include <stdlib.h>
#include <string.h>

enum { LOGS_MAX = 8, PANELS_MAX = 4, CURVES_MAX = 64 };

static const char *out_path, *title, *only, *smooth_text;
static bool log_scale;

/* What is drawn where; the last panel takes what is asked for by name and fits nowhere else. */
struct picture {
    const struct curve *curves[PANELS_MAX][CURVES_MAX];
    struct curve_panel panels[PANELS_MAX];
    size_t count;
};

/* The part of a name after the log it comes from. */
static const char *base_name(const struct curve *curve)
{
    const char *colon = strrchr(curve->name, ':');

    return colon ? colon + 1 : curve->name;
}

static bool is_named(const struct curve *curve, const char *list)
{
    const char *name = base_name(curve);
    const size_t size = strlen(name);

    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, size) == 0 && (at[size] == ',' || !at[size]))
            return true;
    }
    return false;
}

static bool varies(const struct curve *curve)
{
    for (size_t i = 1; i < curve->count; i++)
        if (curve->y[i] != curve->y[0])
            return true;
    return false;
}

/* The panel of a curve, or -1 when it is not shown unless asked for. */
static int panel_of(const struct curve *curve)
{
    static const char *const measures[] = {"accuracy", "r2", "mae", "error", "f1"};
    const char *name = base_name(curve);

    if (only && !is_named(curve, only))
        return -1;
    if (strstr(name, "loss"))
        return 0;
    for (size_t i = 0; i < sizeof measures / sizeof *measures; i++)
        if (strstr(name, measures[i]))
            return 1;
    if (strcmp(name, "lr") == 0)
        return only || varies(curve) ? 2 : -1;
    return only ? 3 : -1;
}

static bool same_log(const struct curve *a, const struct curve *b)
{
    const size_t size = (size_t)(base_name(a) - a->name);

    return size == (size_t)(base_name(b) - b->name) && memcmp(a->name, b->name, size) == 0;
}

/* Sparse is what the same log has much more of. */
static void describe(struct curves *curves)
{
    for (size_t i = 0; i < curves->count; i++) {
        struct curve *curve = &curves->items[i];

        curve->exact = strcmp(base_name(curve), "lr") == 0;
        for (size_t k = 0; k < curves->count; k++)
            if (same_log(curve, &curves->items[k]) && curve->count * 3 < curves->items[k].count)
                curve->sparse = true;
    }
}

static void arrange(const struct curves *curves, struct picture *picture)
{
    static const char *const titles[PANELS_MAX] = {"loss", "accuracy", "learning rate", "values"};

    picture->count = 0;
    for (int panel = 0; panel < PANELS_MAX; panel++) {
        struct curve_panel *made = &picture->panels[picture->count];
        const struct curve **list = picture->curves[picture->count];

        *made = (struct curve_panel){titles[panel], list, 0, log_scale && panel == 0};
        for (size_t i = 0; i < curves->count && made->count < CURVES_MAX; i++)
            if (panel_of(&curves->items[i]) == panel)
                list[made->count++] = &curves->items[i];
        if (made->count == 1)
            made->title = base_name(list[0]);
        picture->count += made->count > 0;
    }
}

static int write_svg(const struct picture *picture, const char *name, double window)
{
    const struct curve_drawing drawing = {title ? title : name, picture->panels, picture->count,
                                          window};
    struct cli_output output;
    int code = cli_output_begin(&output, out_path);

    if (code != CLI_YES)
        return code;
    curve_write_svg(output.to, &drawing);
    return cli_output_end(&output, code);
}

static int print_curves(const struct picture *picture)
{
    const char *columns = getenv("COLUMNS");
    const long asked = columns ? strtol(columns, NULL, 10) : 0;
    const int width = asked >= 40 && asked <= 500 ? (int)asked : 78;

    for (size_t i = 0; i < picture->count; i++)
        for (size_t k = 0; k < picture->panels[i].count; k++) {
            const struct curve *curve = picture->panels[i].curves[k];

            printf("%s", i + k ? "\n" : "");
            cli_put_text(stdout, curve->name, strlen(curve->name));
            printf(": %.4g at first, %.4g at last\n", curve->y[0], curve->y[curve->count - 1]);
            curve_print(stdout, curve, width, 14, curve_terminal_has_braille());
        }
    return CLI_YES;
}

/* "runs/a.jsonl" as a title. */
static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

static int draw(const struct curves *curves, const char *name, double window)
{
    static struct picture picture;

    arrange(curves, &picture);
    if (picture.count)
        return out_path ? write_svg(&picture, name, window) : print_curves(&picture);
    fprintf(stderr, "cameo: plot: %s; there are:",
            only ? "no value has such a name"
                 : "no value is called loss; choose with "
                   "--only");
    for (size_t i = 0; i < curves->count && i < 40; i++) {
        fputc(' ', stderr);
        cli_put_text(stderr, curves->items[i].name, strlen(curves->items[i].name));
    }
    fputc('\n', stderr);
    return CLI_NO;
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
    struct curves curves = {0};
    double window;
    int code = read_window(&window);

    for (int i = 0; i < count && code == CLI_YES; i++) {
        char prefix[80] = "";

        if (out_path && cli_same_file(operands[i], out_path)) {
            cli_complain("plot: %s is the log itself", out_path);
            code = CLI_USAGE;
            break;
        }
        if (count > 1)
            snprintf(prefix, sizeof prefix, "%.56s:", file_name(operands[i]));
        code = curves_read(&curves, operands[i], prefix);
    }
    if (code == CLI_YES) {
        describe(&curves);
        code = draw(&curves, count > 1 ? "training curves" : file_name(operands[0]), window);
    }
    curves_free(&curves);
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
