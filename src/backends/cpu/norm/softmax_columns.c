/* Softmax and LogSoftmax along an axis that is not the last: lanes side by side go down it
 * together. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/exp_below.h"
#include "backends/cpu/norm/softmax_rows.h"
#include "base/machine.h"

#include <math.h>
#include <string.h>

enum { LANES = CM_SOFT_LANES, FEW = 32 /* sums of so many in float, those in double */ };

struct soft_columns {
    const float *x; /* the first element of the first column */
    float *to;      /* may be x */
    int64_t stride; /* from one element of a column to the next */
    int64_t lanes;  /* LANES, or CM_SOFT_COLUMNS */
    bool log;
};

static CM_ALWAYS_INLINE void columns_part(enum cm_machine machine, int64_t n,
                                          const struct soft_columns *c, const int lanes)
{
    float most[CM_SOFT_COLUMNS], sum[CM_SOFT_COLUMNS];
    double all[CM_SOFT_COLUMNS] = {0};
    const float *x = c->x;
    float *to = c->to;
    memcpy(most, x, (size_t)lanes * sizeof *most);
    for (int64_t i = 1; i < n; i++) {
        const float *row = x + i * c->stride;
        CM_ANY_ORDER
        for (int k = 0; k < lanes; k++)
            most[k] = row[k] > most[k] ? row[k] : most[k];
    }
    for (int64_t at = 0; at < n; at += FEW) {
        memset(sum, 0, sizeof sum);
        for (int64_t i = at; i < n && i < at + FEW; i++) {
            const float *row = x + i * c->stride;
            float *out = to + i * c->stride;
            if (c->log) {
                CM_ANY_ORDER
                for (int k = 0; k < lanes; k++)
                    sum[k] += exp_below(machine, row[k] - most[k]);
                continue;
            }
            CM_ANY_ORDER
            for (int k = 0; k < lanes; k++) {
                const float e = exp_below(machine, row[k] - most[k]);
                out[k] = e;
                sum[k] += e;
            }
        }
        for (int k = 0; k < lanes; k++)
            all[k] += (double)sum[k];
    }
    for (int k = 0; k < lanes; k++)
        sum[k] = (float)(c->log ? log(all[k]) : 1 / all[k]);
    for (int64_t i = 0; i < n; i++) {
        const float *row = x + i * c->stride;
        float *out = to + i * c->stride;
        if (c->log) {
            CM_ANY_ORDER
            for (int k = 0; k < lanes; k++)
                out[k] = (row[k] - most[k]) - sum[k];
            continue;
        }
        CM_ANY_ORDER
        for (int k = 0; k < lanes; k++)
            out[k] *= sum[k];
    }
}

/* A constant number of lanes, so that each loop over them is a few whole vectors. */
static CM_ALWAYS_INLINE void columns_on(enum cm_machine machine, int64_t n,
                                        const struct soft_columns *c)
{
    if (c->lanes == CM_SOFT_COLUMNS)
        columns_part(machine, n, c, CM_SOFT_COLUMNS);
    else
        columns_part(machine, n, c, LANES);
}
CM_BUILDS(columns, (int64_t n, const struct soft_columns *c), (machine, n, c))

void cm_softmax_columns(int64_t n, int64_t stride, int64_t lanes, bool logs, const float *x,
                        float *to)
{
    const struct soft_columns c = {.x = x, .to = to, .stride = stride, .lanes = lanes, .log = logs};
    columns_builds[cm_this_machine()](n, &c);
}
