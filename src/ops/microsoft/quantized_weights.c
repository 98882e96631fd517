/* The kernel of MatMulNBits and MatMulBnb4. Weights stay coded. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/quantized_weights.h"

#include "base/number.h"
#include "graph/nbits_form.h"
#include "tensor/line.h"

enum { A, B, SCALES, ZEROS, G_IDX, BIAS };
enum { ABSMAX = 2 };
enum { MOST_SIZE = 1 << 30 }; /* of N, K and block_size */

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
    bool rounds;         /* rows of A, see cm_nbits_round */
    size_t y;            /* Y as floats, after A as floats; its place in scratch, in bytes */
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
    p->rounds = !is_bnb4(call->node) && cm_nbits_rounds(call->node);
    size_t y;
    int64_t floats;
    if (!cm_dim_mul(p->m, p->to, &floats) || !cm_dtype_bytes(CM_FLOAT, floats, &y) ||
        !cm_dtype_bytes(CM_FLOAT, cm_tensor_count(a), &p->y) || !cm_size_add(p->y, y, &y))
        return cm_call_fail(call, CM_LIMIT, "its matrices are too large");
    cm_call_scratch(call, y);
    return CM_OK;
}

/* ---- rows of weights ---- */

/* Neighbours in a row of weights that have one scale: (number - zero) * scale each. */
struct stretch {
    int64_t count;
    float zero, scale;
};

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

/* From column k on. Blocks of MatMulBnb4 go over the ends of rows. */
static struct stretch stretch_at(const struct cm_call *call, int64_t row, int64_t k)
{
    const struct product *p = call->state;
    const bool bnb4 = is_bnb4(call->node);
    const struct cm_tensor *g_idx = bnb4 ? NULL : operand(call, G_IDX);
    const int64_t at = bnb4 ? row * p->w.k + k : k, left = p->w.block - at % p->w.block;
    const int64_t block = g_idx ? ((const int32_t *)g_idx->data)[k] : at / p->w.block;
    return (struct stretch){
        .count = g_idx               ? 1
                 : left < p->w.k - k ? left
                                     : p->w.k - k,
        .zero = bnb4 ? 0 : zero_of(p, operand(call, ZEROS), row, block),
        .scale = (float)(bnb4 ? cm_tensor_real(call->in[ABSMAX], block)
                              : cm_tensor_real(call->in[SCALES], row * p->w.blocks + block))};
}

static float number_at(const struct cm_call *call, int64_t row, int64_t k)
{
    const struct product *p = call->state;
    const uint8_t *bytes = call->in[B]->data;
    const int64_t at = row * p->w.k + k, mask = (1 << p->w.bits) - 1;
    if (is_bnb4(call->node))
        return cm_bnb4_numbers[cm_node_int(call->node, "quant_type")]
                              [at % 2 ? bytes[at / 2] & 15 : bytes[at / 2] >> 4];
    return (float)(bytes[row * p->w.row_bytes + k * p->w.bits / 8] >> k * p->w.bits % 8 & mask);
}

/* ---- products ---- */

/* One row of A times some neighbours in a row of weights. As in other kernels, the zero point is
 * multiplied once, with the sum of the row. */
static float dot(const struct cm_call *call, const float *a, int64_t row, int64_t k,
                 const struct stretch *s)
{
    double products = 0;
    float sum = 0;
    for (int64_t i = 0; i < s->count; i++) {
        products += (double)a[k + i] * (double)number_at(call, row, k + i);
        sum += a[k + i];
    }
    return (float)((double)s->scale * (products - (double)s->zero * (double)sum));
}

/* Y = A W', or Y = A W with the weights as they are stored. */
static void multiply(const struct cm_call *call, const float *a, float *y)
{
    const struct product *p = call->state;
    struct stretch s;
    for (int64_t i = 0; i < p->m * p->to; i++)
        y[i] = 0;
    for (int64_t n = 0; n < p->w.n; n++)
        for (int64_t k = 0; k < p->w.k; k += s.count) {
            s = stretch_at(call, n, k);
            for (int64_t m = 0; m < p->m; m++) {
                if (!p->plain)
                    y[m * p->to + n] += dot(call, a + m * p->from, n, k, &s);
                for (int64_t i = k; p->plain && i < k + s.count; i++)
                    y[m * p->to + i] += a[m * p->from + n] * number_at(call, n, i) * s.scale;
            }
        }
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
    float *left = call->scratch, *sums = (float *)(void *)((char *)call->scratch + p->y);
    if (!is_bnb4(call->node) && operand(call, G_IDX))
        CM_TRY(cm_nbits_check_groups(call, operand(call, G_IDX), p->w.blocks));
    cm_line_load(cm_line_at(a, 0), 1, p->m * p->from, CM_FLOAT, left);
    if (p->rounds)
        cm_nbits_round(left, p->m, p->from, p->w.block, left);
    multiply(call, left, sums);
    add_bias(call, p, sums);
    cm_line_save(cm_line_at(y, 0), 1, p->m * p->to, CM_FLOAT, sums);
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
