/* A curve in a terminal. */
// SPDX-License-Identifier: Apache-2.0
#include "curve.h"

#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Braille gives 2 x 4 dots to a character; plain text one. */
struct canvas {
    int columns, rows; /* of characters */
    int across, down;  /* dots of a character */
    unsigned char *cells;
};

/* The bit of each dot of U+2800, by row and column. */
static const unsigned char dots[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};

static void set_dot(struct canvas *canvas, int x, int y)
{
    if (x < 0 || y < 0 || x >= canvas->columns * canvas->across || y >= canvas->rows * canvas->down)
        return;
    const int cell = y / canvas->down * canvas->columns + x / canvas->across;
    canvas->cells[cell] |= dots[y % canvas->down][x % canvas->across];
}

/* Is there a place for it? The range of a log may be so wide that differences are infinite. */
static bool is_near(double coordinate)
{
    return coordinate > -1e6 && coordinate < 1e6;
}

/* Every dot column between two points is set, and steep pieces are filled down. */
static void draw_line(struct canvas *canvas, double x0, double y0, double x1, double y1)
{
    if (!is_near(x0) || !is_near(y0) || !is_near(x1) || !is_near(y1))
        return;
    const double longest = fmax(fabs(x1 - x0), fabs(y1 - y0));
    const int steps = longest < 1 ? 1 : longest > 10000 ? 10000 : (int)ceil(longest);

    for (int i = 0; i <= steps; i++) {
        const double t = (double)i / steps;
        set_dot(canvas, (int)lround(x0 + (x1 - x0) * t), (int)lround(y0 + (y1 - y0) * t));
    }
}

static void draw_curve(struct canvas *canvas, const struct curve *curve, const double *y,
                       struct curve_range x_range, struct curve_range y_range)
{
    const double right = canvas->columns * canvas->across - 1;
    const double bottom = canvas->rows * canvas->down - 1;
    double last_x = 0, last_y = 0;

    for (size_t i = 0; i < curve->count; i++) {
        const double across = (curve->x[i] - x_range.low) / (x_range.high - x_range.low) * right;
        const double down = (y_range.high - y[i]) / (y_range.high - y_range.low) * bottom;

        draw_line(canvas, i > 0 ? last_x : across, i > 0 ? last_y : down, across, down);
        last_x = across;
        last_y = down;
    }
}

static void put_cell(FILE *to, const struct canvas *canvas, unsigned char cell)
{
    if (canvas->down == 1)
        fputc(cell ? '*' : ' ', to);
    else if (cell)
        fprintf(to, "\xe2%c%c", 0xa0 + (cell >> 6), 0x80 + (cell & 0x3f));
    else
        fputc(' ', to);
}

/* The label of the tick that falls on this row, if one does. */
static const char *row_label(int row, const struct canvas *canvas, struct curve_range range,
                             char *text, size_t size)
{
    double first;
    const double step = curve_ticks(range.low, range.high, canvas->rows / 3 + 1, &first);

    for (int i = 0; first + i * step <= range.high + step * 1e-9; i++) {
        const double value = first + i * step;
        const double at = (range.high - value) / (range.high - range.low) *
                          (canvas->rows * canvas->down - 1) / canvas->down;

        if ((int)at == row) {
            curve_label(value, step, text, size);
            return text;
        }
    }
    return "";
}

static void put_rows(FILE *to, const struct canvas *canvas, const struct curve *curve,
                     struct curve_range y_range)
{
    const bool braille = canvas->down > 1;
    char text[40], first[40], last[40];

    for (int row = 0; row < canvas->rows; row++) {
        const char *label = row_label(row, canvas, y_range, text, sizeof text);
        int used = canvas->columns;

        while (used > 0 && !canvas->cells[row * canvas->columns + used - 1])
            used--;
        fprintf(to, "%8s %s", label, braille ? (*label ? "┤" : "│") : *label ? "+" : "|");
        for (int column = 0; column < used; column++)
            put_cell(to, canvas, canvas->cells[row * canvas->columns + column]);
        fputc('\n', to);
    }
    fprintf(to, "%9s%s", "", braille ? "└" : "+");
    for (int column = 0; column < canvas->columns; column++)
        fputs(braille ? "─" : "-", to);
    snprintf(first, sizeof first, "%.10g", curve->x[0]);
    snprintf(last, sizeof last, "step %.10g", curve->x[curve->count - 1]);
    fprintf(to, "\n%10s%s%*s\n", "", first, canvas->columns - (int)strlen(first), last);
}

static struct curve_range at_least_something(struct curve_range range)
{
    if (range.low < range.high)
        return range;
    return (struct curve_range){range.low - 0.5, range.low + 0.5};
}

void curve_print(FILE *to, const struct curve *curve, int columns, int rows, bool braille)
{
    struct canvas canvas = {columns - 10, rows - 2, braille ? 2 : 1, braille ? 4 : 1, NULL};

    if (canvas.columns < 20)
        canvas.columns = 20;
    if (canvas.rows < 4)
        canvas.rows = 4;
    if (curve->count == 0)
        return;
    canvas.cells = cli_alloc((size_t)canvas.columns * (size_t)canvas.rows, 1);
    double *smooth = cli_alloc(curve->count, sizeof *smooth);
    curve_smooth(curve,
                 curve->sparse || curve->exact ? 0 : (double)curve->count / (2.0 * canvas.columns),
                 smooth);
    struct curve_range y = curve_span(smooth, curve->count, curve_nothing);
    if (y.low >= 0 && y.low < 0.35 * y.high)
        y.low = 0;
    y = at_least_something(y);
    const struct curve_range x =
        at_least_something(curve_span(curve->x, curve->count, curve_nothing));
    draw_curve(&canvas, curve, smooth, x, y);
    put_rows(to, &canvas, curve, y);
    free(canvas.cells);
    free(smooth);
}

bool curve_terminal_has_braille(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);

        if (value && *value)
            return strstr(value, "UTF-8") || strstr(value, "utf8") || strstr(value, "UTF8");
    }
    return false;
}
