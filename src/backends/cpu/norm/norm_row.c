/* Rows of floats, for the kernels of normalizations. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/norm/norm_row.h"

#include "base/machine.h"

#include <math.h>

enum {
    LANES = 8,
    FEW = 32, /* sums of so many in float, those in double */
};

typedef float floats __attribute__((vector_size(LANES * sizeof(float)), aligned(4)));

/* Pairs of vectors, which need not wait for each other. */
static CM_ALWAYS_INLINE void sum_row_on(enum cm_machine machine, struct norm_row *row)
{
    const struct norm_row r = *row; /* which no store changes */
    double sum = 0, squares = 0;
    int64_t i = 0;
    (void)machine;
    while (i + 2 * LANES <= r.n) {
        floats s[2] = {0}, q[2] = {0};
        for (int few = 0; few < FEW && i + 2 * LANES <= r.n; few++, i += 2 * LANES)
            for (int h = 0; h < 2; h++) {
                const floats v = *(const floats *)(r.x + i + h * LANES) - r.first;
                s[h] += v;
                q[h] += v * v;
            }
        for (int j = 0; j < LANES; j++) {
            sum += (double)(s[0][j] + s[1][j]);
            squares += (double)(q[0][j] + q[1][j]);
        }
    }
    row->sums[0] = sum;
    row->sums[1] = squares;
}

/* y = (x - mean) * inverse * scale + bias */
static CM_ALWAYS_INLINE void write_row_on(enum cm_machine machine, const struct norm_row *row)
{
    const struct norm_row r = *row; /* which no store changes */
    (void)machine;
    for (int64_t i = 0; i + LANES <= r.n; i += LANES) {
        const floats xhat = (*(const floats *)(r.x + i) - r.mean) * r.inverse;
        const floats y = xhat * *(const floats *)(r.scale + i);
        *(floats *)(r.y + i) = r.bias ? y + *(const floats *)(r.bias + i) : y;
    }
}

/* The same with one factor, in inverse, and one bias. */
static CM_ALWAYS_INLINE void write_plane_on(enum cm_machine machine, const struct norm_row *row)
{
    const struct norm_row r = *row; /* which no store changes */
    const float bias = *r.bias;
    int64_t i = 0;
    (void)machine;
    for (; i + LANES <= r.n; i += LANES)
        *(floats *)(r.y + i) = (*(const floats *)(r.x + i) - r.mean) * r.inverse + bias;
}

/* Sums of g = dy * scale and of g * xhat; what the row adds to the gradients of scale and bias. */
static CM_ALWAYS_INLINE void sum_slopes_on(enum cm_machine machine, struct norm_row *row)
{
    const struct norm_row r = *row; /* which no store changes */
    double sum = 0, along = 0;
    int64_t i = 0;
    (void)machine;
    while (i + LANES <= r.n) {
        floats s = {0}, a = {0};
        for (int few = 0; few < FEW && i + LANES <= r.n; few++, i += LANES) {
            const floats xhat = (*(const floats *)(r.x + i) - r.mean) * r.inverse;
            const floats dy = *(const floats *)(r.dy + i);
            const floats g = dy * *(const floats *)(r.scale + i);
            *(floats *)(r.d_scale + i) += dy * xhat;
            *(floats *)(r.d_bias + i) += dy;
            s += g;
            a += g * xhat;
        }
        for (int j = 0; j < LANES; j++) {
            sum += (double)s[j];
            along += (double)a[j];
        }
    }
    row->sums[0] = sum;
    row->sums[1] = along;
}

/* dx = inverse * (g - mean(g) - xhat * mean(g * xhat)) */
static CM_ALWAYS_INLINE void write_slopes_on(enum cm_machine machine, const struct norm_row *row)
{
    const struct norm_row r = *row; /* which no store changes */
    const float along = r.along * r.inverse;
    int64_t i = 0;
    (void)machine;
    for (; i + LANES <= r.n; i += LANES) {
        const floats off = *(const floats *)(r.x + i) - r.mean;
        const floats g = *(const floats *)(r.dy + i) * *(const floats *)(r.scale + i);
        *(floats *)(r.y + i) = r.inverse * (g - r.dy_mean - off * along);
    }
}

CM_BUILDS(sum_row, (struct norm_row * r), (machine, r))
CM_BUILDS(write_row, (const struct norm_row *r), (machine, r))
CM_BUILDS(write_plane, (const struct norm_row *r), (machine, r))
CM_BUILDS(sum_slopes, (struct norm_row * r), (machine, r))
CM_BUILDS(write_slopes, (const struct norm_row *r), (machine, r))

/* ---- Rows with their tails, which fill no vector ---- */

static int64_t whole(const struct norm_row *r, int64_t width)
{
    return r->n - r->n % width;
}

void cm_norm_sum_row(struct norm_row *r)
{
    sum_row_builds[cm_this_machine()](r);
    for (int64_t i = whole(r, (int64_t)2 * LANES); i < r->n; i++) {
        const double v = (double)(r->x[i] - r->first);
        r->sums[0] += v;
        r->sums[1] += v * v;
    }
}

void cm_norm_write_row(const struct norm_row *r)
{
    write_row_builds[cm_this_machine()](r);
    for (int64_t i = whole(r, LANES); i < r->n; i++)
        r->y[i] = (r->x[i] - r->mean) * r->inverse * r->scale[i] + (r->bias ? r->bias[i] : 0);
}

void cm_norm_write_plane(const struct norm_row *r)
{
    write_plane_builds[cm_this_machine()](r);
    for (int64_t i = whole(r, LANES); i < r->n; i++)
        r->y[i] = (r->x[i] - r->mean) * r->inverse + *r->bias;
}

void cm_norm_sum_slopes(struct norm_row *r)
{
    sum_slopes_builds[cm_this_machine()](r);
    for (int64_t i = whole(r, LANES); i < r->n; i++) {
        const float xhat = (r->x[i] - r->mean) * r->inverse, g = r->dy[i] * r->scale[i];
        r->d_scale[i] += r->dy[i] * xhat;
        r->d_bias[i] += r->dy[i];
        r->sums[0] += (double)g;
        r->sums[1] += (double)g * (double)xhat;
    }
}

void cm_norm_write_slopes(const struct norm_row *r)
{
    write_slopes_builds[cm_this_machine()](r);
    for (int64_t i = whole(r, LANES); i < r->n; i++) {
        const float xhat = (r->x[i] - r->mean) * r->inverse;
        r->y[i] = r->inverse * (r->dy[i] * r->scale[i] - r->dy_mean - xhat * r->along);
    }
}

void cm_norm_take_statistics(struct norm_row *r, bool centred, double epsilon)
{
    const double n = (double)r->n;
    r->first = centred && isfinite(r->x[0]) ? r->x[0] : 0;
    cm_norm_sum_row(r);
    const double off = centred ? r->sums[0] / n : 0, spread = r->sums[1] / n - off * off;
    r->mean = (float)((double)r->first + off);
    r->inverse = (float)(1 / sqrt((spread < 0 ? 0 : spread) + epsilon));
}

bool cm_norm_accepts_floats(struct cm_call *call, int x)
{
    for (int i = 0; i < call->n_in; i++)
        if (call->in[i] && call->in[i]->type != CM_FLOAT)
            return cm_call_decline_type(call, call->in[i]);
    for (int o = 0; o < call->n_out; o++)
        if (call->out[o] && call->out[o]->type != CM_FLOAT)
            return cm_call_decline_type(call, call->out[o]);
    if (cm_tensor_count(call->in[x]) == 0)
        return cm_call_decline_empty(call, call->in[x]);
    return true;
}
