/* Curves as an SVG picture: panels one above the other, each with axes, grid and legend. */
// SPDX-License-Identifier: Apache-2.0
#include "draw/curve.h"

#include <math.h>

enum {
    WIDTH = 900,
    PANEL = 320, /* height, axes included */
    TOP = 56,
    LEFT = 78,
    RIGHT = 24,
    ABOVE = 26, /* within a panel, before the plot */
    BELOW = 44,
    POINTS_MAX = 1500, /* of a line; more are cut down to what can be seen */
    X_TICKS = 8,
    Y_TICKS = 6,
};

/* Told apart by colour-blind people too (after Okabe and Ito). */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#e69f00", "#56b4e9", "#8c510a", "#444444"};

/* From numbers to places on the paper. */
struct frame {
    double x0, x1, y0, y1; /* the plot: y0 is its lower edge */
    struct cm_curve_range x, y;
    bool log_scale; /* y holds logarithms */
};

static double place_x(const struct frame *frame, double x)
{
    return frame->x0 +
           (x - frame->x.low) / (frame->x.high - frame->x.low) * (frame->x1 - frame->x0);
}

static double place_y(const struct frame *frame, double y)
{
    if (frame->log_scale)
        y = y > 0 ? log10(y) : frame->y.low;
    return frame->y0 -
           (y - frame->y.low) / (frame->y.high - frame->y.low) * (frame->y0 - frame->y1);
}

static void put_escaped(struct cm_printer *to, const char *text)
{
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;

        if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'')
            cm_put_format(to, "&#%d;", c);
        else
            cm_put(to, c < 32 ? "?" : text, 1);
    }
}

/* A range that is one number, or none, is given some room. */
static struct cm_curve_range widen(struct cm_curve_range range, double share)
{
    if (range.low > range.high)
        return (struct cm_curve_range){0, 1};
    double room = (range.high - range.low) * share;
    if (range.high == range.low)
        room = range.high != 0 ? fabs(range.high) * 0.1 : 1;
    return (struct cm_curve_range){range.low - room, range.high + room};
}

static double window_of(const struct cm_curve_picture *drawing, const struct cm_curve *curve)
{
    if (curve->sparse || curve->exact || drawing->window < 0)
        return 0;
    return drawing->window > 0 ? drawing->window : (double)curve->x.count / 40;
}

/* What must be seen of a noisy curve: all but its rarest peaks, which would press the rest flat. */
static struct cm_curve_range visible(const struct cm_curve *curve, struct cm_curve_range range)
{
    double mean = 0, spread = 0;
    const size_t n = curve->x.count, tail = n / 20;

    if (curve->sparse || n < 100)
        return cm_curve_span(curve->y.items, n, range);
    for (size_t i = tail; i < n; i++)
        mean += curve->y.items[i] / (double)(n - tail);
    for (size_t i = tail; i < n; i++)
        spread += (curve->y.items[i] - mean) * (curve->y.items[i] - mean) / (double)(n - tail);
    const double most = mean + 6 * sqrt(spread);
    for (size_t i = 0; i < n; i++)
        if (curve->y.items[i] <= most || i < tail)
            range = cm_curve_span(&curve->y.items[i], 1, range);
    return range;
}

static struct cm_curve_range log_range(const struct cm_curve_panel *panel)
{
    struct cm_curve_range range = cm_curve_nothing;

    for (size_t i = 0; i < panel->curves.count; i++)
        for (size_t k = 0; k < panel->curves.items[i]->x.count; k++)
            if (panel->curves.items[i]->y.items[k] > 0) {
                const double value = log10(panel->curves.items[i]->y.items[k]);
                range = cm_curve_span(&value, 1, range);
            }
    return range;
}

static struct frame make_frame(const struct cm_curve_panel *panel, struct cm_curve_range steps,
                               double top)
{
    struct frame frame = {LEFT,  WIDTH - RIGHT, top + PANEL - BELOW, top + ABOVE,
                          steps, {0, 1},        panel->log_scale};
    struct cm_curve_range range = cm_curve_nothing;

    if (panel->log_scale)
        range = log_range(panel);
    for (size_t i = 0; !panel->log_scale && i < panel->curves.count; i++)
        range = visible(panel->curves.items[i], range);
    frame.y = widen(range, 0.06);
    /* A curve that comes close to zero is seen above zero. */
    if (!panel->log_scale && range.low >= 0 && range.low < 0.35 * range.high)
        frame.y.low = 0;
    return frame;
}

/* ---- axes ---- */

static void put_label(struct cm_printer *to, double x, double y, const char *anchor,
                      const char *text)
{
    cm_put_format(to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor,
                  text);
}

static void put_grid_line(struct cm_printer *to, double x0, double y0, double x1, double y1)
{
    cm_put_format(to, "<path class=\"grid\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", x0, y0, x1, y1);
}

static void put_y_tick(struct cm_printer *to, const struct frame *frame, double value,
                       const char *label)
{
    const double y = place_y(frame, value);

    put_grid_line(to, frame->x0, y, frame->x1, y);
    put_label(to, frame->x0 - 8, y + 4, "end", label);
}

/* Powers of ten, and 2 and 5 times them where those are few. */
static void put_log_ticks(struct cm_printer *to, const struct frame *frame)
{
    const bool fine = frame->y.high - frame->y.low < 2.5;
    static const int parts[] = {1, 2, 5};
    char label[40];

    for (int power = (int)floor(frame->y.low); power <= (int)ceil(frame->y.high); power++)
        for (size_t i = 0; i < (fine ? 3 : 1); i++) {
            const double value = parts[i] * pow(10, power), at = log10(value);

            if (at < frame->y.low || at > frame->y.high)
                continue;
            cm_format(label, sizeof label, "%g", value);
            put_y_tick(to, frame, value, label);
        }
}

static void put_axes(struct cm_printer *to, const struct frame *frame)
{
    double first, step;
    char label[40];

    if (frame->log_scale) {
        put_log_ticks(to, frame);
    } else {
        step = cm_curve_ticks(frame->y.low, frame->y.high, Y_TICKS, &first);
        for (int i = 0; first + i * step <= frame->y.high + step * 1e-9; i++) {
            cm_curve_label(first + i * step, step, label, sizeof label);
            put_y_tick(to, frame, first + i * step, label);
        }
    }
    step = cm_curve_ticks(frame->x.low, frame->x.high, X_TICKS, &first);
    for (int i = 0; first + i * step <= frame->x.high + step * 1e-9; i++) {
        const double x = place_x(frame, first + i * step);

        cm_curve_label(first + i * step, step, label, sizeof label);
        put_grid_line(to, x, frame->y0, x, frame->y1);
        put_label(to, x, frame->y0 + 18, "middle", label);
    }
    cm_put_format(to, "<path class=\"axis\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n", frame->x0, frame->y1,
                  frame->y0, frame->x1);
}

/* ---- curves ---- */

/* As a path. If there are many points, each stretch of them is drawn as its lowest and its highest
 * point: that looks the same. */
static void put_path(struct cm_printer *to, const struct frame *frame, const double *x,
                     const double *y, size_t count, const char *style)
{
    const size_t stretch = (count + POINTS_MAX / 2 - 1) / (POINTS_MAX / 2);
    char command = 'M';

    cm_put_format(to, "<path %s d=\"", style);
    for (size_t begin = 0; begin < count; begin += stretch) {
        size_t low = begin, high = begin;

        for (size_t i = begin; i < count && i < begin + stretch; i++) {
            low = y[i] < y[low] ? i : low;
            high = y[i] > y[high] ? i : high;
        }
        const size_t ends[] = {low < high ? low : high, low < high ? high : low};
        for (size_t i = 0; i < (low == high ? 1 : 2); i++, command = 'L')
            cm_put_format(to, "%c%.1f %.1f", command, place_x(frame, x[ends[i]]),
                          place_y(frame, y[ends[i]]));
    }
    cm_put_text(to, "\"/>\n");
}

static void put_curve(struct cm_printer *to, struct cm_arena *scratch, const struct frame *frame,
                      const struct cm_curve *curve, double window, const char *colour)
{
    char style[160];

    if (curve->x.count == 0)
        return;
    if (window > 1.5) {
        double *smooth = CM_NEW_ARRAY(scratch, double, curve->x.count);

        cm_curve_smooth(curve, window, smooth);
        snprintf(style, sizeof style, "stroke=\"%s\" stroke-width=\"1\" stroke-opacity=\"0.22\"",
                 colour);
        put_path(to, frame, curve->x.items, curve->y.items, curve->x.count, style);
        snprintf(style, sizeof style, "stroke=\"%s\" stroke-width=\"2\"", colour);
        put_path(to, frame, curve->x.items, smooth, curve->x.count, style);
        cm_arena_reset(scratch);
        return;
    }
    snprintf(style, sizeof style, "stroke=\"%s\" stroke-width=\"%s\"", colour,
             curve->sparse ? "1.5" : "2");
    put_path(to, frame, curve->x.items, curve->y.items, curve->x.count, style);
    const size_t every = curve->x.count / 200 + 1;
    for (size_t i = 0; (curve->sparse || curve->x.count == 1) && i < curve->x.count; i += every)
        cm_put_format(to,
                      "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.2\" fill=\"%s\" stroke=\"#fff\" "
                      "stroke-width=\"1\"/>\n",
                      place_x(frame, curve->x.items[i]), place_y(frame, curve->y.items[i]), colour);
}

/* In the corner where curves that fall, or rise, leave room. */
static void put_legend(struct cm_printer *to, const struct frame *frame,
                       const struct cm_curve_panel *panel)
{
    size_t longest = 0;
    bool falls = true;

    for (size_t i = 0; i < panel->curves.count; i++) {
        const struct cm_curve *curve = panel->curves.items[i];
        char label[40];

        cm_format(label, sizeof label, "%.4g",
                  curve->x.count ? curve->y.items[curve->x.count - 1] : 0);
        const size_t length = curve->name.size + strlen(label) + 2;
        longest = length > longest ? length : longest;
        falls = falls && curve->x.count && curve->y.items[curve->x.count - 1] <= curve->y.items[0];
    }
    const double width = 44 + 6.9 * (double)longest, height = 18 * (double)panel->curves.count + 10;
    const double x = frame->x1 - width - 8;
    double y = falls ? frame->y1 + 8 : frame->y0 - height - 8;
    cm_put_format(
        to,
        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"4\" fill=\"#fff\" "
        "fill-opacity=\"0.85\" stroke=\"#ddd\"/>\n",
        x, y, width, height);
    for (size_t i = 0; i < panel->curves.count; i++, y += 18) {
        const struct cm_curve *curve = panel->curves.items[i];
        const char *colour = colours[i % (sizeof colours / sizeof *colours)];

        cm_put_format(to, "<path stroke=\"%s\" stroke-width=\"2.5\" d=\"M%.1f %.1fh20\"/>\n",
                      colour, x + 8, y + 14);
        if (curve->sparse)
            cm_put_format(to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.2\" fill=\"%s\"/>\n", x + 18,
                          y + 14, colour);
        cm_put_format(to, "<text x=\"%.1f\" y=\"%.1f\">", x + 34, y + 18);
        put_escaped(to, cm_str_text(curve->name));
        if (curve->x.count)
            cm_put_format(to, "  <tspan fill=\"#888\">%.4g</tspan>",
                          curve->y.items[curve->x.count - 1]);
        cm_put_text(to, "</text>\n");
    }
}

static void put_panel(struct cm_printer *to, struct cm_arena *scratch,
                      const struct cm_curve_picture *drawing, size_t which,
                      struct cm_curve_range steps)
{
    const struct cm_curve_panel *panel = &drawing->panels.items[which];
    const struct frame frame = make_frame(panel, steps, TOP + PANEL * (double)which);

    cm_put_format(to,
                  "<clipPath id=\"p%zu\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                  "height=\"%.1f\"/></clipPath>\n",
                  which, frame.x0 - 4, frame.y1 - 4, frame.x1 - frame.x0 + 8,
                  frame.y0 - frame.y1 + 8);
    cm_put_format(to, "<text class=\"panel\" x=\"%.1f\" y=\"%.1f\">", frame.x0, frame.y1 - 9);
    put_escaped(to, panel->title);
    cm_put_text(to, "</text>\n");
    put_axes(to, &frame);
    cm_put_format(to, "<g clip-path=\"url(#p%zu)\">\n", which);
    for (size_t i = 0; i < panel->curves.count; i++)
        put_curve(to, scratch, &frame, panel->curves.items[i],
                  window_of(drawing, panel->curves.items[i]),
                  colours[i % (sizeof colours / sizeof *colours)]);
    cm_put_text(to, "</g>\n");
    put_legend(to, &frame, panel);
    if (which + 1 == drawing->panels.count)
        put_label(to, (frame.x0 + frame.x1) / 2, frame.y0 + 36, "middle", drawing->steps);
}

void cm_curve_write_svg(struct cm_printer *to, struct cm_arena *scratch,
                        const struct cm_curve_picture *drawing)
{
    const size_t height = TOP + PANEL * drawing->panels.count + 8;
    struct cm_curve_range steps = cm_curve_nothing;

    for (size_t i = 0; i < drawing->panels.count; i++)
        for (size_t k = 0; k < drawing->panels.items[i].curves.count; k++)
            steps = cm_curve_span(drawing->panels.items[i].curves.items[k]->x.items,
                                  drawing->panels.items[i].curves.items[k]->x.count, steps);
    if (steps.low > 0 && steps.low < 0.1 * steps.high)
        steps.low = 0;
    steps = steps.low < steps.high ? steps : widen(steps, 0);
    cm_put_format(
        to,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%zu\" "
        "viewBox=\"0 0 %d %zu\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\" "
        "fill=\"#333\">\n"
        "<style>path{fill:none;stroke-linejoin:round}.grid{stroke:#e8e8e8}"
        ".axis{stroke:#888}.panel{font-size:13px;font-weight:bold}</style>\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
        "<text x=\"%d\" y=\"30\" font-size=\"17\" font-weight=\"bold\">",
        WIDTH, height, WIDTH, height, LEFT);
    put_escaped(to, drawing->title);
    cm_put_text(to, "</text>\n");
    for (size_t i = 0; i < drawing->panels.count; i++)
        put_panel(to, scratch, drawing, i, steps);
    cm_put_text(to, "</svg>\n");
}
