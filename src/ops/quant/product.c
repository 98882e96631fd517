/* MatMulInteger, QLinearMatMul and com.microsoft's MatMulIntegerToFloat: products of quantized
 * matrices, summed as 32-bit integers, or as floats where the operands are float8. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/quant/product.h"

#include "base/number.h"
#include "base/parallel.h"
#include "ops/common/gemm.h"
#include "ops/common/reals.h"

#include <math.h>

static const struct cm_product_kind integer = {0, -1, 2, 1, -1, 3, -1, -1, -1};
static const struct cm_product_kind quantized = {0, 1, 2, 3, 4, 5, 6, 7, -1};
const struct cm_product_kind cm_product_to_float = {0, 2, 4, 1, 3, 5, -1, -1, 6};

static enum cm_dtype result_type(struct cm_infer *in, const struct cm_product_kind *kind)
{
    const int like = kind->y_zero < 0 ? kind->b_scale : kind->y_zero;
    return like < 0 ? CM_INT32 : cm_infer_type(in, like)->dtype;
}

static struct cm_dim batch_dim(const struct cm_type *type, int rank, int axis)
{
    const int missing = rank - (type->rank > 2 ? type->rank - 2 : 0);
    return axis < missing ? CM_DIM(1) : type->dims[axis - missing];
}

enum cm_status cm_product_infer(struct cm_infer *in)
{
    const struct cm_product_kind *kind = in->node->op->arg;
    const struct cm_type *a = cm_infer_type(in, kind->a), *b = cm_infer_type(in, kind->b);
    const enum cm_dtype type = result_type(in, kind);
    struct cm_dim dims[CM_MAX_RANK], inner;
    if (a->rank == CM_RANK_UNKNOWN || b->rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, type, CM_RANK_UNKNOWN, NULL);
    if (a->rank == 0 || b->rank == 0)
        return cm_infer_fail(in, "an operand is a scalar, needs rank 1 or more");
    const struct cm_dim left = a->dims[a->rank - 1], right = b->dims[b->rank > 1 ? b->rank - 2 : 0];
    if (!cm_dim_unify(left, right, &inner))
        return cm_infer_fail(in, "the left operand has %lld columns, the right one %lld rows",
                             (long long)left.value, (long long)right.value);
    const int most = a->rank > b->rank ? a->rank : b->rank;
    int rank = most > 2 ? most - 2 : 0;
    for (int i = 0; i < rank; i++)
        if (!cm_dim_broadcast(batch_dim(a, rank, i), batch_dim(b, rank, i), &dims[i]))
            return cm_infer_fail(in, "batch axis %d differs on the left and on the right", i);
    if (a->rank > 1)
        dims[rank++] = a->dims[a->rank - 2];
    if (b->rank > 1)
        dims[rank++] = b->dims[b->rank - 1];
    return cm_infer_set_tensor(in, 0, type, rank, dims);
}

/* How an operand lies over the matrices (.., rows, columns) of the whole. */
struct laid {
    int64_t strides[CM_MAX_RANK];
};

/* Independent of the number of threads: so are the results. */
enum { PART = 256, MOST_PARTS = 16 };

struct product {
    struct cm_shape whole; /* batches.., m, n */
    int64_t m, n, k, batches;
    enum cm_dtype wide;
    struct laid a, b; /* matrices, in matrices: batch strides only */
    struct laid a_scale, a_zero, b_scale, b_zero, y_scale, y_zero, bias;
    int64_t part, parts;      /* columns of the result that are computed at a time; how often */
    size_t part_scratch;      /* bytes of the product of one part, which come first in scratch */
    size_t left, right, sums; /* places in scratch, in bytes */
};

static const struct cm_tensor *operand(const struct cm_call *call, int i)
{
    return i >= 0 && i < call->n_in ? call->in[i] : NULL;
}

static struct cm_shape as_matrices(const struct cm_shape *shape, bool column)
{
    struct cm_shape out = *shape;
    if (shape->rank == 1) {
        out.rank = 2;
        out.dims[0] = column ? shape->dims[0] : 1;
        out.dims[1] = column ? 1 : shape->dims[0];
    }
    return out;
}

/* Scales and zero points: one number, one per row of A or column of B, or that for each batch. */
static enum cm_status lay(struct cm_call *call, int i, bool column, const struct cm_shape *whole,
                          struct laid *out)
{
    const struct cm_tensor *p = operand(call, i);
    struct cm_shape joined;
    if (!p || cm_tensor_count(p) == 1)
        return CM_OK;
    const struct cm_shape shape = as_matrices(&p->shape, column);
    if (!cm_broadcast(&shape, whole, &joined) || !cm_shape_equal(&joined, whole))
        return cm_call_fail(call, CM_BAD_ARGUMENT, "input %d does not broadcast to the matrices",
                            i);
    cm_broadcast_strides(&shape, whole, out->strides);
    return CM_OK;
}

static struct laid lay_batches(struct cm_shape shape, struct cm_shape batch)
{
    struct laid laid = {0};
    shape.rank -= 2;
    if (batch.rank > 0)
        cm_broadcast_strides(&shape, &batch, laid.strides);
    return laid;
}

static bool reserve(int64_t rows, int64_t columns, size_t *end, size_t *at)
{
    int64_t count;
    size_t bytes;
    *at = *end;
    return cm_dim_mul(rows, columns, &count) && cm_dtype_bytes(CM_INT32, count, &bytes) &&
           bytes < SIZE_MAX / 2 && cm_size_add(*end, cm_round_up(bytes, CM_TENSOR_ALIGNMENT), end);
}

enum cm_status cm_coded_product_prepare(struct cm_call *call)
{
    const struct cm_product_kind *kind = call->node->op->arg;
    struct product *p = cm_call_state(call, sizeof *p);
    const struct cm_shape a = as_matrices(&call->in[kind->a]->shape, false);
    const struct cm_shape b = as_matrices(&call->in[kind->b]->shape, true);
    if (cm_tensor_count(call->out[0]) == 0)
        return CM_OK;
    struct cm_shape batch_a = a, batch_b = b, batch;
    batch_a.rank -= 2;
    batch_b.rank -= 2;
    if (!cm_broadcast(&batch_a, &batch_b, &batch))
        return cm_call_fail(call, CM_BAD_ARGUMENT, "the batch axes do not broadcast");
    p->m = a.dims[a.rank - 2];
    p->k = a.dims[a.rank - 1];
    p->n = b.dims[b.rank - 1];
    p->batches = cm_shape_elements(&batch);
    p->a = lay_batches(a, batch);
    p->b = lay_batches(b, batch);
    p->whole = batch;
    if (!cm_shape_insert(&p->whole, p->whole.rank, p->m) ||
        !cm_shape_insert(&p->whole, p->whole.rank, p->n))
        return cm_call_fail_rank(call);
    CM_TRY(lay(call, kind->a_scale, true, &p->whole, &p->a_scale));
    CM_TRY(lay(call, kind->a_zero, true, &p->whole, &p->a_zero));
    CM_TRY(lay(call, kind->b_scale, false, &p->whole, &p->b_scale));
    CM_TRY(lay(call, kind->b_zero, false, &p->whole, &p->b_zero));
    CM_TRY(lay(call, kind->y_scale, false, &p->whole, &p->y_scale));
    CM_TRY(lay(call, kind->y_zero, false, &p->whole, &p->y_zero));
    CM_TRY(lay(call, kind->bias, false, &p->whole, &p->bias));
    p->wide = cm_dtype_info(call->in[kind->a]->type)->kind == CM_CLASS_FLOAT ||
                      cm_dtype_info(call->in[kind->b]->type)->kind == CM_CLASS_FLOAT
                  ? CM_FLOAT
                  : CM_INT32;
    p->parts = p->n / PART + (p->n % PART != 0);
    p->parts = p->parts > MOST_PARTS ? MOST_PARTS : p->parts;
    p->part = (int64_t)cm_round_up((size_t)(p->n / p->parts + (p->n % p->parts != 0)), 8);
    p->parts = p->n / p->part + (p->n % p->part != 0);
    p->part_scratch =
        cm_round_up(cm_gemm_scratch(p->wide, p->m, p->part, p->k), CM_TENSOR_ALIGNMENT);
    size_t end = p->part_scratch * (size_t)p->parts;
    if (!reserve(p->m, p->k, &end, &p->left) || !reserve(p->k, p->n, &end, &p->right) ||
        !reserve(p->m, p->n, &end, &p->sums))
        return cm_call_fail(call, CM_LIMIT, "its matrices are too large");
    cm_call_scratch(call, end);
    return CM_OK;
}

/* The element of a laid operand at the start of one batch. */
static int64_t batch_at(const struct product *p, const struct laid *laid, int64_t batch)
{
    int64_t at = 0;
    for (int i = p->whole.rank - 3; i >= 0; i--) {
        at += batch % p->whole.dims[i] * laid->strides[i];
        batch /= p->whole.dims[i];
    }
    return at;
}

#define DEFINE_WIDEN(name, ctype)                                                                  \
    static void widen_##name(const void *from, int64_t first, int64_t count, float zero,           \
                             float *to)                                                            \
    {                                                                                              \
        const ctype *x = (const ctype *)from + first;                                              \
        for (int64_t i = 0; i < count; i++)                                                        \
            to[i] = (float)x[i] - zero;                                                            \
    }
DEFINE_WIDEN(uint8, uint8_t)
DEFINE_WIDEN(int8, int8_t)

/* A run of elements as floats, less a zero point that all share. */
static void widen_run(const struct cm_tensor *x, int64_t first, int64_t count, float zero,
                      float *to)
{
    enum { BLOCK = 256 };
    double v[BLOCK];
    if (x->type == CM_UINT8)
        widen_uint8(x->data, first, count, zero, to);
    else if (x->type == CM_INT8)
        widen_int8(x->data, first, count, zero, to);
    else
        for (int64_t at = 0; at < count; at += BLOCK) {
            const int64_t n = count - at < BLOCK ? count - at : BLOCK;
            cm_reals_load(x->type, x->data, first + at, n, v);
            for (int64_t i = 0; i < n; i++)
                to[at + i] = (float)v[i] - zero;
        }
}

/* Columns [from, to) of one matrix, less its zero points, which are one for each row or one for
 * each column: numbers of at most nine bits. */
static void widen(const struct cm_tensor *x, int64_t first, int64_t rows, int64_t columns,
                  int64_t from, int64_t to, const struct cm_tensor *zero, int64_t zero_at,
                  int64_t zero_row, bool by_column, float *out)
{
    enum { BLOCK = 256 };
    float zeros[BLOCK];
    for (int64_t c = from; c < to; c += BLOCK) {
        const int64_t n = to - c < BLOCK ? to - c : BLOCK;
        if (zero && by_column)
            widen_run(zero, zero_at + c, n, 0, zeros);
        for (int64_t r = 0; r < rows; r++) {
            float *line = out + r * columns + c;
            const float off =
                zero && !by_column ? (float)cm_tensor_real(zero, zero_at + r * zero_row) : 0;
            widen_run(x, first + r * columns + c, n, off, line);
            for (int64_t i = 0; zero && by_column && i < n; i++)
                line[i] -= zeros[i];
        }
    }
}

/* The scale of a sum: those of A and B, over that of the result. */
static float whole_scale(const struct cm_call *call, const int64_t *at, const int64_t *step,
                         int64_t j)
{
    const struct cm_product_kind *kind = call->node->op->arg;
    const int which[3] = {kind->a_scale, kind->b_scale, kind->y_scale};
    float s[3] = {1, 1, 1};
    for (int i = 0; i < 3 && which[i] >= 0; i++)
        s[i] = (float)cm_tensor_real(call->in[which[i]], at[i] + j * step[i]);
    return s[0] * s[1] / s[2];
}

/* Columns [from, to) of one row of sums as results. Codes: rounded, then the zero point added.
 * Numbers: the bias added. */
static void scale_sums(const struct cm_call *call, const struct product *p, int64_t batch,
                       int64_t row, int64_t from, int64_t to)
{
    enum { BLOCK = 256 };
    const struct cm_product_kind *kind = call->node->op->arg;
    const int r = p->whole.rank - 2, c = p->whole.rank - 1;
    const struct laid *laid[4] = {&p->a_scale, &p->b_scale, &p->y_scale,
                                  kind->y_zero < 0 ? &p->bias : &p->y_zero};
    const char *sums = (const char *)call->scratch + p->sums;
    const struct cm_tensor *added = operand(call, kind->y_zero < 0 ? kind->bias : kind->y_zero);
    struct cm_tensor *y = call->out[0];
    int64_t at[4], step[4];
    for (int i = 0; i < 4; i++) {
        at[i] = batch_at(p, laid[i], batch) + row * laid[i]->strides[r];
        step[i] = laid[i]->strides[c];
    }
    const bool one_scale = !step[0] && !step[1] && !step[2];
    const float scale = whole_scale(call, at, step, 0);
    for (int64_t first = from; first < to; first += BLOCK) {
        const int64_t n = to - first < BLOCK ? to - first : BLOCK;
        double v[BLOCK];
        cm_reals_load(p->wide, sums, row * p->n + first, n, v);
        for (int64_t i = 0; i < n; i++) {
            const float s = one_scale ? scale : whole_scale(call, at, step, first + i);
            v[i] = (double)((float)v[i] * s);
        }
        for (int64_t i = 0; i < n && p->wide == CM_INT32 && kind->y_zero >= 0; i++)
            v[i] = (double)cm_round_half_even((float)v[i]);
        for (int64_t i = 0; added && i < n; i++) {
            v[i] += cm_tensor_real(added, at[3] + (first + i) * step[3]);
            v[i] = kind->y_zero < 0 ? (double)(float)v[i] : v[i];
        }
        cm_reals_store(y->type, y->data, (batch * p->m + row) * p->n + first, n, v);
    }
}

struct job {
    struct cm_call *call;
    const struct product *p;
    int64_t batch;
};

/* Parts of one product, each some columns wide. */
static void multiply_parts(void *arg, int64_t begin, int64_t end)
{
    const struct job *job = arg;
    const struct cm_call *call = job->call;
    const struct product *p = job->p;
    const struct cm_product_kind *kind = call->node->op->arg;
    const bool raw = kind->a_scale < 0;
    char *scratch = call->scratch;
    for (int64_t part = begin; part < end; part++) {
        const int64_t from = part * p->part, left = p->n - from;
        const int64_t to = from + (left < p->part ? left : p->part);
        widen(call->in[kind->b], batch_at(p, &p->b, job->batch) * p->k * p->n, p->k, p->n, from, to,
              operand(call, kind->b_zero), batch_at(p, &p->b_zero, job->batch), 0,
              p->b_zero.strides[p->whole.rank - 1] != 0, (float *)(void *)(scratch + p->right));
        const struct cm_gemm g = {.type = p->wide,
                                  .of_codes = p->wide == CM_INT32,
                                  .m = p->m,
                                  .n = to - from,
                                  .k = p->k,
                                  .alpha = 1,
                                  .a = {scratch + p->left, 0, p->k, 1},
                                  .b = {scratch + p->right, from, p->n, 1},
                                  .c = raw ? call->out[0]->data : scratch + p->sums,
                                  .c_first = (raw ? job->batch * p->m * p->n : 0) + from,
                                  .c_row = p->n,
                                  .c_column = 1};
        cm_gemm(&g, scratch + (size_t)part * p->part_scratch);
        for (int64_t i = 0; !raw && i < p->m; i++)
            scale_sums(call, p, job->batch, i, from, to);
    }
}

enum cm_status cm_coded_product_run(struct cm_call *call)
{
    const struct cm_product_kind *kind = call->node->op->arg;
    const struct product *p = call->state;
    struct job job = {.call = call, .p = p};
    for (; job.batch < p->batches; job.batch++) {
        widen(call->in[kind->a], batch_at(p, &p->a, job.batch) * p->m * p->k, p->m, p->k, 0, p->k,
              operand(call, kind->a_zero), batch_at(p, &p->a_zero, job.batch),
              p->a_zero.strides[p->whole.rank - 2], false,
              (float *)(void *)((char *)call->scratch + p->left));
        cm_parallel(p->parts, 1, multiply_parts, &job);
    }
    return CM_OK;
}

CM_OP(MatMulInteger, .values.is_quantized = true, .infer = cm_product_infer,
      .prepare = cm_coded_product_prepare, .run = cm_coded_product_run, .grad = cm_grad_none,
      .arg = &integer);
CM_OP(QLinearMatMul, .values.is_quantized = true, .infer = cm_product_infer,
      .prepare = cm_coded_product_prepare, .run = cm_coded_product_run, .grad = cm_grad_none,
      .arg = &quantized);
