/* MaxPool of row-major floats, with and without indices, and its gradient in any layout, which
 * finds the maxima again: of equal ones the first, NaN above all.
 *
 * In row-major images the rows of a window are joined first, many columns at once, then the columns
 * of each window. Where channels lie side by side, several of them are compared at once. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/pool/pool_window.h"
#include "base/machine.h"
#include "base/parallel.h"
#include "graph/backend.h"

#include <math.h>

typedef float floats __attribute__((vector_size(POOL_LANES * sizeof(float)), aligned(4)));
typedef int32_t ints __attribute__((vector_size(POOL_LANES * sizeof(int32_t)), aligned(4)));

struct max_call {
    const struct pool_window *window;
    const float *x, *dy;          /* dy: NULL forward */
    float *y, *dx;                /* one of them */
    int64_t *indices;             /* NULL: not wanted; row-major only */
    const int64_t *index_strides; /* of a place, by axis */
};

/* ---- Channels side by side ---- */

/* One window of POOL_LANES channels: dy is given to where the greatest are. */
static CM_ALWAYS_INLINE void spread_on(enum cm_machine machine, int taps, const int64_t *at,
                                       const float *x, const float *dy, float *dx)
{
    floats best = {0};
    ints where = {0};
    (void)machine;
    best += -INFINITY;
    for (int t = 0; t < taps; t++) {
        const floats v = *(const floats *)(x + at[t]);
        const ints more = (v > best) | ((v != v) & (best == best));
        best = (floats)(((ints)v & more) | ((ints)best & ~more));
        where = ((where * 0 + t) & more) | (where & ~more);
    }
    for (int t = 0; t < taps; t++)
        *(floats *)(dx + at[t]) += (floats)(*(const ints *)dy & (where == t));
}

CM_BUILDS(spread, (int taps, const int64_t *at, const float *x, const float *dy, float *dx),
          (machine, taps, at, x, dy, dx))

/* One window of fewer channels. */
static void spread_narrow(int width, int taps, const int64_t *at, const float *x, const float *dy,
                          float *dx)
{
    for (int lane = 0; lane < width && taps > 0; lane++) {
        int64_t best = at[0] + lane;
        for (int t = 1; t < taps; t++) {
            const float v = x[at[t] + lane];
            best = v > x[best] || (v != v && x[best] == x[best]) ? at[t] + lane : best;
        }
        dx[best] += dy[lane];
    }
}

/* The windows of some lanes of one image. */
static void spread_lanes(const struct max_call *c, const struct pool_unit *u)
{
    const struct pool_window *w = c->window;
    const int64_t block = w->blocks.block;
    int64_t at[MOST_TAPS], o[POOL_AXES], place = 0;
    void (*const spread)(int, const int64_t *, const float *, const float *, float *) =
        spread_builds[cm_this_machine()];
    for (o[0] = 0; o[0] < w->out[0]; o[0]++)
        for (o[1] = 0; o[1] < w->out[1]; o[1]++)
            for (o[2] = 0; o[2] < w->out[2]; o[2]++, place++) {
                const int taps = pool_taps(w, o, at);
                for (int t = 0; t < taps; t++)
                    at[t] = u->x + at[t] * block;
                for (int64_t lane = 0; lane < u->lanes; lane += POOL_LANES) {
                    const int64_t left = u->lanes - lane;
                    const int width = left < POOL_LANES ? (int)left : POOL_LANES;
                    float dy[POOL_LANES] = {0};
                    pool_y_lanes(w, u, lane, width, place, c->dy, dy);
                    if (width == POOL_LANES)
                        spread(taps, at, c->x + lane, dy, c->dx + lane);
                    else
                        spread_narrow(width, taps, at, c->x + lane, dy, c->dx + lane);
                }
            }
}

/* ---- Row-major ---- */

enum { COLUMNS = 512 }; /* of x at a time */

/* Columns [from, from + count) of a band of rows, joined: the greatest, and which row has it. */
static CM_ALWAYS_INLINE void join_on(enum cm_machine machine, int rows, const float *const *row,
                                     int64_t from, int64_t count, float *best, int32_t *which)
{
    (void)machine;
    memcpy(best, row[0] + from, (size_t)count * sizeof *best);
    memset(which, 0, (size_t)count * sizeof *which);
    for (int r = 1; r < rows; r++) {
        const float *x = row[r] + from;
        CM_ANY_ORDER
        for (int64_t i = 0; i < count; i++) {
            const float v = x[i], b = best[i];
            const bool more = (v > b) | ((v != v) & (b == b));
            best[i] = more ? v : b;
            which[i] = more ? r : which[i];
        }
    }
}

CM_BUILDS(join,
          (int rows, const float *const *row, int64_t from, int64_t count, float *best,
           int32_t *which),
          (machine, rows, row, from, count, best, which))

/* The greatest of the columns of a window: the first by row, then by column. */
static inline int64_t best_column(const struct pool_reach *r, int64_t from, const float *best,
                                  const int32_t *which)
{
    int64_t found = r->at + r->first * r->step - from;
    for (int64_t t = r->first + 1; t < r->end; t++) {
        const int64_t i = r->at + t * r->step - from;
        const float v = best[i], b = best[found];
        const bool alike = (v == b) | ((v != v) & (b != b));
        const bool more = (v > b) | ((v != v) & (b == b)) | (alike & (which[i] < which[found]));
        found = more ? i : found;
    }
    return found;
}

/* A band of rows, and the windows over it: places of the rows in the plane, and numbers of their
 * indices. */
struct row_band {
    int rows;
    const float *row[MOST_TAPS];
    int64_t place[MOST_TAPS], index[MOST_TAPS];
};

static void max_band(const struct max_call *c, const struct row_band *band, int64_t plane,
                     int64_t y, int64_t y_step)
{
    const struct pool_window *w = c->window;
    float best[COLUMNS];
    int32_t which[COLUMNS];
    int64_t from = 0, end = 0; /* columns that are joined */
    for (int64_t o = 0; o < w->out[2]; o++, y += y_step) {
        const struct pool_reach r = pool_reach_of(w, 2, o);
        if (band->rows == 0 || r.first >= r.end) { /* in the padding alone */
            if (c->y)
                c->y[y] = -INFINITY;
            if (c->indices)
                c->indices[y] = plane;
            continue;
        }
        if (r.at + (r.end - 1) * r.step >= end) {
            from = r.at > 0 ? r.at : 0; /* later windows begin later, if not their first taps */
            end = from + COLUMNS < w->in[2] ? from + COLUMNS : w->in[2];
            join_builds[cm_this_machine()](band->rows, band->row, from, end - from, best, which);
        }
        const int64_t i = best_column(&r, from, best, which);
        if (c->y)
            c->y[y] = best[i];
        if (c->indices)
            c->indices[y] =
                plane + band->index[which[i]] + (from + i) * c->index_strides[POOL_AXES - 1];
        if (c->dx)
            c->dx[plane + band->place[which[i]] + from + i] += c->dy[y];
    }
}

static void max_plane(const struct max_call *c, const struct pool_unit *u)
{
    const struct pool_window *w = c->window;
    const int64_t y_step = w->of_y.block;
    int64_t y = pool_y_at(w, u->image, u->channel);
    for (int64_t i = 0; i < w->out[0]; i++)
        for (int64_t j = 0; j < w->out[1]; j++, y += w->out[2] * y_step) {
            const struct pool_reach a = pool_reach_of(w, 0, i), b = pool_reach_of(w, 1, j);
            struct row_band band = {.rows = 0};
            for (int64_t s = a.first; s < a.end; s++)
                for (int64_t t = b.first; t < b.end; t++) {
                    const int64_t at[] = {a.at + s * a.step, b.at + t * b.step};
                    const int64_t place = (at[0] * w->in[1] + at[1]) * w->in[2];
                    band.row[band.rows] = c->x + u->x + place;
                    band.index[band.rows] =
                        c->indices ? at[0] * c->index_strides[0] + at[1] * c->index_strides[1] : 0;
                    band.place[band.rows++] = place;
                }
            max_band(c, &band, u->x, y, y_step);
        }
}

static void max_units(void *arg, int64_t begin, int64_t end)
{
    const struct max_call *c = arg;
    for (int64_t i = begin; i < end; i++) {
        const struct pool_unit u = pool_unit_at(c->window, i);
        if (c->dx)
            pool_unit_clear(c->window, &u, c->dx);
        if (c->window->blocks.block == 1)
            max_plane(c, &u);
        else
            spread_lanes(c, &u);
    }
}

/* ---- The calls ---- */

enum { X, DY = 0, OF_X }; /* operands: of MaxPool, and of its gradient */

struct max_state {
    struct pool_window window;
    int64_t index_strides[POOL_AXES];
};

static bool fits_columns(struct cm_call *call)
{
    const struct cm_int64s kernel = cm_node_ints(call->node, "kernel_shape"),
                           dilations = cm_node_ints(call->node, "dilations");
    const size_t last = kernel.count - 1;
    const int64_t dilation = last < dilations.count ? dilations.items[last] : 1;
    return (kernel.items[last] - 1) * dilation < COLUMNS ||
           cm_call_decline(call, "the window is wider than %d", COLUMNS);
}

static bool accepts_any(struct cm_call *call)
{
    return pool_window_accepts(call, call->in[X], call->out[0], false) && fits_columns(call);
}

static bool accepts_forward(struct cm_call *call)
{
    if (call->n_out < 2 || !call->out[1]) /* oneDNN is faster, and reads any layout */
        return cm_call_decline(call, "the indices are not wanted");
    return accepts_any(call);
}

static bool accepts_backward(struct cm_call *call)
{
    return pool_window_accepts(call, call->in[OF_X], call->in[DY], false) && fits_columns(call);
}

static enum cm_status prepare_forward(struct cm_call *call)
{
    struct max_state *state = cm_call_state(call, sizeof *state);
    const bool by_column = cm_node_int(call->node, "storage_order") != 0;
    pool_window_init(call, call->in[X], NULL, call->out[0], NULL, false, &state->window);
    const int64_t *in = state->window.in;
    state->index_strides[0] = by_column ? 1 : in[1] * in[2];
    state->index_strides[1] = by_column ? in[0] : in[2];
    state->index_strides[2] = by_column ? in[0] * in[1] : 1;
    return CM_OK;
}

static enum cm_status prepare_backward(struct cm_call *call)
{
    struct max_state *state = cm_call_state(call, sizeof *state);
    const struct cm_layout *of_x = channel_layout(call->in[OF_X]),
                           *of_dy = channel_layout(call->in[DY]);
    pool_window_init(call, call->in[OF_X], of_x, call->in[DY], of_dy, false, &state->window);
    cm_call_want_layout(call, OF_X, of_x);
    cm_call_want_layout(call, DY, of_dy);
    cm_call_give_layout(call, 0, of_x);
    return CM_OK;
}

static enum cm_status run_forward(struct cm_call *call)
{
    const struct max_state *state = call->state;
    struct max_call c = {.window = &state->window,
                         .x = call->in[X]->data,
                         .y = call->out[0]->data,
                         .indices = call->n_out > 1 && call->out[1] ? call->out[1]->data : NULL,
                         .index_strides = state->index_strides};
    cm_parallel(state->window.units, state->window.units_at_once, max_units, &c);
    return CM_OK;
}

static enum cm_status run_backward(struct cm_call *call)
{
    const struct max_state *state = call->state;
    struct max_call c = {.window = &state->window,
                         .x = call->in[OF_X]->data,
                         .dy = call->in[DY]->data,
                         .dx = call->out[0]->data};
    cm_parallel(state->window.units, state->window.units_at_once, max_units, &c);
    return CM_OK;
}

CM_KERNEL_AT(cpu, 1, MaxPool, .label = "float pooling", .accepts = accepts_forward,
             .prepare = prepare_forward, .run = run_forward);
CM_KERNEL_AT(cpu, CM_TURN_LAST, MaxPool, .label = "any float pooling", .accepts = accepts_any,
             .prepare = prepare_forward, .run = run_forward);
CM_KERNEL_IN(cpu, "ai.cameo", MaxPoolGradFromX, .label = "pooling gradient",
             .accepts = accepts_backward, .prepare = prepare_backward, .run = run_backward,
             .layouts = CM_LAYOUT_CHOSEN);
