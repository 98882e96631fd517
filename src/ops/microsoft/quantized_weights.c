/* The kernel of MatMulNBits and MatMulBnb4. Weights stay coded; a few rows of them at a time become
 * floats, which is all the memory that a product needs besides its operands. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/quantized_weights.h"

#include "base/number.h"
#include "base/parallel.h"
#include "graph/nbits_form.h"
#include "ops/common/gemm.h"
#include "tensor/line.h"

enum { A, B, SCALES, ZEROS, G_IDX, BIAS };
enum { ABSMAX = 2 };
enum {
    MOST_SIZE = 1 << 30, /* of N, K and block_size */
    FEW_ROWS = 8,        /* of A: then products are summed directly, without packing */
    PIECE = 512,         /* numbers of a row at a time */
    PANEL = 64,          /* rows of weights that one matrix product reads */
    LANES = 16,          /* sums that grow side by side */
    PARTS = 16,          /* panels at work at the same time, whatever the number of threads */
};

/* clang-format off */
const float cm_bnb4_numbers[2][16] = {
    {0, 0.0625F / 12, 8.0F / 12, 1, 4.0F / 12, 0.5F, 2.0F / 12, 0.25F,
     -0.0F, -0.0625F / 12, -8.0F / 12, -1, -4.0F / 12, -0.5F, -2.0F / 12, -0.25F},
    {-1, -0.6961928F, -0.52507305F, -0.3949175F, -0.28444138F, -0.18477343F, -0.091050036F, 0,
     0.0795803F, 0.1609302F, 0.2461123F, 0.33791524F, 0.44070983F, 0.562617F, 0.72295684F, 1},
};
/* clang-format on */

static bool is_bnb4(const struct cm_node *node)
{
    return cm_str_is(node->op_type, "MatMulBnb4");
}

static enum cm_status check_size(const struct cm_node *node, const char *name, int64_t *out,
                                 struct cm_error *err)
{
    *out = cm_node_int(node, name);
    if (*out < 1 || *out > MOST_SIZE)
        return cm_fail(err, CM_BAD_MODEL, "attribute '%s' is %lld, expected 1 to %d", name,
                       (long long)*out, MOST_SIZE);
    return CM_OK;
}

static int64_t quotient_up(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

enum cm_status cm_coded_weights_read(const struct cm_node *node, struct cm_coded_weights *out,
                                     struct cm_error *err)
{
    struct cm_coded_weights w = {.bits = 4};
    CM_TRY(check_size(node, "N", &w.n, err));
    CM_TRY(check_size(node, "K", &w.k, err));
    CM_TRY(check_size(node, "block_size", &w.block, err));
    if (is_bnb4(node)) {
        const int64_t type = cm_node_int(node, "quant_type");
        if (type != 0 && type != 1)
            return cm_fail(err, CM_BAD_MODEL,
                           "attribute 'quant_type' is %lld, expected 0 (FP4) or 1 (NF4)",
                           (long long)type);
        w.blocks = quotient_up(w.n * w.k, w.block);
        w.bytes = quotient_up(w.n * w.k, 2);
        *out = w;
        return CM_OK;
    }
    w.bits = cm_node_int(node, "bits");
    if (w.bits != 2 && w.bits != 4 && w.bits != 8)
        return cm_fail(err, CM_UNSUPPORTED, "attribute 'bits' is %lld, supported are 2, 4 and 8",
                       (long long)w.bits);
    if (w.block * w.bits % 8)
        return cm_fail(err, CM_BAD_MODEL, "blocks of %lld codes do not fill whole bytes",
                       (long long)w.block);
    if (cm_node_int(node, "weight_prepacked"))
        return cm_fail(err, CM_UNSUPPORTED, "weights packed for a device are not supported");
    w.blocks = quotient_up(w.k, w.block);
    w.row_bytes = w.blocks * (w.block * w.bits / 8);
    w.zero_bytes = quotient_up(w.blocks * w.bits, 8);
    w.bytes = w.n * w.row_bytes;
    *out = w;
    return CM_OK;
}

/* A (.., K) to Y (.., N), or the other way round with the weights as they are stored. */
static enum cm_status weights_infer(struct cm_infer *in)
{
    const struct cm_type *a = cm_infer_type(in, A);
    struct cm_coded_weights w;
    struct cm_dim dims[CM_MAX_RANK], both;
    CM_TRY(cm_coded_weights_read(in->node, &w, in->err));
    const bool plain = is_bnb4(in->node) && cm_node_int(in->node, "transB") == 0;
    const int64_t from = plain ? w.n : w.k, to = plain ? w.k : w.n;
    if (a->rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, a->dtype, CM_RANK_UNKNOWN, NULL);
    if (a->rank == 0)
        return cm_infer_fail(in, "input 0 is a scalar, needs rank 1 or more");
    cm_type_copy_dims(dims, a);
    if (!cm_dim_unify(dims[a->rank - 1], CM_DIM(from), &both))
        return cm_infer_fail(in, "input 0 has %lld columns, needs %lld",
                             (long long)dims[a->rank - 1].value, (long long)from);
    dims[a->rank - 1] = CM_DIM(to);
    return cm_infer_set_tensor(in, 0, a->dtype, a->rank, dims);
}

struct product {
    struct cm_coded_weights w;
    bool plain;          /* of weights that are not transposed */
    int64_t m, from, to; /* rows of A; columns of A and of Y */
    int64_t parts;
    bool rounds;              /* rows of A, see cm_nbits_round */
    bool by_nibbles;          /* few rows of A against codes of four bits */
    size_t apart, block_sums; /* places in scratch, in bytes: for that, see split_rows */
    size_t a, y, panel, gemm; /* also in scratch; of the first panel and its work */
    size_t part_bytes;        /* from one part to the next */
};

static const struct cm_tensor *operand(const struct cm_call *call, int i)
{
    return i < call->n_in ? call->in[i] : NULL;
}

static enum cm_status need(struct cm_call *call, int i, int64_t count)
{
    const struct cm_tensor *p = operand(call, i);
    if (p && cm_tensor_count(p) != count)
        return cm_call_fail(call, CM_BAD_ARGUMENT, "input %d has %lld elements, needs %lld", i,
                            (long long)cm_tensor_count(p), (long long)count);
    return CM_OK;
}

static enum cm_status check_operands(struct cm_call *call, const struct cm_coded_weights *w)
{
    CM_TRY(need(call, B, w->bytes));
    if (is_bnb4(call->node))
        return need(call, ABSMAX, w->blocks);
    CM_TRY(need(call, SCALES, w->n * w->blocks));
    const struct cm_tensor *zeros = operand(call, ZEROS), *g_idx = operand(call, G_IDX);
    if (zeros)
        CM_TRY(need(call, ZEROS, w->n * (zeros->type == CM_UINT8 ? w->zero_bytes : w->blocks)));
    if (g_idx && cm_tensor_count(g_idx) != w->blocks * w->block)
        CM_TRY(need(call, G_IDX, w->k));
    return need(call, BIAS, w->n);
}

static bool reserve(int64_t rows, int64_t columns, size_t *end, size_t *at)
{
    int64_t count;
    size_t bytes;
    *at = *end;
    return cm_dim_mul(rows, columns, &count) && cm_dtype_bytes(CM_FLOAT, count, &bytes) &&
           bytes < SIZE_MAX / 4 && cm_size_add(*end, cm_round_up(bytes, CM_TENSOR_ALIGNMENT), end);
}

static enum cm_status weights_prepare(struct cm_call *call)
{
    struct product *p = cm_call_state(call, sizeof *p);
    const struct cm_tensor *a = call->in[A];
    CM_TRY(cm_coded_weights_read(call->node, &p->w, call->err));
    CM_TRY(check_operands(call, &p->w));
    p->plain = is_bnb4(call->node) && cm_node_int(call->node, "transB") == 0;
    p->from = p->plain ? p->w.n : p->w.k;
    p->to = p->plain ? p->w.k : p->w.n;
    if (a->shape.rank == 0 || a->shape.dims[a->shape.rank - 1] != p->from)
        return cm_call_fail(call, CM_BAD_ARGUMENT, "input 0 needs %lld columns",
                            (long long)p->from);
    p->m = cm_tensor_count(a) / p->from;
    size_t end = 0, part = 0;
    const int64_t narrow = a->type == CM_FLOAT ? 0 : 1;
    p->rounds = !is_bnb4(call->node) && cm_nbits_rounds(call->node);
    bool fits = reserve(narrow || p->rounds ? p->m : 0, p->from, &end, &p->a) &&
                reserve(p->m * narrow, p->to, &end, &p->y);
    p->by_nibbles = p->m < FEW_ROWS && !is_bnb4(call->node) && p->w.bits == 4 &&
                    p->w.block % (2 * LANES) == 0 && !operand(call, G_IDX);
    if (p->by_nibbles)
        fits = fits && reserve(p->m, p->w.blocks * p->w.block, &end, &p->apart) &&
               reserve(p->m, p->w.blocks, &end, &p->block_sums);
    if (p->m >= FEW_ROWS && !p->plain) {
        p->parts = quotient_up(p->w.n, PANEL) < PARTS ? quotient_up(p->w.n, PANEL) : PARTS;
        fits = fits && reserve(PANEL, p->w.k, &part, &p->panel);
        p->gemm = part;
        part += cm_round_up(cm_gemm_scratch(CM_FLOAT, p->m, PANEL, p->w.k), CM_TENSOR_ALIGNMENT);
        p->panel += end;
        p->gemm += end;
    }
    p->part_bytes = part;
    if (!fits || !cm_size_mul(part, (size_t)p->parts, &part) || !cm_size_add(end, part, &end))
        return cm_call_fail(call, CM_LIMIT, "its matrices are too large");
    cm_call_scratch(call, end);
    return CM_OK;
}

/* ---- rows of weights as floats ---- */

static float zero_of(const struct product *p, const struct cm_tensor *zeros, int64_t row,
                     int64_t block)
{
    const int64_t bits = p->w.bits;
    if (!zeros)
        return (float)(1 << (bits - 1));
    if (zeros->type != CM_UINT8)
        return (float)cm_tensor_real(zeros, row * p->w.blocks + block);
    const uint8_t byte = ((const uint8_t *)zeros->data)[row * p->w.zero_bytes + block * bits / 8];
    return (float)(byte >> block * bits % 8 & ((1 << bits) - 1));
}

static void codes_to_floats(const uint8_t *bytes, int64_t bits, int64_t from, int64_t count,
                            float *to)
{
    int64_t i = 0;
    if (bits == 8) {
        for (; i < count; i++)
            to[i] = (float)bytes[from + i];
        return;
    }
    if (bits == 4 && from % 2 == 0) {
        for (const uint8_t *pair = bytes + from / 2; i + 1 < count; i += 2, pair++) {
            to[i] = (float)(*pair & 15);
            to[i + 1] = (float)(*pair >> 4);
        }
    }
    for (const int64_t mask = (1 << bits) - 1; i < count; i++)
        to[i] = (float)(bytes[(from + i) * bits / 8] >> (from + i) * bits % 8 & mask);
}

/* Numbers [from, from + count) of a row; from is a multiple of PIECE. */
static void nbits_row(const struct cm_call *call, int64_t row, int64_t from, int64_t count,
                      float *to)
{
    const struct product *p = call->state;
    const struct cm_tensor *zeros = operand(call, ZEROS), *scales = call->in[SCALES];
    const struct cm_tensor *g_idx = operand(call, G_IDX);
    const uint8_t *bytes = (const uint8_t *)call->in[B]->data + row * p->w.row_bytes;
    codes_to_floats(bytes, p->w.bits, from, count, to);
    for (int64_t i = 0; i < count;) {
        const int64_t at = from + i;
        const int64_t block = g_idx ? ((const int32_t *)g_idx->data)[at] : at / p->w.block;
        const float zero = zero_of(p, zeros, row, block);
        const float scale = (float)cm_tensor_real(scales, row * p->w.blocks + block);
        const int64_t left = g_idx ? 1 : p->w.block - at % p->w.block;
        const int64_t end = i + (left < count - i ? left : count - i);
        for (; i < end; i++)
            to[i] = (to[i] - zero) * scale;
    }
}

static void bnb4_row(const struct cm_call *call, int64_t row, int64_t from, int64_t count,
                     float *to)
{
    const struct product *p = call->state;
    const float *numbers = cm_bnb4_numbers[cm_node_int(call->node, "quant_type")];
    const uint8_t *bytes = call->in[B]->data;
    for (int64_t i = 0, at = row * p->w.k + from; i < count;) {
        const float scale = (float)cm_tensor_real(call->in[ABSMAX], at / p->w.block);
        const int64_t left = p->w.block - at % p->w.block;
        const int64_t end = i + (left < count - i ? left : count - i);
        for (; i < end; i++, at++)
            to[i] = numbers[at % 2 ? bytes[at / 2] & 15 : bytes[at / 2] >> 4] * scale;
    }
}

typedef void row_fn(const struct cm_call *call, int64_t row, int64_t from, int64_t count,
                    float *to);

/* ---- products ---- */

struct job {
    const struct cm_call *call;
    const struct product *p;
    row_fn *row;
    const float *a;
    float *y;
};

static float dot(const float *a, const float *b, int64_t count)
{
    float sums[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int l = 0; l < LANES; l++)
            sums[l] += a[i + l] * b[i + l];
    for (; i < count; i++)
        sum += a[i] * b[i];
    for (int l = 0; l < LANES; l++)
        sum += sums[l];
    return sum;
}

static void multiply_rows(void *arg, int64_t begin, int64_t end)
{
    const struct job *job = arg;
    const struct product *p = job->p;
    float piece[PIECE];
    for (int64_t n = begin; n < end; n++) {
        float sums[FEW_ROWS] = {0};
        for (int64_t k = 0; k < p->w.k; k += PIECE) {
            const int64_t count = p->w.k - k < PIECE ? p->w.k - k : PIECE;
            job->row(job->call, n, k, count, piece);
            for (int64_t m = 0; m < p->m; m++)
                sums[m] += dot(job->a + m * p->w.k + k, piece, count);
        }
        for (int64_t m = 0; m < p->m; m++)
            job->y[m * p->w.n + n] = sums[m];
    }
}

/* Rows of A as multiply_nibbles reads them: of each block first the even elements, which meet the
 * low halves of bytes, then the odd ones; and what the elements of each block sum up to. */
static void split_rows(const struct job *job, float *apart, float *sums)
{
    const struct cm_coded_weights *w = &job->p->w;
    for (int64_t m = 0; m < job->p->m; m++) {
        const float *a = job->a + m * w->k;
        for (int64_t b = 0; b < w->blocks; b++, apart += w->block, sums++) {
            *sums = 0;
            for (int64_t i = 0; i < w->block; i++) {
                const int64_t k = b * w->block + i;
                const float v = k < w->k ? a[k] : 0;
                apart[i / 2 + i % 2 * (w->block / 2)] = v;
                *sums += v;
            }
        }
    }
}

/* The sum over a block of a * (code - zero) is that of a * code, less zero times that of a. */
static void multiply_nibbles(void *arg, int64_t begin, int64_t end)
{
    const struct job *job = arg;
    const struct product *p = job->p;
    const char *scratch = job->call->scratch;
    const float *apart = (const float *)(const void *)(scratch + p->apart);
    const float *block_sums = (const float *)(const void *)(scratch + p->block_sums);
    const struct cm_tensor *zeros = operand(job->call, ZEROS);
    const int64_t half = p->w.block / 2;
    for (int64_t n = begin; n < end; n++) {
        float totals[FEW_ROWS][LANES] = {{0}}, less[FEW_ROWS] = {0};
        const uint8_t *bytes = (const uint8_t *)job->call->in[B]->data + n * p->w.row_bytes;
        for (int64_t b = 0; b < p->w.blocks; b++, bytes += half) {
            const float scale = (float)cm_tensor_real(job->call->in[SCALES], n * p->w.blocks + b);
            const float zero = scale * zero_of(p, zeros, n, b);
            for (int64_t m = 0; m < p->m; m++) {
                const int64_t block = m * p->w.blocks + b;
                const float *even = apart + block * p->w.block, *odd = even + half;
                float sums[LANES] = {0};
                for (int64_t i = 0; i < half; i += LANES)
                    for (int l = 0; l < LANES; l++)
                        sums[l] += even[i + l] * (float)(bytes[i + l] & 15) +
                                   odd[i + l] * (float)(bytes[i + l] >> 4);
                for (int l = 0; l < LANES; l++)
                    totals[m][l] += scale * sums[l];
                less[m] += zero * block_sums[block];
            }
        }
        for (int64_t m = 0; m < p->m; m++) {
            float sum = -less[m];
            for (int l = 0; l < LANES; l++)
                sum += totals[m][l];
            job->y[m * p->w.n + n] = sum;
        }
    }
}

/* Panels begin, begin + parts, .. */
static void multiply_panels(void *arg, int64_t begin, int64_t end)
{
    const struct job *job = arg;
    const struct product *p = job->p;
    char *scratch = job->call->scratch;
    for (int64_t part = begin; part < end; part++) {
        float *panel = (float *)(void *)(scratch + p->panel + (size_t)part * p->part_bytes);
        for (int64_t n = part * PANEL; n < p->w.n; n += p->parts * PANEL) {
            const int64_t rows = p->w.n - n < PANEL ? p->w.n - n : PANEL;
            for (int64_t r = 0; r < rows; r++)
                job->row(job->call, n + r, 0, p->w.k, panel + r * p->w.k);
            const struct cm_gemm g = {.type = CM_FLOAT,
                                      .m = p->m,
                                      .n = rows,
                                      .k = p->w.k,
                                      .alpha = 1,
                                      .a = {job->a, 0, p->w.k, 1},
                                      .b = {panel, 0, 1, p->w.k},
                                      .c = job->y,
                                      .c_first = n,
                                      .c_row = p->w.n,
                                      .c_column = 1};
            cm_gemm(&g, scratch + p->gemm + (size_t)part * p->part_bytes);
        }
    }
}

/* Y = A W with the weights as they are stored: each of their rows is added, times a column of A. */
static void multiply_plain(const struct job *job)
{
    const struct product *p = job->p;
    float piece[PIECE];
    for (int64_t i = 0; i < p->m * p->to; i++)
        job->y[i] = 0;
    for (int64_t n = 0; n < p->w.n; n++) {
        for (int64_t k = 0; k < p->w.k; k += PIECE) {
            const int64_t count = p->w.k - k < PIECE ? p->w.k - k : PIECE;
            job->row(job->call, n, k, count, piece);
            for (int64_t m = 0; m < p->m; m++)
                for (int64_t i = 0; i < count; i++)
                    job->y[m * p->w.k + k + i] += job->a[m * p->w.n + n] * piece[i];
        }
    }
}

static enum cm_status check_groups(struct cm_call *call, const struct product *p)
{
    const struct cm_tensor *g_idx = is_bnb4(call->node) ? NULL : operand(call, G_IDX);
    for (int64_t i = 0; g_idx && i < cm_tensor_count(g_idx); i++) {
        const int32_t block = ((const int32_t *)g_idx->data)[i];
        if (block < 0 || block >= p->w.blocks)
            return cm_call_fail(call, CM_BAD_ARGUMENT,
                                "g_idx names block %d, there are %lld in a row", block,
                                (long long)p->w.blocks);
    }
    return CM_OK;
}

static void add_bias(const struct cm_call *call, const struct product *p, float *y)
{
    const struct cm_tensor *bias = is_bnb4(call->node) ? NULL : operand(call, BIAS);
    for (int64_t n = 0; bias && n < p->w.n; n++) {
        const float b = (float)cm_tensor_real(bias, n);
        for (int64_t m = 0; m < p->m; m++)
            y[m * p->w.n + n] += b;
    }
}

static enum cm_status weights_run(struct cm_call *call)
{
    const struct product *p = call->state;
    const struct cm_tensor *a = call->in[A];
    struct cm_tensor *y = call->out[0];
    const bool narrow = a->type != CM_FLOAT;
    char *scratch = call->scratch;
    struct job job = {.call = call,
                      .p = p,
                      .row = is_bnb4(call->node) ? bnb4_row : nbits_row,
                      .a = narrow || p->rounds ? (const float *)(void *)(scratch + p->a) : a->data,
                      .y = narrow ? (float *)(void *)(scratch + p->y) : y->data};
    if (p->m == 0)
        return CM_OK;
    CM_TRY(check_groups(call, p));
    if (narrow)
        cm_line_load(cm_line_at(a, 0), 1, p->m * p->from, CM_FLOAT, scratch + p->a);
    if (p->rounds)
        cm_nbits_round(narrow ? job.a : a->data, p->m, p->from, p->w.block,
                       (float *)(void *)(scratch + p->a));
    if (p->plain)
        multiply_plain(&job);
    else if (p->parts)
        cm_parallel(p->parts, 1, multiply_panels, &job);
    else if (p->by_nibbles) {
        split_rows(&job, (float *)(void *)(scratch + p->apart),
                   (float *)(void *)(scratch + p->block_sums));
        cm_parallel(p->w.n, 16, multiply_nibbles, &job);
    } else
        cm_parallel(p->w.n, 16, multiply_rows, &job);
    add_bias(call, p, job.y);
    if (narrow)
        cm_line_save(cm_line_at(y, 0), 1, p->m * p->to, CM_FLOAT, job.y);
    return CM_OK;
}

/* The gradient of a node that rounds A is that of one that does not: rounding alone would stop it.
 */
static enum cm_status nbits_grad(struct cm_grad *g)
{
    static const char *const names[] = {"K", "N", "bits", "block_size"};
    struct cm_attribute_proto attributes[sizeof names / sizeof names[0]];
    cm_value xs[BIAS + 1], grads[BIAS + 1] = {0};
    struct cm_emission plain = {.op = "com.microsoft::MatMulNBits",
                                .inputs = xs,
                                .n_inputs = (size_t)g->node->n_inputs,
                                .attributes = attributes,
                                .n_attributes = sizeof names / sizeof names[0]};
    for (size_t i = 0; i < plain.n_attributes; i++)
        attributes[i] =
            cm_attr_int(cm_builder_arena(&g->build), names[i], cm_node_int(g->node, names[i]));
    for (int i = 0; i < g->node->n_inputs; i++)
        xs[i] = cm_grad_input(g, i);
    const cm_value y = cm_build(&g->build, &plain), dy = cm_grad_incoming(g, 0);
    size_t n = 0;
    for (int i = 0; i < g->node->n_inputs; i++)
        if (cm_grad_wants(g, i))
            xs[n++] = cm_grad_input(g, i);
    CM_TRY(g->build.status);
    CM_TRY(g->differentiate(&g->build, &y, &dy, 1, xs, n, grads));
    n = 0;
    for (int i = 0; i < g->node->n_inputs; i++)
        if (cm_grad_wants(g, i) && grads[n++])
            CM_TRY(cm_grad_set(g, i, grads[n - 1]));
    return CM_OK;
}

CM_OP_IN(microsoft, "com.microsoft", MatMulNBits, .values.is_quantized = true,
         .infer = weights_infer, .prepare = weights_prepare, .run = weights_run,
         .body = cm_matmulnbits_body, .grad = nbits_grad, .grad_fits = cm_nbits_rounds,
         .cost.work = cm_work_product);
CM_OP_IN(microsoft, "com.microsoft", MatMulBnb4, .values.is_quantized = true,
         .infer = weights_infer, .prepare = weights_prepare, .run = weights_run,
         .body = cm_matmulbnb4_body, .cost.work = cm_work_product);
