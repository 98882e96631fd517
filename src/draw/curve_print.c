/* A curve in a terminal. */
// SPDX-License-Identifier: Apache-2.0
#include "draw/curve.h"

#include "base/printable.h"

#include <math.h>

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

static void draw_curve(struct canvas *canvas, const struct cm_curve *curve, const double *y,
                       struct cm_curve_range x_range, struct cm_curve_range y_range)
{
    const double right = canvas->columns * canvas->across - 1;
    const double bottom = canvas->rows * canvas->down - 1;
    double last_x = 0, last_y = 0;

    for (size_t i = 0; i < curve->x.count; i++) {
        const double across =
            (curve->x.items[i] - x_range.low) / (x_range.high - x_range.low) * right;
        const double down = (y_range.high - y[i]) / (y_range.high - y_range.low) * bottom;

        draw_line(canvas, i > 0 ? last_x : across, i > 0 ? last_y : down, across, down);
        last_x = across;
        last_y = down;
    }
}

static void put_cell(struct cm_printer *to, const struct canvas *canvas, unsigned char cell)
{
    if (canvas->down == 1)
        cm_put_text(to, cell ? "*" : " ");
    else if (cell)
        cm_put_format(to, "\xe2%c%c", 0xa0 + (cell >> 6), 0x80 + (cell & 0x3f));
    else
        cm_put_text(to, " ");
}

/* The label of the tick that falls on this row, if one does. */
static const char *row_label(int row, const struct canvas *canvas, struct cm_curve_range range,
                             char *text, size_t size)
{
    double first;
    const double step = cm_curve_ticks(range.low, range.high, canvas->rows / 3 + 1, &first);

    for (int i = 0; first + i * step <= range.high + step * 1e-9; i++) {
        const double value = first + i * step;
        const double at = (range.high - value) / (range.high - range.low) *
                          (canvas->rows * canvas->down - 1) / canvas->down;

        if ((int)at == row) {
            cm_curve_label(value, step, text, size);
            return text;
        }
    }
    return "";
}

static void put_rows(struct cm_printer *to, const struct canvas *canvas, const char *steps,
                     const struct cm_curve *curve, struct cm_curve_range y_range)
{
    const bool braille = canvas->down > 1;
    char text[40], first[40], last[80];

    for (int row = 0; row < canvas->rows; row++) {
        const char *label = row_label(row, canvas, y_range, text, sizeof text);
        int used = canvas->columns;

        while (used > 0 && !canvas->cells[row * canvas->columns + used - 1])
            used--;
        cm_put_format(to, "%8s %s", label, braille ? (*label ? "┤" : "│") : *label ? "+" : "|");
        for (int column = 0; column < used; column++)
            put_cell(to, canvas, canvas->cells[row * canvas->columns + column]);
        cm_put_text(to, "\n");
    }
    cm_put_format(to, "%9s%s", "", braille ? "└" : "+");
    for (int column = 0; column < canvas->columns; column++)
        cm_put_text(to, braille ? "─" : "-");
    cm_format(first, sizeof first, "%.10g", curve->x.items[0]);
    cm_format(last, sizeof last, "%.40s %.10g", steps, curve->x.items[curve->x.count - 1]);
    cm_put_format(to, "\n%10s%s%*s\n", "", first, canvas->columns - (int)strlen(first), last);
}

static struct cm_curve_range at_least_something(struct cm_curve_range range)
{
    if (range.low < range.high)
        return range;
    return (struct cm_curve_range){range.low - 0.5, range.low + 0.5};
}

/* Draws one curve, smoothed, in columns x rows characters, axes included, in dots of braille or in
 * plain characters. */
static void curve_print(struct cm_printer *to, struct cm_arena *scratch,
                        const struct cm_curve *curve, const char *steps, int columns, int rows,
                        bool braille)
{
    struct canvas canvas = {columns - 10, rows - 2, braille ? 2 : 1, braille ? 4 : 1, NULL};

    if (canvas.columns < 20)
        canvas.columns = 20;
    if (canvas.rows < 4)
        canvas.rows = 4;
    if (curve->x.count == 0)
        return;
    canvas.cells =
        CM_NEW_ARRAY(scratch, unsigned char, (size_t)canvas.columns *(size_t)canvas.rows);
    double *smooth = CM_NEW_ARRAY(scratch, double, curve->x.count);
    cm_curve_smooth(
        curve, curve->sparse || curve->exact ? 0 : (double)curve->x.count / (2.0 * canvas.columns),
        smooth);
    struct cm_curve_range y = cm_curve_span(smooth, curve->x.count, cm_curve_nothing);
    if (y.low >= 0 && y.low < 0.35 * y.high)
        y.low = 0;
    y = at_least_something(y);
    const struct cm_curve_range x =
        at_least_something(cm_curve_span(curve->x.items, curve->x.count, cm_curve_nothing));
    draw_curve(&canvas, curve, smooth, x, y);
    put_rows(to, &canvas, steps, curve, y);
    cm_arena_reset(scratch);
}

/* A name from a file, with \\xNN for each byte of a character that a terminal would act on. */
static void put_name(struct cm_printer *to, struct cm_str name)
{
    for (size_t at = 0; at < name.size;) {
        const struct cm_str rest = {name.data + at, name.size - at};
        const size_t length = cm_str_character(rest);

        if (!cm_str_unprintable(rest)) {
            cm_put_str(to, (struct cm_str){rest.data, length});
            at += length;
            continue;
        }
        if (rest.data[0] == '\n' || rest.data[0] == '\t')
            cm_put_text(to, rest.data[0] == '\n' ? "\\n" : "\\t");
        else
            cm_put_format(to, "\\x%02x", (unsigned)(unsigned char)rest.data[0]);
        at++;
    }
}

void cm_curve_write_text(struct cm_printer *to, struct cm_arena *scratch,
                         const struct cm_curve_picture *picture, int columns, int rows,
                         bool braille)
{
    for (size_t i = 0; i < picture->panels.count; i++)
        for (size_t k = 0; k < picture->panels.items[i].curves.count; k++) {
            const struct cm_curve *curve = picture->panels.items[i].curves.items[k];

            cm_put_text(to, i + k ? "\n" : "");
            put_name(to, curve->name);
            if (!curve->x.count) {
                cm_put_text(to, ": no number\n");
                continue;
            }
            cm_put_format(to, ": %.4g at first, %.4g at last\n", curve->y.items[0],
                          curve->y.items[curve->x.count - 1]);
            curve_print(to, scratch, curve, picture->steps, columns, rows, braille);
        }
}
