/* ConvInteger and QLinearConv of bytes, by the packed product: windows are multiplied where they
 * lie in an image whose channels are side by side. Those of few channels are copied first, so that
 * no group of four bytes is half empty; those of one channel each are summed without a product. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/int8_depthwise.h"
#include "base/number.h"
#include "base/parallel.h"
#include "graph/backend.h"

static const struct cm_int8_operands integer = {0, -1, 2, 1, -1, 3, -1, -1, -1};
static const struct cm_int8_operands quantized = {0, 1, 2, 3, 4, 5, 6, 7, 8};

enum {
    POINTERS = 2048,   /* of one chunk */
    CHUNK = 64,        /* results of one chunk, at most */
    COPIED = 16384,    /* bytes of windows that are copied, at most */
    FEW_CHANNELS = 16, /* then windows are copied */
    MOST_TAPS = POINTERS / CM_INT8_ROWS,
    UNITS = 32, /* pieces of work that there should be */
};

struct int8_conv {
    const struct cm_int8_operands *at;
    struct cm_int8_window window;
    struct cm_int8_packing packing;
    struct cm_int8_image x_image, y_image;
    int64_t images, channels, groups, results;       /* results: channels of one group */
    bool flips;                                      /* the image is signed */
    bool alone;                                      /* each channel is a group of its own */
    int64_t chunk, chunks;                           /* results at a time; how often in an image */
    int64_t columns, column_units;                   /* of one piece of work; how many of those */
    size_t offsets, zeros, scales, outside, flipped; /* places in scratch, in bytes */
};

static bool accepts(struct cm_call *call)
{
    const struct cm_int8_operands *at = call->arg;
    const int per_channel[2] = {at->b_scale, at->b_zero};
    struct cm_int8_window window;
    if (!cm_int8_accepts(call, at))
        return false;
    const struct cm_shape *w = &call->in[at->b]->shape;
    if (!cm_int8_window_read(call, &call->in[at->a]->shape, w->dims + 2, &window))
        return false;
    if (window.taps > MOST_TAPS)
        return cm_call_decline(call, "the kernel has more than %d elements", MOST_TAPS);
    for (int i = 0; i < 2; i++) {
        const struct cm_tensor *p = cm_int8_operand(call, per_channel[i]);
        if (p && cm_tensor_count(p) != 1 && cm_tensor_count(p) != w->dims[0])
            return cm_call_decline(call, "operand %d is not one number for each channel",
                                   per_channel[i]);
    }
    return true;
}

/* Are all zero points of the weights 0 as they are packed, whatever the run? */
static bool is_centered(const struct cm_call *call, const struct cm_int8_operands *at)
{
    const struct cm_tensor *zero = cm_int8_operand(call, at->b_zero);
    const bool is_unsigned = call->in[at->b]->type == CM_UINT8;
    if (!zero)
        return !is_unsigned;
    if (!zero->data)
        return false;
    for (int64_t i = 0; i < cm_tensor_count(zero); i++)
        if (cm_int8_zero_of(zero, is_unsigned, i))
            return false;
    return true;
}

static void plan_weights(const struct cm_call *call, struct int8_conv *p)
{
    const struct cm_shape *w = &call->in[p->at->b]->shape;
    const int64_t depth = w->dims[1], taps = p->window.taps;
    const bool few = depth < FEW_CHANNELS || depth % 4;
    p->alone = depth == 1 && p->results == 1 && is_centered(call, p->at);
    p->packing = (struct cm_int8_packing){.batches = p->groups,
                                          .columns = p->results,
                                          .taps = taps,
                                          .depth = depth,
                                          .batch_stride = p->results * depth * taps,
                                          .column_stride = depth * taps,
                                          .depth_stride = taps,
                                          .tap_stride = 1,
                                          .is_unsigned = call->in[p->at->b]->type == CM_UINT8};
    p->packing.dense = p->groups == 1 && few && taps > 1 && depth * taps <= COPIED / CM_INT8_ROWS;
    if (p->alone) {
        p->packing.by_tap = true;
        p->packing.batches = 1;
        p->packing.columns = p->groups;
        p->groups = 1;
    }
}

/* Pieces of work: chunks of results, all columns or some. As shapes have it, whatever the number of
 * threads. */
static void plan_units(struct int8_conv *p)
{
    const int64_t most = p->packing.dense ? COPIED / (p->packing.depth * p->packing.taps)
                                          : POINTERS / p->window.taps;
    p->chunk = most < CHUNK ? most / CM_INT8_ROWS * CM_INT8_ROWS : CHUNK;
    p->chunks = (p->window.out_pixels + p->chunk - 1) / p->chunk;
    p->columns = p->packing.columns;
    if (p->groups == 1 && !p->alone)
        while (p->images * p->chunks * (p->packing.columns / p->columns) < UNITS &&
               p->columns > 2 * CM_INT8_WIDTH)
            p->columns = (int64_t)cm_round_up((size_t)p->columns / 2, CM_INT8_WIDTH);
    p->column_units = (p->packing.columns + p->columns - 1) / p->columns;
}

static enum cm_status prepare(struct cm_call *call)
{
    const struct cm_int8_operands *at = call->arg;
    const struct cm_tensor *x = call->in[at->a], *w = call->in[at->b];
    struct int8_conv *p = cm_call_state(call, sizeof *p);
    size_t end = 0;
    p->at = at;
    if (!cm_int8_window_read(call, &x->shape, w->shape.dims + 2, &p->window))
        return cm_call_fail(call, CM_LIMIT, "its image is too large");
    p->images = x->shape.dims[0];
    p->channels = x->shape.dims[1];
    p->groups = cm_node_int(call->node, "group");
    p->results = w->shape.dims[0] / p->groups;
    p->flips = x->type == CM_INT8;
    plan_weights(call, p);
    if (!cm_int8_packing_init(&p->packing))
        return cm_call_fail(call, CM_LIMIT, "its weights are too large");
    plan_units(p);
    if (!cm_int8_reserve(p->packing.listed, p->groups, CM_INT32, &end, &p->offsets) ||
        !cm_int8_reserve(p->packing.listed, p->groups, CM_INT32, &end, &p->zeros) ||
        !cm_int8_reserve(p->packing.listed, p->groups, CM_FLOAT, &end, &p->scales) ||
        !cm_int8_reserve(p->channels + CM_INT8_WIDTH, 1, CM_UINT8, &end, &p->outside) ||
        !cm_int8_reserve(p->flips ? cm_tensor_count(x) : 0, 1, CM_UINT8, &end, &p->flipped))
        return cm_call_fail(call, CM_LIMIT, "its image is too large");
    cm_call_scratch(call, end);
    cm_int8_image_init(&p->x_image, &x->shape);
    cm_call_want_layout(call, at->a, &p->x_image.layout);
    cm_call_want_layout(call, at->b, &p->packing.layout);
    if (call->out[0]->type != CM_INT32) {
        cm_int8_image_init(&p->y_image, &call->out[0]->shape);
        cm_call_give_layout(call, 0, &p->y_image.layout);
    }
    return CM_OK;
}

/* ---- Windows ---- */

/* Copies the window of one result: rows of it that lie in the image are copied at once. */
static void copy_window(const struct int8_conv *p, const uint8_t *image, uint8_t outside,
                        int64_t result, uint8_t *to)
{
    const struct cm_int8_window *w = &p->window;
    const int64_t z0 = result / (w->out[1] * w->out[2]) * w->stride[0] - w->pad[0];
    const int64_t y0 = result / w->out[2] % w->out[1] * w->stride[1] - w->pad[1];
    const int64_t x0 = result % w->out[2] * w->stride[2] - w->pad[2];
    const size_t each = (size_t)p->channels;
    const bool together = w->dilation[2] == 1 && x0 >= 0 && x0 + w->kernel[2] <= w->in[2];
    for (int64_t i = 0; i < w->kernel[0] * w->kernel[1]; i++) {
        const int64_t z = z0 + i / w->kernel[1] * w->dilation[0];
        const int64_t y = y0 + i % w->kernel[1] * w->dilation[1];
        const bool inside = z >= 0 && z < w->in[0] && y >= 0 && y < w->in[1];
        const uint8_t *line = image + (inside ? (z * w->in[1] + y) * w->in[2] : 0) * p->channels;
        if (inside && together) {
            memcpy(to, line + x0 * p->channels, each * (size_t)w->kernel[2]);
            to += each * (size_t)w->kernel[2];
            continue;
        }
        for (int64_t k = 0; k < w->kernel[2]; k++, to += each) {
            const int64_t x = x0 + k * w->dilation[2];
            if (inside && x >= 0 && x < w->in[2])
                memcpy(to, line + x * p->channels, each);
            else
                memset(to, outside, each);
        }
    }
}

/* ---- Products ---- */

struct conv_job {
    const struct cm_call *call;
    const struct int8_conv *p;
    const uint8_t *x, *outside;
    struct cm_int8_finish finish;
};

/* Some results of an image. */
struct some_results {
    int64_t image, first;
    int count;
    const uint8_t **pointers; /* CM_INT8_ROWS for each tap, for each CM_INT8_ROWS results */
};

/* Sums of some results as they are, to where the operator has them: plane after plane. */
static void store_planes(const struct conv_job *job, const struct some_results *some,
                         int64_t channel, int64_t count, const int32_t *sums)
{
    const int64_t plane = job->p->window.out_pixels;
    const int64_t all = job->call->out[0]->shape.dims[1];
    int32_t *y =
        (int32_t *)job->call->out[0]->data + (some->image * all + channel) * plane + some->first;
    for (int64_t j = 0; j < count; j++)
        for (int r = 0; r < some->count; r++)
            y[j * plane + r] = sums[r * CM_INT8_WIDTH + j];
}

/* Columns [from, to) of one group, for some results. */
static void multiply_columns(const struct conv_job *job, const struct some_results *some,
                             int64_t group, int64_t from, int64_t to)
{
    const struct int8_conv *p = job->p;
    const int64_t all = p->groups * p->packing.columns;
    const bool planes = job->finish.type == CM_INT32;
    int32_t sums[CHUNK * CM_INT8_WIDTH];
    struct cm_int8_finish finish = job->finish;
    finish.offsets += group * p->packing.listed;
    finish.zeros = finish.zeros ? finish.zeros + group * p->packing.listed : NULL;
    finish.scales += group * p->packing.listed;
    struct cm_int8_block block = {
        .packing = &p->packing,
        .packed = (const char *)job->call->in[p->at->b]->data + group * p->packing.batch_bytes,
        .finish = &finish,
        .a = some->pointers,
        .rows = some->count,
        .y = (char *)job->call->out[0]->data +
             (some->image * p->window.out_pixels + some->first) * all + group * p->packing.columns,
        .y_row = planes ? CM_INT8_WIDTH * (int64_t)sizeof sums[0] : all};
    for (int64_t j = from; j < to; j += CM_INT8_WIDTH) { /* a panel stays in the cache */
        const int64_t end = to - j < CM_INT8_WIDTH ? to : j + CM_INT8_WIDTH;
        if (planes) /* columns are counted from the first one on */
            block.y = (char *)sums - j * (int64_t)sizeof sums[0];
        if (p->alone)
            cm_int8_taps_sum(&block, j, end);
        else
            cm_int8_multiply(&block, j, end);
        if (planes)
            store_planes(job, some, group * p->packing.columns + j, end - j, sums);
    }
}

static void conv_unit(const struct conv_job *job, int64_t unit)
{
    const struct int8_conv *p = job->p;
    const int64_t columns = p->column_units, chunk = unit / columns % p->chunks;
    const uint8_t *pointers[POINTERS];
    uint8_t copies[COPIED];
    struct some_results some = {
        .image = unit / columns / p->chunks, .first = chunk * p->chunk, .pointers = pointers};
    const int64_t left = p->window.out_pixels - some.first;
    some.count = (int)(left < p->chunk ? left : p->chunk);
    const uint8_t *x = job->x + some.image * p->window.pixels * p->channels;
    const int64_t window = p->channels * p->window.taps;
    for (int i = 0; p->packing.dense && i < p->chunk; i++) {
        const int64_t row = i < some.count ? i : some.count - 1;
        if (i < some.count)
            copy_window(p, x, *job->outside, some.first + i, copies + i * window);
        pointers[i] = copies + row * window;
    }
    if (!p->packing.dense)
        cm_int8_window_point(&p->window, x, p->channels, job->outside, some.first, some.count,
                             pointers);
    const int64_t from = unit % columns * p->columns, n = p->packing.columns;
    for (int64_t group = 0; group < p->groups; group++) {
        multiply_columns(job, &some, group, from, n - from < p->columns ? n : from + p->columns);
        const int64_t used =
            (int64_t)cm_round_up((size_t)some.count, CM_INT8_ROWS) * p->window.taps;
        for (int64_t i = 0; group + 1 < p->groups && i < used; i++)
            pointers[i] += p->packing.depth;
    }
}

static void conv_units(void *arg, int64_t begin, int64_t end)
{
    for (int64_t unit = begin; unit < end; unit++)
        conv_unit(arg, unit);
}

/* ---- The call ---- */

/* What belongs to each channel of the result; true where zero points of weights count. */
static bool list_channels(const struct cm_call *call, const struct int8_conv *p, int32_t *zeros,
                          float *scales)
{
    const struct cm_int8_operands *at = p->at;
    const struct cm_tensor *w_scale = cm_int8_operand(call, at->b_scale),
                           *zero = cm_int8_operand(call, at->b_zero);
    const float x_scale = w_scale ? *(const float *)call->in[at->a_scale]->data : 1;
    const float y_scale = w_scale ? *(const float *)call->in[at->y_scale]->data : 1;
    const int64_t step = w_scale && cm_tensor_count(w_scale) != 1;
    int32_t any = 0;
    for (int64_t i = 0; i < p->groups * p->packing.listed; i++) {
        const int64_t column = i % p->packing.listed;
        const int64_t channel = i / p->packing.listed * p->packing.columns + column;
        zeros[i] = 0;
        scales[i] = 0;
        if (column >= p->packing.columns)
            continue;
        zeros[i] = cm_int8_zero_of(zero, p->packing.is_unsigned, channel);
        any |= zeros[i];
        if (w_scale)
            scales[i] = x_scale * ((const float *)w_scale->data)[channel * step] / y_scale;
    }
    return any != 0;
}

static enum cm_status run(struct cm_call *call)
{
    const struct int8_conv *p = call->state;
    const struct cm_int8_operands *at = p->at;
    const struct cm_tensor *x_zero = cm_int8_operand(call, at->a_zero),
                           *bias = cm_int8_operand(call, at->bias);
    const struct cm_tensor *y_zero = cm_int8_operand(call, at->y_zero);
    char *scratch = call->scratch;
    int32_t *offsets = (int32_t *)(void *)(scratch + p->offsets);
    int32_t *zeros = (int32_t *)(void *)(scratch + p->zeros);
    float *scales = (float *)(void *)(scratch + p->scales);
    uint8_t *outside = (uint8_t *)scratch + p->outside;
    const int32_t zero = (x_zero ? (int32_t)cm_tensor_int(x_zero, 0) : 0) + (p->flips ? 128 : 0);
    struct conv_job job = {.call = call, .p = p, .x = call->in[at->a]->data, .outside = outside};
    job.finish = (struct cm_int8_finish){.type = call->out[0]->type,
                                         .offsets = offsets,
                                         .scales = scales,
                                         .zero = y_zero ? (float)cm_tensor_int(y_zero, 0) : 0};
    if (list_channels(call, p, zeros, scales))
        job.finish.zeros = zeros;
    for (int64_t g = 0; g < p->groups; g++)
        cm_int8_offsets(&p->packing,
                        (const char *)call->in[at->b]->data + g * p->packing.batch_bytes, zero,
                        job.finish.zeros ? zeros + g * p->packing.listed : NULL,
                        bias ? (const int32_t *)bias->data + g * p->packing.columns : NULL,
                        offsets + g * p->packing.listed);
    memset(outside, zero, (size_t)p->channels + CM_INT8_WIDTH);
    if (p->flips) {
        uint8_t *flipped = (uint8_t *)scratch + p->flipped;
        cm_int8_flip(cm_tensor_count(call->in[at->a]), job.x, flipped);
        job.x = flipped;
    }
    cm_parallel(p->images * p->chunks * p->column_units, 1, conv_units, &job);
    return CM_OK;
}

#define CONVOLUTION                                                                                \
    .label = "int8 convolution", .accepts = accepts, .prepare = prepare, .run = run,               \
    .layouts = CM_LAYOUT_CHOSEN

CM_KERNEL(cpu, ConvInteger, CONVOLUTION, .arg = &integer);
CM_KERNEL(cpu, QLinearConv, CONVOLUTION, .arg = &quantized);
