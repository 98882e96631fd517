/* MaxPool of codes, in images whose channels are side by side: between convolutions of codes no
 * layout changes. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/int8_image.h"
#include "base/machine.h"
#include "base/number.h"
#include "base/parallel.h"
#include "graph/backend.h"

enum { ROWS = CM_INT8_ROWS, CHUNK = 8, MOST_TAPS = 128 };

struct int8_pool {
    struct cm_int8_window window;
    struct cm_int8_image x_image, y_image;
    int64_t chunks; /* of CHUNK times ROWS results, in an image */
};

static bool read_window(struct cm_call *call, struct cm_int8_window *window)
{
    const struct cm_int64s kernel = cm_node_ints(call->node, "kernel_shape");
    const struct cm_shape *x = &call->in[0]->shape;
    if (x->rank < 3 || kernel.count != (size_t)x->rank - 2)
        return cm_call_decline(call, "the kernel has another rank than the image");
    return cm_int8_window_read(call, x, kernel.items, window);
}

static bool accepts(struct cm_call *call)
{
    const enum cm_dtype type = call->in[0]->type;
    struct cm_int8_window window;
    if (type != CM_UINT8 && type != CM_INT8)
        return cm_call_decline_type(call, call->in[0]);
    if (call->n_out > 1 && call->out[1])
        return cm_call_decline(call, "the indices are wanted");
    if (cm_tensor_count(call->in[0]) == 0 || cm_tensor_count(call->out[0]) == 0)
        return cm_call_decline(call, "the operand or result is empty");
    if (!read_window(call, &window))
        return false;
    return window.taps <= MOST_TAPS ||
           cm_call_decline(call, "the kernel has more than %d elements", MOST_TAPS);
}

static enum cm_status prepare(struct cm_call *call)
{
    struct int8_pool *p = cm_call_state(call, sizeof *p);
    if (!read_window(call, &p->window))
        return cm_call_fail(call, CM_LIMIT, "its image is too large");
    p->chunks = (p->window.out_pixels + CHUNK * ROWS - 1) / (CHUNK * ROWS);
    cm_int8_image_init(&p->x_image, &call->in[0]->shape);
    cm_int8_image_init(&p->y_image, &call->out[0]->shape);
    cm_call_scratch(call, (size_t)p->x_image.channels);
    cm_call_want_layout(call, 0, &p->x_image.layout);
    cm_call_give_layout(call, 0, &p->y_image.layout);
    return CM_OK;
}

/* The greatest of the taps, channel by channel; flip makes signed bytes compare as unsigned ones.
 */
static CM_ALWAYS_INLINE void choose_on(enum cm_machine machine, int64_t taps, int64_t channels,
                                       const uint8_t *const *pointers, uint8_t flip, uint8_t *y)
{
    (void)machine;
    for (int64_t c = 0; c < channels; c++)
        y[c] = pointers[0][c] ^ flip;
    for (int64_t tap = 1; tap < taps; tap++) {
        const uint8_t *x = pointers[tap * ROWS];
        CM_ANY_ORDER
        for (int64_t c = 0; c < channels; c++) {
            const uint8_t v = x[c] ^ flip;
            y[c] = v > y[c] ? v : y[c];
        }
    }
    for (int64_t c = 0; flip && c < channels; c++)
        y[c] ^= flip;
}
CM_BUILDS(choose,
          (int64_t taps, int64_t channels, const uint8_t *const *pointers, uint8_t flip,
           uint8_t *y),
          (machine, taps, channels, pointers, flip, y))

static void pool_chunks(void *arg, int64_t begin, int64_t end)
{
    const struct cm_call *call = arg;
    const struct int8_pool *p = call->state;
    const int64_t channels = p->x_image.channels, results = p->window.out_pixels;
    const uint8_t flip = call->in[0]->type == CM_INT8 ? 0x80 : 0;
    const uint8_t *pointers[MOST_TAPS * ROWS];
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t image = unit / p->chunks, first = unit % p->chunks * CHUNK * ROWS;
        const int64_t last = results - first < CHUNK * ROWS ? results : first + CHUNK * ROWS;
        const uint8_t *x = (const uint8_t *)call->in[0]->data + image * p->window.pixels * channels;
        uint8_t *y = (uint8_t *)call->out[0]->data + image * results * channels;
        for (int64_t i = first; i < last; i += ROWS) {
            const int count = last - i < ROWS ? (int)(last - i) : ROWS;
            cm_int8_window_point(&p->window, x, channels, call->scratch, i, count, pointers);
            for (int r = 0; r < count; r++)
                choose_builds[cm_this_machine()](p->window.taps, channels, pointers + r, flip,
                                                 y + (i + r) * channels);
        }
    }
}

static enum cm_status run(struct cm_call *call)
{
    const struct int8_pool *p = call->state;
    memset(call->scratch, call->in[0]->type == CM_INT8 ? 0x80 : 0, (size_t)p->x_image.channels);
    cm_parallel(p->x_image.images * p->chunks, 1, pool_chunks, call);
    return CM_OK;
}

CM_KERNEL(cpu, MaxPool, .label = "int8 pooling", .accepts = accepts, .prepare = prepare, .run = run,
          .layouts = CM_LAYOUT_CHOSEN);
