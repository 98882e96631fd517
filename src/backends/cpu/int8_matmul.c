/* MatMulInteger, QLinearMatMul and MatMulIntegerToFloat of bytes, by the packed product. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/int8_product.h"
#include "base/number.h"
#include "base/parallel.h"
#include "graph/backend.h"

static const struct cm_int8_operands integer = {0, -1, 2, 1, -1, 3, -1, -1, -1};
static const struct cm_int8_operands quantized = {0, 1, 2, 3, 4, 5, 6, 7, -1};
/* The bias is added to the scaled sums. */
static const struct cm_int8_operands to_float = {0, 2, 4, 1, 3, 5, -1, -1, 6};

enum { UNIT_ROWS = 32, UNIT_COLUMNS = 128 };

struct int8_matmul {
    const struct cm_int8_operands *at;
    struct cm_int8_packing packing;
    int64_t m, k, batches;
    bool flips;                                   /* the left operand is signed */
    size_t offsets, zeros, scales, bias, flipped; /* places in scratch, in bytes */
    int64_t row_units, column_units;
};

/* One number, or a row of one for each column. */
static bool accepts_columns(struct cm_call *call, int i, int64_t columns)
{
    const struct cm_tensor *p = cm_int8_operand(call, i);
    if (!p || cm_tensor_count(p) == 1)
        return true;
    const struct cm_shape *shape = &p->shape;
    return (cm_tensor_count(p) == columns && shape->dims[shape->rank - 1] == columns) ||
           cm_call_decline(call, "operand %d is not one number for each column", i);
}

static bool accepts(struct cm_call *call)
{
    const struct cm_int8_operands *at = call->arg;
    const struct cm_tensor *bias = cm_int8_operand(call, at->bias);
    const struct cm_shape *a = &call->in[at->a]->shape, *b = &call->in[at->b]->shape;
    const struct cm_shape *y = &call->out[0]->shape;
    if (!cm_int8_accepts(call, at))
        return false;
    if (a->rank < 2 || b->rank < 2)
        return cm_call_decline(call, "one of the operands is a vector");
    const int64_t n = y->dims[y->rank - 1];
    if (cm_shape_span(b, 0, b->rank - 2) != 1) {
        bool same = a->rank == b->rank;
        for (int i = 0; same && i < b->rank - 2; i++)
            same = a->dims[i] == b->dims[i];
        if (!same)
            return cm_call_decline(call, "the batches are broadcast");
    }
    if (bias && bias->type != CM_FLOAT)
        return cm_call_decline_type(call, bias);
    return accepts_columns(call, at->b_zero, n) && accepts_columns(call, at->b_scale, n) &&
           accepts_columns(call, at->bias, n);
}

static enum cm_status prepare(struct cm_call *call)
{
    const struct cm_int8_operands *at = call->arg;
    const struct cm_shape *a = &call->in[at->a]->shape, *b = &call->in[at->b]->shape;
    struct int8_matmul *p = cm_call_state(call, sizeof *p);
    size_t end = 0;
    p->at = at;
    p->k = a->dims[a->rank - 1];
    p->batches = cm_shape_span(b, 0, b->rank - 2);
    p->m = cm_tensor_count(call->in[at->a]) / p->k / p->batches;
    p->flips = call->in[at->a]->type == CM_INT8;
    const int64_t n = b->dims[b->rank - 1];
    p->packing = (struct cm_int8_packing){.batches = p->batches,
                                          .columns = n,
                                          .taps = 1,
                                          .depth = p->k,
                                          .batch_stride = p->k * n,
                                          .column_stride = 1,
                                          .depth_stride = n,
                                          .is_unsigned = call->in[at->b]->type == CM_UINT8};
    p->row_units = (p->m + UNIT_ROWS - 1) / UNIT_ROWS;
    p->column_units = (n + UNIT_COLUMNS - 1) / UNIT_COLUMNS;
    const int64_t listed = (int64_t)cm_round_up((size_t)n, CM_INT8_WIDTH);
    if (!cm_int8_packing_init(&p->packing) ||
        !cm_int8_reserve(listed, p->batches, CM_INT32, &end, &p->offsets) ||
        !cm_int8_reserve(listed, 1, CM_INT32, &end, &p->zeros) ||
        !cm_int8_reserve(listed, 1, CM_FLOAT, &end, &p->scales) ||
        !cm_int8_reserve(listed, 1, CM_FLOAT, &end, &p->bias) ||
        !cm_int8_reserve(p->flips ? p->batches * p->m * p->k : 0, 1, CM_UINT8, &end, &p->flipped))
        return cm_call_fail(call, CM_LIMIT, "its matrices are too large");
    cm_call_scratch(call, end);
    cm_call_want_layout(call, at->b, &p->packing.layout);
    return CM_OK;
}

/* ---- What belongs to columns ---- */

static double element(const struct cm_tensor *p, int64_t column, double absent)
{
    return p ? cm_tensor_real(p, cm_tensor_count(p) == 1 ? 0 : column) : absent;
}

/* The scale of each column: those of A and B, over that of the result, as the operators multiply.
 */
static void list_scales(const struct cm_call *call, const struct int8_matmul *p, float *to)
{
    const struct cm_int8_operands *at = p->at;
    const struct cm_tensor *b_scale = cm_int8_operand(call, at->b_scale);
    const float a_scale = (float)element(cm_int8_operand(call, at->a_scale), 0, 1);
    const struct cm_tensor *y_scale = cm_int8_operand(call, at->y_scale);
    for (int64_t j = 0; j < p->packing.columns; j++) {
        to[j] = a_scale * (float)element(b_scale, j, 1);
        if (y_scale)
            to[j] /= (float)cm_tensor_real(y_scale, 0);
        if (!b_scale || cm_tensor_count(b_scale) == 1) {
            for (int64_t i = 1; i < p->packing.columns; i++)
                to[i] = to[0];
            break;
        }
    }
    for (int64_t j = p->packing.columns; j < p->packing.listed; j++)
        to[j] = 0;
}

static void list_bias(const struct cm_tensor *bias, const struct int8_matmul *p, float *to)
{
    const float *from = bias->data;
    const int64_t step = cm_tensor_count(bias) != 1;
    for (int64_t j = 0; j < p->packing.listed; j++)
        to[j] = j < p->packing.columns ? from[j * step] : 0;
}

/* Zero points of the right operand as it is packed; false where all are 0. */
static bool list_zeros(const struct cm_call *call, const struct int8_matmul *p, int32_t *to)
{
    const struct cm_tensor *zero = cm_int8_operand(call, p->at->b_zero);
    const bool single = !zero || cm_tensor_count(zero) == 1;
    const int32_t first = cm_int8_zero_of(zero, p->packing.is_unsigned, 0);
    int32_t any = 0;
    for (int64_t j = 0; j < p->packing.listed; j++) {
        to[j] = j >= p->packing.columns ? 0
                : single                ? first
                                        : cm_int8_zero_of(zero, p->packing.is_unsigned, j);
        any |= to[j];
    }
    return any != 0;
}

/* ---- The product ---- */

struct job {
    const struct cm_call *call;
    const struct int8_matmul *p;
    struct cm_int8_finish finish;
    const uint8_t *a;
    char *y;
    int64_t y_width; /* bytes of an element */
};

static void multiply_unit(const struct job *job, int64_t batch, int64_t row_unit,
                          int64_t column_unit)
{
    const struct int8_matmul *p = job->p;
    const struct cm_int8_packing *packing = &p->packing;
    const int64_t n = packing->columns, from = column_unit * UNIT_COLUMNS;
    const int64_t to = n - from < UNIT_COLUMNS ? n : from + UNIT_COLUMNS;
    const int64_t first = row_unit * UNIT_ROWS;
    const int64_t last = p->m - first < UNIT_ROWS ? p->m : first + UNIT_ROWS;
    const uint8_t *a = job->a + batch * p->m * p->k;
    const uint8_t *pointers[UNIT_ROWS];
    struct cm_int8_finish finish = job->finish;
    finish.offsets += batch * packing->listed;
    struct cm_int8_block block = {.packing = packing,
                                  .packed = (const char *)job->call->in[p->at->b]->data +
                                            batch * packing->batch_bytes,
                                  .finish = &finish,
                                  .a = pointers,
                                  .rows = (int)(last - first),
                                  .y = job->y + (batch * p->m + first) * n * job->y_width,
                                  .y_row = n * job->y_width};
    for (int64_t i = 0; i < UNIT_ROWS; i++)
        pointers[i] = a + (first + (i < block.rows ? i : block.rows - 1)) * p->k;
    for (int64_t j = from; j < to; j += CM_INT8_WIDTH) /* a panel stays in the cache for all rows */
        cm_int8_multiply(&block, j, to - j < CM_INT8_WIDTH ? to : j + CM_INT8_WIDTH);
}

static void multiply_some(void *arg, int64_t begin, int64_t end)
{
    const struct job *job = arg;
    const struct int8_matmul *p = job->p;
    const int64_t units = p->row_units * p->column_units;
    for (int64_t i = begin; i < end; i++)
        multiply_unit(job, i / units, i % units / p->column_units, i % p->column_units);
}

static enum cm_status run(struct cm_call *call)
{
    const struct int8_matmul *p = call->state;
    const struct cm_int8_operands *at = p->at;
    const struct cm_tensor *bias = cm_int8_operand(call, at->bias);
    char *scratch = call->scratch;
    int32_t *offsets = (int32_t *)(void *)(scratch + p->offsets);
    int32_t *zeros = (int32_t *)(void *)(scratch + p->zeros);
    float *scales = (float *)(void *)(scratch + p->scales);
    float *biases = (float *)(void *)(scratch + p->bias);
    struct job job = {.call = call,
                      .p = p,
                      .a = call->in[at->a]->data,
                      .y = call->out[0]->data,
                      .y_width = cm_int8_is_byte(call->out[0]->type) ? 1 : 4};
    job.finish = (struct cm_int8_finish){.type = call->out[0]->type, .offsets = offsets};
    if (list_zeros(call, p, zeros))
        job.finish.zeros = zeros;
    if (job.finish.type != CM_INT32) {
        list_scales(call, p, scales);
        job.finish.scales = scales;
    }
    if (bias) {
        list_bias(bias, p, biases);
        job.finish.bias = biases;
    }
    job.finish.zero = (float)element(cm_int8_operand(call, at->y_zero), 0, 0);
    const int32_t zero_a =
        (int32_t)element(cm_int8_operand(call, at->a_zero), 0, 0) + (p->flips ? 128 : 0);
    for (int64_t i = 0; i < p->batches; i++) {
        cm_int8_offsets(&p->packing,
                        (const char *)call->in[at->b]->data + i * p->packing.batch_bytes, zero_a,
                        job.finish.zeros, NULL, offsets + i * p->packing.listed);
    }
    if (p->flips) {
        uint8_t *flipped = (uint8_t *)scratch + p->flipped;
        cm_int8_flip(p->batches * p->m * p->k, job.a, flipped);
        job.a = flipped;
    }
    cm_parallel(p->batches * p->row_units * p->column_units, 1, multiply_some, &job);
    return CM_OK;
}

#define PRODUCT                                                                                    \
    .label = "int8 product", .accepts = accepts, .prepare = prepare, .run = run,                   \
    .layouts = CM_LAYOUT_CHOSEN

CM_KERNEL(cpu, MatMulInteger, PRODUCT, .arg = &integer);
CM_KERNEL(cpu, QLinearMatMul, PRODUCT, .arg = &quantized);
CM_KERNEL_IN(cpu, "com.microsoft", MatMulIntegerToFloat, PRODUCT, .arg = &to_float);
