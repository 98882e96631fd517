/* BatchNormalization by the statistics of the batch, and its gradient, of floats: one pass for all
 * sums of a channel, one for the results.
 *
 * A group is a block of channels that lie side by side (channel_blocks.h). Its places are cut into
 * chunks that do not depend on the number of threads; the sums of chunks are added in their order.
 * Where there are many groups each is one chunk, and summed and written while it is in the cache.
 *
 * Sums are of x less the first element of its channel: the variance is then the mean square less
 * the square of the mean, without loss. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/channel_blocks.h"
#include "backends/cpu/norm/norm_row.h"
#include "base/machine.h"
#include "base/number.h"
#include "base/parallel.h"
#include "graph/backend.h"

#include <math.h>

enum { OF_X, OF_SQUARES, OF_DY, OF_PRODUCTS, SUMS };           /* of x, x^2, dy, dy * x */
enum { MEAN, FACTOR, SHIFT, ALONG = SHIFT, DY_MEAN, NUMBERS }; /* that results are made of */

enum {
    LANES = 8, /* neighbours at once */
    FEW = 64,  /* rows that are summed in float: the sums of FEW are added in double */
    CHUNK_ELEMENTS = 1 << 14, /* worth a thread */
    MOST_CHUNKS = 64,
    TILE_ELEMENTS = 1 << 13, /* of x, which are in the cache while all channels are summed */
};

struct batch_plan {
    struct channel_blocks blocks;
    int64_t chunks, places_of_chunk; /* of a group */
    int64_t groups_at_once;          /* worth a thread, where a group is one chunk */
    int64_t lanes; /* channels of a group, in whole LANES; LANES of a single one */
    double epsilon, momentum;
    /* In scratch: */
    double *sums;   /* [group][chunk][SUMS][lanes] */
    float *numbers; /* [group][NUMBERS][lanes] */
    float *first;   /* [group][lanes]: of each channel */
};

/* ---- Sums ---- */

/* What the compiler turns into one register, or into two. */
typedef float floats __attribute__((vector_size(LANES * sizeof(float)), aligned(4)));
typedef double doubles __attribute__((vector_size(LANES * sizeof(double)), aligned(8)));

/* Rows of LANES neighbours, each with sums and numbers of its own. */
struct row_run {
    int64_t rows, stride;
    const float *x, *dy; /* dy is something to read forward, too */
    float *y;
    const float *first; /* of each lane */
    double *sums;
    const float *numbers;
    int64_t lanes; /* from one kind of sums or numbers to the next */
};

/* Of FEW rows or less: even and odd ones apart, so that one need not wait for the other. */
static CM_ALWAYS_INLINE void sum_few(bool slopes, int64_t rows, const float *x, const float *dy,
                                     const struct row_run *run)
{
    floats sums[SUMS][2] = {0};
    const floats first = *(const floats *)run->first;
    for (int64_t row = 0; row < rows; row += 2) {
        for (int odd = 0; odd < 2; odd++, x += run->stride, dy += run->stride) {
            if (odd && row + 1 == rows)
                break;
            const floats v = *(const floats *)x - first;
            sums[OF_X][odd] += v;
            sums[OF_SQUARES][odd] += v * v;
            if (slopes) {
                sums[OF_DY][odd] += *(const floats *)dy;
                sums[OF_PRODUCTS][odd] += *(const floats *)dy * v;
            }
        }
    }
    for (int kind = 0; kind < (slopes ? SUMS : OF_DY); kind++)
        *(doubles *)(run->sums + kind * run->lanes) +=
            __builtin_convertvector(sums[kind][0] + sums[kind][1], doubles);
}

static CM_ALWAYS_INLINE void sum_rows(bool slopes, const struct row_run *run)
{
    for (int64_t row = 0; row < run->rows; row += FEW)
        sum_few(slopes, run->rows - row < FEW ? run->rows - row : FEW, run->x + row * run->stride,
                run->dy + row * run->stride, run);
}

static CM_ALWAYS_INLINE void sum_on(enum cm_machine machine, bool slopes, const struct row_run *run)
{
    (void)machine;
    if (slopes) /* each with loops of its own */
        sum_rows(true, run);
    else
        sum_rows(false, run);
}

CM_BUILDS(sum, (bool slopes, const struct row_run *run), (machine, slopes, run))

/* ---- Results ---- */

/* y = (x - mean) * factor + shift, or dx = factor * (dy - dy_mean - along * (x - mean)). */
static CM_ALWAYS_INLINE void write_rows(bool slopes, const struct row_run *run)
{
    const floats mean = *(const floats *)(run->numbers + MEAN * run->lanes);
    const floats factor = *(const floats *)(run->numbers + FACTOR * run->lanes);
    const floats shift = *(const floats *)(run->numbers + SHIFT * run->lanes);
    const floats dy_mean = *(const floats *)(run->numbers + DY_MEAN * run->lanes);
    for (int64_t row = 0; row < run->rows; row++) {
        const int64_t at = row * run->stride;
        const floats off = *(const floats *)(run->x + at) - mean;
        *(floats *)(run->y + at) =
            slopes ? factor * (*(const floats *)(run->dy + at) - dy_mean - shift * off)
                   : off * factor + shift;
    }
}

static CM_ALWAYS_INLINE void write_on(enum cm_machine machine, bool slopes,
                                      const struct row_run *run)
{
    (void)machine;
    if (slopes)
        write_rows(true, run);
    else
        write_rows(false, run);
}

CM_BUILDS(write, (bool slopes, const struct row_run *run), (machine, slopes, run))

/* ---- Places as rows ---- */

/* Neighbouring places of one image. */
struct place_run {
    int64_t places;
    bool slopes;
    void (*rows_fn)(bool slopes, const struct row_run *run);
};

/* Rows of fewer neighbours, `width`. */
static void sum_narrow(bool slopes, int width, const struct row_run *run)
{
    for (int64_t row = 0; row < run->rows; row++)
        for (int j = 0; j < width; j++) {
            const int64_t at = row * run->stride + j;
            const double v = (double)(run->x[at] - run->first[j]);
            run->sums[OF_X * run->lanes + j] += v;
            run->sums[OF_SQUARES * run->lanes + j] += v * v;
            if (slopes) {
                run->sums[OF_DY * run->lanes + j] += (double)run->dy[at];
                run->sums[OF_PRODUCTS * run->lanes + j] += (double)run->dy[at] * v;
            }
        }
}

static void write_narrow(bool slopes, int width, const struct row_run *run)
{
    const float *mean = run->numbers + MEAN * run->lanes, *factor = mean + run->lanes;
    const float *shift = factor + run->lanes, *dy_mean = shift + run->lanes;
    for (int64_t row = 0; row < run->rows; row++)
        for (int j = 0; j < width; j++) {
            const int64_t at = row * run->stride + j;
            const float off = run->x[at] - mean[j];
            run->y[at] = slopes ? factor[j] * (run->dy[at] - dy_mean[j] - shift[j] * off)
                                : off * factor[j] + shift[j];
        }
}

static void narrow_rows(const struct place_run *p, int width, const struct row_run *run)
{
    if (run->y)
        write_narrow(p->slopes, width, run);
    else
        sum_narrow(p->slopes, width, run);
}

/* Elements of one channel, LANES in a row. */
static void walk_plane(const struct place_run *p, struct row_run run)
{
    run.rows = p->places / LANES;
    run.stride = LANES;
    p->rows_fn(p->slopes, &run);
    const int64_t done = run.rows * LANES;
    run.x += done;
    run.dy += done;
    run.y = run.y ? run.y + done : NULL;
    run.rows = 1;
    if (done < p->places)
        narrow_rows(p, (int)(p->places - done), &run);
}

/* Elements of several channels: LANES of them in a row, a few places at a time. */
static void walk_block(const struct place_run *p, int64_t block, const struct row_run *all)
{
    const int64_t most = 1 + TILE_ELEMENTS / block;
    struct row_run run = *all;
    run.stride = block;
    for (int64_t at = 0; at < p->places; at += most) {
        run.rows = p->places - at < most ? p->places - at : most;
        for (int64_t c = 0; c < block; c += LANES) {
            const int64_t from = at * block + c;
            run.x = all->x + from;
            run.dy = all->dy + from;
            run.y = all->y ? all->y + from : NULL;
            run.first = all->first + c;
            run.sums = all->sums + c;
            run.numbers = all->numbers + c;
            if (c + LANES <= block)
                p->rows_fn(p->slopes, &run);
            else
                narrow_rows(p, (int)(block - c), &run);
        }
    }
}

/* ---- A call ---- */

/* Both operators, by where their operands are. */
struct batch_call {
    const struct cm_call *call;
    const struct batch_plan *plan;
    const float *x, *dy; /* dy: NULL forward */
    float *y;            /* NULL: not wanted */
    void (*sum)(bool slopes, const struct row_run *run),
        (*write)(bool slopes, const struct row_run *run);
};

static double *sums_of(const struct batch_plan *plan, int64_t group, int64_t chunk)
{
    return plan->sums + (group * plan->chunks + chunk) * SUMS * plan->lanes;
}

/* Calls fn for the rows of a chunk. */
static void walk(const struct batch_call *b, int64_t group, int64_t chunk,
                 void (*fn)(bool, const struct row_run *))
{
    const struct batch_plan *plan = b->plan;
    const struct channel_blocks *blocks = &plan->blocks;
    const int64_t all = blocks->images * blocks->area;
    int64_t at = chunk * plan->places_of_chunk;
    const int64_t end = at + plan->places_of_chunk < all ? at + plan->places_of_chunk : all;
    while (at < end) {
        const int64_t image = at / blocks->area, place = at % blocks->area;
        const int64_t left = blocks->area - place;
        const struct place_run p = {end - at < left ? end - at : left, b->dy, fn};
        const int64_t from =
            ((image * blocks->groups + group) * blocks->area + place) * blocks->block;
        const struct row_run run = {.x = b->x + from,
                                    .dy = b->dy ? b->dy + from : b->x + from,
                                    .y = b->y && fn != b->sum ? b->y + from : NULL,
                                    .first = plan->first + group * plan->lanes,
                                    .sums = sums_of(plan, group, chunk),
                                    .numbers = plan->numbers + group * NUMBERS * plan->lanes,
                                    .lanes = plan->lanes};
        if (blocks->block == 1)
            walk_plane(&p, run);
        else
            walk_block(&p, blocks->block, &run);
        at += p.places;
    }
}

static void sum_chunk(const struct batch_call *b, int64_t group, int64_t chunk)
{
    const int64_t lanes = b->plan->lanes;
    double *sums = sums_of(b->plan, group, chunk);
    memset(sums, 0, (size_t)(SUMS * lanes) * sizeof *sums);
    walk(b, group, chunk, b->sum);
    if (b->plan->blocks.block > 1)
        return;
    for (int kind = 0; kind < SUMS; kind++) /* lanes of one channel */
        for (int j = 1; j < LANES; j++)
            sums[kind * lanes] += sums[kind * lanes + j];
}

static float number_at(const struct cm_tensor *tensor, int64_t i)
{
    return ((const float *)tensor->data)[i];
}

/* Operands and results of the two operators. */
enum { X, SCALE, BIAS, OLD_MEAN, OLD_VARIANCE };
enum { Y, NEW_MEAN, NEW_VARIANCE };
enum { G_DY, G_X, G_SCALE };
enum { G_DX, G_DSCALE, G_DBIAS };

static void put(const struct cm_call *call, int o, int64_t i, double value)
{
    if (o < call->n_out && call->out[o])
        ((float *)call->out[o]->data)[i] = (float)value;
}

/* running = running * momentum + of the batch * (1 - momentum) */
static void update(const struct batch_call *b, int o, int i, int64_t c, double value)
{
    const double momentum = b->plan->momentum;
    put(b->call, o, c, (double)number_at(b->call->in[i], c) * momentum + value * (1 - momentum));
}

/* What the results of one channel are made of, from its sums. */
static void finish_channel(const struct batch_call *b, int64_t c, double first, const double *sums,
                           float *numbers)
{
    const struct batch_plan *plan = b->plan;
    const struct cm_call *call = b->call;
    const double count = (double)(plan->blocks.images * plan->blocks.area);
    const double off = sums[OF_X] / count, spread = sums[OF_SQUARES] / count - off * off;
    const double mean = first + off, variance = spread < 0 ? 0 : spread;
    const double inverse = 1 / sqrt(variance + plan->epsilon);
    const double scale = (double)number_at(call->in[b->dy ? (int)G_SCALE : (int)SCALE], c);
    numbers[MEAN] = (float)mean;
    numbers[FACTOR] = (float)(scale * inverse);
    if (!b->dy) {
        numbers[SHIFT] = number_at(call->in[BIAS], c);
        update(b, NEW_MEAN, OLD_MEAN, c, mean);
        update(b, NEW_VARIANCE, OLD_VARIANCE, c, variance);
        return;
    }
    const double products = (sums[OF_PRODUCTS] - off * sums[OF_DY]) * inverse; /* of dy and xhat */
    numbers[ALONG] = (float)(products / count * inverse);
    numbers[DY_MEAN] = (float)(sums[OF_DY] / count);
    put(call, G_DSCALE, c, products);
    put(call, G_DBIAS, c, sums[OF_DY]);
}

static void finish_group(const struct batch_call *b, int64_t group)
{
    const struct batch_plan *plan = b->plan;
    const int64_t lanes = plan->lanes, block = plan->blocks.block;
    float *to = plan->numbers + group * NUMBERS * lanes;
    for (int64_t j = 0; j < lanes; j++) {
        const int64_t of_block = block == 1 ? 0 : j, c = group * block + of_block;
        float numbers[NUMBERS] = {0}; /* channels that fill up a block stay 0 */
        double sums[SUMS] = {0};
        for (int64_t chunk = 0; chunk < plan->chunks; chunk++)
            for (int kind = 0; kind < SUMS; kind++)
                sums[kind] += sums_of(plan, group, chunk)[kind * lanes + of_block];
        if (of_block < block && c < plan->blocks.channels && (block > 1 || j == 0))
            finish_channel(b, c, (double)plan->first[group * lanes + j], sums, numbers);
        for (int k = 0; k < NUMBERS; k++)
            to[k * lanes + j] = block > 1 || j == 0 ? numbers[k] : to[k * lanes];
    }
}

static void sum_chunks(void *arg, int64_t begin, int64_t end)
{
    const struct batch_call *b = arg;
    for (int64_t i = begin; i < end; i++)
        sum_chunk(b, i / b->plan->chunks, i % b->plan->chunks);
}

static void write_chunks(void *arg, int64_t begin, int64_t end)
{
    const struct batch_call *b = arg;
    for (int64_t i = begin; i < end; i++)
        walk(b, i / b->plan->chunks, i % b->plan->chunks, b->write);
}

static void do_groups(void *arg, int64_t begin, int64_t end)
{
    const struct batch_call *b = arg;
    for (int64_t group = begin; group < end; group++) {
        sum_chunk(b, group, 0);
        finish_group(b, group);
        if (b->y)
            walk(b, group, 0, b->write);
    }
}

/* The first of each channel; 0 in place of what is no number, which the sums shall show. */
static void fetch_first(const struct batch_call *b)
{
    const struct batch_plan *plan = b->plan;
    const struct channel_blocks *blocks = &plan->blocks;
    for (int64_t group = 0; group < blocks->groups; group++)
        for (int64_t j = 0; j < plan->lanes; j++) {
            const int64_t of_block = j < blocks->block ? j : 0;
            const float x = b->x[group * blocks->area * blocks->block + of_block];
            plan->first[group * plan->lanes + j] = isfinite(x) ? x : 0;
        }
}

static enum cm_status run_batch(struct batch_call *b)
{
    const struct batch_plan *plan = b->plan;
    const int64_t all = plan->blocks.groups * plan->chunks;
    b->sum = sum_builds[cm_this_machine()];
    b->write = write_builds[cm_this_machine()];
    fetch_first(b);
    if (plan->chunks == 1) {
        cm_parallel(plan->blocks.groups, plan->groups_at_once, do_groups, b);
        return CM_OK;
    }
    cm_parallel(all, 1, sum_chunks, b);
    for (int64_t group = 0; group < plan->blocks.groups; group++)
        finish_group(b, group);
    if (b->y)
        cm_parallel(all, 1, write_chunks, b);
    return CM_OK;
}

static struct batch_plan with_scratch(const struct cm_call *call)
{
    struct batch_plan plan = *(const struct batch_plan *)call->state;
    plan.sums = call->scratch;
    plan.numbers = (float *)sums_of(&plan, plan.blocks.groups, 0);
    plan.first = plan.numbers + plan.blocks.groups * NUMBERS * plan.lanes;
    return plan;
}

static enum cm_status run_forward(struct cm_call *call)
{
    const struct batch_plan plan = with_scratch(call);
    struct batch_call b = {.call = call,
                           .plan = &plan,
                           .x = call->in[X]->data,
                           .y = call->out[Y] ? call->out[Y]->data : NULL};
    return run_batch(&b);
}

static enum cm_status run_backward(struct cm_call *call)
{
    const struct batch_plan plan = with_scratch(call);
    struct batch_call b = {.call = call,
                           .plan = &plan,
                           .x = call->in[G_X]->data,
                           .dy = call->in[G_DY]->data,
                           .y = call->out[G_DX] ? call->out[G_DX]->data : NULL};
    return run_batch(&b);
}

/* ---- Preparing ---- */

static enum cm_status plan_batch(struct cm_call *call, const struct cm_shape *x,
                                 const struct cm_layout *layout)
{
    struct batch_plan *plan = cm_call_state(call, sizeof *plan);
    plan->blocks = channel_blocks_of(x, layout);
    plan->epsilon = (double)cm_node_float(call->node, "epsilon");
    plan->momentum = (double)cm_node_float(call->node, "momentum");
    const struct channel_blocks *blocks = &plan->blocks;
    const int64_t places = blocks->images * blocks->area, of_group = places * blocks->block;
    int64_t chunks = of_group / CHUNK_ELEMENTS;
    chunks = chunks < MOST_CHUNKS / blocks->groups ? chunks : MOST_CHUNKS / blocks->groups;
    chunks = chunks > 1 ? chunks : 1;
    plan->places_of_chunk = (places + chunks - 1) / chunks;
    plan->chunks = (places + plan->places_of_chunk - 1) / plan->places_of_chunk;
    plan->groups_at_once = 1 + CHUNK_ELEMENTS / of_group;
    plan->lanes = (blocks->block + LANES - 1) / LANES * LANES;
    const int64_t of_lane =
        plan->chunks * SUMS * (int64_t)sizeof(double) + (NUMBERS + 1) * (int64_t)sizeof(float);
    int64_t lanes;
    size_t bytes;
    if (!cm_dim_mul(blocks->groups, plan->lanes, &lanes) ||
        !cm_size_mul((size_t)lanes, (size_t)of_lane, &bytes))
        return cm_call_fail(call, CM_LIMIT, "it has too many channels");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

static enum cm_status prepare_forward(struct cm_call *call)
{
    const struct cm_layout *layout = channel_layout(call->in[X]);
    cm_call_want_layout(call, X, layout);
    if (call->out[Y])
        cm_call_give_layout(call, Y, layout);
    return plan_batch(call, &call->in[X]->shape, layout);
}

/* As x lies, or as dy does where x is row-major: convolutions like what they gave. */
static enum cm_status prepare_backward(struct cm_call *call)
{
    const struct cm_layout *layout = channel_layout(call->in[G_X]);
    if (!layout)
        layout = channel_layout(call->in[G_DY]);
    cm_call_want_layout(call, G_X, layout);
    cm_call_want_layout(call, G_DY, layout);
    if (call->out[G_DX])
        cm_call_give_layout(call, G_DX, layout);
    return plan_batch(call, &call->in[G_X]->shape, layout);
}

static bool accepts_forward(struct cm_call *call)
{
    if (!cm_node_int(call->node, "training_mode"))
        return cm_call_decline(call, "the statistics are given");
    return cm_norm_accepts_floats(call, X);
}

static bool accepts_backward(struct cm_call *call)
{
    if (!cm_shape_equal(&call->in[G_X]->shape, &call->in[G_DY]->shape))
        return cm_call_decline(call, "dY and X differ in shape");
    if (!cm_norm_accepts_floats(call, G_X))
        return false;
    const struct channel_blocks blocks = channel_blocks_of(&call->in[G_X]->shape, NULL);
    if (cm_tensor_count(call->in[G_SCALE]) != blocks.channels)
        return cm_call_decline(call, "Scale has %lld numbers",
                               (long long)cm_tensor_count(call->in[G_SCALE]));
    return true;
}

CM_KERNEL(cpu, BatchNormalization, .label = "batch statistics", .accepts = accepts_forward,
          .prepare = prepare_forward, .run = run_forward, .layouts = CM_LAYOUT_CHOSEN);
CM_KERNEL_IN(cpu, "ai.cameo", BatchNormalizationGrad, .label = "batch statistics gradient",
             .accepts = accepts_backward, .prepare = prepare_backward, .run = run_backward,
             .layouts = CM_LAYOUT_CHOSEN);
