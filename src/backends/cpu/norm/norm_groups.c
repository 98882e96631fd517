/* GroupNormalization and InstanceNormalization of row-major floats, and LpNormalization of rows. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/norm/norm_row.h"
#include "base/number.h"
#include "base/parallel.h"
#include "graph/backend.h"

#include <math.h>

enum { X, SCALE, BIAS }; /* operands */
enum { Y };              /* result */

/* ---- GroupNormalization and InstanceNormalization: a row is some channels of an image ---- */

struct groups_plan {
    int64_t rows, channels, per_group, area;
    double epsilon;
};

static bool accepts_groups(struct cm_call *call)
{
    return cm_norm_accepts_floats(call, X);
}

static enum cm_status prepare_groups(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[X]->shape;
    struct groups_plan *plan = cm_call_state(call, sizeof *plan);
    const int64_t groups = cm_node_has_attr(call->node, "num_groups")
                               ? cm_node_int(call->node, "num_groups")
                               : x->dims[1];
    *plan = (struct groups_plan){.rows = x->dims[0] * groups,
                                 .channels = x->dims[1],
                                 .per_group = x->dims[1] / groups,
                                 .area = cm_shape_span(x, 2, x->rank),
                                 .epsilon = (double)cm_node_float(call->node, "epsilon")};
    return CM_OK;
}

static void normalize_groups(void *arg, int64_t begin, int64_t end)
{
    const struct cm_call *call = arg;
    const struct groups_plan *plan = call->state;
    const float *scale = call->in[SCALE]->data, *bias = call->in[BIAS]->data;
    for (int64_t row = begin; row < end; row++) {
        const int64_t first = row * plan->per_group; /* plane */
        struct norm_row r = {.n = plan->per_group * plan->area,
                             .x = (const float *)call->in[X]->data + first * plan->area};
        cm_norm_take_statistics(&r, true, plan->epsilon);
        const float inverse = r.inverse;
        r.n = plan->area;
        for (int64_t plane = first; plane < first + plan->per_group; plane++) {
            const int64_t c = plane % plan->channels;
            r.x = (const float *)call->in[X]->data + plane * plan->area;
            r.y = (float *)call->out[Y]->data + plane * plan->area;
            r.inverse = inverse * scale[c];
            r.bias = bias + c;
            cm_norm_write_plane(&r);
        }
    }
}

static enum cm_status run_groups(struct cm_call *call)
{
    const struct groups_plan *plan = call->state;
    cm_parallel(plan->rows, 1 + NORM_PART_ELEMENTS / (plan->per_group * plan->area),
                normalize_groups, call);
    return CM_OK;
}

#define GROUPS .accepts = accepts_groups, .prepare = prepare_groups, .run = run_groups

CM_KERNEL(cpu, InstanceNormalization, .label = "normalization by rows", GROUPS);
CM_KERNEL(cpu, GroupNormalization, .label = "normalization by rows", GROUPS);

/* ---- LpNormalization along the last axis, with p = 2 ---- */

struct lengths_plan {
    int64_t rows, size;
};

static bool accepts_lengths(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[X]->shape;
    int axis;
    if (!accepts_groups(call))
        return false;
    if (cm_node_int(call->node, "p") != 2)
        return cm_call_decline(call, "the p is not 2");
    if (!cm_axis_fix(cm_node_int(call->node, "axis"), x->rank, &axis) || axis != x->rank - 1)
        return cm_call_decline(call, "the axis is not the last");
    return true;
}

static enum cm_status prepare_lengths(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[X]->shape;
    struct lengths_plan *plan = cm_call_state(call, sizeof *plan);
    plan->size = x->dims[x->rank - 1];
    plan->rows = cm_tensor_count(call->in[X]) / plan->size;
    return CM_OK;
}

static void divide_rows(void *arg, int64_t begin, int64_t end)
{
    static const float no_bias = 0;
    const struct cm_call *call = arg;
    const struct lengths_plan *plan = call->state;
    for (int64_t row = begin; row < end; row++) {
        struct norm_row r = {.n = plan->size,
                             .x = (const float *)call->in[X]->data + row * plan->size,
                             .y = (float *)call->out[Y]->data + row * plan->size,
                             .bias = &no_bias};
        cm_norm_sum_row(&r);
        r.inverse = r.sums[1] == 0 ? 1 : (float)(1 / sqrt(r.sums[1])); /* zeros stay so */
        cm_norm_write_plane(&r);
    }
}

static enum cm_status run_lengths(struct cm_call *call)
{
    const struct lengths_plan *plan = call->state;
    cm_parallel(plan->rows, 1 + NORM_PART_ELEMENTS / plan->size, divide_rows, call);
    return CM_OK;
}

CM_KERNEL(cpu, LpNormalization, .label = "normalization by rows", .accepts = accepts_lengths,
          .prepare = prepare_lengths, .run = run_lengths);
