/* A layered layout: vertices get ranks, long edges bends, ranks an order with few crossings, and
 * then each its place. Every step takes time linear in vertices and bends, but for sorting. */
// SPDX-License-Identifier: Apache-2.0
#include "draw/drawing.h"

#include "base/printable.h"

#include <math.h>

enum {
    ORDER_SWEEPS = 16,
    PLACE_SWEEPS = 32,
    RANK_GAP = 40,
    GAP = 22,
    BEND_GAP = 14,
    MARGIN = 24,
    BENDS_MAX = 400000
};

/* A vertex, or a bend of an edge: what has a place in a rank. */
struct point {
    int rank;
    size_t position; /* in its rank */
    double x, half;  /* half of the room it takes */
    double key;      /* where it would like to be */
    bool is_bend;
};

/* Neighbours of points in the rank above or below, those of one point together. */
struct links {
    size_t *first, *items;
};

struct layout {
    struct cm_arena *arena, *scratch;
    struct cm_draw_panel *panel;
    struct point *points; /* vertices, then bends */
    size_t count;
    struct links up, down;
    int rank_count;
    size_t *rank_first; /* of order; one more at the end */
    size_t *tree;       /* see count_crossings */
    size_t *order;      /* points, rank by rank */
};

/* ---- ranks ---- */

/* Vertices come in the order in which they run: an edge to an earlier one is turned round. */
static void set_ranks(struct layout *l)
{
    struct cm_draw_panel *panel = l->panel;
    const size_t n = panel->vertices.count;
    int *earliest = CM_NEW_ARRAY(l->scratch, int, n + 1); /* of what reads a vertex */
    bool *is_read = CM_NEW_ARRAY(l->scratch, bool, n + 1),
         *reads = CM_NEW_ARRAY(l->scratch, bool, n + 1);
    size_t *first = CM_NEW_ARRAY(l->scratch, size_t, n + 2);
    size_t *by_target = CM_NEW_ARRAY(l->scratch, size_t, panel->edges.count + 1);

    for (size_t e = 0; e < panel->edges.count; e++) {
        struct cm_draw_edge *edge = &panel->edges.items[e];
        if (edge->from > edge->to) {
            const size_t from = edge->from;
            edge->from = edge->to;
            edge->to = from;
        }
        first[edge->to + 1]++;
    }
    for (size_t v = 0; v < n; v++)
        first[v + 1] += first[v];
    for (size_t e = 0; e < panel->edges.count; e++)
        by_target[first[panel->edges.items[e].to]++] = e;
    for (size_t v = 0, at = 0; v < n; v++)
        for (; at < first[v]; at++) {
            const struct cm_draw_vertex *from =
                &panel->vertices.items[panel->edges.items[by_target[at]].from];
            reads[v] = true;
            if (panel->vertices.items[v].rank <= from->rank)
                panel->vertices.items[v].rank = from->rank + 1;
        }
    /* What reads nothing stands right above its first reader. */
    for (size_t e = 0; e < panel->edges.count; e++) {
        const size_t from = panel->edges.items[e].from;
        const int rank = panel->vertices.items[panel->edges.items[e].to].rank;
        if (!is_read[from] || rank < earliest[from])
            earliest[from] = rank;
        is_read[from] = true;
    }
    for (size_t v = 0; v < n; v++)
        if (!reads[v] && is_read[v])
            panel->vertices.items[v].rank = earliest[v] - 1;
}

/* Bends where edges pass ranks; where that would be too many, long edges go straight. */
static void add_bends(struct layout *l)
{
    struct cm_draw_panel *panel = l->panel;
    size_t all = 0;

    for (size_t e = 0; e < panel->edges.count; e++) {
        struct cm_draw_edge *edge = &panel->edges.items[e];
        const int span =
            panel->vertices.items[edge->to].rank - panel->vertices.items[edge->from].rank;

        edge->first_bend = all;
        edge->bend_count = span > 1 && all + (size_t)span < BENDS_MAX ? (size_t)span - 1 : 0;
        all += edge->bend_count;
    }
    panel->bends = CM_NEW_ARRAY(l->arena, struct cm_draw_bend, all + 1);
}

/* ---- points and links ---- */

static size_t step_of(const struct layout *l, const struct cm_draw_edge *edge, size_t i)
{
    return i == 0                 ? edge->from
           : i > edge->bend_count ? edge->to
                                  : l->panel->vertices.count + edge->first_bend + i - 1;
}

static void link_points(struct layout *l)
{
    const struct cm_draw_panel *panel = l->panel;
    size_t all = 0;

    l->up.first = CM_NEW_ARRAY(l->scratch, size_t, l->count + 2);
    l->down.first = CM_NEW_ARRAY(l->scratch, size_t, l->count + 2);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t e = 0; e < panel->edges.count; e++)
            for (size_t i = 0; i <= panel->edges.items[e].bend_count; i++) {
                const size_t a = step_of(l, &panel->edges.items[e], i);
                const size_t b = step_of(l, &panel->edges.items[e], i + 1);
                if (l->points[b].rank != l->points[a].rank + 1)
                    continue; /* a long edge that goes straight */
                if (pass) {
                    l->down.items[l->down.first[a]++] = b;
                    l->up.items[l->up.first[b]++] = a;
                } else {
                    l->down.first[a + 1]++;
                    l->up.first[b + 1]++;
                    all++;
                }
            }
        if (pass)
            break;
        for (size_t p = 0; p < l->count; p++) {
            l->down.first[p + 1] += l->down.first[p];
            l->up.first[p + 1] += l->up.first[p];
        }
        l->down.items = CM_NEW_ARRAY(l->scratch, size_t, all + 1);
        l->up.items = CM_NEW_ARRAY(l->scratch, size_t, all + 1);
    }
    for (size_t p = l->count; p > 0; p--) { /* filling moved each to the next one's first */
        l->down.first[p] = l->down.first[p - 1];
        l->up.first[p] = l->up.first[p - 1];
    }
    l->down.first[0] = l->up.first[0] = 0;
}

static void make_points(struct layout *l)
{
    struct cm_draw_panel *panel = l->panel;
    size_t bends = 0;

    for (size_t e = 0; e < panel->edges.count; e++)
        bends += panel->edges.items[e].bend_count;
    l->count = panel->vertices.count + bends;
    l->points = CM_NEW_ARRAY(l->scratch, struct point, l->count + 1);
    for (size_t v = 0; v < panel->vertices.count; v++) {
        l->points[v] = (struct point){.rank = panel->vertices.items[v].rank,
                                      .half = panel->vertices.items[v].room / 2};
        if (panel->vertices.items[v].rank >= l->rank_count)
            l->rank_count = panel->vertices.items[v].rank + 1;
    }
    for (size_t e = 0; e < panel->edges.count; e++)
        for (size_t i = 0; i < panel->edges.items[e].bend_count; i++)
            l->points[step_of(l, &panel->edges.items[e], i + 1)] = (struct point){
                .rank = panel->vertices.items[panel->edges.items[e].from].rank + 1 + (int)i,
                .is_bend = true};
    link_points(l);
}

/* ---- order in ranks ---- */

/* First as a walk from the top meets them: neighbours come out side by side. */
static void first_order(struct layout *l)
{
    size_t *next = CM_NEW_ARRAY(l->scratch, size_t, (size_t)l->rank_count + 1);
    size_t *stack = CM_NEW_ARRAY(l->scratch, size_t, l->count + 1);
    bool *met = CM_NEW_ARRAY(l->scratch, bool, l->count + 1);

    l->rank_first = CM_NEW_ARRAY(l->scratch, size_t, (size_t)l->rank_count + 2);
    l->order = CM_NEW_ARRAY(l->scratch, size_t, l->count + 1);
    for (size_t p = 0; p < l->count; p++)
        l->rank_first[l->points[p].rank + 1]++;
    for (int r = 0; r < l->rank_count; r++) {
        l->rank_first[r + 1] += l->rank_first[r];
        next[r] = l->rank_first[r];
    }
    for (size_t root = 0; root < l->count; root++) {
        size_t depth = 0;
        if (!met[root]) {
            met[root] = true;
            stack[depth++] = root;
        }
        while (depth) {
            const size_t p = stack[--depth];
            l->points[p].position = next[l->points[p].rank] - l->rank_first[l->points[p].rank];
            l->order[next[l->points[p].rank]++] = p;
            for (size_t i = l->down.first[p + 1]; i-- > l->down.first[p];)
                if (!met[l->down.items[i]]) {
                    met[l->down.items[i]] = true;
                    stack[depth++] = l->down.items[i];
                }
        }
    }
}

static _Thread_local const struct point *sorted_points; /* qsort takes no argument */

static int by_key(const void *a, const void *b)
{
    const struct point *x = &sorted_points[*(const size_t *)a];
    const struct point *y = &sorted_points[*(const size_t *)b];

    if (x->key != y->key)
        return (x->key > y->key) - (x->key < y->key);
    return (x->position > y->position) - (x->position < y->position);
}

static void sort_rank(struct layout *l, int rank, const struct links *links)
{
    const size_t from = l->rank_first[rank], to = l->rank_first[rank + 1];

    for (size_t i = from; i < to; i++) {
        struct point *p = &l->points[l->order[i]];
        const size_t a = links->first[l->order[i]], b = links->first[l->order[i] + 1];
        double sum = 0;

        for (size_t k = a; k < b; k++)
            sum += (double)l->points[links->items[k]].position;
        p->key = b > a ? sum / (double)(b - a) : (double)p->position;
    }
    sorted_points = l->points;
    qsort(l->order + from, to - from, sizeof *l->order, by_key);
    for (size_t i = from; i < to; i++)
        l->points[l->order[i]].position = i - from;
}

/* Crossings between a rank and the one below: inversions of the positions that edges end at. */
static size_t count_crossings(const struct layout *l)
{
    size_t crossings = 0, *tree = l->tree;

    for (int r = 0; r + 1 < l->rank_count; r++) {
        size_t seen = 0;
        const size_t below = l->rank_first[r + 2] - l->rank_first[r + 1];
        memset(tree, 0, (below + 2) * sizeof *tree);
        for (size_t i = l->rank_first[r]; i < l->rank_first[r + 1]; i++) {
            const size_t p = l->order[i];
            for (size_t k = l->down.first[p]; k < l->down.first[p + 1]; k++) {
                size_t not_right = 0;
                for (size_t at = l->points[l->down.items[k]].position + 1; at; at &= at - 1)
                    not_right += tree[at];
                crossings += seen - not_right;
            }
            for (size_t k = l->down.first[p]; k < l->down.first[p + 1]; k++, seen++)
                for (size_t at = l->points[l->down.items[k]].position + 1; at <= below;
                     at += at & (~at + 1))
                    tree[at]++;
        }
    }
    return crossings;
}

static void order_ranks(struct layout *l)
{
    size_t *best = CM_NEW_ARRAY(l->scratch, size_t, l->count + 1);
    size_t least = SIZE_MAX, widest = 1;

    first_order(l);
    for (int r = 0; r < l->rank_count; r++)
        if (l->rank_first[r + 1] - l->rank_first[r] > widest)
            widest = l->rank_first[r + 1] - l->rank_first[r];
    l->tree = CM_NEW_ARRAY(l->scratch, size_t, widest + 2);
    for (int sweep = 0; sweep <= ORDER_SWEEPS; sweep++) {
        const size_t crossings = count_crossings(l);
        if (crossings < least) {
            least = crossings;
            memcpy(best, l->order, l->count * sizeof *best);
        }
        if (!crossings || sweep == ORDER_SWEEPS)
            break;
        if (sweep % 2 == 0)
            for (int r = 1; r < l->rank_count; r++)
                sort_rank(l, r, &l->up);
        else
            for (int r = l->rank_count - 1; r-- > 0;)
                sort_rank(l, r, &l->down);
    }
    memcpy(l->order, best, l->count * sizeof *best);
    for (int r = 0; r < l->rank_count; r++)
        for (size_t i = l->rank_first[r]; i < l->rank_first[r + 1]; i++)
            l->points[l->order[i]].position = i - l->rank_first[r];
}

/* ---- places ---- */

static double apart(const struct point *a, const struct point *b)
{
    return a->half + b->half + (a->is_bend && b->is_bend ? BEND_GAP : GAP);
}

/* A run of neighbours in a rank that stand as close as they may. */
struct block {
    double sum, weight; /* of where they would like to be, moved together */
    size_t first;
};

/* Puts the points of a rank as near as can be to where they would like to be, in their order and
 * apart: least squares, by joining neighbours that would come too close. */
static void place_rank(struct layout *l, int rank, const struct links *links, struct block *blocks,
                       double *offsets)
{
    const size_t from = l->rank_first[rank], count = l->rank_first[rank + 1] - from;
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        const size_t id = l->order[from + i];
        struct point *p = &l->points[id];
        double sum = 0, weight = 0;

        offsets[i] = i ? offsets[i - 1] + apart(&l->points[l->order[from + i - 1]], p) : 0;
        for (size_t k = links->first[id]; k < links->first[id + 1]; k++) {
            const struct point *q = &l->points[links->items[k]];
            /* Long edges are straight, and what nothing leads to does not pull the rest aside. */
            const size_t other = links->items[k];
            const bool leaf = links == &l->up && l->up.first[other] == l->up.first[other + 1];
            const double w = p->is_bend && q->is_bend   ? 30
                             : p->is_bend || q->is_bend ? 2
                             : leaf                     ? 0.1
                                                        : 1;
            sum += w * q->x;
            weight += w;
        }
        if (weight == 0) {
            weight = 0.01;
            sum = weight * p->x;
        }
        blocks[n++] = (struct block){sum - weight * offsets[i], weight, i};
        while (n > 1 && blocks[n - 2].sum * blocks[n - 1].weight >=
                            blocks[n - 1].sum * blocks[n - 2].weight) {
            blocks[n - 2].sum += blocks[n - 1].sum;
            blocks[n - 2].weight += blocks[n - 1].weight;
            n--;
        }
    }
    for (size_t b = 0; b < n; b++)
        for (size_t i = blocks[b].first; i < (b + 1 < n ? blocks[b + 1].first : count); i++)
            l->points[l->order[from + i]].x = blocks[b].sum / blocks[b].weight + offsets[i];
}

static void place_points(struct layout *l)
{
    struct block *blocks = CM_NEW_ARRAY(l->scratch, struct block, l->count + 1);
    double *offsets = CM_NEW_ARRAY(l->scratch, double, l->count + 1);

    for (int r = 0; r < l->rank_count; r++) {
        double x = 0;
        for (size_t i = l->rank_first[r]; i < l->rank_first[r + 1]; i++) {
            struct point *p = &l->points[l->order[i]];
            x += i > l->rank_first[r] ? apart(&l->points[l->order[i - 1]], p) : 0;
            p->x = x;
        }
        for (size_t i = l->rank_first[r]; i < l->rank_first[r + 1]; i++)
            l->points[l->order[i]].x -= x / 2;
    }
    for (int sweep = 0; sweep < PLACE_SWEEPS; sweep++)
        if (sweep % 2 == 0)
            for (int r = 1; r < l->rank_count; r++)
                place_rank(l, r, &l->up, blocks, offsets);
        else
            for (int r = l->rank_count - 1; r-- > 0;)
                place_rank(l, r, &l->down, blocks, offsets);
}

/* ---- all of it ---- */

/* Columns of a text that is shown with \xNN for each byte of a character that does not show. */
static size_t text_columns(struct cm_str text)
{
    size_t columns = 0;

    for (size_t at = 0; at < text.size;) {
        const struct cm_str rest = {text.data + at, text.size - at};
        const bool hidden = cm_str_unprintable(rest) > 0;
        const bool blank = rest.data[0] == '\n' || rest.data[0] == '\t';

        columns += !hidden ? 1 : blank ? 2 : 4;
        at += hidden ? 1 : cm_str_character(rest);
    }
    return columns;
}

static double text_width(const char *text, double size, double per)
{
    return (double)text_columns(cm_str(text)) * size * per;
}

static void measure(struct cm_draw_vertex *v)
{
    double width = text_width(v->title, 13, 0.6);

    for (int i = 0; i < v->line_count; i++)
        width = fmax(width, text_width(v->lines[i], 10.5, 0.56));
    v->width = fmax(width + 24, 56);
    v->height = 28 + 14 * v->line_count;
    v->room = fmax(v->width, 2 * (8 + text_width(v->label, 10, 0.56)));
}

static void take_places(struct layout *l)
{
    struct cm_draw_panel *panel = l->panel;
    double *tops = CM_NEW_ARRAY(l->scratch, double, (size_t)l->rank_count + 1);
    double *heights = CM_NEW_ARRAY(l->scratch, double, (size_t)l->rank_count + 1);
    double left = INFINITY, right = -INFINITY, y = MARGIN;

    for (size_t p = 0; p < l->count; p++) {
        left = fmin(left, l->points[p].x - l->points[p].half);
        right = fmax(right, l->points[p].x + l->points[p].half);
    }
    for (size_t v = 0; v < panel->vertices.count; v++)
        heights[panel->vertices.items[v].rank] =
            fmax(heights[panel->vertices.items[v].rank], panel->vertices.items[v].height);
    for (int r = 0; r < l->rank_count; r++) {
        tops[r] = y;
        y += heights[r] + RANK_GAP;
    }
    for (size_t v = 0; v < panel->vertices.count; v++) {
        struct cm_draw_vertex *vertex = &panel->vertices.items[v];
        vertex->x = l->points[v].x - left + MARGIN;
        vertex->y = tops[vertex->rank] + heights[vertex->rank] / 2;
    }
    for (size_t e = 0; e < panel->edges.count; e++)
        for (size_t i = 0; i < panel->edges.items[e].bend_count; i++) {
            const struct point *p = &l->points[step_of(l, &panel->edges.items[e], i + 1)];
            panel->bends[panel->edges.items[e].first_bend + i] = (struct cm_draw_bend){
                p->x - left + MARGIN, tops[p->rank], tops[p->rank] + heights[p->rank]};
        }
    panel->width = l->count ? right - left + 2 * MARGIN : 2 * MARGIN;
    panel->height = y - RANK_GAP + MARGIN + 10;
}

void cm_draw_layout(struct cm_drawing *drawing, struct cm_draw_panel *panel)
{
    struct layout l = {.arena = drawing->arena, .scratch = drawing->scratch, .panel = panel};

    for (size_t v = 0; v < panel->vertices.count; v++)
        measure(&panel->vertices.items[v]);
    set_ranks(&l);
    add_bends(&l);
    make_points(&l);
    order_ranks(&l);
    place_points(&l);
    take_places(&l);
    cm_arena_reset(l.scratch);
}
