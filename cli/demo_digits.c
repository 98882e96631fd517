/* Digits as strokes, bent, turned and smudged by chance, then drawn into small grey images. */
// SPDX-License-Identifier: Apache-2.0
#include "demo_digits.h"

#include <math.h>
#include <string.h>

/* ---- chance ---- */

/* SplitMix64: a few lines, and good enough for handwriting. */
struct chance {
    uint64_t state;
};

static uint64_t draw_bits(struct chance *chance)
{
    uint64_t x = chance->state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static double between(struct chance *chance, double low, double high)
{
    return low + (high - low) * (double)(draw_bits(chance) >> 11) * 0x1p-53;
}

/* About normal: the sum of four has tails enough for noise. */
static double around(struct chance *chance, double spread)
{
    double sum = 0;

    for (int i = 0; i < 4; i++)
        sum += between(chance, -1, 1);
    return sum * spread * 0.866;
}

/* ---- the strokes ---- */

struct point {
    double x, y; /* 0 to 1, y down */
};

enum { POINTS_MAX = 13, STROKES_MAX = 2 };

struct stroke {
    int count;
    bool curved; /* a smooth line through the points; else straight from one to the next */
    struct point points[POINTS_MAX];
};

struct glyph {
    int digit;
    struct stroke strokes[STROKES_MAX];
};

/* Some digits are written in more than one way. */
/* clang-format off */
static const struct glyph glyphs[] = {
    {0, {{9, true, {{.5,.02},{.17,.18},{.1,.5},{.17,.82},{.5,.98},{.83,.82},{.9,.5},{.83,.18},{.5,.02}}}}},
    {0, {{7, true, {{.62,.03},{.25,.15},{.14,.55},{.36,.97},{.75,.85},{.88,.4},{.55,.02}}}}},
    {1, {{3, false, {{.3,.22},{.55,.02},{.55,.98}}}}},
    {1, {{3, false, {{.3,.2},{.52,.02},{.52,.98}}}, {2, false, {{.25,.98},{.8,.98}}}}},
    {1, {{2, false, {{.55,.02},{.48,.98}}}}},
    {2, {{7, true, {{.15,.27},{.3,.06},{.65,.03},{.84,.25},{.7,.52},{.4,.76},{.12,.98}}},
         {2, false, {{.12,.98},{.9,.98}}}}},
    {2, {{9, true, {{.16,.22},{.4,.02},{.76,.1},{.78,.4},{.5,.75},{.2,.95},{.16,.82},{.4,.84},{.9,.96}}}}},
    {3, {{5, true, {{.15,.12},{.45,.0},{.8,.13},{.76,.38},{.42,.47}}},
         {5, true, {{.42,.47},{.82,.58},{.85,.86},{.5,1.},{.12,.87}}}}},
    {3, {{3, false, {{.15,.03},{.82,.03},{.42,.42}}},
         {5, true, {{.42,.42},{.83,.55},{.84,.86},{.48,1.},{.12,.88}}}}},
    {4, {{4, false, {{.64,.98},{.64,.02},{.1,.68},{.92,.68}}}}},
    {4, {{3, false, {{.22,.05},{.14,.55},{.88,.55}}}, {2, false, {{.76,.08},{.68,.98}}}}},
    {5, {{3, false, {{.82,.03},{.26,.03},{.2,.46}}},
         {6, true, {{.2,.46},{.5,.36},{.85,.54},{.82,.86},{.5,1.},{.12,.88}}}}},
    {6, {{9, true, {{.76,.05},{.4,.2},{.17,.55},{.2,.85},{.5,1.},{.82,.86},{.82,.62},{.5,.5},{.2,.68}}}}},
    {7, {{3, false, {{.1,.03},{.9,.03},{.4,.98}}}}},
    {7, {{3, false, {{.1,.05},{.88,.03},{.42,.98}}}, {2, false, {{.3,.5},{.82,.48}}}}},
    {8, {{13, true, {{.5,.47},{.18,.3},{.25,.06},{.5,.0},{.75,.06},{.82,.3},{.5,.47},{.12,.68},
                     {.2,.94},{.5,1.},{.8,.94},{.88,.68},{.5,.47}}}}},
    {9, {{9, true, {{.82,.32},{.5,.5},{.18,.38},{.18,.15},{.5,.0},{.8,.12},{.83,.4},{.73,.75},{.5,1.}}}}},
    {9, {{7, true, {{.8,.2},{.45,.0},{.16,.22},{.3,.48},{.6,.46},{.8,.2},{.8,.1}}},
         {2, false, {{.81,.1},{.74,.98}}}}},
};
/* clang-format on */

enum { GLYPHS = sizeof glyphs / sizeof *glyphs, PIECES = 6 /* of a curve between two points */ };

/* ---- a hand ---- */

/* How this one sample is written. */
struct hand {
    double width, height, turn, slant, left, top; /* of the whole digit, in pixels and radians */
    double wave, phase;                           /* a bend along the height */
    double pen, ink;
};

static struct hand pick_hand(struct chance *chance)
{
    const double size = between(chance, 0.58, 0.8) * DEMO_SIDE;

    return (struct hand){
        .height = size,
        .width = size * between(chance, 0.5, 0.82),
        .turn = around(chance, 0.11),
        .slant = around(chance, 0.13),
        .left = DEMO_SIDE / 2.0 + between(chance, -1.6, 1.6),
        .top = DEMO_SIDE / 2.0 + between(chance, -1.6, 1.6),
        .wave = around(chance, 0.25),
        .phase = between(chance, 0, 6.283),
        .pen = between(chance, 0.55, 1.15),
        .ink = between(chance, 0.65, 1),
    };
}

static struct point place(const struct hand *hand, struct point p)
{
    const double y = (p.y - 0.5) * hand->height;
    const double x =
        (p.x - 0.5) * hand->width - hand->slant * y + hand->wave * sin(hand->phase + 3 * p.y);

    return (struct point){hand->left + x * cos(hand->turn) - y * sin(hand->turn),
                          hand->top + x * sin(hand->turn) + y * cos(hand->turn)};
}

static double distance(struct point p, struct point a, struct point b)
{
    const double dx = b.x - a.x, dy = b.y - a.y, square = dx * dx + dy * dy;
    double t = square > 0 ? ((p.x - a.x) * dx + (p.y - a.y) * dy) / square : 0;

    t = t < 0 ? 0 : t > 1 ? 1 : t;
    return hypot(p.x - a.x - t * dx, p.y - a.y - t * dy);
}

static int clamp_pixel(double at)
{
    return at < 0 ? 0 : at > DEMO_SIDE - 1 ? DEMO_SIDE - 1 : (int)at;
}

/* Ink where the pen passed, grey at its edge. */
static void draw_piece(float *image, const struct hand *hand, struct point a, struct point b)
{
    const double reach = hand->pen + 1;
    const int x0 = clamp_pixel(fmin(a.x, b.x) - reach), x1 = clamp_pixel(fmax(a.x, b.x) + reach);
    const int y0 = clamp_pixel(fmin(a.y, b.y) - reach), y1 = clamp_pixel(fmax(a.y, b.y) + reach);

    for (int y = y0; y <= y1; y++)
        for (int x = x0; x <= x1; x++) {
            const double off = distance((struct point){x + 0.5, y + 0.5}, a, b) - hand->pen;
            const double cover = off < -0.5 ? 1 : off > 0.5 ? 0 : 0.5 - off;
            float *pixel = &image[y * DEMO_SIDE + x];

            *pixel = fmaxf(*pixel, (float)(cover * hand->ink));
        }
}

/* Between b and c, on a smooth line that comes from a and goes to d. */
static struct point on_curve(struct point a, struct point b, struct point c, struct point d,
                             double t)
{
    const double w[] = {((2 - t) * t - 1) * t / 2, ((3 * t - 5) * t * t + 2) / 2,
                        ((4 - 3 * t) * t + 1) * t / 2, (t - 1) * t * t / 2};

    return (struct point){w[0] * a.x + w[1] * b.x + w[2] * c.x + w[3] * d.x,
                          w[0] * a.y + w[1] * b.y + w[2] * c.y + w[3] * d.y};
}

static void draw_stroke(float *image, const struct hand *hand, const struct stroke *stroke,
                        const struct point *points)
{
    for (int i = 0; i + 1 < stroke->count; i++) {
        const struct point before = points[i > 0 ? i - 1 : i];
        const struct point after = points[i + 2 < stroke->count ? i + 2 : i + 1];
        struct point last = place(hand, points[i]);

        for (int k = 1; k <= PIECES; k++) {
            const double t = (double)k / PIECES;
            const struct point at =
                stroke->curved ? on_curve(before, points[i], points[i + 1], after, t)
                               : (struct point){points[i].x + (points[i + 1].x - points[i].x) * t,
                                                points[i].y + (points[i + 1].y - points[i].y) * t};
            const struct point next = place(hand, at);

            draw_piece(image, hand, last, next);
            last = next;
        }
    }
}

/* Strokes that begin where another ended stay together: a point's tremble follows from where it is.
 */
static void draw_glyph(float *image, struct chance *chance, const struct glyph *glyph)
{
    const struct hand hand = pick_hand(chance);
    struct point held = {-1, -1}, held_at = {0, 0};

    for (int s = 0; s < STROKES_MAX; s++) {
        const struct stroke *stroke = &glyph->strokes[s];
        struct point points[POINTS_MAX];

        for (int i = 0; i < stroke->count; i++) {
            const struct point p = stroke->points[i];
            const bool again = p.x == held.x && p.y == held.y;

            points[i] =
                again ? held_at
                      : (struct point){p.x + around(chance, 0.045), p.y + around(chance, 0.035)};
            held = p;
            held_at = points[i];
        }
        draw_stroke(image, &hand, stroke, points);
    }
}

/* Paper is never quite white, nor evenly so. */
static void add_noise(float *image, struct chance *chance)
{
    const double grain = between(chance, 0.03, 0.13), tint = between(chance, 0, 0.1);

    for (int i = 0; i < DEMO_PIXELS; i++) {
        const double value = image[i] + (1 - image[i]) * tint + around(chance, grain);
        image[i] = (float)(value < 0 ? 0 : value > 1 ? 1 : value);
    }
}

static void draw_digit(float *image, int digit, struct chance *chance)
{
    int ways[GLYPHS], n = 0;

    for (int i = 0; i < GLYPHS; i++)
        if (glyphs[i].digit == digit)
            ways[n++] = i;
    const int way = ways[draw_bits(chance) % (uint64_t)n];
    memset(image, 0, DEMO_PIXELS * sizeof *image);
    draw_glyph(image, chance, &glyphs[way]);
    add_noise(image, chance);
}

/* ---- the set ---- */

static void shuffle_labels(int64_t *labels, int64_t count, struct chance *chance)
{
    for (int64_t i = 0; i < count; i++)
        labels[i] = i % 10;
    for (int64_t i = count - 1; i > 0; i--) {
        const int64_t other = (int64_t)(draw_bits(chance) % (uint64_t)(i + 1));
        const int64_t held = labels[i];

        labels[i] = labels[other];
        labels[other] = held;
    }
}

enum cameo_status demo_digits_make(struct demo_digits *digits, int64_t count, uint64_t seed,
                                   struct cameo_error *err)
{
    const int64_t dims[] = {count, 1, DEMO_SIDE, DEMO_SIDE};
    struct chance chance = {seed};

    *digits = (struct demo_digits){0};
    enum cameo_status status = cameo_value_new(CAMEO_FLOAT, 4, dims, &digits->images, err);
    if (status == CAMEO_OK)
        status = cameo_value_new(CAMEO_INT64, 1, dims, &digits->labels, err);
    if (status != CAMEO_OK) {
        demo_digits_free(digits);
        return status;
    }
    chance.state = draw_bits(&chance); /* neighbouring seeds begin far apart */
    float *images = cameo_value_mutable_data(digits->images);
    int64_t *labels = cameo_value_mutable_data(digits->labels);
    shuffle_labels(labels, count, &chance);
    for (int64_t i = 0; i < count; i++)
        draw_digit(images + i * DEMO_PIXELS, (int)labels[i], &chance);
    return CAMEO_OK;
}

void demo_digits_free(struct demo_digits *digits)
{
    cameo_value_free(digits->images);
    cameo_value_free(digits->labels);
    *digits = (struct demo_digits){0};
}

enum cameo_status demo_digits_save(const struct demo_digits *digits, const char *path,
                                   const char *images, const char *labels, struct cameo_error *err)
{
    const struct cameo_value *const values[] = {digits->images, digits->labels};
    const char *const names[] = {images, labels};

    return cameo_arrays_save(path, names, values, 2, err);
}

/* ---- in a terminal ---- */

/* Two pixels, one above the other, in one character. */
static void put_pair(FILE *to, float above, float below, bool unicode)
{
    static const char shades[] = " .:-=+*#%@";
    const float mean = (above + below) / 2;

    if (!unicode) {
        fputc(shades[(int)(mean * 9.99F)], to);
        return;
    }
    const bool high = above > 0.45F, low = below > 0.45F;
    fputs(high && low ? "█" : high ? "▀" : low ? "▄" : mean > 0.22F ? "░" : " ", to);
}

void demo_digits_print(FILE *to, const float *const *images, int count, int indent, bool unicode)
{
    for (int y = 0; y < DEMO_SIDE; y += 2) {
        fprintf(to, "%*s", indent, "");
        for (int i = 0; i < count; i++) {
            const float *row = images[i] + y * DEMO_SIDE;

            for (int x = 0; x < DEMO_SIDE; x++)
                put_pair(to, row[x], row[x + DEMO_SIDE], unicode);
            if (i + 1 < count)
                fputc(' ', to);
        }
        fputc('\n', to);
    }
}

void demo_digit_print(FILE *to, const float *image, int indent, bool unicode)
{
    demo_digits_print(to, &image, 1, indent, unicode);
}
