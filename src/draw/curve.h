/* Curves of a training: read from logs, drawn as SVG and as text for a terminal. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_DRAW_CURVE_H
#define CM_DRAW_CURVE_H

#include "base/array.h"
#include "onnx/syntax_print.h"

/* One value over the steps. */
struct cm_curve {
    struct cm_str name;    /* ends with a zero byte */
    CM_ARRAY(double) x, y; /* only finite numbers */
    bool sparse;           /* measured now and then, as in validation: drawn with its points */
    bool exact;            /* without noise, as a learning rate: never smoothed */
};

struct cm_curves {
    struct cm_arena *arena; /* of all that is below */
    CM_ARRAY(struct cm_curve);
};

/* The curve of that name, made when it is not there. Others may move. */
struct cm_curve *cm_curves_get(struct cm_curves *curves, struct cm_str name);
/* Numbers that are not finite are left out. */
void cm_curve_add(struct cm_curves *curves, struct cm_curve *curve, double x, double y);

/* Adds what a log in JSON Lines holds: one curve per number, its name after prefix. A last line
 * that was cut is left out. The error says which line is wrong. scratch is free for reuse after. */
enum cm_status cm_curves_read(struct cm_curves *curves, const char *path, const char *prefix,
                              struct cm_arena *scratch, struct cm_error *err) CM_MUST_CHECK;

/* The mean of about `window` points around each, near ones counting more, so that nothing is
 * shifted; to has count places. */
void cm_curve_smooth(const struct cm_curve *curve, double window, double *to);

/* Round numbers between low and high, at most `most` of them: the first, and the step from one to
 * the next. */
double cm_curve_ticks(double low, double high, int most, double *first);
/* value as the label of a tick. */
void cm_curve_label(double value, double step, char *text, size_t size);

struct cm_curve_range {
    double low, high;
};

/* The numbers that a plot must show, with some room; never empty. */
struct cm_curve_range cm_curve_span(const double *values, size_t count,
                                    struct cm_curve_range range);
extern const struct cm_curve_range cm_curve_nothing;

/* ---- which curves are drawn where ---- */

/* Curves that share axes. */
struct cm_curve_panel {
    const char *title;
    CM_ARRAY(const struct cm_curve *) curves;
    bool log_scale;
};

struct cm_curve_picture {
    const char *title, *steps;              /* steps: what x counts */
    CM_ARRAY(struct cm_curve_panel) panels; /* those with curves */
    double window; /* of smoothing; 0: by the number of points; below 0: none */
};

/* Losses in one panel, measures of how good in another, the learning rate where it changes. only
 * names the values to draw, separated by commas, whatever they are; NULL: those. A name counts from
 * its last colon on: before it stands the log. log_scale: of the losses. */
void cm_curves_arrange(struct cm_curves *curves, const char *only, bool log_scale,
                       struct cm_arena *arena, struct cm_curve_picture *out);
/* All curves, each with the one of the same name after "val_" or "validation_". */
void cm_curves_arrange_each(struct cm_curves *curves, bool log_scale, struct cm_arena *arena,
                            struct cm_curve_picture *out);

void cm_curve_write_svg(struct cm_printer *to, struct cm_arena *scratch,
                        const struct cm_curve_picture *picture);

/* All of a picture, each after a line with its name and its first and last number. */
void cm_curve_write_text(struct cm_printer *to, struct cm_arena *scratch,
                         const struct cm_curve_picture *picture, int columns, int rows,
                         bool braille);

#endif
