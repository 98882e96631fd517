/* Curves of a training: read from logs, drawn as SVG and in a terminal. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CLI_CURVE_H
#define CLI_CURVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { CURVE_NAME_MAX = 120 };

/* One value over the steps. */
struct curve {
    char name[CURVE_NAME_MAX];
    double *x, *y; /* owned; only finite numbers */
    size_t count, capacity;
    bool sparse; /* measured now and then, as in validation: drawn with its points */
    bool exact;  /* without noise, as a learning rate: never smoothed */
};

struct curves {
    struct curve *items;
    size_t count, capacity;
};

void curves_free(struct curves *curves);
/* The curve of that name, made when it is not there. */
struct curve *curves_get(struct curves *curves, const char *name);
/* Numbers that are not finite are left out. */
void curve_add(struct curve *curve, double x, double y);

/* Adds what a log in JSON Lines holds: one curve per number, its name after prefix. Gives an exit
 * code, after saying which line is wrong. A last line that was cut is left out. */
int curves_read(struct curves *curves, const char *path, const char *prefix);

/* The mean of about `window` points around each, near ones counting more, so that nothing is
 * shifted; to has count places. */
void curve_smooth(const struct curve *curve, double window, double *to);

/* Round numbers between low and high, at most `most` of them: the first, and the step from one to
 * the next. */
double curve_ticks(double low, double high, int most, double *first);
/* value as the label of a tick. */
void curve_label(double value, double step, char *text, size_t size);

struct curve_range {
    double low, high;
};

/* The numbers that a plot must show, with some room; never empty. */
struct curve_range curve_span(const double *values, size_t count, struct curve_range range);
extern const struct curve_range curve_nothing;

/* ---- SVG ---- */

/* Which curves share axes. */
struct curve_panel {
    const char *title;
    const struct curve *const *curves;
    size_t count;
    bool log_scale;
};

struct curve_drawing {
    const char *title;
    const struct curve_panel *panels;
    size_t count;
    double window; /* of smoothing; 0: by the number of points; below 0: none */
};

/* Write errors show in ferror. */
void curve_write_svg(FILE *to, const struct curve_drawing *drawing);

/* ---- terminal ---- */

/* Draws one curve, smoothed, in columns x rows characters, axes included. Dots of braille where the
 * terminal has them, else plain characters. */
void curve_print(FILE *to, const struct curve *curve, int columns, int rows, bool braille);
/* Does the user's locale say UTF-8? */
bool curve_terminal_has_braille(void);

#endif
