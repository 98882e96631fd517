/* The gradients of AveragePool and GlobalAveragePool, of floats in any layout. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/pool/pool_window.h"
#include "base/parallel.h"
#include "graph/backend.h"

enum { DY, X }; /* operands */

struct average_state {
    struct pool_window window;
    bool global, count_pads;
};

struct average_call {
    const struct average_state *state;
    const float *dy;
    float *dx;
};

/* Taps of a window along one axis that its mean counts; what rounding up the number of windows
 * reaches behind the pads never does. */
static int64_t counted(const struct average_state *state, int axis, int64_t o)
{
    const struct pool_window *w = &state->window;
    const struct pool_reach r = pool_reach_of(w, axis, o);
    if (!state->count_pads)
        return r.end - r.first;
    const int64_t limit = w->in[axis] + w->pad_end[axis];
    const int64_t inside = r.at < limit ? (limit - r.at - 1) / r.step + 1 : 0;
    return inside < w->kernel[axis] ? inside : w->kernel[axis];
}

/* The windows of some lanes of one image. */
static void spread_windows(const struct average_call *c, const struct pool_unit *u)
{
    const struct pool_window *w = &c->state->window;
    const int64_t block = w->blocks.block;
    int64_t at[MOST_TAPS], o[POOL_AXES], place = 0;
    float dy[UNIT_LANES];
    for (o[0] = 0; o[0] < w->out[0]; o[0]++)
        for (o[1] = 0; o[1] < w->out[1]; o[1]++)
            for (o[2] = 0; o[2] < w->out[2]; o[2]++, place++) {
                const int taps = pool_taps(w, o, at);
                const float count =
                    (float)(counted(c->state, 0, o[0]) * counted(c->state, 1, o[1]) *
                            counted(c->state, 2, o[2]));
                pool_y_lanes(w, u, 0, (int)u->lanes, place, c->dy, dy);
                for (int64_t lane = 0; lane < u->lanes; lane++)
                    dy[lane] /= count;
                for (int t = 0; t < taps; t++) {
                    float *to = c->dx + u->x + at[t] * block;
                    for (int64_t lane = 0; lane < u->lanes; lane++)
                        to[lane] += dy[lane];
                }
            }
}

/* One window over all. */
static void spread_evenly(const struct average_call *c, const struct pool_unit *u)
{
    const struct pool_window *w = &c->state->window;
    const int64_t block = w->blocks.block;
    const float count = (float)w->in_area;
    float *to = c->dx + u->x, dy[UNIT_LANES];
    pool_y_lanes(w, u, 0, (int)u->lanes, 0, c->dy, dy);
    for (int64_t lane = 0; lane < u->lanes; lane++)
        dy[lane] /= count;
    if (block == 1) {
        for (int64_t i = 0; i < w->in_area; i++)
            to[i] = dy[0];
        return;
    }
    for (int64_t i = 0; i < w->in_area; i++)
        memcpy(to + i * block, dy, (size_t)u->lanes * sizeof *dy);
}

static void average_units(void *arg, int64_t begin, int64_t end)
{
    const struct average_call *c = arg;
    for (int64_t i = begin; i < end; i++) {
        const struct pool_unit u = pool_unit_at(&c->state->window, i);
        if (c->state->global) {
            spread_evenly(c, &u);
            continue;
        }
        pool_unit_clear(&c->state->window, &u, c->dx);
        spread_windows(c, &u);
    }
}

static const bool by_window = false, global = true;

static bool accepts(struct cm_call *call)
{
    return pool_window_accepts(call, call->in[X], call->in[DY], *(const bool *)call->arg);
}

static enum cm_status prepare(struct cm_call *call)
{
    struct average_state *state = cm_call_state(call, sizeof *state);
    const struct cm_layout *of_x = channel_layout(call->in[X]),
                           *of_dy = channel_layout(call->in[DY]);
    state->global = *(const bool *)call->arg;
    state->count_pads = cm_node_int(call->node, "count_include_pad") != 0;
    pool_window_init(call, call->in[X], of_x, call->in[DY], of_dy, state->global, &state->window);
    cm_call_want_layout(call, X, of_x);
    cm_call_want_layout(call, DY, of_dy);
    cm_call_give_layout(call, 0, of_x);
    return CM_OK;
}

static enum cm_status run(struct cm_call *call)
{
    const struct average_state *state = call->state;
    struct average_call c = {state, call->in[DY]->data, call->out[0]->data};
    cm_parallel(state->window.units, state->window.units_at_once, average_units, &c);
    return CM_OK;
}

#define POOLING                                                                                    \
    .label = "pooling gradient", .accepts = accepts, .prepare = prepare, .run = run,               \
    .layouts = CM_LAYOUT_CHOSEN

CM_KERNEL_IN(cpu, "ai.cameo", AveragePoolGrad, POOLING, .arg = &by_window);
CM_KERNEL_IN(cpu, "ai.cameo", GlobalAveragePoolGrad, POOLING, .arg = &global);
