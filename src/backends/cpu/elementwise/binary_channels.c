/* Arithmetic of an image with channels last and one number a channel, of all images or of each: a
 * gate, a scale, a shift. The numbers are repeated for as many places as a block has. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/channel_blocks.h"

#include "base/parallel.h"
#include "graph/backend.h"

enum { BLOCK = 1024, WORTH_A_THREAD = 1 << 14 }; /* elements */

struct channel_joining {
    struct cm_element_loop loop;
    int image;                  /* which operand that is */
    int64_t images, area;       /* area: places of one */
    int64_t channels, by_image; /* by_image: numbers from one image to the next */
    int64_t places_of_chunk, chunks_of_image;
    const struct cm_layout *layout;
    const float *x, *numbers;
    float *y;
};

/* `places` of an image from element `at` on. */
static void join_places(const struct channel_joining *j, const float *numbers, int64_t at,
                        int64_t places)
{
    const void *in[2] = {j->x + at, j->x + at};
    const int64_t step[2] = {1, 1};
    in[1 - j->image] = numbers;
    j->loop.run(
        &j->loop,
        &(struct cm_elements){
            .count = places * j->channels, .n_in = 2, .in = in, .step = step, .out = j->y + at});
}

static void join_chunks(void *arg, int64_t begin, int64_t end)
{
    const struct channel_joining *j = arg;
    const int64_t together = j->channels < BLOCK ? BLOCK / j->channels : 1;
    float repeated[BLOCK];
    for (int64_t i = begin; i < end; i++) {
        const int64_t image = i / j->chunks_of_image;
        const int64_t first = i % j->chunks_of_image * j->places_of_chunk;
        const int64_t last = first + j->places_of_chunk;
        const float *numbers = j->numbers + image * j->by_image;
        for (int64_t p = 0; together > 1 && p < together; p++)
            memcpy(repeated + p * j->channels, numbers, (size_t)j->channels * sizeof *numbers);
        for (int64_t p = first; p < last && p < j->area; p += together) {
            const int64_t left = (last < j->area ? last : j->area) - p;
            join_places(j, together > 1 ? repeated : numbers, (image * j->area + p) * j->channels,
                        left < together ? left : together);
        }
    }
}

static bool accepts(struct cm_call *call)
{
    const struct cm_tensor *y = call->out[0];
    const enum cm_dtype types[2] = {call->in[0]->type, call->in[1]->type};
    struct channel_joining *j = cm_call_state(call, sizeof *j);
    struct cm_shape seen;
    *j = (struct channel_joining){.image = cm_shape_equal(&call->in[0]->shape, &y->shape) ? 0 : 1};
    const struct cm_tensor *x = call->in[j->image], *numbers = call->in[1 - j->image];
    if (types[0] != CM_FLOAT || types[1] != CM_FLOAT)
        return cm_call_decline_type(call, call->in[types[0] == CM_FLOAT]);
    if (!cm_shape_equal(&x->shape, &y->shape) || !x->layout || x->shape.rank < 3 ||
        x->layout->channel_block != x->shape.dims[1] || cm_tensor_bytes(x) != x->layout->bytes)
        return cm_call_decline(call, "no operand has channels last in memory");
    if (!channel_blocks_see(&numbers->shape, &x->shape, x->layout, &seen) || seen.dims[2] != 1 ||
        seen.dims[1] * seen.dims[3] != x->shape.dims[1] || x->shape.dims[1] == 1)
        return cm_call_decline(call, "the other operand is not one number a channel");
    if (!call->op->elementwise || !call->op->elementwise(call->node, types, CM_FLOAT, &j->loop))
        return cm_call_decline(call, "the operator has no loop of floats");
    j->images = x->shape.dims[0];
    j->channels = x->shape.dims[1];
    j->area = cm_shape_span(&x->shape, 2, x->shape.rank);
    j->by_image = seen.dims[0] > 1 ? j->channels : 0;
    j->places_of_chunk = 1 + WORTH_A_THREAD / j->channels;
    j->chunks_of_image = (j->area + j->places_of_chunk - 1) / j->places_of_chunk;
    j->layout = x->layout;
    call->state = j;
    return true;
}

static enum cm_status prepare(struct cm_call *call)
{
    const struct channel_joining *j = call->state;
    cm_call_want_layout(call, j->image, j->layout);
    cm_call_give_layout(call, 0, j->layout);
    return CM_OK;
}

static enum cm_status run(struct cm_call *call)
{
    struct channel_joining j = *(const struct channel_joining *)call->state;
    j.x = call->in[j.image]->data;
    j.numbers = call->in[1 - j.image]->data;
    j.y = call->out[0]->data;
    cm_parallel(j.images * j.chunks_of_image, 1, join_chunks, &j);
    return CM_OK;
}

CM_KERNEL(cpu, Add, .label = "channels-last arithmetic", .accepts = accepts, .prepare = prepare,
          .run = run, .layouts = CM_LAYOUT_CHOSEN);
CM_KERNEL(cpu, Sub, .label = "channels-last arithmetic", .accepts = accepts, .prepare = prepare,
          .run = run, .layouts = CM_LAYOUT_CHOSEN);
CM_KERNEL(cpu, Mul, .label = "channels-last arithmetic", .accepts = accepts, .prepare = prepare,
          .run = run, .layouts = CM_LAYOUT_CHOSEN);
CM_KERNEL(cpu, Div, .label = "channels-last arithmetic", .accepts = accepts, .prepare = prepare,
          .run = run, .layouts = CM_LAYOUT_CHOSEN);
