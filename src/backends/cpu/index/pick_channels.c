/* Gather along the channels of images that lie with channels last: at each place, some of them. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/channels_last.h"

#include "base/machine.h"
#include "base/parallel.h"
#include "graph/backend.h"
#include "tensor/layout.h"

struct picking {
    int64_t from, to; /* channels of an image, and of those picked */
    bool in_pairs;    /* places 2i and 2i + 1 of the result get channels first + i and second + i */
    int64_t first, second;
    const int64_t *channels; /* else */
    const float *x;
    float *y;
};

static CM_ALWAYS_INLINE void pick_pairs_on(enum cm_machine machine, int64_t pairs, const float *a,
                                           const float *b, float *y)
{
    (void)machine;
    CM_ANY_ORDER
    for (int64_t i = 0; i < pairs; i++) {
        y[2 * i] = a[i];
        y[2 * i + 1] = b[i];
    }
}
CM_TWO_BUILDS(pick_pairs, (int64_t pairs, const float *a, const float *b, float *y),
              (machine, pairs, a, b, y))

static void pick_places(void *arg, int64_t begin, int64_t end)
{
    const struct picking *p = arg;
    void (*const pick_pairs)(int64_t, const float *, const float *, float *) =
        pick_pairs_builds[cm_this_machine()];
    for (int64_t place = begin; place < end; place++) {
        const float *x = p->x + place * p->from;
        float *y = p->y + place * p->to;
        if (p->in_pairs)
            pick_pairs(p->to / 2, x + p->first, x + p->second, y);
        for (int64_t i = p->in_pairs ? p->to / 2 * 2 : 0; i < p->to; i++)
            y[i] = x[p->channels[i]];
    }
}

static bool is_in_pairs(const int64_t *channels, int64_t count)
{
    for (int64_t i = 2; i < count; i++)
        if (channels[i] != channels[i - 2] + 1)
            return false;
    return count >= 2;
}

static bool accepts(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0], *indices = call->in[1];
    const int rank = x->shape.rank;
    if (x->type != CM_FLOAT || !x->layout || rank < 3 ||
        x->layout->channel_block != x->shape.dims[1] || cm_tensor_bytes(x) != x->layout->bytes)
        return cm_call_decline(call, "the operand does not have channels last in memory");
    if (cm_node_int(call->node, "axis") != 1 || indices->shape.rank != 1)
        return cm_call_decline(call, "the indices do not list channels");
    if (!cm_call_is_constant(call, 1) || indices->type != CM_INT64 || !indices->data)
        return cm_call_decline(call, "the indices are not constant");
    const int64_t count = indices->shape.dims[0], channels = x->shape.dims[1];
    struct picking *p = cm_call_state(call, sizeof *p);
    int64_t *list = cm_call_state(call, (size_t)(count + 1) * sizeof *list);
    for (int64_t i = 0; i < count; i++) {
        const int64_t index = ((const int64_t *)indices->data)[i];
        list[i] = index < 0 ? index + channels : index;
        if (list[i] < 0 || list[i] >= channels)
            return cm_call_decline(call, "an index is out of range");
    }
    *p = (struct picking){.from = channels,
                          .to = count,
                          .in_pairs = is_in_pairs(list, count),
                          .first = list[0],
                          .second = count > 1 ? list[1] : 0,
                          .channels = list};
    call->state = p;
    return true;
}

static enum cm_status prepare(struct cm_call *call)
{
    const struct cm_layout *layout;
    cm_call_want_layout(call, 0, call->in[0]->layout);
    CM_TRY(cm_channels_last(call, &call->out[0]->shape, &layout));
    cm_call_give_layout(call, 0, layout);
    return CM_OK;
}

static enum cm_status run(struct cm_call *call)
{
    enum { WORTH_A_THREAD = 1 << 14 }; /* elements */
    struct picking p = *(const struct picking *)call->state;
    const struct cm_shape *shape = &call->in[0]->shape;
    const int64_t places = shape->dims[0] * cm_shape_span(shape, 2, shape->rank);
    p.x = call->in[0]->data;
    p.y = call->out[0]->data;
    cm_parallel(places, 1 + WORTH_A_THREAD / (p.to + 1), pick_places, &p);
    return CM_OK;
}

CM_KERNEL(cpu, Gather, .label = "channels-last selection", .accepts = accepts, .prepare = prepare,
          .run = run, .layouts = CM_LAYOUT_CHOSEN);
